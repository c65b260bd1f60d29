// Which jobs are chosen: by a box in the row, a range with Shift, all of the page, or the key x. Pages may be turned meanwhile.

import { html, useRef, useState } from "../lib/ui.js";

/** @typedef {import("./jobs-columns.js").JobRow} JobRow */

/** @param {JobRow[]} jobs those of the page */
export function useChosen(jobs) {
  const [chosen, setChosen] = useState(/** @type {Map<string, JobRow>} */ (new Map()));
  const last = useRef("");
  const set = (/** @type {JobRow[]} */ some, /** @type {boolean} */ isOn) =>
    setChosen((before) => {
      const after = new Map(before);
      for (const job of some) isOn ? after.set(job.name, job) : after.delete(job.name);
      return after;
    });
  const toggle = (/** @type {JobRow} */ job, isRange = false) => {
    const isOn = !chosen.has(job.name);
    set(isRange ? between(jobs, last.current, job) : [job], isOn);
    last.current = job.name;
  };
  const toggleFocused = () => {
    const name = document.activeElement?.closest("tr")?.querySelector("input")?.value;
    const job = jobs.find((each) => each.name === name);
    if (job) toggle(job);
  };
  const onPage = jobs.filter((job) => chosen.has(job.name)).length;
  const all = html`<input
    type="checkbox"
    aria-label="Choose all jobs of this page"
    checked=${jobs.length > 0 && onPage === jobs.length}
    indeterminate=${onPage > 0 && onPage < jobs.length}
    onChange=${() => set(jobs, onPage < jobs.length)}
  />`;
  // What is done to many is done to jobs: a study has its own page for that.
  const box = (/** @type {JobRow} */ job) => job.kind !== "study" && html`<input
    type="checkbox"
    value=${job.name}
    aria-label=${`Choose ${job.displayName}`}
    checked=${chosen.has(job.name)}
    onClick=${(/** @type {MouseEvent} */ event) => toggle(job, event.shiftKey)}
  />`;
  const current = new Map(jobs.map((job) => [job.name, job])); // a job's state may have changed since it was chosen
  return {
    jobs: [...chosen.values()].map((job) => current.get(job.name) ?? job),
    has: (/** @type {JobRow} */ job) => chosen.has(job.name),
    clear: () => setChosen(new Map()),
    drop: (/** @type {JobRow[]} */ some) => set(some, false),
    toggleFocused,
    column: { name: "choose", title: "", head: all, cell: box },
  };
}

/** The jobs from the one chosen last to this one. @param {JobRow[]} jobs @param {string} first @param {JobRow} job */
function between(jobs, first, job) {
  const ends = [jobs.findIndex(({ name }) => name === first), jobs.indexOf(job)].sort((a, b) => a - b);
  return ends[0] < 0 ? [job] : jobs.slice(ends[0], ends[1] + 1);
}
