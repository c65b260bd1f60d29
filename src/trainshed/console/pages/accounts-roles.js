// Roles: who may do what in which project; give and take them.

import { html, useState } from "../lib/ui.js";
import { allGrants, changeRole, EVERY_PROJECT, grantKey, memberOf, placeWords, ROLES } from "../lib/accounts.js";
import { useDeed } from "../lib/deed.js";
import { DeedDialog } from "../parts/deed.js";
import { Failure } from "../parts/notice.js";
import { Table } from "../parts/table.js";

/**
 * @typedef {import("../lib/accounts.js").Account} Account
 * @typedef {import("../lib/accounts.js").Grant} Grant
 * @typedef {import("../lib/accounts.js").Group} Group
 */

/** @param {{accounts: Account[], groups: Group[], onDone: (words: string) => void}} props */
export function Roles({ accounts, groups, onDone }) {
  const [taken, setTaken] = useState(/** @type {Grant | null} */ (null));
  const grants = allGrants(accounts, groups);
  const members = [...accounts.map(memberOf), ...groups.map(({ name }) => `group:${name}`)];
  const columns = [
    { name: "project", title: "Project", cell: (/** @type {Grant} */ grant) => placeWords(grant.project) },
    { name: "role", title: "Role", cell: (/** @type {Grant} */ grant) => grant.role },
    { name: "member", title: "Who", isWide: true, cell: (/** @type {Grant} */ grant) => nameOf(grant.member) },
    { name: "deeds", title: "Change", cell: (/** @type {Grant} */ grant) => html`<button type="button" class="small" onClick=${() => setTaken(grant)}>Take away …<span class="unseen"> ${grantWords(grant)}</span></button>` },
  ];
  return html`<h2>Roles</h2>
    <p class="dim">A viewer sees everything in a project, a user also submits jobs, an admin also gives roles. Everywhere means all projects and the server.</p>
    ${grants.length > 0
      ? html`<div class="stacked"><${Table} caption="Roles" columns=${columns} rows=${grants} rowKey=${grantKey} /></div>`
      : html`<p class="dim">Nobody has a role.</p>`}
    ${members.length > 0 && html`<${GiveRole} members=${members} projects=${[...new Set(grants.map(({ project }) => project))]} onDone=${onDone} />`}
    ${taken &&
    html`<${DeedDialog} title="Take this role away?" deed="Take away" isBad run=${() => changeRole(taken, false)} onDone=${() => onDone(`Took away: ${grantWords(taken)}.`)} onClose=${() => setTaken(null)}>
      <p>${grantWords(taken)}</p>
    <//>`}`;
}

/** "user:ann" -> "ann" @param {string} member */
function nameOf(member) {
  const [kind, ...rest] = member.split(":");
  return kind === "group" ? `group ${rest.join(":")}` : rest.join(":");
}

/** @param {Grant} grant */
const grantWords = ({ project, role, member }) => `${nameOf(member)} is ${role} ${project === EVERY_PROJECT ? "everywhere" : `in ${project}`}`;

/** @param {{members: string[], projects: string[], onDone: (words: string) => void}} props */
function GiveRole({ members, projects, onDone }) {
  const [member, setMember] = useState(members[0]);
  const [role, setRole] = useState("user");
  const [project, setProject] = useState("");
  const [isEverywhere, setEverywhere] = useState(false);
  const grant = { member: members.includes(member) ? member : members[0], role, project: isEverywhere ? EVERY_PROJECT : project.trim() };
  const { error, isRunning, run } = useDeed(() => onDone(`Given: ${grantWords(grant)}.`));
  const submit = (/** @type {Event} */ event) => {
    event.preventDefault();
    run(() => changeRole(grant, true));
  };
  return html`<form class="toolbar below" onSubmit=${submit}>
      <label class="pair">Give <select aria-label="Who" value=${grant.member} onChange=${(/** @type {any} */ event) => setMember(event.target.value)}>
        ${members.map((name) => html`<option key=${name} value=${name}>${nameOf(name)}</option>`)}
      </select></label>
      <label class="pair">the role <select aria-label="Role" value=${role} onChange=${(/** @type {any} */ event) => setRole(event.target.value)}>
        ${ROLES.map((name) => html`<option key=${name} value=${name}>${name}</option>`)}
      </select></label>
      <label class="pair">in <input aria-label="Project" list="role-projects" value=${project} required=${!isEverywhere} disabled=${isEverywhere} autocomplete="off" spellcheck=${false} placeholder="vision" onInput=${(/** @type {any} */ event) => setProject(event.target.value)} /></label>
      <datalist id="role-projects">${projects.filter((name) => name !== EVERY_PROJECT).map((name) => html`<option key=${name} value=${name} />`)}</datalist>
      <label class="pair"><input type="checkbox" checked=${isEverywhere} onChange=${() => setEverywhere(!isEverywhere)} /> everywhere</label>
      <button type="submit" class="main" disabled=${isRunning}>Give role</button>
    </form>
    ${error && html`<${Failure} error=${error} />`}`;
}
