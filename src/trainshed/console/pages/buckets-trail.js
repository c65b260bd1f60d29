// The way from all buckets to a folder or an object, each step a link.

import { html } from "../lib/ui.js";
import { href } from "../lib/address.js";
import { folderHref } from "../lib/storage.js";
import { CopyButton } from "../parts/copy.js";

/** @param {{bucket: string, prefix: string, name?: string}} props `name`: of an object */
export function Trail({ bucket, prefix, name }) {
  const folders = prefix.split("/").slice(0, -1);
  const steps = folders.map((folder, at) => ({ folder, link: folderHref(bucket, `${folders.slice(0, at + 1).join("/")}/`) }));
  const last = name === undefined ? (folders.at(-1) ?? bucket) : name.slice(prefix.length);
  const before = name === undefined ? steps.slice(0, -1) : steps;
  return html`<nav class="trail" aria-label="Folders">
      <a href=${href(["buckets"])}>Buckets</a>
      ${(name !== undefined || folders.length > 0) && html`<a href=${folderHref(bucket)}>${bucket}</a>`}
      ${before.map(({ folder, link }) => html`<a key=${link} href=${link}>${folder || "(no name)"}</a>`)}
    </nav>
    <div class="toolbar">
      <h1>${last || "(no name)"}</h1>
      <${CopyButton} text=${`gs://${bucket}/${name ?? prefix}`} label="Copy gs://" />
    </div>`;
}
