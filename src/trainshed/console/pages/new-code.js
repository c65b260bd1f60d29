// The code of a new job: a folder that is chosen or dropped, hashed here, and sent as far as the server lacks it.

import { html, useRef, useState } from "../lib/ui.js";
import { packFolder, sendFolder } from "../lib/code-folder.js";
import { filesOfDrop, filesOfInput } from "../lib/dropped-files.js";
import { bytes, count } from "../lib/format.js";
import { valueAt } from "../lib/job-body.js";
import { Confirm } from "../parts/dialog.js";
import { TextField } from "./new-field.js";

/** @typedef {import("../lib/dropped-files.js").ChosenFile} ChosenFile */
/** @typedef {import("../lib/code-folder.js").CodeFolder} CodeFolder */

const MUCH = 100_000_000; // bytes that are asked about before they are sent
const MANY = 20_000; // files

/** @param {{form: import("./new-field.js").Form, parent: string, onFolder: (folder: CodeFolder) => void}} props */
export function CodeForm({ form, parent, onFolder }) {
  const [folder, setFolder] = useState(/** @type {CodeFolder | null} */ (null));
  const [doubtful, setDoubtful] = useState(/** @type {CodeFolder | null} */ (null));
  const [progress, setProgress] = useState("");
  const [problem, setProblem] = useState("");
  const [isDropping, setDropping] = useState(false);
  const input = useRef(/** @type {HTMLInputElement | null} */ (null));
  const code = valueAt(form.job, "jobSpec.code");
  const problems = form.problemsOf("jobSpec.code");
  const sendIt = async (/** @type {CodeFolder} */ packed) => {
    setDoubtful(null);
    try {
      const id = await sendFolder(parent, packed.files, (words, share) => setProgress(`${words}: ${Math.round(share * 100)} %`));
      setFolder(packed);
      form.change("jobSpec.code", id);
      onFolder(packed);
    } catch (error) {
      setProblem(/** @type {Error} */ (error).message);
    }
    setProgress("");
  };
  const take = async (/** @type {ChosenFile[]} */ chosen) => {
    setProblem("");
    const packed = await packFolder(chosen);
    if (!packed.files.length) setProblem("There are no files in it that are not ignored.");
    else if (packed.size > MUCH || packed.files.length > MANY) setDoubtful(packed);
    else await sendIt(packed);
  };
  const drop = async (/** @type {DragEvent} */ event) => {
    event.preventDefault();
    setDropping(false);
    if (event.dataTransfer) await take(await filesOfDrop(event.dataTransfer));
  };
  const forget = () => {
    setFolder(null);
    form.change("jobSpec.code", undefined);
  };
  return html`<div
      class=${isDropping ? "code-drop dropping" : "code-drop"}
      onDragOver=${(/** @type {DragEvent} */ event) => (event.preventDefault(), setDropping(true))}
      onDragLeave=${() => setDropping(false)}
      onDrop=${drop}
    >
      <input ref=${input} hidden type="file" webkitdirectory aria-label="Folder of code" onChange=${(/** @type {Event} */ event) => take(filesOfInput(/** @type {HTMLInputElement} */ (event.target)))} />
      <button type="button" id="jobSpec.code" onClick=${() => input.current?.click()}>${code ? "Another folder …" : "Choose a folder …"}</button>
      <span role="status">${progress || (folder ? `${folder.name || "Files"}: ${count(folder.files.length)} files, ${bytes(folder.size)}${folder.left ? `; ${count(folder.left)} ignored` : ""}` : code ? html`Folder <code>${code.slice(0, 12)}</code>` : "or drop one here. It is the working directory of every replica.")}</span>
      ${code && html`<button type="button" class="small" onClick=${forget}>Without code</button>`}
      ${[problem, ...problems].filter(Boolean).map((text) => html`<p class="bad-ink" role="alert">${text}</p>`)}
    </div>
    ${code && html`<${TextField} form=${form} path="jobSpec.workingDirectory" label="Start in" placeholder="the folder's top" />`}
    ${doubtful &&
    html`<${Confirm} title="Send this to the server?" deed="Send" isBad=${false} onYes=${() => sendIt(doubtful)} onClose=${() => setDoubtful(null)}>
      <p>${count(doubtful.files.length)} files, ${bytes(doubtful.size)}. Leave files out with a <code>.trainshedignore</code> in the folder; data belongs into a bucket.</p>
    <//>`}`;
}
