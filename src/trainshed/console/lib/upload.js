// Sends a file into a bucket: in one request, or in pieces that go on where they stopped when the connection breaks.

import { ApiError, get, send, withQuery } from "./api.js";

const PIECE = 8 << 20; // bytes
const TRIES = 6;
const ABSENT = { ifGenerationMatch: 0 }; // the server refuses to replace an object

/**
 * @param {{bucket: string, name: string, file: File, canReplace: boolean, onSent: (bytes: number) => void}} order
 * ApiError of status 412 where the object is there and may not be replaced
 */
export async function putObject(order) {
  await (order.file.size > PIECE ? putInPieces(order) : putWhole(order));
  order.onSent(order.file.size);
}

/** @param {Parameters<typeof putObject>[0]} order @param {Record<string, string>} query */
const uploadPath = ({ bucket, name, canReplace }, query) =>
  withQuery(`/upload/storage/v1/b/${encodeURIComponent(bucket)}/o`, { name, ...(canReplace ? {} : ABSENT), ...query });

/** @param {Parameters<typeof putObject>[0]} order */
async function putWhole(order) {
  const headers = { "Content-Type": typeOf(order.file) };
  await retrying(() => send("POST", uploadPath(order, { uploadType: "media" }), { body: order.file, headers }));
}

/** @param {Parameters<typeof putObject>[0]} order */
async function putInPieces(order) {
  const { bucket, name, file, canReplace, onSent } = order;
  if (!canReplace) await refuseIfThere(bucket, name); // before the bytes, not after gigabytes of them
  const headers = { "X-Upload-Content-Type": typeOf(file), "X-Upload-Content-Length": String(file.size) };
  const begun = await send("POST", uploadPath(order, { uploadType: "resumable" }), { body: {}, headers });
  const id = new URL(begun.headers.get("location") ?? "", location.href).searchParams.get("upload_id") ?? "";
  const path = uploadPath(order, { uploadType: "resumable", upload_id: id });
  let at = 0;
  while (at < file.size) {
    const piece = file.slice(at, at + PIECE);
    const range = `bytes ${at}-${at + piece.size - 1}/${file.size}`;
    at = await sendPiece(path, piece, range, file.size);
    onSent(at);
  }
}

/** How many bytes the server has then. @param {string} path @param {Blob} piece @param {string} range @param {number} total */
async function sendPiece(path, piece, range, total) {
  try {
    return await putPiece(path, piece, range, total);
  } catch (error) {
    if (!isPassing(error)) throw error;
    return retrying(() => putPiece(path, new Blob(), `bytes */${total}`, total)); // it says what it has
  }
}

/** @param {string} path @param {Blob} piece @param {string} range @param {number} total */
async function putPiece(path, piece, range, total) {
  let answer;
  try {
    answer = await fetch(path, { method: "PUT", body: piece, headers: { "Content-Range": range } });
  } catch {
    throw new ApiError(0, "The server does not answer.");
  }
  if (answer.ok) return total;
  if (answer.status !== 308) {
    const told = await answer.json().catch(() => ({}));
    throw new ApiError(answer.status, told.error?.message ?? `The server answered ${answer.status}.`);
  }
  const last = /-(\d+)$/.exec(answer.headers.get("range") ?? "");
  return last ? Number(last[1]) + 1 : 0;
}

/** @param {string} bucket @param {string} name */
async function refuseIfThere(bucket, name) {
  // Listed, not asked for: the first of all names that begin so is the name itself, and no answer is an error.
  const { items = [] } = await get(`/storage/v1/b/${encodeURIComponent(bucket)}/o`, { prefix: name, maxResults: 1, fields: "items(name)" });
  if (items[0]?.name === name) throw new ApiError(412, `${name} is there already.`);
}

/** @template T @param {() => Promise<T>} deed @returns {Promise<T>} */
async function retrying(deed) {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await deed();
    } catch (error) {
      if (!isPassing(error) || attempt === TRIES) throw error;
      await new Promise((resolve) => setTimeout(resolve, 500 * 2 ** attempt));
    }
  }
}

/** @param {unknown} error */
const isPassing = (error) => error instanceof ApiError && (error.status === 0 || error.status >= 500);

/** @param {File} file */
const typeOf = (file) => file.type || "application/octet-stream";
