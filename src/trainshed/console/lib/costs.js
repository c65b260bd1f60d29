// What the server's costs mean for a page: days of a month, sums as texts, shares of classes.

/**
 * @typedef {{cpuHours: string, memoryGibHours: string, gpuHours: string, cost?: string}} Amount decimal texts
 * @typedef {Amount & {class: string, share: number}} ClassPart
 * @typedef {Amount & {group: string, project?: string, displayName?: string, goodput: number, classes: ClassPart[]}} CostRow
 * @typedef {{project?: string, share?: string, percent: number, level: number, message: string}} Budget
 * @typedef {{from: string, to: string, total: CostRow, rows?: CostRow[], totalSize: number, currency?: string, nextPageToken?: string,
 *   unpriced?: string[], pricesError?: string, budgets?: Budget[]}} Costs
 */

/** The month of now, in UTC as the server counts. */
export const thisMonth = () => new Date().toISOString().slice(0, 7);

/** The month that is so many later. @param {string} month 2026-11 @param {number} by */
export function monthAfter(month, by) {
  const [year, number] = month.split("-").map(Number);
  return new Date(Date.UTC(year, number - 1 + by, 1)).toISOString().slice(0, 7);
}

/** Whether it is a month. @param {string} text */
export const isMonth = (text) => /^\d{4}-(0[1-9]|1[0-2])$/.test(text);

/** The first day of a month, and the first after it, as the API wants them. @param {string} month */
export const daysOf = (month) => ({ from: `${month}-01`, to: `${monthAfter(month, 1)}-01` });

/** Every day of a month: 2026-11-01, … @param {string} month */
export function everyDay(month) {
  const { from, to } = daysOf(month);
  const count = (Date.parse(to) - Date.parse(from)) / 86_400_000;
  return Array.from({ length: count }, (_, at) => new Date(Date.parse(from) + at * 86_400_000).toISOString().slice(0, 10));
}

/** What a page compares by: money where there is any, else hours of GPUs, else of CPUs. @param {Costs} costs */
export function measureOf({ total, currency }) {
  if (currency && Number(total.cost)) return { name: /** @type {const} */ ("cost"), unit: currency };
  if (Number(total.gpuHours)) return { name: /** @type {const} */ ("gpuHours"), unit: "GPU-hours" };
  return { name: /** @type {const} */ ("cpuHours"), unit: "CPU-hours" };
}

/** Two digits behind the point, more where that would be nothing. @param {string | undefined} text */
export function amount(text) {
  const value = Number(text ?? 0);
  if (!value) return "0";
  return Math.abs(value) < 0.01 ? value.toPrecision(2) : value.toFixed(2).replace(/\B(?=(\d{3})+\.)/g, ",");
}
