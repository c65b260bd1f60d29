// Words of a command line, as a shell reads them: quotes and backslashes, and nothing else. Nothing is run.

/** @param {string} text @returns {string[]} */
export function splitWords(text) {
  const words = [];
  const piece = /\s*((?:'[^']*'?|"(?:\\[^]|[^"\\])*"?|\\[^]?|[^\s'"\\])+)/gy;
  for (let match = piece.exec(text); match; match = piece.exec(text)) words.push(bare(match[1]));
  return words;
}

/** @param {string} word */
function bare(word) {
  return word.replace(/'([^']*)'?|"((?:\\[^]|[^"\\])*)"?|\\([^]?)/g, (_, single, double, escaped) => {
    if (single !== undefined) return single;
    return double !== undefined ? double.replace(/\\([$`"\\\n])/g, "$1") : escaped;
  });
}

/** @param {string[]} words */
export const joinWords = (words) => words.map(quoted).join(" ");

/** @param {string} word */
function quoted(word) {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
}
