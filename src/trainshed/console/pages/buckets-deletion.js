// Deletes chosen objects and folders: counts what that is, asks, and says how far it is.

import { html, useEffect, useState } from "../lib/ui.js";
import { bytes, count } from "../lib/format.js";
import { listBelow, removeObjects } from "../lib/storage.js";
import { Dialog } from "../parts/dialog.js";
import { Loading, Notice } from "../parts/notice.js";

/** @typedef {import("../lib/storage.js").ObjectInfo} ObjectInfo */

const NAMED = 50;

/**
 * @param {{bucket: string, chosen: import("./buckets-folder.js").Entry[], hasVersions: boolean, onClose: () => void,
 *   onDone: () => void}} props
 */
export function Deletion({ bucket, chosen, hasVersions, onClose, onDone }) {
  const [objects, setObjects] = useState(/** @type {ObjectInfo[] | null} */ (null));
  const [done, setDone] = useState(/** @type {number | null} */ (null));
  const [problem, setProblem] = useState("");
  const [kept, setKept] = useState(/** @type {{name: string, message: string}[]} */ ([]));
  useEffect(() => {
    const gone = new AbortController();
    const folders = chosen.filter(({ isFolder }) => isFolder).map(({ name }) => name);
    const single = chosen.flatMap(({ object }) => object ?? []);
    listBelow(bucket, folders, gone.signal).then(
      (below) => setObjects([...single, ...below]),
      (error) => gone.signal.aborted || setProblem(error.message),
    );
    return () => gone.abort();
  }, []);
  const erase = async () => {
    setDone(0);
    const stay = await removeObjects(bucket, objects ?? [], setDone);
    onDone();
    if (!stay.length) return onClose();
    setKept(stay);
    setDone(null);
  };
  const size = objects?.reduce((sum, object) => sum + Number(object.size), 0) ?? 0;
  const isOver = Boolean(problem) || kept.length > 0;
  return html`<${Dialog} title="Delete?" onClose=${onClose}>
    <ul class="deletion-names">
      ${chosen.slice(0, 10).map(({ name }) => html`<li key=${name}><code>${name}</code></li>`)}
      ${chosen.length > 10 && html`<li>and ${count(chosen.length - 10)} more</li>`}
    </ul>
    ${!objects && !problem && html`<${Loading} words="Counting" />`}
    ${objects && !isOver && html`<p>${words(objects.length)}, ${bytes(size)}. ${hasVersions ? "The bucket keeps versions: they can be restored." : "This cannot be undone."}</p>`}
    ${problem && html`<${Notice} kind="bad">${problem}<//>`}
    ${done !== null && html`<progress aria-label="Deleted" max=${objects?.length || 1} value=${done}></progress><p role="status">${count(done)} of ${words(objects?.length ?? 0)} done.</p>`}
    ${kept.length > 0 &&
    html`<p role="alert">${count((objects?.length ?? 0) - kept.length)} of ${words(objects?.length ?? 0)} deleted. The rest stays:</p>
      <ul class="failures">
        ${kept.slice(0, NAMED).map(({ name, message }) => html`<li key=${name}><code>${name}</code>: ${message}</li>`)}
        ${kept.length > NAMED && html`<li>and ${count(kept.length - NAMED)} more</li>`}
      </ul>`}
    <footer>
      <button type="button" onClick=${onClose}>${isOver ? "Close" : "Keep"}</button>
      ${!isOver && html`<button type="button" class="bad" disabled=${!objects || done !== null} onClick=${erase}>Delete</button>`}
    </footer>
  <//>`;
}

/** @param {number} number */
const words = (number) => `${count(number)} ${number === 1 ? "object" : "objects"}`;
