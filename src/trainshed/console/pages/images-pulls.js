// The pulls that were begun on this page: each reads its own answer, which comes in steps.

import { useRef, useState } from "../lib/ui.js";
import { EVERYWHERE, send } from "../lib/api.js";
import { jsonLines } from "../lib/json-lines.js";

/**
 * @typedef {{name: string, step: {message: string, percent?: number}, error?: string}} Pull
 * @typedef {Pull[] & {begin: (name: string) => void, forget: (name: string) => void}} Pulls
 */

/**
 * A pull goes on when the page is left: the server has it, and only stops telling.
 * @param {() => void} onDone
 * @returns {Pulls}
 */
export function usePulls(onDone) {
  const [, redraw] = useState(0);
  const pulls = useRef(/** @type {Map<string, Pull>} */ (new Map()));
  const set = (/** @type {string} */ name, /** @type {Pull | null} */ pull) => {
    if (pull) pulls.current.set(name, pull);
    else pulls.current.delete(name);
    redraw((number) => number + 1);
  };
  const begin = async (/** @type {string} */ name) => {
    const first = { message: `Pulling image ${name}: asking the server` };
    set(name, { name, step: first });
    try {
      const answer = await send("POST", `${EVERYWHERE}/images:pull`, { body: { name } });
      for await (const step of jsonLines(answer)) set(name, { name, step });
      set(name, null);
    } catch (error) {
      set(name, { name, step: first, error: /** @type {Error} */ (error).message });
    }
    onDone();
  };
  return Object.assign([...pulls.current.values()], { begin, forget: (/** @type {string} */ name) => set(name, null) });
}
