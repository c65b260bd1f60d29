// What is compared and how: a filter of jobs, the axis, the label of groups, log scale, smoothing.

import { html } from "../lib/ui.js";
import { setQuery } from "../lib/address.js";

/** @param {{query: Record<string, string>, data: any}} props */
export function CompareControls({ query, data }) {
  const changed = (/** @type {string} */ name, usual = "") => (/** @type {Event} */ event) => {
    const { value } = /** @type {HTMLInputElement} */ (event.target);
    setQuery({ [name]: value === usual ? null : value });
  };
  const labels = [...new Set(data?.jobs.flatMap((/** @type {any} */ job) => Object.keys(job.labels ?? {})) ?? [])].sort();
  if (query.group && !labels.includes(query.group)) labels.push(query.group);
  const submit = (/** @type {SubmitEvent} */ event) => {
    event.preventDefault();
    const field = /** @type {HTMLInputElement} */ (document.getElementById("compare-filter"));
    setQuery({ filter: field.value || null, jobs: null, from: null, to: null }, { replace: false });
  };
  return html`<div class="toolbar">
      <form class="compare-filter" onSubmit=${submit}>
        <label for="compare-filter" class="unseen">Filter of jobs</label>
        <input id="compare-filter" type="search" placeholder='Filter jobs: labels.sweep = "lr"' value=${query.filter ?? ""} />
        <button type="submit">Compare</button>
      </form>
      <label for="find-metrics" class="unseen">Filter metrics by name</label>
      <input id="find-metrics" type="search" placeholder="Filter metrics" value=${query.find ?? ""} onInput=${changed("find")} />
    </div>
    <div class="toolbar">
      <span class="pair"><label for="over">Over</label>
      <select id="over" value=${query.over ?? "step"} onChange=${(/** @type {Event} */ event) => {
        const { value } = /** @type {HTMLSelectElement} */ (event.target);
        setQuery({ over: value === "step" ? null : value, from: null, to: null });
      }}>
        <option value="step">step</option>
        <option value="time">time since start</option>
      </select></span>
      <span class="pair"><label for="group">Group by label</label>
      <select id="group" value=${query.group ?? ""} onChange=${changed("group")}>
        <option value="">each job for itself</option>
        ${labels.map((label) => html`<option key=${label} value=${label}>${label}</option>`)}
      </select></span>
      <label><input type="checkbox" checked=${Boolean(query.log)} onChange=${(/** @type {Event} */ event) => setQuery({ log: /** @type {HTMLInputElement} */ (event.target).checked ? "1" : null })} /> log scale</label>
      <span class="pair"><label for="smooth">Smoothing</label>
      <input id="smooth" type="range" min="0" max="0.98" step="0.02" value=${query.smooth ?? "0"} onInput=${changed("smooth", "0")} /></span>
      ${query.from && html`<button type="button" class="small" onClick=${() => setQuery({ from: null, to: null })}>The whole range</button>`}
    </div>`;
}
