// What is said instead of, or above, the data: that it is being read, that it failed, that there is none.

import { html, useEffect, useState } from "../lib/ui.js";

const PATIENCE = 200; // milliseconds before anything is said about waiting: most answers are there by then

/** @param {{words?: string}} props */
export function Loading({ words = "Loading" }) {
  const [isLate, setLate] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => setLate(true), PATIENCE);
    return () => clearTimeout(timer);
  }, []);
  return html`<p class="loading" role="status">${isLate ? `${words} …` : ""}</p>`;
}

/** @param {{error: Error, retry?: () => void}} props */
export function Failure({ error, retry }) {
  const violations = /** @type {any} */ (error).violations ?? [];
  return html`<div class="notice bad" role="alert">
    <p>${error.message}</p>
    ${violations.length > 1 &&
    html`<ul>
      ${violations.map((/** @type {any} */ { field, description }) => html`<li><code>${field}</code> ${description}</li>`)}
    </ul>`}
    ${retry && html`<button type="button" onClick=${retry}>Try again</button>`}
  </div>`;
}

/** @param {{title: string, children?: unknown}} props */
export function Empty({ title, children }) {
  return html`<div class="empty"><h2>${title}</h2>${children}</div>`;
}

/** @param {{kind?: string, children?: unknown}} props */
export function Notice({ kind = "", children }) {
  return html`<div class="notice ${kind}">${children}</div>`;
}
