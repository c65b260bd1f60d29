// A button with a list of deeds behind it. Arrow keys move, Escape closes, a click elsewhere too.

import { html, useLayoutEffect, useRef, useState } from "../lib/ui.js";

/** @typedef {{title: string, onClick: () => void, isBad?: boolean, why?: string}} Deed `why`: why it cannot be done */

/** @param {{title: string, deeds: Deed[]}} props */
export function Menu({ title, deeds }) {
  const [isOpen, setOpen] = useState(false);
  const element = useRef(/** @type {HTMLDivElement | null} */ (null));
  useLayoutEffect(() => {
    if (!isOpen) return;
    /** @type {HTMLElement | null | undefined} */ (element.current?.querySelector("[role=menuitem]"))?.focus();
    const leave = (/** @type {Event} */ event) =>
      element.current?.contains(/** @type {Node} */ (event.target)) || setOpen(false);
    const kinds = ["pointerdown", "focusin"];
    for (const kind of kinds) document.addEventListener(kind, leave);
    return () => kinds.forEach((kind) => document.removeEventListener(kind, leave));
  }, [isOpen]);
  const onKeyDown = (/** @type {KeyboardEvent} */ event) => {
    if (!isOpen) return;
    const items = /** @type {HTMLElement[]} */ ([...(element.current?.querySelectorAll("[role=menuitem]") ?? [])]);
    const at = items.indexOf(/** @type {HTMLElement} */ (document.activeElement));
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) items[(at + step + items.length) % items.length]?.focus();
    else if (event.key === "Escape") {
      setOpen(false);
      element.current?.querySelector("button")?.focus();
    } else return;
    event.preventDefault();
    event.stopPropagation();
  };
  return html`<div class="menu" ref=${element} onKeyDown=${onKeyDown}>
    <button type="button" aria-haspopup="menu" aria-expanded=${isOpen} onClick=${() => setOpen(!isOpen)}>${title} ▾</button>
    ${isOpen &&
    html`<div role="menu" aria-label=${title}>
      ${deeds.map(
        (deed) => html`<button
          key=${deed.title}
          type="button"
          role="menuitem"
          class=${deed.isBad ? "bad" : ""}
          aria-disabled=${Boolean(deed.why)}
          title=${deed.why ?? ""}
          onClick=${() => {
            if (deed.why) return;
            setOpen(false);
            element.current?.querySelector("button")?.focus(); // where a dialog returns to when it closes
            deed.onClick();
          }}
        >
          ${deed.title}
        </button>`,
      )}
    </div>`}
  </div>`;
}
