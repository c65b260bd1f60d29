// A search in a job's log: the matches as they come, how many there are, and the next and previous one.

import { useEffect, useRef, useState } from "./ui.js";
import { find } from "./log-source.js";

/**
 * @typedef {import("./log-source.js").LogLine} LogLine
 * @typedef {{lines: LogLine[], matches: number, part: number, isOver: boolean, error: Error | null}} Search
 */

const TYPING = 250; // milliseconds without a key before the search begins
const MOST = 10_000; // matches that are kept; more are counted

/** @type {Search} */
export const NOTHING = { lines: [], matches: 0, part: 0, isOver: true, error: null };

/**
 * What is searched for, as the API wants it; null where it is nothing. `/…/` is a regular expression.
 * @param {string} words
 * @param {string} severity
 * @returns {Record<string, string> | null}
 */
export function patternOf(words, severity) {
  const expression = /^\/(.+)\/$/.exec(words);
  if (expression) return { regex: expression[1] };
  if (words) return { text: words };
  return severity ? { severity } : null;
}

/**
 * The search for a pattern, begun again when it, the choice or `round` changes.
 * @param {string} name of the job
 * @param {Record<string, string> | null} pattern
 * @param {Record<string, string | undefined>} choice
 * @returns {Search}
 */
export function useSearch(name, pattern, choice) {
  const [search, setSearch] = useState(NOTHING);
  useEffect(() => {
    if (!pattern) return setSearch(NOTHING);
    const gone = new AbortController();
    setSearch({ ...NOTHING, isOver: false });
    const timer = setTimeout(async () => {
      /** @type {LogLine[]} */
      const lines = [];
      try {
        await find(name, { ...choice, ...pattern, limit: MOST }, gone.signal, (step) => {
          lines.push(...step.lines);
          const part = Number(step.searchedBytes) / Math.max(1, Number(step.sizeBytes));
          setSearch({ lines: [...lines], matches: Number(step.matches), part, isOver: false, error: null });
        });
        setSearch((state) => ({ ...state, isOver: true }));
      } catch (error) {
        if (!gone.signal.aborted) setSearch({ ...NOTHING, error: /** @type {Error} */ (error) });
      }
    }, TYPING);
    return () => {
      clearTimeout(timer);
      gone.abort();
    };
  }, [name, JSON.stringify(pattern), JSON.stringify(choice)]);
  return search;
}

/**
 * A function that gives the number of the next match behind or before a line; undefined where there is none.
 * @param {string} name of the job
 * @param {Record<string, string> | null} pattern
 * @param {Record<string, string | undefined>} choice
 */
export function useNeighbour(name, pattern, choice) {
  const last = useRef(new AbortController());
  useEffect(() => () => last.current.abort(), []);
  return async (/** @type {number} */ line, /** @type {boolean} */ isBack) => {
    last.current.abort();
    last.current = new AbortController();
    const from = isBack ? line - 1 : line + 1;
    if (!pattern || from < 1) return undefined;
    /** @type {number | undefined} */
    let number;
    const direction = isBack ? "backward" : "forward";
    await find(name, { ...choice, ...pattern, from, direction, limit: 1 }, last.current.signal, ({ lines }) => {
      if (lines.length) number = Number(lines[0].number);
      return !lines.length;
    });
    return number;
  };
}
