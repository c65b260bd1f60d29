// Many small requests to the storage API in one, as Google's clients send them; each has an answer of its own.

import { send } from "./api.js";

/** @typedef {{status: number, message: string}} BatchedAnswer `message`: of a refusal */

const PATH = "/batch/storage/v1";
const MARK = "part_of_batch"; // no address has it at the beginning of a line

/**
 * The answers in the order of the requests. Status 0: the server did not answer that one.
 * @param {string} method
 * @param {string[]} paths with their queries; a thousand at most
 * @returns {Promise<BatchedAnswer[]>}
 */
export async function sendBatch(method, paths) {
  const parts = paths.map(
    (path, at) => `--${MARK}\r\nContent-Type: application/http\r\nContent-ID: <${at}>\r\n\r\n${method} ${path} HTTP/1.1\r\n\r\n`,
  );
  const headers = { "Content-Type": `multipart/mixed; boundary=${MARK}` };
  const answer = await send("POST", PATH, { body: new Blob([...parts, `--${MARK}--\r\n`]), headers });
  const mark = /boundary=([^;]+)/.exec(answer.headers.get("Content-Type") ?? "")?.[1] ?? "";
  /** @type {BatchedAnswer[]} */
  const answers = paths.map(() => ({ status: 0, message: "The server does not answer." }));
  for (const part of (await answer.text()).split(`--${mark}`)) {
    const head = /Content-ID: <response-(\d+)>[^]*?HTTP\/1\.1 (\d+)/.exec(part);
    if (head) answers[Number(head[1])] = { status: Number(head[2]), message: messageOf(part) };
  }
  return answers;
}

/** @param {string} part */
function messageOf(part) {
  try {
    return JSON.parse(part.slice(part.indexOf("{"))).error?.message ?? "";
  } catch {
    return ""; // an answer without a body
  }
}
