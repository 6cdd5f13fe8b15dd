// Who asks to be let into a repo, and what this user asked for.

import { Face } from "../parts/face.js";
import { Action, Loaded, useLoaded } from "../parts/form.js";
import { short, when } from "../parts/format.js";
import { html } from "../parts/html.js";
import { refresh } from "../state/node.js";
import { actions, api, tell } from "../state/session.js";
import { text } from "../strings/opened.js";
import { useRef } from "../vendor/preact-hooks.js";
import { roles } from "./person.js";

/** For admins: requests that wait. */
export function Requests({ repo }) {
  const loaded = useLoaded(() => api.listRequests({ repo: repo.repo }), [repo.repo, repo.requests]);
  const again = renewed(loaded);
  return html`<h3>${text.asking(repo.requests)}</h3>
    <${Loaded} of=${loaded} lines=${1}>${({ requests }) => html`
      <ul id="requests">${requests.filter((one) => one.status === "waiting").map((one) => html`<${Request} key=${one.request} one=${one} repo=${repo} again=${again} />`)}</ul>`}<//>`;
}

function renewed(loaded) {
  return async () => {
    await loaded.again();
    await refresh();
  };
}

function Request({ one, repo, again }) {
  const role = useRef(null);
  const answer = (accepts) => async () => {
    await api.answerRequest({ repo: repo.repo, request: one.request, accepts, ...(accepts && { permission: role.current.value }) });
    await again();
    tell(accepts ? text.letIn(one.name || short(one.user)) : text.notLetIn(one.name || short(one.user)));
  };
  return html`<li class="card ask">
    <div class="who"><${Face} id=${one.user} name=${one.name} /><span class="grow"><b><bdi>${one.name || short(one.user)}</bdi></b>
      <span class="facts">${text.asksFor(one.permission, when(one.asked_at))}</span></span></div>
    ${one.looks_alike && html`<p class="alarm">${text.looksAlike} <span class="id">${short(one.user)}</span></p>`}
    <p class="facts">${text.codeAbout}</p><${Code} of=${one.code} />
    <div class="buttons"><${Action} class="main" act=${answer(true)}>${text.letInNow}<//><${Action} act=${answer(false)}>${text.refuse}<//>
      <label class="facts">${text.theyMay}: <select ref=${role}>${roles(repo, one.permission)}</select></label></div>
  </li>`;
}

/** Six words, which two people compare. */
function Code({ of }) {
  return html`<ul class="code">${of.split(" ").map((word, index) => html`${index ? " " : ""}<li>${word}</li>`)}</ul>`;
}

/** What this user asked for and is not let into: how it stands, and the codes to compare. */
export function Asked() {
  const loaded = useLoaded(async () => (actions.value.includes("node") ? (await api.listAllRequests()).made : []), []);
  const made = (loaded.data ?? []).filter((one) => one.status !== "accepted");
  return made.length > 0 && html`<ul id="asked">${made.map((one) => html`<li class="asked" key=${one.repo}>
    <p><bdi class="person">${one.repo_name || short(one.repo)}</bdi> <strong>${text.askStates[one.status] ?? one.status}</strong></p>
    <p class="facts">${text.askedOf(one.admin_name || short(one.admin), when(one.expires_at))}</p>
    ${one.reason && html`<p class="alarm">${text.sentence(text.nodeSaid(one.reason))}</p>`}
    <p class="facts">${text.codeAbout}</p><${Code} of=${one.code} />
    ${["sending", "waiting"].includes(one.status) && html`<${Action} question=${text.cancelQuestion(one.repo_name)} act=${async () => {
      await api.cancelRequest({ request: one.repo });
      await loaded.again();
    }}>${text.cancelRequest}<//>`}</li>`)}</ul>`;
}
