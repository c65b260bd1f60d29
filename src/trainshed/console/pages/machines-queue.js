// The queue in its order: the place, what each job needs, why it waits, and when it may start.

import { html } from "../lib/ui.js";
import { href, jobHref } from "../lib/address.js";
import { EVERYWHERE, get } from "../lib/api.js";
import { ago, bytes, count, exact, rangeWords } from "../lib/format.js";
import { useLive } from "../lib/hints.js";
import { Failure, Loading } from "../parts/notice.js";
import { Table } from "../parts/table.js";
import { Length, useSeconds } from "../parts/time.js";

const PAGE = 50;

/**
 * @typedef {{earliest: string, likely?: string, likelyFrom?: string, likelyTo?: string, latest?: string, basis: string}} Eta
 * @typedef {{name: string, displayName: string, position?: number, priority: number, createTime: string, replicas: number,
 *   needs: {cpus: number, memoryBytes: string, gpus: number}, waiting?: {reason: string, message: string, remedy?: string},
 *   eta?: Eta}} QueuedJob
 */

/** @param {{after: string}} props the token of the page; "" for the first */
export function Queue({ after }) {
  const ask = (/** @type {boolean} */ eta) => (/** @type {AbortSignal} */ signal) =>
    get(`${EVERYWHERE}/queue`, { pageSize: PAGE, pageToken: after, eta: eta || undefined }, { signal });
  const isOther = (/** @type {any} */ hint) => Boolean(hint.log || hint.metrics);
  const { data, error, reload } = useLive(ask(false), [after], { ignore: isOther });
  const times = useLive(ask(true), [after], { ignore: isOther }); // the simulation takes longer than the list
  if (error && !data) return html`<${Failure} error=${error} retry=${reload} />`;
  if (!data) return html`<${Loading} />`;
  const etas = new Map((times.data?.jobs ?? []).map((/** @type {QueuedJob} */ job) => [job.name, job.eta]));
  const jobs = (data.jobs ?? []).map((/** @type {QueuedJob} */ job) => ({ ...job, eta: etas.get(job.name) }));
  return html`<section aria-labelledby="queue">
    <h2 id="queue">Queue <span class="dim">${count(data.totalSize)}</span></h2>
    ${jobs.length === 0 && html`<p class="dim">${after ? "No more jobs wait here." : "No job waits."}</p>`}
    ${jobs.length > 0 && html`<div class="stacked queue"><${Table} caption="Waiting jobs in their order" columns=${COLUMNS} rows=${jobs} rowKey=${(/** @type {QueuedJob} */ job) => job.name} /></div>`}
    <${Pages} after=${after} next=${data.nextPageToken ?? ""} />
  </section>`;
}

/** @param {{after: string, next: string}} props */
function Pages({ after, next }) {
  if (!after && !next) return null;
  return html`<nav class="toolbar" aria-label="Pages of the queue">
    ${after && html`<a class="button" href=${href(["machines"])}>First page</a>`}
    ${next && html`<a class="button" href=${href(["machines"], { after: next })}>Next ${PAGE}</a>`}
  </nav>`;
}

const COLUMNS = [
  { name: "place", title: "Place", isNumber: true, cell: (/** @type {QueuedJob} */ job) => job.position ?? html`<span class="dim" title="It has no place while something is prepared for it">–</span>` },
  { name: "job", title: "Job", cell: (/** @type {QueuedJob} */ job) => html`<a href=${jobHref(job.name)}>${job.displayName}</a>` },
  { name: "priority", title: "Priority", isNumber: true, cell: (/** @type {QueuedJob} */ job) => job.priority },
  { name: "waits", title: "Waits for", isNumber: true, cell: (/** @type {QueuedJob} */ job) => html`<${Length} from=${job.createTime} />` },
  { name: "needs", title: "Needs", cell: needs },
  { name: "starts", title: "Starts", cell: (/** @type {QueuedJob} */ job) => html`<${Start} eta=${job.eta} />` },
  { name: "why", title: "Why", isWide: true, cell: why },
];

/** @param {QueuedJob} job */
function needs({ needs: amount, replicas }) {
  const gpus = amount.gpus ? `, ${amount.gpus} GPU${amount.gpus > 1 ? "s" : ""}` : "";
  const times = replicas > 1 ? html`<div class="dim">for ${replicas} replicas</div>` : "";
  return html`${amount.cpus} CPU${amount.cpus === 1 ? "" : "s"}, ${bytes(Number(amount.memoryBytes))}${gpus}${times}`;
}

/** @param {QueuedJob} job */
function why({ waiting }) {
  return waiting && html`${waiting.message}${waiting.remedy && html`<div class="dim">${waiting.remedy}</div>`}`;
}

/** The likely time or range; else the latest, else the earliest. @param {{eta?: Eta}} props */
function Start({ eta }) {
  useSeconds(Boolean(eta));
  if (!eta) return html`<span class="dim">–</span>`;
  const range = [`earliest ${exact(eta.earliest)}`, eta.latest && `latest ${exact(eta.latest)}`, eta.basis];
  return html`<span title=${range.filter(Boolean).join("\n")}>${startWords(eta)}</span>`;
}

/** @param {Eta} eta */
function startWords(eta) {
  const { earliest, likely, latest } = eta;
  if (likely) return ago(likely) === "now" || Date.parse(likely) < Date.now() ? "now" : ago(likely);
  if (eta.likelyTo) return rangeWords(eta);
  if (latest) return ago(latest).replace(/^in /, "within ");
  return `not before ${ago(earliest)}`;
}
