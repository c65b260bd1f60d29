// Where events of a job stand among the lines of its log: before the first line of their time or later.

/**
 * @typedef {import("./log-source.js").LogLine} LogLine
 * @typedef {{time: string, reason: string, message: string, severity: string, task?: string, attempt: number, sequence: number}} JobEvent
 */

/** Those that concern the chosen lines. @param {JobEvent[]} events @param {import("./log-source.js").Choice} choice */
export function eventsOf(events, { task, attempt }) {
  return events.filter((event) => (!task || !event.task || event.task === task) && (!attempt || event.attempt === Number(attempt)));
}

/**
 * The events before each of the drawn lines, by its number, and those behind the last. Numbers of lines do not change.
 * @param {JobEvent[]} events in their order
 * @param {{number: number, line: LogLine | undefined}[]} rows
 * @param {number} total lines of the log
 */
export function placeEvents(events, rows, total) {
  /** @type {Map<number, JobEvent[]>} */
  const before = new Map();
  let rest = events;
  for (const { number, line } of rows) {
    if (!line) continue; // not read yet
    const at = rest.findIndex((event) => Date.parse(event.time) > Date.parse(line.time));
    const own = at < 0 ? rest : rest.slice(0, at);
    rest = rest.slice(own.length);
    const isAbove = number === rows[0].number && number > 1; // they belong to lines that are not drawn
    if (own.length && !isAbove) before.set(number, own);
  }
  const isEnd = rows.length > 0 && rows[rows.length - 1].number >= total && rows[rows.length - 1].line;
  return { before, after: isEnd ? rest : [] };
}
