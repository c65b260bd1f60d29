// What a person wants to know of a study first: how it stands, the best it found, how it came there, what mattered.

import { html } from "../lib/ui.js";
import { studyHref } from "../lib/address.js";
import { count } from "../lib/format.js";
import { countsOf, doneWords, lengthWords, waitWords } from "../lib/study.js";
import { Failure, Loading } from "../parts/notice.js";
import { isFinal, StateMark } from "../parts/state.js";
import { Best } from "./study-best.js";
import { History } from "./study-history.js";
import { Importance } from "./study-importance.js";
import { useStudyLive } from "./study-live.js";
import { Pareto } from "./study-pareto.js";

/** @typedef {import("../lib/study.js").StudyRow} StudyRow */

/** @param {import("./study.js").TabProps} props */
export default function OverviewTab({ row, path, address }) {
  const { data, error, reload } = useStudyLive(row, `${path}:analysis`);
  return html`<div class="study-overview">
    <${Verdict} row=${row} analysis=${data} />
    ${error && html`<${Failure} error=${error} retry=${reload} />`}
    <${Best} row=${row} path=${path} />
    <${Counts} row=${row} analysis=${data} />
    ${!data && !error && html`<${Loading} />`}
    ${data && html`<${History} row=${row} history=${data.history} />`}
    ${data && row.objectives.length > 1 && html`<${Pareto} row=${row} path=${path} best=${data.best} query=${address.query} />`}
    ${data && html`<${Importance} importance=${data.importance} metric=${row.objectives[0]?.metricId ?? ""} />`}
  </div>`;
}

/** @param {{row: StudyRow, analysis: any}} props */
function Verdict({ row, analysis }) {
  const isOver = isFinal(row.state);
  const kind = row.state.endsWith("FAILED") ? "bad" : row.state.endsWith("SUCCEEDED") ? "good" : "";
  return html`<section class="notice ${kind}" aria-label=${isOver ? "Why it ended" : "How it stands"}>
    <h2>${isOver ? row.message || "It has ended." : standing(row)}</h2>
    ${!isOver && row.message && html`<p>${row.message}</p>`}
    ${!isOver && analysis?.eta && html`<p>About ${lengthWords(analysis.eta)} left, if trials go on as they did.</p>`}
    ${isOver && html`<p>${doneWords(row)} ended.</p>`}
    ${analysis?.stoppedEarly > 0 &&
    html`<p>${count(analysis.stoppedEarly)} ${analysis.stoppedEarly === 1 ? "trial was" : "trials were"} stopped early${analysis.savedTime ? `, which saved about ${lengthWords(analysis.savedTime)} of running` : ""}.</p>`}
  </section>`;
}

/** @param {StudyRow} row */
function standing(row) {
  const { running, waiting, total } = countsOf(row);
  if (!total) return "No trial has begun yet.";
  const now = running ? `${count(running)} ${running === 1 ? "runs" : "run"}` : "none runs";
  return `${doneWords(row)} ended, ${now}${waiting ? `, ${waitWords(waiting)}` : ""}.`;
}

/** @param {{row: StudyRow, analysis: any}} props */
function Counts({ row, analysis }) {
  const states = Object.entries(/** @type {Record<string, number>} */ (analysis?.counts ?? row.trials.byState)).filter(([, number]) => number);
  if (!states.length) return null;
  return html`<p class="study-counts" aria-label="Trials by state">
    ${states.map(
      ([state, number]) => html`<a key=${state} href=${studyHref(row.name, "trials", { state })}><${StateMark} state=${state} /> <span class="number">${count(number)}</span></a>`,
    )}
  </p>`;
}
