// A field for the filter of jobs that completes what is typed. The filter is used after a pause, and at Enter.

import { html, useEffect, useRef, useState } from "../lib/ui.js";
import { EVERYWHERE, get } from "../lib/api.js";
import { completed, isHalfTyped, suggestions, termAt } from "../lib/job-filter.js";

/** @typedef {import("../lib/job-filter.js").Suggestion} Suggestion */

const PAUSE = 400; // milliseconds without typing after which the list follows
const SOON = 80; // ... and after which values are asked for
const MOST = 10;

/** @param {string} field @param {string} prefix */
async function ask(field, prefix) {
  const answer = await get(`${EVERYWHERE}/customJobs:complete`, { field, prefix });
  return answer.values.map((/** @type {{value: string}} */ { value }) => value);
}

/** @param {{value: string, problem: string, onFilter: (text: string) => void}} props */
export function FilterField({ value, problem, onFilter }) {
  const [text, setText] = useState(value);
  const [offered, setOffered] = useState(/** @type {Suggestion[]} */ ([]));
  const [at, setAt] = useState(-1);
  const input = useRef(/** @type {HTMLInputElement | null} */ (null));
  const timers = useRef({ use: 0, offer: 0, asked: 0 });
  useEffect(() => setText(value), [value]);
  useEffect(() => () => forget(timers.current), []);

  const close = () => {
    timers.current.asked += 1;
    clearTimeout(timers.current.offer);
    setOffered([]);
    setAt(-1);
  };
  const use = (/** @type {string} */ filter) => {
    clearTimeout(timers.current.use);
    if (filter.trim() !== value) onFilter(filter.trim());
  };
  const offer = () => {
    clearTimeout(timers.current.offer);
    timers.current.offer = window.setTimeout(async () => {
      const field = input.current;
      if (!field) return;
      const asked = (timers.current.asked += 1);
      const term = termAt(field.value, field.selectionStart ?? field.value.length);
      const found = await suggestions(term.text, ask).catch(() => []);
      if (asked !== timers.current.asked || document.activeElement !== field) return;
      setOffered(found.filter(({ insert }) => insert !== term.text).slice(0, MOST));
      setAt(-1);
    }, SOON);
  };
  const typed = (/** @type {Event} */ event) => {
    const filter = /** @type {HTMLInputElement} */ (event.target).value;
    setText(filter);
    clearTimeout(timers.current.use);
    if (!isHalfTyped(termAt(filter, filter.length).text)) timers.current.use = window.setTimeout(() => use(filter), PAUSE);
    offer();
  };
  const take = (/** @type {Suggestion} */ suggestion) => {
    const field = input.current;
    if (!field) return;
    const next = completed(field.value, termAt(field.value, field.selectionStart ?? field.value.length), suggestion);
    setText(next.text);
    field.value = next.text;
    field.focus();
    field.setSelectionRange(next.caret, next.caret);
    close();
    clearTimeout(timers.current.use);
    if (suggestion.isWhole) use(next.text);
    else offer();
  };
  const pressed = (/** @type {KeyboardEvent} */ event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step && offered.length) setAt((at + step + offered.length + 1) % (offered.length + 1) || (step > 0 ? 0 : offered.length - 1));
    else if ((event.key === "Enter" || event.key === "Tab") && offered[at]) take(offered[at]);
    else if (event.key === "Enter") {
      use(text);
      close();
    } else if (event.key === "Escape" && offered.length) close();
    else if (event.key === "Escape") input.current?.blur();
    else return;
    event.preventDefault();
  };
  const isOpen = offered.length > 0;
  return html`<div class="filter-field grow">
    <input
      ref=${input}
      id="filter"
      type="search"
      role="combobox"
      aria-label="Filter jobs"
      aria-autocomplete="list"
      aria-expanded=${isOpen}
      aria-controls="filter-offers"
      aria-activedescendant=${at >= 0 && isOpen ? `filter-offer-${at}` : undefined}
      aria-invalid=${Boolean(problem)}
      aria-describedby="filter-problem"
      autocomplete="off"
      autocapitalize="off"
      spellcheck=${false}
      placeholder="Filter: words, state=FAILED, labels.team=vision …   ( / )"
      value=${text}
      onInput=${typed}
      onFocus=${offer}
      onBlur=${() => (isHalfTyped(termAt(text, text.length).text) || use(text), close())}
      onKeyDown=${pressed}
    />
    <ul id="filter-offers" role="listbox" aria-label="Completions" hidden=${!isOpen}>
      ${offered.map(
        (suggestion, number) => html`<li
          key=${suggestion.insert}
          id=${`filter-offer-${number}`}
          role="option"
          aria-selected=${number === at}
          onPointerDown=${(/** @type {Event} */ event) => (event.preventDefault(), take(suggestion))}
        >
          <code>${suggestion.insert}</code> <span class="dim">${suggestion.words}</span>
        </li>`,
      )}
    </ul>
    <p id="filter-problem" class="bad-ink" role="status">${problem}</p>
  </div>`;
}

/** @param {{use: number, offer: number}} timers */
function forget(timers) {
  clearTimeout(timers.use);
  clearTimeout(timers.offer);
}
