// A terminal on the screen that is a shell in a replica: a ticket, then a WebSocket.
// What is typed and printed goes as bytes; sizes, the exit code and errors as JSON (wire/shell.py).

import { post } from "./api.js";

const PROTOCOL = "trainshed.shell";
const LEAVE = "KeyL"; // with Ctrl and Shift: all other keys, Tab too, are the shell's
const PIECE = 1 << 16; // bytes of a message, and of what is on the screen before the server is told

/** @typedef {{terminal: import("@xterm/xterm").Terminal, fit: () => void, dispose: () => void}} Screen */

/**
 * xterm.js, fetched at the first use, drawing into the element.
 * @param {HTMLElement} element
 * @returns {Promise<Screen>}
 */
export async function openScreen(element) {
  const libraries = await Promise.all([import("@xterm/xterm"), import("@xterm/addon-fit")]).catch(() => null);
  if (!libraries) throw new Error("The terminal could not be loaded. This works without it: trainshed shell JOB REPLICA");
  const [{ Terminal }, { FitAddon }] = libraries;
  allowStyles();
  const terminal = new Terminal({
    cursorBlink: true,
    fontFamily: "ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace",
    fontSize: 14,
    scrollback: 10000,
    theme: { background: "#16181d", foreground: "#d8dee9" },
  });
  terminal.attachCustomKeyEventHandler((event) => {
    const isLeave = event.ctrlKey && event.shiftKey && event.code === LEAVE;
    if (isLeave && event.type === "keydown") /** @type {HTMLElement | null | undefined} */ (element.closest(".shells")?.querySelector("button"))?.focus();
    return !isLeave;
  });
  const addon = new FitAddon();
  terminal.loadAddon(addon);
  terminal.open(element);
  const fit = () => void (element.offsetParent && addon.fit()); // one that is not seen has no size
  const observer = new ResizeObserver(fit);
  observer.observe(element);
  fit();
  return {
    terminal,
    fit,
    dispose: () => {
      observer.disconnect();
      terminal.dispose();
    },
  };
}

/**
 * Opens a shell on the screen. `onState` is told how it stands, and `isOpen` whether it takes keys.
 * The function that is returned closes it.
 * @param {import("@xterm/xterm").Terminal} terminal
 * @param {string} job full name
 * @param {string} task
 * @param {(words: string, isOpen: boolean) => void} onState
 */
export async function openShell(terminal, job, task, onState) {
  onState("connecting", false);
  const screen = { rows: terminal.rows, columns: terminal.cols };
  const { ticket, path } = await post(`/v1/${job}:shell`, { task, screen });
  const scheme = location.protocol === "https:" ? "wss:" : "ws:";
  const socket = new WebSocket(`${scheme}//${location.host}${path}`, [PROTOCOL, ticket]);
  socket.binaryType = "arraybuffer";
  const say = (/** @type {string | BufferSource} */ data) => {
    if (socket.readyState === WebSocket.OPEN) socket.send(data);
  };
  const typing = passOn(terminal, say);
  const took = acknowledgements(say);
  let last = "the connection broke off";
  socket.onopen = () => {
    onState("connected", true);
    say(JSON.stringify({ taken: "0" }));
    terminal.focus();
  };
  socket.onmessage = ({ data }) => {
    if (typeof data !== "string") return terminal.write(new Uint8Array(data), () => took(data.byteLength));
    const words = JSON.parse(data);
    if ("exit" in words) last = `ended with exit code ${words.exit}`;
    if ("error" in words) last = words.error;
  };
  socket.onclose = () => {
    typing.forEach((listener) => listener.dispose());
    terminal.write(`\r\n\x1b[2m[${last}]\x1b[0m\r\n`);
    onState(last, false);
  };
  return () => socket.close();
}

/**
 * @param {import("@xterm/xterm").Terminal} terminal
 * @param {(data: string | BufferSource) => void} say
 */
function passOn(terminal, say) {
  const encoder = new TextEncoder();
  return [
    terminal.onData((text) => {
      const bytes = encoder.encode(text);
      for (let from = 0; from < bytes.length; from += PIECE) say(bytes.subarray(from, from + PIECE));
    }),
    terminal.onBinary((text) => say(Uint8Array.from(text, (letter) => letter.charCodeAt(0)))),
    terminal.onResize(({ rows, cols }) => say(JSON.stringify({ screen: { rows, columns: cols } }))),
  ];
}

/**
 * What is on the screen is told to the server, which sends no more than a little beyond it.
 * @param {(data: string) => void} say
 */
function acknowledgements(say) {
  let taken = 0;
  let acknowledged = 0;
  return (/** @type {number} */ size) => {
    taken += size;
    if (taken - acknowledged < PIECE) return;
    acknowledged = taken;
    say(JSON.stringify({ taken: String(taken) }));
  };
}

let isAllowed = false;

/**
 * xterm.js writes its rules into <style> elements and attributes, which the policy refuses as it does all that
 * is inline. A style sheet made by a script is not inline: what is put into such an element goes there instead.
 */
function allowStyles() {
  if (isAllowed) return;
  isAllowed = true;
  const make = document.createElement.bind(document);
  document.createElement = (/** @type {string} */ name, /** @type {ElementCreationOptions=} */ options) =>
    name.toLowerCase() === "style" ? sheetElement(make("template")) : withoutStyleAttribute(make(name, options));
}

/** @param {HTMLTemplateElement} element */
function sheetElement(element) {
  const sheet = new CSSStyleSheet();
  document.adoptedStyleSheets = [...document.adoptedStyleSheets, sheet];
  let text = "";
  Object.defineProperty(element, "textContent", {
    get: () => text,
    set: (value) => sheet.replaceSync((text = value)),
  });
  return element;
}

/** @param {HTMLElement} element */
function withoutStyleAttribute(element) {
  const set = element.setAttribute.bind(element);
  element.setAttribute = (key, value) => (key === "style" ? (element.style.cssText = value) : set(key, value));
  return element;
}
