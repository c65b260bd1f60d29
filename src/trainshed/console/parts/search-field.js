// A field that narrows a list: what is typed is used after a pause, and at Enter.

import { html, useEffect, useRef, useState } from "../lib/ui.js";

const PAUSE = 400; // milliseconds without typing after which the list follows

/** @param {{id: string, label: string, placeholder: string, value: string, problem?: string, onSearch: (text: string) => void}} props */
export function SearchField({ id, label, placeholder, value, problem = "", onSearch }) {
  const [text, setText] = useState(value);
  const timer = useRef(0);
  useEffect(() => setText(value), [value]);
  useEffect(() => () => clearTimeout(timer.current), []);
  const use = (/** @type {string} */ typed) => {
    clearTimeout(timer.current);
    if (typed.trim() !== value) onSearch(typed.trim());
  };
  const typed = (/** @type {Event} */ event) => {
    const { value: next } = /** @type {HTMLInputElement} */ (event.target);
    setText(next);
    clearTimeout(timer.current);
    timer.current = window.setTimeout(() => use(next), PAUSE);
  };
  const pressed = (/** @type {KeyboardEvent} */ event) => {
    if (event.key === "Enter") use(text);
    else if (event.key === "Escape") /** @type {HTMLInputElement} */ (event.target).blur();
  };
  return html`<div class="filter-field grow">
    <input
      id=${id}
      type="search"
      aria-label=${label}
      aria-invalid=${Boolean(problem)}
      aria-describedby=${`${id}-problem`}
      autocomplete="off"
      autocapitalize="off"
      spellcheck=${false}
      placeholder=${placeholder}
      value=${text}
      onInput=${typed}
      onKeyDown=${pressed}
    />
    <p id=${`${id}-problem`} class="bad-ink" role="status">${problem}</p>
  </div>`;
}
