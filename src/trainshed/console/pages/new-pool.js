// One pool in the form for a new job: its program, its machines, its variables.

import { html } from "../lib/ui.js";
import { isSecret, MASK, roleOf, valueAt } from "../lib/job-body.js";
import { joinWords, splitWords } from "../lib/words.js";
import { ChoiceField, ParsedField, TextField } from "./new-field.js";

/** @typedef {import("./new-field.js").Form} Form */
/** @typedef {import("../lib/job-body.js").Variable} Variable */

const words = (/** @type {string} */ text) => (text.trim() ? splitWords(text) : undefined);

/** @param {{form: Form, at: number, accelerators: [string, string][], onRemove?: () => void}} props */
export function PoolForm({ form, at, accelerators, onRemove }) {
  const path = `jobSpec.workerPoolSpecs[${at}]`;
  const isPackage = Boolean(valueAt(form.job, `${path}.pythonPackageSpec`));
  const program = `${path}.${isPackage ? "pythonPackageSpec" : "containerSpec"}`;
  const toggle = (/** @type {Event} */ event) => {
    const { args, env, imageUri, executorImageUri } = valueAt(form.job, program) ?? {};
    const becomesPackage = /** @type {HTMLSelectElement} */ (event.target).value === "package";
    const { containerSpec: _c, pythonPackageSpec: _p, ...pool } = valueAt(form.job, path);
    const image = imageUri ?? executorImageUri;
    const spec = becomesPackage
      ? { pythonPackageSpec: { executorImageUri: image, pythonModule: "", packageUris: [], args, env } }
      : { containerSpec: { imageUri: image, command: [], args, env } };
    form.change(path, { ...pool, ...spec });
  };
  return html`<fieldset class="pool">
    <legend>${roleOf(at)}</legend>
    <div class="fields">
      <div class="field">
        <label for=${`${path}:kind`}>Program</label>
        <select id=${`${path}:kind`} value=${isPackage ? "package" : "command"} onChange=${toggle}>
          <option value="command">a command</option>
          <option value="package">a module of Python packages</option>
        </select>
      </div>
      <${TextField} form=${form} path=${`${program}.${isPackage ? "executorImageUri" : "imageUri"}`} label="Image or runtime" choices="image-choices" />
      ${isPackage
        ? html`<${TextField} form=${form} path=${`${program}.pythonModule`} label="Module" placeholder="trainer.task" />
            <${ParsedField} form=${form} path=${`${program}.packageUris`} label="Packages" parse=${words} print=${joinWords} placeholder="gs://bucket/trainer-1.0.tar.gz" />`
        : html`<${ParsedField} form=${form} path=${`${program}.command`} label="Command" parse=${words} print=${joinWords} placeholder="python train.py" choices="command-choices" hint="As in a shell: quotes keep words together. Nothing else is replaced." />`}
      <${ParsedField} form=${form} path=${`${program}.args`} label="Arguments" parse=${words} print=${joinWords} placeholder="--epochs 3 --note 'two words'" />
      <${TextField} form=${form} path=${`${path}.machineSpec.machineType`} label="Machine" choices="machine-choices" />
      <${ChoiceField} form=${form} path=${`${path}.machineSpec.acceleratorType`} label="GPUs" choices=${accelerators} />
      <${TextField} form=${form} path=${`${path}.machineSpec.acceleratorCount`} label="GPUs of each replica" type="number" />
      <${TextField} form=${form} path=${`${path}.replicaCount`} label="Replicas" type="number" />
    </div>
    <${Variables} form=${form} path=${`${program}.env`} role=${roleOf(at)} />
    ${onRemove && html`<button type="button" class="small" onClick=${onRemove}>Remove ${roleOf(at).toLowerCase()}</button>`}
  </fieldset>`;
}

/** @param {{form: Form, path: string, role: string}} props */
function Variables({ form, path, role }) {
  /** @type {Variable[]} */
  const rows = valueAt(form.job, path) ?? [];
  const set = (/** @type {Variable[]} */ next) => form.change(path, next.length ? next : undefined);
  const edit = (/** @type {number} */ at, /** @type {Variable} */ changes) => set(rows.map((row, index) => (index === at ? { ...row, ...changes } : row)));
  const textOf = (/** @type {Event} */ event) => /** @type {HTMLInputElement} */ (event.target).value;
  return html`<fieldset class="variables">
    <legend>Environment of ${role.toLowerCase()}</legend>
    ${rows.map((row, at) => {
      const problems = form.problemsOf(`${path}[${at}]`);
      const problemId = problems.length ? `${path}[${at}]:problem` : undefined;
      const isHidden = isSecret(row);
      return html`<div key=${at} class="variable">
        <input id=${`${path}[${at}].name`} aria-label=${`Name of variable ${at + 1}`} aria-describedby=${problemId} placeholder="NAME" autocomplete="off" spellcheck=${false} value=${row.name ?? ""} onInput=${(/** @type {Event} */ event) => edit(at, { name: textOf(event) })} />
        <input id=${`${path}[${at}].value`} aria-label=${`Value of variable ${at + 1}`} aria-describedby=${problemId} type=${isHidden ? "password" : "text"}
          placeholder=${row.value === MASK ? "as in the job it is cloned from" : "value"} autocomplete="off" spellcheck=${false}
          value=${row.value === MASK ? "" : (row.value ?? "")} onInput=${(/** @type {Event} */ event) => edit(at, { value: textOf(event) })} />
        <label><input type="checkbox" checked=${row.secret === true} onChange=${() => edit(at, { secret: !row.secret || undefined })} /> secret</label>
        <button type="button" class="small" aria-label=${`Remove variable ${at + 1}`} onClick=${() => set(rows.filter((_, index) => index !== at))}>✕</button>
        ${problems.length > 0 && html`<p id=${problemId} class="bad-ink">${problems.join(" ")}</p>`}
      </div>`;
    })}
    <button type="button" class="small" onClick=${() => set([...rows, { name: "", value: "" }])}>Add a variable</button>
  </fieldset>`;
}
