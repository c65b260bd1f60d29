// Requests to the server's JSON API. The session's cookie says who asks; scripts use the same API with a token.

/** @typedef {Record<string, string | number | boolean | null | undefined>} Query */
/** @typedef {{field: string, description: string}} FieldViolation */

import { inOwnProject } from "./own-project.js";

export const EVERYWHERE = "/v1/projects/-/locations/-";
const FRESH = 2000; // milliseconds for which an answer that was asked ahead is waited for by its part
const AGAIN = 250; // milliseconds until a request that got no answer is sent once more
export const SIGNED_OUT = "trainshed:signed-out";

/** What the server refused, in its own words. Status 0: no server answered. */
export class ApiError extends Error {
  /**
   * @param {number} status
   * @param {string} message
   * @param {FieldViolation[]} [violations]
   */
  constructor(status, message, violations = []) {
    super(message);
    this.status = status;
    this.violations = violations;
  }
}

/** Headers that make one job of a create that is sent twice. Works without TLS, where a UUID is not to be had. */
export function sentOnce() {
  return { "Idempotency-Key": crypto.getRandomValues(new Uint32Array(4)).join("-") };
}

/**
 * @param {string} path
 * @param {Query} [query]
 */
export function withQuery(path, query = {}) {
  const pairs = Object.entries(query).filter(([, value]) => value !== "" && value !== null && value !== undefined);
  const search = new URLSearchParams(pairs.map(([name, value]) => [name, String(value)])).toString();
  return search ? `${path}?${search}` : path;
}

/** The path of a resource, by its full name. @param {string} name */
export const pathOf = (name) => `/v1/${name.split("/").map(encodeURIComponent).join("/")}`;

/** @type {Map<string, Promise<any>>} by address, what was asked ahead and nobody has taken yet */
const ahead = new Map();

/**
 * @param {string} path
 * @param {Query} [query]
 * @param {{signal?: AbortSignal}} [options]
 * @returns {Promise<any>}
 */
export function get(path, query, { signal } = {}) {
  const address = withQuery(path, query);
  const answer = ahead.get(address);
  ahead.delete(address);
  return answer ?? ask("GET", address, { signal });
}

/**
 * Ask what a part of the page will ask with `get` in a moment, which gets this answer then.
 * @param {string} path
 * @param {Query} [query]
 */
export function askAhead(path, query) {
  const address = withQuery(path, query);
  if (ahead.has(address)) return;
  const answer = ask("GET", address, {});
  answer.catch(() => {}); // told to who takes it
  ahead.set(address, answer);
  setTimeout(() => ahead.get(address) === answer && ahead.delete(address), FRESH);
}

/**
 * @param {string} path
 * @param {unknown} [body] JSON, or a Blob as it is
 * @param {Query} [query]
 * @param {{signal?: AbortSignal, headers?: Record<string, string>}} [options]
 * @returns {Promise<any>}
 */
export function post(path, body = {}, query, options = {}) {
  return ask("POST", withQuery(path, query), { body, ...options });
}

/**
 * @param {string} path
 * @param {Query} [query]
 * @returns {Promise<any>}
 */
export function remove(path, query) {
  return ask("DELETE", withQuery(path, query), {});
}

/**
 * @param {string} method
 * @param {string} path
 * @param {{body?: unknown, signal?: AbortSignal, headers?: Record<string, string>}} options
 */
export async function ask(method, path, options) {
  const answer = await send(method, path, options);
  return answer.status === 204 ? {} : answer.json();
}

/**
 * The answer itself, for those who read it in pieces.
 * @param {string} method
 * @param {string} path
 * @param {{body?: unknown, signal?: AbortSignal, headers?: Record<string, string>}} options
 */
export async function send(method, path, { body, signal, headers = {} }) {
  const isRaw = body instanceof Blob || body instanceof ArrayBuffer || body instanceof Uint8Array;
  /** @type {Record<string, string>} */
  const type = body !== undefined && !isRaw ? { "Content-Type": "application/json" } : {};
  const sent = /** @type {BodyInit | undefined} */ (isRaw || body === undefined ? body : JSON.stringify(body));
  const request = { method, body: sent, signal, headers: { ...type, ...headers } };
  const address = inOwnProject(path);
  const answer = await fetch(address, request)
    // Asked once more, if that is harmless: browsers drop requests while the machine gets another network.
    .catch((error) => (method === "GET" && !signal?.aborted ? pause(AGAIN).then(() => fetch(address, request)) : Promise.reject(error)))
    .catch((error) => {
      throw signal?.aborted ? error : new ApiError(0, "The server does not answer.");
    });
  if (!answer.ok) throw await refusal(answer);
  return answer;
}

/** @param {number} time milliseconds */
export const pause = (time) => new Promise((resolve) => setTimeout(resolve, time));

/** @param {Response} answer */
async function refusal(answer) {
  const told = await answer.json().catch(() => null);
  const error = told?.error ?? {};
  const violations = (error.details ?? []).flatMap((/** @type {any} */ detail) => detail.fieldViolations ?? []);
  if (answer.status === 401 || answer.status === 403) dispatchEvent(new Event(SIGNED_OUT));
  return new ApiError(answer.status, error.message ?? `The server answered ${answer.status}.`, violations);
}
