// What a pointer does over a graph: which line is near, what its value is, moving the range, picking a moment.

import { clock, count } from "../lib/format.js";

/** @typedef {import("./plot.js").PlotProps} PlotProps */

const NEAR = 24; // pixels
const STILL = 4; // pixels that a click may move

/** The key of the line nearest to the pointer; empty where none is near. @param {any} drawn @param {PlotProps} props */
export function nearestKey(drawn, { marked }) {
  const { idx, top } = drawn.cursor;
  if (idx === null || idx === undefined || top < 0) return marked;
  let best = "";
  let distance = NEAR;
  drawn.series.forEach((/** @type {any} */ series, /** @type {number} */ at) => {
    const value = at && series.width ? drawn.data[at][idx] : null;
    if (value === null || value === undefined) return;
    const away = Math.abs(drawn.valToPos(value, "y") - top);
    if (away < distance) [best, distance] = [series.key, away];
  });
  return best;
}

/** Which of the drawn points is nearest to a place, whatever its line; null where there are none. @param {any} drawn @param {number} left @param {number} top */
export function nearestPoint(drawn, left, top) {
  const [x, ...columns] = drawn.data;
  let best = null;
  let distance = Infinity;
  for (let at = 0; at < x.length; at += 1) {
    const value = columns.find((/** @type {any[]} */ column) => column[at] !== null)?.[at];
    if (value === undefined) continue;
    const away = (drawn.valToPos(x[at], "x") - left) ** 2 + (drawn.valToPos(value, "y") - top) ** 2;
    if (away < distance) [best, distance] = [at, away];
  }
  return best;
}

/** The moment under the crosshair and what the marked line, or all of them, have there. @param {any} drawn @param {PlotProps} props */
export function readout(drawn, { x, lines, format, formatX = count, isTime, marked }) {
  const at = drawn.cursor.idx;
  if (at === null || at === undefined || x[at] === undefined) return "";
  const place = isTime ? clock(new Date(x[at] * 1000).toISOString()) : formatX(Math.round(x[at] * 100) / 100);
  const shown = lines.filter(({ key }) => !marked || key === marked).filter(({ values }) => typeof values[at] === "number");
  if (!shown.length) return place;
  const values = shown.map((line) => /** @type {number} */ (line.values[at]));
  if (shown.length === 1) return `${place} · ${shown[0].label} ${format(values[0])}`;
  return `${place} · ${format(Math.min(...values))} to ${format(Math.max(...values))}`;
}

/**
 * Shift and a drag move the range; a click that does not move picks its moment.
 * @param {any} drawn @param {{current: PlotProps}} latest
 */
export function panByDrag(drawn, latest) {
  /** @type {{x: number, min: number, max: number, isPan: boolean} | null} */
  let start = null;
  const down = (/** @type {PointerEvent} */ event) => {
    if (event.button) return;
    const { min, max } = drawn.scales.x;
    start = { x: event.clientX, min, max, isPan: event.shiftKey };
    if (event.shiftKey) drawn.over.setPointerCapture(event.pointerId);
  };
  const noSelection = (/** @type {MouseEvent} */ event) => event.shiftKey && event.stopImmediatePropagation();
  const shifted = (/** @type {PointerEvent} */ event) => {
    const { x, min, max } = /** @type {NonNullable<typeof start>} */ (start);
    const by = ((event.clientX - x) / drawn.over.clientWidth) * (max - min);
    return /** @type {[number, number]} */ ([min - by, max - by]);
  };
  const move = (/** @type {PointerEvent} */ event) => {
    if (!start?.isPan) return;
    const [min, max] = shifted(event);
    drawn.setScale("x", { min, max });
  };
  const up = (/** @type {PointerEvent} */ event) => {
    if (!start) return;
    const isStill = Math.abs(event.clientX - start.x) < STILL;
    if (start.isPan && !isStill) latest.current.onRange(shifted(event));
    start = null;
  };
  const click = (/** @type {MouseEvent} */ event) => {
    if (event.detail > 1) return clearTimeout(timer); // the second of a double click
    const isDrag = drawn.select.width >= STILL || event.shiftKey;
    const at = drawn.posToVal(event.offsetX, "x");
    const point = latest.current.isScatter ? nearestPoint(drawn, event.offsetX, event.offsetY) : null;
    if (!isDrag && Math.abs(event.clientX - downAt) < STILL) timer = setTimeout(() => latest.current.onPick?.(at, point), 300);
  };
  let downAt = 0;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer;
  const remember = (/** @type {PointerEvent} */ event) => (downAt = event.clientX);
  const over = /** @type {HTMLElement} */ (drawn.over);
  over.addEventListener("pointerdown", remember);
  over.addEventListener("pointerdown", down);
  over.parentElement?.addEventListener("mousedown", noSelection, true);
  over.addEventListener("pointermove", move);
  over.addEventListener("pointerup", up);
  over.addEventListener("click", click);
  return () => clearTimeout(timer);
}

/**
 * A sideways wheel, or shift and the wheel, moves the range; ctrl and the wheel narrows or widens it.
 * @param {any} drawn @param {{current: PlotProps}} latest
 */
export function panByWheel(drawn, latest) {
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer;
  const wheel = (/** @type {WheelEvent} */ event) => {
    const sideways = event.shiftKey ? event.deltaX || event.deltaY : event.deltaX;
    if (!event.ctrlKey && !sideways) return; // the page scrolls
    event.preventDefault();
    const { min, max } = drawn.scales.x;
    const width = max - min;
    const at = drawn.posToVal(event.offsetX, "x");
    const factor = event.deltaY > 0 ? 1.2 : 1 / 1.2;
    const by = (sideways / drawn.over.clientWidth) * width;
    /** @type {[number, number]} */
    const range = event.ctrlKey ? [at - (at - min) * factor, at + (max - at) * factor] : [min + by, max + by];
    drawn.setScale("x", { min: range[0], max: range[1] });
    clearTimeout(timer);
    timer = setTimeout(() => latest.current.onRange(range), 150); // the server is asked once the wheel rests
  };
  drawn.over.addEventListener("wheel", wheel, { passive: false });
  return () => clearTimeout(timer);
}
