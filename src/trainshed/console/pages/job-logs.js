// The tab "logs" of a job: its whole log, all replicas or one, searched, followed, linked by line.

import { html, useEffect, useLayoutEffect, useMemo, useRef, useState } from "../lib/ui.js";
import { href, setQuery } from "../lib/address.js";
import { get, withQuery } from "../lib/api.js";
import { count, shortName } from "../lib/format.js";
import { listen, useLive } from "../lib/hints.js";
import { useKeys } from "../lib/keys.js";
import { eventsOf } from "../lib/log-events.js";
import { patternOf, useNeighbour, useSearch } from "../lib/log-search.js";
import { find, LogSource } from "../lib/log-source.js";
import { LogView } from "../parts/log-view.js";
import { LogTools } from "../parts/log-tools.js";
import { Empty, Failure, Loading } from "../parts/notice.js";
import { isFinal } from "../parts/state.js";

/**
 * @typedef {import("../lib/address.js").Address} Address
 * @typedef {import("../lib/log-source.js").Choice} Choice
 */

const LOOKS = "trainshed.log"; // how lines are shown: the same for all jobs

/** @param {{job: {name: string, state: string}, status: any, address: Address}} props */
export default function JobLogs({ job, status, address }) {
  const { query } = address;
  const name = job.name;
  const choice = useMemo(() => choiceOf(query), [query.task, query.attempt, query.stream]);
  const source = useSource(name, choice);
  const [isFollowing, setFollowing] = useState(!query.line && !query.time);
  const [jump, setJump] = useState(/** @type {{line: number} | null} */ (null));
  const [looks, setLooks] = useLooks();
  const field = useRef(/** @type {HTMLInputElement | null} */ (null));
  const pattern = patternOf(query.find ?? "", query.severity ?? "");
  const search = useSearch(name, pattern, choice);
  const neighbour = useNeighbour(name, pattern, choice);
  const marked = Number(query.line) || 0;
  const isFiltered = Boolean(query.only || (query.severity && !query.find)) && pattern !== null;

  const events = useEvents(name, choice, looks.isEventful);

  const goTo = (/** @type {number} */ line) => {
    setFollowing(false);
    setJump({ line });
    setQuery({ line, time: "" });
  };
  useEffect(() => {
    if (marked && source.isCounted) goTo(marked);
    else if (query.time && source.isCounted) source.numberAt(query.time).then(goTo);
  }, [source.isCounted, choice]);
  const step = async (/** @type {boolean} */ isBack) => {
    const line = await neighbour(marked || (isBack ? source.total + 1 : 0), isBack).catch(() => undefined);
    if (line) goTo(line);
  };
  const toEnd = () => {
    setQuery({ line: "", time: "" });
    setFollowing(true);
  };
  const verdict = verdictOf(status);
  const toVerdict = async () => {
    if (verdict) goTo(await lineOfVerdict(name, choice, verdict));
  };
  useKeys("Logs", {
    "/": ["Search", () => field.current?.focus()],
    n: ["Next match", () => void step(false)],
    N: ["Previous match", () => void step(true)],
    G: ["To the end", toEnd],
    "g g": ["To the first line", () => goTo(1)],
    f: ["Follow, or stop", () => (isFollowing ? setFollowing(false) : toEnd())],
    w: ["Wrap lines, or not", () => setLooks({ isWrapped: !looks.isWrapped })],
  });

  const filtered = useMemo(() => listSource(search.lines), [search.lines]);
  const shown = isFiltered ? filtered : source;
  const isEmpty = source.isCounted && !source.total;
  const tasks = tasksOf(status);
  const link = (/** @type {number} */ line) => href(address.parts, { ...query, time: "", only: "", line });
  return html`<section class="logs tall" aria-label="Log">
    <${LogTools} query=${query} search=${search} pattern=${pattern} marked=${marked} total=${source.total} isCounted=${source.isCounted}
      tasks=${[...tasks.keys()]} attempts=${attemptsOf(status)} looks=${looks} setLooks=${setLooks} field=${field} step=${step} goTo=${goTo}
      toTime=${(/** @type {string} */ time) => source.numberAt(time).then(goTo)} toVerdict=${verdict && toVerdict}
      download=${withQuery(`/v1/${name}:output`, { download: true, task: choice.task, attempt: choice.attempt })} />
    ${source.error && html`<${Failure} error=${source.error} retry=${() => source.open()} />`}
    ${search.error && html`<${Failure} error=${search.error} />`}
    ${!source.isCounted && !source.unnumbered.length && !source.error && html`<${Loading} words="Reading the log" />`}
    ${isEmpty && html`<${Empty} title="Nothing is printed yet"><p>Lines appear here as ${shortName(name)} prints them.</p><//>`}
    <div class="log-frame" hidden=${isEmpty || (!source.isCounted && !source.unnumbered.length)}>
      <${LogView} key=${isFiltered} source=${shown} isWrapped=${looks.isWrapped} isFollowing=${isFollowing && !isFiltered} onFollow=${setFollowing}
        jump=${isFiltered ? null : jump} canFold=${!isFiltered && looks.isFolding} events=${isFiltered ? NONE : events} link=${link}
        looks=${{ tasks: choice.task ? new Map() : tasks, isTimed: looks.isTimed, marked, term: pattern?.text?.toLowerCase() ?? "", verdict }} />
      ${!isFollowing && !isFiltered && html`<button type="button" class="main log-end" onClick=${toEnd}>↓ To the end</button>`}
    </div>
    <p class="dim log-state" role="status">${stateWords(source, isFollowing && !isFiltered && !isFinal(job.state))}</p>
  </section>`;
}

/** @param {LogSource} source @param {boolean} isFollowing */
function stateWords(source, isFollowing) {
  if (!source.isCounted) return source.unnumbered.length ? "Counting the lines …" : "";
  return `${count(source.total)} ${source.total === 1 ? "line" : "lines"}${isFollowing ? ", following" : ""}`;
}

/** The lines of a choice, drawn again as they come. @param {string} name @param {Choice} choice */
function useSource(name, choice) {
  const [, draw] = useState(0);
  const source = useMemo(() => new LogSource(name, choice, () => draw((number) => number + 1)), [name, choice]);
  useLayoutEffect(() => {
    source.open();
    const stop = listen({
      logs: name,
      onHint: (hint) => void ((hint.everything || (hint.name === name)) && source.isCounted && source.grow()),
    });
    return () => {
      stop();
      source.close();
    };
  }, [source]);
  return source;
}

/** @type {import("../lib/log-events.js").JobEvent[]} */
const NONE = [];

/** What happened to the job, as far as it concerns the lines that are shown. @param {string} name @param {Choice} choice @param {boolean} isOn */
function useEvents(name, choice, isOn) {
  const { data } = useLive(async (signal) => (isOn ? get(`/v1/${name}:events`, {}, { signal }) : undefined), [name, isOn], { job: name });
  return useMemo(() => (data ? eventsOf(data.events, choice) : NONE), [data, choice]);
}

/** @returns {[{isWrapped: boolean, isTimed: boolean, isFolding: boolean, isEventful: boolean}, (changes: object) => void]} */
function useLooks() {
  const [looks, setState] = useState(() => {
    const plain = { isWrapped: true, isTimed: false, isFolding: true, isEventful: true };
    try {
      return { ...plain, ...JSON.parse(localStorage.getItem(LOOKS) ?? "{}") };
    } catch {
      return plain;
    }
  });
  const change = (/** @type {object} */ changes) => {
    const next = { ...looks, ...changes };
    localStorage.setItem(LOOKS, JSON.stringify(next));
    setState(next);
  };
  return [looks, change];
}

/** @param {Record<string, string>} query @returns {Choice} */
const choiceOf = ({ task, attempt, stream }) => ({ task, attempt, stream });

/** A source of lines that are all there. @param {import("../lib/log-source.js").LogLine[]} lines */
const listSource = (lines) => ({
  total: lines.length,
  line: (/** @type {number} */ number) => lines[number - 1],
  want: () => {},
});

/** Each replica's place, by which it has its colour. @param {any} status @returns {Map<string, number>} */
function tasksOf(status) {
  const names = (status?.replicas ?? []).map((/** @type {any} */ replica) => String(replica.task ?? replica.name));
  return new Map([...new Set(names)].map((task, at) => [/** @type {string} */ (task), at]));
}

/** @param {any} status @returns {number} how many attempts there were */
const attemptsOf = (status) => Number(status?.attempt ?? 0) + 1;

/** @param {any} status @returns {{task: string, lines: Set<string>} | null} */
function verdictOf(status) {
  const verdict = status?.failure?.verdict;
  const lines = (verdict?.lines ?? []).map((/** @type {string} */ line) => line.trim()).filter(Boolean);
  return lines.length ? { task: verdict.task ?? "", lines: new Set(lines) } : null;
}

/** @param {string} name @param {Choice} choice @param {{task: string, lines: Set<string>}} verdict */
async function lineOfVerdict(name, choice, { lines }) {
  let number = 0;
  const text = [...lines][0].slice(0, 900);
  const query = { ...choice, text, matchCase: true, direction: "backward", limit: 1 };
  await find(name, query, new AbortController().signal, (step) => {
    if (step.lines.length) number = Number(step.lines[0].number);
    return !step.lines.length;
  });
  return number || 1;
}
