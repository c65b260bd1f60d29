// The learning curves of the best trials: one of them is chosen, and all others are faint.

import { html, useCallback, useMemo, useState } from "../lib/ui.js";
import { jobHref, setQuery } from "../lib/address.js";
import { get } from "../lib/api.js";
import { count, duration, plain } from "../lib/format.js";
import { useLive } from "../lib/hints.js";
import { useKeys } from "../lib/keys.js";
import { isMaximized, pointWords } from "../lib/study.js";
import { Empty, Failure, Loading } from "../parts/notice.js";
import { lineColour } from "../parts/plot-looks.js";
import { Plot } from "../parts/plot.js";
import { StateMark } from "../parts/state.js";
import { useStudyLive } from "./study-live.js";

/** @typedef {{trial: string, steps: number[], elapsed: number[], values: (number | string)[]}} Curve */

const MOST = 50;

/** @param {import("./study.js").TabProps} props */
export default function CurvesTab({ row, path, address }) {
  const { trial = "", over = "step", log = "" } = address.query;
  const [hovered, setHovered] = useState("");
  const { data, error, reload } = useStudyLive(row, `${path}:curves`, { most: MOST });
  const best = /** @type {Curve[] | undefined} */ (data?.curves);
  const isAmong = !trial || !best || best.some((curve) => curve.trial === trial);
  const alone = useStudyLive(row, `${path}:curves`, isAmong ? { most: 1 } : { trials: trial });
  const curves = useMemo(() => {
    const extra = isAmong ? [] : (alone.data?.curves ?? []).filter((/** @type {Curve} */ curve) => curve.trial === trial);
    return [...extra, ...(best ?? [])].filter(({ values }) => values.length);
  }, [best, alone.data, isAmong, trial]);
  const { x, lines } = useMemo(() => linesOf(curves, over === "time"), [curves, over]);
  const choose = (/** @type {string} */ number) => setQuery({ trial: number === trial ? "" : number });
  const step = (/** @type {number} */ by) => {
    const at = curves.findIndex((curve) => curve.trial === trial);
    const next = curves[Math.min(Math.max(at + by, 0), curves.length - 1)];
    if (next) setQuery({ trial: next.trial });
  };
  const [range, setRange] = useState(/** @type {[number, number] | null} */ (null));
  const pick = useCallback(() => hovered && setQuery({ trial: hovered }), [hovered]);
  useKeys("Curves", { j: ["Next trial", () => step(1)], k: ["Trial before", () => step(-1)], 0: ["The whole range", () => setRange(null)] });
  if (error && !data) return html`<${Failure} error=${error} retry=${reload} />`;
  if (!data) return html`<${Loading} />`;
  if (!curves.length) {
    return html`${trial && html`<${ChosenTrial} row=${row} path=${path} trial=${trial} />`}
      <${Empty} title="Nothing was measured yet"><p>A program reports by <code>trainshed.report</code> or <code>hypertune</code>; each report is a point of a curve.</p><//>`;
  }
  const goal = row.objectives[0] && isMaximized(row.objectives[0]) ? "higher" : "lower";
  return html`<div class="study-curves" onMouseLeave=${() => setHovered("")}>
    <div class="toolbar">
      <label for="over">Over</label>
      <select id="over" value=${over} onChange=${(/** @type {any} */ { target }) => (setRange(null), setQuery({ over: target.value === "step" ? "" : target.value }))}>
        <option value="step">step</option>
        <option value="time">time since start</option>
      </select>
      <label><input type="checkbox" checked=${Boolean(log)} onChange=${() => setQuery({ log: log ? "" : "1" })} /> log scale</label>
      ${range && html`<button type="button" class="small" onClick=${() => setRange(null)}>The whole range</button>`}
      <span class="dim">${goal} is better; the best ${count(best?.length ?? 0)} that succeeded, then those that run</span>
    </div>
    <${Plot}
      title=${data.metric}
      group="curves"
      x=${x}
      lines=${lines}
      format=${plain}
      height=${260}
      formatX=${over === "time" ? duration : count}
      isLog=${Boolean(log)}
      joinsGaps
      range=${range}
      numbersAt="the job of each trial"
      marked=${hovered || trial}
      onMarked=${setHovered}
      onRange=${setRange}
      onPick=${pick}
    />
    <ul class="plot-legend" aria-label="Trials">
      ${lines.map(
        ({ key, colour }) => html`<li key=${key}>
          <button type="button" class="small" aria-pressed=${key === trial} onClick=${() => choose(key)} onMouseEnter=${() => setHovered(key)} onFocus=${() => setHovered(key)} onBlur=${() => setHovered("")}>
            <svg class="swatch" width="10" height="10" aria-hidden="true"><rect y="3" width="10" height="5" rx="2" fill=${lineColour(colour)} /></svg>${key}
          </button>
        </li>`,
      )}
    </ul>
    ${trial && html`<${ChosenTrial} key=${trial} row=${row} path=${path} trial=${trial} />`}
  </div>`;
}

/** @param {{row: import("../lib/study.js").StudyRow, path: string, trial: string}} props */
function ChosenTrial({ row, path, trial }) {
  const { data } = useLive((signal) => get(`${path}/trials/${encodeURIComponent(trial)}`, {}, { signal }), [path, trial], {
    ignore: ({ name }) => Boolean(name) && name !== row.name,
  });
  if (!data) return null;
  const point = Object.fromEntries(data.parameters.map((/** @type {any} */ { parameterId, value }) => [parameterId, value]));
  return html`<section class="chosen-trial" aria-label="The chosen trial">
    <h2>Trial ${trial} <${StateMark} state=${data.state} /> ${data.value !== undefined && html`<span class="number">${data.value}</span>`}</h2>
    <p>${pointWords(point)}</p>
    ${(data.infeasibleReason || data.stopReason) && html`<p>${data.infeasibleReason ?? data.stopReason}</p>`}
    ${data.jobState && html`<p><a class="button small" href=${jobHref(data.customJob)}>Job</a> <a class="button small" href=${jobHref(data.customJob, "logs")}>Logs</a> <a class="button small" href=${jobHref(data.customJob, "graphs")}>Graphs</a></p>`}
  </section>`;
}

/** Curves as columns over all places where one of them has a value. @param {Curve[]} curves @param {boolean} isTime */
function linesOf(curves, isTime) {
  const places = (/** @type {Curve} */ curve) => (isTime ? curve.elapsed : curve.steps);
  const x = [...new Set(curves.flatMap(places))].sort((a, b) => a - b);
  const at = new Map(x.map((place, number) => [place, number]));
  const lines = curves.map((curve, number) => {
    const values = /** @type {(number | null)[]} */ (Array(x.length).fill(null));
    places(curve).forEach((place, index) => {
      const value = curve.values[index];
      if (typeof value === "number") values[/** @type {number} */ (at.get(place))] = value;
    });
    return { key: curve.trial, label: `trial ${curve.trial}`, colour: number, values };
  });
  return { x, lines };
}
