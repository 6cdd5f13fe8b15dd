// A new repo, and repos of others: by an invitation or by a link for readers.

import { Icon, Tile } from "../parts/face.js";
import { Form } from "../parts/form.js";
import { cut, when } from "../parts/format.js";
import { html } from "../parts/html.js";
import { go, me, refresh, repos } from "../state/node.js";
import { api, dismiss, problem, tell } from "../state/session.js";
import { wanted } from "../state/timeline.js";
import { text } from "../strings/opened.js";
import { useEffect, useRef, useState } from "../vendor/preact-hooks.js";
import { Asked } from "./requests.js";
import { Scan } from "./scan.js";

const LINK = /^ravel:(invite|ask|read|branch):[a-z2-7]{40}/;
const LOOK_MS = 200; // after the last key, or what was pasted

export function NewRepo() {
  return html`<p>${text.newRepoAbout}</p>
    <${Form} id="new-repo" button=${text.create} send=${async ({ name }) => {
      const made = await api.createRepo({ name: name.trim() });
      wanted.value = { branch: await open(made.repo), writes: true };
      tell(text.created(made.name));
    }}><label>${text.nameOfRepo} <input data-first name="name" required maxlength="255" autocomplete="off" /></label><//>`;
}

/** A link as it is, of what mail and chats make of it: they break it, and add invisible marks. */
const linkIn = (said) => said.replace(/[\s\p{Cf}]/gu, "");

export function JoinRepo() {
  const field = useRef(null);
  const due = useRef(0);
  const [seen, setSeen] = useState(null); // what the link holds, and the link
  const look = async (link) => {
    setSeen({ ...(await api.lookAtLink({ link })), link });
    problem.value = ""; // of a link that was here before
  };
  const lookSoon = () => {
    const link = linkIn(field.current.value);
    clearTimeout(due.current);
    if (link === seen?.link) return;
    setSeen(null);
    if (LINK.test(link)) due.current = setTimeout(() => look(link).catch(() => undefined), LOOK_MS); // what is wrong is said when it is pressed
  };
  useEffect(() => () => clearTimeout(due.current), []);
  const send = async ({ link: said, follow }, form) => {
    const link = linkIn(said);
    if (seen?.link !== link) return look(link); // nothing is done before one has seen where it leads
    const isInvitation = ["invite", "ask"].includes(seen.kind);
    const made = isInvitation
      ? await api.joinRepo({ invitation: link, follow: Boolean(follow) })
      : await api.followRepo({ capability: link });
    if (seen.kind === "ask") {
      setSeen(null);
      form.reset(); // which may be gone: with the first repo the page is another
      await refresh();
      return tell(text.asked(made.name));
    }
    await open(made.repo);
    return isInvitation && !follow ? tellWhenJoined(made.repo, seen.name) : tell(text.following(made.name));
  };
  const enter = (event) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    event.target.form.requestSubmit();
  };
  return html`<${Asked} />
    <p>${text.joinAbout}</p>
    <${Scan} found=${(link) => { field.current.value = link; field.current.focus(); lookSoon(); }} />
    <${Form} id="join-repo" keep button=${seen ? text.joinNamed[seen.kind](cut(seen.name)) : text.lookAtLink} send=${send}>
      <label>${text.link} <textarea ref=${field} data-first name="link" rows="4" required maxlength="32768" spellcheck="false" placeholder=${text.linkHint} onInput=${lookSoon} onKeyDown=${enter}></textarea></label>
      ${seen && html`<${Holds} of=${seen} />`}
      ${seen?.kind === "invite" && html`<label class="check"><input type="checkbox" name="follow" /> ${text.followToo}</label>`}
    <//>`;
}

/** What a link holds, as its maker says: where it leads, what one becomes, and until when. */
function Holds({ of }) {
  const from = [...new Set(of.peers.map((one) => text.calledPeer(one) || one.address))];
  const own = me.value?.name;
  const line = (icon, said) => said && html`<li><${Icon} name=${icon} size="s" /><span>${said}</span></li>`;
  return html`<div class="card link-holds" id="link-holds" role="status"><div class="who"><${Tile} id=${of.repo} name=${of.name} />
      <span class="grow"><b class="cut"><bdi>${cut(of.name)}</bdi></b><span class="facts">${text.linkGives[of.kind](of.by ? cut(of.by) : "", of.permission)}</span></span>
      ${of.expires_at !== null && html`<span class=${of.expired ? "tag bad" : "tag good"}>${(of.expired ? text.wasGoodUntil : text.goodUntil)(when(of.expires_at))}</span>`}</div>
    <ul class="what small">${line("check", text.linkMakes[of.kind])}
      ${["invite", "ask"].includes(of.kind) && line("person", own && text.othersSee(own))}
      ${line("laptop", of.here !== null ? text.hereAs(of.here) : from.length > 0 && text.comesFrom(from.join(", ")))}
      ${line("info", text.linkClaims)}</ul></div>`;
}

/** Says that a repo is being joined, until its members are known here. */
function tellWhenJoined(id, name) {
  const key = tell(text.joining(name));
  const stop = repos.subscribe((all) => {
    const repo = all?.find((one) => one.repo === id);
    if (repo?.permission === "joining") return;
    if (repo) {
      dismiss(key);
      tell(text.joined(name));
    }
    queueMicrotask(() => stop());
  });
}

async function open(id) {
  await refresh();
  const repo = repos.value.find((one) => one.repo === id);
  const branch = repo?.branches[0]?.branch ?? id;
  go(branch);
  return branch;
}
