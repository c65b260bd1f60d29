// Jobs beside each other: what they reported over step or time, and the settings in which they differ.
//
// The address says which: ?jobs=PROJECT/LOCATION/ID,… or ?filter=…, and over, group, log, smooth, find, metric.

import { html, useCallback, useEffect, useMemo, useState } from "../lib/ui.js";
import { setQuery, jobName } from "../lib/address.js";
import { EVERYWHERE, post } from "../lib/api.js";
import { count, duration } from "../lib/format.js";
import { useLive } from "../lib/hints.js";
import { useKeys } from "../lib/keys.js";
import { Empty, Failure, Loading, Notice } from "../parts/notice.js";
import { Plot } from "../parts/plot.js";
import { CompareControls } from "./compare-controls.js";
import { keysOf, linesOf } from "./compare-lines.js";
import { CompareTable } from "./compare-table.js";

const POINTS = 300;

/** @param {{address: import("../lib/address.js").Address}} props */
export default function ComparePage({ address }) {
  const { query } = address;
  const [marked, setMarked] = useState("");
  const names = namesOf(query.jobs ?? "");
  const isAsked = names.length > 0 || "filter" in query;
  const asked = requestOf(query, names);
  const { data, error, reload } = useLive(
    async (signal) => (isAsked ? post(`${EVERYWHERE}/customJobs:compare`, asked, {}, { signal }) : null),
    [JSON.stringify(asked), isAsked],
    { ignore: (hint) => names.length > 0 && Boolean(hint.name) && !names.includes(hint.name ?? "") },
  );
  const smooth = Number(query.smooth ?? 0);
  const keys = useMemo(() => (data ? keysOf(data, query.group ?? "") : []), [data, query.group]);
  const graphs = useMemo(() => (data ? linesOf(data, keys, smooth) : []), [data, keys, smooth]);
  const [isPainted, setPainted] = useState(false);
  useEffect(() => void (data && setPainted(true)), [data]); // an effect comes when the graphs are on the screen
  const onRange = useCallback(
    (/** @type {[number, number] | null} */ range) => setQuery({ from: range?.[0], to: range?.[1] }, { replace: false }),
    [],
  );
  useKeys("Compare", {
    "/": ["Filter jobs", () => document.getElementById("compare-filter")?.focus()],
    0: ["The whole range", () => onRange(null)],
  });
  const wanted = (query.find ?? "").toLowerCase();
  const shown = graphs.filter(({ name }) => name.toLowerCase().includes(wanted));
  const isOverTime = query.over === "time";
  return html`<section class="compare" onMouseLeave=${() => setMarked("")}>
    <h1>Compare${data ? ` ${count(data.jobs.length)} jobs` : ""}</h1>
    <${CompareControls} query=${query} data=${data} />
    ${error && html`<${Failure} error=${error} retry=${reload} />`}
    ${!isAsked && html`<${WhatToCompare} />`}
    ${isAsked && !data && !error && html`<${Loading} />`}
    ${data?.hasMore && html`<${Notice} kind="warn"><p>More jobs fit the filter. The newest ${count(data.jobs.length)} are compared.</p><//>`}
    ${data?.missing.length > 0 && html`<${Notice} kind="warn"><p>Not there any more: ${data.missing.join(", ")}</p><//>`}
    ${data && !data.jobs.length && html`<${Empty} title="No job fits" />`}
    ${data?.jobs.length > 0 && !graphs.length && html`<${Empty} title="These jobs reported no values"><p>A program reports by <code>trainshed.report</code>, or by lines such as <code>TRAINSHED_STEP 3/1000 loss=0.5</code>.</p><//>`}
    <div class="plots">
      ${shown.map(
        (graph) => html`<${Plot}
          key=${graph.name}
          title=${graph.name}
          group="compare"
          x=${data.x}
          lines=${graph.lines}
          format=${graph.format}
          formatX=${isOverTime ? duration : count}
          isLog=${Boolean(query.log)}
          joinsGaps
          marked=${marked}
          onMarked=${setMarked}
          onRange=${onRange}
        />`,
      )}
    </div>
    ${isPainted && data?.jobs.length > 0 && html`<${CompareTable} data=${data} keys=${keys} query=${query} marked=${marked} onMarked=${setMarked} />`}
  </section>`;
}

function WhatToCompare() {
  return html`<${Empty} title="Which jobs?">
    <p>Select jobs in the list, or write a filter above, such as <code>labels.sweep = "lr"</code>. Up to 500 are compared.</p>
  <//>`;
}

/** Full names of the jobs in the address. @param {string} text */
function namesOf(text) {
  return text.split(",").filter(Boolean).map((name) => {
    if (name.startsWith("projects/")) return name;
    const [project, place, id] = name.split("/");
    return jobName(project, place, id);
  });
}

/** The request of customJobs:compare. @param {Record<string, string>} query @param {string[]} names */
function requestOf(query, names) {
  const bound = (/** @type {string | undefined} */ text) => (text && Number.isFinite(Number(text)) ? Number(text) : undefined);
  return {
    jobs: names.length ? names : undefined,
    filter: names.length ? undefined : query.filter,
    over: query.over === "time" ? "time" : "step",
    groupBy: query.group ? `labels.${query.group}` : undefined,
    points: POINTS,
    start: bound(query.from),
    end: bound(query.to),
  };
}
