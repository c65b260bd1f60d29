// The compared jobs as a table: the chosen metric's last and best values, and each setting in which they differ.

import { html } from "../lib/ui.js";
import { jobHref, setQuery } from "../lib/address.js";
import { plain } from "../lib/format.js";
import { lineColour } from "../parts/plot-looks.js";
import { StateMark } from "../parts/state.js";
import { coloursOf } from "./compare-lines.js";

/** @param {{data: any, keys: string[], query: Record<string, string>, marked: string, onMarked: (key: string) => void}} props */
export function CompareTable({ data, keys, query, marked, onMarked }) {
  const metric = data.metrics.find((/** @type {any} */ { name }) => name === query.metric) ?? data.metrics[0];
  const summaries = new Map(metric?.summaries.map((/** @type {any} */ entry) => [entry.job, entry]) ?? []);
  const colours = coloursOf(keys);
  const number = (/** @type {any} */ summary, /** @type {string} */ name) =>
    html`<td class="number">${summary ? plain(summary[name]) : "–"}</td>`;
  return html`<h2>Settings that differ</h2>
    ${metric &&
    html`<div class="toolbar">
      <label for="metric">Values of</label>
      <select id="metric" value=${metric.name} onChange=${(/** @type {Event} */ event) => setQuery({ metric: /** @type {HTMLSelectElement} */ (event.target).value })}>
        ${data.metrics.map((/** @type {any} */ { name }) => html`<option key=${name} value=${name}>${name}</option>`)}
      </select>
    </div>`}
    <div class="table-frame" tabindex="0" role="region" aria-label="Jobs and the settings in which they differ">
      <table>
        <caption class="unseen">The compared jobs and the settings in which they differ</caption>
        <thead>
          <tr>
            <th scope="col">Job</th>
            <th scope="col">State</th>
            ${metric && html`<th scope="col" class="number">Last</th><th scope="col" class="number">Least</th><th scope="col" class="number">Most</th>`}
            ${data.differences.map((/** @type {any} */ { name }) => html`<th key=${name} scope="col">${name}</th>`)}
          </tr>
        </thead>
        <tbody>
          ${data.jobs.map((/** @type {any} */ job, /** @type {number} */ at) => {
            const summary = summaries.get(at);
            return html`<tr key=${job.name} class=${marked && marked === keys[at] ? "marked" : ""} onMouseEnter=${() => onMarked(keys[at])}>
              <td>
                <svg class="swatch" width="12" height="12" aria-hidden="true"><rect y="2" width="12" height="6" rx="3" fill=${lineColour(colours.get(keys[at]) ?? 0)} /></svg>
                <a href=${jobHref(job.name, "graphs")} onFocus=${() => onMarked(keys[at])}>${job.displayName}</a>
              </td>
              <td><${StateMark} state=${job.state} /></td>
              ${metric && html`${number(summary, "last")}${number(summary, "min")}${number(summary, "max")}`}
              ${data.differences.map((/** @type {any} */ { name, values }) => html`<td key=${name} title=${values[at] ?? ""}><span class="setting">${values[at] ?? "–"}</span></td>`)}
            </tr>`;
          })}
        </tbody>
      </table>
    </div>`;
}
