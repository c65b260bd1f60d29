// A job as a command or a program that submits it: for a shell in which eval "$(trainshed env)" was run.

import { pythonLiteral } from "./python-literal.js";
import { yaml } from "./yaml.js";

/**
 * What submits a job: its body as of a create, where to, and, for a job that exists, its id.
 * @typedef {{body: any, project: string, location: string, id?: string}} Submission
 * @typedef {{text: string, notes: string[]}} Copied `notes`: what the text cannot do, in sentences
 */

const MASK = "(secret, not shown)"; // the server's, in place of the values of secrets
const POOL_FIELDS = ["machineSpec", "replicaCount", "containerSpec", "pythonPackageSpec", "nfsMounts", "lustreMounts", "diskSpec"];
const NUMBERS = new Set(["replicaCount", "acceleratorCount", "bootDiskSizeGb"]); // int64 are texts in JSON
const SCHEDULING = /** @type {Record<string, [string, (value: any) => unknown]>} */ ({
  timeout: ["timeout", (value) => Math.round(parseFloat(value))],
  restartJobOnWorkerRestart: ["restart_job_on_worker_restart", Boolean],
  disableRetries: ["disable_retries", Boolean],
  strategy: ["scheduling_strategy", String],
  maxWaitDuration: ["max_wait_duration", (value) => Math.round(parseFloat(value))],
});
const SUBMIT = /** @type {Record<string, string>} */ ({
  serviceAccount: "service_account",
  network: "network",
  enableWebAccess: "enable_web_access",
  tensorboard: "tensorboard",
});

/** All ways, with their titles. @type {{name: string, title: string, copy: (submission: Submission) => Copied}[]} */
export const WAYS = [
  { name: "trainshed", title: "trainshed", copy: asTrainshed },
  { name: "gcloud", title: "gcloud", copy: asGcloud },
  { name: "sdk", title: "Python SDK", copy: asPython },
  { name: "curl", title: "curl", copy: asCurl },
];

/** @param {Submission} submission @returns {Copied} */
export function asTrainshed({ body, project, location }) {
  const command = `trainshed submit - --project ${quoted(project)} --location ${quoted(location)}`;
  return { text: withInput(command, yaml(body)), notes: secretNotes(body) };
}

/** @param {Submission} submission @returns {Copied} */
export function asGcloud({ body, project, location }) {
  const labels = Object.entries(body.labels ?? {}).map(([key, value]) => `${key}=${value}`);
  const flags = [
    `--project=${quoted(project)}`,
    `--region=${quoted(location)}`,
    `--display-name=${quoted(body.displayName)}`,
    ...(labels.length ? [`--labels=${quoted(labels.join(","))}`] : []),
    ...(body.encryptionSpec?.kmsKeyName ? [`--kms-key=${quoted(body.encryptionSpec.kmsKeyName)}`] : []),
    "--config=/dev/stdin",
  ];
  const command = ["gcloud ai custom-jobs create", ...flags].join(" \\\n  ");
  return { text: withInput(command, yaml(body.jobSpec ?? {})), notes: secretNotes(body) };
}

/** @param {Submission} submission @returns {Copied} */
export function asCurl({ body, project, location, id }) {
  const isMasked = hasSecrets(body) && id;
  const query = isMasked ? `?secretsOf=${encodeURIComponent(id)}` : "";
  const path = `/v1/projects/${encodeURIComponent(project)}/locations/${encodeURIComponent(location)}/customJobs${query}`;
  const command = [
    `curl --fail-with-body -sS "$TRAINSHED_URL"${quoted(path)}`,
    `-H "Authorization: Bearer $(cat "$TRAINSHED_TOKEN_FILE")"`,
    "-H 'Content-Type: application/json'",
    "--data-binary @-",
  ].join(" \\\n  ");
  const notes = isMasked ? ["Values of secrets are not shown; the server takes them from this job."] : secretNotes(body);
  return { text: withInput(command, `${JSON.stringify(body, null, 2)}\n`), notes };
}

/** @param {Submission} submission @returns {Copied} */
export function asPython({ body, project, location }) {
  const spec = body.jobSpec ?? {};
  const output = spec.baseOutputDirectory?.outputUriPrefix;
  const bucket = /^gs:\/\/[^/]+/.exec(output ?? "")?.[0] ?? "gs://staging";
  const { submit, left } = submitArguments(spec);
  const made = {
    display_name: body.displayName,
    worker_pool_specs: (spec.workerPoolSpecs ?? []).map(snakePool),
    ...(output && { base_output_dir: output }),
    ...(body.labels && { labels: body.labels }),
    ...(body.encryptionSpec?.kmsKeyName && { encryption_spec_key_name: body.encryptionSpec.kmsKeyName }),
  };
  const text = `import os

from google.cloud import aiplatform
from google.oauth2.credentials import Credentials

aiplatform.init(
    project=${pythonLiteral(project)},
    location=${pythonLiteral(location)},
    api_endpoint=os.environ["TRAINSHED_URL"],
    api_transport="rest",
    credentials=Credentials(open(os.environ["TRAINSHED_TOKEN_FILE"]).read().strip()),
    staging_bucket=${pythonLiteral(bucket)},
)
job = aiplatform.CustomJob(${keywords(made)})
job.submit(${keywords(submit)})
print(job.resource_name)
`;
  const own = [...left, ...ownFieldsOfPools(spec.workerPoolSpecs ?? [])];
  const notes = [
    ...(own.length ? [`Google's SDK has no words for ${own.join(", ")}: left out.`] : []),
    ...(output ? [] : [`Google's SDK adds a place for results below ${bucket}; put a bucket of yours there.`]),
    ...secretNotes(body),
  ];
  return { text, notes };
}

/** Keyword arguments of `submit`, and the fields that it has none for. @param {any} spec */
function submitArguments(spec) {
  const { workerPoolSpecs, baseOutputDirectory, scheduling = {}, ...rest } = spec;
  /** @type {Record<string, unknown>} */
  const submit = {};
  /** @type {string[]} */
  const left = [];
  for (const [name, value] of Object.entries(scheduling)) {
    const known = SCHEDULING[name];
    if (known) submit[known[0]] = known[1](value);
    else left.push(`scheduling.${name}`);
  }
  for (const [name, value] of Object.entries(rest)) {
    if (SUBMIT[name]) submit[SUBMIT[name]] = value;
    else left.push(name);
  }
  return { submit, left };
}

/** A pool with the names of the SDK, and only what it knows. @param {any} pool */
function snakePool(pool) {
  return snake(Object.fromEntries(POOL_FIELDS.filter((name) => name in pool).map((name) => [name, pool[name]])));
}

/** @param {any} value @returns {any} */
function snake(value) {
  if (Array.isArray(value)) return value.map(snake);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .filter(([name]) => name !== "secret" && name !== "readOnly") // ours
      .map(([name, item]) => [name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`), NUMBERS.has(name) ? Number(item) : snake(item)]),
  );
}

/** @param {any[]} pools */
function ownFieldsOfPools(pools) {
  return [...new Set(pools.flatMap((pool) => Object.keys(pool)))].filter((name) => !POOL_FIELDS.includes(name));
}

/** @param {Record<string, unknown>} values */
function keywords(values) {
  const all = Object.entries(values).map(([name, value]) => `    ${name}=${pythonLiteral(value, "    ")},\n`);
  return all.length ? `\n${all.join("")}` : "";
}

/** @param {any} body */
const hasSecrets = (body) => JSON.stringify(body).includes(JSON.stringify(MASK));

/** @param {any} body */
const secretNotes = (body) =>
  hasSecrets(body) ? [`Values of secrets are not shown: replace each “${MASK}” by the value.`] : [];

/** A word of a shell. @param {string} text */
function quoted(text) {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}

/** The command with the text as its input. @param {string} command @param {string} text with a line feed at its end */
function withInput(command, text) {
  const all = new Set(text.split("\n"));
  let mark = "END";
  while (all.has(mark)) mark += "_";
  return `${command} <<'${mark}'\n${text}${mark}\n`;
}
