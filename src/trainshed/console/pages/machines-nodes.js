// The machines as tables: what each has and does, its GPUs, and which replica holds what.

import { html } from "../lib/ui.js";
import { jobHref } from "../lib/address.js";
import { bytes, percent } from "../lib/format.js";
import { Bar } from "../parts/bar.js";
import { Table } from "../parts/table.js";

/**
 * @typedef {{cpus: number, memoryBytes: string, gpus: number}} Amount
 * @typedef {{usedBytes: string, sizeBytes: string}} BytesInUse
 * @typedef {{job: string, displayName: string, task: string, cpus: number, cpusUsed?: number, memoryBytes: string,
 *   memoryBytesUsed?: string, gpus: string[], node: string}} Holder
 * @typedef {{device: string, free: boolean, job?: string, displayName?: string, task?: string, share?: number,
 *   memoryBytes?: string, memoryBytesUsed?: string, node: string, kind: string}} Gpu
 * @typedef {{name: string, backends: string[], capacity: Amount, free: Amount, holders: Holder[], gpuName?: string,
 *   gpus?: Gpu[], use: {cpus?: {used: number, size: number}, memory?: BytesInUse, disk?: BytesInUse}}} MachineNode
 */

/** Few digits: 0.25, 7.5, 96. @param {number} value */
const short = (value) => String(Number(value.toFixed(value < 10 ? 2 : 1)));

/** @param {{nodes: MachineNode[]}} props */
export function Nodes({ nodes }) {
  const columns = [
    { name: "name", title: "Machine", cell: name },
    { name: "cpus", title: "CPUs", cell: cpus },
    { name: "memory", title: "Memory", cell: memory },
    ...(nodes.some((node) => node.capacity.gpus) ? [{ name: "gpus", title: "GPUs", cell: gpus }] : []),
    { name: "disk", title: "Disk", cell: disk },
  ];
  return html`<div class="stacked nodes">
    <${Table} caption="Machines" columns=${columns} rows=${nodes} rowKey=${(/** @type {MachineNode} */ node) => node.name} />
  </div>
  <p class="legend dim">
    <svg viewBox="0 0 12 8" aria-hidden="true"><rect class="held" width="12" height="8" /></svg> held by jobs
    <svg viewBox="0 0 12 8" aria-hidden="true"><rect class="used" width="12" height="8" /></svg> in use, by whichever program
  </p>`;
}

/** @param {MachineNode} node */
const name = (node) => html`<strong>${node.name}</strong><div class="dim">${node.backends.join(", ")}</div>`;

/** @param {MachineNode} node */
function cpus({ capacity, free, use }) {
  const used = use.cpus && use.cpus.used / use.cpus.size;
  return html`<${Bar} held=${1 - free.cpus / capacity.cpus} used=${used}>
    <span>${short(free.cpus)} of ${short(capacity.cpus)} free</span>
    ${use.cpus && html`<span class="dim">${short(use.cpus.used)} busy</span>`}
  <//>`;
}

/** @param {MachineNode} node */
function memory({ capacity, free, use }) {
  const held = 1 - Number(free.memoryBytes) / Number(capacity.memoryBytes);
  return html`<${Bar} held=${held} used=${share(use.memory)}>
    <span>${bytes(Number(free.memoryBytes))} of ${bytes(Number(capacity.memoryBytes))} free</span>
    ${use.memory && html`<span class="dim">${bytes(Number(use.memory.usedBytes))} in use</span>`}
  <//>`;
}

/** @param {MachineNode} node */
function gpus({ capacity, free, gpuName }) {
  if (!capacity.gpus) return html`<span class="dim">none</span>`;
  return html`<${Bar} held=${1 - free.gpus / capacity.gpus}>
    <span>${free.gpus} of ${capacity.gpus} free</span><span class="dim">${gpuName}</span>
  <//>`;
}

/** @param {MachineNode} node */
function disk({ use }) {
  if (!use.disk) return html`<span class="dim">not known</span>`;
  const left = Number(use.disk.sizeBytes) - Number(use.disk.usedBytes);
  return html`<${Bar} used=${share(use.disk)}>
    <span>${bytes(left)} of ${bytes(Number(use.disk.sizeBytes))} free</span>
  <//>`;
}

/** @param {BytesInUse | undefined} part */
const share = (part) => part && Number(part.usedBytes) / Number(part.sizeBytes);

/** Each GPU with who holds it and what it does; nothing where there are none. @param {{nodes: MachineNode[]}} props */
export function Gpus({ nodes }) {
  const rows = nodes.flatMap((node) => (node.gpus ?? []).map((gpu) => ({ ...gpu, node: node.name, kind: node.gpuName ?? "" })));
  if (!rows.length) return null;
  const columns = [
    { name: "device", title: "GPU", cell: (/** @type {Gpu} */ gpu) => html`${onMany(nodes, gpu.node)}${gpu.device} <span class="dim">${gpu.kind}</span>` },
    { name: "holder", title: "Held by", isWide: true, cell: gpuHolder },
    { name: "share", title: "Use", cell: gpuUse },
    { name: "memory", title: "Memory", cell: gpuMemory },
  ];
  return html`<h2>GPUs</h2>
    <div class="stacked">
      <${Table} caption="GPUs" columns=${columns} rows=${rows} rowKey=${(/** @type {Gpu} */ gpu) => `${gpu.node} ${gpu.device}`} />
    </div>`;
}

/** @param {Gpu} gpu */
const gpuHolder = (gpu) =>
  gpu.job === "" ? html`<span class="dim">${gpu.displayName}</span>` : gpu.job ? html`<a href=${jobHref(gpu.job)}>${gpu.displayName}</a><div class="dim">${gpu.task}</div>` : html`<span class="dim">free</span>`;

/** @param {Gpu} gpu */
const gpuUse = (gpu) =>
  gpu.share === undefined ? html`<span class="dim">not known</span>` : html`<${Bar} used=${gpu.share}>${percent(gpu.share)}<//>`;

/** @param {Gpu} gpu */
function gpuMemory(gpu) {
  if (gpu.memoryBytesUsed === undefined) return html`<span class="dim">not known</span>`;
  const used = Number(gpu.memoryBytesUsed);
  if (!gpu.memoryBytes) return bytes(used);
  return html`<${Bar} used=${used / Number(gpu.memoryBytes)}>${bytes(used)} of ${bytes(Number(gpu.memoryBytes))}<//>`;
}

/** The name of the machine, where there are several. @param {MachineNode[]} nodes @param {string} node */
const onMany = (nodes, node) => (nodes.length > 1 ? `${node} · ` : "");

/** Which replica holds what, and what it uses of that. @param {{nodes: MachineNode[]}} props */
export function Holders({ nodes }) {
  const rows = nodes.flatMap((node) => node.holders.map((holder) => ({ ...holder, node: node.name })));
  const columns = [
    { name: "job", title: "Job", isWide: true, cell: holderName },
    { name: "task", title: "Replica", cell: (/** @type {Holder} */ row) => html`${onMany(nodes, row.node)}${row.task}` },
    { name: "cpus", title: "CPUs", cell: holderCpus },
    { name: "memory", title: "Memory", cell: holderMemory },
    ...(rows.some((row) => row.gpus.length) ? [{ name: "gpus", title: "GPUs", cell: (/** @type {Holder} */ row) => row.gpus.join(", ") || html`<span class="dim">–</span>` }] : []),
  ];
  return html`<section aria-labelledby="holders">
    <h2 id="holders">Who holds what</h2>
    ${rows.length === 0
      ? html`<p class="dim">Nothing is held: the next job that fits starts at once.</p>`
      : html`<div class="stacked holders">
          <${Table} caption="Replicas and what they hold" columns=${columns} rows=${rows} rowKey=${(/** @type {Holder} */ row) => `${row.job} ${row.task} ${rows.indexOf(/** @type {any} */ (row))}`} />
        </div>`}
  </section>`;
}

/** Without a link where it is a job that we may not see. @param {Holder} row */
const holderName = (row) =>
  row.job ? html`<a href=${jobHref(row.job)}>${row.displayName}</a>` : html`<span class="dim">${row.displayName}</span>`;

/** @param {Holder} row */
const holderCpus = ({ cpus, cpusUsed }) =>
  html`<${Bar} held=${1} used=${cpusUsed === undefined ? undefined : cpusUsed / cpus}>
    <span>${short(cpus)}</span>${cpusUsed !== undefined && html`<span class="dim">uses ${short(cpusUsed)}</span>`}
  <//>`;

/** @param {Holder} row */
const holderMemory = ({ memoryBytes, memoryBytesUsed }) =>
  html`<${Bar} held=${1} used=${memoryBytesUsed === undefined ? undefined : Number(memoryBytesUsed) / Number(memoryBytes)}>
    <span>${bytes(Number(memoryBytes))}</span>
    ${memoryBytesUsed !== undefined && html`<span class="dim">uses ${bytes(Number(memoryBytesUsed))}</span>`}
  <//>`;
