// The graphs of a job: what each replica used and reported, with one crosshair, one range and one marked replica.

import { html, useCallback, useEffect, useMemo, useRef, useState } from "../lib/ui.js";
import { go, jobHref, setQuery } from "../lib/address.js";
import { get } from "../lib/api.js";
import { useLive } from "../lib/hints.js";
import { graphsOfRange } from "../lib/job-tabs.js";
import { useKeys } from "../lib/keys.js";
import { Empty, Failure, Loading } from "../parts/notice.js";
import { Plot } from "../parts/plot.js";
import { isFinal } from "../parts/state.js";
import { graphsOf, marksOf, tasksOf } from "./job-graphs-lines.js";
import { Controls, GraphTable, Legend, MarkList } from "./job-graphs-around.js";

/** @typedef {[number, number] | null} Range seconds since 1970; null: all there is */

const PACE = 2000; // milliseconds between samples
const CHECKPOINT_PACE = 15_000; // milliseconds between looks at what was stored

/** @param {{job: any, address: import("../lib/address.js").Address}} props */
export default function JobGraphs({ job, address }) {
  const { query } = address;
  const range = rangeOf(query);
  const [marked, setMarked] = useState("");
  const lastRead = useRef({ at: 0, pace: PACE });
  const isLive = !isFinal(job.state) && !query.to;
  const { data, error, reload } = useLive(
    async (signal) => {
      const asked = graphsOfRange(query);
      const answer = await get(`/v1/${job.name}${asked.path}`, asked.query, { signal });
      const length = Date.parse(answer.endTime) - Date.parse(answer.startTime);
      lastRead.current = { at: Date.now(), pace: Math.max(PACE, length / Number(asked.query.points)) };
      return answer;
    },
    [job.name, query.from, query.to],
    {
      job: job.name,
      metrics: isLive ? job.name : undefined,
      // A sample that is not a pixel wide is not worth an answer.
      ignore: (hint) => Boolean(hint.metrics) && Date.now() - lastRead.current.at < lastRead.current.pace * 0.9,
    },
  );
  const by = query.lines ?? "each";
  const over = query.over === "step" ? "step" : "time";
  const graphs = useMemo(() => (data ? graphsOf(data, by, over, query.task) : []), [data, by, over, query.task]);
  const checkpoints = useCheckpoints(job, data);
  const marks = useMemo(() => (data ? marksOf(data, checkpoints) : []), [data, checkpoints]);
  const bounds = useMemo(() => data && boundsOf(data), [data]);
  const onRange = useCallback((/** @type {Range} */ next) => choose(next), []);
  const onPick = useCallback(
    (/** @type {number} */ at) => go(jobHref(job.name, "logs", { time: new Date(at * 1000).toISOString() })),
    [job.name],
  );
  useRangeKeys(range ?? bounds ?? null);
  if (error && !data) return html`<${Failure} error=${error} retry=${reload} />`;
  if (!data) return html`<${Loading} />`;
  const wanted = (query.find ?? "").toLowerCase();
  const shown = graphs.filter(({ title, name }) => `${title} ${name}`.toLowerCase().includes(wanted));
  const tasks = tasksOf(data);
  return html`<section class="graphs" onMouseLeave=${() => setMarked("")}>
    <h2 class="unseen">Graphs</h2>
    ${(tasks.length > 0 || query.from) && html`<${Controls} query=${query} tasks=${tasks} isZoomed=${Boolean(range)} isLive=${isLive} hasReports=${data.reported.length > 0} />`}
    ${error && html`<${Failure} error=${error} retry=${reload} />`}
    ${by === "each" && !query.task && html`<${Legend} tasks=${tasks} marked=${marked} onMarked=${setMarked} />`}
    ${!graphs.length && html`<${NothingYet} job=${job} isZoomed=${Boolean(range)} task=${query.task ?? ""} />`}
    ${graphs.length > 0 && !shown.length && html`<${Empty} title=${`No graph is called “${query.find}”`} />`}
    <div class="plots">
      ${shown.map(
        (graph) => html`<${Plot}
          key=${graph.name}
          title=${graph.title}
          group=${graph.isOverStep ? "steps" : "times"}
          x=${graph.x}
          lines=${graph.lines}
          format=${graph.format}
          isTime=${!graph.isOverStep}
          isBinary=${graph.unit.startsWith("bytes")}
          isWhole=${graph.unit === "processes" || graph.unit === "threads"}
          joinsGaps=${graph.isReported}
          marks=${graph.isOverStep ? undefined : marks}
          range=${graph.isOverStep ? null : bounds}
          marked=${marked}
          onMarked=${setMarked}
          onRange=${graph.isOverStep ? ignored : onRange}
          onPick=${graph.isOverStep ? undefined : onPick}
        />`,
      )}
    </div>
    <${MarkList} job=${job} marks=${marks} />
    ${shown.length > 0 && html`<${GraphTable} graphs=${shown} />`}
  </section>`;
}

const ignored = () => {};

/** @param {{job: any, isZoomed: boolean, task: string}} props */
function NothingYet({ job, isZoomed, task }) {
  if (isZoomed) return html`<${Empty} title="Nothing was measured in this range"><p>A double click, or 0, shows the whole job.</p><//>`;
  if (task) return html`<${Empty} title=${`Nothing was measured of ${task}`}><p><a href=${jobHref(job.name, "graphs")}>All replicas</a></p><//>`;
  const words = isFinal(job.state) ? "It ended before anything was measured." : "The first measurements come two seconds after its replicas have started.";
  return html`<${Empty} title=${isFinal(job.state) ? "Nothing was measured" : "Nothing is measured yet"}><p>${words}</p><//>`;
}

/** @type {import("../lib/outputs.js").Committed[]} */
const NONE = [];

/**
 * The checkpoints that were stored. Nothing hints at a new one, so they are read with the graphs, though less often.
 * @param {any} job @param {any} data the answer of :graphs
 */
function useCheckpoints(job, data) {
  const [readAt, setReadAt] = useState(0);
  const isLate = Boolean(data) && !isFinal(job.state) && Date.now() - readAt > CHECKPOINT_PACE;
  const output = job.jobSpec.baseOutputDirectory?.outputUriPrefix;
  useEffect(() => {
    if (isLate) setReadAt(Date.now());
  }, [isLate]);
  const results = useLive(
    async (signal) => (output ? get(`/v1/${job.name}:results`, {}, { signal }) : undefined),
    [job.name, output, readAt],
    { job: job.name },
  );
  return results.data?.checkpoints ?? NONE;
}

/** @param {Record<string, string>} query @returns {Range} */
function rangeOf({ from, to }) {
  const range = [Date.parse(from) / 1000, Date.parse(to) / 1000];
  return range.every(Number.isFinite) && range[0] < range[1] ? /** @type {Range} */ (range) : null;
}

/** What the answer is about. @param {any} data @returns {[number, number]} */
function boundsOf({ startTime, endTime }) {
  return [Date.parse(startTime) / 1000, Date.parse(endTime) / 1000];
}

/** @param {Range} range */
function choose(range) {
  const [from, to] = range ? range.map((at) => new Date(at * 1000).toISOString()) : [null, null];
  setQuery({ from, to }, { replace: false });
}

/** @param {Range} range */
function useRangeKeys(range) {
  const change = (/** @type {number} */ move, /** @type {number} */ factor) => () => {
    if (!range) return;
    const [from, to] = range;
    const half = ((to - from) / 2) * factor;
    const middle = (from + to) / 2 + (to - from) * move;
    choose([middle - half, middle + half]);
  };
  useKeys("Graphs", {
    "/": ["Filter graphs", () => document.getElementById("find-graphs")?.focus()],
    "+": ["Narrow the range", change(0, 0.5)],
    "-": ["Widen the range", change(0, 2)],
    "[": ["Earlier", change(-0.5, 1)],
    "]": ["Later", change(0.5, 1)],
    0: ["The whole job", () => choose(null)],
  });
}
