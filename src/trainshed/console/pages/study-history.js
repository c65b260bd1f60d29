// The value of each trial by its number, and the best so far as a line of steps.

import { html, useCallback, useMemo, useState } from "../lib/ui.js";
import { go, studyHref } from "../lib/address.js";
import { plain } from "../lib/format.js";
import { isMaximized } from "../lib/study.js";
import { Plot } from "../parts/plot.js";

/** @typedef {import("../lib/study.js").StudyRow} StudyRow */
/** @typedef {{trial: string, value: number}} Point */

const VALUE = 0; // colours
const BEST = 2;

/** @param {{row: StudyRow, history: Point[]}} props */
export function History({ row, history }) {
  const [range, setRange] = useState(/** @type {[number, number] | null} */ (null));
  const [isLog, setLog] = useState(false);
  const { metricId: metric, goal } = row.objectives[0];
  const { x, values, best } = useMemo(() => byNumber(history, isMaximized({ goal })), [history, goal]);
  const lines = useMemo(
    () => [
      { key: "value", label: metric, colour: VALUE, values, look: /** @type {const} */ ("points") },
      { key: "best", label: "best so far", colour: BEST, values: best, look: /** @type {const} */ ("steps") },
    ],
    [values, best, metric],
  );
  const open = useCallback((/** @type {number} */ at) => go(studyHref(row.name, "curves", { trial: nearest(x, at) })), [x, row.name]);
  if (!history.length) return null;
  const canLog = values.every((value) => value > 0);
  return html`<section aria-label="History">
    <div class="section-line">
      <h2>History</h2>
      <span class="grow"></span>
      ${canLog && html`<label><input type="checkbox" checked=${isLog} onChange=${() => setLog(!isLog)} /> log scale</label>`}
      ${range && html`<button type="button" class="small" onClick=${() => setRange(null)}>All trials</button>`}
    </div>
    <${Plot}
      title=${`${metric} by trial`}
      group="history"
      x=${x}
      lines=${lines}
      format=${plain}
      height=${260}
      isLog=${isLog && canLog}
      range=${range}
      numbersAt="the tab Trials"
      words=${(/** @type {number} */ at) => (x[at] === undefined ? "" : `trial ${x[at]} · ${plain(values[at])}, best so far ${plain(best[at])}`)}
      marked=""
      onMarked=${nothing}
      onRange=${setRange}
      onPick=${open}
    />
  </section>`;
}

const nothing = () => {};

/** Trials end in another order than they begin: the best so far is that of lower numbers. @param {Point[]} history @param {boolean} isMost */
function byNumber(history, isMost) {
  const points = history.filter(({ value }) => Number.isFinite(value)).map(({ trial, value }) => ({ trial: Number(trial), value }));
  points.sort((a, b) => a.trial - b.trial);
  let best = isMost ? -Infinity : Infinity;
  return {
    x: points.map(({ trial }) => trial),
    values: points.map(({ value }) => value),
    best: points.map(({ value }) => (best = isMost ? Math.max(best, value) : Math.min(best, value))),
  };
}

/** @param {number[]} sorted @param {number} to */
const nearest = (sorted, to) => sorted.reduce((found, one) => (Math.abs(one - to) < Math.abs(found - to) ? one : found), sorted[0]);
