// What stands above the lines of a log: search, filters, jumps, looks, download.

import { html, useState } from "../lib/ui.js";
import { setQuery } from "../lib/address.js";
import { count, percent } from "../lib/format.js";

/** @typedef {import("../lib/log-search.js").Search} Search */

const SEVERITIES = { "": "All severities", INFO: "Info and above", WARNING: "Warnings and errors", ERROR: "Errors" };
const STREAMS = { "": "Both streams", stdout: "stdout", stderr: "stderr" };

/**
 * @param {{query: Record<string, string>, search: Search, pattern: object | null, marked: number, total: number,
 *   isCounted: boolean, tasks: string[], attempts: number, field: {current: HTMLInputElement | null},
 *   looks: {isWrapped: boolean, isTimed: boolean, isFolding: boolean, isEventful: boolean}, setLooks: (changes: object) => void,
 *   step: (isBack: boolean) => void, goTo: (line: number) => void, toTime: (time: string) => void,
 *   toVerdict: (() => void) | null, download: string}} props
 */
export function LogTools(props) {
  const { query, search, pattern, tasks, attempts, looks, setLooks, field, step, toVerdict, download } = props;
  const choose = (/** @type {string} */ name) => (/** @type {Event} */ event) =>
    setQuery({ [name]: /** @type {HTMLSelectElement} */ (event.target).value, line: "", time: "" });
  const attemptNames = Object.fromEntries([["", "All attempts"], ...Array.from({ length: attempts }, (_, at) => [String(at), `Attempt ${at}`])]);
  const taskNames = Object.fromEntries([["", "All replicas"], ...tasks.map((task) => [task, task])]);
  return html`<div class="toolbar log-tools">
    <span class="log-search">
      <input type="search" aria-label="Search the log" placeholder="Search, or /expression/" ref=${field} value=${query.find ?? ""}
        onInput=${(/** @type {Event} */ event) => setQuery({ find: /** @type {HTMLInputElement} */ (event.target).value })}
        onKeyDown=${(/** @type {KeyboardEvent} */ event) => searchKey(event, step)} />
      <button type="button" aria-label="Previous match" disabled=${!pattern} onClick=${() => step(true)}>↑</button>
      <button type="button" aria-label="Next match" disabled=${!pattern} onClick=${() => step(false)}>↓</button>
      <label><input type="checkbox" checked=${Boolean(query.only)} disabled=${!query.find}
        onChange=${() => setQuery({ only: query.only ? "" : "1" })} /> Only matches</label>
      <span class="dim log-matches" role="status">${pattern ? matchWords(search, props.marked) : ""}</span>
    </span>
    <div class="log-choices">
    ${tasks.length > 1 && html`<${Choose} label="Replica" value=${query.task} options=${taskNames} onChange=${choose("task")} />`}
    ${attempts > 1 && html`<${Choose} label="Attempt" value=${query.attempt} options=${attemptNames} onChange=${choose("attempt")} />`}
    <${Choose} label="Stream" value=${query.stream} options=${STREAMS} onChange=${choose("stream")} />
    <${Choose} label="Severity" value=${query.severity} options=${SEVERITIES} onChange=${choose("severity")} />
    <${Jump} ...${props} />
    <span class="log-looks" role="group" aria-label="How lines are shown">
      <${Switch} isOn=${looks.isWrapped} words="Wrap" onClick=${() => setLooks({ isWrapped: !looks.isWrapped })} />
      <${Switch} isOn=${looks.isTimed} words="Times" onClick=${() => setLooks({ isTimed: !looks.isTimed })} />
      <${Switch} isOn=${looks.isFolding} words="Fold stacks" onClick=${() => setLooks({ isFolding: !looks.isFolding })} />
      <${Switch} isOn=${looks.isEventful} words="Events" onClick=${() => setLooks({ isEventful: !looks.isEventful })} />
    </span>
    ${toVerdict && html`<button type="button" onClick=${toVerdict}>Why it failed</button>`}
    <a class="button" href=${download} download>Download</a>
    </div>
  </div>`;
}

/** @param {{label: string, value?: string, options: Record<string, string>, onChange: (event: Event) => void}} props */
function Choose({ label, value = "", options, onChange }) {
  return html`<select aria-label=${label} value=${value} onChange=${onChange}>
    ${Object.entries(options).sort(([a], [b]) => Number(Boolean(a)) - Number(Boolean(b))).map(([key, words]) => html`<option key=${key} value=${key}>${words}</option>`)}
  </select>`;
}

/** @param {{isOn: boolean, words: string, onClick: () => void}} props */
function Switch({ isOn, words, onClick }) {
  return html`<button type="button" class="small" aria-pressed=${isOn} onClick=${onClick}>${words}</button>`;
}

/** @param {{goTo: (line: number) => void, toTime: (time: string) => void, total: number, isCounted: boolean}} props */
function Jump({ goTo, toTime, total, isCounted }) {
  const [problem, setProblem] = useState("");
  const go = (/** @type {SubmitEvent} */ event) => {
    event.preventDefault();
    const text = String(new FormData(/** @type {HTMLFormElement} */ (event.target)).get("place")).trim();
    const line = Number(text.replaceAll(/[,\s]/g, ""));
    const time = momentOf(text);
    setProblem(line || time ? "" : "Write a line number or a time such as 14:05 or 2026-01-31 14:05.");
    if (line) goTo(Math.max(1, Math.min(total, line)));
    else if (time) toTime(time);
  };
  return html`<form class="log-jump" onSubmit=${go}>
    <input name="place" aria-label="Go to a line or a time" placeholder="Line or time" size="12" disabled=${!isCounted} />
    <button type="submit" disabled=${!isCounted}>Go</button>
    <span class="bad-ink" role="alert">${problem}</span>
  </form>`;
}

/** A moment as a person writes it, in their zone; a time alone is of today. @param {string} text */
function momentOf(text) {
  const today = new Date();
  const day = `${today.getFullYear()}-${String(today.getMonth() + 1).padStart(2, "0")}-${String(today.getDate()).padStart(2, "0")}`;
  const whole = /^\d{1,2}:\d\d/.test(text) ? `${day}T${text.padStart(text.indexOf(":") === 1 ? text.length + 1 : 0, "0")}` : text.replace(" ", "T");
  const at = /\d{4}-\d\d-\d\d/.test(whole) ? new Date(whole) : new Date(NaN);
  return Number.isNaN(at.getTime()) ? "" : at.toISOString();
}

/** @param {KeyboardEvent} event @param {(isBack: boolean) => void} step */
function searchKey(event, step) {
  if (event.key === "Enter") step(event.shiftKey);
  else if (event.key === "Escape") /** @type {HTMLInputElement} */ (event.target).blur();
  else return;
  event.preventDefault();
}

/** @param {Search} search @param {number} marked */
function matchWords({ lines, matches, part, isOver }, marked) {
  if (isOver && !matches) return "No match";
  const at = lines.findIndex((line) => Number(line.number) === marked);
  const place = at >= 0 ? `${count(at + 1)} of ${count(matches)}` : `${count(matches)} ${matches === 1 ? "line" : "lines"}`;
  return isOver ? place : `${place}, ${percent(part)} searched`;
}
