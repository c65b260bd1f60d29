// Machines and queue: what is free, who holds the rest, who waits for it, in which order and until when.

import { html } from "../lib/ui.js";
import { EVERYWHERE, get } from "../lib/api.js";
import { useLive } from "../lib/hints.js";
import { Empty, Failure, Loading } from "../parts/notice.js";
import { ProgressLine } from "../parts/progress.js";
import { Gpus, Holders, Nodes } from "./machines-nodes.js";
import { Queue } from "./machines-queue.js";
import { Shares } from "./machines-shares.js";

/** @param {{address: import("../lib/address.js").Address}} props */
export default function MachinesPage({ address }) {
  return html`<h1>Machines and queue</h1>
    <${Machines} />
    <${Shares} />
    <${Preparations} />
    <${Queue} after=${address.query.after ?? ""} />`;
}

function Machines() {
  const { data, error, reload } = useLive((signal) => get(`${EVERYWHERE}/nodes`, {}, { signal }), [], { metrics: "-" });
  if (error && !data) return html`<${Failure} error=${error} retry=${reload} />`;
  if (!data) return html`<${Loading} />`;
  if (!data.nodes.length) return html`<${Empty} title="No machine is connected"><p>Jobs wait until there is one.</p><//>`;
  return html`<${Nodes} nodes=${data.nodes} />
    <${Gpus} nodes=${data.nodes} />
    <${Holders} nodes=${data.nodes} />`;
}

/** Pulls and builds that jobs wait for. Nothing is shown while there are none. */
function Preparations() {
  const { data } = useLive((signal) => get(`${EVERYWHERE}/preparations`, {}, { signal }), [], { metrics: "-" });
  const items = data?.preparations ?? [];
  if (!items.length) return null;
  return html`<section aria-labelledby="preparing">
    <h2 id="preparing">Being prepared</h2>
    <ul class="preparations">
      ${items.map(
        (/** @type {any} */ item) => html`<li key=${`${item.kind} ${item.name}`}>
          <${ProgressLine} step=${item}>${item.jobs.length > 0 && html`<span class="dim"> ${waiting(item.jobs.length)}</span>`}<//>
        </li>`,
      )}
    </ul>
  </section>`;
}

/** @param {number} count */
const waiting = (count) => (count === 1 ? "1 job waits for it." : `${count} jobs wait for it.`);
