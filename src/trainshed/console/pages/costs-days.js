// The days of a month as bars, each made of what its time was spent on. The table by day has the numbers.

import { html } from "../lib/ui.js";
import { href } from "../lib/address.js";
import { amount, everyDay, measureOf } from "../lib/costs.js";
import { CLASSES } from "../lib/timeline.js";

/** @typedef {import("../lib/costs.js").CostRow} CostRow */
/** @typedef {import("../lib/costs.js").Costs} Costs */

const STEP = 24; // units from one day to the next
const WIDTH = 18;
const HEIGHT = 120;

/** @param {{costs: Costs, month: string}} props */
export function CostDays({ costs, month }) {
  const { name, unit } = measureOf(costs);
  const days = everyDay(month);
  const rows = new Map((costs.rows ?? []).map((row) => [row.group, row]));
  const most = Math.max(...[...rows.values()].map((row) => Number(row[name])));
  const words = days.filter((day) => rows.has(day)).map((day) => `${day} ${amount(rows.get(day)?.[name])}`).join(", ");
  return html`<section aria-labelledby="days">
    <h2 id="days" class="cost-by-day">By day <span class="dim">${unit}, at most ${amount(String(most))} · <a href=${href(["costs"], { month, by: "day" })}>as a table</a></span></h2>
    <svg class="cost-days" viewBox="0 0 ${days.length * STEP} ${HEIGHT + 2}" preserveAspectRatio="none" role="img" aria-label=${`${unit} by day: ${words}`}>
      ${days.map((day, at) => html`<${Day} key=${day} row=${rows.get(day)} name=${name} unit=${unit} x=${at * STEP} most=${most} />`)}
      <line class="ground" x1="0" x2=${days.length * STEP} y1=${HEIGHT + 1} y2=${HEIGHT + 1} />
    </svg>
    <div class="cost-axis" aria-hidden="true">${[days[0], days[Math.floor(days.length / 2)], days[days.length - 1]].map((day) => html`<span key=${day}>${day}</span>`)}</div>
  </section>`;
}

/** @param {{row?: CostRow, name: "cost" | "cpuHours" | "gpuHours", unit: string, x: number, most: number}} props */
function Day({ row, name, unit, x, most }) {
  if (!row || !most) return null;
  let y = HEIGHT;
  return html`<g>
    <title>${`${row.group}: ${amount(row[name])} ${unit}\n${row.classes.map((part) => `${CLASSES[part.class] ?? part.class} ${amount(part[name])}`).join("\n")}`}</title>
    <rect class="unseen-bar" x=${x} y="0" width=${STEP} height=${HEIGHT} />
    ${row.classes.map((part) => {
      const height = (Number(part[name]) / most) * HEIGHT;
      y -= height;
      return html`<rect key=${part.class} class=${`spent-${part.class}`} x=${x + (STEP - WIDTH) / 2} y=${y} width=${WIDTH} height=${height} />`;
    })}
  </g>`;
}
