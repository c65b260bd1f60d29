// Where somebody who is signed in lets a command line have a token: one on this machine, or one that shows a code.

import { html, useEffect, useState } from "../lib/ui.js";
import { go, href } from "../lib/address.js";
import { get, post } from "../lib/api.js";
import { Failure, Loading, Notice } from "../parts/notice.js";

/** @typedef {{title: string, address?: string, code?: string}} Login */

/** @param {{address: import("../lib/address.js").Address}} props */
export default function LoginPage({ address }) {
  const { code, port, state, challenge, title } = address.query;
  if (code) return html`<${ByCode} key=${code} code=${code} />`;
  if (!port) return html`<${CodeForm} />`;
  const allow = async () => {
    const answer = await post("/v1/logins:allow", { challenge, title, port: Number(port), state });
    location.assign(answer.address); // of this machine: the server sees to that
    return "Going on to the command line …";
  };
  return html`<${Question} login=${{ title }} allow=${allow} refuse=${async () => "It gets no token. Close this page."} />`;
}

/** @param {{code: string}} props */
function ByCode({ code }) {
  const [login, setLogin] = useState(/** @type {Login | null} */ (null));
  const [error, setError] = useState(/** @type {Error | null} */ (null));
  const path = `/v1/logins/${encodeURIComponent(code)}`;
  useEffect(() => {
    get(path).then(setLogin, setError);
  }, []);
  if (error) return html`<h1>Command line</h1><${Failure} error=${error} /><${CodeForm} />`;
  if (!login) return html`<h1>Command line</h1><${Loading} />`;
  const answer = (/** @type {string} */ verb, /** @type {string} */ words) => async () => {
    await post(`${path}:${verb}`);
    return words;
  };
  return html`<${Question}
    login=${login}
    allow=${answer("allow", "The command line is signed in. You can close this page.")}
    refuse=${answer("refuse", "It gets no token. You can close this page.")}
  />`;
}

/** @param {{login: Login, allow: () => Promise<string>, refuse: () => Promise<string>}} props */
function Question({ login, allow, refuse }) {
  const [words, setWords] = useState("");
  const [error, setError] = useState(/** @type {Error | null} */ (null));
  const run = (/** @type {() => Promise<string>} */ act) => () => act().then(setWords, setError);
  if (words) return html`<h1>Command line</h1><p role="status">${words}</p>`;
  return html`<h1>Sign in a command line?</h1>
    ${error && html`<${Failure} error=${error} />`}
    ${login.code
      ? html`<p>A command line on <b>${login.title}</b>, at the address <b>${login.address || "unknown"}</b>, asks for a token of
            yours. It shows this code:</p>
          <p><strong class="login-code">${login.code}</strong></p>
          <${Notice} kind="warn">Allow it only if you started it yourself and it shows the same code. Nobody of the server asks you
            for that.<//>`
      : html`<p>The command line on this machine (<b>${login.title}</b>) asks for a token of yours. Allow it only if you ran
          <code>trainshed login</code> just now.</p>`}
    <p>
      <button type="button" class="main" onClick=${run(allow)}>Allow</button>${" "}
      <button type="button" onClick=${run(refuse)}>Refuse</button>
    </p>`;
}

function CodeForm() {
  const send = (/** @type {SubmitEvent} */ event) => {
    event.preventDefault();
    const code = new FormData(/** @type {HTMLFormElement} */ (event.target)).get("code");
    go(href(["login"], { code: String(code).trim().toUpperCase() }));
  };
  return html`<h1>Sign in a command line</h1>
    <form onSubmit=${send}>
      <p>
        <label for="code">The code that <code>trainshed login</code> shows</label>${" "}
        <input id="code" name="code" autocomplete="off" spellcheck=${false} required placeholder="BCDF-GHJK" />${" "}
        <button type="submit" class="main">Go on</button>
      </p>
    </form>`;
}
