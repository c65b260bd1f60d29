// The form that has a runtime built before a job needs it.

import { html, useState } from "../lib/ui.js";
import { EVERYWHERE, post } from "../lib/api.js";
import { useDeed } from "../lib/deed.js";
import { Failure } from "../parts/notice.js";

/** @param {{name: string, names: string[], onBuilt: () => void}} props `name` is what the field begins with */
export function BuildForm({ name: first, names, onBuilt }) {
  const [name, setName] = useState(first);
  const [text, setText] = useState("");
  const { error, run } = useDeed(() => {
    setText("");
    onBuilt();
  });
  const submit = (/** @type {Event} */ event) => {
    event.preventDefault();
    const requirements = text.split("\n").map((line) => line.trim()).filter(Boolean);
    run(() => post(`${EVERYWHERE}/runtimes:build`, { name: name.trim(), requirements }));
  };
  const field = (/** @type {string} */ start) => error?.violations.filter((item) => item.field.startsWith(start)) ?? [];
  const others = error && !field("name").length && !field("requirements").length;
  return html`<h2>Build one</h2>
    <form class="build-form" onSubmit=${submit}>
      <label for="runtime-name">Runtime</label>
      <input id="runtime-name" list="runtime-names" value=${name} required autocomplete="off" spellcheck=${false} placeholder="trainshed/pytorch" aria-describedby="name-faults" onInput=${(/** @type {any} */ event) => setName(event.target.value)} />
      <datalist id="runtime-names">${names.map((known) => html`<option key=${known} value=${known} />`)}</datalist>
      <${Faults} id="name-faults" faults=${field("name")} />
      <label for="runtime-lines">Requirements on top, one a line</label>
      <textarea id="runtime-lines" rows="3" spellcheck=${false} placeholder="transformers==4.57.1" value=${text} aria-describedby="line-faults" onInput=${(/** @type {any} */ event) => setText(event.target.value)}></textarea>
      <${Faults} id="line-faults" faults=${field("requirements")} />
      ${others && html`<${Failure} error=${error} />`}
      <button type="submit" class="main">Build</button>
    </form>`;
}

/** @param {{id: string, faults: {field: string, description: string}[]}} props */
function Faults({ id, faults }) {
  return html`<div id=${id} class="bad-ink" role=${faults.length ? "alert" : undefined}>
    ${faults.map(({ field, description }) => html`<p key=${field}>${lineOf(field)}${description}</p>`)}
  </div>`;
}

/** "requirements[1]" -> "Line 2: " @param {string} field */
function lineOf(field) {
  const number = /\[(\d+)\]/.exec(field);
  return number ? `Line ${Number(number[1]) + 1}: ` : "";
}
