// The texts of a branch: written together with others. This and its editor are loaded when the first one is opened.

import { Form, Skeleton } from "../parts/form.js";
import { cut } from "../parts/format.js";
import { html } from "../parts/html.js";
import { openEditor } from "../parts/text_editor.js";
import { FIRST_ROOT, LiveText, bytesOf } from "../state/live_text.js";
import { addressOf, go, isLive, isMine, may, members } from "../state/node.js";
import { api, loginError, problem, sentenceOf, session } from "../state/session.js";
import { text } from "../strings/opened.js";
import { useEffect, useRef, useState } from "../vendor/preact-hooks.js";
import * as library from "../vendor/editor.js";
import { effect, signal, untracked } from "../vendor/signals.js";

const COUNT_MS = 500; // after the last change
const WORD = /[\p{L}\p{N}\p{M}]+(?:['’-][\p{L}\p{N}\p{M}]+)*/gu;
const open = new Set();

/** The text that is shown: `{ live, root, title }`. Null: none. */
export const shownText = signal(null);

effect(() => {
  const state = session.value;
  untracked(() => {
    if (state === "open") for (const live of open) live.resume(api);
    if (state === "locked") pauseAll();
  });
});

/** A page that is locked sends nothing more. What the browser does not keep stays in this tab, and the page says so. */
async function pauseAll() {
  const left = await Promise.all([...open].map((live) => live.pause()));
  const count = left.reduce((total, one) => total + one, 0);
  if (count && session.value === "locked") loginError.value = [loginError.value, text.textsWait(count)].filter(Boolean).join(" ");
}

const flushAll = () => open.forEach((live) => live.flush());
addEventListener("pagehide", flushAll);
document.addEventListener("visibilitychange", () => document.hidden && flushAll());
addEventListener("beforeunload", (event) => {
  flushAll();
  if ([...open].some((live) => !live.isSafe)) event.preventDefault();
});

export function Text({ repo, branch, argument }) {
  const [live, setLive] = useState(null);
  const mayWrite = may(repo, "write");
  useEffect(() => {
    const onError = (error) => (problem.value = sentenceOf(error));
    const opened = new LiveText({ api, branch: branch.branch, mayWrite, Y: library.Y, onError, onEnd: (ended) => open.delete(ended) });
    open.add(opened);
    opened.open().catch((error) => error?.name !== "AbortError" && onError(error));
    setLive(opened);
    return () => opened.close();
  }, [mayWrite]);
  if (!live?.document.value || (!live.isReady.value && !live.unsavedCount.value)) return html`<${Skeleton} lines=${5} />`;
  return html`<${Texts} live=${live} branch=${branch} mayWrite=${mayWrite} root=${argument || FIRST_ROOT} />`;
}

function Texts({ live, branch, mayWrite, root }) {
  live.changes.value; // titles are in the document
  const { texts } = live;
  const titleOf = (one) => (one.root === FIRST_ROOT && one.title === FIRST_ROOT ? text.mainText : one.title);
  const title = titleOf(texts.find((one) => one.root === root) ?? { root, title: root });
  useEffect(() => {
    shownText.value = { live, root, title };
    return () => (shownText.value = null);
  }, [live, root, title]);
  const show = (chosen) => go(branch.branch, "text", chosen);
  return html`
    ${texts.length > 1 && html`<nav class="panel-tabs" aria-label=${text.texts}>${texts.map((one) => html`
      <a key=${one.root} href=${addressOf(branch.branch, "text", one.root)} aria-current=${one.root === root ? "true" : undefined}><bdi>${cut(titleOf(one))}</bdi></a>`)}</nav>`}
    <h3 class="text-title"><bdi>${title}</bdi></h3>
    <${Standing} live=${live} mayWrite=${mayWrite} root=${root} />
    <${Editor} key=${root} live=${live} root=${root} mayWrite=${mayWrite} title=${title} />
    ${mayWrite && live.client.value > 0 && html`<details><summary>${text.newText_}</summary>
      <${Form} id="new-text" class="form inline" button=${text.create} send=${({ title: named }) => show(live.add(named.trim()))}>
        <label>${text.titleOfText} <input name="title" required maxlength="64" pattern=".*\\S.*" autocomplete="off" /></label><//></details>
    <details><summary>${text.renameText}</summary>
      <${Form} id="rename-text" class="form inline" keep key=${title} button=${text.rename} send=${({ title: named }) => live.rename(root, named.trim())}>
        <label>${text.titleOfText} <input name="title" required maxlength="64" pattern=".*\\S.*" defaultValue=${title} autocomplete="off" /></label><//></details>`}
    <a class="button beside" href=${addressOf(branch.branch, "written", root)}>${text.panels.written}</a>`;
}

/** Saved or not, and who else is here. */
function Standing({ live, mayWrite, root }) {
  const count = live.unsavedCount.value;
  const names = live.others.value.map(nameOf);
  const away = !live.isLive.value || !isLive.value;
  live.changes.value; // of what it holds
  const isEmpty = !live.document.value.getText(root).length;
  let state = ["saved", count ? text.textSaving : isEmpty ? text.textEmpty : text.textSaved];
  if (!mayWrite) state = ["read", text.textReadOnly];
  if (away) state = ["offline", live.isKept.value ? text.textOffline(count) : text.textOnlyInTab(count)];
  if (live.refusal.value) state = ["refused", text.textRefused(count)];
  return html`<p class="facts text-standing"><span id="text-state" role="status" data-state=${state[0]} data-unsaved=${count} class=${["offline", "refused"].includes(state[0]) ? "alarm" : ""}>${state[1]}</span>
    ${live.refusal.value && html` <button type="button" class="quiet" onClick=${() => live.tryAgain()}>${text.again}</button>`}
    <span id="text-others" role="status">${text.alsoHere(names)}</span></p>
    ${live.refusal.value && html`<${Unsaved} live=${live} root=${root} />`}`;
}

/** What the node does not take: its words, so that they can be copied, or typed again. */
function Unsaved({ live, root }) {
  const words = live.unsavedWords;
  const again = () => live.typeAgain(root).catch((error) => (problem.value = sentenceOf(error)));
  return html`<div id="text-unsaved"><p class="facts">${live.refusal.value} ${text.textUnsaved}</p>
    <pre class="document" tabindex="0" aria-label=${text.textUnsaved}>${words}</pre>
    <button type="button" onClick=${again}>${text.textTypeAgain}</button></div>`;
}

function nameOf({ user }) {
  if (isMine(user)) return text.youElsewhere;
  const member = members.value?.find((one) => one.user === user);
  return cut(member?.name || user.slice(0, 12));
}

function Editor({ live, root, mayWrite, title }) {
  const place = useRef(null);
  const editor = useRef(null);
  const document = live.document.value;
  const client = live.client.value;
  const type = document.getText(root);
  const isPlain = type.length !== type.toString().length; // it holds what is no text: shown, and left as it is
  useEffect(() => {
    if (isPlain) return undefined;
    const onCursor = (anchor, head) => live.tellSoon(root, anchor, head);
    const readOnly = !mayWrite || !client;
    editor.current = openEditor({ library, place: place.current, document, root, readOnly, label: title, onCursor });
    const stop = effect(() => editor.current?.show(othersIn(live.others.value, root)));
    return () => {
      stop();
      editor.current.destroy();
      editor.current = null;
    };
  }, [document, root, isPlain, !client]);
  if (isPlain) return html`<pre class="document" tabindex="0" aria-label=${title}>${type.toString()}</pre>`;
  return html`<div class="text-editor" id="text-editor" ref=${place}></div>
    <p class="facts text-foot"><span class="grow wide">${text.editorKeys}</span><${Words} live=${live} root=${root} /></p>`;
}

/** How many words a text has, counted when nobody has typed for a moment. */
function Words({ live, root }) {
  const seen = live.changes.value;
  const [count, setCount] = useState(null);
  useEffect(() => {
    const timer = setTimeout(() => setCount(live.document.value.getText(root).toString().match(WORD)?.length ?? 0), count === null ? 0 : COUNT_MS);
    return () => clearTimeout(timer);
  }, [seen, root]);
  return count !== null && html`<span id="word-count">${text.words(count)}</span>`;
}

function othersIn(others, root) {
  const found = others.filter((one) => one.root === root && one.head);
  return found.map((one) => ({ name: nameOf(one), color: bytesOf(one.session)[0], anchor: bytesOf(one.anchor), head: bytesOf(one.head), typed: one.typed, client: one.client, clock: one.clock }));
}
