// The trials of a study as a table: sorted, filtered and cut into pages by the server, however many they are.

import { html, useState } from "../lib/ui.js";
import { jobHref, setQuery, studyHref } from "../lib/address.js";
import { post } from "../lib/api.js";
import { count } from "../lib/format.js";
import { useKeys } from "../lib/keys.js";
import { parametersOf, valueWords } from "../lib/study.js";
import { stepFocus, useTurning } from "../lib/turning.js";
import { DeedDialog } from "../parts/deed.js";
import { Empty, Failure, Loading } from "../parts/notice.js";
import { StateMark } from "../parts/state.js";
import { Table } from "../parts/table.js";
import { Length, Time } from "../parts/time.js";
import { Turn } from "../parts/turn.js";
import { useStudyLive } from "./study-live.js";

const SIZE = 50;
const SHOWN = 8; // parameters that have a column of their own
const STATES = ["REQUESTED", "ACTIVE", "STOPPING", "SUCCEEDED", "INFEASIBLE"];
const FIRST = "id";

/** @param {import("./study.js").TabProps} props */
export default function TrialsTab({ study, row, path, address, reload: reloadStudy }) {
  const { state = "", sort = FIRST, from = "", page = "1" } = address.query;
  const [stopped, setStopped] = useState(/** @type {any} */ (null));
  const jobs = new Set();
  const { data, error, reload } = useStudyLive(
    row,
    `${path}/trials`,
    { view: "trainshed", pageSize: SIZE, orderBy: sort, pageToken: from, filter: STATES.includes(state) ? `state=${state}` : "" },
    (name) => jobs.has(name),
  );
  const trials = data?.trials ?? [];
  for (const { customJob } of trials) jobs.add(customJob);
  const next = data?.nextPageToken;
  const turn = useTurning({ from }, next && { from: next }, Number(page));
  useKeys("Trials", {
    j: ["Next trial; Enter opens its job", () => stepFocus(".study-trials a.job", 1)],
    k: ["Trial before", () => stepFocus(".study-trials a.job", -1)],
    n: ["Next page", turn.on],
    p: ["Page before", turn.back],
  });
  const ask = (/** @type {Record<string, string>} */ changes) => setQuery({ ...changes, from: "", page: "" }, { replace: false });
  return html`<div class="study-trials">
    <div class="toolbar">
      <label for="trial-state">State</label>
      <select id="trial-state" value=${state} onChange=${(/** @type {any} */ { target }) => ask({ state: target.value })}>
        <option value="">all</option>
        ${STATES.map((name) => html`<option key=${name} value=${name}>${name.toLowerCase()}</option>`)}
      </select>
      <span class="dim" role="status">${data && `${count(data.totalSize)} ${data.totalSize === 1 ? "trial" : "trials"}`}</span>
    </div>
    ${error && html`<${Failure} error=${error} retry=${reload} />`}
    ${!data && !error && html`<${Loading} />`}
    ${data && !trials.length && html`<${Empty} title=${state ? "No trial is in this state" : "There are no trials yet"} />`}
    ${trials.length > 0 &&
    html`<div class="stacked">
      <${Table}
        caption="Trials"
        columns=${columnsOf(study, row, setStopped)}
        rows=${trials}
        rowKey=${(/** @type {any} */ { id }) => id}
        rowClass=${(/** @type {any} */ { id }) => (id === row.best?.trial ? "best" : "")}
        sort=${sort}
        onSort=${(/** @type {string} */ order) => ask({ sort: order === FIRST ? "" : order })}
      />
    </div>`}
    <${Turn} isFirst=${!from} isLast=${!next} page=${page} turn=${turn}>${data && ` of ${count(Math.ceil(data.totalSize / SIZE))}`}<//>
    ${stopped &&
    html`<${DeedDialog}
      title=${`Stop trial ${stopped.id}?`}
      deed="Stop the trial"
      run=${() => post(`${path}/trials/${stopped.id}:stop`)}
      onDone=${() => (reload(), reloadStudy())}
      onClose=${() => setStopped(null)}
    >
      <p>${row.trials.max === undefined ? "Whoever runs it is told so at the next question." : "Its job is ended."} The trial counts with its last measurement; without one it has failed.</p>
    <//>`}
  </div>`;
}

/**
 * @param {any} study @param {import("../lib/study.js").StudyRow} row @param {(trial: any) => void} onStop
 * @returns {import("../parts/table.js").Column<any>[]}
 */
function columnsOf(study, row, onStop) {
  const ids = [...new Set(parametersOf(study.studySpec).map(({ id }) => id))];
  const more = ids.slice(SHOWN);
  const others = row.objectives.slice(1).map(({ metricId }) => metricId);
  return [
    { name: "id", title: "Trial", isNumber: true, canSort: true, cell: (trial) => numberCell(trial, row) },
    { name: "state", title: "State", cell: stateCell },
    { name: "value", title: row.objectives[0]?.metricId ?? "Value", isNumber: true, canSort: true, cell: ({ value }) => number(value) },
    ...others.map((id) => ({ name: `metric ${id}`, title: id, isNumber: true, cell: (/** @type {any} */ trial) => number(finalOf(trial, id)) })),
    ...ids.slice(0, SHOWN).map((id) => ({ name: `parameter ${id}`, title: id, isNumber: true, cell: (/** @type {any} */ trial) => number(valueOf(trial, id)) })),
    ...(more.length ? [{ name: "more", title: "Other parameters", cell: (/** @type {any} */ trial) => moreCell(trial, more) }] : []),
    { name: "start_time", title: "Started", isNumber: true, canSort: true, cell: ({ startTime }) => html`<${Time} at=${startTime} />` },
    { name: "duration", title: "Ran", isNumber: true, canSort: true, cell: ({ startTime, endTime }) => html`<${Length} from=${startTime} to=${endTime} />` },
    { name: "deeds", title: "More", cell: (trial) => linksCell(trial, row, onStop) },
  ];
}

/** @param {unknown} value */
const number = (value) => (value === undefined ? html`<span class="dim">–</span>` : html`<span title=${String(value)}>${valueWords(value)}</span>`);

/** @param {any} trial @param {string} id */
const valueOf = ({ parameters = [] }, id) => parameters.find((/** @type {any} */ one) => one.parameterId === id)?.value;

/** @param {any} trial @param {string} id */
const finalOf = ({ finalMeasurement }, id) => finalMeasurement?.metrics?.find((/** @type {any} */ one) => one.metricId === id)?.value;

/** @param {any} trial @param {string[]} ids */
function moreCell(trial, ids) {
  const known = ids.map((id) => [id, valueOf(trial, id)]).filter(([, value]) => value !== undefined);
  return html`<span class="study-more">${known.map(([id, value]) => `${id}=${valueWords(value)}`).join(" ")}</span>`;
}

/** @param {any} trial @param {import("../lib/study.js").StudyRow} row */
function numberCell(trial, row) {
  const link = trial.jobState ? jobHref(trial.customJob) : studyHref(row.name, "curves", { trial: trial.id });
  return html`<a class="job" href=${link}>${trial.id}</a>${trial.isGiven && html` <span class="dim" title="A person asked for it">own</span>`}`;
}

/** @param {any} trial */
function stateCell(trial) {
  const why = trial.infeasibleReason ?? trial.stopReason;
  const isWaiting = trial.state === "ACTIVE" && trial.jobState && !trial.jobState.endsWith("RUNNING");
  return html`<div>
    <${StateMark} state=${trial.state} />
    ${isWaiting && html` <span class="dim">job <${StateMark} state=${trial.jobState} /></span>`}
    ${why && html`<div class="why" title=${why}>${why}</div>`}
  </div>`;
}

/** @param {any} trial @param {import("../lib/study.js").StudyRow} row @param {(trial: any) => void} onStop */
function linksCell(trial, row, onStop) {
  return html`<span class="study-links">
    <a href=${studyHref(row.name, "curves", { trial: trial.id })} aria-label=${`Curve of trial ${trial.id}`}>curve</a>
    ${trial.jobState && html` <a href=${jobHref(trial.customJob, "logs")} aria-label=${`Logs of trial ${trial.id}`}>logs</a> <a href=${jobHref(trial.customJob, "graphs")} aria-label=${`Graphs of trial ${trial.id}`}>graphs</a>`}
    ${trial.state === "ACTIVE" && html` <button type="button" class="small" aria-label=${`Stop trial ${trial.id}`} onClick=${() => onStop(trial)}>Stop …</button>`}
  </span>`;
}
