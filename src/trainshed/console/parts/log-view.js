// A window onto a log of any size. Lines are addressed by number: what is drawn begins at an anchor line, and the
// scrollbar stands for all lines, scaled where browsers cannot make an element so high.

import { html, useEffect, useLayoutEffect, useRef, useState } from "../lib/ui.js";
import { placeEvents } from "../lib/log-events.js";
import { folds } from "../lib/stack-trace.js";
import { EventRow, LogRow } from "./log-row.js";

/**
 * @typedef {import("../lib/log-source.js").Source} Source
 * @typedef {import("../lib/log-source.js").LogLine} LogLine
 * @typedef {import("./log-row.js").RowLooks} RowLooks
 * @typedef {{number: number, line: LogLine | undefined, folded: number, isFolded: boolean}} DrawnRow
 */

const ROW = 20; // pixels, as in job-logs.css
const HIGHEST = 8_000_000; // pixels: browsers end between 16 and 33 million
const ABOVE = 40; // rows drawn above the anchor, so that scrolling up has heights to go by
const LOOK_BACK = 80; // lines: the head of a stack trace may be above what is drawn
const RESTING = 150; // milliseconds after which the scrollbar is put where the anchor is
const ABOVE_JUMP = 6; // lines shown before a line that one jumps to

/**
 * @param {{source: Source & {unnumbered?: LogLine[]}, looks: RowLooks, isWrapped: boolean, isFollowing: boolean,
 *   onFollow: (isFollowing: boolean) => void, jump: {line: number} | null, canFold: boolean,
 *   events: import("../lib/log-events.js").JobEvent[], link: (number: number) => string}} props
 */
export function LogView({ source, looks, events, isWrapped, isFollowing, onFollow, jump, canFold, link }) {
  const frame = useRef(/** @type {HTMLDivElement | null} */ (null));
  const list = useRef(/** @type {HTMLDivElement | null} */ (null));
  const known = useRef({ top: 0, shift: 0, movedAt: 0 });
  const [anchor, setAnchor] = useState({ line: 1, offset: 0 });
  const [unfolded, setUnfolded] = useState(/** @type {Set<number>} */ (new Set()));
  const [height, setHeight] = useState(600);
  const total = source.total;
  const screen = Math.ceil(height / ROW) + 4;

  useEffect(() => {
    const element = /** @type {HTMLDivElement} */ (frame.current);
    const observer = new ResizeObserver(() => setHeight(element.clientHeight));
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  useEffect(() => {
    if (jump) setAnchor({ line: Math.max(1, jump.line - ABOVE_JUMP), offset: 0 });
  }, [jump]);

  const start = isFollowing ? Math.max(1, total - screen - ABOVE) : Math.max(1, Math.min(anchor.line, total) - ABOVE);
  const opened = looks.marked;
  const rows = drawnRows(source, start, isFollowing ? total : Math.min(total, start + 2 * ABOVE + screen), canFold, unfolded, opened);
  const placed = placeEvents(events, rows, total);
  const last = rows.length ? rows[rows.length - 1].number : 0;
  useEffect(() => source.want(start, last));

  useLayoutEffect(() => {
    const box = /** @type {HTMLDivElement} */ (frame.current);
    const drawn = /** @type {HTMLDivElement} */ (list.current);
    const inner = /** @type {HTMLElement} */ (drawn.parentElement);
    const spacer = /** @type {HTMLElement} */ (inner.parentElement);
    const isWhole = start === 1 && last >= total;
    const each = isWrapped && rows.length ? drawn.offsetHeight / rows.length : ROW;
    const high = isWhole ? drawn.offsetHeight : Math.min(HIGHEST, total * each);
    spacer.style.height = `${Math.max(high, box.clientHeight)}px`;
    inner.style.height = `${box.clientHeight}px`;
    const most = Math.max(0, drawn.offsetHeight - inner.clientHeight);
    const element = rowElement(drawn, anchor.line);
    let shift = isFollowing ? most : (element?.offsetTop ?? 0) + anchor.offset;
    if (last >= total) shift = Math.min(shift, most);
    known.current.shift = shift;
    drawn.style.transform = `translateY(${-shift}px)`;
    const settle = () => {
      const range = box.scrollHeight - box.clientHeight;
      const place = isFollowing ? range : isWhole ? shift : ((anchor.line - 1 + anchor.offset / each) / total) * high;
      box.scrollTop = place;
      known.current.top = box.scrollTop;
    };
    const rest = RESTING - (performance.now() - known.current.movedAt);
    if (rest <= 0 || isFollowing) return settle();
    const timer = setTimeout(settle, rest);
    return () => clearTimeout(timer);
  });

  const scrolled = () => {
    const box = /** @type {HTMLDivElement} */ (frame.current);
    const drawn = /** @type {HTMLDivElement} */ (list.current);
    const moved = box.scrollTop - known.current.top;
    if (Math.abs(moved) < 1) return;
    known.current.top = box.scrollTop;
    known.current.movedAt = performance.now();
    const isAtEnd = box.scrollTop >= box.scrollHeight - box.clientHeight - 1;
    if (isAtEnd && moved > 0) return onFollow(true);
    if (isFollowing) onFollow(false);
    setAnchor(anchorAfter(box, drawn, known.current.shift, moved, total));
  };

  const eventRow = (/** @type {import("../lib/log-events.js").JobEvent} */ event) =>
    html`<${EventRow} key=${`event ${event.sequence}`} event=${event} isTimed=${looks.isTimed} />`;
  const unnumbered = source.unnumbered ?? [];
  return html`<div class=${isWrapped ? "log wrapped" : "log"} ref=${frame} onScroll=${scrolled} tabindex="0" role="region" aria-label="Lines of the log">
    <div class="log-spacer">
      <div class="log-window">
        <div class="log-list" ref=${list}>
          ${unnumbered.map((line) => html`<${LogRow} key=${line.insertId} line=${line} number=${null} place=${null} looks=${looks} folded=${0} isFolded=${false} onFold=${() => {}} link=${link} />`)}
          ${rows.map((row) => {
            const drawn = html`<${LogRow} key=${row.number} ...${row} place=${row.number} number=${row.line?.number ? Number(row.line.number) : row.number} looks=${looks} link=${link}
              onFold=${() => setUnfolded(toggled(unfolded, row.number))} />`;
            const before = placed.before.get(row.number);
            // One element: the window finds its place by lines, and events belong to the line behind them.
            return before ? html`<div key=${row.number} data-line=${row.number}>${before.map(eventRow)}${drawn}</div>` : drawn;
          })}
          ${placed.after.map(eventRow)}
        </div>
      </div>
    </div>
  </div>`;
}

/** @param {Set<number>} chosen @param {number} number */
function toggled(chosen, number) {
  const next = new Set(chosen);
  if (!next.delete(number)) next.add(number);
  return next;
}

/**
 * The rows from one line to another, without those that are folded.
 * @param {Source} source @param {number} start @param {number} end @param {boolean} canFold
 * @param {Set<number>} unfolded @param {number} opened a line that is shown in any case
 * @returns {DrawnRow[]}
 */
function drawnRows(source, start, end, canFold, unfolded, opened) {
  const line = (/** @type {number} */ number) => source.line(number);
  const folding = canFold ? folds(line, Math.max(1, start - LOOK_BACK), end) : new Map();
  const hidden = new Set();
  /** @type {Set<number>} */
  const closed = new Set();
  for (const [head, size] of folding) {
    if (unfolded.has(head) || (opened > head && opened <= head + size)) continue;
    closed.add(head);
    for (let at = 1; at <= size; at += 1) hidden.add(head + at);
  }
  const rows = [];
  for (let number = start; number <= end; number += 1) {
    if (hidden.has(number)) continue;
    rows.push({ number, line: line(number), folded: folding.get(number) ?? 0, isFolded: closed.has(number) });
  }
  return rows;
}

/** The row of that line, or of the nearest before it that is drawn. @param {HTMLElement} drawn @param {number} line */
function rowElement(drawn, line) {
  for (let number = line; number > line - LOOK_BACK; number -= 1) {
    const element = drawn.querySelector(`[data-line="${number}"]`);
    if (element) return /** @type {HTMLElement} */ (element);
  }
  return null;
}

/**
 * Where the view begins after the scrollbar has moved: by as many pixels, or, far away, in proportion.
 * @param {HTMLElement} box @param {HTMLElement} drawn @param {number} shift @param {number} moved @param {number} total
 */
function anchorAfter(box, drawn, shift, moved, total) {
  const place = shift + moved;
  if (box.scrollTop > 0 && Math.abs(moved) < 3 * box.clientHeight) {
    for (const row of /** @type {HTMLCollectionOf<HTMLElement>} */ (drawn.children)) {
      if (row.dataset.line && row.offsetTop <= place && place < row.offsetTop + row.offsetHeight) {
        return { line: Number(row.dataset.line), offset: place - row.offsetTop };
      }
    }
  }
  const exact = (box.scrollTop / box.scrollHeight) * total;
  const line = Math.floor(exact);
  return { line: line + 1, offset: (exact - line) * ROW };
}
