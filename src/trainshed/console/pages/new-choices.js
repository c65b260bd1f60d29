// What may be chosen in the form: images, runtimes, machine types, GPUs, buckets. Lists that cannot be had stay empty.

import { html, useEffect, useState } from "../lib/ui.js";
import { EVERYWHERE, get } from "../lib/api.js";
import { bytes } from "../lib/format.js";

/**
 * @typedef {{images: string[], machines: {name: string, cpus: number, memoryBytes: string, acceleratorType?: string,
 *   acceleratorCount?: number}[], accelerators: [string, string][], buckets: string[]}} Choices
 */

const NONE = /** @type {[string, string]} */ (["", "none"]);

/** @returns {Choices} */
export function useChoices() {
  const [choices, setChoices] = useState(/** @type {Choices} */ ({ images: [], machines: [], accelerators: [NONE], buckets: [] }));
  useEffect(() => {
    const gone = new AbortController();
    readChoices(gone.signal).then((read) => gone.signal.aborted || setChoices(read));
    return () => gone.abort();
  }, []);
  return choices;
}

/** @param {AbortSignal} signal @returns {Promise<Choices>} */
async function readChoices(signal) {
  const read = (/** @type {string} */ path) => get(path, {}, { signal }).catch(() => ({}));
  const [runtimes, images, machines, buckets] = await Promise.all([
    read(`${EVERYWHERE}/runtimes`),
    read(`${EVERYWHERE}/images`),
    read(`${EVERYWHERE}/machineTypes`),
    read("/storage/v1/b"),
  ]);
  const names = [
    "trainshed/python:3",
    ...(runtimes.runtimes ?? []).map((/** @type {any} */ runtime) => runtime.name),
    ...(images.images ?? []).flatMap((/** @type {any} */ image) => image.names),
  ];
  return {
    images: [...new Set(names.filter(Boolean))],
    machines: machines.machineTypes ?? [],
    accelerators: [NONE, ...(machines.acceleratorTypes ?? []).map((/** @type {any} */ kind) => [kind.name, `${kind.name} (${kind.description})`])],
    buckets: (buckets.items ?? []).map((/** @type {any} */ bucket) => `gs://${bucket.name}/`),
  };
}

/** @param {{choices: Choices, commands: string[]}} props */
export function ChoiceLists({ choices, commands }) {
  return html`<datalist id="image-choices">${choices.images.map((name) => html`<option key=${name} value=${name} />`)}</datalist>
    <datalist id="machine-choices">
      ${choices.machines.map(
        ({ name, cpus, memoryBytes, acceleratorType, acceleratorCount }) =>
          html`<option key=${name} value=${name}>${cpus} CPUs, ${bytes(Number(memoryBytes))}${acceleratorType && `, ${acceleratorCount} × ${acceleratorType}`}</option>`,
      )}
    </datalist>
    <datalist id="bucket-choices">${choices.buckets.map((name) => html`<option key=${name} value=${name} />`)}</datalist>
    <datalist id="command-choices">${commands.map((name) => html`<option key=${name} value=${name} />`)}</datalist>`;
}
