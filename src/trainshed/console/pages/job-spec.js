// The job as a person would submit it: as YAML, as commands and programs, and the environment its replicas get.

import { html } from "../lib/ui.js";
import { setQuery } from "../lib/address.js";
import { get } from "../lib/api.js";
import { WAYS } from "../lib/copy-as.js";
import { useLive } from "../lib/hints.js";
import { bodyOf } from "../lib/resubmit.js";
import { yaml } from "../lib/yaml.js";
import { CodeBlock } from "../parts/copy.js";
import { Failure } from "../parts/notice.js";
import { Table } from "../parts/table.js";

/** @param {import("./job.js").TabProps} props */
export default function SpecTab({ job, status, address }) {
  const body = bodyOf(job);
  return html`<div class="spec">
    <section>
      <h2>As YAML</h2>
      <${CodeBlock} text=${yaml(body)} label="The job as YAML" />
    </section>
    <${CopyAs} job=${job} body=${body} way=${address.query.as} />
    <${Environment} job=${job} status=${status} chosen=${address.query.task} />
  </div>`;
}

/** @param {{job: any, body: any, way?: string}} props */
function CopyAs({ job, body, way }) {
  const [, project, , location, , id] = job.name.split("/");
  const chosen = WAYS.find(({ name }) => name === way) ?? WAYS[0];
  const { text, notes } = chosen.copy({ body, project, location, id });
  return html`<section>
    <h2>Copy as</h2>
    <div class="toolbar" role="group" aria-label="Copy as">
      ${WAYS.map(
        ({ name, title }) => html`<button key=${name} type="button" aria-pressed=${name === chosen.name} onClick=${() => setQuery({ as: name })}>
          ${title}
        </button>`,
      )}
    </div>
    <p class="dim">It submits this job again, in a shell in which <code>eval "$(trainshed env)"</code> was run.</p>
    ${notes.map((note) => html`<p key=${note} class="notice warn">${note}</p>`)}
    <${CodeBlock} text=${text} label=${`The job for ${chosen.title}`} />
  </section>`;
}

/** @param {{job: any, status: any, chosen?: string}} props */
function Environment({ job, status, chosen }) {
  /** @type {string[]} */
  const tasks = status.replicas.map((/** @type {any} */ { task }) => task);
  const task = chosen && tasks.includes(chosen) ? chosen : tasks[0];
  const { data, error } = useLive(
    (signal) => (task ? get(`/v1/${job.name}:environment`, { task }, { signal }) : Promise.resolve(undefined)),
    [task],
    { job: job.name },
  );
  const rows = Object.entries(data?.replicas[0]?.environment ?? {});
  return html`<section>
    <div class="section-head">
      <h2>Environment</h2>
      ${tasks.length > 1 &&
      html`<label>Replica <select aria-label="Replica of the environment" value=${task} onChange=${(/** @type {any} */ event) => setQuery({ task: event.target.value })}>
        ${tasks.map((name) => html`<option key=${name} value=${name}>${name}</option>`)}
      </select></label>`}
    </div>
    ${error && html`<${Failure} error=${error} />`}
    ${!task && html`<p class="dim">Known once the job has its machines: addresses and ports are part of it.</p>`}
    ${rows.length > 0 && html`<${Table} caption=${`Environment of ${task}`} columns=${COLUMNS} rows=${rows} rowKey=${(/** @type {string[]} */ [name]) => name} />`}
  </section>`;
}

/** @type {import("../parts/table.js").Column<[string, string]>[]} */
const COLUMNS = [
  { name: "name", title: "Variable", cell: ([name]) => html`<code>${name}</code>` },
  { name: "value", title: "Value", isWide: true, cell: ([, value]) => html`<code class="value">${value}</code>` },
];
