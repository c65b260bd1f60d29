// Shells in the replicas of a job, several at once. webAccessUris lead here.

import { classes, html, useEffect, useRef, useState } from "../lib/ui.js";
import { openScreen, openShell } from "../lib/terminal.js";
import { isFinal } from "../parts/state.js";
import { Empty, Failure } from "../parts/notice.js";

const PRIMARY = "workerpool0-0";

/** @typedef {{id: number, task: string}} OpenShell */

/** @param {import("./job.js").TabProps} props */
export default function JobShell({ job, status, address }) {
  const tasks = (status.replicas ?? []).map((/** @type {any} */ replica) => replica.task);
  const first = address.query.task ?? tasks[0] ?? PRIMARY;
  const [shells, setShells] = useState(/** @type {OpenShell[]} */ ([{ id: 0, task: first }]));
  const [shown, setShown] = useState(0);
  const [wanted, setWanted] = useState(first);
  if (isFinal(job.state) && !status.heldUntil && shells.every(({ id }) => id === 0) && !wasOpen.has(job.name)) {
    return html`<${Empty} title="This job is over"><p>A shell opens in a replica that runs. Its logs and files are still here.</p><//>`;
  }
  wasOpen.add(job.name);
  const open = () => {
    const id = Math.max(-1, ...shells.map((shell) => shell.id)) + 1;
    setShells([...shells, { id, task: wanted }]);
    setShown(id);
  };
  const close = (/** @type {number} */ id) => {
    const left = shells.filter((shell) => shell.id !== id);
    setShells(left);
    if (shown === id) setShown(left.at(-1)?.id ?? -1);
  };
  return html`<div class="shells tall">
    <div class="toolbar">
      <div class="shell-tabs" role="group" aria-label="Open shells">
        ${shells.map(
          (shell) => html`<span key=${shell.id} class=${classes("shell-tab", shell.id === shown && "current")}>
            <button type="button" class="plain" aria-pressed=${shell.id === shown} onClick=${() => setShown(shell.id)}>
              ${shell.task}${shell.id > 0 && ` (${shell.id + 1})`}
            </button>
            <button type="button" class="plain" aria-label=${`Close the shell in ${shell.task}`} onClick=${() => close(shell.id)}>✕</button>
          </span>`,
        )}
      </div>
      <label for="shell-task">Replica</label>
      <select id="shell-task" value=${wanted} onChange=${(/** @type {any} */ event) => setWanted(event.target.value)}>
        ${(tasks.length ? tasks : [first]).map((/** @type {string} */ task) => html`<option key=${task} value=${task}>${task}</option>`)}
      </select>
      <button type="button" onClick=${open}>Open another</button>
    </div>
    ${!shells.length && html`<p class="dim">No shell is open.</p>`}
    ${shells.map((shell) => html`<${Shell} key=${shell.id} job=${job.name} task=${shell.task} isShown=${shell.id === shown} />`)}
  </div>`;
}

/** Jobs whose shells were opened here: their last words stay on the screen when the job ends. @type {Set<string>} */
const wasOpen = new Set();

/** @param {{job: string, task: string, isShown: boolean}} props */
function Shell({ job, task, isShown }) {
  const place = useRef(/** @type {HTMLDivElement | null} */ (null));
  const screen = useRef(/** @type {import("../lib/terminal.js").Screen | null} */ (null));
  const [state, setState] = useState({ words: "connecting", isOpen: false });
  const [error, setError] = useState(/** @type {Error | null} */ (null));
  const [round, setRound] = useState(0);
  useEffect(() => {
    let isGone = false;
    let close = () => {};
    const begin = async () => {
      if (!place.current) return;
      screen.current ??= await openScreen(place.current);
      if (isGone) return;
      const say = (/** @type {string} */ words, /** @type {boolean} */ isOpen) => isGone || setState({ words, isOpen });
      close = await openShell(screen.current.terminal, job, task, say);
      if (isGone) close();
    };
    setError(null);
    begin().catch((failure) => isGone || (setError(failure), setState({ words: "not connected", isOpen: false })));
    return () => {
      isGone = true;
      close();
    };
  }, [job, task, round]);
  useEffect(() => () => screen.current?.dispose(), []);
  useEffect(() => {
    if (isShown) screen.current?.fit();
  }, [isShown]);
  const again = () => {
    screen.current?.terminal.reset();
    setRound(round + 1);
  };
  return html`<section class="shell" role="region" hidden=${!isShown} aria-label=${`Shell in ${task}`}>
    <p class="shell-state">
      <span role="status" class=${state.isOpen ? "good-ink" : "dim"}>${state.words}</span>
      ${state.isOpen && html`<span class="dim"><kbd>Ctrl</kbd> <kbd>Shift</kbd> <kbd>L</kbd> leaves the terminal</span>`}
      ${!state.isOpen && state.words !== "connecting" && html`<button type="button" class="small" onClick=${again}>Open again</button>`}
    </p>
    ${error && html`<${Failure} error=${error} />`}
    <div class="terminal" hidden=${Boolean(error)} ref=${place}></div>
  </section>`;
}
