// JSON values as YAML that every reader takes for the same values: YAML 1.1 (PyYAML, gcloud) and 1.2.

const PLAIN = /^[A-Za-z_/](?:[\w./@%+=,()-]| (?! |#)|:(?=[\w./-]))*$/; // never a number, a date or an indicator
const WORDS = /^(?:true|false|yes|no|on|off|null|y|n)$/i;
// What YAML does not allow as it is, or takes for the end of a line. JSON leaves these as they are.
const UNPRINTABLE = /[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]/g;
const NOT_IN_BLOCK = /[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]|\p{Cs}/u;

/**
 * The document, with a line feed at its end. Texts of several lines become blocks (`|`); mappings keep their order.
 * @param {unknown} value JSON: objects, arrays, texts, finite numbers, booleans, null
 * @returns {string}
 */
export function yaml(value) {
  return isNested(value) ? `${lines(value, "").join("\n")}\n` : `${scalar(value, "  ")}\n`;
}

/** @param {unknown} value @returns {value is object} */
const isNested = (value) => typeof value === "object" && value !== null && Object.keys(value).length > 0;

/**
 * @param {object} value not empty
 * @param {string} indent
 * @returns {string[]}
 */
function lines(value, indent) {
  if (Array.isArray(value)) return value.flatMap((item) => listItem(item, indent));
  return Object.entries(value)
    .filter(([, item]) => item !== undefined)
    .flatMap(([key, item]) => mapItem(key, item, indent));
}

/** @param {unknown} item @param {string} indent */
function listItem(item, indent) {
  if (!isNested(item)) return [`${indent}- ${scalar(item, `${indent}  `)}`];
  const [first, ...rest] = lines(item, `${indent}  `);
  return [`${indent}- ${first.trimStart()}`, ...rest];
}

/** @param {string} key @param {unknown} item @param {string} indent */
function mapItem(key, item, indent) {
  const name = quoted(key);
  if (!isNested(item)) return [`${indent}${name}: ${scalar(item, `${indent}  `)}`];
  return [`${indent}${name}:`, ...lines(item, Array.isArray(item) ? indent : `${indent}  `)];
}

/** @param {unknown} value @param {string} indent of the lines that a block has */
function scalar(value, indent) {
  if (typeof value === "string") return isBlock(value) ? block(value, indent) : quoted(value);
  if (Array.isArray(value)) return "[]";
  return typeof value === "object" && value !== null ? "{}" : String(value);
}

/** Blocks show their text as it is, so they are for texts that can be shown. @param {string} text */
function isBlock(text) {
  const all = text.split("\n");
  const isBlank = (/** @type {string} */ line) => line !== "" && line.trim() === "";
  return all.length > 1 && /^\n*\S/.test(text) && !all.some(isBlank) && !NOT_IN_BLOCK.test(text);
}

/** @param {string} text @param {string} indent */
function block(text, indent) {
  const ending = text.endsWith("\n\n") ? "+" : text.endsWith("\n") ? "" : "-"; // how many line feeds end it
  const all = (text.endsWith("\n") ? text.slice(0, -1) : text).split("\n");
  return [`|${ending}`, ...all.map((line) => (line ? indent + line : ""))].join("\n");
}

/** @param {string} text */
function quoted(text) {
  if (PLAIN.test(text) && !text.endsWith(" ") && !WORDS.test(text)) return text;
  return JSON.stringify(text).replace(UNPRINTABLE, (sign) => `\\u${sign.charCodeAt(0).toString(16).padStart(4, "0")}`);
}
