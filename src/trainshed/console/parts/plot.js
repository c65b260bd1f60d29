// A graph of lines over time or steps, drawn by uPlot, which is fetched with the first page that has one.
//
// All graphs of a group share their crosshair and the line that is marked. A drag chooses a range, shift and a
// drag or a sideways wheel moves it, a double click shows all again, a click picks a moment.

import uPlot from "uplot";
import { html, useLayoutEffect, useRef, useState } from "../lib/ui.js";
import { shortDay, timeOfDay } from "../lib/format.js";
import { inkOf, lineColour, loadPlotLooks } from "./plot-looks.js";
import { nearestKey, nearestPoint, panByDrag, panByWheel, readout } from "./plot-pointer.js";

/**
 * @typedef {(number | null)[]} Values
 * @typedef {{key: string, label: string, colour: number, values: Values, low?: Values, high?: Values,
 *   look?: "points" | "steps"}} Line `low` and `high` are the band around it; without a `look` it is drawn from value to value
 * @typedef {{at: number, words: string, isBad: boolean}} Mark
 * @typedef {{title: string, group: string, x: number[], lines: Line[], format: (value: number) => string,
 *   isTime?: boolean, formatX?: (value: number) => string, isLog?: boolean, isBinary?: boolean, isWhole?: boolean, joinsGaps?: boolean, marks?: Mark[], range?: [number, number] | null, words?: (at: number) => string, numbersAt?: string, isScatter?: boolean, height?: number,
 *   marked: string, onMarked: (key: string) => void, onRange: (range: [number, number] | null) => void,
 *   onPick?: (x: number, point: number | null) => void}} PlotProps
 */

const HEIGHT = 170;
const NEAR = 200; // pixels below the window from which on a graph is drawn
const BINARY = Array.from({ length: 52 }, (_, power) => 2 ** power); // labels of bytes are whole KiB, MiB, GiB
const WHOLE = Array.from({ length: 12 }, (_, power) => [1, 2, 5].map((digit) => digit * 10 ** power)).flat();
const MANY = 8; // lines, above which they are thin: browsers draw a line of one pixel much faster
const FAINT = 0.18; // how much is seen of the lines that are not marked

/** @param {PlotProps} props */
export function Plot(props) {
  const frame = useRef(/** @type {HTMLDivElement | null} */ (null));
  const words = useRef(/** @type {HTMLSpanElement | null} */ (null));
  const plot = useRef(/** @type {any} */ (null));
  const latest = useRef(props);
  latest.current = props;
  const isSeen = useSeen(frame);
  const shape = `${props.lines.map(({ key, label, colour, low, look }) => `${key} ${label} ${colour} ${Boolean(low)} ${look}`).join()} ${props.isLog} ${props.isTime}`;
  useLayoutEffect(() => {
    if (!isSeen || !frame.current) return;
    const target = frame.current;
    loadPlotLooks();
    const drawn = new uPlot(options(target, latest, words), columns(latest.current), target);
    plot.current = drawn;
    // Called at once too, when nothing has changed: all would be drawn twice.
    const resized = new ResizeObserver(() => target.clientWidth !== drawn.width && drawn.setSize({ width: target.clientWidth, height: latest.current.height ?? HEIGHT }));
    resized.observe(target);
    const stops = [panByDrag(drawn, latest), panByWheel(drawn, latest)];
    return () => {
      stops.forEach((stop) => stop());
      resized.disconnect();
      drawn.destroy();
      plot.current = null;
    };
  }, [isSeen, shape]);
  useLayoutEffect(() => {
    const drawn = plot.current;
    if (!drawn) return;
    drawn.setData(columns(props), false);
    const [from, to] = props.range ?? [props.x[0], props.x[props.x.length - 1]];
    if (from < to) drawn.setScale("x", { min: from, max: to });
    else drawn.setScale("x", { min: from - 1, max: from + 1 });
  }, [isSeen, shape, props.x, props.lines, props.range, props.marks]);
  useLayoutEffect(() => {
    const drawn = plot.current;
    if (!drawn) return;
    drawn.series.forEach((/** @type {any} */ series, /** @type {number} */ at) => {
      if (at) series.alpha = !props.marked || series.key === props.marked ? 1 : FAINT;
    });
    drawn.redraw(false);
  }, [isSeen, shape, props.marked]);
  return html`<figure class="plot" aria-label=${`Graph of ${props.title}; ${props.numbersAt ?? "the table below"} has its numbers`}>
    <figcaption><strong>${props.title}</strong> <span class="plot-words dim" ref=${words}></span></figcaption>
    <div class="plot-frame" ref=${frame}></div>
  </figure>`;
}

/** Whether it has come near the part of the page that is seen. @param {{current: Element | null}} element */
function useSeen(element) {
  const [isSeen, setSeen] = useState(false);
  useLayoutEffect(() => {
    if (!element.current) return;
    if (element.current.getBoundingClientRect().top < innerHeight + NEAR) return setSeen(true); // not a frame later
    const watcher = new IntersectionObserver(([entry]) => entry.isIntersecting && setSeen(true), { rootMargin: `${NEAR}px` });
    watcher.observe(element.current);
    return () => watcher.disconnect();
  }, []);
  return isSeen;
}

/** @param {PlotProps} props @returns {any} uPlot's types know no null */
function columns({ x, lines }) {
  return [x, ...lines.flatMap(({ values, low, high }) => (low && high ? [low, high, values] : [values]))];
}

/**
 * @param {HTMLElement} target
 * @param {{current: PlotProps}} latest
 * @param {{current: HTMLElement | null}} words
 * @returns {any} uPlot's types ask for more than uPlot does
 */
function options(target, latest, words) {
  const { lines, group, isTime, isLog, format, formatX, joinsGaps } = latest.current;
  const incrs = latest.current.isBinary ? BINARY : latest.current.isWhole ? WHOLE : undefined;
  const axis = { stroke: inkOf("--dim"), grid: { stroke: inkOf("--line"), width: 1 }, ticks: { show: false }, font: "11px system-ui" };
  /** @type {any[]} */
  const series = [{}];
  /** @type {any[]} */
  const bands = [];
  for (const line of lines) {
    const stroke = lineColour(line.colour);
    if (line.low) {
      series.push({ key: line.key, width: 0, points: { show: false } }, { key: line.key, width: 0, points: { show: false } });
      bands.push({ series: [series.length - 1, series.length - 2], fill: lineColour(line.colour, 0.18) });
    }
    const points = line.look === "points" ? dots(stroke, line.values.length) : { show: !line.look && lines.length < 40 && undefined, size: 4 };
    const paths = line.look === "points" ? () => null : line.look === "steps" ? uPlot.paths.stepped?.({ align: 1 }) : undefined;
    series.push({ key: line.key, label: line.label, stroke, width: lines.length > MANY ? 1 : 1.5, spanGaps: Boolean(joinsGaps), points, paths });
  }
  return {
    width: target.clientWidth,
    height: latest.current.height ?? HEIGHT,
    series,
    bands,
    legend: { show: false },
    scales: { x: { time: Boolean(isTime) }, y: isLog ? { distr: 3 } : { range: latest.current.isBinary ? aboveZero : fromZero } },
    axes: [
      { ...axis, size: 28, values: isTime ? clockLabels : (/** @type {any} */ _, /** @type {number[]} */ splits) => splits.map(formatX ?? String) },
      { ...axis, size: 62, incrs, values: (/** @type {any} */ _, /** @type {number[]} */ splits) => splits.map((value) => (value === null ? "" : format(value))) },
    ],
    cursor: {
      sync: { key: group, scales: ["x", null] },
      drag: { x: true, y: false, setScale: false },
      points: { show: lines.length < 40 },
      bind: { dblclick: () => () => latest.current.onRange(null) },
    },
    hooks: {
      setSelect: [(/** @type {any} */ drawn) => select(drawn, latest.current)],
      setCursor: [(/** @type {any} */ drawn) => hover(drawn, latest.current, words.current)],
      draw: [(/** @type {any} */ drawn) => drawMarks(drawn, latest.current.marks ?? [])],
    },
  };
}

/** Smaller where they are many. @param {string} fill @param {number} number */
const dots = (fill, number) => ({ show: true, size: number > 2000 ? 2 : number > 300 ? 4 : 6, width: 0, fill });

/** Times of the clock, with seconds where the labels are that near, and with the day where it changes. @type {(u: any, splits: number[], axis: number, space: number, step: number) => string[]} */
function clockLabels(_, splits, _axis, _space, step) {
  let day = new Date().toDateString();
  return splits.map((value) => {
    const at = new Date(value * 1000);
    const isNewDay = at.toDateString() !== day;
    day = at.toDateString();
    const time = timeOfDay(at).slice(0, step < 60 ? 8 : 5);
    return isNewDay ? `${shortDay(at)} ${time}` : time;
  });
}

/** @type {(u: any, low: number, high: number) => [number, number]} */
const aboveZero = (_, _low, high) => [0, high > 0 ? high * 1.06 : 1];

/** A level near zero is not drawn as if it were a peak. @type {(u: any, low: number, high: number) => [number, number]} */
function fromZero(_, low, high) {
  if (low === null || high === null) return [0, 1];
  const least = low >= 0 && (low < high * 0.5 || low === high) ? 0 : low - (high - low) * 0.05;
  return [least, high > least ? high + (high - least) * 0.06 : least + 1];
}

/** @param {any} drawn @param {PlotProps} props */
function select(drawn, { onRange }) {
  const { left, width } = drawn.select;
  if (width < 4) return;
  onRange([drawn.posToVal(left, "x"), drawn.posToVal(left + width, "x")]);
  drawn.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false);
}

/** @param {any} drawn @param {PlotProps} props @param {HTMLElement | null} words */
function hover(drawn, props, words) {
  const { idx, left, top } = drawn.cursor;
  const at = props.isScatter && typeof idx === "number" ? nearestPoint(drawn, left, top) : idx;
  if (words) words.textContent = props.words && typeof at === "number" ? props.words(at) : readout(drawn, props);
  const isHere = drawn.over.matches(":hover");
  if (isHere) props.onMarked(nearestKey(drawn, props));
}

/** @param {any} drawn @param {Mark[]} marks */
function drawMarks(drawn, marks) {
  const { ctx, bbox } = drawn;
  ctx.save();
  ctx.setLineDash([4, 3]);
  for (const { at, isBad } of marks) {
    const left = drawn.valToPos(at, "x", true);
    if (left < bbox.left || left > bbox.left + bbox.width) continue;
    ctx.strokeStyle = inkOf(isBad ? "--bad" : "--dim");
    ctx.beginPath();
    ctx.moveTo(left, bbox.top);
    ctx.lineTo(left, bbox.top + bbox.height);
    ctx.stroke();
  }
  ctx.restore();
}
