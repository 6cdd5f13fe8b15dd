// Search: posts, names of files and texts that have some words, and the way to each: in its timeline, or in its editor.

import { Face, Icon } from "../parts/face.js";
import { Empty, Loaded, useLoaded } from "../parts/form.js";
import { nameIn, when, whenExactly, whoOf, withNames } from "../parts/format.js";
import { html } from "../parts/html.js";
import { addressOf, beside, go } from "../state/node.js";
import { api } from "../state/session.js";
import { showInTimeline } from "../state/timeline.js";
import { text } from "../strings/text.js";
import { useEffect, useState } from "../vendor/preact-hooks.js";

const PAGE = 20;
const PAUSE_MS = 300; // after the last letter
const LETTERS_MIN = 3; // of a word that is not finished

/** The address holds the query, so that one comes back to what was found. */
export function Search({ argument }) {
  const [asked, setAsked] = useState(argument);
  useEffect(() => setAsked(argument), [argument]);
  useEffect(() => {
    if (asked === argument) return undefined;
    const timer = setTimeout(() => location.replace(beside("search", asked)), PAUSE_MS);
    return () => clearTimeout(timer);
  }, [asked]);
  const submit = (event) => {
    event.preventDefault();
    if (asked !== argument) location.replace(beside("search", asked));
  };
  return html`
    <form id="search" class="form" role="search" onSubmit=${submit}>
      <label>${text.searchFor} <input type="search" name="asked" data-first maxlength="256" autocomplete="off" value=${asked}
        onInput=${(event) => setAsked(event.target.value)} /></label>
    </form>
    ${argument.trim() ? html`<${Found} key=${argument} asked=${argument} />` : html`<p class="facts">${text.searchAbout}</p>`}`;
}

function Found({ asked }) {
  const [afters, setAfters] = useState([]); // where each window that was left began
  const after = afters.at(-1) ?? "";
  const loaded = useLoaded(() => api.search({ text: withEnding(asked), limit: PAGE, after }), [asked, after], true);
  return html`<${Loaded} of=${loaded}>${({ hits, names, next, index }) => html`
    ${index.state === "building" && html`<p class="alarm" role="status">${text.indexing(index.percent)}</p>`}
    ${names.length > 0 && html`<ul class="plain" id="found-names">${names.map((one) => html`<li><${Name} one=${one} /></li>`)}</ul>`}
    ${!hits.length && !names.length && html`<${Empty}><${Icon} name="search" size="l" /><p>${next ? text.nothingYet : text.nothingFound}</p><//>`}
    <ul class="card hits-found" id="hits" aria-label=${text.panels.search}>${hits.map((hit) => html`<li key=${hit.commit}><${Hit} hit=${hit} asked=${asked} /></li>`)}</ul>
    ${(afters.length > 0 || next) && html`<p class="buttons">
      <button type="button" disabled=${!afters.length} onClick=${() => setAfters(afters.slice(0, -1))}>${text.previous}</button>
      <button type="button" disabled=${!next} onClick=${() => setAfters([...afters, next])}>${text.next}</button></p>`}`}<//>`;
}

function Hit({ hit, asked }) {
  const [shown] = hit.texts ?? []; // of several texts of a branch the first
  const open = (event) => {
    event.preventDefault();
    go(hit.branch);
    showInTimeline(hit.branch, hit.commit);
  };
  const names = new Map();
  const sign = shown ? "text" : hit.files?.length ? "file" : "";
  return html`<a class="hit" href=${shown ? addressOf(hit.branch, "text", shown.root) : addressOf(hit.branch, "commit", hit.commit)} onClick=${shown ? undefined : open}>
    ${sign ? html`<span class="kind"><${Icon} name=${sign} /></span>` : html`<${Face} id=${hit.origin?.author ?? hit.author} name=${nameIn(hit, names)} />`}
    <span class="grow"><span class="by"><b><bdi>${whoOf(hit, names)}</bdi></b> <span class="facts" title=${whenExactly(hit.time)}>${when(hit.time)}</span></span>
      <span class="facts"><bdi>${hit.repo_name}</bdi> / <bdi>${hit.branch_name}</bdi>${shown && html`, ${text.inText(shown.title)}`}</span>
      <span class="said" dir="auto">${marked(hit.text === null ? hit.files.join(", ") : withNames(hit), asked)}</span></span></a>`;
}

/** A text in which the words that were asked for stand out. */
export function marked(said, asked) {
  const words = asked.match(/[\p{L}\p{N}\p{M}]+/gu);
  if (!words) return said;
  const begins = new RegExp(`(?<![\\p{L}\\p{N}\\p{M}])(${words.join("|")})`, "giu");
  return said.split(begins).map((part, index) => (index % 2 ? html`<mark>${part}</mark>` : part));
}

function Name({ one }) {
  const address = one.commit ? addressOf(one.branch, "commit", one.commit) : addressOf(one.branch);
  return html`<a href=${address}><bdi>${one.name}</bdi></a> <span class="facts">${text.nameKinds[one.kind]} · <bdi>${one.repo_name}</bdi></span>`;
}

/** The last word may not be finished yet. */
function withEnding(asked) {
  const last = /[\p{L}\p{N}\p{M}]+$/u.exec(asked)?.[0] ?? "";
  const isQuoted = (asked.match(/"/g)?.length ?? 0) % 2 === 1;
  return [...last].length >= LETTERS_MIN && !isQuoted ? `${asked}*` : asked;
}
