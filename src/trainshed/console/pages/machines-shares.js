// Shares: what each has of the machines, uses and waits for. Nothing is shown where none are set, or to who may not see it.

import { html } from "../lib/ui.js";
import { get } from "../lib/api.js";
import { bytes } from "../lib/format.js";
import { useLive } from "../lib/hints.js";
import { ownProjects } from "../lib/own-project.js";
import { Table } from "../parts/table.js";

/**
 * @typedef {Record<string, number>} Amounts
 * @typedef {{name: string, depth: number, projects: string[], nominal: Amounts, used: Amounts, usedLately: Amounts,
 *   running: Record<string, number>, waiting: number}} Share
 */

export function Shares() {
  const isOther = (/** @type {any} */ hint) => Boolean(hint.log || hint.metrics);
  const ask = async (/** @type {AbortSignal} */ signal) => (ownProjects().length ? { shares: [] } : get("/v1/shares", {}, { signal }));
  const { data } = useLive(ask, [], { ignore: isOther });
  if (!data?.shares?.length) return null;
  return html`<section aria-labelledby="shares">
    <h2 id="shares">Shares</h2>
    <div class="stacked"><${Table} caption="Shares of the machines" columns=${COLUMNS} rows=${data.shares} rowKey=${(/** @type {Share} */ share) => share.name} /></div>
  </section>`;
}

const COLUMNS = [
  { name: "share", title: "Share", cell: (/** @type {Share} */ share) => html`<span class="nowrap">${"\u00a0".repeat(3 * share.depth)}${share.name}</span>` },
  { name: "projects", title: "Projects", cell: (/** @type {Share} */ share) => share.projects.join(", ") },
  { name: "nominal", title: "Guaranteed", cell: (/** @type {Share} */ share) => (share.depth ? words(share.nominal) || "nothing" : line("all machines")) },
  { name: "used", title: "In use", cell: (/** @type {Share} */ share) => words(share.used) || dash() },
  { name: "lately", title: "Lately, on average", cell: (/** @type {Share} */ share) => words(share.usedLately) || dash() },
  { name: "running", title: "Running jobs", isWide: true, cell: (/** @type {Share} */ { running }) => Object.entries(running).map(([standing, count]) => `${count} ${standing.toLowerCase()}`).join(", ") || dash() },
  { name: "waiting", title: "Waiting", isNumber: true, cell: (/** @type {Share} */ share) => share.waiting },
];

const dash = () => html`<span class="dim">–</span>`;

/** @param {string} text */
const line = (text) => html`<span class="nowrap">${text}</span>`;

/** @param {Amounts} amounts */
function words(amounts) {
  const texts = Object.entries(amounts).map(([item, amount]) => (item === "memory" ? bytes(amount) : `${Number(amount.toPrecision(3))} ${item}`));
  return texts.length && line(texts.join(", "));
}
