// All fields of the form for a new job.

import { html, useState } from "../lib/ui.js";
import { ROLES, roleOf, valueAt } from "../lib/job-body.js";
import { ChoiceLists, useChoices } from "./new-choices.js";
import { CodeForm } from "./new-code.js";
import { ChoiceField, ParsedField, TextField, TickField } from "./new-field.js";
import { PoolForm } from "./new-pool.js";

/** @typedef {import("./new-field.js").Form} Form */

const POOLS = "jobSpec.workerPoolSpecs";
const COMMAND = `${POOLS}[0].containerSpec.command`;
const SECONDS = /** @type {Record<string, number>} */ ({ s: 1, m: 60, min: 60, h: 3600, d: 86_400 });
const STRATEGIES = /** @type {[string, string][]} */ ([
  ["", "as usual"],
  ["SPOT", "SPOT: may be stopped for other jobs"],
]);
const LIKELY = ["train.py", "main.py", "task.py"]; // names of programs, the likeliest first

/** "2 h" -> "7200s"; what is no length is left to the server to refuse. @param {string} text */
function parseDuration(text) {
  const match = /^\s*([\d.]+)\s*(s|m|min|h|d)\s*$/.exec(text);
  return match ? `${Number(match[1]) * SECONDS[match[2]]}s` : text.trim() || undefined;
}

/** @param {string} text */
function parseLabels(text) {
  const pairs = text.split(/[,\s]+/).filter(Boolean).map((pair) => [pair.split("=")[0], pair.split("=").slice(1).join("=")]);
  return pairs.length ? Object.fromEntries(pairs) : undefined;
}

/** @param {Record<string, string>} labels */
const printLabels = (labels) => Object.entries(labels).map((pair) => pair.join("=")).join(", ");

/** @param {string} text */
const parseLines = (text) => (text.trim() ? text.split("\n").filter((line) => line.trim()) : undefined);

/**
 * @param {{form: Form, parent: string, place: {project: string, location: string},
 *   onPlace: (place: {project?: string, location?: string}) => void}} props
 */
export function JobFields({ form, parent, place, onPlace }) {
  const choices = useChoices();
  const [programs, setPrograms] = useState(/** @type {string[]} */ ([]));
  const onFolder = (/** @type {import("../lib/code-folder.js").CodeFolder} */ { files }) => {
    const scripts = files.map(({ path }) => path).filter((path) => path.endsWith(".py"));
    setPrograms(scripts);
    const likely = LIKELY.find((name) => scripts.includes(name)) ?? (scripts.length === 1 ? scripts[0] : undefined);
    if (likely && !valueAt(form.job, COMMAND)?.length) form.change(COMMAND, ["python", likely]);
  };
  return html`<${ChoiceLists} choices=${choices} commands=${programs.slice(0, 100).map((path) => `python ${path}`)} />
    <section aria-labelledby="about-title">
      <h2 id="about-title">The job</h2>
      <div class="fields">
        <${TextField} form=${form} path="displayName" label="Name" required />
        <${ParsedField} form=${form} path="labels" label="Labels" parse=${parseLabels} print=${printLabels} placeholder="team=vision, run=3" />
        <${Place} name="project" label="Project" value=${place.project} onPlace=${onPlace} />
        <${Place} name="location" label="Location" value=${place.location} onPlace=${onPlace} />
      </div>
    </section>
    <section aria-labelledby="code-title">
      <h2 id="code-title">Code</h2>
      <${CodeForm} form=${form} parent=${parent} onFolder=${onFolder} />
      <${ParsedField} form=${form} path="jobSpec.requirements" label="Requirements" rows=${2} parse=${parseLines} print=${(/** @type {string[]} */ lines) => lines.join("\n")} placeholder="numpy>=2" hint="Lines of a requirements file, installed on top of the runtime." />
    </section>
    <${Pools} form=${form} accelerators=${choices.accelerators} />
    <section aria-labelledby="output-title">
      <h2 id="output-title">Outputs and scheduling</h2>
      <div class="fields">
        <${TextField} form=${form} path="jobSpec.baseOutputDirectory.outputUriPrefix" label="Folder for outputs" choices="bucket-choices" placeholder="gs://bucket/folder" hint="The program finds it in AIP_MODEL_DIR and AIP_CHECKPOINT_DIR." />
        <${ParsedField} form=${form} path="jobSpec.scheduling.timeout" label="Stop after" parse=${parseDuration} print=${String} placeholder="2 h" />
        <${ParsedField} form=${form} path="jobSpec.scheduling.maxWaitDuration" label="Wait at most" parse=${parseDuration} print=${String} placeholder="1 d" />
        <${TextField} form=${form} path="jobSpec.scheduling.priority" label="Priority" type="number" placeholder="0" />
        <${TextField} form=${form} path="jobSpec.scheduling.restartRule.maxJobRetries" label="Retries of the job" type="number" />
        <${ChoiceField} form=${form} path="jobSpec.scheduling.strategy" label="Strategy" choices=${STRATEGIES} />
      </div>
      <${TickField} form=${form} path="jobSpec.scheduling.restartJobOnWorkerRestart" label="Restart the whole job when a replica restarts" />
      <${TickField} form=${form} path="jobSpec.scheduling.disableRetries" label="Never retry" />
      <${TickField} form=${form} path="jobSpec.enableWebAccess" label="Shells: let people look into its replicas" />
    </section>`;
}

/** @param {{name: "project" | "location", label: string, value: string, onPlace: (place: any) => void}} props */
function Place({ name, label, value, onPlace }) {
  return html`<div class="field">
    <label for=${name}>${label}</label>
    <input id=${name} required autocomplete="off" spellcheck=${false} value=${value} onInput=${(/** @type {Event} */ event) => onPlace({ [name]: /** @type {HTMLInputElement} */ (event.target).value.trim() })} />
  </div>`;
}

/** Their position is their role: one that is left out keeps an empty place. @param {{form: Form, accelerators: [string, string][]}} props */
function Pools({ form, accelerators }) {
  /** @type {any[]} */
  const pools = valueAt(form.job, POOLS) ?? [];
  const isThere = (/** @type {any} */ pool) => Boolean(pool && Object.keys(pool).length);
  const add = (/** @type {number} */ at) => {
    const places = Array.from({ length: Math.max(at + 1, pools.length) }, (_, place) => pools[place] ?? {});
    places[at] = { ...structuredClone(pools[0] ?? {}), replicaCount: 1 };
    form.change(POOLS, places);
  };
  const remove = (/** @type {number} */ at) => {
    const places = pools.map((pool, place) => (place === at ? {} : pool));
    form.change(POOLS, places.slice(0, places.findLastIndex(isThere) + 1));
  };
  return html`<section aria-labelledby="pools-title">
    <h2 id="pools-title">Pools</h2>
    ${(pools.length ? pools : [{}]).map(
      (pool, at) => (at === 0 || isThere(pool)) && html`<${PoolForm} key=${at} form=${form} at=${at} accelerators=${accelerators} onRemove=${at > 0 ? () => remove(at) : undefined} />`,
    )}
    <div class="toolbar">
      ${ROLES.map((_, at) => at > 0 && !isThere(pools[at]) && html`<button key=${at} type="button" class="small" onClick=${() => add(at)}>Add ${roleOf(at).toLowerCase()}</button>`)}
    </div>
  </section>`;
}
