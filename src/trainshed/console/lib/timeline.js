// What the time of a job's replicas went into: the ledger's intervals, and the one that is still open.

/**
 * @typedef {{task: string, attempt: number, run: number, class: string, from: number, to: number, isOpen: boolean,
 *   cpus: number, gpus: number, exit?: {text: string, code?: number}}} Bar times in milliseconds
 * @typedef {{from: number, to: number, rows: {task: string, bars: Bar[]}[], isOpen: boolean}} Timeline
 */

/** What a class of time is called, in the order of a job's life. @type {Record<string, string>} */
export const CLASSES = {
  QUEUED: "queued",
  PULLED: "prepared",
  SET_UP: "set up",
  WAITED_FOR_GANG: "waited for the others",
  COMPUTED: "ran",
  CHECKPOINTED: "stored outputs",
  LOST: "lost",
  HELD: "held for a look",
  IDLE: "idle",
};
export const WHOLE = "all replicas"; // the row of a job that has no replicas yet

/**
 * @param {any[]} intervals of `:intervals`
 * @param {any} status of `:status`
 * @param {boolean} isOver
 * @param {number} now milliseconds
 * @returns {Timeline}
 */
export function timelineOf(intervals, status, isOver, now) {
  const bars = intervals.map(closed);
  /** @type {Map<string, Bar[]>} */
  const rows = new Map();
  for (const bar of bars) rows.set(bar.task, [...(rows.get(bar.task) ?? []), bar]);
  if (!isOver) addOpen(rows, status, now);
  const from = Date.parse(status.times.created);
  const ended = status.times.ended ? Date.parse(status.times.ended) : now;
  const to = Math.max(from + 1, isOver ? ended : now, ...bars.map((bar) => bar.to));
  return { from, to, rows: [...rows].map(([task, own]) => ({ task, bars: own })), isOpen: !isOver };
}

/** @param {any} interval @returns {Bar} */
function closed({ task, attempt, run, class: spentOn, startTime, endTime, cpus, gpuCount, exit }) {
  const [from, to] = [Date.parse(startTime), Date.parse(endTime)];
  return { task, attempt, run, class: spentOn, from, to, isOpen: false, cpus, gpus: gpuCount, exit };
}

/** @param {Map<string, Bar[]>} rows @param {any} status @param {number} now */
function addOpen(rows, status, now) {
  const replicas = new Map(status.replicas.map((/** @type {any} */ replica) => [replica.task, replica]));
  const tasks = new Set([...rows.keys(), ...replicas.keys()]);
  for (const task of tasks.size ? tasks : [WHOLE]) {
    const own = rows.get(task) ?? [];
    const replica = replicas.get(task);
    const from = own.length ? own[own.length - 1].to : openedAt(status, replica);
    const bar = { task, attempt: status.attempt, run: replica?.restarts ?? 0, class: spentOn(status, replica, now) };
    const size = { cpus: replica?.cpus ?? 0, gpus: replica?.gpus?.length ?? 0 };
    if (from < now) rows.set(task, [...own, { ...bar, ...size, from, to: now, isOpen: true }]);
  }
}

/** @param {any} status @param {any} replica */
function openedAt({ times }, replica) {
  return Date.parse(replica?.startTime ?? times.admitted ?? times.created);
}

/** The same rule as of the ledger, for what is not written yet. @param {any} status @param {any} replica @param {number} now */
function spentOn(status, replica, now) {
  const reason = status.waiting?.reason;
  if (!replica) return reason === "PREPARING" ? "PULLED" : "QUEUED";
  if (replica.phase === "ENDED") return reason === "STORING_OUTPUTS" ? "CHECKPOINTED" : reason === "HELD" ? "HELD" : "IDLE";
  if (replica.phase !== "PLANNED") {
    const isAlone = status.replicas.length === 1 || status.state !== "JOB_STATE_PENDING";
    return isAlone ? "COMPUTED" : "WAITED_FOR_GANG";
  }
  if (status.closing || (replica.notBefore && Date.parse(replica.notBefore) > now)) return "IDLE";
  return reason === "PREPARING" ? "PULLED" : "SET_UP";
}

/** Milliseconds of each class, over all replicas; classes that took none are left out. @param {Timeline} timeline */
export function totals({ rows }) {
  const sums = Object.fromEntries(Object.keys(CLASSES).map((name) => [name, 0]));
  for (const bar of rows.flatMap((row) => row.bars)) sums[bar.class] = (sums[bar.class] ?? 0) + bar.to - bar.from;
  return Object.entries(sums).filter(([, length]) => length > 0);
}
