// An answer that comes in lines, one JSON object each; an empty line only says that the server is still there.

import { ApiError } from "./api.js";

/**
 * The objects as they come. An `error` in the middle is thrown, as a refusal at the beginning would be.
 * @param {Response} answer
 * @returns {AsyncGenerator<any>}
 */
export async function* jsonLines(answer) {
  const reader = /** @type {ReadableStream<Uint8Array>} */ (answer.body).getReader();
  const decoder = new TextDecoder();
  let rest = "";
  try {
    for (;;) {
      const { value, done } = await reader.read();
      const lines = (rest + decoder.decode(value, { stream: !done })).split("\n");
      rest = done ? "" : /** @type {string} */ (lines.pop());
      for (const line of lines) if (line) yield parsed(line);
      if (done) return;
    }
  } finally {
    reader.cancel().catch(() => {}); // whoever stops listening lets go of the connection
  }
}

/** @param {string} line */
function parsed(line) {
  const object = JSON.parse(line);
  if (object.error) throw new ApiError(object.error.code ?? 0, object.error.message);
  return object;
}
