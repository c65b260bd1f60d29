// The parameters of many trials at once, as parallel coordinates, with ranges that narrow them; the address has these.

import { html, useCallback, useMemo, useState } from "../lib/ui.js";
import { go, setQuery, studyHref } from "../lib/address.js";
import { count, plain } from "../lib/format.js";
import { isMaximized, pointWords } from "../lib/study.js";
import { Empty, Failure, Loading } from "../parts/notice.js";
import { axesOf, isWithin, rangesIn, rangeText } from "./study-axes.js";
import { Lines } from "./study-lines.js";
import { useStudyLive } from "./study-live.js";

/** @typedef {import("./study-axes.js").Axis} Axis */
/** @typedef {import("./study-axes.js").Point} Point */
/** @typedef {import("./study-axes.js").Range} Range */

const MOST = 500;
const SHOWN = 15; // rows of the table

/** @param {import("./study.js").TabProps} props */
export default function ParallelTab({ study, row, path, address }) {
  const [hovered, setHovered] = useState("");
  const { data, error, reload } = useStudyLive(row, `${path}:points`, { most: MOST });
  const spec = JSON.stringify(study.studySpec); // the study is read again, and mostly the same
  const { points, axes } = useMemo(() => {
    const all = /** @type {Point[]} */ (data?.points ?? []);
    return { points: all, axes: axesOf(JSON.parse(spec), row.objectives, all) };
  }, [data, spec]);
  const asked = JSON.stringify([...rangesIn(address.query)]);
  const ranges = useMemo(() => /** @type {Map<string, Range>} */ (new Map(JSON.parse(asked))), [asked]);
  const ranked = useMemo(() => bestFirst(points, isMaximized(row.objectives[0])), [points, row.objectives[0].goal]);
  const ranks = useMemo(() => new Map(ranked.map(({ trial }, at) => [trial, 1 - at / Math.max(1, ranked.length - 1)])), [ranked]);
  const goodness = useCallback((/** @type {Point} */ { trial }) => ranks.get(trial) ?? 0, [ranks]);
  const setRange = (/** @type {string} */ id, /** @type {Range | null} */ range) => setQuery({ [`r.${id}`]: range ? rangeText(range) : "" });
  if (error && !data) return html`<${Failure} error=${error} retry=${reload} />`;
  if (!data) return html`<${Loading} />`;
  if (!points.length) return html`<${Empty} title="No trial has succeeded yet"><p>Each that does is a line from parameter to parameter to its value.</p><//>`;
  const found = ranked.filter((point) => isWithin(point, axes, ranges));
  const told = points.find(({ trial }) => trial === hovered);
  return html`<div class="study-parallel">
    <div class="toolbar">
      <span role="status">${count(found.length)} of ${count(points.length)} ${points.length === 1 ? "trial" : "trials"}${row.trials.byState.SUCCEEDED > points.length ? ", the best" : ""}</span>
      ${ranges.size > 0 && html`<button type="button" class="small" onClick=${() => setQuery(Object.fromEntries([...ranges.keys()].map((id) => [`r.${id}`, ""])))}>All ranges</button>`}
      <span class="dim grow lines-words">${told ? `trial ${told.trial} · ${row.objectives.map(({ metricId }, at) => `${metricId} ${plain(told.values[at])}`).join(", ")} · ${pointWords(told.parameters)}` : "Drag along an axis to choose a range; click it to show all again. The stronger a line, the better the trial."}</span>
    </div>
    <${Lines} axes=${axes} points=${points} ranges=${ranges} goodness=${goodness} hovered=${hovered} onHover=${setHovered} onOpen=${(/** @type {string} */ trial) => go(studyHref(row.name, "curves", { trial }))} onRange=${setRange} />
    <details class="lines-ranges" open=${ranges.size > 0}>
      <summary>Ranges as numbers</summary>
      <div class="ranges">${axes.map((axis) => html`<${RangeFields} key=${axis.id} axis=${axis} range=${ranges.get(axis.id)} onRange=${(/** @type {Range | null} */ range) => setRange(axis.id, range)} />`)}</div>
    </details>
    <${FoundTrials} row=${row} found=${found} onHover=${setHovered} />
  </div>`;
}

/** @param {Point[]} points @param {boolean} isMost */
const bestFirst = (points, isMost) => [...points].sort((a, b) => (isMost ? b.values[0] - a.values[0] : a.values[0] - b.values[0]));

/** @param {{axis: Axis, range?: Range, onRange: (range: Range | null) => void}} props */
function RangeFields({ axis, range, onRange }) {
  const isAll = (/** @type {Range} */ [low, high]) => low <= axis.low && high >= axis.high;
  const set = (/** @type {Range} */ next) => next[0] <= next[1] && onRange(isAll(next) ? null : next);
  const [low, high] = range ?? [axis.low, axis.high];
  if (axis.words.length) {
    const only = axis.words.findIndex((_, at) => range && at >= low && at <= high);
    return html`<fieldset><legend>${axis.title}</legend>
      <select aria-label=${`Only this ${axis.title}`} value=${range ? only : -1} onChange=${(/** @type {any} */ { target }) => onRange(Number(target.value) < 0 ? null : [Number(target.value) - 0.4, Number(target.value) + 0.4])}>
        <option value="-1">any</option>
        ${axis.words.map((words, at) => html`<option key=${words} value=${at}>${words}</option>`)}
      </select>
    </fieldset>`;
  }
  return html`<fieldset><legend>${axis.title}</legend>
    <input type="number" step="any" aria-label=${`Least ${axis.title}`} value=${Number(low.toPrecision(5))} onChange=${(/** @type {any} */ { target }) => set([Number(target.value), high])} />
    <span aria-hidden="true">to</span>
    <input type="number" step="any" aria-label=${`Most ${axis.title}`} value=${Number(high.toPrecision(5))} onChange=${(/** @type {any} */ { target }) => set([low, Number(target.value)])} />
  </fieldset>`;
}

/** @param {{row: import("../lib/study.js").StudyRow, found: Point[], onHover: (trial: string) => void}} props */
function FoundTrials({ row, found, onHover }) {
  if (!found.length) return html`<${Empty} title="No trial is in all of these ranges" />`;
  const first = found.slice(0, SHOWN);
  return html`<h2>The best of them</h2>
    <div class="table-frame" role="region" tabindex="0" aria-label="The best trials in these ranges">
      <table>
        <caption class="unseen">The best trials in these ranges</caption>
        <thead><tr><th scope="col">Trial</th>${row.objectives.map(({ metricId }) => html`<th key=${metricId} scope="col" class="number">${metricId}</th>`)}<th scope="col" class="wide">Parameters</th></tr></thead>
        <tbody onMouseLeave=${() => onHover("")}>
          ${first.map(
            ({ trial, values, parameters }) => html`<tr key=${trial} onMouseEnter=${() => onHover(trial)}>
              <td><a href=${studyHref(row.name, "curves", { trial })} onFocus=${() => onHover(trial)}>${trial}</a></td>
              ${values.map((value, at) => html`<td key=${at} class="number">${plain(value)}</td>`)}
              <td class="wide">${pointWords(parameters)}</td>
            </tr>`,
          )}
        </tbody>
      </table>
    </div>`;
}
