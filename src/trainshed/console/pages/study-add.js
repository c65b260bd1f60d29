// A trial of a person's own: a value for each parameter that applies. It is run before all that would be suggested.

import { html, useState } from "../lib/ui.js";
import { post } from "../lib/api.js";
import { plain } from "../lib/format.js";
import { applies, parametersOf } from "../lib/study.js";
import { DeedDialog } from "../parts/deed.js";

/** @typedef {import("../lib/study.js").StudyRow} StudyRow */
/** @typedef {import("../lib/study.js").StudyParameter} StudyParameter */

/** @param {{study: any, row: StudyRow, path: string, onDone: () => void, onClose: () => void}} props */
export function AddTrials({ study, row, path, onDone, onClose }) {
  const all = parametersOf(study.studySpec);
  const [point, setPoint] = useState(() => /** @type {Record<string, string>} */ ({ ...Object.fromEntries(all.map((one) => [one.id, firstValue(one)])), ...textsOf(row.best?.parameters ?? {}) }));
  const wanted = all.filter((one) => applies(one, point) && isAboveApplying(one, all, point));
  const body = () => Object.fromEntries(wanted.map(({ id, kind }) => [id, kind === "categorical" ? point[id] : Number(point[id])]));
  const change = (/** @type {string} */ id) => (/** @type {any} */ { target }) => setPoint((before) => ({ ...before, [id]: target.value }));
  return html`<${DeedDialog} title="Add a trial" deed="Add the trial" run=${() => post(`${path}:addTrials`, { points: [body()] })} onDone=${onDone} onClose=${onClose}>
    <p>It runs before all that would be suggested${row.best ? "; at first the values are those of the best trial" : ""}.</p>
    <div class="study-form">
      ${wanted.map(
        (one) => html`<label key=${`${one.id} label`} for=${`parameter-${one.id}`}>${one.id} <span class="dim">${rangeWords(one)}</span></label>
          ${one.values.length
            ? html`<select key=${one.id} id=${`parameter-${one.id}`} value=${point[one.id]} onChange=${change(one.id)}>
                ${one.values.map((value) => html`<option key=${value} value=${value}>${value}</option>`)}
              </select>`
            : html`<input key=${one.id} id=${`parameter-${one.id}`} type="number" step=${one.kind === "integer" ? 1 : "any"} min=${one.low} max=${one.high} value=${point[one.id]} onInput=${change(one.id)} />`}`,
      )}
    </div>
  <//>`;
}

/** Its parents apply too. @param {StudyParameter} one @param {StudyParameter[]} all @param {Record<string, string>} point @returns {boolean} */
function isAboveApplying(one, all, point) {
  if (one.parent === undefined) return true;
  return all.some((parent) => parent.id === one.parent && applies(parent, point) && isAboveApplying(parent, all, point));
}

/** @param {Record<string, string | number>} parameters @returns {Record<string, string>} */
const textsOf = (parameters) => Object.fromEntries(Object.entries(parameters).map(([id, value]) => [id, String(value)]));

/** @param {StudyParameter} parameter */
function firstValue({ kind, values, low, high, isLog, usual }) {
  if (usual !== undefined) return String(usual);
  if (values.length) return String(values[0]);
  const middle = isLog && low > 0 ? Math.sqrt(low * high) : (low + high) / 2;
  return String(kind === "integer" ? Math.round(middle) : Number(middle.toPrecision(4)));
}

/** @param {StudyParameter} parameter */
const rangeWords = ({ values, low, high, isLog }) => (values.length ? "" : `${plain(low)} to ${plain(high)}${isLog ? ", log" : ""}`);
