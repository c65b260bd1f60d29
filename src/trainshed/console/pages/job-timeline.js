// The timeline: a row for each replica, a bar for each thing its time went into; the same as a table.

import { html, useState } from "../lib/ui.js";
import { go, jobHref } from "../lib/address.js";
import { clock, duration, percent, withMilliseconds } from "../lib/format.js";
import { CLASSES, totals, WHOLE } from "../lib/timeline.js";
import { Fold } from "../parts/fold.js";
import { Table } from "../parts/table.js";
import { Time } from "../parts/time.js";

/** @typedef {import("../lib/timeline.js").Bar} Bar */
/** @typedef {import("../lib/timeline.js").Timeline} Times */

const WIDTH = 1000; // units of a row's drawing, whatever its width on the screen
const HEIGHT = 16;
const LEAST = 2; // so that what was short is seen
const SHORT = 5000; // milliseconds within which seconds alone would be the same
const FEW = 12; // rows that are drawn at first

/** @param {{job: any, timeline: Times}} props */
export function JobTimeline({ job, timeline }) {
  const [isAll, setAll] = useState(false);
  const { rows } = timeline;
  const shown = isAll ? rows : rows.slice(0, FEW);
  if (!rows.length) return null;
  return html`<section>
    <h2>Where the time went</h2>
    <${Legend} timeline=${timeline} />
    <div class="timeline" role="group" aria-label="Timeline of the replicas">
      ${shown.map(({ task, bars }) => html`<${Row} key=${task} job=${job} task=${task} bars=${bars} timeline=${timeline} />`)}
      <div class="timeline-axis"><${Axis} timeline=${timeline} /></div>
    </div>
    ${rows.length > shown.length &&
    html`<button type="button" class="small" onClick=${() => setAll(true)}>Show all ${rows.length} replicas</button>`}
    <${BarTable} job=${job} rows=${rows} />
  </section>`;
}

/** @param {{timeline: Times}} props */
function Legend({ timeline }) {
  const all = totals(timeline);
  const sum = all.reduce((before, [, length]) => before + length, 0);
  return html`<ul class="timeline-legend" aria-label="Share of the replicas' time">
    ${all.map(
      ([name, length]) => html`<li key=${name}>
        <svg class="swatch" width="10" height="10" aria-hidden="true"><rect width="10" height="10" class=${`spent-${name}`} /></svg>
        ${CLASSES[name] ?? name} <span class="dim number">${duration(length / 1000)}, ${percent(length / sum)}</span>
      </li>`,
    )}
  </ul>`;
}

/** @param {{job: any, task: string, bars: Bar[], timeline: Times}} props */
function Row({ job, task, bars, timeline }) {
  const { from, to } = timeline;
  const x = (/** @type {number} */ at) => ((at - from) / (to - from)) * WIDTH;
  const words = bars.map((bar) => `${CLASSES[bar.class] ?? bar.class} ${duration((bar.to - bar.from) / 1000)}`).join(", ");
  return html`<div class="timeline-task">${task}</div>
    <svg class="timeline-bars" viewBox="0 0 ${WIDTH} ${HEIGHT}" preserveAspectRatio="none" role="img" aria-label=${`${task}: ${words}`}>
      ${bars.map((bar) => {
        const left = x(bar.from);
        const width = Math.max(LEAST, x(bar.to) - left);
        const isFailure = bar.exit && bar.exit.code !== 0;
        return html`<g key=${`${bar.from} ${bar.class}`} onClick=${() => go(logsAt(job, bar))}>
          <title>${sentence(bar)}</title>
          <rect class=${`spent-${bar.class}`} x=${Math.min(left, WIDTH - LEAST)} y="1" width=${width} height=${HEIGHT - 2} />
          ${isFailure && html`<rect class="spent-failure" x=${Math.min(left + width, WIDTH) - 3} y="0" width="3" height=${HEIGHT} />`}
        </g>`;
      })}
      ${attemptStarts(bars).map((at) => html`<line key=${at} class="attempt" x1=${x(at)} x2=${x(at)} y1="0" y2=${HEIGHT} />`)}
    </svg>`;
}

/** When attempts after the first began. @param {Bar[]} bars */
const attemptStarts = (bars) => bars.filter((bar, at) => at && bar.attempt !== bars[at - 1].attempt).map((bar) => bar.from);

/** @param {Bar} bar */
function sentence(bar) {
  const which = `${bar.attempt ? `, attempt ${bar.attempt}` : ""}${bar.run ? `, run ${bar.run}` : ""}`;
  const end = bar.isOpen ? "now" : clock(iso(bar.to));
  const exit = bar.exit ? `; ${bar.exit.text}` : "";
  return `${bar.task}${which}: ${CLASSES[bar.class] ?? bar.class} ${duration((bar.to - bar.from) / 1000)}, ${clock(iso(bar.from))} to ${end}${exit}. Click: its log then.`;
}

/** @param {number} at milliseconds */
const iso = (at) => new Date(at).toISOString();

/** @param {any} job @param {Bar} bar */
function logsAt(job, bar) {
  return jobHref(job.name, "logs", { task: bar.task === WHOLE ? "" : bar.task, time: iso(bar.from) });
}

/** @param {{timeline: Times}} props */
function Axis({ timeline: { from, to, isOpen } }) {
  const mark = (/** @type {number} */ at) => (to - from < SHORT ? html`<span>${withMilliseconds(new Date(at))}</span>` : html`<${Time} at=${iso(at)} />`);
  return html`${mark(from)}${mark((from + to) / 2)}${isOpen ? html`<span>now</span>` : mark(to)}`;
}

/** @param {{job: any, rows: {task: string, bars: Bar[]}[]}} props */
function BarTable({ job, rows }) {
  const columns = [
    { name: "task", title: "Replica", cell: (/** @type {Bar} */ bar) => bar.task },
    { name: "attempt", title: "Attempt", isNumber: true, cell: (/** @type {Bar} */ bar) => bar.attempt },
    { name: "run", title: "Run", isNumber: true, cell: (/** @type {Bar} */ bar) => bar.run },
    { name: "class", title: "Spent on", cell: (/** @type {Bar} */ bar) => CLASSES[bar.class] ?? bar.class },
    { name: "from", title: "From", isNumber: true, cell: (/** @type {Bar} */ bar) => html`<a href=${logsAt(job, bar)}><${Time} at=${iso(bar.from)} /></a>` },
    { name: "to", title: "To", isNumber: true, cell: (/** @type {Bar} */ bar) => (bar.isOpen ? "now" : html`<${Time} at=${iso(bar.to)} />`) },
    { name: "length", title: "Length", isNumber: true, cell: (/** @type {Bar} */ bar) => duration((bar.to - bar.from) / 1000) },
    { name: "exit", title: "Exit", isWide: true, cell: (/** @type {Bar} */ bar) => bar.exit?.text ?? "" },
  ];
  const table = () => html`<${Table}
    caption="What the time of each replica went into"
    columns=${columns}
    rows=${rows.flatMap((row) => row.bars)}
    rowKey=${(/** @type {Bar} */ bar) => `${bar.task} ${bar.from} ${bar.class}`}
  />`;
  return html`<${Fold} summary="As a table" content=${table} />`;
}
