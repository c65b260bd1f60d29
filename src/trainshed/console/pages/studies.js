// The list of studies: live, filtered and cut into pages by the server. The address says what it shows.

import { html, useEffect } from "../lib/ui.js";
import { href, setQuery, studyHref } from "../lib/address.js";
import { get } from "../lib/api.js";
import { count, plain } from "../lib/format.js";
import { useLive } from "../lib/hints.js";
import { useKeys } from "../lib/keys.js";
import { countsOf, kindWords, pointWords, whyWords } from "../lib/study.js";
import { stepFocus, useTurning } from "../lib/turning.js";
import { CodeBlock } from "../parts/copy.js";
import { Empty, Failure, Loading } from "../parts/notice.js";
import { SearchField } from "../parts/search-field.js";
import { StateMark } from "../parts/state.js";
import { Table } from "../parts/table.js";
import { Time } from "../parts/time.js";
import { Turn } from "../parts/turn.js";

/** @typedef {import("../lib/study.js").StudyRow} StudyRow */

const SIZE = 50;

/** @param {{address: import("../lib/address.js").Address}} props */
export default function StudiesPage({ address }) {
  const { filter = "", project = "-", from = "", page = "1" } = address.query;
  const place = `/v1/projects/${encodeURIComponent(project)}/locations/-/hyperparameterTuningJobs`;
  const { data, error, reload } = useLive(
    (signal) => get(place, { view: "trainshed", pageSize: SIZE, filter, pageToken: from }, { signal }),
    [place, filter, from],
    { ignore: (hint) => Boolean(hint.name?.includes("/customJobs/")) }, // a study tells itself what its trials change
  );
  /** @type {StudyRow[]} */
  const studies = data?.hyperparameterTuningJobs ?? [];
  const next = data?.nextPageToken;
  const turn = useTurning({ from }, next && { from: next }, Number(page));
  useKeys("Studies", {
    "/": ["Filter", () => document.getElementById("filter-studies")?.focus()],
    j: ["Next study; Enter opens it", () => stepFocus(".studies a.job", 1)],
    k: ["Study before", () => stepFocus(".studies a.job", -1)],
    n: ["Next page", turn.on],
    p: ["Page before", turn.back],
  });
  useEffect(() => void (document.title = `${filter || "Studies"} – Trainshed`), [filter]);
  const isRefused = /** @type {any} */ (error)?.status === 400;
  const search = (/** @type {string} */ text) => setQuery({ filter: text, from: "", page: "" }, { replace: false });
  return html`<div class="studies">
    <h1 class="unseen">Studies</h1>
    <div class="toolbar">
      <${SearchField}
        id="filter-studies"
        label="Filter studies"
        placeholder="Filter: words, state=RUNNING, labels.team=vision …   ( / )"
        value=${filter}
        problem=${isRefused ? error?.message : ""}
        onSearch=${search}
      />
    </div>
    ${error && !isRefused && html`<${Failure} error=${error} retry=${reload} />`}
    ${!data && !error && html`<${Loading} />`}
    ${data && !studies.length && html`<${NoStudies} isFiltered=${Boolean(filter || from || project !== "-")} />`}
    ${studies.length > 0 &&
    html`<div class="stacked">
      <${Table} caption="Studies" columns=${COLUMNS} rows=${studies} rowKey=${(/** @type {StudyRow} */ { name }) => name} />
    </div>`}
    <${Turn} isFirst=${!from} isLast=${!next} page=${page} turn=${turn} />
  </div>`;
}

/** @type {import("../parts/table.js").Column<StudyRow>[]} */
const COLUMNS = [
  { name: "state", title: "State", cell: ({ state }) => html`<${StateMark} state=${state} />` },
  { name: "name", title: "Name", isWide: true, cell: nameCell },
  { name: "best", title: "Best", isNumber: true, cell: bestCell },
  { name: "trials", title: "Trials", isNumber: true, cell: trialsCell },
  { name: "running", title: "Running", isNumber: true, cell: runningCell },
  { name: "kind", title: "Kind", cell: (study) => html`<span class="kind">${kindWords(study)}</span>` },
  { name: "submitter", title: "Who", cell: ({ submitter }) => submitter ?? html`<span class="dim">–</span>` },
  { name: "created", title: "Created", isNumber: true, cell: ({ createTime }) => html`<${Time} at=${createTime} isAgo />` },
];

/** @param {StudyRow} study */
function nameCell(study) {
  const why = whyWords(study);
  return html`<a class="job" href=${studyHref(study.name)}>${study.displayName}</a>
    ${why && html`<div class="why" title=${why}>${why}</div>`}`;
}

/** @param {StudyRow} study */
function bestCell({ best, objectives }) {
  if (!best) return html`<span class="dim">–</span>`;
  const more = objectives.length > 1 ? ` +${objectives.length - 1}` : "";
  return html`<span title=${`Trial ${best.trial}: ${pointWords(best.parameters)}`}>${plain(best.value)} <span class="dim">${best.metric}${more}</span></span>`;
}

/** @param {StudyRow} study */
function trialsCell(study) {
  const { done, max, failed } = countsOf(study);
  const of = study.trials.max ? ` / ${count(max)}` : "";
  return html`<span title=${`${done} have ended${failed ? `, ${failed} of them failed` : ""}`}>${count(done)}${of}</span>
    ${failed > 0 && html` <span class="bad-ink">${count(failed)} failed</span>`}`;
}

/** @param {StudyRow} study */
function runningCell(study) {
  const { running, parallel } = countsOf(study);
  if (parallel === undefined) return count(running);
  return html`<span title=${`${running} run, at most ${parallel} at once`}>${count(running)} / ${count(parallel)}</span>`;
}

/** @param {{isFiltered: boolean}} props */
function NoStudies({ isFiltered }) {
  if (isFiltered) return html`<${Empty} title="No study matches"><p>Change the filter, or <a href=${href(["studies"])}>see all studies</a>.</p><//>`;
  return html`<${Empty} title="No studies yet">
    <p>A study searches good parameters: it runs your program many times, each time with others.</p>
    <div class="first-job">
      <${CodeBlock} label="Command that starts a study" text="trainshed tune train.py --param lr=log:1e-4..1e-1 --minimize loss" />
    </div>
  <//>`;
}
