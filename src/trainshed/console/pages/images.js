// Container images: what is here, how far pulls and builds are; pull, tag and remove.

import { html, useState } from "../lib/ui.js";
import { EVERYWHERE, get, post } from "../lib/api.js";
import { useDeed } from "../lib/deed.js";
import { bytes } from "../lib/format.js";
import { useLive } from "../lib/hints.js";
import { CodeBlock } from "../parts/copy.js";
import { Confirm, Dialog } from "../parts/dialog.js";
import { JobLinks } from "../parts/job-links.js";
import { Menu } from "../parts/menu.js";
import { Empty, Failure, Loading, Notice } from "../parts/notice.js";
import { ProgressLine } from "../parts/progress.js";
import { Table } from "../parts/table.js";
import { Time } from "../parts/time.js";
import { usePulls } from "./images-pulls.js";

const IMAGES = `${EVERYWHERE}/images`;
const UNAVAILABLE = 503;

/** @typedef {{id: string, names: string[], sizeBytes: string, createTime?: string, lastUseTime?: string, jobs?: string[]}} Image */

export default function ImagesPage() {
  const { data, error, reload } = useLive(load, [], { metrics: "-" });
  const pulls = usePulls(reload);
  if (error && !data) return html`<h1>Images</h1><${NoImages} error=${error} retry=${reload} />`;
  if (!data) return html`<h1>Images</h1><${Loading} />`;
  const names = new Set(pulls.map((pull) => pull.name));
  const others = data.going.filter((/** @type {any} */ item) => !names.has(item.name));
  return html`<h1>Images</h1>
    ${error && html`<${Failure} error=${error} retry=${reload} />`}
    <${PullForm} onPull=${pulls.begin} />
    <${Going} pulls=${pulls} others=${others} />
    ${data.images.length === 0 ? html`<${NoneYet} />` : html`<${ImageTable} images=${data.images} reload=${reload} />`}
    <${HowToBuild} />`;
}

/** The images, and what goes on: what people do, and pulls that only jobs wait for. @param {AbortSignal} signal */
async function load(signal) {
  const [{ images, inProgress }, { preparations }] = await Promise.all([
    get(IMAGES, {}, { signal }),
    get(`${EVERYWHERE}/preparations`, {}, { signal }),
  ]);
  const known = new Set(inProgress.map((/** @type {any} */ work) => work.name));
  const forJobs = preparations.filter((/** @type {any} */ item) => item.kind.endsWith("IMAGE") && !known.has(item.name));
  return { images, going: [...inProgress, ...forJobs] };
}

/** @param {{error: any, retry: () => void}} props */
function NoImages({ error, retry }) {
  if (error.status !== UNAVAILABLE) return html`<${Failure} error=${error} retry=${retry} />`;
  return html`<${Notice} kind="warn">
    <p><strong>${error.message}</strong></p>
    <p>Jobs of runtimes, such as <code>trainshed/pytorch</code>, run without an engine: they are processes of the machine.</p>
    <button type="button" onClick=${retry}>Look again</button>
  <//>`;
}

const NoneYet = () => html`<${Empty} title="No images are here yet"><p>Jobs pull what they need. Pull one now, or build one as shown below.</p><//>`;

function HowToBuild() {
  return html`<h2>Build or bring one</h2>
    <p>A browser has no folder to build from; a terminal has:</p>
    <${CodeBlock} label="The command that builds an image" text="trainshed images build -t NAME:1 ." />
    <${CodeBlock} label="The command that loads an image from a file" text="trainshed images load -i FILE.tar" />`;
}

/** @param {{onPull: (name: string) => void}} props */
function PullForm({ onPull }) {
  const [name, setName] = useState("");
  const submit = (/** @type {Event} */ event) => {
    event.preventDefault();
    if (!name.trim()) return;
    onPull(name.trim());
    setName("");
  };
  return html`<form class="toolbar" onSubmit=${submit}>
    <label for="pull-name">Pull an image</label>
    <input id="pull-name" class="pull-name" value=${name} autocomplete="off" spellcheck=${false} placeholder="docker.io/library/python:3.12" onInput=${(/** @type {any} */ event) => setName(event.target.value)} />
    <button type="submit" class="main" disabled=${!name.trim()}>Pull</button>
  </form>`;
}

/** @param {{pulls: import("./images-pulls.js").Pulls, others: any[]}} props */
function Going({ pulls, others }) {
  return html`<div class="going" aria-live="polite">
    ${pulls.map((pull) =>
      pull.error
        ? html`<div key=${pull.name} class="notice bad">
            <p>${pull.error}</p>
            <button type="button" class="small" onClick=${() => pulls.begin(pull.name)}>Try again</button>
            <button type="button" class="small" onClick=${() => pulls.forget(pull.name)}>Dismiss</button>
          </div>`
        : html`<${ProgressLine} key=${pull.name} step=${pull.step} />`,
    )}
    ${others.map((item) => html`<${ProgressLine} key=${`${item.kind} ${item.name}`} step=${item} />`)}
  </div>`;
}

/** @param {{images: Image[], reload: () => void}} props */
function ImageTable({ images, reload }) {
  const [asked, setAsked] = useState(/** @type {{deed: "tag" | "remove", image: Image} | null} */ (null));
  const close = () => setAsked(null);
  const done = () => {
    close();
    reload();
  };
  const columns = [
    { name: "names", title: "Names", isWide: true, cell: nameCell },
    { name: "size", title: "Size", isNumber: true, cell: (/** @type {Image} */ image) => bytes(Number(image.sizeBytes)) },
    { name: "created", title: "Created", cell: (/** @type {Image} */ image) => html`<${Time} at=${image.createTime} isAgo />` },
    { name: "used", title: "Last used", cell: (/** @type {Image} */ image) => html`<${Time} at=${image.lastUseTime} isAgo />` },
    { name: "jobs", title: "Needed by", cell: (/** @type {Image} */ image) => html`<${JobLinks} jobs=${image.jobs} />` },
    {
      name: "deeds",
      title: "Change",
      cell: (/** @type {Image} */ image) => html`<${Menu}
        title="Edit"
        deeds=${[
          { title: "Add a name …", onClick: () => setAsked({ deed: "tag", image }) },
          { title: "Remove …", isBad: true, why: neededWords(image), onClick: () => setAsked({ deed: "remove", image }) },
        ]}
      />`,
    },
  ];
  return html`<div class="stacked images"><${Table} caption="Images" columns=${columns} rows=${images} rowKey=${(/** @type {Image} */ image) => `${image.id} ${image.names}`} /></div>
    ${asked?.deed === "tag" && html`<${TagDialog} image=${asked.image} onDone=${done} onClose=${close} />`}
    ${asked?.deed === "remove" && html`<${RemoveDialog} image=${asked.image} onDone=${done} onClose=${close} />`}`;
}

/** @param {Image} image */
const neededWords = ({ jobs }) => (jobs?.length ? "A job that is not over needs it." : undefined);

/** @param {Image} image */
const shortId = ({ id }) => id.replace("sha256:", "").slice(0, 12);

/** @param {Image} image */
function nameCell(image) {
  const names = image.names.map((name) => html`<div key=${name}>${name}</div>`);
  return html`${names.length ? names : html`<span class="dim">no name: a newer image has it</span>`}<div class="dim"><code>${shortId(image)}</code></div>`;
}

/** @param {{image: Image, onDone: () => void, onClose: () => void}} props */
function TagDialog({ image, onDone, onClose }) {
  const [tag, setTag] = useState("");
  const { error, run } = useDeed(onDone);
  const submit = (/** @type {Event} */ event) => {
    event.preventDefault();
    run(() => post(`${IMAGES}:tag`, { name: image.names[0] ?? image.id, tag }));
  };
  return html`<${Dialog} title="Add a name" onClose=${onClose}>
    <form onSubmit=${submit}>
      <p>${image.names[0] ?? shortId(image)} keeps its other names.</p>
      <label for="tag">New name</label>
      <input id="tag" class="tag-name" value=${tag} required autocomplete="off" spellcheck=${false} placeholder="team/digits:2" onInput=${(/** @type {any} */ event) => setTag(event.target.value)} />
      ${error && html`<${Failure} error=${error} />`}
      <footer class="toolbar"><button type="submit" class="main">Add</button></footer>
    </form>
  <//>`;
}

/** @param {{image: Image, onDone: () => void, onClose: () => void}} props */
function RemoveDialog({ image, onDone, onClose }) {
  const { error, run } = useDeed(onDone);
  const names = image.names.length ? image.names : [image.id];
  return html`<${Confirm} title="Remove this image?" deed="Remove" onYes=${() => run(() => post(`${IMAGES}:remove`, { names }))} onClose=${onClose}>
    <ul>${names.map((name) => html`<li key=${name}><code>${name}</code></li>`)}</ul>
    <p>It takes ${bytes(Number(image.sizeBytes))}. A job that asks for it later has it pulled again; one that was built or loaded here is gone.</p>
    ${error && html`<${Failure} error=${error} />`}
  <//>`;
}
