// A module of pages/ and its looks, fetched when it is first shown.

import { html, useLayoutEffect, useState } from "../lib/ui.js";
import { Failure, Loading } from "./notice.js";

const TRIES = "trainshed.tries"; // how often index.html has loaded the page again

/** @type {Map<string, any>} by name, what is here already */
const loaded = new Map();

/** @param {string} name @param {string} ending */
const fileOf = (name, ending) => new URL(`../pages/${name}.${ending}`, import.meta.url).href;

/** @type {Map<string, Promise<void>>} by name, what was asked for */
const loading = new Map();

/** Fetch it, perhaps before it is drawn. @param {string} name */
export function load(name) {
  let asked = loading.get(name);
  if (!asked) {
    asked = fetchModule(name).finally(() => loading.delete(name));
    loading.set(name, asked);
  }
  return asked;
}

/** @param {string} name */
async function fetchModule(name) {
  const [module] = await Promise.all([import(fileOf(name, "js")), loadLooks(name)]);
  loaded.set(name, module.default);
  sessionStorage.removeItem(TRIES);
}

/** Looks that cannot be had do not keep a page away. @param {string} name */
function loadLooks(name) {
  const address = fileOf(name, "css");
  if ([...document.querySelectorAll("link")].some(({ href }) => href === address)) return;
  return new Promise((resolve) => {
    const link = document.createElement("link");
    link.rel = "stylesheet";
    link.href = address;
    link.onload = link.onerror = resolve;
    document.head.append(link);
  });
}

/**
 * Draws the default export of pages/NAME.js with all other properties.
 * @param {{name: string, [property: string]: unknown}} props
 */
export function Module({ name, ...properties }) {
  const [failed, setFailed] = useState("");
  const [, setLoaded] = useState(loaded.has(name) ? name : "");
  useLayoutEffect(() => {
    if (loaded.has(name)) return setLoaded(name); // it may have come after the drawing, before this
    let isCurrent = true;
    load(name).then(
      () => isCurrent && setLoaded(name),
      () => isCurrent && (/** @type {any} */ (window).loadPageAgain() || setFailed(name)), // browsers remember that a module did not come
    );
    return () => void (isCurrent = false);
  }, [name]);
  const Component = loaded.get(name);
  if (Component) return html`<${Component} ...${properties} />`;
  if (failed !== name) return html`<${Loading} />`;
  const error = new Error("This part of the console could not be loaded: the server does not have it, or does not answer.");
  return html`<${Failure} error=${error} retry=${() => location.reload()} />`;
}
