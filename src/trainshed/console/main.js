// The frame around every page: signing in, navigation, keys, looks; and which page an address means.

import { html, render, useEffect, useLayoutEffect, useRef, useState } from "./lib/ui.js";
import { ADDRESS_CHANGED, followLinks, go, href, readAddress } from "./lib/address.js";
import { get, post, SIGNED_OUT } from "./lib/api.js";
import { takeFirstAnswer } from "./lib/first-questions.js";
import { listenAfter, useServerAway } from "./lib/hints.js";
import { JOB_TABS } from "./lib/job-tabs.js";
import { knownKeys, useKeys } from "./lib/keys.js";
import { chooseProject, ownProject, ownProjects, setProjects } from "./lib/own-project.js";
import { Confirm, Dialog } from "./parts/dialog.js";
import { load, Module } from "./parts/module.js";
import { Failure, Loading } from "./parts/notice.js";

/** @typedef {import("./lib/address.js").Address} Address */
/** @typedef {{ticket: string, signedInAs: string, ticketOf: string}} OtherPerson whom a ticket would sign in */

const NAVIGATION = [
  { name: "jobs", title: "Jobs", key: "g j" },
  { name: "studies", title: "Studies", key: "g s" },
  { name: "machines", title: "Machines", key: "g m" },
  { name: "costs", title: "Costs", key: "g c" },
  { name: "buckets", title: "Buckets", key: "g b" },
  { name: "images", title: "Images", key: "g i" },
  { name: "runtimes", title: "Runtimes", key: "g r" },
];
const PAGES = new Set(["jobs", "job", "studies", "study", "compare", "machines", "costs", "buckets", "images", "runtimes", "accounts", "new", "login"]);
/** @type {Record<string, string>} a list to the page of one thing in it */
const ONE_OF = { jobs: "job", studies: "study" };
const THEMES = { "": "as the system", light: "light", dark: "dark" };
const THEME = "trainshed.theme";

/** The module that shows an address. @param {Address} address */
function pageOf({ parts }) {
  if (!parts.length) return "jobs";
  return parts.length > 1 ? ONE_OF[parts[0]] ?? parts[0] : parts[0];
}

/** All modules that an address needs, of which a job's page would fetch its tab only later. @param {Address} address */
function modulesOf(address) {
  const page = pageOf(address);
  const tab = page === "job" && JOB_TABS.find(({ name }) => name === (address.parts[4] ?? "overview"));
  return [...(PAGES.has(page) ? [page] : []), ...(tab ? [`job-${tab.name}`] : [])];
}

/** @param {{address: Address}} props */
function Page({ address }) {
  const name = pageOf(address);
  if (!PAGES.has(name)) return html`<h1>Nothing here</h1><${Failure} error=${new Error(`The console has no page “${name}”.`)} />`;
  return html`<${Module} key=${name} name=${name} address=${address} />`;
}

/** The address, and a new drawing whenever it changes. */
function useAddress() {
  const [address, setAddress] = useState(readAddress);
  useEffect(() => {
    const changed = () => setAddress(readAddress());
    addEventListener("popstate", changed);
    addEventListener(ADDRESS_CHANGED, changed);
    return () => {
      removeEventListener("popstate", changed);
      removeEventListener(ADDRESS_CHANGED, changed);
    };
  }, []);
  return address;
}

function Console() {
  const address = useAddress();
  const [isHelp, setHelp] = useState(false);
  const isAway = useServerAway();
  const goTo = Object.fromEntries(NAVIGATION.map(({ name, title, key }) => [key, [title, () => go(href([name]))]]));
  useKeys("Everywhere", {
    ...goTo,
    "g a": ["Accounts and tokens", () => go(href(["accounts"]))],
    c: ["Create a job", () => go(href(["new"]))],
    "?": ["Show these keys", () => setHelp(true)],
  });
  const current = address.parts[0] ?? "jobs";
  useFocus(address.parts.join("/"));
  return html`<a class="skip" href="#main">Skip to the content</a>
    <header class="frame">
      <a class="brand" href=${href(["jobs"])}>Trainshed</a>
      <nav aria-label="Pages">
        ${NAVIGATION.map(
          ({ name, title }) =>
            html`<a key=${name} href=${href([name])} data-title=${title} aria-current=${name === current ? "page" : undefined}>${title}</a>`,
        )}
      </nav>
      <a class="button main" href=${href(["new"])}>New job</a>
      <${Settings} showKeys=${() => setHelp(true)} />
    </header>
    <div class="away" role="status">${isAway && "The server does not answer. What is shown may be old; this page goes on when it is back."}</div>
    <main id="main" tabindex="-1"><${Page} address=${address} /></main>
    ${isHelp && html`<${KeyHelp} onClose=${() => setHelp(false)} />`}`;
}

/** Whoever followed a link that is gone with its page goes on in the new one. @param {string} place */
function useFocus(place) {
  const before = useRef(place);
  useEffect(() => {
    if (before.current === place) return;
    before.current = place;
    const isLost = !document.activeElement || document.activeElement === document.body;
    if (isLost) document.getElementById("main")?.focus({ preventScroll: true });
  }, [place]);
}

/** @param {{showKeys: () => void}} props */
function Settings({ showKeys }) {
  const element = useRef(/** @type {HTMLDetailsElement | null} */ (null));
  useEffect(() => {
    const leave = (/** @type {Event} */ event) => {
      const list = element.current;
      const isEscape = event instanceof KeyboardEvent && event.key === "Escape";
      if (!list?.open || !(isEscape || (event.type !== "keydown" && !list.contains(/** @type {Node} */ (event.target))))) return;
      list.open = false;
      if (isEscape) list.querySelector("summary")?.focus();
    };
    const kinds = ["keydown", "pointerdown", "focusin"];
    for (const kind of kinds) document.addEventListener(kind, leave);
    return () => kinds.forEach((kind) => document.removeEventListener(kind, leave));
  }, []);
  const [theme, setTheme] = useState(localStorage.getItem(THEME) ?? "");
  const choose = (/** @type {Event} */ event) => {
    const value = /** @type {HTMLSelectElement} */ (event.target).value;
    localStorage.setItem(THEME, value);
    setTheme(value);
    wear(value);
  };
  const signOut = async () => {
    await post("/v1/console:signOut");
    location.assign(href([]));
  };
  return html`<details class="settings" ref=${element}>
    <summary aria-label="Settings">⋯</summary>
    <div class="settings-list">
      <label for="theme">Colours</label>
      <select id="theme" value=${theme} onChange=${choose}>
        ${Object.entries(THEMES).map(([value, words]) => html`<option key=${value} value=${value}>${words}</option>`)}
      </select>
      ${ownProjects().length > 1 &&
      html`<label for="project">Project</label>
        <select id="project" value=${ownProject()} onChange=${(/** @type {any} */ event) => chooseProject(event.target.value)}>
          ${ownProjects().map((name) => html`<option key=${name} value=${name}>${name}</option>`)}
        </select>`}
      <a class="button" href=${href(["accounts"])} onClick=${() => element.current && (element.current.open = false)}>Accounts</a>
      <button type="button" onClick=${showKeys}>Keys</button>
      <button type="button" onClick=${signOut}>Sign out</button>
    </div>
  </details>`;
}

/** @param {{onClose: () => void}} props */
function KeyHelp({ onClose }) {
  return html`<${Dialog} title="Keys" onClose=${onClose}>
    ${knownKeys().map(
      ({ where, keys }) => html`<section key=${where}>
        <h3>${where}</h3>
        <dl class="keys">
          ${keys.map(
            ({ key, words }) => html`<div key=${key}>
              <dt>${key.split(" ").map((part) => html`<kbd>${part}</kbd> `)}</dt>
              <dd>${words}</dd>
            </div>`,
          )}
        </dl>
      </section>`,
    )}
  <//>`;
}

/** Light, dark, or as the system says. @param {string} theme */
function wear(theme) {
  if (theme) document.documentElement.dataset.theme = theme;
  else delete document.documentElement.dataset.theme;
}

function App() {
  const [isSignedIn, setSignedIn] = useState(/** @type {boolean | null} */ (null));
  const [problem, setProblem] = useState("");
  const [SignIn, setSignIn] = useState(/** @type {any} */ (null));
  const [other, setOther] = useState(/** @type {OtherPerson | null} */ (null));
  const check = async () => {
    try {
      const { lastHint, projects } = await (takeFirstAnswer() ?? get("/v1/server"));
      if (projects) setProjects(projects);
      listenAfter(lastHint);
      setSignedIn(true);
    } catch (error) {
      const { status, message } = /** @type {import("./lib/api.js").ApiError} */ (error);
      if (status !== 401 && status !== 403) return void setTimeout(check, 1000); // the server is away
      if (status === 401) setProblem(message);
      const module = await import("./pages/signin.js");
      setSignIn(() => module.default);
      setSignedIn(false);
    }
  };
  useLayoutEffect(() => {
    let isChecking = false;
    const recheck = async () => {
      if (isChecking) return;
      isChecking = true;
      await check();
      isChecking = false;
    };
    addEventListener(SIGNED_OUT, recheck);
    enterByTicket().then((person) => (person ? setOther(person) : recheck()), (error) => {
      setProblem(error.message);
      recheck();
    });
    return () => removeEventListener(SIGNED_OUT, recheck);
  }, []);
  if (other) return html`<${AskForOther} other=${other} onStay=${() => (setOther(null), check())} />`;
  if (isSignedIn) return html`<${Console} />`;
  if (isSignedIn === false && SignIn) return html`<${SignIn} problem=${problem} onSignedIn=${check} />`;
  return html`<${Loading} words="Asking the server" />`;
}

/**
 * Anybody can send a link with a ticket of their own: what one does then would be done in their name.
 * @param {{other: OtherPerson, onStay: () => void}} props
 */
function AskForOther({ other, onStay }) {
  const [failure, setFailure] = useState(/** @type {Error | null} */ (null));
  const change = () =>
    post("/v1/console:signIn", { ticket: other.ticket, replaceSession: true }).then(() => location.reload(), setFailure);
  return html`<${Confirm} title="Sign in as somebody else?" deed=${`Sign in as ${other.ticketOf}`} onYes=${change} onClose=${onStay}>
    <p>You are signed in as <strong>${other.signedInAs}</strong>. This link signs you in as <strong>${other.ticketOf}</strong>.</p>
    <p>Go on only if you opened it yourself, as by <code>trainshed console</code>.</p>
    ${failure && html`<${Failure} error=${failure} />`}
  <//>`;
}

/**
 * A ticket in the address is exchanged for a session, and leaves the address and the history at once.
 * @returns {Promise<OtherPerson | null>} where somebody else is signed in, who is to be asked
 */
async function enterByTicket() {
  const found = /^#ticket=(.+)$/.exec(location.hash);
  if (!found) return null;
  history.replaceState(null, "", location.pathname + location.search);
  const answer = await post("/v1/console:signIn", { ticket: found[1] });
  return answer.ticketOf ? { ticket: found[1], ...answer } : null;
}

wear(localStorage.getItem(THEME) ?? "");
followLinks();
for (const name of modulesOf(readAddress())) load(name).catch(() => {}); // drawing it says what is wrong
render(html`<${App} />`, /** @type {HTMLElement} */ (document.getElementById("app")));
