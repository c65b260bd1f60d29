// Studies among the jobs: those that were made while the jobs of the page were, as rows of the same table.

import { useMemo } from "../lib/ui.js";
import { get } from "../lib/api.js";
import { useLive } from "../lib/hints.js";
import { both, forStudies, isOfStudies } from "../lib/job-filter.js";
import { plain } from "../lib/format.js";
import { countsOf, whyWords } from "../lib/study.js";

/** @typedef {import("./jobs-columns.js").JobRow} JobRow */
/** @typedef {import("../lib/study.js").StudyRow} StudyRow */

const MOST = 100; // newer studies are on the page before

/**
 * The jobs of a page with the studies between them, newest first. `before` is when the last job of the page
 * before was made; `isLast` says that no page follows.
 * @param {JobRow[] | undefined} jobs
 * @param {{project: string, filter: string, isNewestFirst: boolean, before: string, isLast: boolean}} question
 */
export function useStudiesAmong(jobs, { project, filter, isNewestFirst, before, isLast }) {
  const isAsked = isNewestFirst || isOfStudies(filter);
  const wanted = isAsked ? forStudies(filter) : null;
  const { data } = useLive(
    async (signal) => {
      if (wanted === null) return [];
      const place = `/v1/projects/${encodeURIComponent(project)}/locations/-/hyperparameterTuningJobs`;
      const query = { view: "trainshed", pageSize: MOST, filter: both(wanted, before && `create_time<=${JSON.stringify(before)}`) };
      const answer = await get(place, query, { signal });
      return /** @type {StudyRow[]} */ (answer.hyperparameterTuningJobs ?? []);
    },
    [project, wanted, before],
  );
  return useMemo(() => {
    if (!jobs || !data?.length) return jobs ?? [];
    const last = isLast || !jobs.length ? 0 : madeAt(jobs[jobs.length - 1]);
    const rows = [...jobs, ...data.filter((study) => madeAt(study) >= last).map(asJobRow)];
    return rows.sort((a, b) => madeAt(b) - madeAt(a));
  }, [jobs, data, isLast]);
}

/** @param {{createTime: string}} row */
const madeAt = ({ createTime }) => Date.parse(createTime);

/** @param {StudyRow} study @returns {JobRow} */
function asJobRow(study) {
  const { done, max, running, parallel } = countsOf(study);
  const { best } = study;
  return {
    ...study,
    kind: "study",
    why: whyWords(study) || (best && `best ${best.metric} ${plain(best.value)}`),
    replicas: { running, wanted: parallel ?? running },
    progress: study.trials.max ? { fraction: done / max } : undefined,
  };
}
