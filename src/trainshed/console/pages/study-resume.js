// Going on with a study that has ended, or giving one that runs other limits.

import { html, useState } from "../lib/ui.js";
import { post } from "../lib/api.js";
import { countsOf } from "../lib/study.js";
import { DeedDialog } from "../parts/deed.js";
import { isFinal } from "../parts/state.js";

/** @typedef {import("../lib/study.js").StudyRow} StudyRow */

/** @type {[string, string][]} field and label */
const FIELDS = [
  ["maxTrialCount", "Trials in all"],
  ["parallelTrialCount", "Trials at once, at most"],
  ["maxFailedTrialCount", "Failed trials that end it (0: the server's own rule)"],
];

/** @param {{study: any, row: StudyRow, path: string, onDone: () => void, onClose: () => void}} props */
export function ResumeDialog({ study, row, path, onDone, onClose }) {
  const isOver = isFinal(row.state);
  const { done, max, parallel } = countsOf(row);
  const [limits, setLimits] = useState({
    maxTrialCount: isOver && done >= max ? 2 * max : max, // with the old number it would end at once
    parallelTrialCount: parallel ?? 1,
    maxFailedTrialCount: study.maxFailedTrialCount ?? 0,
  });
  const run = () => post(`${path}:resume`, limits);
  return html`<${DeedDialog}
    title=${isOver ? "Go on with this study" : "Limits of this study"}
    deed=${isOver ? "Go on" : "Set limits"}
    run=${run}
    onDone=${onDone}
    onClose=${onClose}
  >
    <p>${isOver ? "It searches on, with all it has learned so far." : "They hold at once. Trials that run are left alone."}</p>
    <div class="study-form">
      ${FIELDS.map(
        ([name, label]) => html`<label key=${name} for=${name}>${label}</label>
          <input
            id=${name}
            type="number"
            min=${name === "maxFailedTrialCount" ? 0 : 1}
            value=${/** @type {any} */ (limits)[name]}
            onInput=${(/** @type {any} */ { target }) => setLimits((before) => ({ ...before, [name]: Number(target.value) }))}
          />`,
      )}
    </div>
  <//>`;
}
