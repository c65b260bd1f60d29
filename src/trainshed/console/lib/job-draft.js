// The job that somebody has begun to write, kept for this tab: a reload loses nothing. It never has secrets.

import { asDraft } from "./job-body.js";

const DRAFT = "trainshed.draft";
const PLACE = "trainshed.place"; // the project and location of the last job from this browser

/** @typedef {{job: any, project: string, location: string, from?: string}} Draft `from`: the job it was cloned from */

/** @returns {Draft | null} */
export const readDraft = () => read(sessionStorage, DRAFT);

/** @param {Draft} draft */
export const keepDraft = (draft) => sessionStorage.setItem(DRAFT, JSON.stringify({ ...draft, job: asDraft(draft.job) }));

export const forgetDraft = () => sessionStorage.removeItem(DRAFT);

/** @returns {{project: string, location: string}} */
export const lastPlace = () => read(localStorage, PLACE) ?? { project: "local", location: "us-central1" };

/** @param {{project: string, location: string}} place */
export const keepPlace = ({ project, location }) => localStorage.setItem(PLACE, JSON.stringify({ project, location }));

/** @param {Storage} storage @param {string} key */
function read(storage, key) {
  try {
    return JSON.parse(storage.getItem(key) ?? "null");
  } catch {
    return null; // written by somebody else
  }
}
