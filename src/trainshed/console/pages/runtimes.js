// Runtimes: the environments that jobs run in. What is built, how far builds are; build, remove, remove all unused.

import { html, useState } from "../lib/ui.js";
import { EVERYWHERE, get, post, remove } from "../lib/api.js";
import { useDeed } from "../lib/deed.js";
import { bytes } from "../lib/format.js";
import { useLive } from "../lib/hints.js";
import { Confirm } from "../parts/dialog.js";
import { JobLinks } from "../parts/job-links.js";
import { Failure, Loading, Notice } from "../parts/notice.js";
import { ProgressLine } from "../parts/progress.js";
import { Table } from "../parts/table.js";
import { Time } from "../parts/time.js";
import { useBuild } from "./runtimes-build.js";
import { BuildForm } from "./runtimes-form.js";

const RUNTIMES = `${EVERYWHERE}/runtimes`;

/**
 * @typedef {{id: string, name: string, state: "READY" | "BUILDING" | "FAILED" | "ABSENT", python: string,
 *   requirements?: string[], packages?: {uri: string}[], sizeBytes?: string, lastUseTime?: string, message?: string,
 *   lines?: string[], jobs?: string[], warm?: {state: string, memoryBytes: string, uses: number}}} Runtime
 */

export default function RuntimesPage() {
  const { data, error, reload } = useLive((signal) => get(RUNTIMES, {}, { signal }), [], { metrics: "-" });
  const [chosen, setChosen] = useState("");
  const [words, setWords] = useState("");
  const runtimes = /** @type {Runtime[]} */ (data?.runtimes ?? []);
  const building = useBuild(runtimes.find((runtime) => runtime.state === "BUILDING"), reload);
  if (error && !data) return html`<h1>Runtimes</h1><${Failure} error=${error} retry=${reload} />`;
  if (!data) return html`<h1>Runtimes</h1><${Loading} />`;
  const shown = runtimes.map((runtime) => (building?.id === runtime.id ? building : runtime));
  const onBuilt = () => {
    setChosen("");
    reload();
  };
  return html`<h1>Runtimes</h1>
    <p class="dim">Environments that stand in for images, where jobs run as processes. Jobs have them built when they need them.</p>
    <p role="status" class="said">${words}</p>
    <${Builds} runtimes=${shown.filter((runtime) => runtime.state === "BUILDING")} />
    <${Failed} runtimes=${shown.filter((runtime) => runtime.state === "FAILED")} />
    <${RuntimeTable} runtimes=${shown} reload=${reload} onBuild=${setChosen} say=${setWords} />
    <${BuildForm} key=${chosen} name=${chosen} names=${[...new Set(runtimes.map((runtime) => runtime.name))]} onBuilt=${onBuilt} />`;
}

/** What is being built, with the last lines of its log. @param {{runtimes: Runtime[]}} props */
function Builds({ runtimes }) {
  return html`${runtimes.map(
    (runtime) => html`<section key=${runtime.id} class="build" aria-label=${`Build of ${runtime.name}`}>
      <${ProgressLine} step=${{ message: runtime.message ?? `Building ${runtime.name}` }} />
      ${runtime.lines?.length ? html`<pre class="lines" tabindex="0" aria-label="The last lines of the build">${runtime.lines.join("\n")}</pre>` : ""}
    </section>`,
  )}`;
}

/** @param {{runtimes: Runtime[]}} props */
function Failed({ runtimes }) {
  return html`${runtimes.map(
    (runtime) => html`<${Notice} key=${runtime.id} kind="bad">
      <p>${runtime.message ?? `${runtime.name} could not be built.`}</p>
      ${runtime.lines?.length ? html`<pre class="lines" tabindex="0" aria-label="The last lines of the build that failed">${runtime.lines.join("\n")}</pre>` : ""}
    <//>`,
  )}`;
}

/** @param {{runtimes: Runtime[], reload: () => void, onBuild: (name: string) => void, say: (words: string) => void}} props */
function RuntimeTable({ runtimes, reload, onBuild, say }) {
  const [asked, setAsked] = useState(/** @type {Runtime | "unused" | null} */ (null));
  const columns = [
    { name: "state", title: "State", cell: stateCell },
    { name: "name", title: "Name", isWide: true, cell: nameCell },
    { name: "python", title: "Python", cell: (/** @type {Runtime} */ runtime) => runtime.python },
    { name: "size", title: "Size", isNumber: true, cell: (/** @type {Runtime} */ runtime) => (runtime.sizeBytes ? bytes(Number(runtime.sizeBytes)) : dash) },
    { name: "used", title: "Last used", cell: (/** @type {Runtime} */ runtime) => html`<${Time} at=${runtime.lastUseTime} isAgo />` },
    { name: "warm", title: "Warm", cell: warmCell },
    { name: "jobs", title: "Needed by", cell: (/** @type {Runtime} */ runtime) => (runtime.id ? html`<${JobLinks} jobs=${runtime.jobs} />` : html`<span class="dim">the server itself</span>`) },
    { name: "deeds", title: "Change", cell: (/** @type {Runtime} */ runtime) => html`<${Deed} runtime=${runtime} onBuild=${onBuild} onRemove=${() => setAsked(runtime)} />` },
  ];
  const unused = runtimes.filter((runtime) => runtime.id && !runtime.jobs && ["READY", "FAILED"].includes(runtime.state));
  return html`<div class="toolbar">
      <button type="button" disabled=${!unused.length} onClick=${() => setAsked("unused")}>Remove unused …</button>
    </div>
    <div class="stacked runtimes"><${Table} caption="Runtimes" columns=${columns} rows=${runtimes} rowKey=${(/** @type {Runtime} */ runtime) => `${runtime.id} ${runtime.name}`} /></div>
    ${asked && html`<${RemoveDialog} runtimes=${asked === "unused" ? unused : [asked]} isPrune=${asked === "unused"} reload=${reload} say=${say} onClose=${() => setAsked(null)} />`}`;
}

const dash = html`<span class="dim">–</span>`;

/** @type {Record<Runtime["state"], [string, string, string]>} class, shape, word */
const STATES = {
  READY: ["good", "✓", "ready"],
  BUILDING: ["live", "◑", "building"],
  FAILED: ["bad", "✗", "failed"],
  ABSENT: ["dim", "○", "not built"],
};

/** @param {Runtime} runtime */
function stateCell({ state }) {
  const [look, shape, words] = STATES[state];
  return html`<span class="state ${look}"><span class="shape" aria-hidden="true">${shape}</span>${words}</span>`;
}

/** @param {Runtime} runtime */
function nameCell(runtime) {
  const top = [...(runtime.requirements ?? []), ...(runtime.packages ?? []).map((item) => item.uri)];
  return html`${runtime.name}${top.length > 0 && html`<div class="dim">with ${top.join(", ")}</div>`}`;
}

/** @param {Runtime} runtime */
const warmCell = ({ warm }) => (warm ? html`<span title="An interpreter with its imports done: programs start from it at once">${warm.state.toLowerCase()}, ${bytes(Number(warm.memoryBytes))}</span>` : dash);

/** @param {{runtime: Runtime, onBuild: (name: string) => void, onRemove: () => void}} props */
function Deed({ runtime, onBuild, onRemove }) {
  if (!runtime.id) return null;
  if (runtime.state === "ABSENT") return html`<button type="button" class="small" onClick=${() => onBuild(runtime.name)}>Build …<span class="unseen"> ${runtime.name}</span></button>`;
  const why = runtime.jobs?.length ? "A job that is not over needs it." : "";
  return html`<button type="button" class="small" title=${why} disabled=${Boolean(why)} onClick=${onRemove}>${runtime.state === "BUILDING" ? "Stop …" : "Remove …"}<span class="unseen"> ${runtime.name}</span></button>`;
}

/** @param {{runtimes: Runtime[], isPrune: boolean, reload: () => void, say: (words: string) => void, onClose: () => void}} props */
function RemoveDialog({ runtimes, isPrune, reload, say, onClose }) {
  const size = runtimes.reduce((sum, runtime) => sum + Number(runtime.sizeBytes ?? 0), 0);
  const { error, run } = useDeed(() => {
    say(`Removed ${runtimes.map((runtime) => runtime.name).join(", ")}.`);
    reload();
    onClose();
  });
  const send = () => (isPrune ? post(`${RUNTIMES}:prune`) : remove(`${RUNTIMES}/${encodeURIComponent(runtimes[0].id)}`));
  return html`<${Confirm} title=${isPrune ? "Remove all that no job needs?" : "Remove this runtime?"} deed="Remove" onYes=${() => run(send)} onClose=${onClose}>
    <ul>${runtimes.map((runtime) => html`<li key=${runtime.id}>${nameCell(runtime)}</li>`)}</ul>
    <p>${size > 0 && `${bytes(size)} become free. `}A job that needs one later has it built again.</p>
    ${error && html`<${Failure} error=${error} />`}
  <//>`;
}
