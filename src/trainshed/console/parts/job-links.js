// The jobs that need something, by their ids: the first few as links, the rest counted.

import { html } from "../lib/ui.js";
import { href } from "../lib/address.js";

const SHOWN = 2;

/** @param {{jobs?: string[]}} props */
export function JobLinks({ jobs = [] }) {
  if (!jobs.length) return html`<span class="dim">–</span>`;
  return html`${jobs
    .slice(0, SHOWN)
    .map((job, at) => html`${at ? ", " : ""}<a key=${job} href=${href(["jobs"], { filter: job, trials: 1 })}>${job}</a>`)}
  ${jobs.length > SHOWN && html`<span class="dim"> and ${jobs.length - SHOWN} more</span>`}`;
}
