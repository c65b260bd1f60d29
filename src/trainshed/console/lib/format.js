// Numbers and times as people read them.

const UNITS = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
const DAY = 86_400;
// By hand: a formatter of Intl takes longer to make than a list of jobs to draw.
const DAYS = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];
const MONTHS = ["January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December"];

/** 1234567 -> "1,234,567" @param {number} value a whole number */
export const count = (value) => String(value).replace(/\B(?=(\d{3})+$)/g, ",");

/** 1536 -> "1.5 KiB" @param {number} value */
export function bytes(value) {
  let at = 0;
  while (Math.abs(value) >= 1024 && at < UNITS.length - 1) {
    value /= 1024;
    at += 1;
  }
  return `${at === 0 || Math.abs(value) >= 100 ? Math.round(value) : value.toFixed(1)} ${UNITS[at]}`;
}

/** 0.256 -> "26 %" @param {number} value */
export const percent = (value) => `${Math.round(value * 100)} %`;

/** Up to four digits that mean something. @param {number} value */
export function plain(value) {
  const size = Math.abs(value);
  if (size >= 1e6 || (size < 1e-3 && size > 0)) return value.toExponential(2);
  return String(Number(value.toPrecision(4)));
}

/** 3723 -> "1 h 2 min" @param {number} seconds */
export function duration(seconds) {
  const whole = Math.max(0, Math.floor(seconds));
  if (whole < 1) return seconds > 0.001 ? `${Math.round(seconds * 1000)} ms` : "0 s";
  if (whole < 60) return `${whole} s`;
  if (whole < 3600) return pair(whole, 60, "min", 1, "s");
  if (whole < DAY) return pair(whole, 3600, "h", 60, "min");
  return pair(whole, DAY, "d", 3600, "h");
}

/** @param {number} whole @param {number} large @param {string} unit @param {number} small @param {string} rest */
function pair(whole, large, unit, small, rest) {
  const left = Math.floor((whole % large) / small);
  return left ? `${Math.floor(whole / large)} ${unit} ${left} ${rest}` : `${Math.floor(whole / large)} ${unit}`;
}

/** Seconds between two moments of the API; to now without the second. @param {string} from @param {string} [to] */
export function between(from, to) {
  return (to ? Date.parse(to) : Date.now()) / 1000 - Date.parse(from) / 1000;
}

/** "3 min ago", "in 2 h" @param {string} moment @param {number} [now] milliseconds */
export function ago(moment, now = Date.now()) {
  const seconds = (now - Date.parse(moment)) / 1000;
  if (Math.abs(seconds) < 5) return "now";
  const length = duration(Math.abs(seconds)).split(" ").slice(0, 2).join(" ");
  return seconds > 0 ? `${length} ago` : `in ${length}`;
}

/**
 * "in 3 min to 2 h", "within 2 h"; empty where no range is known.
 * @param {{likelyFrom?: string, likelyTo?: string}} [eta]
 */
export function rangeWords({ likelyFrom, likelyTo } = {}) {
  if (!likelyFrom || !likelyTo) return "";
  const [first, last] = [ago(likelyFrom), ago(likelyTo).replace(/^in /, "")];
  return first.startsWith("in ") ? `${first} to ${last}` : last === "now" || last.endsWith("ago") ? "soon" : `within ${last}`;
}

/** "14:02:11", in the person's zone @param {Date} at */
export const timeOfDay = (at) => [at.getHours(), at.getMinutes(), at.getSeconds()].map((part) => String(part).padStart(2, "0")).join(":");

/** "14:02:11.042" @param {Date} at */
export const withMilliseconds = (at) => `${timeOfDay(at)}.${String(at.getMilliseconds()).padStart(3, "0")}`;

/** "3 Nov" @param {Date} at */
export const shortDay = (at) => `${at.getDate()} ${MONTHS[at.getMonth()].slice(0, 3)}`;

/** In the person's zone, as short as it can be: "14:02:11", "3 Nov 14:02". @param {string} moment */
export function clock(moment) {
  const at = new Date(moment);
  const today = new Date();
  const time = timeOfDay(at);
  if (at.toDateString() === today.toDateString()) return time;
  const year = at.getFullYear() === today.getFullYear() ? "" : ` ${at.getFullYear()}`;
  return `${shortDay(at)}${year} ${time.slice(0, 5)}`;
}

let zone = "";

/** With zone and fraction, for a tooltip. @param {string} moment */
export function exact(moment) {
  zone ||= Intl.DateTimeFormat().resolvedOptions().timeZone;
  const at = new Date(moment);
  const day = `${DAYS[at.getDay()]}, ${at.getDate()} ${MONTHS[at.getMonth()]} ${at.getFullYear()}`;
  return `${day} at ${timeOfDay(at)} ${zone} (${moment})`;
}

/** JOB_STATE_RUNNING -> "running" @param {string} state */
export const stateWords = (state) => state.replace(/^[A-Z]+_STATE_/, "").replaceAll("_", " ").toLowerCase();

/** The id at the end of a resource's name. @param {string} name */
export const shortName = (name) => name.slice(name.lastIndexOf("/") + 1);
