// The server's comparison as lines: one for each job, or one with a band for each value of a label.

import { plain } from "../lib/format.js";

/** @typedef {import("../parts/plot.js").Line} Line */
/** @typedef {(number | null)[]} Values */

export const NO_LABEL = "(no label)";

/**
 * What marks each job everywhere: itself, or its group.
 * @param {any} data @param {string} group the key of the label, or nothing
 * @returns {string[]} in the order of the jobs
 */
export function keysOf(data, group) {
  return data.jobs.map((/** @type {any} */ job) => (group ? job.labels?.[group] ?? NO_LABEL : job.name));
}

/**
 * @param {any} data the answer of customJobs:compare
 * @param {string[]} keys
 * @param {number} smooth 0 to 1
 * @returns {{name: string, lines: Line[], format: (value: number) => string}[]}
 */
export function linesOf(data, keys, smooth) {
  const colours = coloursOf(keys);
  return data.metrics.map((/** @type {any} */ { name, series, groups }) => ({
    name,
    format: plain,
    lines: [
      ...series.map((/** @type {any} */ { job, values }) => ({
        key: keys[job],
        label: data.jobs[job].displayName,
        colour: colours.get(keys[job]) ?? 0,
        values: smoothed(values, smooth),
      })),
      ...groups.map((/** @type {any} */ group) => ({
        key: group.value ?? NO_LABEL,
        label: `${group.value ?? NO_LABEL} (${group.jobs.length})`,
        colour: colours.get(group.value ?? NO_LABEL) ?? 0,
        values: smoothed(group.mean, smooth),
        low: smoothed(group.min, smooth),
        high: smoothed(group.max, smooth),
      })),
    ],
  }));
}

/** The number of the colour of each key. @param {string[]} keys @returns {Map<string, number>} */
export function coloursOf(keys) {
  return new Map([...new Set(keys)].map((key, at) => [key, at]));
}

/** A moving mean that forgets; its beginning counts what there is. @param {Values} values @param {number} weight @returns {Values} */
export function smoothed(values, weight) {
  if (!(weight > 0)) return values;
  let sum = 0;
  let total = 0;
  return values.map((value) => {
    if (value === null) return null;
    sum = sum * weight + value;
    total = total * weight + 1;
    return sum / total;
  });
}
