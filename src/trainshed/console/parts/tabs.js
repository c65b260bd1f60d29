// Tabs that are links: each has an address of its own.

import { html } from "../lib/ui.js";

/** @param {{label: string, tabs: {name: string, title: string, href: string}[], current: string}} props */
export function Tabs({ label, tabs, current }) {
  return html`<nav class="tabs" aria-label=${label}>
    ${tabs.map(
      ({ name, title, href }) =>
        html`<a key=${name} href=${href} aria-current=${name === current ? "page" : undefined}>${title}</a>`,
    )}
  </nav>`;
}
