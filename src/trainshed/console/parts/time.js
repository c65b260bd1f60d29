// Times: short in the text, exact on hover; those that count from now go on by themselves.

import { html, useEffect, useState } from "../lib/ui.js";
import { ago, between, clock, duration, exact } from "../lib/format.js";

/** @type {Set<() => void>} */
const ticking = new Set();
setInterval(() => document.hidden || ticking.forEach((tick) => tick()), 1000);

/** A new drawing each second, unless nothing counts. @param {boolean} isOn */
export function useSeconds(isOn) {
  const [, setTick] = useState(0);
  useEffect(() => {
    if (!isOn) return;
    const tick = () => setTick((number) => number + 1);
    ticking.add(tick);
    return () => void ticking.delete(tick);
  }, [isOn]);
}

/** A moment: as a time of the clock, or how long ago. @param {{at?: string, isAgo?: boolean}} props */
export function Time({ at, isAgo = false }) {
  useSeconds(isAgo && Boolean(at));
  if (!at) return html`<span class="dim">–</span>`;
  return html`<time datetime=${at} title=${exact(at)}>${isAgo ? ago(at) : clock(at)}</time>`;
}

/** How long it took, or takes so far. @param {{from?: string, to?: string}} props */
export function Length({ from, to }) {
  useSeconds(Boolean(from) && !to);
  if (!from) return html`<span class="dim">–</span>`;
  return html`<span class="number" title=${`from ${exact(from)}${to ? ` to ${exact(to)}` : ""}`}>${duration(between(from, to))}</span>`;
}
