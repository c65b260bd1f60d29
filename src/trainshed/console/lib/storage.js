// Buckets and objects: Google's JSON API for storage, which this server speaks.

import { href } from "./address.js";
import { ask, get, remove, withQuery } from "./api.js";
import { sendBatch } from "./storage-batch.js";

/**
 * @typedef {{name: string, project?: string, location?: string, timeCreated: string, versioning?: {enabled?: boolean}}} BucketInfo
 * @typedef {{name: string, size: string, updated: string, contentType?: string, contentEncoding?: string,
 *   generation: string, timeDeleted?: string, md5Hash?: string, crc32c?: string, metadata?: Record<string, string>}} ObjectInfo
 * @typedef {{objects: ObjectInfo[], folders: string[], next?: string}} Listing
 */

const PAGE = 1000;
const FIELDS = "items(name,size,updated,contentType,generation,timeDeleted),prefixes,nextPageToken";
const IN_BATCH = 100; // objects deleted by one request: few enough to tell how far it is
const AT_ONCE = 4; // requests of a browser to one server: two of six stay free for the page

/** @param {string} bucket */
const bucketPath = (bucket) => `/storage/v1/b/${encodeURIComponent(bucket)}`;

/** @param {string} bucket @param {string} name */
export const objectPath = (bucket, name) => `${bucketPath(bucket)}/o/${encodeURIComponent(name)}`;

/** Where the bytes are. The server lets browsers save them or draw them as an image, never open them as a page.
 * @param {string} bucket @param {string} name @param {string} [generation] */
export const mediaPath = (bucket, name, generation) =>
  withQuery(`/download${objectPath(bucket, name)}`, { alt: "media", generation });

/**
 * The address of a folder in the console. A prefix that a path cannot have is in the query.
 * @param {string} bucket
 * @param {string} [prefix] "" or ending in /
 * @param {Record<string, string>} [query]
 */
export function folderHref(bucket, prefix = "", query = {}) {
  const parts = prefix ? prefix.slice(0, -1).split("/") : [];
  const isPath = prefix.endsWith("/") && parts.every((part) => part && part !== "." && part !== "..");
  return href(["buckets", bucket, ...(isPath ? parts : [])], isPath || !prefix ? query : { prefix, ...query });
}

/** @param {string} bucket @param {string} name */
export const objectHref = (bucket, name) => folderHref(bucket, name.slice(0, name.lastIndexOf("/") + 1), { object: name });

/** @param {AbortSignal} signal @returns {Promise<BucketInfo[]>} */
export async function listBuckets(signal) {
  return everyPage((pageToken) => get("/storage/v1/b", { pageToken }, { signal }));
}

/** @param {(pageToken: string) => Promise<{items?: any[], nextPageToken?: string}>} read */
async function everyPage(read, pageToken = "") {
  const all = [];
  do {
    const answer = await read(pageToken);
    all.push(...(answer.items ?? []));
    pageToken = answer.nextPageToken ?? "";
  } while (pageToken);
  return all;
}

/** @param {string} bucket @param {AbortSignal} [signal] @returns {Promise<BucketInfo>} */
export const getBucket = (bucket, signal) => get(bucketPath(bucket), {}, { signal });

/** @param {string} bucket */
export const removeBucket = (bucket) => remove(bucketPath(bucket));

/**
 * A page of a folder, in the order of names.
 * @param {string} bucket
 * @param {{prefix: string, after?: string, versions?: boolean}} query
 * @param {AbortSignal} [signal]
 * @returns {Promise<Listing>}
 */
export async function listFolder(bucket, { prefix, after, versions }, signal) {
  const query = { prefix, delimiter: "/", pageToken: after, maxResults: PAGE, versions, fields: FIELDS };
  const answer = await get(`${bucketPath(bucket)}/o`, query, { signal });
  // A folder that somebody made as an empty object is the folder that is shown, not a thing in it.
  const objects = (answer.items ?? []).filter((/** @type {ObjectInfo} */ { name }) => name !== prefix || !name.endsWith("/"));
  return { objects, folders: answer.prefixes ?? [], next: answer.nextPageToken };
}

/** @param {string} bucket @param {string} name @param {AbortSignal} [signal] @returns {Promise<ObjectInfo>} */
export const getObject = (bucket, name, signal) => get(objectPath(bucket, name), {}, { signal });

/** Every version of an object, the newest first. @param {string} bucket @param {string} name @param {AbortSignal} [signal] */
export async function listVersions(bucket, name, signal) {
  const query = { prefix: name, versions: true, maxResults: PAGE, delimiter: "/", fields: FIELDS };
  const all = await everyPage((pageToken) => get(`${bucketPath(bucket)}/o`, { ...query, pageToken }, { signal }));
  return all.filter((item) => item.name === name).reverse();
}

/** The old version becomes the live one too. @param {string} bucket @param {ObjectInfo} version */
export const restoreVersion = (bucket, { name, generation }) =>
  ask("POST", withQuery(`${objectPath(bucket, name)}/restore`, { generation }), { body: {} });

/**
 * All objects below prefixes, for a deed on them.
 * @param {string} bucket @param {string[]} prefixes @param {AbortSignal} [signal] @returns {Promise<ObjectInfo[]>}
 */
export async function listBelow(bucket, prefixes, signal) {
  const fields = "items(name,size,generation),nextPageToken";
  const read = (/** @type {string} */ prefix) =>
    everyPage((pageToken) => get(`${bucketPath(bucket)}/o`, { prefix, pageToken, maxResults: PAGE, fields }, { signal }));
  return (await Promise.all(prefixes.map(read))).flat();
}

/**
 * Deletes the objects as they were listed, many in a request. What was replaced since stays. Returns what stays and why.
 * @param {string} bucket @param {ObjectInfo[]} objects @param {(done: number) => void} onProgress
 * @returns {Promise<{name: string, message: string}[]>}
 */
export async function removeObjects(bucket, objects, onProgress) {
  /** @type {{name: string, message: string}[]} */
  const kept = [];
  let done = 0;
  const groups = Array.from({ length: Math.ceil(objects.length / IN_BATCH) }, (_, at) => objects.slice(at * IN_BATCH, (at + 1) * IN_BATCH));
  await inParallel(groups, AT_ONCE, async (group) => {
    const paths = group.map(({ name, generation }) => withQuery(objectPath(bucket, name), { ifGenerationMatch: generation }));
    const answers = await sendBatch("DELETE", paths).catch((error) => paths.map(() => ({ status: 0, message: error.message })));
    answers.forEach(({ status, message }, at) => {
      const isGone = (status >= 200 && status < 300) || status === 404;
      if (!isGone) kept.push({ name: group[at].name, message: status === 412 ? "It was replaced meanwhile." : message });
    });
    onProgress((done += group.length));
  });
  return kept;
}

/**
 * @template T
 * @param {T[]} items @param {number} most at once @param {(item: T) => Promise<void>} deed
 */
export async function inParallel(items, most, deed) {
  const rest = items[Symbol.iterator]();
  const work = async () => {
    for (const item of rest) await deed(item);
  };
  await Promise.all(Array.from({ length: most }, work));
}
