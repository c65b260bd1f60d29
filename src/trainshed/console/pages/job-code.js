// The folder that a job was submitted with: its files, and the text of one.

import { html, useMemo } from "../lib/ui.js";
import { setQuery } from "../lib/address.js";
import { get, send } from "../lib/api.js";
import { bytes, count } from "../lib/format.js";
import { useLive } from "../lib/hints.js";
import { CopyButton } from "../parts/copy.js";
import { Empty, Failure, Loading, Notice } from "../parts/notice.js";

const MOST_SHOWN = 512 * 1024; // bytes of a file; the rest is for a download
const MOST_LISTED = 2000; // files, of those whose path has the words that were typed
const NEVER = { ignore: () => true }; // contents are known by their hash: they cannot change

/** @param {import("./job.js").TabProps} props */
export default function JobCode({ job, address }) {
  const id = job.jobSpec?.code;
  if (!id) {
    return html`<${Empty} title="This job has no code folder">
      <p>It was submitted with an image or a package. <code>trainshed submit train.py</code> sends the folder along.</p>
    <//>`;
  }
  const [, project, , place] = job.name.split("/");
  return html`<${Folder} key=${id} path=${`/v1/projects/${project}/locations/${place}/code/${id}`} address=${address} />`;
}

/** @param {{path: string, address: import("../lib/address.js").Address}} props */
function Folder({ path, address }) {
  const { data, error, reload } = useLive((signal) => get(path, {}, { signal }), [path], NEVER);
  const words = address.query.files ?? "";
  const files = useMemo(
    () => (data?.files ?? []).filter((/** @type {any} */ file) => file.path.toLowerCase().includes(words.toLowerCase())),
    [data, words],
  );
  if (error && !data) return html`<${Failure} error=${error} retry=${reload} />`;
  if (!data) return html`<${Loading} words="Reading the list of files" />`;
  const chosen = (data.files ?? []).find((/** @type {any} */ file) => file.path === address.query.file);
  return html`<div class="code-folder">
    <nav aria-label="Files" class="file-list">
      <input
        type="search"
        aria-label="Filter the files"
        placeholder=${`${count(data.files.length)} files`}
        value=${words}
        onInput=${(/** @type {any} */ event) => setQuery({ files: event.target.value })}
      />
      <ul>
        ${files.slice(0, MOST_LISTED).map(
          (/** @type {any} */ file) => html`<li key=${file.path}>
            <button
              type="button"
              class="plain"
              aria-current=${file === chosen ? "true" : undefined}
              onClick=${() => setQuery({ file: file.path, line: "" }, { replace: false })}
            >
              ${file.path}
            </button>
            <span class="dim number">${bytes(file.size)}</span>
          </li>`,
        )}
      </ul>
      ${files.length > MOST_LISTED && html`<p class="dim">${count(files.length - MOST_LISTED)} more; type a part of the name.</p>`}
    </nav>
    <div class="file-view">
      ${chosen
        ? html`<${FileView} key=${chosen.path} path=${path} file=${chosen} line=${Number(address.query.line) || 0} />`
        : html`<p class="dim">Choose a file. <code>trainshed code JOB</code> fetches them all.</p>`}
    </div>
  </div>`;
}

/** @param {{path: string, file: any, line: number}} props */
function FileView({ path, file, line }) {
  const address = `${path}/blobs/${file.sha256}`;
  const { data, error, reload } = useLive((signal) => readStart(address, signal), [address], NEVER);
  const name = file.path.split("/").pop();
  const head = html`<div class="toolbar">
    <h2 class="grow">${file.path}</h2>
    <span class="dim">${bytes(file.size)}</span>
    ${typeof data === "string" && html`<${CopyButton} text=${data} />`}
    <a class="button" href=${address} download=${name}>Download</a>
  </div>`;
  if (error) return html`${head}<${Failure} error=${error} retry=${reload} />`;
  if (data === undefined) return html`${head}<${Loading} words="Reading the file" />`;
  if (data === null) return html`${head}<${Notice}><p>This is no text. Download it to see it.</p><//>`;
  return html`${head}
    ${file.size > MOST_SHOWN && html`<${Notice} kind="warn"><p>The first ${bytes(MOST_SHOWN)} of ${bytes(file.size)} are shown.</p><//>`}
    <${Lines} text=${data} marked=${line} />`;
}

/** @param {{text: string, marked: number}} props */
function Lines({ text, marked }) {
  const lines = useMemo(() => text.replace(/\n$/, "").split("\n"), [text]);
  return html`<div class="source" tabindex="0" role="region" aria-label="The file's text">
    <table>
      <tbody>
        ${lines.map(
          (line, at) => html`<tr key=${at} class=${at + 1 === marked ? "marked" : ""}>
            <td class="number">
              <button type="button" class="plain" aria-label=${`Link to line ${at + 1}`} onClick=${() => setQuery({ line: at + 1 })}>${at + 1}</button>
            </td>
            <td><code>${line}</code></td>
          </tr>`,
        )}
      </tbody>
    </table>
  </div>`;
}

/**
 * The start of a file as text; null where it is none.
 * @param {string} address
 * @param {AbortSignal} signal
 */
async function readStart(address, signal) {
  const answer = await send("GET", address, { signal });
  const reader = /** @type {ReadableStream<Uint8Array>} */ (answer.body).getReader();
  const chunks = [];
  let size = 0;
  while (size < MOST_SHOWN) {
    const { done, value } = await reader.read();
    if (done) break;
    chunks.push(value);
    size += value.length;
  }
  reader.cancel();
  const start = new Uint8Array(await new Blob(/** @type {BlobPart[]} */ (chunks)).arrayBuffer()).subarray(0, MOST_SHOWN);
  if (start.subarray(0, 8192).includes(0)) return null;
  return new TextDecoder().decode(start);
}
