// The replicas of the current attempt, with what leads on from each.

import { html } from "../lib/ui.js";
import { jobHref } from "../lib/address.js";
import { bytes, count } from "../lib/format.js";
import { isFinal, StateMark } from "../parts/state.js";
import { Table } from "../parts/table.js";
import { Length, Time } from "../parts/time.js";

/** @param {{job: any, status: any}} props */
export function Replicas({ job, status }) {
  const wanted = (job.jobSpec.workerPoolSpecs ?? []).reduce((/** @type {number} */ sum, /** @type {any} */ pool) => sum + Number(pool.replicaCount ?? 0), 0);
  if (!status.replicas.length)
    return html`<section>
      <h2>Replicas</h2>
      <p class="dim">${isFinal(job.state) ? "None: the job ended before any started." : `None yet: ${count(wanted)} ${wanted === 1 ? "starts" : "start"} when the job does.`}</p>
    </section>`;
  return html`<section>
    <h2>Replicas</h2>
    <${Table} caption="Replicas" columns=${columns(job)} rows=${status.replicas} rowKey=${(/** @type {any} */ replica) => replica.task} />
  </section>`;
}

/** @param {any} job @returns {import("../parts/table.js").Column<any>[]} */
function columns(job) {
  return [
    { name: "task", title: "Replica", cell: (replica) => html`<span class="nowrap">${replica.task}</span>` },
    { name: "state", title: "State", cell: (replica) => html`<${StateMark} state=${stateOf(replica)} />` },
    { name: "exit", title: "Exit", cell: (replica) => replica.exit?.text ?? "" },
    { name: "restarts", title: "Restarts", isNumber: true, cell: (replica) => replica.restarts || "" },
    { name: "node", title: "Machine", cell: (replica) => replica.node ?? "" },
    { name: "cpus", title: "CPUs", isNumber: true, cell: (replica) => replica.cpus ?? "" },
    { name: "memory", title: "Memory", isNumber: true, cell: (replica) => (replica.memoryBytes ? bytes(Number(replica.memoryBytes)) : "") },
    { name: "gpus", title: "GPUs", isNumber: true, cell: (replica) => replica.gpus?.join(", ") ?? "" },
    { name: "started", title: "Started", isNumber: true, cell: (replica) => html`<${Time} at=${replica.startTime} />` },
    { name: "ran", title: "Ran", isNumber: true, cell: (replica) => html`<${Length} from=${replica.startTime} to=${replica.endTime} />` },
    { name: "more", title: "See", cell: (replica) => links(job, replica) },
  ];
}

/** @param {any} replica */
function stateOf({ phase, exit }) {
  if (phase !== "ENDED") return phase;
  return exit?.code === 0 ? "SUCCEEDED" : exit?.signal ? "KILLED" : "FAILED";
}

/** @param {any} job @param {any} replica */
function links(job, { task, phase }) {
  const tabs = phase === "RUNNING" ? ["logs", "graphs", "shell"] : ["logs", "graphs"];
  return html`<span class="nowrap">${tabs.map((tab) => html`<a key=${tab} href=${jobHref(job.name, tab, { task })} aria-label=${`${tab} of ${task}`}>${tab}</a> `)}</span>`;
}
