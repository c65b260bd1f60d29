// The columns of the list of jobs, and which of them a person wants to see.

import { html, useState } from "../lib/ui.js";
import { jobHref, studyHref } from "../lib/address.js";
import { duration, shortName } from "../lib/format.js";
import { Dialog } from "../parts/dialog.js";
import { JobProgress } from "../parts/progress.js";
import { StateMark } from "../parts/state.js";
import { Length, Time } from "../parts/time.js";

/**
 * @typedef {{name: string, displayName: string, state: string, createTime: string, startTime?: string, endTime?: string,
 *   updateTime?: string, labels?: Record<string, string>, kind: string, why?: string, lacks?: string, submitter?: string,
 *   replicas: {running: number, wanted: number}, usage?: {cpuSeconds: number, gpuSeconds: number},
 *   progress?: import("../parts/progress.js").JobSteps}} JobRow
 * @typedef {import("../parts/table.js").Column<JobRow>} JobColumn
 */

const KEPT = "trainshed.jobs.columns";
const SHOWN = ["state", "display_name", "progress", "replicas", "kind", "submitter", "usage", "create_time", "duration"];
const KINDS = /** @type {Record<string, string>} */ ({
  custom: "custom job",
  pipeline: "pipeline",
  legacy: "older job",
  manifest: "Kubernetes",
  trial: "trial",
});
const HOUR = 3600;

/** @type {JobColumn[]} */
export const COLUMNS = [
  { name: "state", title: "State", canSort: true, cell: (job) => html`<${StateMark} state=${job.state} />` },
  { name: "display_name", title: "Name", canSort: true, isWide: true, cell: nameCell },
  { name: "progress", title: "Progress", cell: progressCell },
  { name: "replicas", title: "Replicas", isNumber: true, cell: replicasCell },
  { name: "kind", title: "Kind", cell: (job) => html`<span class="kind">${KINDS[job.kind] ?? job.kind}</span>` },
  { name: "submitter", title: "Who", cell: (job) => job.submitter ?? html`<span class="dim">–</span>` },
  { name: "usage", title: "Used", isNumber: true, cell: usageCell },
  { name: "create_time", title: "Submitted", isNumber: true, canSort: true, cell: (job) => html`<${Time} at=${job.createTime} isAgo />` },
  { name: "duration", title: "Ran", isNumber: true, cell: (job) => html`<${Length} from=${job.startTime} to=${job.endTime} />` },
  { name: "start_time", title: "Started", isNumber: true, canSort: true, cell: (job) => html`<${Time} at=${job.startTime} />` },
  { name: "end_time", title: "Ended", isNumber: true, canSort: true, cell: (job) => html`<${Time} at=${job.endTime} />` },
  { name: "update_time", title: "Changed", isNumber: true, canSort: true, cell: (job) => html`<${Time} at=${job.updateTime} isAgo />` },
  { name: "project", title: "Project", cell: (job) => job.name.split("/")[1] },
  { name: "location", title: "Location", cell: (job) => job.name.split("/")[3] },
  { name: "labels", title: "Labels", cell: labelsCell },
  { name: "id", title: "Id", cell: (job) => html`<code>${shortName(job.name)}</code>` },
];

/** @param {JobRow} job */
function nameCell(job) {
  const why = job.why ?? job.lacks;
  const link = job.kind === "study" ? studyHref(job.name) : jobHref(job.name);
  return html`<a class="job" href=${link}>${job.displayName}</a>
    ${why && html`<div class="why" title=${why}>${why}</div>`}`;
}

/** @param {JobRow} job */
function progressCell({ progress }) {
  return progress ? html`<${JobProgress} progress=${progress} />` : html`<span class="dim">–</span>`;
}

/** @param {JobRow} job */
function replicasCell({ replicas, state, kind }) {
  const isLive = /RUNNING|PENDING|CANCELLING/.test(state);
  const isStudy = kind === "study";
  const title = `${replicas.running} of ${replicas.wanted} ${isStudy ? "trials at once" : "replicas"} run`;
  if (isStudy && !isLive) return html`<span class="dim">–</span>`;
  return isLive ? html`<span title=${title}>${replicas.running} / ${replicas.wanted}</span>` : html`<span>${replicas.wanted}</span>`;
}

/** @param {JobRow} job */
function usageCell({ usage }) {
  if (!usage) return html`<span class="dim">–</span>`;
  const cpu = `${hours(usage.cpuSeconds)} CPU`;
  const gpu = usage.gpuSeconds ? `${hours(usage.gpuSeconds)} GPU` : "";
  return html`<span title=${`CPUs × time: ${cpu}; GPUs × time: ${gpu || "none"}`}>${gpu || cpu}</span>`;
}

/** @param {number} seconds */
const hours = (seconds) => (seconds < HOUR / 10 ? duration(seconds) : `${(seconds / HOUR).toFixed(seconds < 100 * HOUR ? 1 : 0)} h`);

/** @param {JobRow} job */
function labelsCell({ labels = {} }) {
  return html`<span class="labels">${Object.entries(labels).map(([key, value]) => html`<code key=${key}>${key}=${value}</code> `)}</span>`;
}

/** The columns that are shown, and how to choose others. They are kept in this browser. */
export function useColumns() {
  const [names, setNames] = useState(read);
  const choose = (/** @type {string[]} */ chosen) => {
    localStorage.setItem(KEPT, JSON.stringify(chosen));
    setNames(chosen);
  };
  return { columns: COLUMNS.filter(({ name }) => names.includes(name)), names, choose };
}

/** @returns {string[]} */
function read() {
  try {
    const kept = JSON.parse(localStorage.getItem(KEPT) ?? "null");
    if (Array.isArray(kept) && kept.includes("display_name")) return kept;
  } catch {
    // not ours, or half written
  }
  return SHOWN;
}

/** @param {{names: string[], choose: (names: string[]) => void, onClose: () => void}} props */
export function ColumnChoice({ names, choose, onClose }) {
  const toggle = (/** @type {string} */ name) =>
    choose(names.includes(name) ? names.filter((other) => other !== name) : [...names, name]);
  return html`<${Dialog} title="Columns" onClose=${onClose}>
    <fieldset class="column-choice">
      <legend class="unseen">Columns of the list</legend>
      ${COLUMNS.map(
        ({ name, title }) => html`<label key=${name}>
          <input type="checkbox" checked=${names.includes(name)} disabled=${name === "display_name"} onChange=${() => toggle(name)} />
          ${title}
        </label>`,
      )}
    </fieldset>
    <footer>
      <button type="button" onClick=${() => choose(SHOWN)}>As at first</button>
      <button type="button" class="main" onClick=${onClose}>Done</button>
    </footer>
  <//>`;
}
