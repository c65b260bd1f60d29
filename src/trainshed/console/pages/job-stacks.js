// Where each replica of a running job is: those in the same place together, the odd ones marked.

import { classes, html } from "../lib/ui.js";
import { setQuery } from "../lib/address.js";
import { get } from "../lib/api.js";
import { useLive } from "../lib/hints.js";
import { isFinal } from "../parts/state.js";
import { Empty, Failure, Loading, Notice } from "../parts/notice.js";
import { CopyButton } from "../parts/copy.js";

/** @param {import("./job.js").TabProps} props */
export default function JobStacks({ job, status, address }) {
  const task = address.query.task ?? "";
  const { data, error, isLoading, reload } = useLive(
    (signal) => get(`/v1/${job.name}:stacks`, { task }, { signal }),
    [job.name, task],
    { job: job.name, ignore: () => true }, // a look at the stacks disturbs a little: only who asks gets one
  );
  if (isFinal(job.state) && !data) {
    return html`<${Empty} title="This job is over"><p>Stacks can be read of replicas that run.</p><//>`;
  }
  const tasks = (status.replicas ?? []).map((/** @type {any} */ replica) => replica.task);
  return html`<div class="toolbar">
      <label for="stacks-task">Replica</label>
      <select id="stacks-task" value=${task} onChange=${(/** @type {any} */ event) => setQuery({ task: event.target.value })}>
        <option value="">all</option>
        ${tasks.map((/** @type {string} */ name) => html`<option key=${name} value=${name}>${name}</option>`)}
      </select>
      <button type="button" onClick=${reload} disabled=${isLoading}>Look again</button>
      ${data && html`<${CopyButton} text=${JSON.stringify(data, null, 2)} label="Copy as JSON" />`}
    </div>
    ${error && html`<${Failure} error=${error} retry=${reload} />`}
    ${!data && !error && html`<${Loading} words="Reading the stacks" />`}
    ${data && html`<${Stacks} stacks=${data} />`}`;
}

/** @param {{stacks: any}} props */
function Stacks({ stacks }) {
  const replicas = new Map((stacks.replicas ?? []).map((/** @type {any} */ replica) => [replica.task, replica]));
  const groups = stacks.groups ?? [];
  const most = Math.max(0, ...groups.map((/** @type {any} */ group) => group.tasks.length));
  // Where all but a few are in one place, the few are what one looks for.
  const isOdd = (/** @type {any} */ group) => groups.length > 1 && group.tasks.length * 2 <= most;
  return html`<${Notice}><p>${stacks.summary}</p>
      ${replicas.size < stacks.alive && html`<p class="dim">A sample of ${replicas.size} of ${stacks.alive} replicas; choose another above.</p>`}
    <//>
    <div class="stacks">
      ${groups.map(
        (/** @type {any} */ group) => html`<section key=${group.tasks[0]} class=${classes("stack-group", isOdd(group) && "odd")}>
          <h2>${group.tasks.join(", ")}</h2>
          <p>${isOdd(group) && html`<strong class="warn-ink">unlike the others: </strong>`}${group.waiting ? "waits" : "is"} in <code>${group.place}</code></p>
          <${Replica} replica=${replicas.get(group.tasks[0])} />
        </section>`,
      )}
    </div>`;
}

/** @param {{replica: any}} props */
function Replica({ replica }) {
  if (!replica) return null;
  return html`${replica.fault && html`<p class="bad-ink">${replica.fault}</p>`}
    ${(replica.processes ?? []).map(
      (/** @type {any} */ process) => html`<div key=${process.pid} class="stack-process">
        <h3>process ${process.pid} <code>${process.command}</code> <span class="dim">(${process.state})</span></h3>
        ${(process.threads ?? []).map((/** @type {any} */ thread, /** @type {number} */ at) => html`<${Thread} key=${at} thread=${thread} />`)}
      </div>`,
    )}`;
}

/** @param {{thread: any}} props */
function Thread({ thread }) {
  return html`<details open=${thread.main}>
    <summary>${thread.main ? "main thread" : `thread ${thread.name}`}${thread.waiting && html` <span class="dim">waits</span>`}</summary>
    <ol class="frames">
      ${(thread.frames ?? []).map(
        (/** @type {any} */ frame, /** @type {number} */ at) =>
          html`<li key=${at}><code>${frame.function}</code> <span class="dim">${frame.file}${frame.line ? `:${frame.line}` : ""}</span></li>`,
      )}
    </ol>
  </details>`;
}
