// The page behind webAccessUris: a ticket for the replica in its address, then a terminal over a WebSocket.
// What is typed and printed goes as bytes; sizes, the exit code and errors as JSON (wire/shell.py).
"use strict";

(() => {
  const [, , project, location_, job, task] = location.pathname.split("/");
  const method = `/v1/projects/${project}/locations/${location_}/customJobs/${job}:shell`;
  const PROTOCOL = "trainshed.shell";
  const at = (id) => document.getElementById(id);
  const called = (part) => decodeURIComponent(part || "");

  at("where").textContent = `${called(task)} of job ${called(job)}`;
  document.title = `${called(task)} – ${called(job)}`;

  function state(text, isOpen = false) {
    at("state").textContent = text;
    at("state").className = isOpen ? "open" : "";
    at("again").hidden = isOpen || !ended;
  }

  function notice(headline, sentence, wantsToken = false) {
    at("terminal").hidden = true;
    at("notice").hidden = false;
    at("headline").textContent = headline;
    at("sentence").textContent = sentence;
    at("door").hidden = !wantsToken;
    state(wantsToken ? "locked" : "not connected");
    if (wantsToken) at("token").focus();
  }

  let ended = false;
  let token = ""; // never in the page's storage, where other pages of this address could read it
  let socket = null;

  if (typeof Terminal === "undefined" || typeof FitAddon === "undefined") {
    notice(
      "xterm.js is not installed on this server",
      "Whoever keeps the server runs scripts/console-assets (a part of make setup) in its sources, with access " +
        `to an npm registry, once. In a terminal it works without: trainshed shell ${called(job)} ${called(task)}`,
    );
    return;
  }

  // xterm.js writes its rules into <style> elements, which our policy refuses as it does all that is inline.
  // A style sheet made here is not inline: what is put into such an element goes there instead.
  const make = document.createElement.bind(document);
  document.createElement = (name, options) => {
    if (name.toLowerCase() !== "style") return make(name, options);
    const element = make("template");
    const sheet = new CSSStyleSheet();
    document.adoptedStyleSheets = [...document.adoptedStyleSheets, sheet];
    let text = "";
    Object.defineProperty(element, "textContent", {
      get: () => text,
      set: (value) => sheet.replaceSync((text = value)),
    });
    return element;
  };

  const terminal = new Terminal({
    cursorBlink: true,
    fontFamily: "ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace",
    scrollback: 10000,
    theme: { background: "#16181d", foreground: "#d8dee9" },
  });
  const fit = new FitAddon.FitAddon();
  terminal.loadAddon(fit);
  terminal.open(at("terminal"));
  const encoder = new TextEncoder();
  const say = (data) => socket && socket.readyState === WebSocket.OPEN && socket.send(data);
  terminal.onData((text) => {
    const bytes = encoder.encode(text);
    for (let from = 0; from < bytes.length; from += 1 << 16) say(bytes.subarray(from, from + (1 << 16)));
  });
  terminal.onBinary((text) => say(Uint8Array.from(text, (letter) => letter.charCodeAt(0))));
  terminal.onResize(({ rows, cols }) => say(JSON.stringify({ screen: { rows, columns: cols } })));
  new ResizeObserver(() => at("terminal").hidden || fit.fit()).observe(at("terminal"));

  async function ticket() {
    const screen = { rows: terminal.rows, columns: terminal.cols };
    const answer = await fetch(method, {
      method: "POST",
      headers: { "Content-Type": "application/json", ...(token && { Authorization: `Bearer ${token}` }) },
      body: JSON.stringify({ task: called(task), screen }),
    });
    const told = await answer.json();
    if (answer.ok) return told.ticket;
    if (answer.status === 401 || answer.status === 403) {
      notice("This server wants its token", token ? told.error.message : "", true);
      token = "";
    } else {
      notice("No shell can be opened", told.error.message);
    }
    return null;
  }

  async function open() {
    ended = false;
    state("connecting");
    at("notice").hidden = true;
    at("terminal").hidden = false;
    fit.fit();
    let word;
    try {
      word = await ticket();
    } catch (error) {
      notice("The server does not answer", String(error.message || error));
    }
    if (word) connect(word);
  }

  function connect(word) {
    const scheme = location.protocol === "https:" ? "wss:" : "ws:";
    let unsaid = "the connection broke off";
    let taken = 0;
    let told = 0;
    // What is on the screen is told to the server, which sends no more than a little beyond it.
    const took = (size) => {
      taken += size;
      if (taken - told < 1 << 16) return;
      told = taken;
      say(JSON.stringify({ taken: String(taken) }));
    };
    socket = new WebSocket(`${scheme}//${location.host}${location.pathname}`, [PROTOCOL, word]);
    socket.binaryType = "arraybuffer";
    socket.onopen = () => {
      state("connected", true);
      say(JSON.stringify({ taken: "0" }));
      terminal.focus();
    };
    socket.onmessage = ({ data }) => {
      if (typeof data !== "string") {
        terminal.write(new Uint8Array(data), () => took(data.byteLength));
        return;
      }
      const words = JSON.parse(data);
      if ("exit" in words) unsaid = `ended with exit code ${words.exit}`;
      if ("error" in words) unsaid = words.error;
    };
    socket.onclose = () => {
      ended = true;
      terminal.write(`\r\n\x1b[2m[${unsaid}]\x1b[0m\r\n`);
      state(unsaid);
    };
  }

  at("door").addEventListener("submit", (event) => {
    event.preventDefault();
    token = at("token").value.trim();
    at("token").value = "";
    open();
  });
  at("again").addEventListener("click", () => {
    terminal.reset();
    open();
  });
  addEventListener("pagehide", () => socket && socket.close());
  open();
})();
