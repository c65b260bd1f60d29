// Inputs of the form for a new job. Each is one field of the body of a create, by its path: what the server has
// against that field stands below it.

import { html, useEffect, useState } from "../lib/ui.js";
import { valueAt } from "../lib/job-body.js";

/**
 * @typedef {{job: any, change: (path: string, value: any) => void, problemsOf: (path: string) => string[]}} Form
 * @typedef {{form: Form, path: string, label: string, hint?: string}} FieldProps
 */

/** Label, input, hint and problems. @param {FieldProps & {children: (described: Record<string, any>) => unknown}} props */
export function Labelled({ form, path, label, hint, children }) {
  const problems = form.problemsOf(path);
  const described = {
    id: path,
    "aria-invalid": problems.length > 0,
    "aria-describedby": [hint && `${path}:hint`, problems.length > 0 && `${path}:problem`].filter(Boolean).join(" ") || undefined,
  };
  return html`<div class="field">
    <label for=${path}>${label}</label>
    ${children(described)}
    ${hint && html`<p id=${`${path}:hint`} class="dim">${hint}</p>`}
    ${problems.length > 0 && html`<p id=${`${path}:problem`} class="bad-ink">${problems.join(" ")}</p>`}
  </div>`;
}

/** @param {FieldProps & {choices?: string, type?: string, placeholder?: string, required?: boolean}} props `choices`: the id of a datalist */
export function TextField({ choices, type = "text", placeholder, required, ...props }) {
  const { form, path } = props;
  const onInput = (/** @type {Event} */ event) => {
    const { value } = /** @type {HTMLInputElement} */ (event.target);
    form.change(path, type === "number" && value !== "" ? Number(value) : value);
  };
  return html`<${Labelled} ...${props}>
    ${(/** @type {Record<string, any>} */ described) =>
      html`<input ...${described} type=${type} list=${choices} placeholder=${placeholder} required=${required}
        autocomplete="off" spellcheck=${false} value=${valueAt(form.job, path) ?? ""} onInput=${onInput} />`}
  <//>`;
}

/**
 * A text that stands for a list or an object. What is typed stays as typed while it means the same.
 * @param {FieldProps & {parse: (text: string) => any, print: (value: any) => string, rows?: number, placeholder?: string, choices?: string}} props
 */
export function ParsedField({ parse, print, rows = 1, placeholder, choices, ...props }) {
  const { form, path } = props;
  const value = valueAt(form.job, path);
  const [text, setText] = useState(value === undefined ? "" : print(value));
  const isSame = JSON.stringify(parse(text) ?? null) === JSON.stringify(value ?? null);
  useEffect(() => {
    if (!isSame) setText(value === undefined ? "" : print(value));
  }, [value]);
  const onInput = (/** @type {Event} */ event) => {
    const typed = /** @type {HTMLInputElement} */ (event.target).value;
    setText(typed);
    form.change(path, parse(typed));
  };
  return html`<${Labelled} ...${props}>
    ${(/** @type {Record<string, any>} */ described) =>
      rows > 1
        ? html`<textarea ...${described} rows=${rows} placeholder=${placeholder} spellcheck=${false} value=${text} onInput=${onInput}></textarea>`
        : html`<input ...${described} class="mono" list=${choices} placeholder=${placeholder} autocomplete="off" spellcheck=${false} value=${text} onInput=${onInput} />`}
  <//>`;
}

/** @param {FieldProps & {choices: [string, string][]}} props value and words of each choice */
export function ChoiceField({ choices, ...props }) {
  const { form, path } = props;
  const value = valueAt(form.job, path) ?? "";
  const known = choices.some(([choice]) => choice === value) ? choices : [...choices, [value, value]];
  return html`<${Labelled} ...${props}>
    ${(/** @type {Record<string, any>} */ described) =>
      html`<select ...${described} value=${value} onChange=${(/** @type {Event} */ event) => form.change(path, /** @type {HTMLSelectElement} */ (event.target).value)}>
        ${known.map(([choice, words]) => html`<option key=${choice} value=${choice}>${words}</option>`)}
      </select>`}
  <//>`;
}

/** @param {FieldProps} props */
export function TickField({ form, path, label, hint }) {
  const problems = form.problemsOf(path);
  return html`<div class="field tick">
    <label>
      <input id=${path} type="checkbox" checked=${valueAt(form.job, path) === true} onChange=${(/** @type {Event} */ event) => form.change(path, /** @type {HTMLInputElement} */ (event.target).checked || undefined)} />
      ${" "}${label}
    </label>
    ${hint && html`<p class="dim">${hint}</p>`}
    ${problems.length > 0 && html`<p class="bad-ink">${problems.join(" ")}</p>`}
  </div>`;
}
