// The address of the page is what the console remembers: whoever gets the link sees the same.

const BASE = "/console/";
export const ADDRESS_CHANGED = "trainshed:address";

/** @typedef {{parts: string[], query: Record<string, string>, hash: string}} Address */

/** @returns {Address} */
export function readAddress() {
  const path = location.pathname.startsWith(BASE) ? location.pathname.slice(BASE.length) : "";
  return {
    parts: path.split("/").filter(Boolean).map(decode),
    query: Object.fromEntries(new URLSearchParams(location.search)),
    hash: location.hash.slice(1),
  };
}

/** @param {string} part */
function decode(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part; // typed by hand, with a % of its own
  }
}

/**
 * A link within the console. Parts are encoded; empty values are left out of the query.
 * @param {string[]} parts
 * @param {Record<string, string | number | null | undefined>} [query]
 */
export function href(parts, query = {}) {
  const pairs = Object.entries(query).filter(([, value]) => value !== "" && value !== null && value !== undefined);
  const search = new URLSearchParams(pairs.map(([name, value]) => [name, String(value)])).toString();
  return BASE + parts.map(encodeURIComponent).join("/") + (search && `?${search}`);
}

/**
 * The link to a job by its full name, or to a tab of it.
 * @param {string} name projects/P/locations/L/customJobs/ID
 * @param {string} [tab]
 * @param {Record<string, string | number | null | undefined>} [query]
 */
export function jobHref(name, tab, query) {
  const [, project, , place, , job] = name.split("/");
  return href(["jobs", project, place, job, ...(tab ? [tab] : [])], query);
}

/** The full name of a job. @param {string} project @param {string} place @param {string} id */
export const jobName = (project, place, id) => `projects/${project}/locations/${place}/customJobs/${id}`;

/**
 * The link to a study by its full name, or to a tab of it.
 * @param {string} name projects/P/locations/L/hyperparameterTuningJobs/ID or …/studies/ID
 * @param {string} [tab]
 * @param {Record<string, string | number | null | undefined>} [query]
 */
export function studyHref(name, tab, query) {
  const [, project, , place, , study] = name.split("/");
  return href(["studies", project, place, study, ...(tab ? [tab] : [])], query);
}

/**
 * @param {string} link from `href`
 * @param {{replace?: boolean}} [options]
 */
export function go(link, { replace = false } = {}) {
  if (link !== location.pathname + location.search + location.hash) {
    if (replace) history.replaceState(null, "", link);
    else history.pushState(null, "", link);
  }
  dispatchEvent(new Event(ADDRESS_CHANGED));
}

/**
 * Change some of the query and keep the rest; empty values are removed.
 * @param {Record<string, string | number | null | undefined>} changes
 * @param {{replace?: boolean}} [options]
 */
export function setQuery(changes, options = { replace: true }) {
  const { parts, query } = readAddress();
  go(href(parts, { ...query, ...changes }), options);
}

/** Links within the console are followed without loading the page anew. */
export function followLinks() {
  document.addEventListener("click", (event) => {
    const link = event.target instanceof Element ? event.target.closest("a") : null;
    const isPlain = event.button === 0 && !event.ctrlKey && !event.metaKey && !event.shiftKey && !event.altKey;
    if (!link || !isPlain || link.target || link.hasAttribute("download") || event.defaultPrevented) return;
    if (link.origin !== location.origin || !link.pathname.startsWith(BASE)) return;
    event.preventDefault();
    go(link.pathname + link.search + link.hash);
    if (!link.hash) scrollTo(0, 0);
  });
}
