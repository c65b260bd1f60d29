// Rows of a CSV file, as RFC 4180 has them.

/**
 * @param {string} text
 * @param {string} separator
 * @param {number} most rows that are read
 * @returns {string[][]}
 */
export function readCsv(text, separator, most) {
  const rows = [];
  /** @type {string[]} */
  let row = [];
  let at = 0;
  while (at < text.length && rows.length < most) {
    const [cell, end] = text[at] === '"' ? quoted(text, at) : plain(text, at, separator);
    row.push(cell);
    if (text[end] === separator) {
      at = end + 1;
      if (at < text.length) continue;
      row.push("");
    }
    rows.push(row);
    row = [];
    at = text.startsWith("\r\n", end) ? end + 2 : end + 1;
  }
  return rows;
}

/** A cell without quotes, and where it ends. @param {string} text @param {number} at @param {string} separator @returns {[string, number]} */
function plain(text, at, separator) {
  let end = at;
  while (end < text.length && text[end] !== separator && text[end] !== "\n" && text[end] !== "\r") end += 1;
  return [text.slice(at, end), end];
}

/** @param {string} text @param {number} at @returns {[string, number]} */
function quoted(text, at) {
  let cell = "";
  let begin = at + 1;
  for (;;) {
    const end = text.indexOf('"', begin);
    if (end === -1) return [cell + text.slice(begin), text.length];
    cell += text.slice(begin, end);
    if (text[end + 1] !== '"') return [cell, end + 1];
    cell += '"';
    begin = end + 2;
  }
}
