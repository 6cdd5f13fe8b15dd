// How others get in: one dialog with the three kinds of links, and those that are open.

import { Icon } from "../parts/face.js";
import { Action, Form, LinkBox, Loaded, describeLink, useLoaded } from "../parts/form.js";
import { short, when } from "../parts/format.js";
import { html } from "../parts/html.js";
import { INVITE, beside, refresh, route } from "../state/node.js";
import { api } from "../state/session.js";
import { text } from "../strings/opened.js";
import { useEffect, useRef, useState } from "../vendor/preact-hooks.js";

const DAY_SECONDS = 86_400;
const DAYS = [1, 7, 30, 365];
const USES = [1, 5, 25, 1000];
const KINDS = ["join", "ask", "read"];
const INVITED = ["write", "read"];

export function Invite({ repo }) {
  const [isOpen, setOpen] = useState(false);
  const isAsked = route.value.panel === "members" && route.value.argument === INVITE;
  useEffect(() => isAsked && setOpen(true), [isAsked]);
  const end = () => {
    setOpen(false);
    if (isAsked) location.replace(beside("members"));
  };
  return html`<button type="button" id="invite-somebody" class="main" onClick=${() => setOpen(true)}><${Icon} name="invite" size="s" />${text.invite}</button>
    ${isOpen && html`<${Dialog} repo=${repo} end=${end} />`}`;
}

function Dialog({ repo, end }) {
  const dialog = useRef(null);
  const [kind, setKind] = useState(KINDS[0]);
  const [made, setMade] = useState(null);
  useEffect(() => dialog.current.showModal(), []);
  const send = async ({ permission, days, uses }) => {
    const common = { repo: repo.repo, expires_seconds: Number(days) * DAY_SECONDS };
    let [answer, field] = [null, "invitation"];
    if (kind === "join") answer = await api.createInvitation({ ...common, permission, uses: Number(uses) });
    else if (kind === "ask") [answer, field] = [await api.makeAskLink(common), "link"];
    else [answer, field] = [await api.shareRepo({ repo: repo.repo }), "capability"];
    const about = text.linkAbout[kind](permission, Number(uses), answer.expires_at && when(answer.expires_at));
    const described = { ...(await describeLink(answer, field)), about };
    setMade({ of: kind, id: answer.id, described }); // another kind may be chosen by now, and its words do not fit this link
    await refresh();
  };
  const choose = (name, label, options) => html`<label>${label} <select name=${name}>${options.map(([value, said, isChosen]) => html`<option value=${value} selected=${isChosen}>${said}</option>`)}</select></label>`;
  return html`<dialog ref=${dialog} id="invite-dialog" aria-labelledby="invite-title" onClose=${end}>
    <header><h2 id="invite-title">${text.inviteTo(repo.name)}</h2>
      <button type="button" class="quiet icon" aria-label=${text.closeDialog} onClick=${() => dialog.current.close()}><${Icon} name="close" /></button></header>
    <div class="body">
      <${Form} id="invite" button=${text.makeLink} keep send=${send}>
        <fieldset class="choice unfielded"><legend class="unseen">${text.inviteTo(repo.name)}</legend>${KINDS.map((one) => html`<label>
          <input type="radio" name="kind" value=${one} checked=${one === kind} autofocus=${one === KINDS[0]} onChange=${() => { setKind(one); setMade(null); }} />
          <span><b>${text.inviteKinds[one][0]}</b><span class="facts">${text.inviteKinds[one][1]}</span></span></label>`)}</fieldset>
        <div class="form inline">
          ${kind === "join" && choose("permission", text.theyMay, INVITED.map((one) => [one, text.mayDo[one]]))}
          ${kind === "join" && choose("uses", text.goodFor, USES.map((one) => [one, text.persons(one)]))}
          ${kind !== "read" && choose("days", text.until, DAYS.map((one) => [one, text.inDays(one), one === 7]))}</div>
      <//>
      ${made?.of === kind && html`<div id="invitation">${made.id && html`<${Used} key=${made.id} repo=${repo} id=${made.id} />`}
        <${LinkBox} id=${{ join: "link", ask: "asking", read: "reading" }[kind]} ...${made.described} /></div>`}
    </div>
    <footer><span class="facts">${kind === "read" ? "" : text.endAbout}</span><button type="button" onClick=${() => dialog.current.close()}>${text.done}</button></footer>
  </dialog>`;
}

/** Who joined by an invitation while one looks at it. */
function Used({ repo, id }) {
  const one = useLoaded(() => api.listInvitations({ repo: repo.repo }), [id]).data?.invitations.find(({ invitation }) => invitation === id);
  const names = one?.joined.map((user, at) => one.joined_names[at] || short(user)) ?? [];
  return html`<p id="joined-by-it" class="good" role="status">${names.length > 0 && html`<bdi>${text.joinedByIt(names, names.length >= one.uses)}</bdi>`}</p>`;
}

/** Invitations and links that ask, which still let somebody in; each can be ended. */
export function OpenLinks({ repo }) {
  const loaded = useLoaded(async () => {
    const [{ invitations }, { links }] = await Promise.all([api.listInvitations({ repo: repo.repo }), api.listAskLinks({ repo: repo.repo })]);
    const isGood = ({ expires_at: end }) => end * 1000 > Date.now();
    return { invitations: invitations.filter((one) => !one.revoked && isGood(one) && one.joined.length < one.uses), links: links.filter((one) => !one.closed && isGood(one)) };
  }, [repo.repo, repo.requests]);
  const ended = (act) => async () => {
    await act();
    await loaded.again();
    await refresh();
  };
  const row = (key, icon, title, said, act, question) => html`<li key=${key} class="line"><${Icon} name=${icon} size="s" /><span class="grow"><b>${title}</b><span class="facts">${said}</span></span>
    <${Action} class="quiet" question=${question} yes=${text.close} label=${text.endOf(title)} act=${ended(act)}>${text.close}<//></li>`;
  return html`<${Loaded} of=${loaded} lines=${1}>${({ invitations, links }) => invitations.length + links.length > 0 && html`
    <h3>${text.openLinks}</h3><ul class="plain" id="open-links">
    ${invitations.map((one) => row(one.invitation, "link", text.inviteKinds.join[0], text.invitation(text.mayDo[one.permission] ?? one.permission, one.uses - one.joined.length, when(one.expires_at)),
      () => api.revokeInvitation({ repo: repo.repo, invitation: one.invitation })))}
    ${links.map((one) => row(one.lobby, "invite", text.inviteKinds.ask[0], text.askLink(one.requests, when(one.expires_at), one.full),
      () => api.closeAskLink({ repo: repo.repo, lobby: one.lobby }), text.closeQuestion))}</ul>`}<//>`;
}
