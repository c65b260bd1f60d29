// What can be done to many jobs at once: a dialog that says what will happen, how far it is, and what failed.

import { html, useRef, useState } from "../lib/ui.js";
import { post, remove, sentOnce } from "../lib/api.js";
import { count } from "../lib/format.js";
import { jobHref } from "../lib/address.js";
import { Dialog } from "../parts/dialog.js";
import { isFinal } from "../parts/state.js";

/** @typedef {import("./jobs-columns.js").JobRow} JobRow */
/**
 * @typedef {{title: string, done: string, isBad: boolean, fits: (job: JobRow) => boolean, misfit: string,
 *   says: string, run: (job: JobRow) => Promise<any>}} Deed
 */

const AT_ONCE = 4; // requests: browsers open six connections, and one has the hints
const NAMED = 8; // jobs that are named in the question

/** @type {Record<string, Deed>} */
export const DEEDS = {
  cancel: {
    title: "Cancel",
    done: "cancelled",
    isBad: true,
    fits: (job) => !isFinal(job.state),
    misfit: "has ended already and stays as it is",
    says: "Programs that run are asked to stop, and are killed after their grace period. Logs, outputs and history stay.",
    run: (job) => post(`/v1/${job.name}:cancel`),
  },
  retry: {
    title: "Retry",
    done: "submitted again",
    isBad: false,
    fits: () => true,
    misfit: "",
    says: "Each is submitted once more as a new job, with the same spec and files. The old ones stay as they are.",
    run: (job) => post(`/v1/${job.name}:retry`, {}, undefined, { headers: sentOnce() }),
  },
  delete: {
    title: "Delete",
    done: "deleted",
    isBad: true,
    fits: (job) => isFinal(job.state),
    misfit: "has not ended: cancel it first",
    says: "Their logs, metrics and history are removed for good. What they stored in buckets stays.",
    run: (job) => remove(`/v1/${job.name}`),
  },
};

/** @param {number} number */
const jobs = (number) => `${count(number)} ${number === 1 ? "job" : "jobs"}`;

/** @param {{deed: Deed, chosen: JobRow[], onClose: () => void, onDone: (done: JobRow[]) => void}} props */
export function DeedOfMany({ deed, chosen, onClose, onDone }) {
  const fitting = chosen.filter(deed.fits);
  const [{ done, failures, isRunning }, setState] = useState({
    done: 0,
    failures: /** @type {{job: JobRow, message: string}[]} */ ([]),
    isRunning: false,
  });
  const wanted = useRef(fitting); // the states of jobs change meanwhile
  const isStopped = useRef(false);
  const start = async () => {
    const all = (wanted.current = fitting);
    setState({ done: 0, failures: [], isRunning: true });
    const good = await forEach(all, deed, isStopped, (change) => setState((before) => change(before)));
    setState((before) => ({ ...before, isRunning: false }));
    onDone(good);
    if (good.length === all.length) onClose();
  };
  const total = wanted.current.length;
  const isOver = !isRunning && done + failures.length > 0;
  const close = () => {
    isStopped.current = true;
    onClose();
  };
  return html`<${Dialog} title=${`${deed.title} ${jobs(isRunning || isOver ? total : fitting.length)}`} onClose=${close}>
    ${isRunning || isOver
      ? html`<${Progress} deed=${deed} done=${done} total=${total} failures=${failures} />`
      : html`<${Question} deed=${deed} fitting=${fitting} left=${chosen.length - fitting.length} />`}
    <footer>
      <button type="button" onClick=${close}>${isRunning ? "Stop here" : isOver ? "Close" : "Leave them"}</button>
      ${!isRunning && !isOver && html`<button type="button" class=${deed.isBad ? "bad" : "main"} disabled=${!fitting.length} onClick=${start}>
        ${deed.title} ${jobs(fitting.length)}
      </button>`}
    </footer>
  <//>`;
}

/** @param {{deed: Deed, fitting: JobRow[], left: number}} props */
function Question({ deed, fitting, left }) {
  return html`<p>${deed.says}</p>
    <ul class="named">
      ${fitting.slice(0, NAMED).map((job) => html`<li key=${job.name}>${job.displayName}</li>`)}
      ${fitting.length > NAMED && html`<li class="dim">and ${jobs(fitting.length - NAMED)} more</li>`}
    </ul>
    ${left > 0 && html`<p class="dim">${left === 1 ? "One more is chosen, which" : `${count(left)} more are chosen; each`} ${deed.misfit}.</p>`}`;
}

/** @param {{deed: Deed, done: number, total: number, failures: {job: JobRow, message: string}[]}} props */
function Progress({ deed, done, total, failures }) {
  return html`<progress max=${total} value=${done + failures.length} aria-label="Progress"></progress>
    <p role="status">${count(done)} of ${jobs(total)} ${deed.done}${failures.length ? `, ${count(failures.length)} failed` : ""}.</p>
    ${failures.length > 0 &&
    html`<ul class="failures">
      ${failures.map(({ job, message }) => html`<li key=${job.name}><a href=${jobHref(job.name)}>${job.displayName}</a>: ${message}</li>`)}
    </ul>`}`;
}

/**
 * Runs the deed for each job, a few at a time. The jobs for which it succeeded.
 * @param {JobRow[]} all
 * @param {Deed} deed
 * @param {{current: boolean}} isStopped
 * @param {(change: (before: any) => any) => void} tell
 */
async function forEach(all, deed, isStopped, tell) {
  const queue = [...all];
  /** @type {JobRow[]} */
  const good = [];
  const work = async () => {
    for (let job = queue.shift(); job && !isStopped.current; job = queue.shift()) {
      const current = job;
      try {
        await deed.run(current);
        good.push(current);
        tell((before) => ({ ...before, done: before.done + 1 }));
      } catch (error) {
        const { message } = /** @type {Error} */ (error);
        tell((before) => ({ ...before, failures: [...before.failures, { job: current, message }] }));
      }
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
  return good;
}
