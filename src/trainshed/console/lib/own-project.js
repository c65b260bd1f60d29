// The project that stands for "all projects" to an account that may not see all of them. The server says which it sees.

const COOKIE = "trainshed-project";
const ALL = "/v1/projects/-/";

/** @type {string[]} empty for those who may see all projects */
let projects = (document.querySelector("meta[name=projects]")?.getAttribute("content") ?? "").split(" ").filter(Boolean);

/** @param {string[] | undefined} names */
export const setProjects = (names) => void (projects = names ?? []);

export const ownProjects = () => projects;

/** The one that was chosen, or the first. */
export function ownProject() {
  const chosen = document.cookie.split("; ").find((pair) => pair.startsWith(`${COOKIE}=`))?.slice(COOKIE.length + 1);
  return projects.find((name) => name === decodeURIComponent(chosen ?? "")) ?? projects[0] ?? "-";
}

/** Everything is read anew then. @param {string} name */
export function chooseProject(name) {
  document.cookie = `${COOKIE}=${encodeURIComponent(name)}; path=/console; samesite=strict; max-age=31536000`;
  location.reload();
}

/** The path as the server answers it to this account. @param {string} path */
export const inOwnProject = (path) =>
  projects.length && path.startsWith(ALL) ? `/v1/projects/${encodeURIComponent(ownProject())}/${path.slice(ALL.length)}` : path;
