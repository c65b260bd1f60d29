// Something that is being made or fetched: a sentence, and a bar where the percent is known.

import { html } from "../lib/ui.js";

/**
 * @typedef {{message: string, percent?: number}} Step
 * @param {{step: Step, children?: unknown}} props
 */
export function ProgressLine({ step, children }) {
  return html`<div class="progress">
    <progress max="100" value=${step.percent} aria-label=${step.message}></progress>
    <span>${step.message}${children}</span>
  </div>`;
}
