// How much of something is taken: a bar with the words beside it. The bar repeats the words, so it is not read out.

import { html } from "../lib/ui.js";

/**
 * `held` and `used` are shares of the whole, from 0 to 1: what jobs were given, and what is really in use.
 * @param {{held?: number, used?: number, children?: unknown}} props
 */
export function Bar({ held, used, children }) {
  return html`<div class="bar">
    <svg viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true">
      <rect class="whole" width="100" height="8" />
      ${held !== undefined && html`<rect class="held" width=${width(held)} height="8" />`}
      ${used !== undefined && html`<rect class="used" width=${width(used)} y=${held === undefined ? 0 : 5} height=${held === undefined ? 8 : 3} />`}
    </svg>
    <span class="bar-words">${children}</span>
  </div>`;
}

/** A sliver where there is anything at all. @param {number} share */
const width = (share) => (share > 0 ? Math.max(1, Math.min(100, share * 100)) : 0);
