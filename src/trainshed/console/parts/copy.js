// Text to copy: a button beside it, or a block with one.

import { html, useState } from "../lib/ui.js";

/** @param {{text: string, label?: string}} props */
export function CopyButton({ text, label = "Copy" }) {
  const [words, setWords] = useState("");
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
      setWords("Copied");
    } catch {
      setWords("Not allowed here: select the text"); // browsers allow it on loopback and over TLS only
    }
    setTimeout(() => setWords(""), 2000);
  };
  return html`<button type="button" class="small" onClick=${copy}>
    <span aria-live="polite">${words || label}</span>
  </button>`;
}

/** @param {{text: string, label?: string}} props */
export function CodeBlock({ text, label }) {
  return html`<div class="code-block">
    <pre tabindex="0" aria-label=${label ?? "Text to copy"}>${text}</pre>
    <${CopyButton} text=${text} />
  </div>`;
}
