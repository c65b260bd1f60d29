// Several objectives: each trial by two of them, and the trials that no other beats.

import { html, useCallback, useMemo } from "../lib/ui.js";
import { go, setQuery, studyHref } from "../lib/address.js";
import { count, plain } from "../lib/format.js";
import { isMaximized, pointWords } from "../lib/study.js";
import { Failure } from "../parts/notice.js";
import { Plot } from "../parts/plot.js";
import { useStudyLive } from "./study-live.js";

/** @typedef {import("../lib/study.js").StudyRow} StudyRow */
/** @typedef {{trial: string, values: number[], parameters: Record<string, string | number>}} Point */

const MOST = 2000;
const SHOWN = 20; // rows of the table

/** @param {{row: StudyRow, path: string, best: string[], query: Record<string, string>}} props */
export function Pareto({ row, path, best, query }) {
  const { data, error, reload } = useStudyLive(row, `${path}:points`, { most: MOST });
  const names = row.objectives.map(({ metricId }) => metricId);
  const across = Math.max(0, names.indexOf(query.across ?? names[0]));
  const up = Math.max(0, names.indexOf(query.up ?? names[across === 1 ? 0 : 1]));
  const front = useMemo(() => new Set(best), [best]);
  const points = useMemo(() => sorted(data?.points ?? [], across, up), [data, across, up]);
  const lines = useMemo(() => linesOf(points, front, up), [points, front, up]);
  const x = useMemo(() => points.map(({ values }) => values[across]), [points, across]);
  const open = useCallback(
    (/** @type {number} */ _, /** @type {number | null} */ point) => point !== null && go(studyHref(row.name, "curves", { trial: points[point].trial })),
    [points, row.name],
  );
  if (error) return html`<${Failure} error=${error} retry=${reload} />`;
  if (!points.length) return null;
  const good = points.filter(({ trial }) => front.has(trial));
  return html`<section aria-label="Objectives against each other">
    <div class="section-line">
      <h2>Objectives against each other</h2>
      <span class="grow"></span>
      ${names.length > 2 && html`<${Choice} id="across" label="Across" names=${names} chosen=${across} /><${Choice} id="up" label="Up" names=${names} chosen=${up} />`}
    </div>
    <${Plot}
      title=${`${goalWords(row, up)} over ${goalWords(row, across)}`}
      group="pareto"
      x=${x}
      lines=${lines}
      format=${plain}
      height=${260}
      formatX=${plain}
      isScatter
      words=${(/** @type {number} */ at) => wordsOf(points[at], names, front)}
      marked=""
      onMarked=${nothing}
      onRange=${nothing}
      onPick=${open}
    />
    <h3>${count(good.length)} ${good.length === 1 ? "trial is" : "trials are"} beaten by no other</h3>
    <div class="table-frame" role="region" tabindex="0" aria-label="Trials that no other beats">
      <table>
        <caption class="unseen">Trials that no other beats</caption>
        <thead><tr><th scope="col">Trial</th>${names.map((name) => html`<th key=${name} scope="col" class="number">${name}</th>`)}<th scope="col" class="wide">Parameters</th></tr></thead>
        <tbody>
          ${good.slice(0, SHOWN).map(
            ({ trial, values, parameters }) => html`<tr key=${trial}>
              <td><a href=${studyHref(row.name, "curves", { trial })}>${trial}</a></td>
              ${values.map((value, at) => html`<td key=${at} class="number">${plain(value)}</td>`)}
              <td class="wide">${pointWords(parameters)}</td>
            </tr>`,
          )}
        </tbody>
      </table>
    </div>
    ${good.length > SHOWN && html`<p class="dim">The first ${SHOWN}.</p>`}
  </section>`;
}

const nothing = () => {};

/** @param {{id: string, label: string, names: string[], chosen: number}} props */
function Choice({ id, label, names, chosen }) {
  return html`<label for=${id}>${label}</label>
    <select id=${id} value=${names[chosen]} onChange=${(/** @type {any} */ { target }) => setQuery({ [id]: target.value })}>
      ${names.map((name) => html`<option key=${name} value=${name}>${name}</option>`)}
    </select>`;
}

/** @param {StudyRow} row @param {number} at */
const goalWords = ({ objectives }, at) => `${objectives[at].metricId} (${isMaximized(objectives[at]) ? "higher" : "lower"} is better)`;

/** @param {Point[]} points @param {number} across @param {number} up */
function sorted(points, across, up) {
  const whole = points.filter(({ values }) => Number.isFinite(values[across]) && Number.isFinite(values[up]));
  return whole.sort((a, b) => a.values[across] - b.values[across] || a.values[up] - b.values[up]);
}

/** @param {Point[]} points @param {Set<string>} front @param {number} up */
function linesOf(points, front, up) {
  const of = (/** @type {boolean} */ isFront) => points.map(({ trial, values }) => (front.has(trial) === isFront ? values[up] : null));
  const look = /** @type {const} */ ("points");
  return [
    { key: "others", label: "beaten", colour: 0, values: of(false), look },
    { key: "front", label: "not beaten", colour: 2, values: of(true), look },
  ];
}

/** @param {Point | undefined} point @param {string[]} names @param {Set<string>} front */
function wordsOf(point, names, front) {
  if (!point) return "";
  const values = names.map((name, at) => `${name} ${plain(point.values[at])}`).join(", ");
  return `trial ${point.trial} · ${values}${front.has(point.trial) ? " · not beaten" : ""}`;
}
