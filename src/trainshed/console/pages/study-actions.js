// What a person can do to a study: each action says first what happens.

import { html, useState } from "../lib/ui.js";
import { go, href } from "../lib/address.js";
import { post, remove } from "../lib/api.js";
import { DeedDialog } from "../parts/deed.js";
import { Menu } from "../parts/menu.js";
import { isFinal } from "../parts/state.js";
import { AddTrials } from "./study-add.js";
import { ResumeDialog } from "./study-resume.js";

/** @typedef {import("../lib/study.js").StudyRow} StudyRow */
/** @typedef {{title: string, deed: string, says: string, isBad?: boolean, run: (path: string) => Promise<any>, isDeletion?: boolean}} Action */

/** @type {Record<string, Action>} */
const ACTIONS = {
  stop: {
    title: "Stop this study?",
    deed: "Stop the study",
    says: "No trial begins any more. Trials that run are ended and count with their last measurement. The study succeeds with the best it has, and can go on later.",
    run: (path) => post(`${path}:stop`),
  },
  cancel: {
    title: "Cancel this study?",
    deed: "Cancel the study",
    says: "No trial begins any more, and the jobs of trials that run are cancelled. What has been measured stays.",
    isBad: true,
    run: (path) => post(`${path}:cancel`),
  },
  delete: {
    title: "Delete this study?",
    deed: "Delete the study",
    says: "The study and its trials are removed for good. The jobs of its trials stay, with their logs and outputs.",
    isBad: true,
    run: (path) => remove(path),
    isDeletion: true,
  },
};
const WHY_NOT = "It has not ended: cancel it first.";

/** @param {{study: any, row: StudyRow, path: string, reload: () => void}} props */
export function StudyActions({ study, row, path, reload }) {
  const [asked, setAsked] = useState("");
  const action = ACTIONS[asked];
  const isOver = isFinal(row.state);
  const isCancelling = row.state.endsWith("CANCELLING");
  const runsJobs = row.trials.max !== undefined;
  const ask = (/** @type {string} */ name) => () => setAsked(name);
  const close = () => setAsked("");
  return html`<div class="study-actions">
    ${!isOver && html`<button type="button" disabled=${isCancelling} onClick=${ask("stop")}>Stop</button>`}
    ${!isOver && runsJobs && html`<button type="button" class="bad" disabled=${isCancelling} onClick=${ask("cancel")}>${isCancelling ? "Cancelling" : "Cancel"}</button>`}
    ${runsJobs && html`<button type="button" disabled=${isCancelling} onClick=${ask("resume")}>${isOver ? "Go on" : "Limits"}</button>`}
    <${Menu}
      title="More"
      deeds=${[
        { title: "Add a trial", onClick: ask("add"), why: isOver ? "It has ended: go on with it first." : undefined },
        { title: "Copy link", onClick: () => navigator.clipboard?.writeText(location.href) },
        { title: "Delete", isBad: true, onClick: ask("delete"), why: isOver || !runsJobs ? undefined : WHY_NOT },
      ]}
    />
    ${asked === "resume" && html`<${ResumeDialog} study=${study} row=${row} path=${path} onDone=${reload} onClose=${close} />`}
    ${asked === "add" && html`<${AddTrials} study=${study} row=${row} path=${path} onDone=${reload} onClose=${close} />`}
    ${action &&
    html`<${DeedDialog}
      key=${asked}
      title=${action.title}
      deed=${action.deed}
      isBad=${action.isBad}
      run=${() => action.run(path)}
      onDone=${() => (action.isDeletion ? go(href(["studies"])) : reload())}
      onClose=${close}
    >
      <p><strong>${row.displayName}</strong></p>
      <p>${action.says}</p>
    <//>`}
  </div>`;
}
