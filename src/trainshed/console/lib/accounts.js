// Accounts as the server tells of them, and what is asked of it to change a role.

import { ask, post } from "./api.js";

/**
 * @typedef {{project: string, role: string, member: string}} Grant
 * @typedef {{id: string, account: string, title: string, createTime: string, expireTime?: string, lastUseDate?: string,
 *   role?: string, projects?: string[]}} Token
 * @typedef {{name: string, kind: string, disabled?: boolean, roles: Grant[], token?: Token}} Account
 * @typedef {{name: string, members: string[], roles: Grant[]}} Group
 */

export const ROLES = ["viewer", "user", "admin"];
export const EVERY_PROJECT = "*";
const PREFIX = "roles/trainshed.";
const CONFLICT = 409;
const TRIES = 3;

/** Whether it may do everything, as the owner or as an admin everywhere. @param {Account} me */
export const isAdmin = (me) =>
  me.kind === "owner" || (!isLimited(me) && me.roles.some(({ project, role }) => project === EVERY_PROJECT && role === "admin"));

/** Whether its token has fewer rights than its account. @param {Account} me */
export const isLimited = ({ token }) => Boolean(token?.role || token?.projects?.length);

/** @param {Account} account */
export const memberOf = ({ kind, name }) => `${kind}:${name}`;

/** @param {string} project */
export const placeWords = (project) => (project === EVERY_PROJECT ? "everywhere" : project);

/** Every grant once, in order. @param {Account[]} accounts @param {Group[]} groups @returns {Grant[]} */
export function allGrants(accounts, groups) {
  const grants = [...accounts, ...groups].flatMap(({ roles }) => roles);
  const byText = new Map(grants.map((grant) => [grantKey(grant), grant]));
  return [...byText.keys()].sort().map((key) => /** @type {Grant} */ (byText.get(key)));
}

/** @param {Grant} grant */
export const grantKey = ({ project, role, member }) => [project, role, member].join(" ");

/**
 * Give or take a role. Somebody else may change the roles of the project meanwhile: then once more.
 * @param {Grant} grant
 * @param {boolean} isGiven
 */
export async function changeRole({ project, role, member }, isGiven) {
  const path = project === EVERY_PROJECT ? "/v1/server" : `/v1/projects/${encodeURIComponent(project)}`;
  for (let tries = 1; ; tries += 1) {
    const { bindings = [], etag } = await post(`${path}:getIamPolicy`);
    const of = new Map(bindings.map((/** @type {any} */ binding) => [binding.role, new Set(binding.members)]));
    const members = of.get(PREFIX + role) ?? new Set();
    if (isGiven) members.add(member);
    else members.delete(member);
    of.set(PREFIX + role, members);
    const changed = [...of].filter(([, all]) => all.size).map(([name, all]) => ({ role: name, members: [...all] }));
    try {
      return await post(`${path}:setIamPolicy`, { policy: { bindings: changed, etag } });
    } catch (error) {
      if (/** @type {any} */ (error).status !== CONFLICT || tries >= TRIES) throw error;
    }
  }
}

/** @param {string} name @param {string[]} members */
export const setMembers = (name, members) => ask("PUT", `/v1/groups/${encodeURIComponent(name)}`, { body: { members } });

/** @param {string} name @param {boolean} disabled */
export const setDisabled = (name, disabled) => ask("PATCH", `/v1/accounts/${encodeURIComponent(name)}`, { body: { disabled } });
