// Other jobs are known by their id alone in sentences of the server: their full name, wherever they are.

import { EVERYWHERE, get } from "./api.js";
import { href } from "./address.js";

/** A link that the page of a job follows to the job of that id. @param {string} id */
export const idHref = (id) => href(["jobs", "-", "-", id]);

/**
 * @param {string} id
 * @param {{signal?: AbortSignal}} [options]
 * @returns {Promise<string | undefined>} the full name; undefined where there is none
 */
export async function nameOf(id, options) {
  const filter = `name = ${JSON.stringify(id)}`;
  const { customJobs = [] } = await get(`${EVERYWHERE}/customJobs`, { filter, pageSize: 1, view: "trainshed" }, options);
  return customJobs[0]?.name;
}
