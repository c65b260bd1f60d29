// Which files of a folder belong to a program: the rules that `trainshed submit` has for folders that git does not
// manage (cli/pack.py, cli/ignored.py). Never: .git, __pycache__, virtual environments.

/** @typedef {import("./dropped-files.js").ChosenFile} ChosenFile */
/** @typedef {{base: string, rules: {expression: RegExp, isForFolders: boolean, ignores: boolean}[]}} Patterns */

const IGNORING = [".gitignore", ".trainshedignore"];
const NEVER = new Set([".git", "__pycache__"]);
const ENVIRONMENT = "pyvenv.cfg"; // the file that makes a folder a virtual environment

/** The files that are part of the program. @param {ChosenFile[]} files with paths relative to the folder */
export async function withoutIgnored(files) {
  const environments = files.filter(({ path }) => path.endsWith(`/${ENVIRONMENT}`)).map(({ path }) => path.slice(0, -ENVIRONMENT.length));
  const candidates = files.filter(
    ({ path }) => !path.split("/").some((part) => NEVER.has(part)) && !environments.some((folder) => path.startsWith(folder)),
  );
  const lists = candidates.filter(({ path }) => IGNORING.includes(path.slice(path.lastIndexOf("/") + 1)));
  // Outer folders first, and .gitignore before .trainshedignore: what comes later wins.
  lists.sort((a, b) => depth(a.path) - depth(b.path) || (a.path < b.path ? -1 : 1));
  const patterns = await Promise.all(
    lists.map(async ({ path, file }) => readPatterns(await file.text(), path.slice(0, path.lastIndexOf("/") + 1))),
  );
  return candidates.filter(({ path }) => !isIgnored(path, patterns));
}

/** @param {string} path */
const depth = (path) => path.split("/").length;

/** By its own path, or by that of a folder it is in. @param {string} path @param {Patterns[]} patterns */
export function isIgnored(path, patterns) {
  const parts = path.split("/");
  return parts.some((_, at) => verdict(parts.slice(0, at + 1).join("/"), at < parts.length - 1, patterns));
}

/** @param {string} path @param {boolean} isFolder @param {Patterns[]} patterns */
function verdict(path, isFolder, patterns) {
  for (const { base, rules } of patterns.toReversed()) {
    if (!path.startsWith(base)) continue;
    const inner = path.slice(base.length);
    const rule = rules.findLast(({ expression, isForFolders }) => (isFolder || !isForFolders) && expression.test(inner));
    if (rule) return rule.ignores;
  }
  return false;
}

/** The lines of one file. @param {string} text @param {string} base the folder it is in, "" or ending in / @returns {Patterns} */
export function readPatterns(text, base = "") {
  return { base, rules: text.split("\n").flatMap((line) => readRule(line) ?? []) };
}

/** @param {string} line */
function readRule(line) {
  line = line.replace(/\r$/, "").replace(/(?<!\\) +$/, "");
  if (!line || line.startsWith("#")) return null;
  const ignores = !line.startsWith("!");
  let text = ignores ? line : line.slice(1);
  const isForFolders = text.endsWith("/");
  text = text.replace(/\/+$/, "").replace(/^\.\//, "");
  if (!text) return null;
  const isAnchored = text.includes("/");
  const expression = source(text.replace(/^\//, ""));
  return { expression: new RegExp(`^(?:${isAnchored ? "" : "(?:.*/)?"}${expression})$`, "s"), isForFolders, ignores };
}

/** @param {string} text */
function source(text) {
  let made = "";
  let at = 0;
  while (at < text.length) {
    const rest = text.slice(at);
    const set = /^\[[!^]?[^][^\]]*\]/.exec(rest)?.[0];
    if (rest.startsWith("**/") && (at === 0 || text[at - 1] === "/")) {
      made += "(?:.*/)?";
      at += 3;
    } else if (rest === "**" && text[at - 1] === "/") {
      made += ".+";
      at += 2;
    } else if (rest[0] === "*" || rest[0] === "?") {
      made += rest[0] === "*" ? "[^/]*" : "[^/]";
      at += 1;
    } else if (set) {
      const inner = set.slice(1, -1).replaceAll("\\", "\\\\").replaceAll("[", "\\[");
      made += /^[!^]/.test(inner) ? `[^/${inner.slice(1)}]` : `[${inner}]`;
      at += set.length;
    } else {
      if (rest[0] === "\\" && rest.length > 1) at += 1;
      made += text[at].replace(/[\\^$.*+?()[\]{}|/-]/, "\\$&");
      at += 1;
    }
  }
  return made;
}
