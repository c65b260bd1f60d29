// Uploads into a bucket: which files go on, how far they are, and the question before anything is replaced.

import { html, useRef, useState } from "../lib/ui.js";
import { ApiError } from "../lib/api.js";
import { bytes, count } from "../lib/format.js";
import { inParallel } from "../lib/storage.js";
import { putObject } from "../lib/upload.js";
import { Confirm } from "../parts/dialog.js";

/**
 * @typedef {import("../lib/dropped-files.js").ChosenFile} ChosenFile
 * @typedef {{bucket: string, name: string, file: File, onDone: () => void, sent: number, canReplace: boolean,
 *   state: "waiting" | "sending" | "done" | "there" | "failed", problem?: string}} Transfer
 * @typedef {{transfers: Transfer[], start: (bucket: string, prefix: string, files: ChosenFile[], onDone: () => void) => void,
 *   replace: () => void, keep: () => void, clear: () => void}} Uploads
 */

const AT_ONCE = 3;
const NAMED = 10;

/** @returns {Uploads} */
export function useUploads() {
  const list = useRef(/** @type {Transfer[]} */ ([]));
  const [, setDrawing] = useState(0);
  const draw = () => setDrawing((number) => number + 1);
  const run = async (/** @type {Transfer[]} */ some) => {
    addEventListener("beforeunload", warn);
    await inParallel(some, AT_ONCE, (transfer) => carry(transfer, draw));
    removeEventListener("beforeunload", warn);
    draw();
    some[0]?.onDone();
  };
  const change = (/** @type {Transfer[]} */ transfers) => {
    list.current = transfers;
    draw();
  };
  const isThere = (/** @type {Transfer} */ { state }) => state === "there";
  return {
    transfers: list.current,
    start: (bucket, prefix, files, onDone) => {
      const some = files.map(({ path, file }) => ({
        bucket, name: prefix + path, file, onDone, sent: 0, canReplace: false, state: /** @type {const} */ ("waiting"),
      }));
      change([...list.current.filter(({ state }) => state !== "done"), ...some]);
      run(some);
    },
    replace: () => {
      const some = list.current.filter(isThere);
      for (const transfer of some) Object.assign(transfer, { canReplace: true, state: "waiting" });
      draw();
      run(some);
    },
    keep: () => change(list.current.filter((transfer) => !isThere(transfer))),
    clear: () => change([]),
  };
}

/** @param {Transfer} transfer @param {() => void} draw */
async function carry(transfer, draw) {
  transfer.state = "sending";
  draw();
  try {
    await putObject({ ...transfer, onSent: (sent) => (draw(), (transfer.sent = sent)) });
    transfer.state = "done";
  } catch (error) {
    transfer.state = error instanceof ApiError && error.status === 412 ? "there" : "failed";
    transfer.problem = /** @type {Error} */ (error).message;
  }
  draw();
}

/** @param {Event} event */
function warn(event) {
  event.preventDefault(); // the browser asks whether to leave: the uploads would stop
}

/** @param {{uploads: Uploads}} props */
export function UploadPanel({ uploads }) {
  const { transfers } = uploads;
  if (!transfers.length) return null;
  const isBusy = transfers.some(({ state }) => state === "waiting" || state === "sending");
  const there = transfers.filter(({ state }) => state === "there");
  const failed = transfers.filter(({ state }) => state === "failed");
  const done = transfers.filter(({ state }) => state === "done");
  const total = transfers.reduce((sum, { file }) => sum + file.size, 0);
  const sent = transfers.reduce((sum, transfer) => sum + transfer.sent, 0);
  return html`<section class="uploads" aria-label="Uploads">
      <header>
        <strong role="status">${isBusy ? "Uploading" : "Uploaded"} ${count(done.length)} of ${count(transfers.length)} files</strong>
        <span class="dim number">${bytes(sent)} of ${bytes(total)}</span>
        ${!isBusy && html`<button type="button" class="small" onClick=${uploads.clear}>Close</button>`}
      </header>
      ${isBusy && html`<progress aria-label="Bytes sent" max=${total || 1} value=${sent}></progress>`}
      ${failed.length > 0 &&
      html`<ul class="bad-ink">
        ${failed.slice(0, NAMED).map(({ name, problem }) => html`<li key=${name}>${name}: ${problem}</li>`)}
        ${failed.length > NAMED && html`<li>and ${count(failed.length - NAMED)} more</li>`}
      </ul>`}
    </section>
    ${!isBusy &&
    there.length > 0 &&
    html`<${Confirm} title="Replace what is there?" deed=${`Replace ${count(there.length)}`} onYes=${uploads.replace} onClose=${uploads.keep}>
      <p>${there.length === 1 ? "This object is" : `These ${count(there.length)} objects are`} in the bucket already:</p>
      <ul>
        ${there.slice(0, NAMED).map(({ name }) => html`<li key=${name}><code>${name}</code></li>`)}
        ${there.length > NAMED && html`<li>and ${count(there.length - NAMED)} more</li>`}
      </ul>
    <//>`}`;
}
