// The server's columns as graphs: one for each quantity, with a line for each replica or one for all together.

import uPlot from "uplot";
import { bytes, percent, plain } from "../lib/format.js";

/**
 * @typedef {import("../parts/plot.js").Line} Line
 * @typedef {{name: string, title: string, x: number[], lines: Line[], format: (value: number) => string,
 *   unit: string, isReported: boolean, isOverStep: boolean}} Graph
 */

/** @type {Record<string, string>} in the order of the page */
const TITLES = {
  cpu: "CPU",
  memory: "Memory",
  gpu: "GPU use",
  gpu_memory: "GPU memory",
  disk_read: "Disk, read",
  disk_write: "Disk, written",
  network_in: "Network, received",
  network_out: "Network, sent",
  processes: "Processes",
  threads: "Threads",
};
const ORDER = Object.keys(TITLES);

/** @type {Record<string, (value: number) => string>} by the unit of the API */
const FORMATS = {
  cores: plain,
  bytes,
  "bytes/s": (value) => `${bytes(value)}/s`,
  share: percent,
};

/**
 * @param {any} data the answer of :graphs
 * @param {string} by "each", or how replicas become one line: "sum" or "mean"
 * @param {"time" | "step"} over what reported values are drawn over
 * @param {string} [only] the one replica that is wanted
 * @returns {Graph[]}
 */
export function graphsOf(data, by, over, only) {
  const colours = new Map(tasksOf(data).map((task, at) => [task, at]));
  const all = [...usageGraphs(data.usage, colours), ...reportedGraphs(data.reported, colours, over)];
  if (only) return all.map((graph) => ofTask(graph, only)).filter(({ lines }) => lines.length > 0);
  return all.map((graph) => (by === "each" ? graph : together(graph, by)));
}

/** The replicas of which anything is known: workerpool0-10 after workerpool0-9. @param {any} data the answer of :graphs @returns {string[]} */
export function tasksOf(data) {
  const tasks = new Set([...data.usage.series, ...data.reported].map((entry) => entry.task));
  return [...tasks].sort((a, b) => a.localeCompare(b, "en", { numeric: true }));
}

/** @param {Graph} graph @param {string} task @returns {Graph} */
const ofTask = (graph, task) => ({ ...graph, lines: graph.lines.filter(({ key }) => key === task) });

/** @param {any} usage @param {Map<string, number>} colours @returns {Graph[]} */
function usageGraphs({ times, series }, colours) {
  /** @type {Map<string, Graph>} */
  const graphs = new Map();
  for (const { task, name, unit, values } of series) {
    const [, quantity, device] = /** @type {RegExpExecArray} */ (/^(.*?)(\d*)$/.exec(name));
    /** @type {Graph} */
    const graph = graphs.get(quantity) ?? {
      name: quantity,
      title: (TITLES[quantity] ?? quantity) + (unit === "cores" ? " (cores)" : ""),
      x: times,
      lines: [],
      format: FORMATS[unit] ?? plain,
      unit,
      isReported: false,
      isOverStep: false,
    };
    graphs.set(quantity, graph);
    const label = device ? `${task} GPU ${device}` : task;
    graph.lines.push({ key: task, label, colour: colours.get(task) ?? 0, values });
  }
  return [...graphs.values()].sort((a, b) => ORDER.indexOf(a.name) - ORDER.indexOf(b.name));
}

/** @param {any[]} reported @param {Map<string, number>} colours @param {"time" | "step"} over @returns {Graph[]} */
function reportedGraphs(reported, colours, over) {
  const names = [...new Set(reported.flatMap(({ series }) => series.map((/** @type {any} */ { name }) => name)))].sort();
  return names.flatMap((name) => {
    const parts = reported.flatMap(({ task, times, steps, series }) => {
      const own = series.find((/** @type {any} */ entry) => entry.name === name);
      const table = own && (over === "step" ? bySteps(steps, own.values) : [times, own.values]);
      return table?.[0].length ? [{ task, table }] : [];
    });
    if (!parts.length) return [];
    const [x, ...columns] = parts.length > 1 ? uPlot.join(parts.map(({ table }) => table)) : parts[0].table;
    const lines = parts.map(({ task }, at) => ({ key: task, label: task, colour: colours.get(task) ?? 0, values: columns[at] }));
    return [{ name: `value.${name}`, title: name, x, lines, format: plain, unit: "", isReported: true, isOverStep: over === "step" }];
  });
}

/** A step that a restarted program repeats counts once. @param {(number | null)[]} steps @param {(number | null)[]} values */
function bySteps(steps, values) {
  /** @type {Map<number, number | null>} */
  const last = new Map();
  steps.forEach((step, at) => step !== null && last.set(step, values[at]));
  const x = [...last.keys()].sort((a, b) => a - b);
  return [x, x.map((step) => last.get(step) ?? null)];
}

/** @param {Graph} graph @param {string} by @returns {Graph} */
function together(graph, by) {
  const values = graph.x.map((_, at) => {
    const there = graph.lines.map((line) => line.values[at]).filter((value) => typeof value === "number");
    if (!there.length) return null;
    const sum = there.reduce((total, value) => total + value, 0);
    return by === "sum" ? sum : sum / there.length;
  });
  const label = by === "sum" ? "all together" : "mean of all";
  return { ...graph, lines: [{ key: label, label, colour: 0, values }] };
}

/**
 * What happened to the job, and when it stored checkpoints that are still there.
 * @param {any} data the answer of :graphs
 * @param {import("../lib/outputs.js").Committed[]} checkpoints
 */
export function marksOf(data, checkpoints) {
  const isShown = (/** @type {string} */ time) => Date.parse(time) >= Date.parse(data.startTime) && Date.parse(time) <= Date.parse(data.endTime);
  const stored = checkpoints
    .filter(({ storedTime }) => storedTime && isShown(storedTime))
    .map(({ uri, storedTime }) => ({ time: storedTime, reason: "CHECKPOINT_STORED", message: uri, severity: "INFO", task: "" }));

  return [...data.marks, ...stored].sort((a, b) => Date.parse(a.time) - Date.parse(b.time)).map((/** @type {any} */ { time, reason, message, severity, task }) => ({
    at: Date.parse(time) / 1000,
    time,
    reason: reason.replaceAll("_", " ").toLowerCase(),
    words: message,
    task: task ?? "",
    isBad: severity !== "INFO",
  }));
}
