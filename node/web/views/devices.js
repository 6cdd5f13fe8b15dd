// The devices of this person, and how another joins them.

import { Action, Empty, Form, LinkBox, Loaded, describeLink, useLoaded } from "../parts/form.js";
import { short } from "../parts/format.js";
import { html } from "../parts/html.js";
import { refresh } from "../state/node.js";
import { api, isPerson, tell } from "../state/session.js";
import { text } from "../strings/opened.js";
import { useState } from "../vendor/preact-hooks.js";
import { Friends, ownPlace } from "./recovery.js";

function letIn(one) {
  const friends = one.friend_names.map((name, at) => name || short(one.friends[at]));
  return one.this ? text.deviceBack(one.name, friends, ownPlace(one)) : text.deviceLetIn(short(one.device), one.name, friends);
}

export function Devices({ argument }) {
  const loaded = useLoaded(() => api.listDevices(), []);
  const [made, setMade] = useState(null);
  const [left, setLeft] = useState(null); // what was done, and repos where something is left to do
  const remove = async (one) => {
    const { repos } = await api.removeDevice({ device: one.user });
    const name = one.name || short(one.user);
    setLeft({ said: text.deviceLeft(name), repos: repos.filter((repo) => repo.advice) });
    await loaded.again();
    await refresh();
    tell(text.deviceRemoved(name, repos.filter((repo) => repo.excluded).length));
  };
  const promote = async (device, name) => {
    const { repos } = await api.promoteDevice({ device });
    setLeft({ said: text.notPassed(name), repos: repos.filter((repo) => repo.advice) });
    await loaded.again();
    await refresh();
    const signs = repos.filter((repo) => repo.signs).map((repo) => repo.name);
    tell(text.placePassed(name, repos.filter((repo) => repo.moved).length) + (signs.length ? text.signsNoMore(signs) : ""), null, true);
  };
  return html`<p>${text.devicesAbout}</p>
    <${Loaded} of=${loaded}>${({ devices, joining, stayed, ...list }) => html`
      ${joining && html`<p class="alarm">${text.deviceJoining}</p>`}
      ${list.removed_by !== null ? html`<p id="device-removed" class="alarm">${text.deviceOut(list.removed_by_name || short(list.removed_by))}</p>`
        : list.moved_to !== null ? html`<p id="device-moved">${text.deviceMoved(list.moved_to_name || short(list.moved_to))}</p>
          ${isPerson.value && html`<${Action} id="pass-rest" act=${() => promote(list.moved_to, list.moved_to_name || short(list.moved_to))}>${text.passRest}<//>`}`
        : devices.length < 2 && !joining && html`<${Empty}><p>${text.noDevices}</p><//>`}
      ${list.let_in.map((one) => html`<p class="alarm" key=${`${one.device} ${one.repo}`}><bdi>${letIn(one)}</bdi></p>`)}
      ${stayed.length > 0 && html`<ul class="plain" id="devices-stayed">${stayed.map((one) => html`<li key=${`${one.device} ${one.repo}`} class="alarm">
        <bdi>${text.deviceStayed(one.called || short(one.device), one.name)}</bdi> <span class="facts">${text.sentence(text.nodeSaid(one.advice))}</span></li>`)}</ul>`}
      <ul class="plain" id="devices">${devices.map((one) => html`<li key=${one.user}>
        <bdi class="person">${one.name || short(one.user)}</bdi> <span class="facts">${[one.this && text.thisDevice, one.first && text.firstDevice].filter(Boolean).join(" · ")}</span>
        ${one.repos.map((repo) => html`<p class=${repo.lacking ? "alarm" : "facts"} key=${repo.repo}><bdi>${text.deviceMay(repo.name, text.permissions[repo.permission], repo.lacking)}</bdi></p>`)}
        ${!one.this && isPerson.value && devices.some((other) => other.this && other.first) && html`<${Action} class="promote" question=${text.promoteQuestion(one.name || short(one.user))} yes=${text.promoteYes} act=${() => promote(one.user, one.name || short(one.user))}>${text.makeFirst}<//> `}
        ${!one.this && isPerson.value && html`<${Action} class="danger" question=${text.removeDeviceQuestion(one.name || short(one.user))} yes=${text.removeOf(one.name || short(one.user))} act=${() => remove(one)}>${text.remove}<//>`}</li>`)}</ul>`}<//>
    ${left?.repos.length > 0 && html`<div id="device-left" class="asked" role="status"><p class="alarm">${left.said}</p>
      <ul class="plain">${left.repos.map((repo) => html`<li key=${repo.repo}><bdi>${repo.name}</bdi> <p class="facts">${text.sentence(text.nodeSaid(repo.advice))}</p></li>`)}</ul></div>`}
    ${!isPerson.value && html`<p class="facts">${text.devicesAtMachine}</p>`}
    ${isPerson.value && loaded.data?.moved_to === null && html`<div class="buttons"><${Action} id="add-device" act=${async () => setMade(await describeLink(await api.inviteDevice(), "link"))}>${text.addDevice}<//>
    <${Action} act=${async () => {
      const { given } = await api.syncDevices();
      tell(text.handedOn(given.length));
    }}>${text.syncDevices}<//></div>`}
    ${made && html`<${LinkBox} ...${made} about=${text.deviceLinkAbout} />`}
    ${isPerson.value && html`<details><summary>${text.becomeDevice}</summary>
      <p>${text.becomeDeviceAbout}</p>
      <${Form} button=${text.join} send=${async ({ link }) => {
        await api.joinAsDevice({ link: link.trim() });
        await loaded.again();
        await refresh();
      }}><label>${text.link} <textarea name="link" rows="3" required maxlength="32768" spellcheck="false"></textarea></label><//></details>
      <${Friends} isLost=${argument === "lost"} />`}`;
}
