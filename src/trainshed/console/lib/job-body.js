// The body of a create, as the form for a new job edits it: fields are named by their paths,
// such as jobSpec.workerPoolSpecs[0].machineSpec.machineType.

export const MASK = "(secret, not shown)"; // the server's, in place of the values of secrets
// More names than the server takes for secrets: of these no value is kept in the browser, nor printed.
const SECRET_NAME = /token|secret|pass|key|credential/i;

/** @typedef {{name?: string, value?: string, secret?: boolean}} Variable */

export const ROLES = ["Primary", "Workers", "Parameter servers", "Evaluator"];

/** @param {number} at */
export const roleOf = (at) => ROLES[at] ?? `Pool ${at}`;

/** A job to begin with. */
export const emptyJob = () => ({
  displayName: "",
  jobSpec: {
    workerPoolSpecs: [
      { machineSpec: { machineType: "n1-standard-4" }, replicaCount: 1, containerSpec: { imageUri: "trainshed/python:3", command: [] } },
    ],
  },
});

/** @param {string} path */
const steps = (path) => path.split(/[.[\]]+/).filter(Boolean).map((step) => (/^\d+$/.test(step) ? Number(step) : step));

/** @param {any} value @param {string} path @returns {any} */
export const valueAt = (value, path) => steps(path).reduce((inner, step) => inner?.[step], value);

/**
 * A copy with that value; "", undefined and what is empty then are left out.
 * @param {any} value @param {string} path @param {any} to @returns {any}
 */
export const withValue = (value, path, to) => changed(value, steps(path), to);

/** @param {any} value @param {(string | number)[]} way @param {any} to @returns {any} */
function changed(value, [step, ...rest], to) {
  const inner = rest.length ? changed(value?.[step], rest, to) : to;
  if (typeof step === "number") return Object.assign([...(value ?? [])], { [step]: inner ?? {} });
  const { [step]: _, ...others } = value ?? {};
  const isEmpty = inner === undefined || inner === "" || (typeof inner === "object" && !Array.isArray(inner) && !Object.keys(inner).length);
  if (isEmpty) return others;
  return step in (value ?? {}) ? { ...value, [step]: inner } : { ...others, [step]: inner };
}

/** The server's name of a field as the form has it: job_spec.x_y[0] -> jobSpec.xY[0]. @param {string} field */
export const camelPath = (field) => field.replace(/^custom_job\./, "").replace(/_([a-z])/g, (_, letter) => letter.toUpperCase());

/** @param {string} path @param {string} field whether the field is it or in it */
export const isWithin = (path, field) => field === path || field.startsWith(`${path}.`) || field.startsWith(`${path}[`);

/** @param {Variable} variable */
export const isSecret = ({ name = "", secret }) => Boolean(secret) || SECRET_NAME.test(name);

/**
 * The body with each variable as `to` makes it.
 * @param {any} job @param {(variable: Variable, pool: number) => Variable} to
 */
export function withVariables(job, to) {
  const pools = (job.jobSpec?.workerPoolSpecs ?? []).map((/** @type {any} */ pool, /** @type {number} */ at) => {
    const part = pool.pythonPackageSpec ? "pythonPackageSpec" : "containerSpec";
    if (!Array.isArray(pool[part]?.env)) return pool;
    return { ...pool, [part]: { ...pool[part], env: pool[part].env.map((/** @type {Variable} */ variable) => to(variable, at)) } };
  });
  return pools.length ? { ...job, jobSpec: { ...job.jobSpec, workerPoolSpecs: pools } } : job;
}

/** Without the variables that nobody has filled in yet. @param {any} job */
export function withoutBlanks(job) {
  const pools = (job.jobSpec?.workerPoolSpecs ?? []).map((/** @type {any} */ pool) => {
    const part = pool.pythonPackageSpec ? "pythonPackageSpec" : "containerSpec";
    const env = pool[part]?.env?.filter((/** @type {Variable} */ { name, value }) => name || value);
    return env ? withValue(pool, `${part}.env`, env.length ? env : undefined) : pool;
  });
  return pools.length ? { ...job, jobSpec: { ...job.jobSpec, workerPoolSpecs: pools } } : job;
}

/** As it may be printed. @param {any} job */
export const withMasks = (job) => withVariables(job, (variable) => (isSecret(variable) && variable.value ? { ...variable, value: MASK } : variable));

/** For a dry run, which needs no secret. @param {any} job */
export const withoutSecrets = (job) => withVariables(job, (variable) => (isSecret(variable) ? { ...variable, value: "-" } : variable));

/** As it may be kept in the browser. @param {any} job */
export const asDraft = (job) =>
  withVariables(job, (variable) => (isSecret(variable) && variable.value !== MASK ? { ...variable, value: "" } : variable));

/** A printed body with the secrets of the one it was printed from. @param {any} job @param {any} before */
export function withSecretsOf(job, before) {
  return withVariables(job, (variable, pool) => {
    const known = before.jobSpec?.workerPoolSpecs?.[pool];
    const env = known?.containerSpec?.env ?? known?.pythonPackageSpec?.env ?? [];
    const same = env.find((/** @type {Variable} */ { name }) => name === variable.name);
    return variable.value === MASK && same ? { ...variable, value: same.value } : variable;
  });
}
