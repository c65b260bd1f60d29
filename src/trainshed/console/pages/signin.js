// Where one gives the token, if no ticket brought one here. It is sent once and kept nowhere in the page.

import { html, useEffect, useRef, useState } from "../lib/ui.js";
import { post } from "../lib/api.js";

/** @param {{onSignedIn: () => void, problem: string}} props */
export default function SignInPage({ onSignedIn, problem }) {
  const [message, setMessage] = useState(problem);
  const field = useRef(/** @type {HTMLInputElement | null} */ (null));
  useEffect(() => field.current?.focus(), []);
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
  return html`<main class="narrow">
    <h1>Sign in to Trainshed</h1>
    ${message && html`<p class="notice bad" role="alert">${message}</p>`}
    <form onSubmit=${signIn}>
      <label for="token">Your token, or the server's</label>
      <input id="token" ref=${field} type="password" autocomplete="off" spellcheck=${false} required />
      <button type="submit" class="main">Sign in</button>
    </form>
    <p>On the machine of the server, <code>trainshed console</code> opens this page signed in. Its token is the content of the
      file <code>token</code> in the server's home.</p>
  </main>`;
}
