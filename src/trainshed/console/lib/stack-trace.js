// Which lines are frames of a stack trace, so that a view can fold them: Python's and Java's.

import { plain } from "./ansi.js";

/** @typedef {import("./log-source.js").LogLine} LogLine */

const PYTHON = /^\s*(?:[|+]\s*)?Traceback \(most recent call last\):/;
const INDENTED = /^\s+\S/;
const JAVA = /^\s+(?:at [\w.$<>/@]+[\w$<>]\(|\.\.\. \d+ more)/;
const FEWEST = 2; // frames that are worth folding

/**
 * The folds between two lines: from the number of the line that stays to how many behind it are folded.
 * @param {(number: number) => LogLine | undefined} line
 * @param {number} from
 * @param {number} to
 * @returns {Map<number, number>}
 */
export function folds(line, from, to) {
  const result = new Map();
  let number = from;
  while (number <= to) {
    const head = line(number);
    const size = head ? frames(line, number, head) : 0;
    if (size >= FEWEST) result.set(number, size);
    number += Math.max(1, size);
  }
  return result;
}

/** @param {(number: number) => LogLine | undefined} line @param {number} number @param {LogLine} head */
function frames(line, number, head) {
  const isFrame = PYTHON.test(plain(head.text)) ? INDENTED : JAVA;
  if (isFrame === JAVA && JAVA.test(plain(head.text))) return 0;
  let size = 0;
  for (;;) {
    const next = line(number + size + 1);
    const isSame = next && next.task === head.task && next.attempt === head.attempt && next.stream === head.stream;
    if (!isSame || !isFrame.test(plain(next.text))) return size;
    size += 1;
  }
}
