// How far something is: what is being made or fetched, or what a job reports.

import { html } from "../lib/ui.js";
import { duration, percent } from "../lib/format.js";

/** @typedef {{fraction?: number, step?: number, timeLeft?: string}} JobSteps as the API has it */

/** What a job has reported of its steps. @param {{progress: JobSteps}} props */
export function JobProgress({ progress: { fraction, step, timeLeft } }) {
  const left = timeLeft ? `${duration(parseFloat(timeLeft))} left` : "";
  if (fraction === undefined) return html`<span class="progress">${step === undefined ? "" : `step ${step}`}</span>`;
  return html`<span class="progress">
    <progress max="1" value=${fraction} aria-label="Progress">${percent(fraction)}</progress>
    <span>${percent(fraction)}${left && html` <span class="dim">${left}</span>`}</span>
  </span>`;
}

/**
 * A sentence, and a bar where the percent is known.
 * @typedef {{message: string, percent?: number}} Step
 * @param {{step: Step, children?: unknown}} props
 */
export function ProgressLine({ step, children }) {
  return html`<div class="progress">
    <progress max="100" value=${step.percent} aria-label=${step.message}></progress>
    <span>${step.message}${children}</span>
  </div>`;
}
