// One person of a repo: names, role, since when, their computers and what these have, what one may do, and the history.

import { Face, Icon, nameOf } from "../parts/face.js";
import { Action, Empty, Form, Loaded, ask, useLoaded } from "../parts/form.js";
import { cut, short, when } from "../parts/format.js";
import { html } from "../parts/html.js";
import { beside, devicesOf, isMine, may, peers, refresh, status } from "../state/node.js";
import { api, isPerson, tell } from "../state/session.js";
import { text } from "../strings/opened.js";
import { useEffect, useRef } from "../vendor/preact-hooks.js";
import { Has, holderOf, useHolders } from "./holders.js";
import { Came } from "./post_row.js";

const LEVELS = ["read", "write", "manage", "admin", "owner"];
const CHANGES = 1000; // of members that are looked through, the latest: as `ravel member list`

export function Person({ repo, branch, argument }) {
  const devices = devicesOf(argument);
  const [first] = devices;
  const known = useLoaded(() => historyOf(repo, argument), [repo.repo, argument, ...devices.map((one) => `${one.user} ${one.name} ${one.permission}`)], true);
  const isMe = isMine(argument);
  const petname = useRef(null);
  useEffect(() => {
    if (petname.current) petname.current.value = first.petname ?? "";
  }, [first?.petname]);
  const rules = mayRule(repo, devices);
  return html`<div id="person" data-user=${argument}>
    ${first ? html`<${Who} devices=${devices} isMe=${isMe} />` : html`<${Empty}><p>${text.noMember}</p><//>`}
    ${first && !isMe && isPerson.value && html`<div class="part"><${Form} id="petname" key=${first.user} class="form inline" button=${text.save_} keep send=${({ name }) => rename(first, name)}>
      <label>${text.petname} <span class="facts">${text.petnameAbout}</span> <input ref=${petname} name="name" maxlength="64" autocomplete="off" defaultValue=${first.petname ?? ""} /></label><//></div>`}
    ${first && html`<${Computers} repo=${repo} devices=${devices} rules=${rules} />`}
    <div class="part"><h3>${text.canDo}</h3>
      ${branch && html`<a id="to-posts-by" class="line plain" href=${beside("posts-by", argument)}><${Icon} name="search" size="s" /><span class="grow">${text.postsBy(nameOf(first ?? { user: argument }))}</span></a>`}
      ${first && rules && html`<${Action} class="line plain danger" question=${text.excludeQuestion(nameOf(first), repo.name, devices.slice(1).map((one) => one.stated_name || short(one.user)))} yes=${text.excludeNow(nameOf(first))} act=${() => exclude(repo, devices)}>
        <${Icon} name="out" size="s" /><span class="grow">${text.excludeNow(nameOf(first))}</span><//>`}</div>
    <${Loaded} of=${known} lines=${2}>${(changes) => changes.length > 0 && html`<details class="fold" open=${!first}><summary>${text.history}</summary><${Came} changes=${changes} /></details>`}<//>
    <details class="fold" id="experts"><summary>${text.forExperts}</summary><dl class="pairs">${(first ? devices : [{ user: argument }]).map((one, index) => html`
      <dt>${index ? text.deviceNumber(index + 1) : text.id}</dt><dd class="mono id">${one.user}</dd>`)}</dl></details></div>`;
}

/** All changes of a person's devices. */
async function historyOf(repo, user) {
  const { changes } = await api.listMemberChanges({ repo: repo.repo, limit: CHANGES });
  const users = [user, ...devicesOf(user).map((one) => one.user)];
  return changes.filter((one) => users.includes(one.user));
}

/** How a person came, by the first of their computers that did. Empty: not known. */
export function cameOf(devices) {
  const [first] = devices.map((one) => one.came).filter(Boolean).sort((one, other) => one.time - other.time);
  return first ? text.came[first.kind](first.time && when(first.time), isMine(first.author) ? text.byYou : first.author_name && cut(first.author_name)) : "";
}

function Who({ devices, isMe }) {
  const [first] = devices;
  const stated = first.petname && first.stated_name !== first.petname ? first.stated_name : "";
  const since = text.sentence(cameOf(devices));
  return html`<div class="part face"><${Face} id=${first.user} name=${first.name} size="l" />
    <div><p><b class="person"><bdi>${nameOf(first)}</bdi></b> ${isMe && html`<span class="facts">${text.you}</span>`}</p>
      <p class="facts">${text.permissions[first.permission] ?? first.permission}</p>
      ${stated && html`<p class="facts"><bdi>${text.callsItself(stated)}</bdi></p>`}
      ${since && html`<p class="facts" id="since"><bdi>${since}</bdi></p>`}
      ${first.looks_alike && html`<p class="alarm">${text.looksAlike}</p>`}
      ${isMe && html`<p><a href=${beside("people")}>${text.ownName}</a></p>`}</div></div>`;
}

/** Where a person is: each of their computers, what it has of this repo, and when this one last met it. */
function Computers({ repo, devices, rules }) {
  const holders = useHolders(repo);
  const row = (one, index) => {
    const isThis = one.user === status.value?.user;
    const holder = holderOf(holders, [one]);
    const peer = (peers.value ?? []).find(({ owner }) => owner?.user === one.user);
    const called = holder?.owner.device || peer?.owner.device || (index ? text.deviceOf(nameOf(devices[0]), index + 1) : text.computerOf(nameOf(devices[0])));
    const met = !holder?.connected && peer?.reached_at ? text.lastMet(when(peer.reached_at)) : "";
    return html`<li class="line" key=${one.user}><${Icon} name="laptop" size="s" /><span class="grow"><b class="cut"><bdi>${called}</bdi></b>
      ${isThis ? html`<span class="facts">${text.thisComputer}</span>` : html`${holder && html`<${Has} holder=${holder} />`}<span class="facts">${met || (!holder && text.notMet)}</span>`}
      ${one.permission !== devices[0].permission && html`<span class="facts">${text.permissions[one.permission]}</span>`}</span>
      ${rules && index > 0 && html`<${Action} class="quiet" question=${text.excludeDeviceQuestion(called, repo.name)} act=${() => exclude(repo, [one])}>${text.exclude}<//>`}</li>`;
  };
  return html`<div class="part"><h3>${text.theirComputers}</h3><ul id="computers" class="rows">${devices.map(row)}</ul></div>`;
}

/** Whether this user may change what a person may do: nobody lowers who may do more. */
export function mayRule(repo, devices) {
  const most = LEVELS.indexOf(repo.permission);
  return may(repo, "admin") && devices.length > 0 && !isMine(devices[0].user) && devices.every(({ permission }) => LEVELS.slice(0, most + 1).includes(permission));
}

/** Options of a field for the roles that a member of a repo may give. */
export function roles(repo, chosen) {
  return LEVELS.slice(0, LEVELS.indexOf(repo.permission) + 1).map((one) => html`<option value=${one} selected=${one === chosen}>${text.permissions[one]}</option>`);
}

async function rename(member, name) {
  const before = member.petname ?? "";
  await api.setPetname({ user: member.user, name: name.trim() || null });
  await refresh();
  tell(text.saved, () => rename({ ...member, petname: name }, before));
}

/** Gives a person one role, a lower one after a question; a higher one their own computers pass on. True: it was done. */
export async function change(repo, devices, permission, isSure = false) {
  const [{ permission: before }] = devices;
  const isLower = LEVELS.indexOf(permission) < LEVELS.indexOf(before);
  let staying = "";
  if (isLower) {
    const role = text.permissions[permission];
    if (!isSure && !(await ask(text.lowerQuestion(nameOf(devices[0]), role, repo.name), text.doRemoval(role)))) return false;
    const done = await removeOrPropose(repo, devices, permission);
    if (!done) return false;
    staying = text.staying(done.other_devices.length);
  } else {
    await api.grantPermission({ repo: repo.repo, user: devices[0].user, permission });
  }
  await refresh();
  tell(text.mayNow(nameOf(devices[0]), text.permissions[permission]) + staying, () => change(repo, devices.map((one) => ({ ...one, permission })), before, true));
  return true;
}

async function exclude(repo, devices) {
  const done = await removeOrPropose(repo, devices);
  if (!done) return;
  await refresh();
  tell(text.excluded(nameOf(devices[0]), done.voided) + text.staying(devices.length > 1 ? done.other_devices.length : 0));
}

/** What a removal did; null where signers have to approve of it first. */
async function removeOrPropose(repo, devices, keeps) {
  const [{ user, person }] = devices;
  const removal = { repo: repo.repo, user, ...(keeps && { keeps }), person: devices.length > 1 || person === user };
  try {
    return await api.removeMember(removal);
  } catch (error) {
    if (error.code !== "needs_quorum") throw error;
    if (!(await ask(text.proposeQuestion(nameOf(devices[0]), keeps && text.permissions[keeps]), text.propose))) return null;
    await api.proposeRemoval(removal);
    tell(text.proposed);
    return null;
  }
}
