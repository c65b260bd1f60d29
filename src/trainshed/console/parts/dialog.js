// A dialog over the page: the browser's own, which keeps the focus and closes at Escape.

import { html, useEffect, useRef } from "../lib/ui.js";

/** @param {{title: string, onClose: () => void, isWide?: boolean, children?: unknown}} props */
export function Dialog({ title, onClose, isWide = false, children }) {
  const element = useRef(/** @type {HTMLDialogElement | null} */ (null));
  useEffect(() => {
    const dialog = element.current;
    dialog?.showModal();
    return () => dialog?.close();
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
