// Sends a folder of code: the server says which contents it lacks, and gets only those.

import { post } from "./api.js";
import { withoutIgnored } from "./ignored.js";

/**
 * @typedef {import("./dropped-files.js").ChosenFile} ChosenFile
 * @typedef {{name: string, files: ChosenFile[], left: number, size: number}} CodeFolder `left`: files that are ignored
 */

const PLAIN = "100644"; // browsers do not say which files may be run
const LARGEST = 512 << 20; // bytes of a file: it is hashed as a whole
const ROUNDS = 3; // of asking what is missing and sending it
const BATCH = 32 << 20; // bytes in a request

/** What would be sent of the files that somebody chose. @param {ChosenFile[]} chosen @returns {Promise<CodeFolder>} */
export async function packFolder(chosen) {
  const tops = new Set(chosen.map(({ path }) => path.split("/")[0]));
  const top = tops.size === 1 && chosen.every(({ path }) => path.includes("/")) ? [...tops][0] : "";
  const inside = top ? chosen.map(({ path, file }) => ({ path: path.slice(top.length + 1), file })) : chosen;
  const files = await withoutIgnored(inside);
  const size = files.reduce((sum, { file }) => sum + file.size, 0);
  return { name: top, files, left: chosen.length - files.length, size };
}

/**
 * The id of the folder, which is on the server then.
 * @param {string} parent /v1/projects/P/locations/L
 * @param {ChosenFile[]} files
 * @param {(words: string, share: number) => void} onProgress
 * @returns {Promise<string>}
 */
export async function sendFolder(parent, files, onProgress) {
  if (!crypto.subtle) {
    throw new Error("Browsers hash files only over TLS or on localhost. Send the folder from a terminal: trainshed submit");
  }
  const large = files.find(({ file }) => file.size > LARGEST);
  if (large) throw new Error(`${large.path} is too large for a browser: put it into a bucket, or submit from a terminal.`);
  const entries = [];
  for (const [at, { path, file }] of files.entries()) {
    entries.push({ path, file, sha256: await digest(file) });
    onProgress("Hashing", (at + 1) / files.length);
  }
  const manifest = entries.map(({ path, file, sha256 }) => ({ path, sha256, size: file.size, mode: PLAIN }));
  const blobs = [...new Map(entries.map((entry) => [entry.sha256, entry])).values()];
  for (let round = 0; round < ROUNDS; round += 1) {
    // The folder is there once nothing is missing: what is sent is asked about again.
    const { code, missing } = await post(`${parent}/code:missing`, { files: manifest });
    if (!missing.length) return code;
    const wanted = new Set(missing);
    await sendBlobs(parent, blobs.filter(({ sha256 }) => wanted.has(sha256)), onProgress);
  }
  throw new Error("The server says that files are still missing: have they changed meanwhile? Choose the folder again.");
}

/** @param {string} parent @param {{sha256: string, file: File}[]} blobs @param {(words: string, share: number) => void} onProgress */
async function sendBlobs(parent, blobs, onProgress) {
  const total = blobs.reduce((sum, { file }) => sum + file.size, 0);
  let sent = 0;
  let parts = /** @type {BlobPart[]} */ ([]);
  let size = 0;
  for (const [at, { sha256, file }] of blobs.entries()) {
    parts.push(`${sha256} ${file.size}\n`, file);
    size += file.size;
    if (size < BATCH && at < blobs.length - 1) continue;
    await post(`${parent}/code:upload`, new Blob(parts));
    sent += size;
    [parts, size] = [[], 0];
    onProgress("Sending", total ? sent / total : 1);
  }
}

/** @param {File} file */
async function digest(file) {
  const hash = new Uint8Array(await crypto.subtle.digest("SHA-256", await file.arrayBuffer()));
  return [...hash].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}
