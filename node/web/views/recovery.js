// Friends who together let in somebody whose keys are lost: who they are, what one signs as one, and what enough of them do.

import { Action, Empty, Form, LinkBox, Loaded, ask, useLoaded } from "../parts/form.js";
import { short } from "../parts/format.js";
import { html } from "../parts/html.js";
import { me, refresh } from "../state/node.js";
import { api, tell } from "../state/session.js";
import { text } from "../strings/opened.js";
import { useState } from "../vendor/preact-hooks.js";

const KIND = "ravel:recovery:";

/** What gives a key that friends let in a place of its own. */
export const ownPlace = ({ grant, grantors }) => text.ownPlace(grantors, Boolean(grant));

const linesOf = (said) => [...new Set(said.split("\n").map((line) => line.trim()).filter(Boolean))];
/** Texts as they were pasted: mail breaks them into lines. */
const textsOf = (said) => said.replace(/\s+/g, "").split(new RegExp(`(?=${KIND})`)).filter(Boolean);
const called = (names, ids) => names.map((name, at) => name || short(ids[at])).join(", ");

/** For the person of this node alone. `isLost`: it came to be let in itself. */
export function Friends({ isLost }) {
  const loaded = useLoaded(() => api.listFriends(), []);
  return html`<section id="friends"><h3>${text.friendsTitle}</h3><p>${text.friendsAbout}</p>
    <${Loaded} of=${loaded}>${({ repos, persons }) => html`
      ${repos.length ? html`<ul class="plain" id="own-friends">${repos.map((one) => html`<li key=${one.repo}>
        <bdi>${text.friendsOf(one.name, called(one.friend_names, one.friends), one.need)}</bdi>
        ${one.advice && html` <span class="alarm">${text.sentence(text.nodeSaid(one.advice))}</span>`}</li>`)}</ul>`
        : html`<${Empty}><p>${text.noFriends}</p><//>`}
      <${Name} has=${repos.length > 0} again=${loaded.again} />
      ${persons.length > 0 && html`<${Sign} persons=${persons} />`}`}<//>
    <${Finish} />
    <details id="lost-keys" open=${isLost || undefined}><summary>${text.lostKeys}</summary><p>${text.lostKeysAbout}</p>
      <ol>${text.lostKeysSteps.map((step) => html`<li>${step}</li>`)}</ol>
      <p>${text.yourId} <code id="own-id" class="mono id">${me.value?.user}</code></p></details></section>`;
}

function Name({ has, again }) {
  const [failed, setFailed] = useState([]);
  const name = async (friends, need) => {
    const { repos } = await api.nameFriends({ friends, need, only: "" });
    setFailed(repos.filter((one) => one.advice));
    tell(text.friendsNamed(repos.filter((one) => one.changed).length));
    await again();
  };
  return html`<details><summary>${text.nameFriends}</summary><p>${text.nameFriendsAbout}</p>
    <${Form} id="name-friends" button=${text.save_} keep send=${async ({ friends, need }) => {
      const all = linesOf(friends);
      const isAlone = all.length === 1 || need === "1";
      if (!isAlone || (await ask(text.oneFriend(all[0]), text.nameFriends))) await name(all, need ? Number(need) : null);
    }}>
      <label>${text.friendsField} <textarea name="friends" rows="3" required maxlength="4096" spellcheck="false"></textarea></label>
      <label>${text.friendsNeed} <input name="need" type="number" min="1" max="15" /></label><//>
    ${failed.map((one) => html`<p class="alarm" key=${one.repo}><bdi>${one.name}</bdi>: ${text.sentence(text.nodeSaid(one.advice))}</p>`)}
    ${has && html`<${Action} class="danger" question=${text.noFriendsQuestion} act=${() => name([], null)}>${text.takeFriendsBack}<//>`}</details>`;
}

/** Who signs has to know whose key that is: whoever holds it is that person then. */
function Sign({ persons }) {
  const [signed, setSigned] = useState(null);
  const members = [...new Map(persons.map((one) => [one.user, one])).values()];
  return html`<details id="sign"><summary>${text.signTitle}</summary><p>${text.signAbout}</p>
    <${Form} id="sign-recovery" button=${text.signYes} send=${async ({ member, user }) => {
      const { texts } = await api.signRecovery({ member, user: user.trim() });
      setSigned(texts.join("\n"));
    }}>
      <label>${text.signFor} <select name="member">${members.map((one) => html`<option key=${one.user} value=${one.user}>${one.user_name || short(one.user)}</option>`)}</select></label>
      <label>${text.newId} <input name="user" required maxlength="128" autocomplete="off" spellcheck="false" /></label>
      <label class="check"><input type="checkbox" required /> ${text.signMet}</label><//>
    ${signed && html`<${LinkBox} id="signed" link=${signed} about=${text.signedAbout} />`}</details>`;
}

function Finish() {
  const [done, setDone] = useState([]);
  return html`<details id="finish"><summary>${text.finishTitle}</summary><p>${text.finishAbout}</p>
    <${Form} id="finish-recovery" button=${text.finishYes} keep send=${async ({ texts }) => {
      const { repos } = await api.finishRecovery({ texts: textsOf(texts) });
      setDone(repos);
      await refresh();
    }}><label>${text.finishField} <textarea name="texts" rows="4" required spellcheck="false"></textarea></label><//>
    ${done.length > 0 && html`<div id="finished" role="status"><ul class="plain">${done.map((one) => html`<li key=${`${one.repo} ${one.user}`}>
      <bdi>${text.finished(one.name || short(one.repo), one.member_name || (one.member ? short(one.member) : ""), one.let_in, one.already, one.signed, one.need)}</bdi>
      ${one.advice && html` <span class="alarm">${text.sentence(text.nodeSaid(one.advice))}</span>`}
      ${(one.let_in || one.grant) && html`<p class="facts">${text.letInSends} ${text.ownPlaceOf(one.grantors, Boolean(one.grant), one.user)}</p>`}</li>`)}</ul></div>`}</details>`;
}
