// What somebody sees who is signed in and has no role: nothing of the server, and whom to ask.

import { html } from "../lib/ui.js";
import { post } from "../lib/api.js";

/** @param {{name: string}} props */
export function NoRole({ name }) {
  const signOut = async () => {
    await post("/v1/console:signOut");
    location.assign("/console/");
  };
  return html`<main class="narrow">
    <h1>You have no role yet</h1>
    <p>You are signed in as <b>${name}</b>. Whoever administers the server can give you a role in a project:</p>
    <p><code>trainshed roles grant user ${name} --project PROJECT</code></p>
    <p><button type="button" onClick=${signOut}>Sign out</button></p>
  </main>`;
}
