// Buckets: all of them, a folder of one, or an object. Uploads go on while one looks around in here.

import { html } from "../lib/ui.js";
import { ObjectView } from "./buckets-object.js";
import { BucketList } from "./buckets-list.js";
import { FolderView } from "./buckets-folder.js";
import { useUploads, UploadPanel } from "./buckets-upload.js";

/** @param {{address: import("../lib/address.js").Address}} props */
export default function BucketsPage({ address }) {
  const uploads = useUploads();
  const [, bucket, ...folders] = address.parts;
  const prefix = address.query.prefix ?? folders.map((folder) => `${folder}/`).join("");
  return html`${bucket === undefined
      ? html`<${BucketList} />`
      : address.query.object
        ? html`<${ObjectView} key=${`${bucket}/${address.query.object}`} bucket=${bucket} name=${address.query.object} query=${address.query} />`
        : html`<${FolderView} key=${`${bucket}/${prefix}`} bucket=${bucket} prefix=${prefix} query=${address.query} uploads=${uploads} />`}
    <${UploadPanel} uploads=${uploads} />`;
}
