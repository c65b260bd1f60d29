// Something that is shown when a person opens it, and made only then.

import { html, useState } from "../lib/ui.js";

/** @param {{summary: string, class?: string, content: () => unknown}} props */
export function Fold({ summary, class: name, content }) {
  const [isOpen, setOpen] = useState(false);
  return html`<details class=${name} onToggle=${(/** @type {any} */ event) => setOpen(event.currentTarget.open)}>
    <summary>${summary}</summary>
    ${isOpen && content()}
  </details>`;
}
