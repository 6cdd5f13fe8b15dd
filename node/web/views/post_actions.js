// What one does with a post: reply to it, edit, delete or hide it; and what became of it.

import { Action, Form, Loaded, useLoaded } from "../parts/form.js";
import { when, whoOf } from "../parts/format.js";
import { html } from "../parts/html.js";
import { Markdown } from "../parts/markdown.js";
import { addressOf, may, status } from "../state/node.js";
import { api, tell } from "../state/session.js";
import { text } from "../strings/en.js";
import { useEffect, useRef, useState } from "../vendor/preact-hooks.js";

const VERSIONS = 50;
const THREAD = 200;
const ID = /@([a-z2-7]{52})/g;

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
  return html`<p class="facts relation"><a href=${addressOf(branch, "commit", about)} tabindex=${tab}>${said}</a></p>`;
}

/** What stands instead of the text of a post that was taken away, or null. */
export function goneNote(item) {
  if (item.deleted) return text.deletedByAuthor;
  return item.hidden_by ? text.hiddenBy(item.hidden_by_name || item.hidden_by.slice(0, 12)) : null;
}

/** `again` is called with the post's id when something was done. */
export function PostActions({ item, repo, branch, tab, again }) {
  const [mode, setMode] = useState("");
  if (!isPost(item)) return null;
  const isOwn = item.author === status.value?.user;
  const isGone = item.deleted || item.hidden_by;
  const mayWrite = may(repo, "write");
  const done = async () => {
    setMode("");
    await again(item.commit);
  };
  const button = (name, label) => html`<button type="button" class="quiet" tabindex=${tab} aria-expanded=${mode === name}
    onClick=${() => setMode(mode === name ? "" : name)}>${label}</button>`;
  return html`<div class="post-actions">
      ${mayWrite && button("reply", text.reply)}
      ${mayWrite && isOwn && !isGone && button("edit", text.edit)}
      ${mayWrite && isOwn && !item.deleted && html`<${Action} class="quiet" tab=${tab} question=${text.deleteQuestion} act=${async () => {
        await api.deletePost({ commit: item.commit });
        await done();
      }}>${text.delete}<//>`}
      ${may(repo, "admin") && !item.deleted && html`<${Action} class="quiet" tab=${tab} act=${async () => {
        await hide(item, !item.hidden_by);
        await done();
        if (!item.hidden_by) tell(text.hidden, () => hide(item, false).then(done));
      }}>${item.hidden_by ? text.showAgain : text.hide}<//>`}
    </div>
    ${mode && html`<${Writer} key=${mode} mode=${mode} item=${item} done=${done} cancel=${() => setMode("")} />`}`;
}

function hide(item, hidden) {
  return api.hidePost({ commit: item.commit, hidden });
}

function Writer({ mode, item, done, cancel }) {
  const area = useRef(null);
  useEffect(() => area.current.focus(), []);
  const names = new Map((item.mentions ?? []).map((one) => [one.user, one.name]));
  const before = mode === "edit" ? (item.text ?? "").replace(ID, (all, id) => (names.get(id) ? `@[${names.get(id)}]` : all)) : "";
  const send = async ({ said }) => {
    const request = { commit: item.commit, text: said, resolve_mentions: true };
    await (mode === "edit" ? api.editPost(request) : api.replyToPost(request));
    await done();
    if (mode === "edit") tell(text.saved, () => api.editPost({ ...request, text: before }).then(done));
  };
  const key = (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) event.target.form.requestSubmit();
    if (event.key === "Escape") {
      event.stopPropagation();
      cancel();
    }
  };
  return html`<${Form} class="form writer" button=${mode === "edit" ? text.save_ : text.reply} send=${send}>
    <label><span class="unseen">${mode === "edit" ? text.newText : text.yourReply}</span>
      <textarea ref=${area} name="said" rows="3" required maxlength="262144" defaultValue=${before} onKeyDown=${key}></textarea></label><//>`;
}

/** The replies of a post's thread, and what it said before: opened on request. */
export function Story({ commit, branch, names }) {
  return html`
    <${Opened} title=${text.thread}>${() => html`<${Thread} commit=${commit} branch=${branch} names=${names} />`}<//>
    <${Opened} title=${text.versions}>${() => html`<${Versions} commit=${commit} />`}<//>`;
}

function Opened({ title, children }) {
  const [isOpen, setOpen] = useState(false);
  return html`<details onToggle=${(event) => setOpen(event.currentTarget.open)}><summary>${title}</summary>${isOpen && children()}</details>`;
}

function Thread({ commit, branch, names }) {
  const loaded = useLoaded(() => api.showThread({ commit: commit.commit, limit: THREAD }), [commit.commit]);
  return html`<${Loaded} of=${loaded}>${({ items }) => html`<ul class="plain" id="thread">${items.map((item) => html`<li key=${item.commit}>
    <p class="by"><bdi class="who">${whoOf(item, names)}</bdi> <a class="when" href=${addressOf(branch.branch, "commit", item.commit)}>${when(item.time)}</a></p>
    <div class="said" dir="auto">${item.text ? html`<${Markdown} source=${item.text} tab=${0} mentions=${item.mentions} />` : (goneNote(item) ?? item.kind)}</div></li>`)}</ul>`}<//>`;
}

function Versions({ commit }) {
  const loaded = useLoaded(() => api.showVersions({ commit: commit.commit, limit: VERSIONS }), [commit.commit]);
  return html`<${Loaded} of=${loaded}>${({ versions }) => html`<ol class="plain" id="versions">${versions.map((one) => html`<li key=${one.commit}>
    <p class="facts">${text.versionKinds[one.version] ?? one.version} · ${when(one.time)}</p>
    ${one.text !== null && html`<div class="said" dir="auto"><${Markdown} source=${one.text} tab=${0} mentions=${one.mentions} /></div>`}</li>`)}</ol>`}<//>`;
}
