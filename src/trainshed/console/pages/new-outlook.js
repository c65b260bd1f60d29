// What would happen to the job: it starts now, or why not, and which change would start it.

import { html, useEffect, useState } from "../lib/ui.js";
import { ApiError, post } from "../lib/api.js";
import { withoutSecrets } from "../lib/job-body.js";
import { ago, rangeWords } from "../lib/format.js";
import { Notice } from "../parts/notice.js";

const PAUSE = 300; // milliseconds without a change before the server is asked

/** @typedef {{explanation?: any, error?: Error, isOld: boolean}} Outlook */

/**
 * The server's answer to a dry run of the job, asked after each pause.
 * @param {any} job @param {string} parent @param {boolean} isWanted
 * @returns {Outlook}
 */
export function useOutlook(job, parent, isWanted) {
  const [outlook, setOutlook] = useState(/** @type {Outlook} */ ({ isOld: false }));
  useEffect(() => {
    if (!isWanted) return;
    const gone = new AbortController();
    setOutlook((before) => ({ ...before, isOld: true }));
    const timer = setTimeout(async () => {
      try {
        const explanation = await post(`${parent}/customJobs:explain`, withoutSecrets(job), {}, { signal: gone.signal });
        setOutlook({ explanation, isOld: false });
      } catch (error) {
        if (!gone.signal.aborted) setOutlook({ error: /** @type {Error} */ (error), isOld: false });
      }
    }, PAUSE);
    return () => {
      clearTimeout(timer);
      gone.abort();
    };
  }, [job, parent, isWanted]);
  return outlook;
}

/** @param {{outlook: Outlook, onChange: (change: {field: string, to: string}) => void, onFind: (field: string) => void}} props */
export function OutlookNotice({ outlook, onChange, onFind }) {
  const { explanation, error } = outlook;
  return html`<div class="outlook" role="status" aria-busy=${outlook.isOld}>
    ${error
      ? html`<${Problems} error=${error} onFind=${onFind} />`
      : explanation
        ? html`<${Explained} explanation=${explanation} onChange=${onChange} />`
        : html`<${Notice}>What the server says of the job appears here as you fill in the form.<//>`}
  </div>`;
}

/** @param {{error: Error, onFind: (field: string) => void}} props */
function Problems({ error, onFind }) {
  const violations = error instanceof ApiError ? error.violations : [];
  if (!violations.length) return html`<${Notice} kind="bad">${error.message}<//>`;
  return html`<${Notice} kind="bad">
    <p><strong>The server would not take this job yet.</strong></p>
    <ul>
      ${violations.map(({ field, description }) => html`<li><button type="button" class="plain link" onClick=${() => onFind(field)}>${field}</button> ${description}</li>`)}
    </ul>
  <//>`;
}

/** @param {{explanation: any, onChange: (change: {field: string, to: string}) => void}} props */
function Explained({ explanation, onChange }) {
  const isNow = explanation.would === "start now";
  return html`<${Notice} kind=${isNow ? "good" : "warn"}>
    <p><strong>${isNow ? "Starts now." : `Would wait, at place ${explanation.position} of ${explanation.queueLength}${startWords(explanation.eta)}.`}</strong></p>
    ${!isNow && html`<${Ground} ground=${explanation.because} />`}
    ${(explanation.changes ?? []).map(
      (/** @type {any} */ change) => html`<p>${change.message}${" "}${!change.job && html`<button type="button" class="small" onClick=${() => onChange(change)}>Make that change</button>`}</p>`,
    )}
  <//>`;
}

/**
 * What is known of its start; a moment that has passed says nothing of a job that waits.
 * @param {{likely?: string, likelyFrom?: string, likelyTo?: string, earliest?: string}} [eta]
 */
function startWords(eta = {}) {
  const { likely, earliest } = eta;
  const isToCome = (/** @type {string | undefined} */ moment) => moment && Date.parse(moment) > Date.now();
  if (likely) return isToCome(likely) ? `; starts ${ago(likely)}, probably` : "; starts soon, probably";
  if (eta.likelyTo) return `; starts ${rangeWords(eta)}, probably`;
  return earliest && isToCome(earliest) ? `; starts ${ago(earliest)} at the earliest` : "";
}

/** @param {{ground: any}} props */
function Ground({ ground }) {
  return html`<p>${ground.message} ${ground.remedy && html`<span class="dim">${ground.remedy}</span>`}</p>
    ${ground.because && html`<ul>${ground.because.map((/** @type {any} */ inner) => html`<li><${Ground} ground=${inner} /></li>`)}</ul>`}`;
}
