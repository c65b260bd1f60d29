// Accounts of people and programs: add, disable, remove; a link to the tokens of each.

import { html, useState } from "../lib/ui.js";
import { placeWords, setDisabled } from "../lib/accounts.js";
import { href } from "../lib/address.js";
import { post, remove } from "../lib/api.js";
import { useDeed } from "../lib/deed.js";
import { DeedDialog } from "../parts/deed.js";
import { Menu } from "../parts/menu.js";
import { Failure } from "../parts/notice.js";
import { Table } from "../parts/table.js";

/** @typedef {import("../lib/accounts.js").Account} Account */

const SERVICE = "serviceAccount";

/** @param {{accounts: Account[], me: string, onDone: (words: string) => void}} props */
export function People({ accounts, me, onDone }) {
  const [asked, setAsked] = useState(/** @type {{deed: "disable" | "remove", account: Account} | null} */ (null));
  const columns = [
    { name: "name", title: "Name", isWide: true, cell: (/** @type {Account} */ account) => html`${account.name}${account.kind === SERVICE && html` <span class="dim">(for programs)</span>`}` },
    { name: "state", title: "State", cell: stateCell },
    { name: "roles", title: "Roles", cell: rolesCell },
    { name: "tokens", title: "Tokens", cell: (/** @type {Account} */ account) => html`<a href=${href(["accounts"], { of: account.name })}>tokens<span class="unseen"> of ${account.name}</span></a>` },
    { name: "deeds", title: "Change", cell: deedsCell },
  ];
  /** @param {Account} account */
  function deedsCell(account) {
    const why = account.name === me ? "That is you." : undefined;
    const enable = () => setDisabled(account.name, false).then(() => onDone(`${account.name} may come in again.`), (error) => onDone(error.message));
    const disable = account.disabled
      ? { title: "Enable", onClick: enable }
      : { title: "Disable …", why, onClick: () => setAsked({ deed: "disable", account }) };
    return html`<${Menu} title="Edit" deeds=${[disable, { title: "Remove …", isBad: true, why, onClick: () => setAsked({ deed: "remove", account }) }]} />`;
  }
  return html`<h2>People and programs</h2>
    ${accounts.length > 0
      ? html`<div class="stacked accounts"><${Table} caption="Accounts" columns=${columns} rows=${accounts} rowKey=${(/** @type {Account} */ account) => account.name} /></div>`
      : html`<p class="dim">There are no accounts: whoever has the server's token may do everything. Add people, give them roles, and make each a token.</p>`}
    <${AddAccount} onDone=${onDone} />
    ${asked?.deed === "disable" &&
    html`<${DeedDialog} title=${`Disable ${asked.account.name}?`} deed="Disable" isBad run=${() => setDisabled(asked.account.name, true)} onDone=${() => onDone(`${asked.account.name} is disabled.`)} onClose=${() => setAsked(null)}>
      <p>All tokens and sessions of the account end. Jobs that run go on. You can enable it again; it needs new tokens then.</p>
    <//>`}
    ${asked?.deed === "remove" &&
    html`<${DeedDialog} title=${`Remove ${asked.account.name}?`} deed="Remove" isBad run=${() => remove(`/v1/accounts/${encodeURIComponent(asked.account.name)}`)} onDone=${() => onDone(`Removed ${asked.account.name}.`)} onClose=${() => setAsked(null)}>
      <p>Its tokens, its roles and its places in groups go with it. Its jobs stay.</p>
    <//>`}`;
}

/** @param {Account} account */
const stateCell = ({ disabled }) =>
  disabled
    ? html`<span class="state bad"><span class="shape" aria-hidden="true">✗</span>disabled</span>`
    : html`<span class="state good"><span class="shape" aria-hidden="true">✓</span>enabled</span>`;

/** @param {Account} account */
function rolesCell({ roles }) {
  if (!roles.length) return html`<span class="dim">none</span>`;
  return html`<ul class="roles">${roles.map(
    ({ project, role, member }) => html`<li key=${`${project} ${role} ${member}`}>${role} <span class="dim">${placeWords(project)}${member.startsWith("group:") && `, by ${member.slice(6)}`}</span></li>`,
  )}</ul>`;
}

/** @param {{onDone: (words: string) => void}} props */
function AddAccount({ onDone }) {
  const [name, setName] = useState("");
  const [kind, setKind] = useState("user");
  const { error, isRunning, run } = useDeed((account) => {
    setName("");
    onDone(`Added ${account.name}. Give it a role, and make a token for it.`);
  });
  const submit = (/** @type {Event} */ event) => {
    event.preventDefault();
    run(() => post("/v1/accounts", { name: name.trim(), kind }));
  };
  return html`<form class="toolbar below" onSubmit=${submit}>
      <label for="account-name">Add</label>
      <input id="account-name" value=${name} required autocomplete="off" spellcheck=${false} placeholder="ann@example.org" onInput=${(/** @type {any} */ event) => setName(event.target.value)} />
      <select aria-label="Kind of account" value=${kind} onChange=${(/** @type {any} */ event) => setKind(event.target.value)}>
        <option value="user">a person</option>
        <option value=${SERVICE}>a program</option>
      </select>
      <button type="submit" class="main" disabled=${isRunning}>Add account</button>
    </form>
    ${error && html`<${Failure} error=${error} />`}`;
}
