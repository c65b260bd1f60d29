// A dialog over the page: the browser's own, which keeps the focus and closes at Escape.

import { html, useLayoutEffect, useRef } from "../lib/ui.js";

// What one has come for: a field, or else the button that changes nothing. The first of all would be the cross.
const FIELD = ":is(input, select, textarea):not(:disabled, [hidden])";

/** @param {{title: string, onClose: () => void, isWide?: boolean, children?: unknown}} props */
export function Dialog({ title, onClose, isWide = false, children }) {
  const element = useRef(/** @type {HTMLDialogElement | null} */ (null));
  // Not after the next drawing: keys that are pressed until then would be lost.
  useLayoutEffect(() => {
    const dialog = element.current;
    dialog?.showModal();
    /** @type {HTMLElement | null | undefined} */ (dialog?.querySelector(FIELD) ?? dialog?.querySelector("footer button"))?.focus();
    return () => dialog?.close(); // the focus goes back to where it was
  }, []);
  return html`<dialog
    ref=${element}
    class=${isWide ? "wide" : ""}
    aria-label=${title}
    onClose=${onClose}
    onClick=${(/** @type {MouseEvent} */ event) => event.target === element.current && onClose()}
  >
    <div class="dialog">
      <header>
        <h2>${title}</h2>
        <button type="button" class="plain" aria-label="Close" onClick=${onClose}>✕</button>
      </header>
      ${children}
    </div>
  </dialog>`;
}

/**
 * Asks before something that cannot be undone.
 * @param {{title: string, deed: string, onYes: () => void, onClose: () => void, isBad?: boolean, children?: unknown}} props
 */
export function Confirm({ title, deed, onYes, onClose, isBad = true, children }) {
  return html`<${Dialog} title=${title} onClose=${onClose}>
    ${children}
    <footer>
      <button type="button" onClick=${onClose}>Keep</button>
      <button type="button" class=${isBad ? "bad" : "main"} onClick=${onYes}>${deed}</button>
    </footer>
  <//>`;
}
