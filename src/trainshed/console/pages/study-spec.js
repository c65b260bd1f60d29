// The study as a person would submit it, as YAML.

import { html } from "../lib/ui.js";
import { yaml } from "../lib/yaml.js";
import { CodeBlock } from "../parts/copy.js";

const SUBMITTED = ["displayName", "labels", "studySpec", "maxTrialCount", "parallelTrialCount", "maxFailedTrialCount", "trialJobSpec", "seed", "encryptionSpec"];

/** @param {import("./study.js").TabProps} props */
export default function SpecTab({ study }) {
  const body = Object.fromEntries(SUBMITTED.filter((field) => field in study).map((field) => [field, study[field]]));
  return html`<section class="study-spec">
    <h2 class="unseen">As YAML</h2>
    <${CodeBlock} text=${yaml(body)} label="The study as YAML" />
  </section>`;
}
