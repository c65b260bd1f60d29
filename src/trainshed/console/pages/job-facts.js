// What the job is made of: pools, machines, images, rules, labels, what it used so far.

import { html } from "../lib/ui.js";
import { jobHref } from "../lib/address.js";
import { duration } from "../lib/format.js";
import { Table } from "../parts/table.js";

const ROLES = ["primary", "workers", "servers", "evaluator"];
const HOUR = 3600;
/** @type {Record<string, string>} */
const STANDINGS = {
  GUARANTEED: "guaranteed: within what its share has",
  BORROWED: "borrowed: it is stopped where another share wants its own back",
  SPOT: "spot: it is the first to be stopped",
};

/** @param {{job: any, status: any}} props */
export function Facts({ job, status }) {
  const pools = (job.jobSpec.workerPoolSpecs ?? [])
    .map((/** @type {any} */ pool, /** @type {number} */ number) => ({ ...pool, number }))
    .filter((/** @type {any} */ pool) => Number(pool.replicaCount ?? 0));
  return html`<section>
    <h2>What it is made of</h2>
    <${Table} caption="Pools" columns=${COLUMNS} rows=${pools} rowKey=${(/** @type {any} */ pool) => String(pool.number)} />
    <dl class="facts">${facts(job, status).map(([title, value]) => html`<div key=${title}><dt>${title}</dt><dd>${value}</dd></div>`)}</dl>
  </section>`;
}

/** @param {any} job @param {any} status @returns {[string, unknown][]} */
function facts(job, status) {
  const { code, requirements, scheduling = {}, workingDirectory } = job.jobSpec;
  const labels = Object.entries(job.labels ?? {});
  const used = job.usage ?? { cpuSeconds: 0, gpuSeconds: 0 };
  const gpu = used.gpuSeconds ? `, ${hours(used.gpuSeconds)} of GPUs` : "";
  /** @type {[string, unknown][]} */
  const all = [
    ["Used so far", used.cpuSeconds ? `${hours(used.cpuSeconds)} of CPUs${gpu}` : ""],
    ["Standing", STANDINGS[status.standing] ?? ""],
    ["Labels", labels.length ? labels.map(([key, value]) => html`<code key=${key}>${key}=${value}</code> `) : ""],
    ["Code", code ? html`<a href=${jobHref(job.name, "code")}><code>${code.slice(0, 12)}</code></a> ${workingDirectory ?? ""}` : ""],
    ["Requirements", requirements?.join(", ") ?? ""],
    ["Rules", Object.entries(scheduling).map(([key, value]) => html`<code key=${key}>${key}: ${typeof value === "object" ? JSON.stringify(value) : String(value)}</code> `)],
    ["Cut to fit", (status.cuts ?? []).map((/** @type {any} */ cut) => (typeof cut === "string" ? cut : JSON.stringify(cut))).join(" ")],
    ["Pipeline", status.pipeline ?? ""],
    ["Model", status.model ?? ""],
  ];
  return all.filter(([, value]) => value && (!Array.isArray(value) || value.length));
}

/** @param {number} seconds */
const hours = (seconds) => (seconds < HOUR / 10 ? duration(seconds) : `${(seconds / HOUR).toFixed(1)} h`);

/** @type {import("../parts/table.js").Column<any>[]} */
const COLUMNS = [
  { name: "pool", title: "Pool", cell: (pool) => html`<span class="nowrap">${pool.number} ${ROLES[pool.number] ?? ""}</span>` },
  { name: "replicas", title: "Replicas", isNumber: true, cell: (pool) => pool.replicaCount },
  { name: "machine", title: "Machine", cell: (pool) => html`<span class="nowrap">${pool.machineSpec?.machineType ?? ""}</span>` },
  { name: "gpus", title: "GPUs", cell: ({ machineSpec: machine }) => (machine?.acceleratorType ? `${machine.acceleratorCount ?? 1} ${machine.acceleratorType}` : "") },
  { name: "image", title: "Image or runtime", cell: (pool) => pool.containerSpec?.imageUri ?? pool.pythonPackageSpec?.executorImageUri ?? "" },
  { name: "runs", title: "Runs", isWide: true, cell: (pool) => html`<code class="runs">${commandOf(pool)}</code>` },
];

/** For eyes, not for a shell. @param {any} pool */
function commandOf({ containerSpec, pythonPackageSpec }) {
  const module = pythonPackageSpec?.pythonModule ? ["python", "-m", pythonPackageSpec.pythonModule] : [];
  const words = [...module, ...(containerSpec?.command ?? []), ...((containerSpec ?? pythonPackageSpec)?.args ?? [])];
  return words.join(" ");
}
