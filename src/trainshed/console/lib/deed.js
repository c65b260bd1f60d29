// A deed of a form or dialog: sent once however often its button is pressed; why it failed is kept to be shown.

import { useRef, useState } from "./ui.js";
import { ApiError } from "./api.js";

/**
 * `run` sends, then calls `onDone` with the answer; after a refusal `error` has it until the next try.
 * @param {(answer: any) => void} onDone
 */
export function useDeed(onDone) {
  const [{ error, isRunning }, setState] = useState({ error: /** @type {ApiError | null} */ (null), isRunning: false });
  const isSent = useRef(false); // at once: a second press may come before the next drawing
  const run = async (/** @type {() => Promise<any>} */ send) => {
    if (isSent.current) return;
    isSent.current = true;
    setState({ error: null, isRunning: true });
    let answer;
    try {
      answer = await send();
    } catch (failure) {
      return void setState({ error: /** @type {ApiError} */ (failure), isRunning: false });
    } finally {
      isSent.current = false;
    }
    setState({ error: null, isRunning: false });
    onDone(answer);
  };
  return { error, isRunning, run };
}
