// Costs: what a month took, by day, job, user, label or class of time, and how much of it was computing.

import { html, useEffect } from "../lib/ui.js";
import { href, jobHref, jobName, setQuery } from "../lib/address.js";
import { ApiError, EVERYWHERE, get } from "../lib/api.js";
import { amount, daysOf, isMonth, measureOf, monthAfter, thisMonth } from "../lib/costs.js";
import { percent } from "../lib/format.js";
import { useLive } from "../lib/hints.js";
import { CLASSES } from "../lib/timeline.js";
import { Empty, Failure, Loading, Notice } from "../parts/notice.js";
import { Table } from "../parts/table.js";
import { CostDays } from "./costs-days.js";

/** @typedef {import("../lib/costs.js").CostRow} CostRow */
/** @typedef {import("../lib/costs.js").Costs} Costs */

const PAGE = 100;
const AGAIN = 15_000; // milliseconds: what runs costs more, and nobody says so
const GROUPS = { job: "Job", user: "User", class: "Spent on", node: "Machine", day: "Day", project: "Project" };

/** @param {{address: import("../lib/address.js").Address}} props */
export default function CostsPage({ address: { query } }) {
  const month = isMonth(query.month ?? "") ? query.month : thisMonth();
  const by = query.by ?? "job";
  const ignore = (/** @type {any} */ hint) => Boolean(hint.log || hint.metrics);
  const ask = (/** @type {Record<string, any>} */ more) => (/** @type {AbortSignal} */ signal) =>
    get(`${EVERYWHERE}/costs`, { ...daysOf(month), ...more }, { signal });
  const days = useLive(ask({ groupBy: "day" }), [month], { ignore });
  const rows = useLive(ask({ groupBy: by, pageSize: PAGE, pageToken: query.after }), [month, by, query.after], { ignore });
  // A page is of one report, which the server keeps for a while only: after that, the list begins anew.
  const { error } = rows;
  const isGone = error instanceof ApiError && error.violations.some(({ field }) => field === "page_token");
  useEffect(() => {
    if (isGone && query.after) setQuery({ after: "" });
  }, [isGone, query.after]);
  useEffect(() => {
    const timer = setInterval(() => [days, rows].forEach(({ reload }) => reload()), AGAIN);
    return () => clearInterval(timer);
  }, [days.reload, rows.reload]);
  return html`<div class="toolbar"><h1>Costs</h1><${Controls} month=${month} by=${by} /></div>
    <${Body} days=${days} rows=${rows} month=${month} by=${by} after=${query.after ?? ""} />`;
}

/** @param {{month: string, by: string}} props */
function Controls({ month, by }) {
  const isLabel = by.startsWith("label:");
  const choose = (/** @type {string} */ value) => setQuery({ month: value === thisMonth() ? "" : value, after: "" });
  const group = (/** @type {string} */ value) => setQuery({ by: value === "job" ? "" : value, after: "" });
  return html`<span class="pair">
      <button type="button" aria-label="The month before" onClick=${() => choose(monthAfter(month, -1))}>←</button>
      <label class="unseen" for="month">Month</label>
      <input id="month" type="month" value=${month} max=${thisMonth()} onChange=${(/** @type {any} */ { target }) => isMonth(target.value) && choose(target.value)} />
      <button type="button" aria-label="The month after" disabled=${month >= thisMonth()} onClick=${() => choose(monthAfter(month, 1))}>→</button>
    </span>
    <label class="pair">By
      <select value=${isLabel ? "label" : by} onChange=${(/** @type {any} */ { target }) => group(target.value === "label" ? "label:team" : target.value)}>
        ${Object.entries(GROUPS).map(([value, words]) => html`<option key=${value} value=${value}>${words.toLowerCase()}</option>`)}
        <option value="label">label</option>
      </select>
    </label>
    ${isLabel &&
    html`<label class="pair">Label <input size="12" value=${by.slice(6)} onChange=${(/** @type {any} */ { target }) => target.value && group(`label:${target.value}`)} /></label>`}`;
}

/** @param {{days: any, rows: any, month: string, by: string, after: string}} props */
function Body({ days, rows, month, by, after }) {
  const failed = rows.error ?? days.error;
  if (failed && !rows.data) return html`<${Failure} error=${failed} retry=${rows.reload} />`;
  if (!rows.data || !days.data) return html`<${Loading} />`;
  /** @type {Costs} */
  const costs = rows.data;
  return html`<${Notes} costs=${costs} />
    ${costs.totalSize === 0 && html`<${Empty} title="Nothing was used in this month"><p>Time counts while jobs hold CPUs, memory and GPUs.</p><//>`}
    ${costs.totalSize > 0 &&
    html`<${Total} costs=${costs} />
      <${CostDays} costs=${days.data} month=${month} />
      <${Rows} costs=${costs} by=${by} />
      <${Pages} after=${after} next=${costs.nextPageToken ?? ""} month=${month} by=${by} />`}`;
}

/** Budgets that are half spent, and what is wrong with the prices. @param {{costs: Costs}} props */
function Notes({ costs }) {
  const budgets = (costs.budgets ?? []).filter(({ level }) => level > 0);
  return html`${budgets.map(
      ({ level, message }) => html`<${Notice} key=${message} kind=${level >= 100 ? "bad" : "warn"}><p>${message}${level >= 100 && " New jobs wait."}</p><//>`,
    )}
    ${costs.unpriced && html`<${Notice} kind="warn"><p>Without a price, and so without cost: ${costs.unpriced.join(", ")}.</p><//>`}
    ${costs.pricesError && html`<${Notice} kind="bad"><p>The prices from before are used: ${costs.pricesError}</p><//>`}`;
}

/** @param {{costs: Costs}} props */
function Total({ costs: { total, currency } }) {
  const facts = [
    ...(currency ? [[`${amount(total.cost)} ${currency}`, "cost"]] : []),
    [amount(total.cpuHours), "CPU-hours"],
    [amount(total.memoryGibHours), "GiB-hours"],
    ...(Number(total.gpuHours) ? [[amount(total.gpuHours), "GPU-hours"]] : []),
    [percent(total.goodput), "computed"],
  ];
  return html`<dl class="cost-facts">
      ${facts.map(([value, word]) => html`<div key=${word}><dt>${word}</dt><dd class="number">${value}</dd></div>`)}
    </dl>
    <ul class="cost-legend" aria-label="What the time was spent on">
      ${total.classes.map(
        (part) => html`<li key=${part.class}>
          <svg class="swatch" width="10" height="10" aria-hidden="true"><rect width="10" height="10" class=${`spent-${part.class}`} /></svg>
          ${CLASSES[part.class] ?? part.class} <span class="dim">${percent(part.share)}</span>
        </li>`,
      )}
    </ul>`;
}

/** @param {{costs: Costs, by: string}} props */
function Rows({ costs, by }) {
  const title = by.startsWith("label:") ? by.slice(6) : GROUPS[/** @type {keyof typeof GROUPS} */ (by)] ?? by;
  const hours = (/** @type {"cpuHours" | "memoryGibHours" | "gpuHours" | "cost"} */ name) => (/** @type {CostRow} */ row) => amount(row[name]);
  const columns = [
    { name: "group", title, cell: (/** @type {CostRow} */ row) => nameOf(row, by) },
    ...(by === "job" ? [{ name: "project", title: "Project", cell: (/** @type {CostRow} */ row) => row.project }] : []),
    ...(costs.currency ? [{ name: "cost", title: costs.currency, isNumber: true, cell: hours("cost") }] : []),
    { name: "cpu", title: "CPU-hours", isNumber: true, cell: hours("cpuHours") },
    { name: "memory", title: "GiB-hours", isNumber: true, cell: hours("memoryGibHours") },
    ...(Number(costs.total.gpuHours) ? [{ name: "gpu", title: "GPU-hours", isNumber: true, cell: hours("gpuHours") }] : []),
    { name: "goodput", title: "Computed", isNumber: true, cell: (/** @type {CostRow} */ row) => percent(row.goodput) },
    { name: "rest", title: "The rest", isWide: true, cell: rest },
  ];
  const unit = measureOf(costs).unit;
  return html`<div class="stacked"><${Table}
    caption=${`Costs by ${title.toLowerCase()}, in ${unit}`}
    columns=${columns}
    rows=${costs.rows ?? []}
    rowKey=${(/** @type {CostRow} */ row) => `${row.project} ${row.group}`}
  /></div>`;
}

/** @param {CostRow} row @param {string} by */
function nameOf(row, by) {
  if (by === "class") return CLASSES[row.group] ?? row.group;
  if (by !== "job") return row.group || html`<span class="dim">none</span>`;
  return html`<a href=${jobHref(jobName(row.project ?? "-", "-", row.group))}>${row.displayName ?? row.group}</a>`;
}

/** What took the time that was not computing, the largest first. @param {CostRow} row */
const rest = ({ classes }) =>
  classes.filter((part) => part.class !== "COMPUTED" && part.share >= 0.005).map((part) => `${percent(part.share)} ${CLASSES[part.class] ?? part.class}`).join(", ");

/** @param {{after: string, next: string, month: string, by: string}} props */
function Pages({ after, next, month, by }) {
  if (!after && !next) return null;
  return html`<nav class="pages" aria-label="Pages of the table">
    ${after && html`<a class="button" href=${href(["costs"], { month, by })}>First page</a>`}
    ${next && html`<a class="button" href=${href(["costs"], { month, by, after: next })}>Next ${PAGE}</a>`}
  </nav>`;
}
