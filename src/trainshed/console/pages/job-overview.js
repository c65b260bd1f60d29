// What a person wants to know of a job first: why, where the time went, its replicas, its history, its results.

import { html, useRef } from "../lib/ui.js";
import { get } from "../lib/api.js";
import { useLive } from "../lib/hints.js";
import { timelineOf } from "../lib/timeline.js";
import { Failure, Loading } from "../parts/notice.js";
import { isFinal } from "../parts/state.js";
import { useSeconds } from "../parts/time.js";
import { Events } from "./job-events.js";
import { Facts } from "./job-facts.js";
import { Results } from "./job-outputs.js";
import { Replicas } from "./job-replicas.js";
import { JobTimeline } from "./job-timeline.js";
import { Why } from "./job-why.js";

const PAUSE = 3000; // milliseconds between reading reasons again because of other jobs

/** @param {import("./job.js").TabProps} props */
export default function OverviewTab({ job, status, address }) {
  const isOver = isFinal(job.state);
  const why = useWhy(job, isOver);
  const { data, error, reload } = useLive(
    async (signal) => {
      const [{ intervals }, { events }] = await Promise.all([
        get(`/v1/${job.name}:intervals`, {}, { signal }),
        get(`/v1/${job.name}:events`, {}, { signal }),
      ]);
      return { intervals, events };
    },
    [job.name],
    { job: job.name },
  );
  useSeconds(!isOver);
  const timeline = data && timelineOf(data.intervals, status, isOver, Date.now());
  return html`<div class="overview">
    <${Why} job=${job} status=${status} why=${why} />
    ${error && html`<${Failure} error=${error} retry=${reload} />`}
    ${timeline ? html`<${JobTimeline} job=${job} timeline=${timeline} />` : html`<${Loading} />`}
    <${Replicas} job=${job} status=${status} />
    ${data && html`<${Events} events=${data.events} severity=${address.query.severity} />`}
    <${Results} job=${job} />
    <${Facts} job=${job} status=${status} />
  </div>`;
}

/** The reasons of a job that waits. They change with other jobs too, but are not read after each of their hints. */
function useWhy(/** @type {any} */ job, /** @type {boolean} */ isOver) {
  const readAt = useRef(0);
  const { data } = useLive(
    async (signal) => {
      readAt.current = Date.now();
      return isOver ? undefined : get(`/v1/${job.name}:why`, {}, { signal });
    },
    [job.name, job.state],
    { ignore: (hint) => !hint.everything && hint.name !== job.name && (isOver || Date.now() - readAt.current < PAUSE) },
  );
  return data;
}
