// The history of a job, newest first.

import { html, useState } from "../lib/ui.js";
import { setQuery } from "../lib/address.js";
import { count } from "../lib/format.js";
import { Table } from "../parts/table.js";
import { Time } from "../parts/time.js";

const FEW = 30;
const LEVELS = ["INFO", "WARNING", "ERROR"];
const CHOICES = /** @type {Record<string, string>} */ ({ "": "all", WARNING: "warnings and errors", ERROR: "errors" });
const MARKS = /** @type {Record<string, string>} */ ({ WARNING: "▲ warning", ERROR: "✗ error", INFO: "info" });

/** @param {{events: any[], severity?: string}} props */
export function Events({ events, severity = "" }) {
  const [isAll, setAll] = useState(false);
  const least = LEVELS.indexOf(severity);
  const fitting = events.filter((event) => LEVELS.indexOf(event.severity) >= least).reverse();
  const shown = isAll ? fitting : fitting.slice(0, FEW);
  return html`<section>
    <div class="section-head">
      <h2>Events</h2>
      <label>Show <select aria-label="Severity of events" value=${severity} onChange=${(/** @type {any} */ event) => setQuery({ severity: event.target.value })}>
        ${Object.entries(CHOICES).map(([value, words]) => html`<option key=${value} value=${value}>${words}</option>`)}
      </select></label>
    </div>
    ${shown.length
      ? html`<${Table} caption="Events, newest first" columns=${COLUMNS} rows=${shown} rowKey=${(/** @type {any} */ event) => String(event.sequence)} />`
      : html`<p class="dim">None.</p>`}
    ${fitting.length > shown.length &&
    html`<button type="button" class="small" onClick=${() => setAll(true)}>Show all ${count(fitting.length)}</button>`}
  </section>`;
}

/** @type {import("../parts/table.js").Column<any>[]} */
const COLUMNS = [
  { name: "time", title: "Time", isNumber: true, cell: (event) => html`<${Time} at=${event.time} />` },
  { name: "severity", title: "Severity", cell: (event) => html`<span class="nowrap severity-${event.severity}">${MARKS[event.severity] ?? event.severity}</span>` },
  { name: "reason", title: "Reason", cell: (event) => html`<code>${event.reason}</code>` },
  { name: "task", title: "Replica", cell: (event) => html`<span class="nowrap">${event.task ?? ""}</span>` },
  { name: "message", title: "What happened", isWide: true, cell: (event) => html`<span class="event-message">${event.message}</span>` },
];
