// Who is in a repo, each with the role and what their computers have; a person's own page stands beside it.

import { Face, Icon, nameOf } from "../parts/face.js";
import { Empty, Form, Skeleton } from "../parts/form.js";
import { cut } from "../parts/format.js";
import { html } from "../parts/html.js";
import { beside, isMine, may, members, persons, refresh, route } from "../state/node.js";
import { api, attempt } from "../state/session.js";
import { text } from "../strings/opened.js";
import { Has, holderOf, useHolders } from "./holders.js";
import { Invite, OpenLinks } from "./invite.js";
import { cameOf, change, mayRule, roles } from "./person.js";
import { Requests } from "./requests.js";

export function Members({ repo }) {
  const all = members.value;
  if (all === null) return html`<${Empty}><p>${text.noMembersKnown}</p><//>`;
  const isAdmin = may(repo, "admin");
  const holders = useHolders(repo);
  const people = [...persons.value].sort(([one], [other]) => isMine(other.user) - isMine(one.user) || !one.name - !other.name || one.name.localeCompare(other.name));
  return html`
    ${isAdmin && repo.requests > 0 && html`<${Requests} repo=${repo} />`}
    <div class="buttons"><h3 class="grow">${text.peopleCount(persons.value.length)}</h3>${isAdmin && html`<${Invite} repo=${repo} />`}</div>
    ${!all.length ? html`<${Skeleton} lines=${3} />` : ""}
    <div class="card people"><div class="member heads" aria-hidden="true"><span class="grow">${text.nameOfPerson}</span><span class="role">${text.role}</span><span class="count">${text.devicesOfPerson}</span><span class="has">${text.has}</span></div>
    <ul id="members" class="plain">
      ${people.map((devices) => html`<li key=${devices[0].user}><${Member} repo=${repo} devices=${devices} holders=${holders} /></li>`)}
    </ul></div>
    <p class="facts">${text.rolesAbout}</p>
    ${isAdmin && html`<${OpenLinks} repo=${repo} /><${Grant} repo=${repo} />`}`;
}

/** A person, by the first device; the whole row leads to what is known of them. */
function Member({ repo, devices, holders }) {
  const [member] = devices;
  const isMe = isMine(member.user);
  const id = `${member.user.slice(0, 16)}…`;
  const holder = isMe ? null : holderOf(holders, devices);
  const stated = member.petname && member.stated_name !== member.petname ? member.stated_name : "";
  const about = [isMe && text.you, stated && cut(stated), cameOf(devices)].filter(Boolean).join(" · ");
  const isShown = route.value.panel === "person" && devices.some((one) => one.user === route.value.argument);
  return html`<div class="member"><${Face} id=${member.user} name=${member.name} isOn=${Boolean(holder?.connected)} />
    <span class="grow"><a class=${member.name ? "person whole-row" : "id whole-row"} href=${beside("person", member.user)} aria-current=${isShown ? "true" : undefined}><bdi>${member.name || id}</bdi></a>
      <span class="facts"><bdi>${about}</bdi>${member.name && member.looks_alike ? html` <span class="id">${id}</span>` : ""}</span></span>
    <span class="role">${mayRule(repo, devices) ? html`<${Role} repo=${repo} devices=${devices} />` : text.permissions[member.permission] ?? member.permission}</span>
    <span class="count">${devices.length}<span class="unseen"> ${text.devicesCount(devices.length)}</span></span>
    <span class="has facts">${isMe ? text.thisComputer : holder && html`<${Has} holder=${holder} />`}</span>
    <${Icon} name="turn" size="s" />
    ${isMe && !member.name && html` <a class="name-me" href=${beside("people")}>${text.nameYourself}</a>`}
    ${member.looks_alike && html`<p class="alarm">${text.looksAlike}</p>`}</div>`;
}

/** What a person may do, as a field. What was not done shows again how things are. */
function Role({ repo, devices }) {
  const [member] = devices;
  const set = async ({ target: field }) => {
    let isDone = false;
    await attempt(async () => (isDone = await change(repo, devices, field.value)));
    if (!isDone) field.value = member.permission;
  };
  return html`<select aria-label=${text.roleOf(nameOf(member))} onChange=${set}>${roles(repo, member.permission)}</select>`;
}

function Grant({ repo }) {
  return html`<details><summary>${text.grantTitle}</summary>
    <p>${text.grantAbout}</p>
    <${Form} button=${text.grant} send=${async ({ user, permission }) => {
      await api.grantPermission({ repo: repo.repo, user: user.trim(), permission });
      await refresh();
    }}>
      <label>${text.user} <input name="user" required maxlength="128" autocomplete="off" /></label>
      <label>${text.role} <select name="permission">${roles(repo, "write")}</select></label>
    <//></details>`;
}
