// Text with terminal escapes as spans: colours and weights are kept, every other escape is removed.

/** @typedef {{text: string, look: string, colour?: string, ground?: string}} Span */

// CSI … letter; OSC … BEL or ST; other two-character escapes. Unfinished ones at the end of a line go too.
const ESCAPE = /\x1b\[([0-9;:?<>=!]*)[ -/]*([@-~]?)|\x1b[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\|$)|\x1b[ -/]*[0-~]?/g;
const CONTROLS = /[\x00-\x08\x0b-\x1f\x7f]/g;
const STEPS = [0, 95, 135, 175, 215, 255];

/** What a terminal would show of a line in which the cursor went back to the start. @param {string} text */
function afterReturns(text) {
  const parts = text.split("\r").filter(Boolean);
  return parts.length ? parts[parts.length - 1] : "";
}

/** The text alone. @param {string} text */
export function plain(text) {
  return afterReturns(text.replace(ESCAPE, "")).replace(CONTROLS, "");
}

/** @param {string} text @returns {Span[]} */
export function spans(text) {
  if (!text.includes("\x1b")) return [{ text: plain(text), look: "" }];
  /** @type {Span[]} */
  let result = [];
  let look = newLook();
  let from = 0;
  const add = (/** @type {string} */ part) => {
    const back = part.lastIndexOf("\r", part.length - 2);
    if (back >= 0 && part.slice(back + 1)) {
      result = [];
      part = part.slice(back + 1);
    }
    const clean = part.replace(CONTROLS, "");
    if (clean) result.push({ text: clean, ...shown(look) });
  };
  for (const match of text.matchAll(ESCAPE)) {
    add(text.slice(from, match.index));
    from = match.index + match[0].length;
    if (match[2] === "m") look = changed(look, match[1]);
  }
  add(text.slice(from));
  return result;
}

/**
 * @typedef {{bold: boolean, faint: boolean, italic: boolean, underline: boolean, inverse: boolean,
 *   colour: string, ground: string}} Look
 * @returns {Look}
 */
function newLook() {
  return { bold: false, faint: false, italic: false, underline: false, inverse: false, colour: "", ground: "" };
}

/** @type {Record<number, Partial<Look>>} */
const SIMPLE = {
  1: { bold: true }, 2: { faint: true }, 3: { italic: true }, 4: { underline: true }, 7: { inverse: true },
  22: { bold: false, faint: false }, 23: { italic: false }, 24: { underline: false }, 27: { inverse: false },
  39: { colour: "" }, 49: { ground: "" },
};

/** @param {Look} look @param {string} codes */
function changed(look, codes) {
  const numbers = codes.split(/[;:]/).map(Number);
  let next = { ...look };
  for (let at = 0; at < numbers.length; at += 1) {
    const code = numbers[at];
    if (code === 0) next = newLook();
    else if (SIMPLE[code]) next = { ...next, ...SIMPLE[code] };
    else if (code === 38 || code === 48) {
      const [colour, used] = extended(numbers.slice(at + 1));
      next = { ...next, [code === 38 ? "colour" : "ground"]: colour };
      at += used;
    } else if (code >= 30 && code <= 37) next.colour = String(code - 30);
    else if (code >= 90 && code <= 97) next.colour = String(code - 82);
    else if (code >= 40 && code <= 47) next.ground = String(code - 40);
    else if (code >= 100 && code <= 107) next.ground = String(code - 92);
  }
  return next;
}

/** A colour of 256 or a true one, and how many numbers it took. @param {number[]} rest @returns {[string, number]} */
function extended([kind, a, b, c]) {
  if (kind === 5) return [a < 16 ? String(a) : fromCube(a), 2];
  if (kind === 2) return [`rgb(${[a, b, c].map((part) => Math.min(255, part || 0)).join(" ")})`, 4];
  return ["", 1];
}

/** @param {number} number 16 to 255 */
function fromCube(number) {
  if (!(number <= 255)) return "";
  if (number >= 232) return `rgb(${Array(3).fill((number - 232) * 10 + 8).join(" ")})`;
  const at = number - 16;
  return `rgb(${STEPS[Math.floor(at / 36)]} ${STEPS[Math.floor(at / 6) % 6]} ${STEPS[at % 6]})`;
}

/** The classes and colours of a span: the 16 colours are classes, so that both themes can be read. @param {Look} look */
function shown({ bold, faint, italic, underline, inverse, colour, ground }) {
  const [fore, back] = inverse ? [ground || "ground", colour || "ink"] : [colour, ground];
  const isOwn = (/** @type {string} */ value) => value.startsWith("rgb");
  const names = [
    bold && "bold", faint && "faint", italic && "italic", underline && "underline",
    fore && !isOwn(fore) && `fore-${fore}`, back && !isOwn(back) && `back-${back}`,
  ];
  return {
    look: names.filter(Boolean).join(" "),
    colour: isOwn(fore) ? fore : undefined,
    ground: isOwn(back) ? back : undefined,
  };
}
