// The axes of parallel coordinates: where a value lies on its axis, what is written beside it, and which points pass
// the ranges that a person has chosen. Nothing here draws.

import { plain } from "../lib/format.js";
import { parametersOf } from "../lib/study.js";

/**
 * `steps`: all values that it can have, if they are few. `raw` is what ranges are made of: the number itself, or the place of a word among all words.
 * @typedef {{trial: string, values: number[], parameters: Record<string, string | number>}} Point
 * @typedef {{id: string, title: string, words: string[], low: number, high: number, isLog: boolean, steps: number[],
 *   raw: (point: Point) => number | null}} Axis
 * @typedef {[number, number]} Range
 */

const WIDE = 1000; // of a metric, the highest by the lowest value, from which on it has a log axis
const MOST_STEPS = 10; // that are written beside an axis
const MARGIN = 0.5; // around the words of an axis

/** @param {any} studySpec @param {{metricId: string}[]} objectives @param {Point[]} points @returns {Axis[]} */
export function axesOf(studySpec, objectives, points) {
  /** @type {Map<string, Axis>} */
  const axes = new Map();
  for (const parameter of parametersOf(studySpec)) {
    const { id, kind, isLog } = parameter;
    const known = axes.get(id); // an id may stand twice, below conditions that exclude each other
    const words = kind === "categorical" ? [...new Set([...(known?.words ?? []), ...parameter.values.map(String)])] : [];
    const low = words.length ? -MARGIN : Math.min(parameter.low, known?.low ?? Infinity);
    const high = words.length ? words.length - MARGIN : Math.max(parameter.high, known?.high ?? -Infinity);
    axes.set(id, { id, title: id, words, low, high, isLog: isLog && low > 0, steps: stepsOf(parameter), raw: ({ parameters }) => rawOf(parameters[id], words) });
  }
  return [...axes.values(), ...objectives.map(({ metricId }, at) => metricAxis(metricId, at, points))];
}

/** @param {import("../lib/study.js").StudyParameter} parameter */
function stepsOf({ kind, values, low, high }) {
  if (kind === "integer" && high - low < MOST_STEPS) return Array.from({ length: high - low + 1 }, (_, at) => low + at);
  return kind === "discrete" && values.length <= MOST_STEPS ? values.map(Number) : [];
}

/** @param {unknown} value @param {string[]} words */
function rawOf(value, words) {
  if (words.length) return words.includes(String(value)) ? words.indexOf(String(value)) : null;
  return typeof value === "number" && Number.isFinite(value) ? value : null;
}

/** @param {string} metric @param {number} at @param {Point[]} points @returns {Axis} */
function metricAxis(metric, at, points) {
  const values = points.map((point) => point.values[at]).filter(Number.isFinite);
  const low = values.reduce((least, value) => Math.min(least, value), Infinity);
  const high = values.reduce((most, value) => Math.max(most, value), -Infinity);
  const isLog = low > 0 && high / low > WIDE;
  return { id: `:${metric}`, title: metric, words: [], low, high, isLog, steps: [], raw: (point) => (Number.isFinite(point.values[at]) ? point.values[at] : null) };
}

/** From 0, at the foot, to 1. @param {Axis} axis @param {number} raw */
export function placeOn({ low, high, isLog }, raw) {
  if (high === low) return 0.5;
  return isLog ? Math.log(raw / low) / Math.log(high / low) : (raw - low) / (high - low);
}

/** @param {Axis} axis @param {number} place */
export function rawAt({ low, high, isLog }, place) {
  const bounded = Math.min(1, Math.max(0, place));
  return isLog ? low * (high / low) ** bounded : low + (high - low) * bounded;
}

/** What is written beside an axis, and where. @param {Axis} axis @returns {{place: number, words: string}[]} */
export function ticksOf(axis) {
  if (axis.words.length) return axis.words.map((words, at) => ({ place: placeOn(axis, at), words }));
  if (axis.low === axis.high) return [{ place: 0.5, words: plain(axis.low) }];
  const powers = axis.isLog ? powersIn(axis) : [];
  const raws = axis.steps.length ? axis.steps : powers.length > 1 ? powers : [0, 0.25, 0.5, 0.75, 1].map((place) => rawAt(axis, place));
  return raws.map((raw) => ({ place: placeOn(axis, raw), words: plain(raw) }));
}

/** Powers of ten. @param {Axis} axis */
function powersIn({ low, high }) {
  const [from, to] = [Math.ceil(Math.log10(low) - 1e-9), Math.floor(Math.log10(high) + 1e-9)];
  const step = Math.ceil((to - from + 1) / MOST_STEPS);
  return Array.from({ length: Math.max(0, Math.floor((to - from) / step) + 1) }, (_, at) => 10 ** (from + at * step));
}

/** Those in the address: r.ID=LOW..HIGH. @param {Record<string, string>} query @returns {Map<string, Range>} */
export function rangesIn(query) {
  const found = Object.entries(query).flatMap(([name, text]) => {
    const [low, high] = text.split("..").map(Number);
    return name.startsWith("r.") && low <= high ? [/** @type {[string, Range]} */ ([name.slice(2), [low, high]])] : [];
  });
  return new Map(found);
}

/** @param {Range} range */
export const rangeText = ([low, high]) => `${Number(low.toPrecision(5))}..${Number(high.toPrecision(5))}`;

/** Whether a point is in all ranges. @param {Point} point @param {Axis[]} axes @param {Map<string, Range>} ranges */
export function isWithin(point, axes, ranges) {
  return axes.every((axis) => {
    const range = ranges.get(axis.id);
    if (!range) return true;
    const raw = axis.raw(point);
    return raw !== null && raw >= range[0] && raw <= range[1];
  });
}
