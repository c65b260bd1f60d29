// Parallel coordinates: a line for each trial, drawn on a canvas; above it the axes, on which a drag chooses a range.

import { html, useEffect, useMemo, useRef, useState } from "../lib/ui.js";
import { inkOf } from "../parts/plot-looks.js";
import { isWithin, placeOn, rawAt, ticksOf } from "./study-axes.js";

/** @typedef {import("./study-axes.js").Axis} Axis */
/** @typedef {import("./study-axes.js").Point} Point */
/** @typedef {import("./study-axes.js").Range} Range */

const HEIGHT = 340;
const TOP = 40; // pixels above an axis, for its title
const FOOT = 34; // ... and below it, for those to which it does not apply
const LEAST = 88; // pixels between two axes; where there is less the frame scrolls
const SIDE = 46;
const NEAR = 9; // pixels
const GRIP = 26; // how wide the part of an axis is that can be dragged

/**
 * @param {{axes: Axis[], points: Point[], ranges: Map<string, Range>, goodness: (point: Point) => number, hovered: string,
 *   onHover: (trial: string) => void, onOpen: (trial: string) => void, onRange: (id: string, range: Range | null) => void}} props
 *   `goodness` is from 0 to 1
 */
export function Lines({ axes, points, ranges, goodness, hovered, onHover, onOpen, onRange }) {
  const frame = useRef(/** @type {HTMLDivElement | null} */ (null));
  const canvas = useRef(/** @type {HTMLCanvasElement | null} */ (null));
  const width = Math.max(useWidth(frame), axes.length * LEAST);
  const left = (/** @type {number} */ at) => SIDE + (at * (width - 2 * SIDE)) / Math.max(1, axes.length - 1);
  const paths = useMemo(() => points.map((point) => axes.map((axis) => top(axis, axis.raw(point)))), [axes, points]);
  const scene = { axes, points, ranges, goodness, hovered, paths, width, left };
  useEffect(() => {
    if (canvas.current) draw(canvas.current, scene);
  }, [axes, points, ranges, hovered, width, useTheme()]);
  const find = (/** @type {MouseEvent} */ event) => nearest(scene, event.offsetX, event.offsetY);
  return html`<div class="lines-frame" ref=${frame} tabindex="0" role="region" aria-label="Parallel coordinates; the fields below choose ranges, the table below has the trials">
    <div class="parallel-lines" onMouseLeave=${() => onHover("")}>
      <canvas ref=${canvas} width=${width} height=${HEIGHT} aria-hidden="true"></canvas>
      <svg width=${width} height=${HEIGHT} aria-hidden="true" onMouseMove=${(/** @type {MouseEvent} */ event) => onHover(find(event))} onClick=${(/** @type {MouseEvent} */ event) => find(event) && onOpen(find(event))}>
        ${axes.map((axis, at) => html`<${AxisMark} key=${axis.id} axis=${axis} x=${left(at)} isLast=${at === axes.length - 1} range=${ranges.get(axis.id)} onRange=${(/** @type {Range | null} */ range) => onRange(axis.id, range)} />`)}
      </svg>
    </div>
  </div>`;
}

/** @param {Axis} axis @param {number | null} raw */
const top = (axis, raw) => (raw === null ? HEIGHT - FOOT / 2 : HEIGHT - FOOT - placeOn(axis, raw) * (HEIGHT - TOP - FOOT));

/** @param {{current: HTMLElement | null}} element */
function useWidth(element) {
  const [width, setWidth] = useState(0);
  useEffect(() => {
    const target = element.current;
    if (!target) return;
    const resized = new ResizeObserver(() => setWidth(target.clientWidth));
    resized.observe(target);
    return () => resized.disconnect();
  }, []);
  return width;
}

/** Changes with the colours of the page. */
function useTheme() {
  const [number, setNumber] = useState(0);
  useEffect(() => {
    const changed = () => setNumber((before) => before + 1);
    const watcher = new MutationObserver(changed);
    watcher.observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme"] });
    const system = matchMedia("(prefers-color-scheme: dark)");
    system.addEventListener("change", changed);
    return () => {
      watcher.disconnect();
      system.removeEventListener("change", changed);
    };
  }, []);
  return number;
}

/** @param {{axis: Axis, x: number, isLast: boolean, range?: Range, onRange: (range: Range | null) => void}} props */
function AxisMark({ axis, x, isLast, range, onRange }) {
  const [drag, setDrag] = useState(/** @type {[number, number] | null} */ (null));
  const placeAt = (/** @type {PointerEvent} */ { clientY, currentTarget }) => {
    const box = /** @type {Element} */ (currentTarget).getBoundingClientRect();
    return Math.min(1, Math.max(0, 1 - (clientY - box.top - 8) / (box.height - 16)));
  };
  const down = (/** @type {PointerEvent} */ event) => {
    /** @type {Element} */ (event.currentTarget).setPointerCapture(event.pointerId);
    setDrag([placeAt(event), placeAt(event)]);
  };
  const move = (/** @type {PointerEvent} */ event) => drag && setDrag([drag[0], placeAt(event)]);
  const up = () => {
    if (!drag) return;
    const [low, high] = [...drag].sort((a, b) => a - b);
    onRange(high - low < 0.015 ? null : [rawAt(axis, low), rawAt(axis, high)]); // a click shows all again
    setDrag(null);
  };
  const shown = drag ?? (range && [placeOn(axis, range[0]), placeOn(axis, range[1])]);
  const y = (/** @type {number} */ place) => HEIGHT - FOOT - Math.min(1, Math.max(0, place)) * (HEIGHT - TOP - FOOT);
  const side = isLast ? -6 : 6;
  return html`<g class="axis">
    <text class="axis-title" x=${x} y=${16} text-anchor="middle"><title>${axis.title}</title>${short(axis.title, 14)}</text>
    <text x=${x} y=${29} text-anchor="middle">${axis.isLog ? "log" : ""}</text>
    <line x1=${x} x2=${x} y1=${TOP} y2=${HEIGHT - FOOT} />
    ${ticksOf(axis).map(({ place, words }) => html`<g key=${words}><line x1=${x - 3} x2=${x + 3} y1=${y(place)} y2=${y(place)} /><text x=${x + side} y=${y(place) + 4} text-anchor=${isLast ? "end" : "start"}>${short(words, 12)}</text></g>`)}
    ${shown && html`<rect class="chosen" x=${x - 7} width="14" y=${Math.min(y(shown[0]), y(shown[1]))} height=${Math.abs(y(shown[0]) - y(shown[1]))} />`}
    <rect class="grip" data-axis=${axis.title} x=${x - GRIP / 2} width=${GRIP} y=${TOP - 8} height=${HEIGHT - TOP - FOOT + 16} onPointerDown=${down} onPointerMove=${move} onPointerUp=${up} onPointerCancel=${() => setDrag(null)} onClick=${(/** @type {Event} */ event) => event.stopPropagation()} />
  </g>`;
}

/** @param {string} text @param {number} most */
const short = (text, most) => (text.length > most ? `${text.slice(0, most - 1)}…` : text);

/** @typedef {{axes: Axis[], points: Point[], ranges: Map<string, Range>, goodness: (point: Point) => number, hovered: string, paths: number[][], width: number, left: (at: number) => number}} Scene */

/** The worst first, so that the best are seen. @param {HTMLCanvasElement} canvas @param {Scene} scene */
function draw(canvas, { axes, points, ranges, goodness, hovered, paths, width, left }) {
  const context = canvas.getContext("2d");
  if (!context || !width) return;
  const scale = devicePixelRatio || 1;
  canvas.width = Math.round(width * scale);
  canvas.height = Math.round(HEIGHT * scale);
  context.scale(scale, scale);
  const [dim, line, accent] = ["--dim", "--line", "--accent"].map(inkOf);
  const order = points.map((point, at) => ({ at, good: goodness(point), isIn: isWithin(point, axes, ranges) }));
  order.sort((a, b) => Number(a.isIn) - Number(b.isIn) || a.good - b.good);
  const stroke = (/** @type {number} */ at, /** @type {string} */ colour, /** @type {number} */ alpha, /** @type {number} */ thick) => {
    context.strokeStyle = colour;
    context.globalAlpha = alpha;
    context.lineWidth = thick;
    context.beginPath();
    paths[at].forEach((y, number) => (number ? context.lineTo(left(number), y) : context.moveTo(left(0), y)));
    context.stroke();
  };
  for (const { at, good, isIn } of order) {
    if (!isIn) stroke(at, line, 0.55, 1);
    else if (good > 0.8) stroke(at, accent, 0.35 + 0.6 * good, good === 1 ? 2.5 : 1.25);
    else stroke(at, dim, 0.2 + 0.4 * good, 1);
  }
  const marked = points.findIndex(({ trial }) => trial === hovered);
  if (marked >= 0) stroke(marked, inkOf("--warn"), 1, 2.5);
}

/** The trial whose line is near; empty where none is. @param {Scene} scene @param {number} x @param {number} y */
function nearest({ axes, points, ranges, paths, left }, x, y) {
  let at = 0;
  while (at < axes.length - 2 && x > left(at + 1)) at += 1;
  const share = Math.min(1, Math.max(0, (x - left(at)) / (left(at + 1) - left(at) || 1)));
  let best = "";
  let distance = NEAR;
  points.forEach((point, number) => {
    const from = paths[number][at];
    const away = Math.abs(from + share * ((paths[number][at + 1] ?? from) - from) - y);
    if (away < distance && isWithin(point, axes, ranges)) [best, distance] = [point.trial, away];
  });
  return best;
}
