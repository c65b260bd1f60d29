// The form for a new job. What is edited is the body of a create itself: the text beside the form shows it, a dry
// run says what would become of it, and fields that the form does not know stay as a cloned or pasted job has them.

import { html, useEffect, useMemo, useRef, useState } from "../lib/ui.js";
import { go, jobHref, setQuery } from "../lib/address.js";
import { ApiError, get, pathOf, post, sentOnce } from "../lib/api.js";
import { camelPath, emptyJob, isWithin, withoutBlanks, withSecretsOf, withValue } from "../lib/job-body.js";
import { forgetDraft, keepDraft, keepPlace, lastPlace, readDraft } from "../lib/job-draft.js";
import { bodyOf, withChange } from "../lib/resubmit.js";
import { Failure, Loading } from "../parts/notice.js";
import { JobFields } from "./new-job.js";
import { OutlookNotice, useOutlook } from "./new-outlook.js";
import { TextView } from "./new-text.js";

/** @typedef {import("../lib/job-draft.js").Draft} Draft */

/** @param {{address: import("../lib/address.js").Address}} props */
export default function NewJobPage({ address }) {
  const { from } = address.query;
  const [draft, setDraft] = useState(/** @type {Draft | null} */ (null));
  const [error, setError] = useState(/** @type {Error | null} */ (null));
  useEffect(() => {
    begin(from).then(setDraft, setError);
  }, [from]);
  if (error) return html`<h1>New job</h1><${Failure} error=${error} />`;
  if (!draft || draft.from !== from) return html`<h1>New job</h1><${Loading} />`;
  return html`<${JobForm} key=${from ?? ""} begun=${draft} />`;
}

/** What is edited at first: the draft of this tab, the job to clone, or an empty one. @param {string} [from] @returns {Promise<Draft>} */
async function begin(from) {
  const draft = readDraft();
  if (draft && draft.from === from) return draft;
  if (!from) return { job: emptyJob(), ...lastPlace() };
  const job = await get(pathOf(from));
  const [, project, , location] = job.name.split("/");
  return { job: bodyOf(job), project, location, from };
}

/** @param {{begun: Draft}} props */
function JobForm({ begun }) {
  const [draft, setDraft] = useState(begun);
  const [isTouched, setTouched] = useState(Boolean(begun.from));
  const [refusal, setRefusal] = useState(/** @type {Error | null} */ (null));
  const isSending = useRef(false);
  const [isSendingShown, showSending] = useState(false);
  const { job, project, location, from } = draft;
  const body = useMemo(() => withoutBlanks(job), [job]);
  const parent = `/v1/projects/${encodeURIComponent(project)}/locations/${encodeURIComponent(location)}`;
  // One key for one content: what is sent twice, or again after a lost answer, makes one job.
  const headers = useMemo(sentOnce, [body, parent]);
  const outlook = useOutlook(body, parent, isTouched);
  const change = (/** @type {(before: Draft) => Draft} */ to) => {
    setTouched(true);
    setRefusal(null);
    setDraft((before) => {
      const next = to(before);
      keepDraft(next);
      return next;
    });
  };
  const setJob = (/** @type {(before: any) => any} */ to) => change((before) => ({ ...before, job: to(before.job) }));
  const error = refusal ?? outlook.error;
  const violations = error instanceof ApiError ? error.violations : [];
  const form = {
    job,
    change: (/** @type {string} */ path, /** @type {any} */ value) => setJob((before) => withValue(before, path, value)),
    problemsOf: (/** @type {string} */ path) =>
      violations.filter(({ field }) => isWithin(path, camelPath(field))).map(({ description }) => description),
  };
  const submit = async (/** @type {SubmitEvent} */ event) => {
    event.preventDefault();
    if (isSending.current) return;
    isSending.current = true;
    showSending(true);
    try {
      const query = { view: "trainshed", secretsOf: from?.split("/").at(-1) };
      const made = await post(`${parent}/customJobs`, body, query, { headers });
      forgetDraft();
      keepPlace(draft);
      go(jobHref(made.name));
    } catch (failure) {
      setRefusal(/** @type {Error} */ (failure));
      const [first] = failure instanceof ApiError ? failure.violations : [];
      if (first) focusField(first.field);
    }
    isSending.current = false;
    showSending(false);
  };
  const startAnew = () => {
    forgetDraft();
    if (from) setQuery({ from: "" });
    setDraft({ job: emptyJob(), project, location });
    setTouched(false);
    setRefusal(null);
  };
  return html`<div class="toolbar">
      <h1 class="grow">${from ? "New job from another" : "New job"}</h1>
      ${isTouched && html`<button type="button" onClick=${startAnew}>Start anew</button>`}
    </div>
    <form class="new-job" noValidate onSubmit=${submit}>
      <div class="new-fields">
        <${JobFields}
          form=${form}
          parent=${parent}
          place=${{ project, location }}
          onPlace=${(/** @type {Partial<Draft>} */ place) => change((before) => ({ ...before, ...place }))}
        />
      </div>
      <div class="new-aside">
        <div class="toolbar">
          <button type="submit" class="main" disabled=${isSendingShown}>${isSendingShown ? "Submitting …" : "Submit the job"}</button>
        </div>
        <${OutlookNotice}
          outlook=${refusal ? { error: refusal, isOld: false } : outlook}
          onChange=${(/** @type {{field: string, to: string}} */ wanted) => setJob((before) => withChange(before, wanted))}
          onFind=${focusField}
        />
        <${TextView}
          job=${body}
          project=${project}
          location=${location}
          parent=${parent}
          onJob=${(/** @type {any} */ pasted) => setJob((before) => withSecretsOf(pasted, before))}
        />
      </div>
    </form>`;
}

/** The input of a field of the server, or of the nearest around or in it. @param {string} field */
function focusField(field) {
  const inputs = [...document.querySelectorAll("form.new-job [id]")].filter((element) => !element.id.includes(":"));
  let path = camelPath(field);
  while (path) {
    const input = inputs.find(({ id }) => isWithin(path, id));
    if (input instanceof HTMLElement) return input.focus();
    path = path.replace(/(?:^|\.)[^.[\]]+$|\[\d+\]$/, "");
  }
}
