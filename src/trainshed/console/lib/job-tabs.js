// The tabs of a job's page, each pages/job-NAME.js, with the keys that lead to them and what they ask first.

import { askAhead, pathOf, withQuery } from "./api.js";

/**
 * @typedef {Record<string, string>} Query of the address
 * @typedef {{path: string, query: import("./api.js").Query}} Question about a job; the path goes behind its name
 * @typedef {{name: string, title: string, key: string, first?: (query: Query) => Question}} JobTab
 */

export const TAIL = 300; // lines of the end of a log that are read first
const POINTS = 720; // of a graph

/** The end of the log. @param {Query} query @returns {Question} */
const endOfLog = ({ task, attempt, stream }) => ({ path: ":lines", query: { task, attempt, stream, line: -TAIL, count: TAIL } });

/** All graphs of a range. @param {Query} query @returns {Question} */
export const graphsOfRange = ({ from, to }) => ({ path: ":graphs", query: { startTime: from, endTime: to, points: POINTS } });

/** @type {JobTab[]} */
export const JOB_TABS = [
  { name: "overview", title: "Overview", key: "g o" },
  { name: "logs", title: "Logs", key: "g l", first: endOfLog },
  { name: "graphs", title: "Graphs", key: "g h", first: graphsOfRange },
  { name: "shell", title: "Shell", key: "g s" },
  { name: "stacks", title: "Stacks", key: "g t" },
  { name: "code", title: "Code", key: "g c" },
  { name: "spec", title: "Spec", key: "g y" },
];

const OWN_VIEW = { view: "trainshed" };

/** What the page of a job asks first. @param {string} name of the job */
export const jobAddress = (name) => withQuery(pathOf(name), OWN_VIEW);
/** @param {string} name of the job */
export const statusAddress = (name) => withQuery(`${pathOf(name)}:status`, OWN_VIEW);

/**
 * Ask all that a job's page and its tab will ask, before their modules are here.
 * @param {string} name of the job
 * @param {string} tab
 * @param {Query} query
 */
export function askForJob(name, tab, query) {
  askAhead(jobAddress(name));
  askAhead(statusAddress(name));
  const first = JOB_TABS.find((entry) => entry.name === tab)?.first?.(query);
  if (first) askAhead(`/v1/${name}${first.path}`, first.query);
}
