// The buttons that turn the pages of a list.

import { html } from "../lib/ui.js";

/** @param {{isFirst: boolean, isLast: boolean, page: string, turn: {on: () => void, back: () => void}, children?: unknown}} props */
export function Turn({ isFirst, isLast, page, turn, children }) {
  if (isFirst && isLast) return null;
  return html`<nav class="pages" aria-label="Turn the list">
    <button type="button" disabled=${isFirst} onClick=${turn.back}>← Previous</button>
    <span class="dim">Page ${page}${children}</span>
    <button type="button" disabled=${isLast} onClick=${turn.on}>Next →</button>
  </nav>`;
}
