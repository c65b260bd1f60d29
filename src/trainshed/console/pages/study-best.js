// The best trial: its value and parameters first, then what can be made of it.

import { html, useState } from "../lib/ui.js";
import { go, href, jobHref, studyHref, jobName } from "../lib/address.js";
import { get } from "../lib/api.js";
import { useDeed } from "../lib/deed.js";
import { useLive } from "../lib/hints.js";
import { keepDraft } from "../lib/job-draft.js";
import { isMaximized, valueWords } from "../lib/study.js";
import { joinWords } from "../lib/words.js";
import { CopyButton } from "../parts/copy.js";
import { Failure } from "../parts/notice.js";
import { isFinal } from "../parts/state.js";

/** @typedef {import("../lib/study.js").StudyRow} StudyRow */

/** @param {{row: StudyRow, path: string}} props */
export function Best({ row, path }) {
  const { best, objectives } = row;
  if (!best) return html`<p class="dim">No trial has succeeded${isFinal(row.state) ? "" : " yet"}, so there is no best one.</p>`;
  const [first] = objectives;
  const several = objectives.length > 1;
  return html`<section class="study-best" aria-label="The best trial">
    <div class="study-best-value">
      <span class="dim">${first && isMaximized(first) ? "Highest" : "Lowest"} ${best.metric}${several && ", the first objective"}</span>
      <strong class="number" title=${String(best.value)}>${valueWords(best.value)}</strong>
      <a href=${studyHref(row.name, "curves", { trial: best.trial })}>trial ${best.trial}</a>
    </div>
    <dl class="study-point">
      ${Object.entries(best.parameters).map(
        ([name, value]) => html`<div key=${name}><dt>${name}</dt><dd title=${String(value)}>${valueWords(value)}</dd></div>`,
      )}
    </dl>
    ${row.trials.max !== undefined && html`<${BestDeeds} key=${best.trial} row=${row} path=${path} trial=${best.trial} />`}
  </section>`;
}

/** @param {{row: StudyRow, path: string, trial: string}} props */
function BestDeeds({ row, path, trial }) {
  const [job, setJob] = useState("");
  const { data } = useLive(
    async (signal) => {
      const [point, { trials = [] }] = await Promise.all([
        get(`${path}:best`, {}, { signal }),
        get(`${path}/trials`, { view: "trainshed", filter: "state=SUCCEEDED", orderBy: orderOf(row), pageSize: 1 }, { signal }),
      ]);
      const [found] = trials;
      setJob(found?.id === trial && found.jobState ? found.customJob : "");
      return point;
    },
    [path, trial],
    { ignore: () => true }, // another best trial is another key
  );
  const cloning = useDeed((link) => go(link));
  if (!data) return null;
  return html`<div class="study-best-deeds">
    ${data.customJob && html`<${CopyButton} text=${commandOf(data)} label="Copy command" />`}
    ${data.customJob && html`<button type="button" class="small" disabled=${cloning.isRunning} onClick=${() => cloning.run(() => begin(row, path))}>Clone best as a job</button>`}
    ${job && html`<a class="button small" href=${jobHref(job)}>Job</a> <a class="button small" href=${jobHref(job, "logs")}>Logs</a> <a class="button small" href=${jobHref(job, "graphs")}>Graphs</a>`}
    ${cloning.error && html`<${Failure} error=${cloning.error} />`}
  </div>`;
}

/** @param {StudyRow} row */
const orderOf = ({ objectives: [first] }) => (first && isMaximized(first) ? "value desc" : "value");

/** What its first replica runs, for a shell. @param {any} point */
function commandOf({ customJob, args = [] }) {
  const [pool = {}] = customJob.jobSpec?.workerPoolSpecs ?? [];
  const { containerSpec, pythonPackageSpec } = pool;
  const module = pythonPackageSpec?.pythonModule ? ["python", "-m", pythonPackageSpec.pythonModule] : [];
  const words = [...module, ...(containerSpec?.command ?? []), ...((containerSpec ?? pythonPackageSpec)?.args ?? [])];
  return joinWords(words.length ? words : args);
}

/** The form for a new job, with the best point in it. Values of secrets are taken from the job of the trial. @param {StudyRow} row @param {string} path */
async function begin(row, path) {
  const { customJob, secretsOf } = await get(`${path}:best`);
  const [, project, , location] = row.name.split("/");
  const from = secretsOf ? jobName(project, location, secretsOf) : undefined;
  keepDraft({ job: customJob, project, location, from });
  return href(["new"], { from });
}
