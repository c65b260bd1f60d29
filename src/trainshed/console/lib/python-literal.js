// JSON values as Python writes them.

/**
 * @param {unknown} value
 * @param {string} [indent] of the line it stands in
 * @returns {string}
 */
export function pythonLiteral(value, indent = "") {
  if (value === null || value === undefined) return "None";
  if (typeof value === "boolean") return value ? "True" : "False";
  if (typeof value !== "object") return JSON.stringify(value); // its escapes are Python's too
  const inner = `${indent}    `;
  const isList = Array.isArray(value);
  const items = isList
    ? value.map((item) => inner + pythonLiteral(item, inner))
    : Object.entries(value).map(([key, item]) => `${inner}${JSON.stringify(key)}: ${pythonLiteral(item, inner)}`);
  const [open, close] = isList ? "[]" : "{}";
  return items.length ? `${open}\n${items.join(",\n")},\n${indent}${close}` : open + close;
}
