// Hints: the server says that a job has changed, and the page reads again what it shows. Nothing polls.
//
// One stream for each tab that is seen: browsers allow six connections to a server, for all tabs together.
// A tab that is hidden lets go of its stream, and reads everything again when it is looked at.

import { useCallback, useEffect, useLayoutEffect, useRef, useState } from "./ui.js";
import { EVERYWHERE, SIGNED_OUT, withQuery } from "./api.js";
import { inOwnProject } from "./own-project.js";

/**
 * @typedef {{everything?: boolean, name?: string, version?: number, deleted?: boolean, log?: boolean,
 *   metrics?: boolean}} Hint
 * @typedef {{logs?: string, metrics?: string, onHint: (hint: Hint) => void}} Listener
 */

const SOON = 60; // milliseconds in which hints are gathered before anything is read
const RETRY = 1000;

/** @type {Set<Listener>} */
const listeners = new Set();
/** @type {Set<(isAway: boolean) => void>} */
const watchers = new Set();
/** @type {EventSource | null} */
let stream = null;
let streamAddress = "";
let last = ""; // the id of the newest hint, by which a new stream goes on
let isAway = false;
/** @type {ReturnType<typeof setTimeout> | undefined} */
let timer;

/**
 * Listen until the function that is returned is called. `logs` and `metrics` name a job of which growth is
 * to be hinted too.
 * @param {Listener} listener
 */
export function listen(listener) {
  listeners.add(listener);
  adjust();
  return () => {
    listeners.delete(listener);
    adjust();
  };
}

/**
 * Go on behind that hint: what is read from now on has all before it, so nothing need be read twice.
 * @param {string} id
 */
export function listenAfter(id) {
  last ||= id;
}

function adjust() {
  clearTimeout(timer);
  timer = setTimeout(open, 0); // pages replace each other's listeners: one stream for the outcome
}

function open() {
  if (document.hidden || !listeners.size) return close();
  const all = [...listeners];
  const logs = all.find((listener) => listener.logs)?.logs;
  const metrics = all.find((listener) => listener.metrics)?.metrics;
  const address = withQuery(inOwnProject(`${EVERYWHERE}/customJobs:watch`), { logs, metrics });
  if (stream && address === streamAddress && stream.readyState !== EventSource.CLOSED) return;
  close();
  streamAddress = address;
  const opened = new EventSource(withQuery(address.split("?")[0], { logs, metrics, after: last }));
  stream = opened;
  opened.onopen = () => setAway(false);
  opened.onmessage = (event) => {
    if (event.lastEventId) last = event.lastEventId;
    const hint = JSON.parse(event.data);
    for (const listener of [...listeners]) listener.onHint(hint);
  };
  opened.onerror = () => {
    if (stream !== opened) return;
    setAway(true);
    if (opened.readyState !== EventSource.CLOSED) return;
    dispatchEvent(new Event(SIGNED_OUT)); // the server refuses: perhaps somebody signed out in another tab
    timer = setTimeout(open, RETRY);
  };
}

function close() {
  stream?.close();
  stream = null;
}

/** @param {boolean} value */
function setAway(value) {
  if (value === isAway) return;
  isAway = value;
  for (const watcher of watchers) watcher(value);
}

document.addEventListener("visibilitychange", () => (document.hidden ? close() : adjust()));

/** Whether no server answers at the moment. */
export function useServerAway() {
  const [away, setState] = useState(isAway);
  useEffect(() => {
    watchers.add(setState);
    return () => void watchers.delete(setState);
  }, []);
  return away;
}

/**
 * What `load` gives, read again after hints: of the job of that full name, or of any. While it is read again
 * the last data stay. `load` must stop at its signal.
 * @template T
 * @param {(signal: AbortSignal) => Promise<T>} load
 * @param {unknown[]} deps what the question is made of
 * @param {{job?: string, logs?: string, metrics?: string, ignore?: (hint: Hint) => boolean}} [options]
 * @returns {{data: T | undefined, error: Error | undefined, isLoading: boolean, reload: () => void}}
 */
export function useLive(load, deps, options = {}) {
  const [state, setState] = useState({
    data: /** @type {T | undefined} */ (undefined),
    error: /** @type {Error | undefined} */ (undefined),
    isLoading: true,
  });
  const latest = useRef({ load, options });
  latest.current = { load, options };
  const again = useRef(() => {});
  useLayoutEffect(() => { // before the browser paints: the server need not wait for that
    const gone = new AbortController();
    let isReading = false;
    let isWanted = false;
    const read = async () => {
      if (isReading) return void (isWanted = true);
      isReading = true;
      isWanted = false;
      try {
        const data = await latest.current.load(gone.signal);
        if (!gone.signal.aborted) setState({ data, error: undefined, isLoading: false });
      } catch (error) {
        const failure = /** @type {Error} */ (error);
        if (!gone.signal.aborted) setState(({ data }) => ({ data, error: failure, isLoading: false }));
      }
      isReading = false;
      if (isWanted && !gone.signal.aborted) soon();
    };
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    let waiting;
    const soon = () => {
      waiting ??= setTimeout(() => {
        waiting = undefined;
        read();
      }, SOON);
    };
    again.current = () => void read();
    const { job, logs, metrics } = options;
    const stop = listen({
      logs,
      metrics,
      onHint: (hint) => {
        if ((hint.metrics && !metrics) || (hint.log && !logs)) return; // growth is for those who asked for it
        const isOurs = hint.everything || !job || hint.name === job;
        if (isOurs && !latest.current.options.ignore?.(hint)) soon();
      },
    });
    setState(({ data }) => ({ data, error: undefined, isLoading: true }));
    read();
    return () => {
      gone.abort();
      clearTimeout(waiting);
      stop();
    };
  }, [...deps, options.job, options.logs, options.metrics]);
  const reload = useCallback(() => again.current(), []);
  return { ...state, reload };
}
