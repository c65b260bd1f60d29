// Where one gives the token, if no ticket brought one here. It is sent once and kept nowhere in the page. Where the
// server knows a provider, a link leads there; who is signed in already and has no role is told so.

import { html, useEffect, useRef, useState } from "../lib/ui.js";
import { get, post } from "../lib/api.js";
import { NoRole } from "../parts/no-role.js";

const PROVIDER = document.querySelector('meta[name="provider"]')?.getAttribute("content") ?? "";

/** @param {{onSignedIn: () => void, problem: string}} props */
export default function SignInPage({ onSignedIn, problem }) {
  const [message, setMessage] = useState(problem);
  const field = useRef(/** @type {HTMLInputElement | null} */ (null));
  const [name, setName] = useState("");
  useEffect(() => {
    if (!PROVIDER) field.current?.focus();
    else get("/v1/accounts:me").then((me) => setName(me.name), () => {}); // nobody is signed in
  }, []);
  const signIn = async (/** @type {SubmitEvent} */ event) => {
    event.preventDefault();
    const token = field.current?.value.trim() ?? "";
    if (field.current) field.current.value = "";
    try {
      await post("/v1/console:signIn", { token });
      onSignedIn();
    } catch (error) {
      setMessage(/** @type {Error} */ (error).message);
    }
  };
  if (name) return html`<${NoRole} name=${name} />`;
  return html`<main class="narrow">
    <h1>Sign in to Trainshed</h1>
    ${message && html`<p class="notice bad" role="alert">${message}</p>`}
    ${PROVIDER &&
    html`<p><a class="button main" href=${`/signin?${new URLSearchParams({ page: location.pathname + location.search })}`}>Sign in with
      ${" "}${PROVIDER}</a></p>`}
    <form onSubmit=${signIn}>
      <label for="token">Your token, or the server's</label>
      <input id="token" ref=${field} type="password" autocomplete="off" spellcheck=${false} required />
      <button type="submit" class=${PROVIDER ? "" : "main"}>Sign in</button>
    </form>
    <p>On the machine of the server, <code>trainshed console</code> opens this page signed in. Its token is the content of the
      file <code>token</code> in the server's home.</p>
  </main>`;
}
