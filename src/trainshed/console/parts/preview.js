// The beginning of an object to look at: text, JSON, a table, an image. All of it is drawn as text or by <img>,
// in which nothing can run; the server lets no stored bytes be opened as a page.

import { html, useEffect, useState } from "../lib/ui.js";
import { setQuery } from "../lib/address.js";
import { send } from "../lib/api.js";
import { bytes } from "../lib/format.js";
import { readCsv } from "../lib/csv.js";
import { mediaPath } from "../lib/storage.js";
import { Failure, Loading } from "./notice.js";

/** @typedef {import("../lib/storage.js").ObjectInfo} ObjectInfo */

const MOST = 256 << 10; // bytes that are read
const MOST_IMAGE = 32 << 20;
const MOST_ROWS = 200;
const IMAGE = /\.(png|jpe?g|gif|webp|avif|bmp|ico|svg)$/i;

/** @param {{bucket: string, object: ObjectInfo, isRaw: boolean}} props */
export function Preview({ bucket, object, isRaw }) {
  if (object.size === "0") return html`<p class="dim">It is empty.</p>`;
  const isImage = object.contentType?.startsWith("image/") || IMAGE.test(object.name);
  if (isImage && Number(object.size) <= MOST_IMAGE) return html`<${ImagePreview} bucket=${bucket} object=${object} />`;
  if (object.contentEncoding) return html`<p class="dim">It is stored compressed (${object.contentEncoding}): download it to look at it.</p>`;
  return html`<${TextPreview} bucket=${bucket} object=${object} isRaw=${isRaw} />`;
}

/** @param {{bucket: string, object: ObjectInfo}} props */
function ImagePreview({ bucket, object }) {
  const [isBroken, setBroken] = useState(false);
  if (isBroken) return html`<p class="dim">The browser cannot draw this image.</p>`;
  return html`<img class="preview" src=${mediaPath(bucket, object.name, object.generation)} alt=${object.name} onError=${() => setBroken(true)} />`;
}

/** @param {{bucket: string, object: ObjectInfo, isRaw: boolean}} props */
function TextPreview({ bucket, object, isRaw }) {
  const [content, setContent] = useState(/** @type {string | null | undefined} */ (undefined));
  const [error, setError] = useState(/** @type {Error | null} */ (null));
  useEffect(() => {
    const gone = new AbortController();
    readBeginning(bucket, object, gone.signal).then(setContent, (failure) => gone.signal.aborted || setError(failure));
    return () => gone.abort();
  }, []);
  if (error) return html`<${Failure} error=${error} />`;
  if (content === undefined) return html`<${Loading} />`;
  if (content === null) return html`<p class="dim">This is no text: ${object.contentType ?? "its type is not known"}.</p>`;
  const isWhole = Number(object.size) <= MOST;
  const pretty = isRaw ? null : prettyForm(object, content, isWhole);
  return html`<div class="toolbar">
      <span class="dim grow">${isWhole ? "" : `The first ${bytes(MOST)} of ${bytes(Number(object.size))}.`}</span>
      ${(pretty || isRaw) &&
      html`<button type="button" class="small" aria-pressed=${isRaw} onClick=${() => setQuery({ view: isRaw ? "" : "raw" })}>As stored</button>`}
    </div>
    ${pretty ?? html`<pre class="preview" tabindex="0" aria-label="Content">${content}</pre>`}`;
}

/** The text; null where it is none. @param {string} bucket @param {ObjectInfo} object @param {AbortSignal} signal */
async function readBeginning(bucket, object, signal) {
  const headers = { Range: `bytes=0-${MOST - 1}` };
  const answer = await send("GET", mediaPath(bucket, object.name, object.generation), { headers, signal });
  const data = new Uint8Array(await answer.arrayBuffer());
  if (data.includes(0)) return null;
  try {
    // As a stream: a character may be cut at the end of what was read.
    return new TextDecoder("utf-8", { fatal: true }).decode(data, { stream: Number(object.size) > MOST });
  } catch {
    return null;
  }
}

/** @param {ObjectInfo} object @param {string} content @param {boolean} isWhole */
function prettyForm({ name, contentType = "" }, content, isWhole) {
  if (/\.json$/i.test(name) || contentType.includes("json")) return isWhole ? prettyJson(content) : null;
  if (/\.csv$/i.test(name) || contentType.startsWith("text/csv")) return html`<${CsvTable} content=${content} separator="," isWhole=${isWhole} />`;
  if (/\.tsv$/i.test(name)) return html`<${CsvTable} content=${content} separator=${"\t"} isWhole=${isWhole} />`;
  return null;
}

/** @param {string} content */
function prettyJson(content) {
  try {
    return html`<pre class="preview" tabindex="0" aria-label="Content">${JSON.stringify(JSON.parse(content), null, 2)}</pre>`;
  } catch {
    return null; // lines of JSON, or damaged: as it is
  }
}

/** @param {{content: string, separator: string, isWhole: boolean}} props */
function CsvTable({ content, separator, isWhole }) {
  const rows = readCsv(content, separator, MOST_ROWS + 2);
  const isCut = !isWhole || rows.length > MOST_ROWS + 1;
  const [head, ...body] = rows.slice(0, MOST_ROWS + 1);
  const look = head.map((_, at) => (body.length && body.every((row) => !row[at] || Number.isFinite(Number(row[at]))) ? "number" : ""));
  return html`<div class="table-frame preview" tabindex="0" role="region" aria-label="Content">
      <table>
        <caption class="unseen">Content</caption>
        <thead><tr>${head.map((cell, at) => html`<th scope="col" class=${look[at]}>${cell}</th>`)}</tr></thead>
        <tbody>${body.map((row) => html`<tr>${row.map((cell, at) => html`<td class=${look[at] ?? ""}>${cell}</td>`)}</tr>`)}</tbody>
      </table>
    </div>
    ${isCut && html`<p class="dim">The first ${body.length} rows.</p>`}`;
}
