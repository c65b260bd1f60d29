// The filter of a list of jobs while it is typed: which term the caret is in, and what may be put there.

/**
 * @typedef {{start: number, end: number, text: string}} Term
 * @typedef {{insert: string, words: string, isWhole: boolean}} Suggestion `isWhole`: nothing is to be added
 */

export const STATES = ["QUEUED", "PENDING", "RUNNING", "SUCCEEDED", "FAILED", "CANCELLING", "CANCELLED"];
const COMPARED = /^(-?)(labels\.[^=!:<>]*|[A-Za-z_]+)(>=|<=|!=|=|:|<|>)(.*)$/s;
const FIELDS = [
  ["state=", "queued, running, failed …"],
  ["display_name:", "a part of the name"],
  ["labels.", "a label: labels.KEY=value"],
  ["kind=", "custom, pipeline, legacy, manifest, trial, study"],
  ["submitter=", "who submitted it"],
  ["create_time>=", "submitted since"],
  ["start_time>=", "started since"],
  ["end_time>=", "ended since"],
  ["project=", "one project"],
];
const HOUR = 3_600_000;
const SINCE = /** @type {[string, number][]} */ ([
  ["in the last hour", HOUR],
  ["in the last 6 hours", 6 * HOUR],
  ["in the last day", 24 * HOUR],
  ["in the last week", 168 * HOUR],
  ["in the last 30 days", 720 * HOUR],
]);

/** The term around the caret; spaces inside quotation marks belong to it. @param {string} text @param {number} caret @returns {Term} */
export function termAt(text, caret) {
  let start = 0;
  let isQuoted = false;
  for (let at = 0; at < caret; at += 1) {
    if (text[at] === "\\") at += 1;
    else if (text[at] === '"') isQuoted = !isQuoted;
    else if (!isQuoted && /[\s()]/.test(text[at])) start = at + 1;
  }
  return { start, end: caret, text: text.slice(start, caret) };
}

/** Whether a term is a comparison whose value is still to come: the server would refuse it. @param {string} text */
export function isHalfTyped(text) {
  const compared = COMPARED.exec(text);
  if (!compared) return /^-?(labels\.[^\s]*|\(|")$/.test(text);
  const [, , field, , typed] = compared;
  const value = typed.replace(/^"|"$/g, "");
  if (!value || (typed.startsWith('"') && !/^"(\\.|[^"\\])*"$/.test(typed))) return true;
  if (field === "state") return !STATES.includes(value.replace(/^JOB_STATE_/, ""));
  return field.endsWith("_time") && Number.isNaN(Date.parse(value));
}

/** The text with the suggestion in place of the term, and where the caret then is. @param {string} text @param {Term} term @param {Suggestion} suggestion */
export function completed(text, term, suggestion) {
  const after = text.slice(term.end);
  const space = suggestion.isWhole && !after.startsWith(" ") ? " " : "";
  const before = text.slice(0, term.start) + suggestion.insert + space;
  return { text: before + after, caret: before.length };
}

/** As a filter takes it: quoted where it has anything but letters, digits and a few signs. @param {string} value */
export function quoted(value) {
  return /^[\w./@+-]+$/.test(value) ? value : `"${value.replace(/[\\"]/g, "\\$&")}"`;
}

/** The filter without its terms on states. @param {string} text */
export const withoutStates = (text) => text.replace(/(^|\s)-?state\s*!?=\s*"?\w+"?(?=\s|$)/g, " ").replace(/\s+/g, " ").trim();

/** The filter for one state, whatever it had before. @param {string} text @param {string} state */
export const withState = (text, state) => `state=${state.replace(/^JOB_STATE_/, "")} ${withoutStates(text)}`.trim();

const OF_KIND = /(^|[\s(-])kind\s*(=|!=|:)/;
const OF_STUDIES = /(^|\s)kind\s*[=:]\s*"?study"?(?=\s|$)/g;

/** The filter for jobs without those of trials, unless it speaks of kinds itself. @param {string} text */
export function withoutTrials(text) {
  if (OF_KIND.test(text)) return text;
  return both(text, "kind!=trial");
}

/** The filter for studies that stand among jobs; null where none do. @param {string} text @returns {string | null} */
export function forStudies(text) {
  const rest = text.replace(OF_STUDIES, " ").trim();
  return OF_KIND.test(rest) ? null : rest;
}

/** Whether nothing but studies is wanted. @param {string} text */
export const isOfStudies = (text) => text.search(OF_STUDIES) >= 0;

/** Both must hold. @param {string} left @param {string} right */
export const both = (left, right) => (left && right ? `(${left}) ${right}` : left || right);

/**
 * What may be put in place of a term. `ask` gives values of a field that begin with a text.
 * @param {string} text
 * @param {(field: string, prefix: string) => Promise<string[]>} ask
 * @returns {Promise<Suggestion[]>}
 */
export async function suggestions(text, ask) {
  const compared = COMPARED.exec(text);
  if (compared) return valuesFor(compared, ask);
  const minus = text.startsWith("-") ? "-" : "";
  const word = text.slice(minus.length);
  if (word.startsWith("labels.")) {
    const keys = await ask("labels", word.slice("labels.".length));
    return keys.map((key) => ({ insert: `${minus}labels.${quoted(key)}=`, words: "label", isWhole: false }));
  }
  const fields = FIELDS.filter(([field]) => field.startsWith(word.toLowerCase()) && word !== field);
  const names = word.length > 1 && !word.startsWith('"') ? (await ask("display_name", word)).slice(0, 6) : [];
  return [
    ...fields.map(([insert, words]) => ({ insert: minus + insert, words, isWhole: false })),
    ...names.map((name) => ({ insert: `${minus}display_name=${quoted(name)}`, words: "name", isWhole: true })),
  ];
}

/** @param {RegExpExecArray} compared @param {(field: string, prefix: string) => Promise<string[]>} ask */
async function valuesFor([, minus, field, sign, typed], ask) {
  const start = `${minus}${field}${sign}`;
  const prefix = typed.replace(/^"|"$/g, "");
  /** @param {string[]} values */
  const whole = (values) => values.map((value) => ({ insert: start + quoted(value), words: "", isWhole: true }));
  if (field === "state") return whole(STATES.filter((state) => state.startsWith(prefix.toUpperCase())));
  if (field.endsWith("_time")) {
    if (prefix) return [];
    return SINCE.map(([words, length]) => ({ insert: `${start}"${new Date(Date.now() - length).toISOString()}"`, words, isWhole: true }));
  }
  if (field.startsWith("labels.")) {
    const key = field.slice("labels.".length).replace(/^"|"$/g, "");
    const pairs = await ask("labels", `${key}=${prefix}`);
    return whole(pairs.map((pair) => pair.slice(key.length + 1)));
  }
  return ["display_name", "kind", "submitter", "project"].includes(field) ? whole(await ask(field, prefix)) : [];
}
