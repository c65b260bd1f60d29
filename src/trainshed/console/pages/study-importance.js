// How much each parameter mattered, as bars with their numbers.

import { html } from "../lib/ui.js";
import { percent } from "../lib/format.js";
import { Bar } from "../parts/bar.js";

const SHOWN = 12;

/** @param {{importance: {parameterId: string, importance: number}[], metric: string}} props */
export function Importance({ importance, metric }) {
  if (!importance.length) return null;
  return html`<section aria-label="Importance">
    <h2>What mattered for ${metric}</h2>
    <ol class="study-importance">
      ${importance.slice(0, SHOWN).map(
        ({ parameterId, importance: share }) => html`<li key=${parameterId}><${Bar} used=${share}><span>${parameterId}</span><span>${percent(share)}</span><//></li>`,
      )}
    </ol>
    ${importance.length > SHOWN && html`<p class="dim">${importance.length - SHOWN} more mattered less.</p>`}
  </section>`;
}
