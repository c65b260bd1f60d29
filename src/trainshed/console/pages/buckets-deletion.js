// Deletes chosen objects and folders: counts what that is, asks, and says how far it is.

import { html, useEffect, useState } from "../lib/ui.js";
import { bytes, count } from "../lib/format.js";
import { listBelow, removeObjects } from "../lib/storage.js";
import { Dialog } from "../parts/dialog.js";
import { Loading, Notice } from "../parts/notice.js";

/** @typedef {import("../lib/storage.js").ObjectInfo} ObjectInfo */

/**
 * @param {{bucket: string, chosen: import("./buckets-folder.js").Entry[], hasVersions: boolean, onClose: () => void,
 *   onDone: () => void}} props
 */
export function Deletion({ bucket, chosen, hasVersions, onClose, onDone }) {
  const [objects, setObjects] = useState(/** @type {ObjectInfo[] | null} */ (null));
  const [done, setDone] = useState(/** @type {number | null} */ (null));
  const [problem, setProblem] = useState("");
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
    try {
      const kept = await removeObjects(bucket, objects ?? [], setDone);
      onDone();
      if (!kept.length) return onClose();
      setProblem(`${count(kept.length)} were replaced meanwhile and stay: ${kept.slice(0, 3).map(({ name }) => name).join(", ")}`);
    } catch (error) {
      setProblem(/** @type {Error} */ (error).message);
      onDone();
    }
    setDone(null);
    setObjects([]);
  };
  const size = objects?.reduce((sum, object) => sum + Number(object.size), 0) ?? 0;
  return html`<${Dialog} title="Delete?" onClose=${onClose}>
    <ul class="chosen">
      ${chosen.slice(0, 10).map(({ name }) => html`<li key=${name}><code>${name}</code></li>`)}
      ${chosen.length > 10 && html`<li>and ${count(chosen.length - 10)} more</li>`}
    </ul>
    ${!objects && !problem && html`<${Loading} words="Counting" />`}
    ${objects && !problem && html`<p>${count(objects.length)} ${objects.length === 1 ? "object" : "objects"}, ${bytes(size)}. ${hasVersions ? "The bucket keeps versions: they can be restored." : "This cannot be undone."}</p>`}
    ${problem && html`<${Notice} kind="bad">${problem}<//>`}
    ${done !== null && html`<progress aria-label="Deleted" max=${objects?.length || 1} value=${done}></progress>`}
    <footer>
      <button type="button" onClick=${onClose}>${problem ? "Close" : "Keep"}</button>
      ${!problem && html`<button type="button" class="bad" disabled=${!objects || done !== null} onClick=${erase}>Delete</button>`}
    </footer>
  <//>`;
}
