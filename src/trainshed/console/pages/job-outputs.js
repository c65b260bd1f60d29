// What went in and what came out: addresses in the job's arguments, its output folder, model and checkpoints.

import { html } from "../lib/ui.js";
import { get } from "../lib/api.js";
import { bytes, count } from "../lib/format.js";
import { useLive } from "../lib/hints.js";
import { bucketHref, listing } from "../lib/outputs.js";
import { Table } from "../parts/table.js";
import { Time } from "../parts/time.js";

/** @typedef {import("../lib/outputs.js").Committed} Committed */

const FEW = 10; // checkpoints that are shown
const ADDRESS = /(?:gs|s3):\/\/[^\s'",;)\]]+|\/gcs\/[^\s'",;)\]]+/g;

/** @param {{job: any}} props */
export function Results({ job }) {
  const uri = job.jobSpec.baseOutputDirectory?.outputUriPrefix;
  const inputs = inputsOf(job, uri);
  return html`<section>
    <h2>Inputs and outputs</h2>
    ${inputs.length > 0 && html`<p>Named in its arguments: ${inputs.map((input) => html`<${BucketLink} key=${input} uri=${input} /> `)}</p>`}
    ${uri ? html`<${Stored} job=${job} uri=${uri} />` : html`<p class="dim">It has no place for outputs (baseOutputDirectory).</p>`}
  </section>`;
}

/** @param {{job: any, uri: string}} props */
function Stored({ job, uri }) {
  const { data, error } = useLive(
    async (signal) => {
      const results = /** @type {import("../lib/outputs.js").Results} */ (await get(`/v1/${job.name}:results`, {}, { signal }));
      return { results, top: results.note ? undefined : await listing(uri, { signal }) };
    },
    [uri],
    { job: job.name },
  );
  const { model, checkpoints = [], note } = data?.results ?? {};
  return html`<p>
      Output folder: <${BucketLink} uri=${uri} /> <span class="dim">${error?.message ?? note ?? (data?.top && summary(data.top))}</span>
    </p>
    ${model && html`<p>Model: <${BucketLink} uri=${model.uri} /> <span class="dim">complete, stored <${Time} at=${model.storedTime} isAgo /></span></p>`}
    ${checkpoints.length > 0 && html`<${Checkpoints} all=${checkpoints} />`}`;
}

/** @param {import("../lib/outputs.js").Listing} listing */
function summary({ folders, files, isMore }) {
  if (!folders.length && !files.length) return "nothing is there yet";
  const size = files.reduce((sum, file) => sum + Number(file.size ?? 0), 0);
  const parts = [
    folders.length && `${count(folders.length)} ${folders.length === 1 ? "folder" : "folders"}`,
    files.length && `${count(files.length)} ${files.length === 1 ? "file" : "files"}, ${bytes(size)}`,
  ];
  return parts.filter(Boolean).join(", ") + (isMore ? " and more" : "");
}

/** @param {{all: Committed[]}} props */
function Checkpoints({ all }) {
  /** @type {import("../parts/table.js").Column<Committed>[]} */
  const columns = [
    { name: "uri", title: "Checkpoint", isWide: true, cell: ({ uri }) => html`<${BucketLink} uri=${uri} words=${uri.split("/").at(-2)} />` },
    { name: "use", title: "Use", cell: (item) => (item === all[0] ? html`<span class="nowrap">a new attempt goes on from it</span>` : "") },
    { name: "stored", title: "Stored", isNumber: true, cell: ({ storedTime }) => html`<${Time} at=${storedTime} isAgo />` },
  ];
  return html`<h3>Complete checkpoints (${count(all.length)})</h3>
    <${Table} caption="Complete checkpoints, newest first" columns=${columns} rows=${all.slice(0, FEW)} rowKey=${(/** @type {Committed} */ { uri }) => uri} />`;
}

/** Addresses in arguments and variables, without those below the output. @param {any} job @param {string} [output] */
function inputsOf(job, output) {
  /** @type {string[]} */
  const texts = (job.jobSpec.workerPoolSpecs ?? []).flatMap((/** @type {any} */ pool) => {
    const runs = pool.containerSpec ?? pool.pythonPackageSpec ?? {};
    const env = (runs.env ?? []).map((/** @type {any} */ variable) => variable.value ?? "");
    return [...(runs.command ?? []), ...(runs.args ?? []), ...env, ...(runs.packageUris ?? [])];
  });
  const addresses = texts.flatMap((text) => (text.match(ADDRESS) ?? []).map((address) => address.replace("/gcs/", "gs://")));
  return [...new Set(addresses)].filter((address) => !output || !address.startsWith(output));
}

/** @param {{uri: string, words?: string}} props */
function BucketLink({ uri, words = uri }) {
  const link = bucketHref(uri);
  return link ? html`<a href=${link}><code>${words}</code></a>` : html`<code>${words}</code>`;
}
