// Groups of accounts, which get roles together: make one, choose its members, remove it.

import { html, useState } from "../lib/ui.js";
import { setMembers } from "../lib/accounts.js";
import { remove } from "../lib/api.js";
import { useDeed } from "../lib/deed.js";
import { DeedDialog } from "../parts/deed.js";
import { Dialog } from "../parts/dialog.js";
import { Menu } from "../parts/menu.js";
import { Failure } from "../parts/notice.js";
import { Table } from "../parts/table.js";

/**
 * @typedef {import("../lib/accounts.js").Account} Account
 * @typedef {import("../lib/accounts.js").Group} Group
 */

/** @param {{accounts: Account[], groups: Group[], onDone: (words: string) => void}} props */
export function Groups({ accounts, groups, onDone }) {
  const [asked, setAsked] = useState(/** @type {{deed: "members" | "remove", group: Group} | null} */ (null));
  const close = () => setAsked(null);
  const columns = [
    { name: "name", title: "Name", cell: (/** @type {Group} */ group) => group.name },
    { name: "members", title: "Members", isWide: true, cell: (/** @type {Group} */ group) => group.members.join(", ") || html`<span class="dim">nobody</span>` },
    {
      name: "deeds",
      title: "Change",
      cell: (/** @type {Group} */ group) => html`<${Menu}
        title="Edit"
        deeds=${[
          { title: "Members …", onClick: () => setAsked({ deed: "members", group }) },
          { title: "Remove …", isBad: true, onClick: () => setAsked({ deed: "remove", group }) },
        ]}
      />`,
    },
  ];
  return html`<h2>Groups</h2>
    ${groups.length > 0
      ? html`<div class="stacked accounts"><${Table} caption="Groups" columns=${columns} rows=${groups} rowKey=${(/** @type {Group} */ group) => group.name} /></div>`
      : html`<p class="dim">There are none. Members of a group get its roles.</p>`}
    <${AddGroup} names=${groups.map(({ name }) => name)} onDone=${onDone} />
    ${asked?.deed === "members" && html`<${Members} group=${asked.group} accounts=${accounts} onDone=${onDone} onClose=${close} />`}
    ${asked?.deed === "remove" &&
    html`<${DeedDialog} title=${`Remove the group ${asked.group.name}?`} deed="Remove" isBad run=${() => remove(`/v1/groups/${encodeURIComponent(asked.group.name)}`)} onDone=${() => onDone(`Removed the group ${asked.group.name}.`)} onClose=${close}>
      <p>Its roles go with it. Its members keep their own.</p>
    <//>`}`;
}

/** @param {{names: string[], onDone: (words: string) => void}} props */
function AddGroup({ names, onDone }) {
  const [name, setName] = useState("");
  const { error, isRunning, run } = useDeed((group) => {
    setName("");
    onDone(`Made the group ${group.name}.`);
  });
  const isTaken = names.includes(name.trim()); // to make it again would send its members away
  const submit = (/** @type {Event} */ event) => {
    event.preventDefault();
    if (!isTaken) run(() => setMembers(name.trim(), []));
  };
  return html`<form class="toolbar below" onSubmit=${submit}>
      <label for="group-name">Add</label>
      <input id="group-name" value=${name} required autocomplete="off" spellcheck=${false} placeholder="vision" onInput=${(/** @type {any} */ event) => setName(event.target.value)} />
      <button type="submit" class="main" disabled=${isRunning || isTaken}>Add group</button>
      <span role="status" class="dim">${isTaken && "There is such a group already."}</span>
    </form>
    ${error && html`<${Failure} error=${error} />`}`;
}

/** @param {{group: Group, accounts: Account[], onDone: (words: string) => void, onClose: () => void}} props */
function Members({ group, accounts, onDone, onClose }) {
  const [members, setChosen] = useState(new Set(group.members));
  const { error, isRunning, run } = useDeed(() => {
    onDone(`Changed the members of ${group.name}.`);
    onClose();
  });
  const toggle = (/** @type {string} */ name) => {
    const changed = new Set(members);
    if (!changed.delete(name)) changed.add(name);
    setChosen(changed);
  };
  const submit = (/** @type {Event} */ event) => {
    event.preventDefault();
    run(() => setMembers(group.name, [...members]));
  };
  return html`<${Dialog} title=${`Members of ${group.name}`} onClose=${onClose}>
    <form class="account-form" onSubmit=${submit}>
      <fieldset class="members">
        <legend class="unseen">Members</legend>
        ${accounts.map(({ name }) => html`<label key=${name}><input type="checkbox" checked=${members.has(name)} onChange=${() => toggle(name)} /> ${name}</label>`)}
      </fieldset>
      ${error && html`<${Failure} error=${error} />`}
      <button type="submit" class="main" disabled=${isRunning}>Save</button>
    </form>
  <//>`;
}
