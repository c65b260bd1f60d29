// The list of jobs: live, filtered, sorted and counted by the server. The address says what it shows.

import { html, useEffect, useMemo, useState } from "../lib/ui.js";
import { href, setQuery } from "../lib/address.js";
import { get } from "../lib/api.js";
import { count } from "../lib/format.js";
import { useLive } from "../lib/hints.js";
import { useKeys } from "../lib/keys.js";
import { withoutStates, withoutTrials, withState } from "../lib/job-filter.js";
import { ownProject, ownProjects } from "../lib/own-project.js";
import { stepFocus, useTurning } from "../lib/turning.js";
import { CodeBlock } from "../parts/copy.js";
import { FilterField } from "../parts/filter-field.js";
import { Empty, Failure, Loading } from "../parts/notice.js";
import { StateMark } from "../parts/state.js";
import { Table } from "../parts/table.js";
import { Turn } from "../parts/turn.js";
import { ColumnChoice, useColumns } from "./jobs-columns.js";
import { DeedOfMany, DEEDS } from "./jobs-deeds.js";
import { useChosen } from "./jobs-chosen.js";
import { useStudiesAmong } from "./jobs-studies.js";

/** @typedef {import("./jobs-columns.js").JobRow} JobRow */

const SIZE = 50;
const NEWEST = "create_time desc";

/** @param {{address: import("../lib/address.js").Address}} props */
export default function JobsPage({ address }) {
  const { filter = "", sort = NEWEST, project = "-", from = "", page = "1", before = "", trials = "" } = address.query;
  const asked = trials ? filter : withoutTrials(filter);
  const place = `/v1/projects/${encodeURIComponent(project)}/locations/-/customJobs`;
  const list = useLive(
    (signal) => get(place, { view: "trainshed", pageSize: SIZE, filter: asked, orderBy: sort, pageToken: from }, { signal }),
    [place, asked, sort, from],
  );
  const counted = useLive((signal) => get(`${place}:count`, { filter: asked }, { signal }), [place, asked]);
  /** @type {JobRow[]} */
  const jobs = useMemo(() => list.data?.customJobs ?? [], [list.data]);
  const next = list.data?.nextPageToken;
  const rows = useStudiesAmong(list.data && jobs, { project, filter, isNewestFirst: sort === NEWEST, before, isLast: !next });
  const chosen = useChosen(jobs);
  const { columns, names, choose } = useColumns();
  const [deed, setDeed] = useState("");
  const [isChoosing, setChoosing] = useState(false);
  const turn = useTurning({ from, before }, next && { from: next, before: jobs[jobs.length - 1]?.createTime ?? "" }, Number(page));
  useJobKeys(chosen, turn);
  useEffect(() => void (document.title = `${filter || "Jobs"} – Trainshed`), [filter]);

  const isRefused = /** @type {any} */ (list.error)?.status === 400;
  const ask = (/** @type {Record<string, string>} */ changes) => setQuery({ ...changes, from: "", page: "", before: "" }, { replace: false });
  const shown = [chosen.column, ...columns];
  return html`<h1 class="unseen">Jobs</h1>
    <div class="toolbar jobs-bar">
      <${FilterField} value=${filter} problem=${isRefused ? list.error?.message ?? "" : ""} onFilter=${(/** @type {string} */ text) => ask({ filter: text })} />
      <${Projects} current=${project} jobs=${counted.data?.count} onChoose=${(/** @type {string} */ name) => ask({ project: name === "-" ? "" : name })} />
      <button type="button" aria-pressed=${Boolean(trials)} title="Jobs of trials, beside the studies they belong to" onClick=${() => ask({ trials: trials ? "" : "1" })}>Trials</button>
      <button type="button" onClick=${() => setChoosing(true)}>Columns</button>
    </div>
    <div class="jobs-summary">
      ${chosen.jobs.length
        ? html`<${ChosenBar} chosen=${chosen} onDeed=${setDeed} />`
        : html`<${Counts} counted=${counted.data} filter=${filter} asked=${asked} onFilter=${(/** @type {string} */ text) => ask({ filter: text })} />`}
    </div>
    ${list.error && !isRefused && html`<${Failure} error=${list.error} retry=${list.reload} />`}
    ${!list.data && !list.error && html`<${Loading} />`}
    ${list.data && !rows.length && html`<${NoJobs} isFiltered=${Boolean(filter || from || project !== "-")} />`}
    ${rows.length > 0 &&
    html`<div class="jobs-table">
      <${Table}
        caption="Jobs"
        columns=${shown}
        rows=${rows}
        rowKey=${(/** @type {JobRow} */ job) => job.name}
        rowClass=${(/** @type {JobRow} */ job) => (chosen.has(job) ? "chosen" : "")}
        sort=${sort}
        onSort=${(/** @type {string} */ order) => ask({ sort: order === NEWEST ? "" : order })}
      />
    </div>`}
    <${Turn} isFirst=${!from} isLast=${!next} page=${page} turn=${turn} />
    ${deed && html`<${DeedOfMany} deed=${DEEDS[deed]} chosen=${chosen.jobs} onClose=${() => setDeed("")} onDone=${chosen.drop} />`}
    ${isChoosing && html`<${ColumnChoice} names=${names} choose=${choose} onClose=${() => setChoosing(false)} />`}`;
}

/** @param {ReturnType<typeof useChosen>} chosen @param {{on: () => void, back: () => void}} turn */
function useJobKeys(chosen, turn) {
  useKeys("Jobs", {
    "/": ["Filter", () => document.getElementById("filter")?.focus()],
    j: ["Next job; Enter opens it", () => stepFocus(".jobs-table a.job", 1)],
    k: ["Job before", () => stepFocus(".jobs-table a.job", -1)],
    x: ["Choose the job, or not", () => chosen.toggleFocused()],
    n: ["Next page", turn.on],
    p: ["Page before", turn.back],
  });
}

/** @param {{counted: any, filter: string, asked: string, onFilter: (text: string) => void}} props */
function Counts({ counted, filter, asked, onFilter }) {
  if (!counted) return html`<span class="dim"> </span>`;
  const rest = withoutStates(filter);
  const states = Object.entries(/** @type {Record<string, number>} */ (counted.byState));
  return html`<span class="number">${count(counted.count)} ${counted.count === 1 ? "job" : "jobs"}</span>
    ${states.map(
      ([state, number]) => html`<button key=${state} type="button" class="plain" onClick=${() => onFilter(withState(filter, state))}>
        <${StateMark} state=${state} /> <span class="number">${count(number)}</span>
      </button>`,
    )}
    ${rest !== filter && html`<button type="button" class="plain dim" onClick=${() => onFilter(rest)}>all states</button>`}
    ${filter && counted.count > 1 && html`<a href=${href(["compare"], { filter: asked })}>compare them</a>`}`;
}

/** @param {{chosen: ReturnType<typeof useChosen>, onDeed: (deed: string) => void}} props */
function ChosenBar({ chosen, onDeed }) {
  return html`<span role="status">${count(chosen.jobs.length)} chosen</span>
    ${Object.entries(DEEDS).map(
      ([name, { title, isBad }]) => html`<button key=${name} type="button" class=${isBad ? "small bad" : "small"} onClick=${() => onDeed(name)}>${title} …</button>`,
    )}
    <a class="button small" href=${compareHref(chosen.jobs)}>Compare</a>
    <button type="button" class="small" onClick=${chosen.clear}>Choose none</button>`;
}

/** Shown where there are several; read again when the number of jobs changes. @param {{current: string, jobs?: number, onChoose: (project: string) => void}} props */
function Projects({ current, jobs, onChoose }) {
  const [projects, setProjects] = useState(/** @type {{projectId: string, jobCount: number}[]} */ ([]));
  useEffect(() => {
    if (jobs !== undefined) get("/v1/projects").then((answer) => setProjects(answer.projects), () => {});
  }, [current, jobs]);
  if (projects.length < 2 && current === "-") return null;
  const known = projects.some(({ projectId }) => projectId === current) || current === "-";
  return html`<select aria-label="Project" value=${current} onChange=${(/** @type {any} */ event) => onChoose(event.target.value)}>
    <option value="-">${ownProjects().length ? ownProject() : "All projects"}</option>
    ${!known && html`<option value=${current}>${current}</option>`}
    ${projects.filter(({ projectId }) => projectId !== ownProject()).map(({ projectId, jobCount }) => html`<option key=${projectId} value=${projectId}>${projectId} (${count(jobCount)})</option>`)}
  </select>`;
}

/** @param {{isFiltered: boolean}} props */
function NoJobs({ isFiltered }) {
  if (isFiltered) {
    return html`<${Empty} title="No job matches"><p>Change the filter, or <a href=${href(["jobs"])}>see all jobs</a>.</p><//>`;
  }
  return html`<${Empty} title="No jobs yet">
    <p>Submit the first one: <a href=${href(["new"])}>fill in a form</a>, or in a terminal, in the folder of your program:</p>
    <div class="first-job">
      <${CodeBlock} label="Command that submits a program" text="trainshed submit train.py" />
      <p>With gcloud or the Python SDK of Google, name this server first:</p>
      <${CodeBlock} label="Command that points gcloud here" text='eval "$(trainshed env)"' />
    </div>
  <//>`;
}

/** @param {JobRow[]} jobs */
function compareHref(jobs) {
  const short = (/** @type {JobRow} */ { name }) => name.replace(/^projects\/|locations\/|customJobs\//g, "");
  return href(["compare"], { jobs: jobs.map(short).join(",") });
}
