// Submitting a job once more, unchanged or with a field set differently: it is a new job, the first one stays.

import { post, sentOnce } from "./api.js";

const SUBMITTED = ["displayName", "jobSpec", "labels", "encryptionSpec"]; // what a person says of a job; the rest is told

/** @typedef {{field: string, to: string}} Change a path as of `:why`: jobSpec.workerPoolSpecs[0].replicaCount */

/**
 * The body that would submit the job again.
 * @param {any} job
 */
export function bodyOf(job) {
  return Object.fromEntries(SUBMITTED.filter((field) => field in job).map((field) => [field, structuredClone(job[field])]));
}

/**
 * The body with the change. `[*]` in the path means every pool that has replicas.
 * @param {any} body
 * @param {Change} change
 */
export function withChange(body, { field, to }) {
  const changed = structuredClone(body);
  const steps = [...field.matchAll(/[^.[\]]+/g)].map(([step]) => step);
  const last = /** @type {string} */ (steps.pop());
  for (const place of placesOf(changed, steps)) setField(place, last, to);
  return changed;
}

/** @param {any} root @param {string[]} steps @returns {any[]} */
function placesOf(root, steps) {
  return steps.reduce(
    (places, step) =>
      step === "*"
        ? places.flatMap((list) => list.filter((/** @type {any} */ pool) => pool.machineSpec))
        : places.map((place) => (place[step] ??= {})),
    [root],
  );
}

/** @param {any} place @param {string} name @param {string} to */
function setField(place, name, to) {
  if (name === "acceleratorCount" && to === "0") {
    delete place.acceleratorType; // the API refuses a type without a count
    delete place.acceleratorCount;
  } else place[name] = /^(acceleratorCount|priority)$/.test(name) ? Number(to) : to;
}

/**
 * Values of secrets are taken from the first job: its own answer has only masks.
 * @param {any} job
 * @param {any} [body]
 * @returns {Promise<any>} the new job
 */
export function resubmit(job, body = bodyOf(job)) {
  const [parent, id] = job.name.split("/customJobs/");
  return post(`/v1/${parent}/customJobs`, body, { secretsOf: id, view: "trainshed" }, { headers: sentOnce() });
}
