// What a person can do to a job: each action says first what happens.

import { html, useState } from "../lib/ui.js";
import { go, href, jobHref } from "../lib/address.js";
import { post, remove, sentOnce } from "../lib/api.js";
import { bodyOf, resubmit, withChange } from "../lib/resubmit.js";
import { DeedDialog } from "../parts/deed.js";
import { Menu } from "../parts/menu.js";
import { isFinal } from "../parts/state.js";

const HOLD = { field: "jobSpec.scheduling.holdOnFailure", to: "1800s" };

/** @typedef {{title: string, deed: string, says: string, isBad?: boolean, run: (job: any) => Promise<any>, then: Then}} Action */
/** @typedef {(outcome: any, reload: () => void) => void} Then */

/** @type {Then} */
const openNew = (made) => go(jobHref(made.name));
/** @type {Then} */
const readAgain = (_, reload) => reload();

/** @type {Record<string, Action>} */
const ACTIONS = {
  cancel: {
    title: "Cancel this job?",
    deed: "Cancel the job",
    says: "Programs that run are asked to stop, and killed after their grace period. Its log, outputs and history stay.",
    isBad: true,
    run: (job) => post(`/v1/${job.name}:cancel`),
    then: readAgain,
  },
  endHold: {
    title: "End the hold?",
    deed: "End the hold",
    says: "Replicas that are kept for a look are removed with their files, and shells in them end. Log, outputs and history stay.",
    isBad: true,
    run: (job) => post(`/v1/${job.name}:cancel`),
    then: readAgain,
  },
  retry: {
    title: "Submit this job again?",
    deed: "Submit again",
    says: "It becomes a new job with the same spec, files and secrets. This one stays as it is.",
    run: (job) => post(`/v1/${job.name}:retry`, {}, undefined, { headers: sentOnce() }),
    then: openNew,
  },
  retryAndHold: {
    title: "Submit again, and keep it if it fails?",
    deed: "Submit again",
    says:
      "It becomes a new job with the same spec, files and secrets. If it fails, its replicas are kept for 30 minutes " +
      "with all their files, and a shell can be opened in them. They occupy their machines meanwhile.",
    run: (job) => resubmit(job, withChange(bodyOf(job), HOLD)),
    then: openNew,
  },
  delete: {
    title: "Delete this job?",
    deed: "Delete the job",
    says: "Its log, graphs and history are removed for good. What it stored in buckets stays.",
    isBad: true,
    run: (job) => remove(`/v1/${job.name}`),
    then: () => go(href(["jobs"])),
  },
};

/** @param {{job: any, status: any, reload: () => void}} props */
export function JobActions({ job, status, reload }) {
  const [asked, setAsked] = useState("");
  const action = ACTIONS[asked];
  const isOver = isFinal(job.state);
  const isHeld = status.waiting?.reason === "HELD";
  const isCancelling = Boolean(status.cancelAskedTime);
  const ask = (/** @type {string} */ name) => () => setAsked(name);
  return html`<div class="job-actions">
    ${isHeld && html`<button type="button" onClick=${ask("endHold")}>End the hold</button>`}
    ${!isOver &&
    !isHeld &&
    html`<button type="button" class="bad" disabled=${isCancelling} onClick=${ask("cancel")}>
      ${isCancelling ? "Cancelling" : "Cancel"}
    </button>`}
    <button type="button" onClick=${ask("retry")}>Retry</button>
    <a class="button" href=${href(["new"], { from: job.name })}>Clone with changes</a>
    <${Menu}
      title="More"
      deeds=${[
        { title: "Retry, keep it if it fails", onClick: ask("retryAndHold") },
        { title: "Copy link", onClick: copyLink },
        { title: "Delete", isBad: true, onClick: ask("delete"), why: isOver ? undefined : "It has not ended: cancel it first." },
      ]}
    />
    ${action &&
    html`<${DeedDialog}
      key=${asked}
      title=${action.title}
      deed=${action.deed}
      isBad=${action.isBad}
      run=${() => action.run(job)}
      onDone=${(/** @type {any} */ outcome) => action.then(outcome, reload)}
      onClose=${() => setAsked("")}
    >
      <p><strong>${job.displayName}</strong></p>
      <p>${action.says}</p>
    <//>`}
  </div>`;
}

const copyLink = () => navigator.clipboard?.writeText(location.href);
