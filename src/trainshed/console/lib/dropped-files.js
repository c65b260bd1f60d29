// The files that somebody chose or dropped, with their paths: folders are walked.

/** @typedef {{path: string, file: File}} ChosenFile */

/** @param {HTMLInputElement} input of files or of a folder @returns {ChosenFile[]} */
export function filesOfInput(input) {
  return [...(input.files ?? [])].map((file) => ({ path: file.webkitRelativePath || file.name, file }));
}

/** @param {DataTransfer} dropped @returns {Promise<ChosenFile[]>} */
export async function filesOfDrop(dropped) {
  // All entries first: the list is empty once this function has waited for something.
  const entries = [...dropped.items].map((item) => item.webkitGetAsEntry()).filter((entry) => entry !== null);
  return (await Promise.all(entries.map(walk))).flat();
}

/** @param {FileSystemEntry} entry @returns {Promise<ChosenFile[]>} */
async function walk(entry) {
  if (entry.isFile) {
    const file = await new Promise((resolve, reject) => /** @type {FileSystemFileEntry} */ (entry).file(resolve, reject));
    return [{ path: entry.fullPath.slice(1), file: /** @type {File} */ (file) }];
  }
  const reader = /** @type {FileSystemDirectoryEntry} */ (entry).createReader();
  const inner = [];
  for (;;) {
    /** @type {FileSystemEntry[]} */
    const some = await new Promise((resolve, reject) => reader.readEntries(resolve, reject));
    if (!some.length) break; // browsers give a hundred at a time
    inner.push(...some);
  }
  return (await Promise.all(inner.map(walk))).flat();
}
