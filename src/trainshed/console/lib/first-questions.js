// What the page of an address asks the server first. index.html loads it by itself: it has no libraries, so it need
// not wait for all modules. To whoever is signed in the page itself says where hints go on (console/first_questions.py).

import { jobName, readAddress } from "./address.js";
import { send } from "./api.js";
import { askForJob } from "./job-tabs.js";

async function askServer() {
  const told = document.querySelector("meta[name=last-hint]")?.getAttribute("content");
  const answer = told ? { lastHint: told } : await (await send("GET", "/v1/server", {})).json();
  askForPage(); // not before: hints are heard from there on, so nothing older may be read
  return answer;
}

/** What a job's page will ask. */
function askForPage() {
  const { parts, query } = readAddress();
  const [list, project, place, id, tab = "overview"] = parts;
  if (list === "jobs" && id && project !== "-") askForJob(jobName(project, place, id), tab, query);
}

/** @type {Promise<any> | null} what the server says of itself; a ticket is exchanged before anything is asked */
let answer = location.hash.startsWith("#ticket=") ? null : askServer();
answer?.catch(() => {}); // told by whoever awaits it

/** The first answer, once; null where nothing was asked yet. */
export function takeFirstAnswer() {
  const first = answer;
  answer = null;
  return first;
}
