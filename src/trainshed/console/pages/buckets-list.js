// All buckets, and making one.

import { html, useState } from "../lib/ui.js";
import { go } from "../lib/address.js";
import { post } from "../lib/api.js";
import { useLive } from "../lib/hints.js";
import { useKeys } from "../lib/keys.js";
import { folderHref, listBuckets } from "../lib/storage.js";
import { Dialog } from "../parts/dialog.js";
import { Empty, Failure, Loading } from "../parts/notice.js";
import { Table } from "../parts/table.js";
import { Time } from "../parts/time.js";

/** @typedef {import("../lib/storage.js").BucketInfo} BucketInfo */

const COLUMNS = [
  { name: "name", title: "Bucket", isWide: true, cell: (/** @type {BucketInfo} */ bucket) => html`<a href=${folderHref(bucket.name)}>${bucket.name}</a>` },
  { name: "versions", title: "Versions", cell: (/** @type {BucketInfo} */ bucket) => (bucket.versioning?.enabled ? "kept" : html`<span class="dim">–</span>`) },
  { name: "created", title: "Created", cell: (/** @type {BucketInfo} */ bucket) => html`<${Time} at=${bucket.timeCreated} />` },
];

export function BucketList() {
  const [isMaking, setMaking] = useState(false);
  // Hints tell of jobs. After a pause of the server everything is read again.
  const { data, error, reload } = useLive(listBuckets, [], { ignore: (hint) => !hint.everything });
  useKeys("Buckets", { n: ["Make a bucket", () => setMaking(true)] });
  return html`<div class="toolbar">
      <h1 class="grow">Buckets</h1>
      <button type="button" onClick=${() => setMaking(true)}>New bucket</button>
    </div>
    ${error && html`<${Failure} error=${error} retry=${reload} />`}
    ${!data && !error && html`<${Loading} />`}
    ${data?.length === 0 && html`<${Empty} title="There is no bucket yet"><p>Buckets have what jobs read and write: <code>gs://BUCKET/…</code>, or <code>/gcs/BUCKET/…</code> as files.</p><//>`}
    ${Boolean(data?.length) && html`<${Table} caption="Buckets" columns=${COLUMNS} rows=${data} rowKey=${(/** @type {BucketInfo} */ bucket) => bucket.name} />`}
    ${isMaking && html`<${NewBucket} onClose=${() => setMaking(false)} />`}`;
}

/** @param {{onClose: () => void}} props */
function NewBucket({ onClose }) {
  const [error, setError] = useState("");
  const make = async (/** @type {SubmitEvent} */ event) => {
    event.preventDefault();
    const form = new FormData(/** @type {HTMLFormElement} */ (event.target));
    const name = String(form.get("name")).trim();
    try {
      await post("/storage/v1/b", { name, ...(form.get("versions") ? { versioning: { enabled: true } } : {}) }, { project: String(form.get("project")).trim() });
      go(folderHref(name));
    } catch (failure) {
      setError(/** @type {Error} */ (failure).message);
    }
  };
  return html`<${Dialog} title="New bucket" onClose=${onClose}>
    <form class="bucket-form" onSubmit=${make}>
      <label for="bucket-name">Name</label>
      <input id="bucket-name" name="name" required autocomplete="off" spellcheck=${false} aria-describedby="bucket-problem" />
      <p id="bucket-problem" class="bad-ink" role="alert">${error}</p>
      <label for="bucket-project">Project</label>
      <input id="bucket-project" name="project" autocomplete="off" spellcheck=${false} aria-describedby="bucket-project-help" />
      <p id="bucket-project-help" class="dim">Empty: jobs of every project may use it.</p>
      <label><input type="checkbox" name="versions" /> Keep versions: what is replaced or deleted can be restored</label>
      <footer><button type="submit" class="main">Make the bucket</button></footer>
    </form>
  <//>`;
}
