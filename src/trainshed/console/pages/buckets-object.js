// An object: its beginning to look at, what is known of it, its versions.

import { html, useState } from "../lib/ui.js";
import { go } from "../lib/address.js";
import { bytes } from "../lib/format.js";
import { useLive } from "../lib/hints.js";
import { useKeys } from "../lib/keys.js";
import { folderHref, getBucket, getObject, listVersions, mediaPath, restoreVersion } from "../lib/storage.js";
import { Failure, Loading, Notice } from "../parts/notice.js";
import { Preview } from "../parts/preview.js";
import { Table } from "../parts/table.js";
import { Time } from "../parts/time.js";
import { Deletion } from "./buckets-deletion.js";
import { Trail } from "./buckets-trail.js";

/** @typedef {import("../lib/storage.js").ObjectInfo} ObjectInfo */

/** @param {{bucket: string, name: string, query: Record<string, string>}} props */
export function ObjectView({ bucket, name, query }) {
  const [isDeleting, setDeleting] = useState(false);
  const [problem, setProblem] = useState(/** @type {Error | null} */ (null));
  const prefix = name.slice(0, name.lastIndexOf("/") + 1);
  const { data, error, reload } = useLive((signal) => readObject(bucket, name, signal), [bucket, name], {
    ignore: (hint) => !hint.everything,
  });
  const leave = () => go(folderHref(bucket, prefix));
  useKeys("An object", { ".": ["The folder it is in", leave], r: ["Read again", reload] });
  const restore = (/** @type {ObjectInfo} */ version) =>
    restoreVersion(bucket, version).then(() => (setProblem(null), reload()), setProblem);
  const object = data?.object;
  return html`<${Trail} bucket=${bucket} prefix=${prefix} name=${name} />
    ${(problem ?? error) && html`<${Failure} error=${problem ?? error} retry=${reload} />`}
    ${!data && !error && html`<${Loading} />`}
    ${data && !object && html`<${Notice} kind="warn">There is no such object now.${data.versions.length > 0 && " Older versions of it are kept."}<//>`}
    ${object &&
    html`<div class="toolbar">
        <a class="button main" download=${name.slice(prefix.length)} href=${mediaPath(bucket, name)}>Download ${bytes(Number(object.size))}</a>
        <button type="button" class="bad" onClick=${() => setDeleting(true)}>Delete …</button>
      </div>
      <${Preview} key=${object.generation} bucket=${bucket} object=${object} isRaw=${query.view === "raw"} />
      <h2>About it</h2>
      <${About} object=${object} />`}
    ${data && data.versions.length > (object ? 1 : 0) && html`<h2>Versions</h2><${Versions} bucket=${bucket} versions=${data.versions} onRestore=${restore} />`}
    ${isDeleting &&
    object &&
    html`<${Deletion} bucket=${bucket} chosen=${[{ name, isFolder: false, object }]} hasVersions=${data.hasVersions} onClose=${() => setDeleting(false)} onDone=${leave} />`}`;
}

/** @param {string} bucket @param {string} name @param {AbortSignal} signal */
async function readObject(bucket, name, signal) {
  const [about, versions] = await Promise.all([getBucket(bucket, signal), listVersions(bucket, name, signal)]);
  const isThere = versions.some((version) => !version.timeDeleted);
  const object = isThere ? await getObject(bucket, name, signal) : null;
  return { object, versions, hasVersions: Boolean(about.versioning?.enabled) };
}

/** @param {{object: ObjectInfo}} props */
function About({ object }) {
  const rows = [
    ["Type", object.contentType ?? "not known"],
    ["Compression", object.contentEncoding],
    ["Size", `${bytes(Number(object.size))} (${object.size} bytes)`],
    ["Changed", html`<${Time} at=${object.updated} />`],
    ["MD5", object.md5Hash],
    ["CRC32C", object.crc32c],
    ["Generation", object.generation],
    ...Object.entries(object.metadata ?? {}),
  ];
  return html`<dl class="about">
    ${rows.filter(([, value]) => value).map(([title, value]) => html`<div key=${title}><dt>${title}</dt><dd>${value}</dd></div>`)}
  </dl>`;
}

/** @param {{bucket: string, versions: ObjectInfo[], onRestore: (version: ObjectInfo) => void}} props */
function Versions({ bucket, versions, onRestore }) {
  const columns = [
    { name: "updated", title: "Changed", cell: (/** @type {ObjectInfo} */ version) => html`<${Time} at=${version.updated} />` },
    { name: "size", title: "Size", isNumber: true, cell: (/** @type {ObjectInfo} */ version) => bytes(Number(version.size)) },
    { name: "until", title: "Replaced or deleted", cell: (/** @type {ObjectInfo} */ version) => (version.timeDeleted ? html`<${Time} at=${version.timeDeleted} />` : "is the live one") },
    {
      name: "deeds",
      title: html`<span class="unseen">What can be done</span>`,
      isWide: true,
      cell: (/** @type {ObjectInfo} */ version) =>
        html`<a download=${version.name.slice(version.name.lastIndexOf("/") + 1)} href=${mediaPath(bucket, version.name, version.generation)}>Download</a>${" "}
          ${version.timeDeleted && html`<button type="button" class="small" onClick=${() => onRestore(version)}>Restore</button>`}`,
    },
  ];
  return html`<${Table} caption="Versions" columns=${columns} rows=${versions} rowKey=${(/** @type {ObjectInfo} */ version) => version.generation} />`;
}
