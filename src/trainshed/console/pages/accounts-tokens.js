// Tokens of an account: what they are for and when they were used; make one, which is shown once; revoke.

import { html, useState } from "../lib/ui.js";
import { ROLES } from "../lib/accounts.js";
import { post, remove } from "../lib/api.js";
import { useDeed } from "../lib/deed.js";
import { CodeBlock } from "../parts/copy.js";
import { DeedDialog } from "../parts/deed.js";
import { Dialog } from "../parts/dialog.js";
import { Failure } from "../parts/notice.js";
import { Table } from "../parts/table.js";

/** @typedef {import("../lib/accounts.js").Token} Token */

const DAYS = { 1: "a day", 30: "30 days", 90: "90 days", 365: "a year", 0: "until it is revoked" };
const USUAL = "90";
const A_DAY = 86_400; // seconds

/**
 * `account` is empty for the caller's own. `current` is the id of the token with which the caller signed in.
 * @param {{title: string, account: string, tokens: Token[], current?: string, canMake: boolean,
 *   onDone: (words: string) => void}} props
 */
export function Tokens({ title, account, tokens, current, canMake, onDone }) {
  const [isNew, setNew] = useState(false);
  const [revoked, setRevoked] = useState(/** @type {Token | null} */ (null));
  const columns = [
    { name: "title", title: "For", isWide: true, cell: (/** @type {Token} */ token) => html`${token.title}${token.id === current && html` <span class="dim">(this session)</span>`}` },
    { name: "id", title: "ID", cell: (/** @type {Token} */ token) => html`<code>${token.id}</code>` },
    { name: "made", title: "Made", cell: (/** @type {Token} */ token) => dayOf(token.createTime) },
    { name: "used", title: "Last used", cell: (/** @type {Token} */ token) => (token.lastUseDate ? dayOf(token.lastUseDate) : html`<span class="dim">never</span>`) },
    { name: "until", title: "Until", cell: (/** @type {Token} */ token) => (token.expireTime ? dayOf(token.expireTime) : html`<span class="dim">no end</span>`) },
    { name: "limits", title: "Limited to", cell: (/** @type {Token} */ token) => [token.role, ...(token.projects ?? [])].filter(Boolean).join(", ") || html`<span class="dim">–</span>` },
    { name: "deeds", title: "Change", cell: (/** @type {Token} */ token) => html`<button type="button" class="small" onClick=${() => setRevoked(token)}>Revoke …<span class="unseen"> ${token.title}</span></button>` },
  ];
  return html`<h2>${title}</h2>
    ${tokens.length > 0
      ? html`<div class="stacked"><${Table} caption=${title} columns=${columns} rows=${tokens} rowKey=${(/** @type {Token} */ token) => token.id} /></div>`
      : html`<p class="dim">There are none.</p>`}
    ${canMake && html`<p class="below"><button type="button" onClick=${() => setNew(true)}>New token …</button></p>`}
    ${isNew && html`<${NewToken} account=${account} onDone=${onDone} onClose=${() => setNew(false)} />`}
    ${revoked &&
    html`<${DeedDialog}
      title="Revoke this token?"
      deed="Revoke"
      isBad
      run=${() => remove(`/v1/tokens/${revoked.id}`)}
      onDone=${() => onDone(`Revoked the token “${revoked.title}”.`)}
      onClose=${() => setRevoked(null)}
    >
      <p>“${revoked.title}” ends at once, and so do sessions that were made with it.</p>
      ${revoked.id === current && html`<p>You signed in with it: you are signed out then.</p>`}
    <//>`}`;
}

/** @param {string} time */
const dayOf = (time) => html`<time datetime=${time}>${time.slice(0, 10)}</time>`;

/** @param {{account: string, onDone: (words: string) => void, onClose: () => void}} props */
function NewToken({ account, onDone, onClose }) {
  const [title, setTitle] = useState("");
  const [days, setDays] = useState(USUAL);
  const [role, setRole] = useState("");
  const [text, setText] = useState("");
  const { error, isRunning, run } = useDeed((answer) => {
    setText(answer.token);
    onDone(`Made the token “${answer.title}”.`);
  });
  const submit = (/** @type {Event} */ event) => {
    event.preventDefault();
    const lifetime = `${Number(days) * A_DAY}s`;
    run(() => post("/v1/tokens", { account, title: title.trim(), role, lifetime }));
  };
  if (text)
    return html`<${Dialog} title="The new token" onClose=${onClose}>
      <p>This is the only time it is shown: the server does not keep it. Use it with <code>trainshed login</code>.</p>
      <${CodeBlock} text=${text} label="The new token" />
      <footer><button type="button" class="main" onClick=${onClose}>I have it</button></footer>
    <//>`;
  return html`<${Dialog} title=${account ? `New token of ${account}` : "New token"} onClose=${onClose}>
    <form class="account-form" onSubmit=${submit}>
      <label for="token-title">What it is for</label>
      <input id="token-title" value=${title} autocomplete="off" placeholder="laptop" onInput=${(/** @type {any} */ event) => setTitle(event.target.value)} />
      <label for="token-days">It counts</label>
      <select id="token-days" value=${days} onChange=${(/** @type {any} */ event) => setDays(event.target.value)}>
        ${Object.entries(DAYS).map(([value, words]) => html`<option key=${value} value=${value}>${words}</option>`)}
      </select>
      <label for="token-role">It may do</label>
      <select id="token-role" value=${role} onChange=${(/** @type {any} */ event) => setRole(event.target.value)}>
        <option value="">all that the account may</option>
        ${ROLES.map((name) => html`<option key=${name} value=${name}>no more than a ${name}</option>`)}
      </select>
      ${error && html`<${Failure} error=${error} />`}
      <button type="submit" class="main" disabled=${isRunning}>Make it</button>
    </form>
  <//>`;
}
