// The list: repos with their branches, what is new in them, what one can add; and at its foot who one is.

import { Face, Icon, Tile } from "../parts/face.js";
import { Empty, Skeleton } from "../parts/form.js";
import { bytes, fold } from "../parts/format.js";
import { html } from "../parts/html.js";
import { addressOf, beside, chosenBranch, chosenRepo, isLive, me, repos, route, status } from "../state/node.js";
import { news, unread } from "../state/news.js";
import { actions } from "../state/session.js";
import { text } from "../strings/text.js";
import { useEffect, useRef } from "../vendor/preact-hooks.js";
import { signal } from "../vendor/signals.js";
import { waiting } from "./for_you.js";
import { leave } from "./login.js";
import { openPalette } from "./palette.js";
import { isPassedOn } from "./standing.js";

const OPEN_MAX = 6; // repos of which all branches are shown, unless one folds them; of more one may look for a name
const QUIET_SECONDS = 30 * 24 * 3600; // without anything new, after which many repos stand in one row
const QUIET_MIN = 2; // repos that a row saves room for
const KEEPS_ORDER = "#repos .repos:hover, #repos .repos:has(:focus-visible)"; // somebody is about to press what stands there

/** Repo -> whether a person unfolded or folded it. */
const folds = signal(new Map());
/** What repos are looked for by; null: they are not. */
const asked = signal(null);

export function List() {
  const mayAdd = actions.value.includes("admin");
  return html`<nav id="repos" class="side" aria-label=${text.reposAndBranches}>
    <div class="top">
      <button type="button" id="commands" class="find" aria-keyshortcuts="Control+K" onClick=${openPalette}>
        <${Icon} name="search" size="s" /><span>${text.searchOrDo}</span><kbd>${text.ctrlK}</kbd></button>
      ${mayAdd && html`<a id="add" class="button icon" href=${beside("new")} aria-label=${text.newOrJoin} title=${text.newOrJoin}
        aria-current=${route.value.panel === "new" ? "page" : undefined}><${Icon} name="plus" /></a>`}
    </div>
    <div class="scroll">
      <${ForYouRow} />
      <${UnreadRow} />
      <${Heading} />
      <${Amiss} />
      <${Repos} />
    </div>
    <${Me} />
  </nav>`;
}

function ForYouRow() {
  const count = waiting.value;
  return html`<a id="to-for-you" class=${count ? "nav-row unread" : "nav-row"} href=${beside("for-you")} aria-current=${route.value.panel === "for-you" ? "page" : undefined}>
    <${Icon} name="at" size="s" /><span class="cut">${text.panels["for-you"]}</span>${count > 0 && html`<span class="badge at">${count}</span>`}</a>`;
}

/** Everything that is new, counted without what one is called for: that is above. */
function UnreadRow() {
  const all = unread.value;
  const count = all.reduce((sum, one) => sum + one.unseen, 0);
  return html`<a id="to-unread" class="nav-row" href=${beside("unread")} aria-current=${route.value.panel === "unread" ? "page" : undefined}>
    <${Icon} name="inbox" size="s" /><span class="cut">${text.panels.unread}</span>${count > 0 && html`<span class="facts">${text.unreadCount(count, all.some((one) => one.more))}<span class="unseen"> ${text.unreadWord}</span></span>`}</a>`;
}

/** What is wrong with the whole node, whatever its repos say. */
function Amiss() {
  const { faults = [], key_use: use, storage_bound: bound } = status.value ?? {};
  const over = text.overBound[bound?.state]?.(bytes(bound.size), bytes(bound.size_max));
  const said = [...faults.map(text.fault), ...(use?.displaced_at ? [text.displaced] : []), ...(over ? [over] : [])];
  return said.map((one) => html`<p class="note-box bad amiss" role="alert"><${Icon} name="warn" />${one}</p>`);
}

/** Says in which order repos stand; of many, one may look for a name. */
function Heading() {
  const field = useRef(null);
  const isMany = repos.value?.length > OPEN_MAX;
  const isOpen = isMany && asked.value !== null;
  useEffect(() => isOpen && field.current.focus(), [isOpen]);
  const close = (event) => event.key === "Escape" && (asked.value = null);
  return html`<div class="side-head"><h1 class="grow">${isMany ? text.listByLatest : text.list}</h1>
      ${isMany && html`<button type="button" id="filter" class="quiet" aria-expanded=${isOpen} onClick=${() => (asked.value = isOpen ? null : "")}>${text.filter}</button>`}</div>
    ${isOpen && html`<input type="search" id="filter-by" class="filter" ref=${field} aria-label=${text.filterBy} placeholder=${text.filterBy} autocomplete="off" value=${asked.value}
      onInput=${(event) => (asked.value = event.target.value)} onKeyDown=${close} />`}`;
}

function Repos() {
  if (!repos.value) return html`<${Skeleton} lines=${4} />`;
  if (!repos.value.length) {
    return html`<${Empty} id="empty"><p>${text.noRepos}</p><//>`; // the ways to one stand beside it
  }
  const all = inOrder(repos.value);
  if (asked.value?.trim() && all.length > OPEN_MAX) return html`<${Found} all=${all} words=${fold(asked.value.trim())} />`;
  const whole = all.filter((one) => one.whole);
  const single = all.filter((one) => !one.whole);
  if (!whole.length) return html`<ul class="repos">${single.map(draw)}</ul>`;
  const before = Date.now() / 1000 - QUIET_SECONDS;
  const calm = whole.length > OPEN_MAX ? whole.filter((one) => isQuiet(one, before)) : [];
  const quiet = calm.length < QUIET_MIN ? [] : calm;
  return html`<ul class="repos">${whole.filter((one) => !quiet.includes(one)).map(draw)}</ul>
    ${quiet.length > 0 && html`<${Folded} id="quiet" all=${quiet} heading=${text.quiet} said=${text.moreRepos(quiet.length)} />`}
    ${single.length > 0 && html`<${Folded} all=${single} said=${text.singleBranches(single.length)} />`}`;
}

/** When something was written in a repo last. One that is waited for stands first. */
const latestOf = ({ branches }) => (branches.length ? Math.max(...branches.map((one) => one.latest_at ?? 0)) : Infinity);

let order = []; // of ids, as they stood last

/** The repos with the latest news first. None moves from under a hand: the order stays while one is in the list. */
function inOrder(all) {
  const place = new Map(document.querySelector(KEEPS_ORDER) ? order.map((id, at) => [id, at]) : []);
  const sorted = [...all].sort((one, other) => (place.get(one.repo) ?? -1) - (place.get(other.repo) ?? -1) || latestOf(other) - latestOf(one) || one.name.localeCompare(other.name));
  order = sorted.map((one) => one.repo);
  return sorted;
}

function isQuiet(repo, before) {
  const isAsked = repo.requests > 0 || repo.offers > 0 || repo.repo === chosenRepo.value;
  return !isAsked && latestOf(repo) < before && !repo.branches.some(({ branch }) => news.value.get(branch)?.unseen);
}

/** What is called so: of a repo of another name the branches that are. */
function Found({ all, words }) {
  const has = ({ name }) => fold(name).includes(words);
  const found = all.map((repo) => (has(repo) ? repo : { ...repo, branches: repo.branches.filter(has), isPart: true })).filter((repo) => !repo.isPart || repo.branches.length);
  if (!found.length) return html`<p class="facts none">${text.noneCalledSo}</p>`;
  return html`<ul class="repos">${found.map((repo) => html`<${Repo} key=${repo.repo} repo=${repo} isFound />`)}</ul>`;
}

/** Repos below the others, in one row: quiet ones, and branches that are followed by themselves, as what others offer is. */
function Folded({ id, all, heading = "", said }) {
  const isChosen = all.some((one) => one.repo === chosenRepo.value);
  const isNew = all.some(({ branches }) => branches.some(({ branch }) => news.value.get(branch)?.unseen));
  return html`${heading && html`<div class="side-head"><h2 class="grow">${heading}</h2></div>`}
    <details id=${id} class="singles" open=${isChosen || undefined}><summary class=${isNew ? "nav-row unread" : "nav-row"}><${Icon} name="turn" size="s turn" />
    <span class="cut">${said}</span></summary><ul class="repos">${all.map(draw)}</ul></details>`;
}

const drawn = new WeakMap();

/** The same node for the same repo: Preact then passes over all repos but those that have changed. */
function draw(repo) {
  if (!drawn.has(repo)) drawn.set(repo, html`<${Repo} key=${repo.repo} repo=${repo} />`);
  return drawn.get(repo);
}

function Repo({ repo, isFound = false }) {
  const branches = repo.branches.filter((one) => !one.archived);
  const first = branches[0]?.branch ?? repo.repo;
  const isOpen = isFound || (folds.value.get(repo.repo) ?? (repo.repo === chosenRepo.value || repos.value.length <= OPEN_MAX));
  const turn = (event) => {
    event.preventDefault();
    folds.value = new Map([...folds.value, [repo.repo, !isOpen]]);
  };
  const sum = branches.map((one) => news.value.get(one.branch)).filter(Boolean).reduce(
    (all, one) => ({ unseen: all.unseen + one.unseen, mentions: all.mentions + one.mentions, more: all.more || one.more }),
    { unseen: 0, mentions: 0, more: false },
  );
  const asks = (count, panel, said) => count > 0 && html`<a class="nav-row unread" href=${addressOf(first, panel)}>
    <span class="cut">${said(count)}</span><span class="badge at">${count}</span></a>`;
  return html`<li><details class="repo" open=${isOpen}>
    <summary class=${sum.unseen ? "nav-row unread" : "nav-row"} onClick=${turn}><${Icon} name="turn" size="s turn" /><${Tile} id=${repo.repo} name=${repo.name} />
      <bdi class="cut">${repo.name}</bdi><${Standing} repo=${repo} /><span class="sum"><${New} of=${sum} /></span></summary>
    ${isOpen && html`<div class="inner">
      ${branches.map((branch) => html`<${Branch} key=${branch.branch} branch=${branch} />`)}
      ${!branches.length && html`<a class="nav-row" href=${addressOf(repo.repo)}>${text.open}</a>`}
      ${asks(repo.requests, "members", text.asking)}
      ${asks(repo.offers, "inbox", text.offersWait)}
    </div>`}
  </details></li>`;
}

function Branch({ branch }) {
  const of = news.value.get(branch.branch);
  return html`<a class=${of?.unseen ? "nav-row unread" : "nav-row"} data-branch=${branch.branch} href=${addressOf(branch.branch)}
    aria-current=${branch.branch === chosenBranch.value ? "page" : undefined}><bdi class="cut">${nameOf(branch)}</bdi><${New} of=${of} /></a>`;
}

/** How a repo is, where it is not well. */
function Standing({ repo }) {
  const { state, uncertain, held_at: heldAt } = repo.standing;
  const said = uncertain ? text.uncertain : text.standingTag[isPassedOn(repo) ? "moved" : repo.permission === "former" ? "former" : state];
  if (!said || (state === "not_shared" && heldAt !== null && !uncertain)) return null; // others have had it, and are away
  return html`<span class=${`tag standing ${state}${["former", "cut_off", "damaged"].includes(state) && !isPassedOn(repo) ? " warn" : ""}`}>${said}</span>`;
}

/** How much is new. None, where the node has looked through as many commits as it does, and all were this user's. */
function New({ of }) {
  if (!of?.unseen) return null;
  return html`<span class=${of.mentions ? "badge at mentioned" : "badge"} title=${of.mentions ? text.mentionsOf(of.mentions) : undefined}>${of.mentions ? "@ " : ""}${text.unreadCount(of.unseen, of.more)}<span class="unseen"> ${text.unreadWord}</span></span>`;
}

/** Who one is, and how this computer is. A token that may not see the node has the way out alone. */
function Me() {
  const own = me.value;
  if (!own) {
    return html`<div class="me"><span id="live" role="status" class=${isLive.value ? "sync" : "sync off"}>${isLive.value ? text.running : text.notLive}</span>
      <button id="leave" type="button" class="quiet" onClick=${leave}>${text.lock}</button></div>`;
  }
  return html`<a class="me" href=${beside("settings")} title=${text.panels.settings}>
    <${Face} id=${own.user} name=${own.name ?? ""} color=${own.color} size="s" />
    <span class="grow"><b class="cut"><bdi>${own.name || text.panels.you}</bdi></b><${Computer} /></span><${Icon} name="gear" /></a>`;
}

function Computer() {
  const { damaged, faults = [], key_use: use, storage_bound: bound } = status.value ?? {};
  const lost = damaged ? damaged.commits + damaged.blocks : 0;
  let [kind, said] = ["", text.live];
  if (faults.length || use?.displaced_at || text.overBound[bound?.state]) [kind, said] = ["wrong", text.needsCare];
  else if (lost) [kind, said] = ["here", text.damaged(lost)];
  if (!isLive.value) [kind, said] = ["off", text.notLive];
  return html`<span id="live" role="status" class=${`sync ${kind}`}>${said}</span>`;
}

/** A branch of comments is called by the id of what they are about: the name of that says more. */
function nameOf(branch) {
  const id = /^on ([a-z2-7]{52})(?: \d+)?$/.exec(branch.name)?.[1];
  const about = id && repos.value.flatMap((repo) => repo.branches.map((one) => ({ repo, one }))).find(({ one }) => one.branch === id);
  return about ? text.commentsOn(about.repo.name, about.one.name) : branch.name;
}
