// Accounts: everybody's own tokens; for admins of the server also accounts, groups, roles and the tokens of others.

import { html, useState } from "../lib/ui.js";
import { isAdmin, isLimited, placeWords } from "../lib/accounts.js";
import { get } from "../lib/api.js";
import { useLive } from "../lib/hints.js";
import { Failure, Loading, Notice } from "../parts/notice.js";
import { Groups } from "./accounts-groups.js";
import { People } from "./accounts-people.js";
import { Roles } from "./accounts-roles.js";
import { Tokens } from "./accounts-tokens.js";

/**
 * @typedef {import("../lib/accounts.js").Account} Account
 * @typedef {import("../lib/accounts.js").Group} Group
 * @typedef {import("../lib/accounts.js").Token} Token
 */

/** @param {{address: import("../lib/address.js").Address}} props */
export default function AccountsPage({ address: { query } }) {
  const of = query.of ?? "";
  const { data, error, reload } = useLive((signal) => load(of, signal), [of], { ignore: () => true });
  const [words, setWords] = useState("");
  if (error && !data) return html`<h1>Accounts</h1><${Failure} error=${error} retry=${reload} />`;
  if (!data) return html`<h1>Accounts</h1><${Loading} />`;
  const done = (/** @type {string} */ sentence) => {
    setWords(sentence);
    reload();
  };
  const { me, accounts, groups } = data;
  return html`<h1>Accounts</h1>
    <p>${whoWords(me)}</p>
    <p role="status" class="done">${words}</p>
    ${error && html`<${Failure} error=${error} retry=${reload} />`}
    ${me.kind !== "owner" && html`<${Tokens} title="Your tokens" account="" tokens=${data.own} current=${me.token?.id} canMake=${!isLimited(me)} onDone=${done} />`}
    ${accounts &&
    html`<${People} accounts=${accounts} me=${me.name} onDone=${done} />
      ${of && data.others && html`<${Tokens} key=${of} title=${`Tokens of ${of}`} account=${of} tokens=${data.others} current=${me.token?.id} canMake onDone=${done} />`}
      <${Roles} accounts=${accounts} groups=${groups} onDone=${done} />
      <${Groups} accounts=${accounts} groups=${groups} onDone=${done} />`}`;
}

/**
 * Only what the caller may ask for.
 * @param {string} of @param {AbortSignal} signal
 * @returns {Promise<{me: Account, own: Token[], others?: Token[], accounts?: Account[], groups: Group[]}>}
 */
async function load(of, signal) {
  const ask = (/** @type {string} */ path, query = {}) => get(path, query, { signal });
  const me = await ask("/v1/accounts:me");
  const own = me.kind === "owner" ? [] : (await ask("/v1/tokens")).tokens;
  if (!isAdmin(me)) return { me, own, groups: [] };
  const [{ accounts }, { groups }] = await Promise.all([ask("/v1/accounts"), ask("/v1/groups")]);
  const isThere = accounts.some((/** @type {Account} */ account) => account.name === of);
  const others = isThere ? (await ask("/v1/tokens", { account: of })).tokens : undefined;
  return { me, own, others, accounts, groups };
}

/** @param {Account} me */
function whoWords(me) {
  if (me.kind === "owner") return "You are the owner of this server: you may do everything.";
  const roles = me.roles.map(({ role, project }) => `${role} ${project === "*" ? placeWords(project) : `in ${project}`}`);
  return html`You are <strong>${me.name}</strong>: ${roles.join(", ") || "you have no role yet"}.
    ${isLimited(me) && html`<${Notice} kind="warn"><p>You signed in with a token that has fewer rights than your account.</p><//>`}`;
}
