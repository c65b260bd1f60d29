// Tabs that are links: each has an address of its own.

import { html, useEffect, useRef } from "../lib/ui.js";

/** @param {{label: string, tabs: {name: string, title: string, href: string}[], current: string}} props */
export function Tabs({ label, tabs, current }) {
  const list = useRef(/** @type {HTMLElement | null} */ (null));
  useEffect(() => {
    const shown = /** @type {HTMLElement | null | undefined} */ (list.current?.querySelector("[aria-current]"));
    if (list.current && shown) list.current.scrollLeft = shown.offsetLeft - (list.current.clientWidth - shown.offsetWidth) / 2;
  }, [current]);
  return html`<nav class="tabs" aria-label=${label} ref=${list}>
    ${tabs.map(
      ({ name, title, href }) =>
        html`<a key=${name} href=${href} data-title=${title} aria-current=${name === current ? "page" : undefined}>${title}</a>`,
    )}
  </nav>`;
}
