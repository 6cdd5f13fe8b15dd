// What one does with a post: reply to it, edit, delete or hide it; and what became of it.

import { Face, Icon } from "../parts/face.js";
import { Action, Loaded, useLoaded } from "../parts/form.js";
import { when } from "../parts/format.js";
import { html } from "../parts/html.js";
import { Markdown } from "../parts/markdown.js";
import { addressOf, go, isMine, may } from "../state/node.js";
import { api, tell } from "../state/session.js";
import { text } from "../strings/text.js";
import { useState } from "../vendor/preact-hooks.js";
import { writeAbout } from "./compose.js";

const VERSIONS = 50;

/** Whether a commit is a post that stands for itself: no edit and no deletion of another. */
export function isPost(item) {
  return item.kind === "post" && !item.edits && !item.deletes;
}

/** What the post answers, and what it edits or deletes. */
export function Relation({ item, branch, tab }) {
  const { reply_to: answered } = item;
  const about = answered?.commit ?? item.edits ?? item.deletes;
  if (!about) return null;
  const said = answered
    ? text.replyTo(answered.author_name || answered.author?.slice(0, 12) || "", text.answered[answered.state] ?? answered.state)
    : item.edits ? text.editsPost : text.deletesPost;
  return html`<p class="relation"><a class="re" href=${addressOf(branch, "commit", about)} tabindex=${tab}>
    ${answered?.author && html`<${Face} id=${answered.author} name=${answered.author_name} size="xs" />`}<b class="cut">${answered && html`<span class="unseen">${text.answers} </span>`}${said}</b>
    ${answered?.text && html` <span class="cut" dir="auto">${answered.text}</span>`}</a></p>`;
}

/** What stands instead of the text of a post that was taken away, or null. */
export function goneNote(item) {
  if (item.deleted) return text.deletedByAuthor;
  return item.hidden_by ? text.hiddenBy(item.hidden_by_name || item.hidden_by.slice(0, 12)) : null;
}

/** What floats over a post beside a mouse. The rest is beside it, in what is about the post. */
export function PostTools({ item, repo, branch, tab }) {
  if (!isPost(item)) return null;
  const mayWrite = may(repo, "write");
  const isOwn = isMine(item.author);
  const isGone = item.deleted || item.hidden_by;
  const tool = (label, icon, act, key = "") => html`<button type="button" class="quiet icon" tabindex=${tab} data-key=${key} aria-label=${label} title=${label} onClick=${act}><${Icon} name=${icon} /></button>`;
  return html`<div class="does" role="group" aria-label=${text.postTools}>
    ${mayWrite && tool(text.reply, "reply", () => writeAbout("reply", item), "r")}
    ${mayWrite && isOwn && !isGone && tool(text.edit, "edit", () => writeAbout("edit", item), "e")}
    ${tool(text.aboutPost, "more", () => go(branch, "commit", item.commit))}
  </div>`;
}

/** All that one can do with a post. `again` is called with its id when something was done. */
export function PostActions({ item, repo, again }) {
  if (!isPost(item)) return null;
  const isOwn = isMine(item.author);
  const isGone = item.deleted || item.hidden_by;
  const mayWrite = may(repo, "write");
  const done = () => again(item.commit);
  const write = (mode) => () => {
    go(item.branch);
    writeAbout(mode, item);
  };
  return html`<div class="post-actions rows">
    ${mayWrite && html`<button type="button" class="line plain" onClick=${write("reply")}><${Icon} name="reply" size="s" />${text.reply}</button>`}
    ${mayWrite && isOwn && !isGone && html`<button type="button" class="line plain" onClick=${write("edit")}><${Icon} name="edit" size="s" />${text.edit}</button>`}
    ${may(repo, "admin") && !item.deleted && html`<${Action} class="line plain" act=${async () => {
      await hide(item, !item.hidden_by);
      await done();
      if (!item.hidden_by) tell(text.hidden, () => hide(item, false).then(done));
    }}><${Icon} name="eye" size="s" />${item.hidden_by ? text.showAgain : text.hide}<//>`}
    ${mayWrite && isOwn && !item.deleted && html`<${Action} class="line plain danger" question=${text.deleteQuestion} yes=${text.delete} act=${async () => {
      await api.deletePost({ commit: item.commit });
      await done();
    }}><${Icon} name="trash" size="s" />${text.delete}<//>`}
  </div>`;
}

function hide(item, hidden) {
  return api.hidePost({ commit: item.commit, hidden });
}

/** The way to a post's thread, and what it said before: opened on request. */
export function Story({ commit, branch }) {
  return html`<a class="line plain" href=${addressOf(branch.branch, "thread", commit.commit)}><${Icon} name="thread" size="s" /><span class="grow">${text.panels.thread}</span></a>
    <${Opened} title=${text.versions}>${() => html`<${Versions} commit=${commit} />`}<//>`;
}

function Opened({ title, children }) {
  const [isOpen, setOpen] = useState(false);
  return html`<details onToggle=${(event) => setOpen(event.currentTarget.open)}><summary>${title}</summary>${isOpen && children()}</details>`;
}

function Versions({ commit }) {
  const loaded = useLoaded(() => api.showVersions({ commit: commit.commit, limit: VERSIONS }), [commit.commit]);
  return html`<${Loaded} of=${loaded}>${({ versions }) => html`<ol class="plain" id="versions">${versions.map((one) => html`<li key=${one.commit}>
    <p class="facts">${text.versionKinds[one.version] ?? one.version} · ${when(one.time)}</p>
    ${one.text !== null && html`<div class="said" dir="auto"><${Markdown} source=${one.text} tab=${0} mentions=${one.mentions} /></div>`}</li>`)}</ol>`}<//>`;
}
