// Who is in a repo and what each may do; and what one calls the others.

import { Face } from "../parts/face.js";
import { Action, Empty, Form, Skeleton, ask } from "../parts/form.js";
import { cut, short } from "../parts/format.js";
import { html } from "../parts/html.js";
import { beside, may, members, refresh, status } from "../state/node.js";
import { api, isPerson, tell } from "../state/session.js";
import { text } from "../strings/text.js";
import { saidOf, useHolders } from "./holders.js";
import { Invite, OpenLinks } from "./invite.js";
import { Requests } from "./requests.js";

const LEVELS = ["read", "write", "manage", "admin", "owner"];

export function Members({ repo }) {
  const all = members.value;
  if (all === null) return html`<${Empty}><p>${text.noMembersKnown}</p><//>`;
  const isAdmin = may(repo, "admin");
  const holders = useHolders(repo);
  const persons = [...groupBy(all, (one) => one.person).values()]; // the first one of each first
  return html`
    ${isAdmin && repo.requests > 0 && html`<${Requests} repo=${repo} />`}
    <div class="buttons"><h3 class="grow">${text.peopleCount(persons.length)}</h3>${isAdmin && html`<${Invite} repo=${repo} />`}</div>
    ${!all.length ? html`<${Skeleton} lines=${3} />` : ""}
    ${all.length > 0 && html`<div class="member heads" aria-hidden="true"><span class="grow">${text.nameOfPerson}</span><span class="role">${text.role}</span><span class="has">${text.has}</span></div>`}
    <ul id="members" class="plain">
      ${persons.map(([first, ...others]) => html`<li key=${first.user} title=${first.user}>
        <${Member} member=${first} repo=${repo} isAdmin=${isAdmin} holders=${holders} count=${others.length + 1} />
        ${others.length > 0 && html`<ul class="plain">${others.map((one, index) => html`<li key=${one.user} title=${one.user}>
          <${Member} member=${one} repo=${repo} isAdmin=${isAdmin} holders=${holders} device=${text.deviceOf(nameOf(first), index + 2)} /></li>`)}</ul>`}
      </li>`)}
    </ul>
    ${isAdmin && html`<${OpenLinks} repo=${repo} /><${Grant} repo=${repo} />`}`;
}

function groupBy(list, keyOf) {
  const groups = new Map();
  for (const one of list) groups.set(keyOf(one), [...(groups.get(keyOf(one)) ?? []), one]);
  return groups;
}

/** A person by the first device, or a further `device`, which is called by its person. */
function Member({ member, repo, isAdmin, holders, count = 1, device = "" }) {
  const isMe = member.user === status.value?.user;
  const id = `${member.user.slice(0, 16)}…`;
  const computer = isMe ? null : holders.find((one) => one.owner?.user === member.user);
  const called = (device && computer?.owner.device) || device || member.name;
  const stated = member.petname && member.stated_name !== member.petname ? member.stated_name : "";
  const about = [isMe && text.you, stated && cut(stated), count > 1 && text.computers(count)].filter(Boolean).join(" · ");
  return html`<div class="member"><${Face} id=${member.user} name=${member.name} color=${member.color} isOn=${Boolean(computer?.connected)} />
    <span class="grow">${called ? html`<bdi class="person">${called}</bdi>` : html`<span class="id">${id}</span>`}
      <span class="facts"><bdi>${about}</bdi>${called && member.looks_alike ? html` <span class="id">${id}</span>` : ""}</span></span>
    <span class="role">${text.permissions[member.permission] ?? member.permission}</span>
    <span class="has facts">${isMe ? text.thisComputer : saidOf(computer)}</span>
    ${isMe && !called && html` <a href=${beside("people")}>${text.nameYourself}</a>`}
    ${member.looks_alike && html`<p class="alarm">${text.looksAlike}</p>`}
    ${!isMe && (isAdmin || isPerson.value) && html`<details class="more"><summary>${text.change}</summary>
      ${isPerson.value && html`<${Form} button=${text.save_} keep send=${({ name }) => rename(member, name)}>
        <label>${text.petname} <input name="name" maxlength="64" autocomplete="off" defaultValue=${member.petname ?? ""} /></label><//>`}
      ${isAdmin && html`<${Form} class="form inline set-permission" button=${text.setPermission} keep send=${({ permission }) => change(repo, member, permission)}>
        <label>${text.may} <select name="permission" defaultValue=${member.permission}>${LEVELS.map((one) => html`<option selected=${one === member.permission}>${one}</option>`)}</select></label><//>
      <${Action} class="danger" question=${text.excludeQuestion(nameOf(member), repo.name)} yes=${text.excludeNow(nameOf(member))} act=${() => exclude(repo, member)}>${text.exclude}<//>`}
      <p class="id">${member.user}</p></details>`}</div>`;
}

async function rename(member, name) {
  const before = member.petname ?? "";
  await api.setPetname({ user: member.user, name: name.trim() || null });
  await refresh();
  tell(text.saved, () => rename({ ...member, petname: name }, before));
}

async function change(repo, member, permission) {
  const { user, permission: before } = member;
  if (permission === before) return;
  const isLower = LEVELS.indexOf(permission) < LEVELS.indexOf(before);
  if (isLower) {
    if (!(await removeOrPropose(repo, member, permission))) return;
  } else await api.grantPermission({ repo: repo.repo, user, permission });
  await refresh();
  tell(text.mayNow(nameOf(member), permission), () => change(repo, { ...member, permission }, before));
}

async function exclude(repo, member) {
  const done = await removeOrPropose(repo, member);
  if (!done) return;
  await refresh();
  tell(text.excluded(nameOf(member), done.voided, done.other_devices.length));
}

/** What a removal did; where signers have to approve of it first, it is proposed on request, and nothing was done. */
async function removeOrPropose(repo, member, keeps) {
  const removal = { repo: repo.repo, user: member.user, ...(keeps && { keeps }) };
  try {
    return await api.removeMember(removal);
  } catch (error) {
    if (error.code !== "needs_quorum") throw error;
    if (!(await ask(text.proposeQuestion(nameOf(member), keeps), text.propose))) return null;
    await api.proposeRemoval(removal);
    tell(text.proposed);
    return null;
  }
}

function nameOf(member) {
  return member.name || short(member.user);
}

function Grant({ repo }) {
  return html`<details><summary>${text.grantTitle}</summary>
    <p>${text.grantAbout}</p>
    <${Form} button=${text.grant} send=${async ({ user, permission }) => {
      await api.grantPermission({ repo: repo.repo, user: user.trim(), permission });
      await refresh();
    }}>
      <label>${text.user} <input name="user" required maxlength="128" autocomplete="off" /></label>
      <label>${text.may} <select name="permission">${LEVELS.map((one) => html`<option selected=${one === "write"}>${one}</option>`)}</select></label>
    <//></details>`;
}
