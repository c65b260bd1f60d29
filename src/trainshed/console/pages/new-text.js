// The job as text beside the form: YAML to keep, or to paste one's own into; the gcloud command.

import { html, useState } from "../lib/ui.js";
import { ask } from "../lib/api.js";
import { asGcloud } from "../lib/copy-as.js";
import { withMasks } from "../lib/job-body.js";
import { yaml } from "../lib/yaml.js";
import { CodeBlock } from "../parts/copy.js";
import { Failure } from "../parts/notice.js";

/** @param {{job: any, project: string, location: string, parent: string, onJob: (job: any) => void}} props */
export function TextView({ job, project, location, parent, onJob }) {
  const [way, setWay] = useState("yaml");
  const shown = withMasks(job);
  return html`<section aria-labelledby="text-title">
    <h2 id="text-title">As text</h2>
    <div class="toolbar" role="group" aria-label="Which text">
      ${[["yaml", "YAML"], ["gcloud", "gcloud"], ["paste", "Paste a job file"]].map(
        ([name, title]) => html`<button key=${name} type="button" class="small" aria-pressed=${way === name} onClick=${() => setWay(name)}>${title}</button>`,
      )}
    </div>
    ${way === "yaml" && html`<${CodeBlock} text=${yaml(shown)} label="The job as YAML" />`}
    ${way === "gcloud" && html`<${CodeBlock} text=${asGcloud({ body: shown, project, location }).text} label="The gcloud command" />`}
    ${way === "paste" && html`<${PasteForm} parent=${parent} onJob=${(/** @type {any} */ pasted) => (onJob(pasted), setWay("yaml"))} />`}
  </section>`;
}

/** @param {{parent: string, onJob: (job: any) => void}} props */
function PasteForm({ parent, onJob }) {
  const [text, setText] = useState("");
  const [error, setError] = useState(/** @type {Error | null} */ (null));
  const read = async () => {
    try {
      const { job } = await ask("POST", `${parent}/customJobs:read`, { body: new Blob([text]) });
      onJob(job);
    } catch (failure) {
      setError(/** @type {Error} */ (failure));
    }
  };
  return html`<label for="pasted">A job file, or the file of gcloud's --config: YAML or JSON</label>
    <textarea id="pasted" rows="12" spellcheck=${false} value=${text} onInput=${(/** @type {Event} */ event) => setText(/** @type {HTMLTextAreaElement} */ (event.target).value)}></textarea>
    <div class="toolbar"><button type="button" disabled=${!text.trim()} onClick=${read}>Fill the form with it</button></div>
    ${error && html`<${Failure} error=${error} />`}`;
}
