// What stands around the graphs of a job: controls, the replicas, the marks, and the numbers as a table.

import { classes, html } from "../lib/ui.js";
import { jobHref, setQuery } from "../lib/address.js";
import { Fold } from "../parts/fold.js";
import { lineColour } from "../parts/plot-looks.js";
import { Table } from "../parts/table.js";
import { Time } from "../parts/time.js";

/** @typedef {import("./job-graphs-lines.js").Graph} Graph */

const MOST_MARKS = 50;
const ONLY = "only "; // before the name of a replica
const RANGES = /** @type {[string, number][]} */ ([["10 min", 600], ["1 h", 3600], ["6 h", 21_600]]);

/** @param {{query: Record<string, string>, tasks: string[], isZoomed: boolean, isLive: boolean, hasReports: boolean}} props */
export function Controls({ query, tasks, isZoomed, isLive, hasReports }) {
  const changed = (/** @type {string} */ name, usual = "") => (/** @type {Event} */ event) => {
    const { value } = /** @type {HTMLInputElement} */ (event.target);
    setQuery({ [name]: value === usual ? null : value });
  };
  const last = (/** @type {number} */ seconds) => () =>
    setQuery({ from: new Date(Date.now() - seconds * 1000).toISOString(), to: null });
  return html`<div class="toolbar">
    <label for="find-graphs" class="unseen">Filter graphs by name</label>
    <input id="find-graphs" type="search" placeholder="Filter graphs" value=${query.find ?? ""} onInput=${changed("find")} />
    <span class="pair"><label for="lines">Replicas</label>
    <select id="lines" value=${query.task ? ONLY + query.task : (query.lines ?? "each")} onChange=${chooseLines}>
      <option value="each">each</option>
      <option value="sum">together, sum</option>
      <option value="mean">together, mean</option>
      ${tasks.length > 1 && tasks.map((task) => html`<option key=${task} value=${ONLY + task}>only ${task}</option>`)}
    </select></span>
    ${hasReports &&
    html`<span class="pair"><label for="over">Reported values over</label>
      <select id="over" value=${query.over ?? "time"} onChange=${changed("over", "time")}>
        <option value="time">time</option>
        <option value="step">step</option>
      </select></span>`}
    <span class="grow"></span>
    ${isLive && RANGES.map(([words, seconds]) => html`<button key=${words} type="button" class="small" onClick=${last(seconds)}>Last ${words}</button>`)}
    ${(isZoomed || query.from) &&
    html`<button type="button" class="small" onClick=${() => setQuery({ from: null, to: null }, { replace: false })}>The whole job</button>`}
    <span class="dim">${isLive ? "live" : isZoomed ? "a part of it" : ""}</span>
  </div>`;
}

/** @param {Event} event */
function chooseLines(event) {
  const { value } = /** @type {HTMLSelectElement} */ (event.target);
  const task = value.startsWith(ONLY) ? value.slice(ONLY.length) : null;
  setQuery({ task, lines: task || value === "each" ? null : value });
}

/** @param {{tasks: string[], marked: string, onMarked: (task: string) => void}} props */
export function Legend({ tasks, marked, onMarked }) {
  if (tasks.length < 2) return null;
  return html`<ul class="plot-legend" aria-label="Replicas">
    ${tasks.map(
      (task, at) => html`<li key=${task}>
        <button
          type="button"
          class=${classes("plain", marked && marked !== task && "faint")}
          onMouseEnter=${() => onMarked(task)}
          onFocus=${() => onMarked(task)}
          onBlur=${() => onMarked("")}
        >
          <svg width="12" height="12" aria-hidden="true"><rect y="4" width="12" height="4" rx="2" fill=${lineColour(at)} /></svg> ${task}
        </button>
      </li>`,
    )}
  </ul>`;
}

/** @param {{job: any, marks: any[]}} props */
export function MarkList({ job, marks }) {
  if (!marks.length) return null;
  const list = () => html`<ul class="graph-marks">
    ${marks.slice(-MOST_MARKS).map(
      ({ time, reason, words, task, isBad }, at) => html`<li key=${`${time} ${at}`}>
        <a href=${jobHref(job.name, "logs", { time })} title="The log of that moment"><${Time} at=${time} /></a>
        <span class=${isBad ? "bad-ink" : ""}>${reason}</span> ${task && html`<code>${task}</code>`} <span class="dim">${words}</span>
      </li>`,
    )}
  </ul>`;
  return html`<${Fold} class="graph-more" summary=${`Marks (${marks.length})`} content=${list} />`;
}

/** @param {{graphs: Graph[]}} props */
export const GraphTable = ({ graphs }) =>
  html`<${Fold} class="graph-more" summary="Numbers as a table" content=${() => html`<${Numbers} graphs=${graphs} />`} />`;

/** @param {{graphs: Graph[]}} props */
function Numbers({ graphs }) {
  const rows = graphs.flatMap((graph) =>
    graph.lines.map((line) => ({ graph, line, ...numbersOf(/** @type {number[]} */ (line.values.filter((value) => value !== null))) })),
  );
  const number = (/** @type {string} */ name, /** @type {string} */ title) => ({
    name,
    title,
    isNumber: true,
    cell: (/** @type {any} */ row) => (Number.isFinite(row[name]) ? row.graph.format(row[name]) : "–"),
  });
  return html`<${Table}
    caption="The last, least, most and mean value of each line in this range"
    rows=${rows}
    rowKey=${(/** @type {any} */ row) => `${row.graph.name} ${row.line.label}`}
    columns=${[
      { name: "graph", title: "Quantity", cell: (/** @type {any} */ row) => row.graph.title },
      { name: "line", title: "Replica", isWide: true, cell: (/** @type {any} */ row) => row.line.label },
      number("last", "Last"),
      number("least", "Least"),
      number("most", "Most"),
      number("mean", "Mean"),
    ]}
  />`;
}

/** @param {number[]} values */
function numbersOf(values) {
  const sum = values.reduce((total, value) => total + value, 0);
  return {
    last: values[values.length - 1],
    least: values.reduce((a, b) => Math.min(a, b), Infinity),
    most: values.reduce((a, b) => Math.max(a, b), -Infinity),
    mean: sum / values.length,
  };
}
