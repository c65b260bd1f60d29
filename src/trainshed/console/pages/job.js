// A job: its name, state and actions above tabs. Each tab is a module of its own, pages/job-NAME.js.
//
// A tab gets {job, status, address, reload}: the job as the API has it, the answer of :status, both read again
// after each hint; the address; and a function that reads both at once.

import { html, useEffect, useLayoutEffect, useState } from "../lib/ui.js";
import { go, href, jobHref, jobName, studyHref } from "../lib/address.js";
import { get } from "../lib/api.js";
import { shortName } from "../lib/format.js";
import { useLive } from "../lib/hints.js";
import { nameOf } from "../lib/job-by-id.js";
import { askForJob, JOB_TABS, jobAddress, statusAddress } from "../lib/job-tabs.js";
import { useKeys } from "../lib/keys.js";
import { CopyButton } from "../parts/copy.js";
import { Module } from "../parts/module.js";
import { Empty, Failure, Loading, Notice } from "../parts/notice.js";
import { JobProgress } from "../parts/progress.js";
import { isFinal, StateMark } from "../parts/state.js";
import { Tabs } from "../parts/tabs.js";
import { Length, Time } from "../parts/time.js";
import { JobActions } from "./job-actions.js";

/** @typedef {import("../lib/address.js").Address} Address */
/** @typedef {{job: any, status: any, address: Address, reload: () => void}} TabProps what every tab gets */

const KINDS = /** @type {Record<string, string>} */ ({
  pipeline: "Pipeline",
  legacy: "Older job",
  manifest: "Kubernetes file",
  trial: "Trial",
});

/** @param {{address: Address}} props */
export default function JobPage({ address }) {
  const [, project, place, id, tab = "overview"] = address.parts;
  if (project === "-") return html`<${JobById} key=${id} id=${id} tab=${tab} />`;
  const name = jobName(project, place, id);
  return html`<${LoadedJob} key=${name} name=${name} tab=${tab} address=${address} />`;
}

/** Leads to the job of that id, in whichever project it is. @param {{id: string, tab: string}} props */
function JobById({ id, tab }) {
  const [error, setError] = useState(/** @type {Error | null} */ (null));
  useEffect(() => {
    nameOf(id).then((name) => {
      if (name) go(tabHref(name, tab), { replace: true });
      else setError(new Error(`No project has a job ${id}.`));
    }, setError);
  }, []);
  return error ? html`<${NoSuchJob} words=${error.message} />` : html`<${Loading} />`;
}

/** @param {{name: string, tab: string, address: Address}} props */
function LoadedJob({ name, tab, address }) {
  // The tab is drawn once the job is here: its own question need not wait for that.
  useLayoutEffect(() => askForJob(name, tab, address.query), [name]);
  const { data, error, reload } = useLive(
    async (signal) => {
      const [job, status] = await Promise.all([
        get(jobAddress(name), {}, { signal }),
        get(statusAddress(name), {}, { signal }),
      ]);
      return { job, status };
    },
    [name],
    { job: name },
  );
  useKeys(
    "This job",
    Object.fromEntries(JOB_TABS.map((entry) => [entry.key, [entry.title, () => go(tabHref(name, entry.name))]])),
  );
  const title = data?.job.displayName ?? shortName(name);
  useEffect(() => {
    document.title = `${title} · Trainshed`;
    return () => void (document.title = "Trainshed");
  }, [title]);
  const isGone = error && "status" in error && error.status === 404;
  if (isGone && !data) return html`<${NoSuchJob} words=${error.message} />`;
  if (error && !data) return html`<h1>${title}</h1><${Failure} error=${error} retry=${reload} />`;
  if (!data) return html`<${Loading} />`;
  return html`<${Frame} ...${data} tab=${tab} address=${address} reload=${reload} isGone=${isGone} />`;
}

/** @param {TabProps & {tab: string, isGone: boolean}} props */
function Frame({ job, status, tab, address, reload, isGone }) {
  const known = JOB_TABS.some(({ name }) => name === tab);
  const tabs = JOB_TABS.map(({ name, title }) => ({ name, title, href: tabHref(job.name, name) }));
  return html`<div class="one-job">
    <${Head} job=${job} status=${status} reload=${reload} isGone=${isGone} />
    ${isGone && html`<${Notice} kind="warn"><p>This job was deleted. What is shown is the last that was read of it.</p><//>`}
    <${Tabs} label="Parts of the job" tabs=${tabs} current=${tab} />
    ${known
      ? html`<${Module} key=${tab} name=${`job-${tab}`} job=${job} status=${status} address=${address} reload=${reload} />`
      : html`<${Empty} title=${`A job has no tab “${tab}”`}><p><a href=${jobHref(job.name)}>Overview</a></p><//>`}
  </div>`;
}

/** @param {{job: any, status: any, reload: () => void, isGone: boolean}} props */
function Head({ job, status, reload, isGone }) {
  const [, project, , place] = job.name.split("/");
  const who = status.submitter;
  const kind = KINDS[status.kind] ?? "Custom job";
  const study = /^study\/(.+)/.exec(status.owner ?? "")?.[1];
  return html`<header class="job-head">
    <h1>${job.displayName}</h1>
    <p class="job-facts">
      <${StateMark} state=${job.state} />
      <span>${kind}${study && html` of <a href=${studyHref(`projects/${project}/locations/${place}/studies/${study}`)}>a study</a>`}</span>
      <span title="Project and region">${project} / ${place}</span>
      <span><code>${shortName(job.name)}</code> <${CopyButton} text=${job.name} label="Copy name" /></span>
      <span>submitted <${Time} at=${job.createTime} isAgo />${who && ` by ${who}`}</span>
      ${job.startTime &&
      html`<span>${isFinal(job.state) ? "ran" : "runs for"} <${Length} from=${job.startTime} to=${job.endTime} /></span>`}
      ${job.progress && html`<${JobProgress} progress=${job.progress} />`}
      ${status.attempt > 0 && html`<span>attempt ${status.attempt}</span>`}
    </p>
    ${!isGone && html`<${JobActions} job=${job} status=${status} reload=${reload} />`}
  </header>`;
}

/** @param {{words: string}} props */
function NoSuchJob({ words }) {
  return html`<h1>There is no such job</h1>
    <p>${words} It may have been deleted.</p>
    <p><a href=${href(["jobs"])}>All jobs</a></p>`;
}

/** @param {string} name @param {string} tab */
const tabHref = (name, tab) => jobHref(name, tab === "overview" ? "" : tab);
