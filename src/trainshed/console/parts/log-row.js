// One line of a log: number, mark of its replica, time, text with its colours; or the head of folded lines.

import { classes, html } from "../lib/ui.js";
import { plain, spans } from "../lib/ansi.js";
import { exact, withMilliseconds } from "../lib/format.js";

/**
 * @typedef {import("../lib/log-source.js").LogLine} LogLine
 * @typedef {{tasks: Map<string, number>, isTimed: boolean, marked: number, term: string,
 *   verdict: {task: string, lines: Set<string>} | null}} RowLooks
 */

const HUES = 8; // replica colours in job-logs.css

/**
 * @param {{line: LogLine | undefined, number: number | null, place: number | null, looks: RowLooks, folded: number, isFolded: boolean,
 *   onFold: () => void, link: (number: number) => string}} props
 */
export function LogRow({ line, number, place, looks, folded, isFolded, onFold, link }) {
  const look = classes(
    "log-row",
    line && `said-${line.severity.toLowerCase()}`,
    line?.stream === "stderr" && "stderr",
    number !== null && number === looks.marked && "marked",
    line && isVerdict(line, looks.verdict) && "verdict",
  );
  return html`<div class=${look} data-line=${place}>
    ${number === null
      ? html`<span class="log-number"></span>`
      : html`<a class="log-number" href=${link(number)} aria-label=${`Line ${number}`}>${number}</a>`}
    ${line && looks.tasks.size > 1 && html`<${Replica} line=${line} tasks=${looks.tasks} />`}
    ${line && looks.isTimed && html`<time class="log-time" datetime=${line.time} title=${exact(line.time)}>${withMilliseconds(new Date(line.time))}</time>`}
    <span class="log-text">${line ? textOf(line.text, looks.term) : ""}${folded > 0 && html` <${Fold} size=${folded} isFolded=${isFolded} onFold=${onFold} />`}</span>
  </div>`;
}

/**
 * Something that happened to the job between two lines. It has no number, and is not copied with the lines.
 * @param {{event: import("../lib/log-events.js").JobEvent, isTimed: boolean}} props
 */
export function EventRow({ event, isTimed }) {
  return html`<div class=${`log-row log-event said-${event.severity.toLowerCase()}`} title=${`${exact(event.time)}\n${event.message}`}>
    <span class="log-number" aria-hidden="true">◆</span>
    ${isTimed && html`<time class="log-time" datetime=${event.time}>${withMilliseconds(new Date(event.time))}</time>`}
    <span class="log-text">${event.task && !event.message.startsWith(event.task) ? `${event.task}: ` : ""}${event.message.split("\n")[0]} <span class="dim">[${event.reason}]</span></span>
  </div>`;
}

/** @param {{line: LogLine, tasks: Map<string, number>}} props */
function Replica({ line, tasks }) {
  const hue = (tasks.get(line.task) ?? 0) % HUES;
  return html`<span class="log-replica hue-${hue}" title=${`${line.task}, attempt ${line.attempt}, ${line.stream}`}>${line.task.replace("workerpool", "")}</span>`;
}

/** @param {{size: number, isFolded: boolean, onFold: () => void}} props */
function Fold({ size, isFolded, onFold }) {
  return html`<button type="button" class="small log-fold" aria-expanded=${!isFolded} onClick=${onFold}>
    ${isFolded ? `▸ ${size} lines of the stack` : "▾ fold"}
  </button>`;
}

/** @param {LogLine} line @param {RowLooks["verdict"]} verdict */
function isVerdict(line, verdict) {
  return verdict !== null && (!verdict.task || verdict.task === line.task) && verdict.lines.has(plain(line.text).trim());
}

/** @param {string} text @param {string} term */
function textOf(text, term) {
  return spans(text).map(({ text: part, look, colour, ground }) => {
    const inner = term ? withMarks(part, term) : part;
    if (!look && !colour && !ground) return inner;
    return html`<span class=${look} ref=${paint(colour, ground)}>${inner}</span>`;
  });
}

/** Sets colours of an element that no class has. @param {string | undefined} colour @param {string | undefined} ground */
function paint(colour, ground) {
  return (/** @type {HTMLElement | null} */ element) => {
    if (!element) return;
    // Mixed with the ink: what a program chose for a dark terminal can be read on light ground as well.
    element.style.color = colour ? `color-mix(in srgb, ${colour} ${ground ? 100 : 55}%, var(--ink))` : "";
    element.style.backgroundColor = ground ?? "";
  };
}

/** @param {string} text @param {string} term in lower case */
function withMarks(text, term) {
  const result = [];
  const lower = text.toLowerCase();
  let from = 0;
  for (let at = lower.indexOf(term); at >= 0; at = lower.indexOf(term, from)) {
    result.push(text.slice(from, at), html`<mark>${text.slice(at, at + term.length)}</mark>`);
    from = at + term.length;
  }
  return [...result, text.slice(from)];
}
