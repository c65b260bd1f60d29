// A study: its name, state and actions above tabs. Each tab is a module of its own, pages/study-NAME.js.
//
// A tab gets {study, row, path, address, reload}: the study as the API has it without its trials, its row as in the
// list, both read again after each hint; the path of its methods; the address; a function that reads both at once.

import { html, useEffect } from "../lib/ui.js";
import { go, href, studyHref } from "../lib/address.js";
import { get, pathOf } from "../lib/api.js";
import { shortName } from "../lib/format.js";
import { useLive } from "../lib/hints.js";
import { useKeys } from "../lib/keys.js";
import { kindWords } from "../lib/study.js";
import { CopyButton } from "../parts/copy.js";
import { Module } from "../parts/module.js";
import { Empty, Failure, Loading, Notice } from "../parts/notice.js";
import { isFinal, StateMark } from "../parts/state.js";
import { Tabs } from "../parts/tabs.js";
import { Length, Time } from "../parts/time.js";
import { StudyActions } from "./study-actions.js";

/** @typedef {import("../lib/address.js").Address} Address */
/** @typedef {import("../lib/study.js").StudyRow} StudyRow */
/** @typedef {{study: any, row: StudyRow, path: string, address: Address, reload: () => void}} TabProps what every tab gets */

const TABS = [
  { name: "overview", title: "Overview", key: "g o" },
  { name: "trials", title: "Trials", key: "g t" },
  { name: "curves", title: "Curves", key: "g h" },
  { name: "parallel", title: "Parameters", key: "g p" },
  { name: "spec", title: "Spec", key: "g y" },
];

/** @param {{address: Address}} props */
export default function StudyPage({ address }) {
  const [, project = "", place = "", id = "", tab = "overview"] = address.parts;
  const name = `projects/${project}/locations/${place}/hyperparameterTuningJobs/${id}`;
  return html`<${LoadedStudy} key=${name} name=${name} tab=${tab} address=${address} />`;
}

/** @param {string} path @param {AbortSignal} signal @returns {Promise<{study: any, row: StudyRow}>} */
async function readStudy(path, signal) {
  const { trainshed: row, ...study } = await get(path, { view: "trainshed" }, { signal });
  return { study, row };
}

/** @param {{name: string, tab: string, address: Address}} props */
function LoadedStudy({ name, tab, address }) {
  const path = pathOf(name);
  const { data, error, reload } = useLive((signal) => readStudy(path, signal), [path], {
    // By its id: studies of the Vizier service have another name.
    ignore: (hint) => Boolean(hint.name) && (!hint.name?.endsWith(`/${shortName(name)}`) || hint.name.includes("/customJobs/")),
  });
  useKeys(
    "This study",
    Object.fromEntries(TABS.map((entry) => [entry.key, [entry.title, () => go(tabHref(name, entry.name))]])),
  );
  const title = data?.row.displayName ?? shortName(name);
  useEffect(() => {
    document.title = `${title} · Trainshed`;
    return () => void (document.title = "Trainshed");
  }, [title]);
  const isGone = error && "status" in error && error.status === 404;
  if (isGone && !data) return html`<${NoSuchStudy} words=${error.message} />`;
  if (error && !data) return html`<h1>${title}</h1><${Failure} error=${error} retry=${reload} />`;
  if (!data) return html`<${Loading} />`;
  return html`<${Frame} ...${data} path=${pathOf(data.row.name)} tab=${tab} address=${address} reload=${reload} isGone=${isGone} />`;
}

/** @param {TabProps & {tab: string, isGone: boolean}} props */
function Frame({ study, row, path, tab, address, reload, isGone }) {
  const known = TABS.some(({ name }) => name === tab);
  const tabs = TABS.map(({ name, title }) => ({ name, title, href: tabHref(row.name, name) }));
  return html`<div class="study">
    <${Head} study=${study} row=${row} path=${path} reload=${reload} isGone=${isGone} />
    ${isGone && html`<${Notice} kind="warn"><p>This study was deleted. What is shown is the last that was read of it.</p><//>`}
    <${Tabs} label="Parts of the study" tabs=${tabs} current=${tab} />
    ${known
      ? html`<${Module} key=${tab} name=${`study-${tab}`} study=${study} row=${row} path=${path} address=${address} reload=${reload} />`
      : html`<${Empty} title=${`A study has no tab “${tab}”`}><p><a href=${studyHref(row.name)}>Overview</a></p><//>`}
  </div>`;
}

/** @param {{study: any, row: StudyRow, path: string, reload: () => void, isGone: boolean}} props */
function Head({ study, row, path, reload, isGone }) {
  const [, project, , place] = row.name.split("/");
  return html`<header class="study-head">
    <div class="grow">
      <h1>${row.displayName}</h1>
      <p class="study-facts">
        <${StateMark} state=${row.state} />
        <span>${kindWords(row)}</span>
        <span title="Project and region">${project} / ${place}</span>
        <span><code>${shortName(row.name)}</code> <${CopyButton} text=${row.name} label="Copy name" /></span>
        <span>created <${Time} at=${row.createTime} isAgo />${row.submitter && ` by ${row.submitter}`}</span>
        ${row.startTime &&
        html`<span>${isFinal(row.state) ? "ran" : "runs for"} <${Length} from=${row.startTime} to=${row.endTime} /></span>`}
      </p>
    </div>
    ${!isGone && html`<${StudyActions} study=${study} row=${row} path=${path} reload=${reload} />`}
  </header>`;
}

/** @param {{words: string}} props */
function NoSuchStudy({ words }) {
  return html`<h1>There is no such study</h1>
    <p>${words} It may have been deleted.</p>
    <p><a href=${href(["studies"])}>All studies</a></p>`;
}

/** @param {string} name @param {string} tab */
const tabHref = (name, tab) => studyHref(name, tab === "overview" ? "" : tab);
