// Who asks to be let into a repo, the links by which they ask, and what this user asked for.

import { Action, Form, LinkBox, Loaded, describeLink, useLoaded } from "../parts/form.js";
import { short, when } from "../parts/format.js";
import { html } from "../parts/html.js";
import { refresh } from "../state/node.js";
import { actions, api, tell } from "../state/session.js";
import { text } from "../strings/en.js";
import { useState } from "../vendor/preact-hooks.js";

const DAY_SECONDS = 86_400;

/** For admins: requests that wait. */
export function Requests({ repo }) {
  const loaded = useLoaded(() => api.listRequests({ repo: repo.repo }), [repo.repo, repo.requests]);
  const again = renewed(loaded);
  return html`<h3>${text.asking(repo.requests)}</h3>
    <${Loaded} of=${loaded} lines=${1}>${({ requests }) => html`
      <ul class="plain" id="requests">${requests.filter((one) => one.status === "waiting").map((one) => html`<${Request} key=${one.request} one=${one} repo=${repo} again=${again} />`)}</ul>`}<//>`;
}

/** For admins: links that ask, and another link. Apart from the requests, which come and go: the new link stays where it is. */
export function AskLinks({ repo }) {
  const loaded = useLoaded(() => api.listAskLinks({ repo: repo.repo }), [repo.repo, repo.requests]);
  const [made, setMade] = useState(null);
  const again = renewed(loaded);
  const send = async ({ days }) => {
    const answer = await api.makeAskLink({ repo: repo.repo, expires_seconds: Number(days) * DAY_SECONDS });
    setMade(await describeLink(answer, "link"));
    await again();
  };
  return html`<h3>${text.requests}</h3>
    <${Loaded} of=${loaded} lines=${1}>${({ links }) => html`
      ${links.some(isOpen) && html`<details><summary>${text.askLinks}</summary><ul class="plain">${links.filter(isOpen).map((one) => html`<li key=${one.lobby}>
        ${text.askLink(one.requests, when(one.expires_at), one.full)}
        <${Action} class="quiet" question=${text.closeQuestion} act=${() => api.closeAskLink({ repo: repo.repo, lobby: one.lobby }).then(again)}>${text.close}<//></li>`)}</ul></details>`}`}<//>
    <p class="facts">${text.askAbout}</p>
    <${Form} id="ask-link" class="form inline" button=${text.makeLink} keep send=${send}>
      <label>${text.forDays} <input name="days" type="number" min="1" max="366" defaultValue="7" required /></label><//>
    ${made && html`<${LinkBox} id="asking" ...${made} about=${text.askLinkAbout} />`}`;
}

function renewed(loaded) {
  return async () => {
    await loaded.again();
    await refresh();
  };
}

function isOpen(link) {
  return !link.closed && link.expires_at * 1000 > Date.now();
}

function Request({ one, repo, again }) {
  const answer = (accepts) => async () => {
    await api.answerRequest({ repo: repo.repo, request: one.request, accepts });
    await again();
    tell(accepts ? text.letIn(one.name || short(one.user)) : text.notLetIn(one.name || short(one.user)));
  };
  return html`<li>
    <p><bdi class="person">${one.name || short(one.user)}</bdi> <span class="id">${short(one.user)}</span> <span class="facts">${text.asksFor(one.permission, when(one.asked_at))}</span></p>
    ${one.looks_alike && html`<p class="alarm">${text.looksAlike}</p>`}
    <p class="facts">${text.codeAbout}</p><p class="code">${one.code}</p>
    <div class="buttons"><${Action} class="main" act=${answer(true)}>${text.accept}<//><${Action} act=${answer(false)}>${text.refuse}<//></div>
  </li>`;
}

/** What this user asked for and is not let into: how it stands, and the codes to compare. */
export function Asked() {
  const loaded = useLoaded(async () => (actions.value.includes("node") ? (await api.listAllRequests()).made : []), []);
  const made = (loaded.data ?? []).filter((one) => one.status !== "accepted");
  return made.length > 0 && html`<ul id="asked">${made.map((one) => html`<li class="asked" key=${one.repo}>
    <p><bdi class="person">${one.repo_name || short(one.repo)}</bdi> <strong>${text.askStates[one.status] ?? one.status}</strong></p>
    <p class="facts">${text.askedOf(one.admin_name || short(one.admin), when(one.expires_at))}</p>
    ${one.reason && html`<p class="alarm">${text.sentence(one.reason)}</p>`}
    <p class="facts">${text.codeAbout}</p><p class="code">${one.code}</p>
    ${["sending", "waiting"].includes(one.status) && html`<${Action} question=${text.cancelQuestion(one.repo_name)} act=${async () => {
      await api.cancelRequest({ request: one.repo });
      await loaded.again();
    }}>${text.cancelRequest}<//>`}</li>`)}</ul>`;
}
