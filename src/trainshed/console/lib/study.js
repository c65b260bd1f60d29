// What the server says of a study, in the words and numbers that pages show.

import { count, duration, plain } from "./format.js";

/**
 * @typedef {{name: string, displayName: string, state: string, createTime: string, startTime?: string, endTime?: string,
 *   kind: string, submitter?: string, labels?: Record<string, string>, message?: string,
 *   trials: {total: number, byState: Record<string, number>, max?: number, parallel?: number, waiting?: number},
 *   best?: {trial: string, value: number, metric: string, parameters: Record<string, number | string>},
 *   objectives: {metricId: string, goal: string}[]}} StudyRow
 */

/** @type {Record<string, string>} the grammar that a study came in */
const KINDS = { tuning: "tuning job", asked: "Vizier study", older: "older job", katib: "Katib" };

/** @param {StudyRow} study */
export const kindWords = ({ kind }) => KINDS[kind] ?? kind;

/** An active trial whose job has not started waits. @param {StudyRow} study */
export function countsOf({ trials: { byState, total, max, parallel, waiting = 0 } }) {
  const number = (/** @type {string} */ state) => byState[state] ?? 0;
  const failed = number("INFEASIBLE");
  return {
    done: number("SUCCEEDED") + failed,
    failed,
    running: number("ACTIVE") + number("STOPPING") - waiting,
    waiting: number("REQUESTED") + waiting,
    total,
    max: max ?? total,
    parallel,
  };
}

/** "12 of 30 trials" @param {StudyRow} study */
export function doneWords(study) {
  const { done, max } = countsOf(study);
  return study.trials.max ? `${count(done)} of ${count(max)} trials` : `${count(done)} ${done === 1 ? "trial" : "trials"}`;
}

/** @param {number} waiting */
export const waitWords = (waiting) => `${waiting === 1 ? "1 trial waits" : `${count(waiting)} trials wait`} in the queue`;

/** Why it ended, or why nothing of it runs; empty where there is nothing to say. @param {StudyRow} study */
export function whyWords(study) {
  const { running, waiting } = countsOf(study);
  return study.message || (waiting && !running ? waitWords(waiting) : "");
}

/** A value of a parameter or a metric. @param {unknown} value */
export function valueWords(value) {
  if (typeof value === "number") return plain(value);
  return value === undefined || value === null ? "–" : String(value);
}

/** "3 min" of "182.5s" @param {string} text */
export const lengthWords = (text) => duration(parseFloat(text));

/** "lr=0.01 batch=32" @param {Record<string, unknown>} parameters */
export const pointWords = (parameters) =>
  Object.entries(parameters).map(([name, value]) => `${name}=${valueWords(value)}`).join(" ");

/** @param {{goal: string}} objective */
export const isMaximized = ({ goal }) => goal === "MAXIMIZE";

/**
 * A parameter of a study. `parents`: the values of `parent` at which it applies.
 * @typedef {{id: string, kind: "double" | "integer" | "categorical" | "discrete", low: number, high: number,
 *   values: (string | number)[], isLog: boolean, usual?: string | number, parent?: string, parents?: string[]}} StudyParameter
 */

const PARAMETER_KINDS = /** @type {const} */ (["double", "integer", "categorical", "discrete"]);

/** All parameters, those below a condition behind their parent. @param {any} spec a studySpec @returns {StudyParameter[]} */
export const parametersOf = (spec) => (spec?.parameters ?? []).flatMap((/** @type {any} */ given) => withChildren(given));

/** @param {any} given @param {{parent?: string, parents?: string[]}} [condition] @returns {StudyParameter[]} */
function withChildren(given, condition = {}) {
  const kind = PARAMETER_KINDS.find((name) => `${name}ValueSpec` in given) ?? "double";
  const spec = given[`${kind}ValueSpec`] ?? {};
  const isNumber = kind !== "categorical";
  const values = (spec.values ?? []).map(isNumber ? Number : String);
  const bounds = kind === "discrete" ? [Math.min(...values), Math.max(...values)] : [Number(spec.minValue ?? 0), Number(spec.maxValue ?? 0)];
  const usual = spec.defaultValue === undefined ? undefined : isNumber ? Number(spec.defaultValue) : spec.defaultValue;
  const own = { id: given.parameterId, kind, low: bounds[0], high: bounds[1], values, isLog: given.scaleType === "UNIT_LOG_SCALE", usual, ...condition };
  const below = (given.conditionalParameterSpecs ?? []).flatMap((/** @type {any} */ child) => {
    const { values: parents = [] } = child.parentCategoricalValues ?? child.parentIntValues ?? child.parentDiscreteValues ?? {};
    return withChildren(child.parameterSpec, { parent: own.id, parents: parents.map(String) });
  });
  return [own, ...below];
}

/** Whether a parameter applies at these values. @param {StudyParameter} parameter @param {Record<string, unknown>} point */
export const applies = ({ parent, parents }, point) => parent === undefined || Boolean(parents?.includes(String(point[parent])));
