// A folder of a bucket: what is in it, uploads into it, deletes from it.

import { html, useRef, useState } from "../lib/ui.js";
import { go, setQuery } from "../lib/address.js";
import { bytes, count } from "../lib/format.js";
import { filesOfDrop, filesOfInput } from "../lib/dropped-files.js";
import { useLive } from "../lib/hints.js";
import { useKeys } from "../lib/keys.js";
import { folderHref, getBucket, listFolder, mediaPath, objectHref, removeBucket } from "../lib/storage.js";
import { Confirm } from "../parts/dialog.js";
import { Menu } from "../parts/menu.js";
import { Empty, Failure, Loading, Notice } from "../parts/notice.js";
import { Table } from "../parts/table.js";
import { Time } from "../parts/time.js";
import { Deletion } from "./buckets-deletion.js";
import { Trail } from "./buckets-trail.js";

/**
 * @typedef {import("../lib/storage.js").ObjectInfo} ObjectInfo
 * @typedef {{name: string, isFolder: boolean, object?: ObjectInfo}} Entry
 * @typedef {{entries: Entry[], total: number, next?: string, isCut: boolean}} FolderContent
 */

const SHOWN = 1000;
const MOST_SORTED = 50_000; // objects that are read to sort them: the server knows the order of names only

/** @param {{bucket: string, prefix: string, query: Record<string, string>, uploads: import("./buckets-upload.js").Uploads}} props */
export function FolderView({ bucket, prefix, query, uploads }) {
  const sort = query.sort ?? "name";
  const begin = prefix + (query.begins ?? "");
  const isWithDeleted = query.deleted === "1";
  const [chosen, setChosen] = useState(/** @type {Set<string>} */ (new Set()));
  const [isDeleting, setDeleting] = useState(false);
  const [isDropping, setDropping] = useState(false);
  const [isRemoving, setRemoving] = useState(false);
  const [problem, setProblem] = useState(/** @type {Error | null} */ (null));
  const filter = useRef(/** @type {HTMLInputElement | null} */ (null));
  const files = useRef(/** @type {HTMLInputElement | null} */ (null));
  const folder = useRef(/** @type {HTMLInputElement | null} */ (null));
  const about = useLive((signal) => getBucket(bucket, signal), [bucket], { ignore: (hint) => !hint.everything });
  const { data, error, reload } = useLive(
    (signal) => readFolder(bucket, { prefix: begin, after: query.after, versions: isWithDeleted }, sort, signal),
    [begin, query.after, isWithDeleted, sort],
    { ignore: (hint) => !hint.everything },
  );
  const take = (/** @type {import("../lib/dropped-files.js").ChosenFile[]} */ some) => some.length && uploads.start(bucket, prefix, some, reload);
  const takeChosen = (/** @type {Event} */ event) => {
    const input = /** @type {HTMLInputElement} */ (event.target);
    take(filesOfInput(input));
    input.value = "";
  };
  const drop = async (/** @type {DragEvent} */ event) => {
    event.preventDefault();
    setDropping(false);
    if (event.dataTransfer) take(await filesOfDrop(event.dataTransfer));
  };
  useKeys("A folder", {
    "/": ["Names that begin with …", () => filter.current?.focus()],
    u: ["Upload files", () => files.current?.click()],
    r: ["Read again", reload],
    ".": ["The folder above", () => go(prefix ? folderHref(bucket, above(prefix)) : folderHref(bucket))],
  });
  const entries = data?.entries ?? [];
  const isEmpty = data && !entries.length && !query.begins && !query.after;
  return html`<div
    class=${isDropping ? "folder dropping" : "folder"}
    onDragOver=${(/** @type {DragEvent} */ event) => (event.preventDefault(), setDropping(true))}
    onDragLeave=${(/** @type {DragEvent} */ event) => event.currentTarget === event.target && setDropping(false)}
    onDrop=${drop}
  >
    <${Trail} bucket=${bucket} prefix=${prefix} />
    <div class="toolbar">
      <input
        ref=${filter}
        class="grow"
        type="search"
        aria-label="Names that begin with"
        placeholder="Names that begin with …"
        value=${query.begins ?? ""}
        onInput=${(/** @type {Event} */ event) => setQuery({ begins: /** @type {HTMLInputElement} */ (event.target).value, after: "" })}
      />
      ${about.data?.versioning?.enabled &&
      html`<label><input type="checkbox" checked=${isWithDeleted} onChange=${() => setQuery({ deleted: isWithDeleted ? "" : "1", after: "" })} /> Deleted too</label>`}
      ${chosen.size > 0 && html`<button type="button" class="bad" onClick=${() => setDeleting(true)}>Delete ${count(chosen.size)} …</button>`}
      <${Menu}
        title="Upload"
        deeds=${[
          { title: "Files …", onClick: () => files.current?.click() },
          { title: "A folder …", onClick: () => folder.current?.click() },
        ]}
      />
      ${!prefix && html`<button type="button" onClick=${() => setRemoving(true)}>Delete bucket …</button>`}
      <input ref=${files} hidden type="file" multiple aria-label="Files to upload" onChange=${takeChosen} />
      <input ref=${folder} hidden type="file" webkitdirectory aria-label="Folder to upload" onChange=${takeChosen} />
    </div>
    ${(problem ?? error ?? about.error) && html`<${Failure} error=${problem ?? error ?? about.error} retry=${reload} />`}
    ${!data && !error && html`<${Loading} />`}
    ${isEmpty && html`<${Empty} title="Nothing is here"><p>Drop files or folders here, or upload some. In a terminal: <code>trainshed storage cp FILE gs://${bucket}/${prefix}</code></p><//>`}
    ${data?.isCut && html`<${Notice}>The first ${count(SHOWN)} of ${count(data.total)}${data.next ? " or more" : ""}, sorted. Narrow them by how their names begin.<//>`}
    ${entries.length > 0 &&
    html`<${Table}
      caption=${`Objects in ${bucket}/${prefix}`}
      columns=${columns(bucket, prefix, chosen, setChosen)}
      rows=${entries}
      rowKey=${(/** @type {Entry} */ entry) => entry.name + (entry.object?.generation ?? "")}
      rowClass=${(/** @type {Entry} */ entry) => (entry.object?.timeDeleted ? "dim" : "")}
      sort=${sort}
      onSort=${(/** @type {string} */ next) => setQuery({ sort: next === "name" ? "" : next, after: "" })}
    />`}
    ${data && !isEmpty && html`<p class="pages">
      <span class="dim">${entries.length ? `${count(entries.length)} shown` : "Nothing begins so."}</span>
      ${query.after && html`<a href=${folderHref(bucket, prefix, { ...query, after: "" })}>First page</a>`}
      ${data.next && !data.isCut && sort === "name" && html`<a href=${folderHref(bucket, prefix, { ...query, after: data.next })}>Next page</a>`}
    </p>`}
    ${isDeleting &&
    html`<${Deletion}
      bucket=${bucket}
      chosen=${entries.filter(({ name }) => chosen.has(name))}
      hasVersions=${Boolean(about.data?.versioning?.enabled)}
      onClose=${() => setDeleting(false)}
      onDone=${() => (setChosen(new Set()), reload())}
    />`}
    ${isRemoving &&
    html`<${Confirm} title=${`Delete the bucket ${bucket}?`} deed="Delete bucket" onClose=${() => setRemoving(false)} onYes=${() => {
      setRemoving(false);
      removeBucket(bucket).then(() => go(folderHref("")), setProblem);
    }}><p>Only an empty bucket can be deleted.</p><//>`}
  </div>`;
}

/** @param {string} prefix */
const above = (prefix) => prefix.slice(0, prefix.lastIndexOf("/", prefix.length - 2) + 1);

/**
 * A page in the order of names; or, for another order, all that is there, and its first 1,000.
 * @param {string} bucket
 * @param {{prefix: string, after?: string, versions: boolean}} query
 * @param {string} sort
 * @param {AbortSignal} signal
 * @returns {Promise<FolderContent>}
 */
async function readFolder(bucket, query, sort, signal) {
  const entries = [];
  let after = query.after;
  do {
    const listing = await listFolder(bucket, { ...query, after }, signal);
    entries.push(...listing.folders.map((name) => ({ name, isFolder: true })));
    entries.push(...withoutOld(listing.objects).map((object) => ({ name: object.name, isFolder: false, object })));
    after = listing.next;
  } while (sort !== "name" && after && entries.length < MOST_SORTED);
  entries.sort(order(sort));
  return { entries: entries.slice(0, SHOWN), total: entries.length, next: after, isCut: entries.length > SHOWN };
}

/** Of several versions the newest. @param {ObjectInfo[]} objects in the order of name and generation */
const withoutOld = (objects) => objects.filter(({ name }, at) => objects[at + 1]?.name !== name);

/** Folders first. @param {string} sort @returns {(a: Entry, b: Entry) => number} */
function order(sort) {
  const [by, direction] = sort.split(" ");
  const sign = direction === "desc" ? -1 : 1;
  const compare = (/** @type {Entry} */ a, /** @type {Entry} */ b) => {
    if (by === "size") return Number(a.object?.size ?? 0) - Number(b.object?.size ?? 0);
    if (by === "updated") return (a.object?.updated ?? "") < (b.object?.updated ?? "") ? -1 : 1;
    return a.name < b.name ? -1 : 1;
  };
  return (a, b) => Number(b.isFolder) - Number(a.isFolder) || sign * compare(a, b);
}

/** @param {string} bucket @param {string} prefix @param {Set<string>} chosen @param {(chosen: Set<string>) => void} setChosen */
function columns(bucket, prefix, chosen, setChosen) {
  const toggle = (/** @type {string} */ name) => {
    const next = new Set(chosen);
    if (!next.delete(name)) next.add(name);
    setChosen(next);
  };
  const short = (/** @type {Entry} */ { name }) => name.slice(prefix.length);
  return [
    {
      name: "chosen",
      title: html`<span class="unseen">Chosen</span>`,
      cell: (/** @type {Entry} */ entry) =>
        !entry.object?.timeDeleted &&
        html`<input type="checkbox" aria-label=${`Choose ${short(entry)}`} checked=${chosen.has(entry.name)} onChange=${() => toggle(entry.name)} />`,
    },
    {
      name: "name",
      title: "Name",
      isWide: true,
      canSort: true,
      cell: (/** @type {Entry} */ entry) =>
        html`<a href=${entry.isFolder ? folderHref(bucket, entry.name) : objectHref(bucket, entry.name)}>${short(entry)}</a>${entry.object?.timeDeleted && " (deleted)"}`,
    },
    { name: "size", title: "Size", isNumber: true, canSort: true, cell: (/** @type {Entry} */ { object }) => object && bytes(Number(object.size)) },
    { name: "updated", title: "Changed", canSort: true, cell: (/** @type {Entry} */ { object }) => object && html`<${Time} at=${object.updated} />` },
    {
      name: "download",
      title: html`<span class="unseen">Download</span>`,
      cell: (/** @type {Entry} */ { name, object }) =>
        object &&
        !object.timeDeleted &&
        html`<a class="download" download=${name.slice(name.lastIndexOf("/") + 1)} href=${mediaPath(bucket, name)} aria-label=${`Download ${name.slice(prefix.length)}`}>↓</a>`,
    },
  ];
}
