// What the tabs of a study read: again after each of its hints, but the longer an answer takes the more seldom. A
// study of ten thousand trials that end by the second is not read by the second.

import { useEffect, useRef } from "../lib/ui.js";
import { get, pause } from "../lib/api.js";
import { useLive } from "../lib/hints.js";

/** @typedef {import("../lib/study.js").StudyRow} StudyRow */

const LEAST = 300; // milliseconds between two readings
const REST = 5; // so many times as long as a reading took nothing is read
const MOST = 10_000;

/**
 * @param {StudyRow} row
 * @param {string} path
 * @param {Record<string, string | number | undefined>} [query]
 * @param {(name: string) => boolean} [concerns] of which jobs' hints it is read again too
 */
export function useStudyLive(row, path, query = {}, concerns) {
  const rest = useRef({ until: 0 });
  const asked = JSON.stringify([path, query]);
  useEffect(() => void (rest.current = { until: 0 }), [asked]); // another question is asked at once
  return useLive(
    async (signal) => {
      await pause(Math.max(0, rest.current.until - Date.now()));
      signal.throwIfAborted();
      const from = Date.now();
      const answer = await get(path, query, { signal });
      const now = Date.now();
      rest.current.until = now + Math.min(MOST, LEAST + REST * (now - from));
      return answer;
    },
    [asked],
    { ignore: ({ name }) => Boolean(name) && name !== row.name && !concerns?.(name ?? "") },
  );
}
