// The lines of a job's log by number, read in blocks as they are looked at. Keeps the blocks near the view only.

import { ApiError, get, pause, send, withQuery } from "./api.js";
import { TAIL } from "./job-tabs.js";

/**
 * @typedef {{number?: string, time: string, task: string, attempt: number, stream: string, severity: string,
 *   text: string, insertId: string}} LogLine
 * @typedef {{task?: string, attempt?: string, stream?: string}} Choice
 * @typedef {{total: number, line: (number: number) => LogLine | undefined, want: (from: number, to: number) => void}} Source
 */

const BLOCK = 250;
const LATER = 1000; // milliseconds until a question is repeated that the server could not answer yet
const MOST_BLOCKS = 40; // kept: 10,000 lines

export class LogSource {
  /**
   * @param {string} name of the job
   * @param {Choice} choice
   * @param {() => void} onChange called when there is more to draw
   */
  constructor(name, choice, onChange) {
    this.path = `/v1/${name}`;
    this.choice = choice;
    this.onChange = onChange;
    this.total = 0;
    this.isCounted = false;
    /** @type {LogLine[]} the last lines, while their numbers are not known */
    this.unnumbered = [];
    /** @type {Error | null} */
    this.error = null;
    /** @type {Map<number, LogLine[]>} from the oldest use to the newest */
    this.blocks = new Map();
    /** @type {Set<number>} */
    this.coming = new Set();
    this.gone = new AbortController();
    this.isReading = false;
    this.isStale = false;
  }

  close() {
    this.gone.abort();
  }

  /** Read the end of the log; at once, though its lines may still have to be counted. */
  async open() {
    const answer = await this.ask({ line: -TAIL, count: TAIL });
    if (!answer) return;
    if (answer.total.complete) return this.take(answer);
    this.unnumbered = answer.lines;
    this.onChange();
    while (!this.isCounted && !this.gone.signal.aborted) {
      this.take(await this.ask({ line: -TAIL, count: TAIL, numbered: true }));
      if (!isLate(this.error)) return;
      await pause(LATER);
    }
  }

  /** The log has grown: read what is new. Without a hint in between nothing is read twice. */
  async grow() {
    if (this.isReading) return void (this.isStale = true);
    this.isReading = true;
    do {
      this.isStale = false;
      const before = this.total;
      const answer = await this.ask({ line: before + 1, count: TAIL });
      this.take(answer);
      if (this.total > before + TAIL) this.take(await this.ask({ line: -TAIL, count: TAIL }));
    } while (this.isStale && !this.gone.signal.aborted);
    this.isReading = false;
  }

  /** @param {number} number from 1 on */
  line(number) {
    return this.blocks.get(Math.floor((number - 1) / BLOCK))?.[(number - 1) % BLOCK];
  }

  /** Have these lines read, where they are not there. @param {number} from @param {number} to */
  want(from, to) {
    const last = Math.floor((Math.min(to, this.total) - 1) / BLOCK);
    for (let block = Math.floor((Math.max(1, from) - 1) / BLOCK); block <= last; block += 1) {
      const known = this.blocks.get(block);
      if (known) {
        this.blocks.delete(block);
        this.blocks.set(block, known);
      }
      if (!this.coming.has(block) && !isFull(known, block, this.total)) this.read(block);
    }
  }

  /** @param {number} block */
  async read(block) {
    this.coming.add(block);
    let line = block * BLOCK + 1;
    const end = Math.min(this.total, line + BLOCK - 1);
    while (line <= end && !this.gone.signal.aborted) {
      const answer = await this.ask({ line, count: end - line + 1 });
      this.take(answer);
      if (!answer?.lines.length) break; // cut meanwhile: the next look asks again
      line += answer.lines.length; // very long lines come a few at a time
    }
    this.coming.delete(block);
  }

  /** The number of the first line of that time. @param {string} time */
  async numberAt(time) {
    const answer = await this.ask({ time, count: 1, numbered: true });
    return Number(answer?.lines[0]?.number ?? this.total);
  }

  /** @param {Record<string, string | number | boolean>} query */
  async ask(query) {
    try {
      const answer = await get(`${this.path}:lines`, { ...this.choice, ...query }, { signal: this.gone.signal });
      this.error = null;
      return answer;
    } catch (error) {
      if (this.gone.signal.aborted) return undefined;
      this.error = /** @type {Error} */ (error);
      this.onChange();
      return undefined;
    }
  }

  /** @param {{lines: LogLine[], total: {lines: string, complete: boolean}} | undefined} answer */
  take(answer) {
    if (!answer || !answer.total.complete) return;
    const total = Number(answer.total.lines);
    if (total < this.total) this.blocks.clear(); // lines were dropped: the others have new numbers
    this.total = total;
    this.isCounted = true;
    this.unnumbered = [];
    for (const line of answer.lines) {
      const at = Number(line.number) - 1;
      const block = Math.floor(at / BLOCK);
      if (!this.blocks.has(block)) this.blocks.set(block, []);
      /** @type {LogLine[]} */ (this.blocks.get(block))[at % BLOCK] = line;
    }
    for (const block of this.blocks.keys()) {
      if (this.blocks.size <= MOST_BLOCKS) break;
      this.blocks.delete(block);
    }
    this.onChange();
  }
}

/** Whether the server asks for patience: a long log takes a busy machine some time to count. @param {Error | null} error */
const isLate = (error) => error instanceof ApiError && error.status === 503;

/** @param {LogLine[] | undefined} lines @param {number} block @param {number} total */
function isFull(lines, block, total) {
  const size = Math.min(BLOCK, total - block * BLOCK);
  if (!lines || lines.length < size) return false;
  for (let at = 0; at < size; at += 1) if (!lines[at]) return false;
  return true;
}

/**
 * Search: calls `onStep` with what comes, until all is searched, the signal is given or onStep answers false.
 * @param {string} name of the job
 * @param {Record<string, string | number | boolean | undefined>} query
 * @param {AbortSignal} signal
 * @param {(step: {lines: LogLine[], matches: string, searchedBytes: string, sizeBytes: string}) => boolean | void} onStep
 */
export async function find(name, query, signal, onStep) {
  const done = new AbortController();
  const either = AbortSignal.any([signal, done.signal]);
  const answer = await send("GET", withQuery(`/v1/${name}:find`, query), { signal: either });
  const reader = /** @type {ReadableStream<Uint8Array>} */ (answer.body).getReader();
  const decoder = new TextDecoder();
  let rest = "";
  for (;;) {
    const { value, done: isOver } = await reader.read();
    if (isOver) throw new Error("The search was cut off.");
    const rows = (rest + decoder.decode(value, { stream: true })).split("\n");
    rest = rows.pop() ?? "";
    for (const row of rows.filter(Boolean)) {
      const step = JSON.parse(row);
      if (step.end) return;
      if (onStep(step) === false) return done.abort();
    }
  }
}
