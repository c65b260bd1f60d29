// Addresses of results, and what there is at the place of a job's results.

import { get } from "./api.js";
import { href } from "./address.js";

const MOST = 200; // entries of a folder that are looked at

/**
 * @typedef {{uri: string, storedTime: string}} Committed a folder of which all files are stored
 * @typedef {{outputUriPrefix?: string, note?: string, model?: Committed, checkpoints?: Committed[]}} Results
 * @typedef {{folders: string[], files: any[], isMore: boolean}} Listing
 */

/** Bucket and name of gs://BUCKET/NAME or s3://BUCKET/NAME; null for anything else. @param {string} uri */
export function placeOf(uri) {
  const match = /^(?:gs|s3):\/\/([^/]+)\/?(.*)$/.exec(uri);
  return match && { bucket: match[1], name: match[2] };
}

/** The page of a bucket that shows it; "" for what is in no bucket. @param {string} uri */
export function bucketHref(uri) {
  const place = placeOf(uri);
  if (!place) return "";
  const isFolder = place.name.endsWith("/");
  return href(["buckets", place.bucket, ...place.name.split("/").filter(Boolean)]) + (isFolder ? "/" : "");
}

/**
 * What is directly at the place.
 * @param {string} uri
 * @param {{signal?: AbortSignal}} options
 * @returns {Promise<Listing | undefined>}
 */
export async function listing(uri, options) {
  const place = placeOf(uri);
  if (!place) return undefined;
  const prefix = place.name && `${place.name.replace(/\/+$/, "")}/`;
  const query = { prefix, delimiter: "/", maxResults: MOST };
  const { prefixes = [], items = [], nextPageToken } = await get(`/storage/v1/b/${encodeURIComponent(place.bucket)}/o`, query, options);
  return { folders: prefixes, files: items, isMore: Boolean(nextPageToken) };
}
