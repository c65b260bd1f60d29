// Why: the verdict of a failed job, the reasons of one that waits and what would start it, a suspected hang.

import { html, useState } from "../lib/ui.js";
import { go, jobHref } from "../lib/address.js";
import { post } from "../lib/api.js";
import { ago, clock, rangeWords } from "../lib/format.js";
import { idHref, nameOf } from "../lib/job-by-id.js";
import { bodyOf, resubmit, withChange } from "../lib/resubmit.js";
import { DeedDialog } from "../parts/deed.js";
import { isFinal } from "../parts/state.js";
import { useSeconds } from "../parts/time.js";

/** @typedef {{reason: string, message: string, remedy?: string, job?: string, because?: Ground[]}} Ground */
/** @typedef {{field: string, from: string, to: string, message: string, costs: string, job?: string}} Change */

/** @type {Record<string, string>} who pays for a change */
const COSTS = {
  NOBODY: "costs nobody anything",
  ITSELF: "the job has less",
  QUEUE: "others wait longer",
  OTHER: "ends another job",
};

/** @param {{job: any, status: any, why?: any}} props */
export function Why({ job, status, why }) {
  const isOver = isFinal(job.state);
  if (status.failure && isOver) return html`<${Verdict} job=${job} failure=${status.failure} />`;
  return html`${status.hang && html`<${Hang} job=${job} hang=${status.hang} />`}
    ${status.waiting?.reason === "HELD" && html`<${Held} job=${job} waiting=${status.waiting} />`}
    ${!isOver && status.waiting && status.waiting.reason !== "HELD" && html`<${Waits} job=${job} status=${status} why=${why} />`}`;
}

/** @param {{job: any, failure: any}} props */
function Verdict({ job, failure }) {
  const { verdict } = failure;
  const task = verdict?.task ?? failure.task;
  const isCancelled = /CANCELLED$/.test(job.state);
  return html`<section class="notice ${isCancelled ? "" : "bad"}" aria-label=${isCancelled ? "Why it ended" : "Why it failed"}>
    <h2>${titleOf(failure)}</h2>
    ${verdict && html`<p>${failure.message}</p>`}
    ${verdict &&
    html`<p>
      ${verdict.advice} ${verdict.retryMayHelp ? "A retry may help." : "A retry would most likely fail the same way."}
      <span class="dim"> [${verdict.cause}]</span>
    </p>`}
    ${verdict?.lines.length > 0 && html`<pre class="evidence" tabindex="0" aria-label="The lines that show it">${verdict.lines.join("\n")}</pre>`}
    ${task && html`<p><a class="button" href=${jobHref(job.name, "logs", { task })}>The log of ${task}</a></p>`}
  </section>`;
}

/** What ended it. The last line of a program that only exits says too little. @param {any} failure */
function titleOf({ verdict, message }) {
  if (!verdict) return message;
  return verdict.cause === "PROGRAM_EXIT" ? message.split(":")[0] : verdict.summary;
}

/** @param {{job: any, hang: any}} props */
function Hang({ job, hang }) {
  return html`<section class="notice warn" aria-label="It seems to hang">
    <h2>It seems to hang</h2>
    <p>${hang.message}</p>
    <p><a class="button main" href=${jobHref(job.name, "stacks")}>See where each replica is</a></p>
  </section>`;
}

/** @param {{job: any, waiting: any}} props */
function Held({ job, waiting }) {
  return html`<section class="notice warn" aria-label="Held for a look">
    <h2>${waiting.message}</h2>
    <p><a class="button main" href=${jobHref(job.name, "shell")}>Open a shell in it</a></p>
  </section>`;
}

/** @param {{job: any, status: any, why?: any}} props */
function Waits({ job, status, why }) {
  const ground = why?.because ?? status.waiting;
  const place = why?.position ? `place ${why.position} of ${why.queueLength} in the queue` : "";
  return html`<section class="notice wait" aria-label="Why it waits">
    <h2>${place ? `It waits: ${place}` : "It waits"}</h2>
    <p>${ground.message} <span class="dim">[${ground.reason}]</span></p>
    <${Grounds} grounds=${ground.because ?? []} />
    ${ground.remedy && html`<p>${ground.remedy}</p>`}
    ${why?.eta && html`<${Eta} eta=${why.eta} />`}
    ${why && why.position && html`<${Changes} job=${job} changes=${why.changes ?? []} would=${why.would} />`}
  </section>`;
}

/** @param {{grounds: Ground[]}} props @returns {any} */
function Grounds({ grounds }) {
  if (!grounds.length) return null;
  return html`<ul class="grounds">
    ${grounds.map(
      (ground, at) => html`<li key=${at}>
        ${ground.message} ${ground.job && html`<a href=${idHref(ground.job)} aria-label=${`Open job ${ground.job}`}>open</a>`}
        <${Grounds} grounds=${ground.because ?? []} />
      </li>`,
    )}
  </ul>`;
}

/** @param {{eta: any}} props */
function Eta({ eta }) {
  useSeconds(true);
  const rows = [["likely", "likely"], ["earliest", "at the earliest"], ["latest", "at the latest"]].filter(([key]) => eta[key]);
  const words = rows.map(([key, title]) => `${title} ${Date.parse(eta[key]) < Date.now() ? "now" : `${ago(eta[key])} (${clock(eta[key])})`}`);
  if (eta.likelyTo) words.unshift(`likely ${rangeWords(eta)} (${clock(eta.likelyFrom)} to ${clock(eta.likelyTo)})`);
  return html`<p><strong>It starts</strong> ${words.join(", ")}. <span class="dim">${eta.basis}</span></p>`;
}

/** @param {{job: any, changes: Change[], would: string}} props */
function Changes({ job, changes, would }) {
  const [asked, setAsked] = useState(/** @type {Change | null} */ (null));
  if (!changes.length) return would === "wait" ? html`<p>No single change would start it now.</p>` : null;
  return html`<h3>What would start it now</h3>
    <ul class="changes">
      ${changes.map(
        (change) => html`<li key=${`${change.field} ${change.job ?? ""}`}>
          <button type="button" onClick=${() => setAsked(change)}>
            ${change.field === "cancel" ? "Cancel that job" : `${shortField(change.field)}: ${change.to}`}
          </button>
          <span>${change.message} <span class="dim">(${COSTS[change.costs] ?? change.costs})</span></span>
        </li>`,
      )}
    </ul>
    ${asked && html`<${ChangeDialog} job=${job} change=${asked} onClose=${() => setAsked(null)} />`}`;
}

/** @param {string} field */
const shortField = (field) => field.slice(field.lastIndexOf(".") + 1);

/** @param {{job: any, change: Change, onClose: () => void}} props */
function ChangeDialog({ job, change, onClose }) {
  const other = change.field === "cancel" ? change.job : undefined;
  const says = other
    ? `Job ${other} is cancelled: its programs are asked to stop, and killed after their grace period. This job then starts.`
    : `The job is submitted again as a new one with ${change.field}: ${change.to} (now ${change.from}), and this one is cancelled.`;
  return html`<${DeedDialog}
    title=${other ? "Cancel the other job?" : "Submit it with this change?"}
    deed=${other ? "Cancel that job" : "Submit it so"}
    isBad=${Boolean(other)}
    run=${() => (other ? cancelOther(other) : submitChanged(job, change))}
    onDone=${(/** @type {any} */ made) => made?.name && go(jobHref(made.name))}
    onClose=${onClose}
  >
    <p>${change.message}</p>
    <p>${says}</p>
  <//>`;
}

/** @param {string} id */
async function cancelOther(id) {
  const name = await nameOf(id);
  if (!name) throw new Error(`Job ${id} is not there any more.`);
  await post(`/v1/${name}:cancel`);
}

/** The new one first: where it is refused, the old one stays as it is. @param {any} job @param {Change} change */
async function submitChanged(job, change) {
  const made = await resubmit(job, withChange(bodyOf(job), change));
  await post(`/v1/${job.name}:cancel`);
  return made;
}
