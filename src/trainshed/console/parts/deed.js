// A question before something is done, what happens then, and the server's words where it refuses.

import { useDeed } from "../lib/deed.js";
import { html } from "../lib/ui.js";
import { Dialog } from "./dialog.js";
import { Failure } from "./notice.js";

/**
 * `run` does it; the dialog stays open with the reason where it fails. `onDone` gets what `run` gave.
 * @param {{title: string, deed: string, leave?: string, isBad?: boolean, run: () => Promise<any>,
 *   onDone: (outcome: any) => void, onClose: () => void, children?: unknown}} props
 */
export function DeedDialog({ title, deed, leave = "Leave it", isBad = false, run, onDone, onClose, children }) {
  const sending = useDeed((outcome) => {
    onDone(outcome);
    onClose();
  });
  return html`<${Dialog} title=${title} onClose=${onClose}>
    <div class="job-deed">${children}</div>
    ${sending.error && html`<${Failure} error=${sending.error} />`}
    <footer>
      <button type="button" onClick=${onClose}>${leave}</button>
      <button type="button" class=${isBad ? "bad" : "main"} disabled=${sending.isRunning} onClick=${() => sending.run(run)}>${deed}</button>
    </footer>
  <//>`;
}
