// Keys: each page says which it knows, and `?` shows them all.

import { useLayoutEffect, useRef } from "./ui.js";

/** @typedef {Record<string, [string, (event: KeyboardEvent) => void]>} Keys key or "g j" to its words and deed */

const PAUSE = 1000; // milliseconds between the two keys of a sequence

/** @type {Map<symbol, {where: string, keys: Keys}>} */
const known = new Map();
let before = "";
let beforeAt = 0;

/** All keys that work now, by where they belong. */
export function knownKeys() {
  return [...known.values()].map(({ where, keys }) => ({
    where,
    keys: Object.entries(keys).map(([key, [words]]) => ({ key, words })),
  }));
}

/**
 * @param {string} where the heading in the help
 * @param {Keys} keys
 */
export function useKeys(where, keys) {
  const id = useRef(Symbol(where));
  known.has(id.current) && known.set(id.current, { where, keys }); // what the deeds see is as drawn last
  useLayoutEffect(() => {
    known.set(id.current, { where, keys });
    return () => void known.delete(id.current);
  }, []);
}

/** @param {EventTarget | null} target */
function isTyping(target) {
  if (!(target instanceof HTMLElement)) return false;
  return target.matches("input:not([type=checkbox]):not([type=radio]), textarea, select, [contenteditable]");
}

/** @param {KeyboardEvent} event */
function pressed(event) {
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
  if (isTyping(event.target) || document.querySelector("dialog[open]")) return;
  const sequence = event.timeStamp - beforeAt < PAUSE ? `${before} ${event.key}` : "";
  before = event.key;
  beforeAt = event.timeStamp;
  const all = [...known.values()].reverse(); // the innermost first
  for (const wanted of [sequence, event.key]) {
    const entry = wanted && all.find(({ keys }) => Object.hasOwn(keys, wanted));
    if (!entry) continue;
    event.preventDefault();
    entry.keys[wanted][1](event);
    if (wanted === sequence) before = "";
    return;
  }
}

document.addEventListener("keydown", pressed);
