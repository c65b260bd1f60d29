// The state of a job or replica: a mark with a shape and a word, so that no one needs the colour.

import { html } from "../lib/ui.js";
import { stateWords } from "../lib/format.js";

/** @type {Record<string, [string, string]>} state to the class and the shape */
const LOOKS = {
  queued: ["wait", "◔"],
  pending: ["wait", "◑"],
  running: ["live", "●"],
  succeeded: ["good", "✓"],
  failed: ["bad", "✗"],
  killed: ["bad", "✗"],
  missing: ["warn", "?"],
  planned: ["wait", "◔"],
  cancelling: ["warn", "◌"],
  cancelled: ["dim", "–"],
  paused: ["warn", "‖"],
  expired: ["bad", "✗"],
  updating: ["wait", "◑"],
  "partially succeeded": ["good", "✓"],
  requested: ["wait", "◔"],
  active: ["live", "●"],
  stopping: ["warn", "◌"],
  infeasible: ["bad", "✗"],
};

/** @param {{state: string, children?: unknown}} props */
export function StateMark({ state, children }) {
  const words = stateWords(state);
  const [look, shape] = LOOKS[words] ?? ["dim", "○"];
  return html`<span class="state ${look}"><span class="shape" aria-hidden="true">${shape}</span>${words}${children}</span>`;
}

/** Whether nothing more happens in this state. @param {string} state */
export const isFinal = (state) =>
  ["succeeded", "failed", "cancelled", "expired", "partially succeeded"].includes(stateWords(state));
