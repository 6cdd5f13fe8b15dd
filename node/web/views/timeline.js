// The timeline of a branch: what was written, the newest first, with its tangle. Changes of one document stand together.

import { Action, Empty, Skeleton } from "../parts/form.js";
import { ID_SHOWN, when, whenExactly, whoOf } from "../parts/format.js";
import { documentOf, drawnAs, groupsOf, keysOf } from "../parts/groups.js";
import { html } from "../parts/html.js";
import { Markdown } from "../parts/markdown.js";
import { Lanes, layOut, widthOf } from "../parts/tangle.js";
import { addressOf, beside, chosenBranch, current, go, may, members, repos, status } from "../state/node.js";
import { fresh } from "../state/news.js";
import { actions, api, attempt, attemptItself } from "../state/session.js";
import { Timeline } from "../state/timeline.js";
import { text } from "../strings/en.js";
import { Component } from "../vendor/preact.js";
import { useEffect, useLayoutEffect, useMemo, useRef } from "../vendor/preact-hooks.js";
import { effect, signal } from "../vendor/signals.js";
import { Attachments } from "./attachments.js";
import { Changes, authorsOf } from "./changes.js";
import { Compose } from "./compose.js";
import { PostActions, Relation, goneNote } from "./post_actions.js";

const LONG = 700; // characters or
const LONG_LINES = 14; // lines that are shown before a row is cut
const NEAR = "800px"; // to the end of what is shown: then more is loaded
const FILLED_MAX = 1000; // commits up to which more are loaded by themselves where few rows show them

/** The window that is shown, and which of its rows has the keyboard. */
export const shown = signal(null);
const focused = signal("");
let keys = new Map(); // commit -> the key of the group of several that shows it

const wanted = signal(null); // a commit to go to, once its timeline is loaded

/** Puts the keyboard on a commit in its branch's timeline, else on the row that it left last: now, or when that is shown. */
export function showInTimeline(branch, commit = "") {
  wanted.value = { branch, commit };
}

effect(() => {
  const [asked, timeline] = [wanted.value, shown.value];
  if (!asked || timeline?.branch !== asked.branch || !timeline.rows.value) return;
  wanted.value = null;
  attemptItself(async () => {
    if (!asked.commit) setTimeout(focusTimeline, 0); // when it is drawn
    else if (await timeline.goToCommit(asked.commit)) setTimeout(() => focusRow(asked.commit), 0);
  });
});

let before = null; // the branch that was chosen; null: nothing came yet

// Where a form or a link went away with the view that it led from, the keyboard goes on in the new branch.
effect(() => {
  const id = repos.value && chosenBranch.value;
  if (id === null || id === before) return;
  const isFirst = before === null;
  before = id;
  if (!isFirst && id) setTimeout(() => document.activeElement === document.body && showInTimeline(id), 0);
});

export function TimelineView() {
  const { repo, branch } = current.value;
  const id = chosenBranch.value;
  useEffect(() => {
    if (!id) return undefined;
    const stop = new AbortController();
    const timeline = new Timeline(api, id, (error) => attemptItself(() => Promise.reject(error)));
    shown.value = timeline;
    focused.value = "";
    attemptItself(() => timeline.follow(stop.signal));
    return () => {
      stop.abort();
      shown.value = null;
    };
  }, [id, api]);
  if (!repo) return repos.value && html`<${Welcome} />`;
  return html`<section id="branch" aria-labelledby="branch-name">
    <${Heading} repo=${repo} branch=${branch} />
    ${branch && html`
      <${Nameless} repo=${repo} />
      ${may(repo, "write") && !branch.archived && html`<${Compose} key=${branch.branch} repo=${repo} branch=${branch} />`}
      <${Rows} timeline=${shown.value} branch=${branch.branch} />`}
  </section>`;
}

function Welcome() {
  return html`<section aria-labelledby="welcome"><h2 id="welcome">${text.welcome}</h2>
    <p>${text.welcomeAbout}</p>
    <p class="buttons"><a class="button main" href=${beside("new")}>${text.panels.new}</a> <a class="button" href=${beside("join")}>${text.panels.join}</a>
      <a class="button" href=${beside("people")}>${text.nameYourself}</a></p>
    ${actions.value.includes("node") && html`<p>${text.welcomeBack} <a href=${beside("backup", "restore")}>${text.restoreTitle}</a></p>`}</section>`;
}

function Heading({ repo, branch }) {
  const facts = branch ? [text.commits(branch.commits), text.heads(branch.head_count)] : [];
  for (const name of ["pending", "void", "rejected"]) if (branch?.[name]) facts.push(text.state[name](branch[name]));
  const standing = repo.standing;
  const isBad = ["former", "cut_off", "damaged"].includes(standing.state);
  const panel = (name) => addressOf(branch?.branch ?? repo.repo, name);
  // Of a new repo, what the node does not know of others is beside the point.
  const isOnlyYou = ["alone", "not_shared"].includes(standing.state) && standing.held_at === null && members.value?.length === 1 && may(repo, "admin");
  return html`<div class="heading-line">
    <h2 id="branch-name"><bdi>${repo.name}</bdi>${branch && html` : <bdi>${branch.name}</bdi>`}</h2>
    <p id="branch-facts" class="facts">${facts.join(" · ")}</p>
    <p id="standing" class=${isBad ? "error" : "facts"}>${isOnlyYou ? html`${text.onlyYou} <a href=${panel("members")}>${text.inviteOthers}</a>` : html`<${Standing} of=${standing} />`}</p>
    <${Transfer} of=${standing.progress} />
    ${branch && html`<${Jump} />`}
    <nav class="wide-hidden" aria-label=${text.details}><a href=${panel("about")}>${text.details}</a></nav>
  </div>`;
}

/** The sentence on a repo's standing. The id of a peer without a name leads to where one names it. */
export function Standing({ of }) {
  const parts = text.standingSentence(of, when).split(/((?:[Pp]eer|[Rr]elay) [a-z2-7]{12}\b)/);
  return parts.map((part, index) => (index % 2 ? html`<a href=${beside("peers")}>${part}</a>` : part));
}

/** How far a transfer between nodes is, where it is known what there is. */
export function Transfer({ of }) {
  if (!of?.total) return null;
  return html`<progress class="transfer" max=${of.total} value=${of.done} aria-label=${text.transferred(of)} title=${text.transferred(of)}></progress>`;
}

/** A member who has stated no name sees how others see them. */
function Nameless({ repo }) {
  const me = members.value?.find((one) => one.user === status.value?.user);
  if (!me || me.name || !may(repo, "write")) return null;
  return html`<p id="nameless" class="facts">${text.namelessAbout(me.user.slice(0, ID_SHOWN))} <a href=${beside("people")}>${text.nameYourself}</a></p>`;
}

function Jump() {
  const timeline = shown.value;
  const jump = async (event) => {
    const seconds = new Date(`${event.target.value}T00:00:00`).getTime() / 1000;
    if (!timeline || Number.isNaN(seconds)) return;
    await attempt(async () => {
      const commit = await timeline.goTo(seconds);
      if (commit) setTimeout(() => focusRow(commit), 0); // when it is drawn
    });
  };
  return html`<div class="jump">
    <label>${text.jumpTo} <input type="date" id="jump" onChange=${jump} /></label>
    <${FirstUnread} />
    ${timeline?.hasNewer.value && html`<${Action} id="newest" act=${() => timeline.load()}>${text.newest}<//>`}
  </div>`;
}

/** The way to the oldest commit that is new, while it is among those that are shown. */
function FirstUnread() {
  const { branch, ids } = fresh.value;
  const rows = branch === chosenBranch.value ? shown.value?.rows.value : null;
  const oldest = rows?.findLast(({ item }) => ids.has(item.commit));
  if (!oldest) return null;
  return html`<${Action} id="first-unread" act=${() => focusRow(oldest.item.commit)}>${text.firstUnread}<//>`;
}

function Rows({ timeline, branch }) {
  const rows = timeline?.rows.value;
  const names = useMemo(() => new Map((members.value ?? []).map((one) => [one.user, one.name])), [members.value]);
  const newer = () => timeline.hasNewer.value && attemptItself(() => timeline.loadNewer());
  const older = () => timeline.hasOlder.value && attemptItself(() => timeline.loadOlder());
  useKeyboardPlace();
  if (!rows) return html`<${Skeleton} lines=${6} />`;
  const groups = groupsOf(rows, new Set(keys.values()));
  const drawings = layOut(drawnAs(groups));
  const width = widthOf(drawings);
  keys = keysOf(groups);
  const isFresh = (group) => fresh.value.branch === branch && group.rows.some(({ item }) => fresh.value.ids.has(item.commit));
  const oldest = groups.findLastIndex(isFresh);
  const reached = keys.get(focused.value) ?? focused.value;
  const has = groups.some(({ key }) => key === reached);
  const filled = Math.min(rows.length, FILLED_MAX);
  return html`
    <${Sentinel} reach=${newer} filled=${filled}>
      ${timeline.hasNewer.value && html`<button type="button" onClick=${newer}>${text.newer}</button>`}
    <//>
    ${rows.length < 2 && html`<${Empty}><p>${text.emptyTimeline}</p><//>`}
    <ol id="timeline" class="timeline" reversed tabindex="-1" aria-label=${text.timeline} onKeyDown=${(event) => walk(event, branch)}
      style=${{ "--tangle": `${width}px` }}>
      ${groups.map((group, index) => {
        const { key } = group;
        const common = { key, branch, drawing: drawings[index], width, shape: JSON.stringify([drawings[index], width]), isFresh: isFresh(group) };
        common.isSince = index === oldest && oldest < groups.length - 1;
        common.isReached = has ? key === reached : index === 0;
        if (group.rows.length === 1) return html`<${Row} ...${common} row=${group.rows[0]} who=${whoOf(group.rows[0].item, names)} />`;
        return html`<${Changes} ...${common} group=${group} names=${names} authors=${authorsOf(group, names).join("\n")} reach=${() => (focused.value = key)} />`;
      })}
    </ol>
    <${Sentinel} reach=${older} filled=${filled}>
      ${timeline.hasOlder.value && html`<button id="older" type="button" onClick=${older}>${text.older}</button>`}
    <//>`;
}

/** Where a drawing replaces the row that has the keyboard, the row that shows its commit now has it. */
function useKeyboardPlace() {
  const before = document.activeElement?.closest("#timeline article")?.dataset.commit;
  useLayoutEffect(() => {
    if (before && document.activeElement === document.body) rowOf(before)?.focus({ preventScroll: true });
  });
}

/** A place that, when it comes near the screen or is so with more commits `filled` in, calls `reach`. */
function Sentinel({ reach, filled, children }) {
  const element = useRef(null);
  const latest = useRef(reach);
  latest.current = reach;
  useEffect(() => {
    const look = (entries) => entries.some((one) => one.isIntersecting) && latest.current();
    const observer = new IntersectionObserver(look, { root: element.current.closest(".pane"), rootMargin: NEAR });
    observer.observe(element.current);
    return () => observer.disconnect();
  }, [filled]);
  return html`<div ref=${element} class="sentinel">${children}</div>`;
}

/** One commit. Drawn again only if something of it changed: there may be 2,000. */
class Row extends Component {
  shouldComponentUpdate(next, state) {
    const names = ["row", "shape", "who", "branch", "isReached", "isFresh", "isSince"];
    return state !== this.state || names.some((name) => next[name] !== this.props[name]);
  }

  render({ row, drawing, width, who, branch, isReached, isFresh, isSince }, { isWhole }) {
    const { item, isVoid, isNew } = row;
    const tab = isReached ? 0 : -1;
    const classes = [isVoid && "void", isNew && "new", isFresh && "fresh", drawing.isHead && "head"].filter(Boolean).join(" ");
    const isLong = item.text && (item.text.length > LONG || item.text.split("\n").length > LONG_LINES);
    const open = addressOf(branch, "commit", item.commit);
    return html`<li class=${classes}>
      <${Lanes} drawing=${drawing} width=${width} />
      <article tabindex=${tab} data-commit=${item.commit} aria-label=${text.writtenBy(who)} onFocusIn=${() => (focused.value = item.commit)}>
        <p class="by"><bdi class="who">${who}</bdi>${isFresh && html` <span class="badge">${text.isNewToYou}</span>`}
          <a class="when" href=${open} tabindex=${tab} title=${whenExactly(item.time)}><time datetime=${whenExactly(item.time)}>${when(item.time)}</time></a>
          ${item.edited_at !== undefined && html`<span class="facts" title=${whenExactly(item.edited_at)}>${text.edited}</span>`}</p>
        ${isVoid && html`<p class="alarm note">${text.voidNote}</p>`}
        <${Relation} item=${item} branch=${branch} tab=${tab} />
        ${!item.edits && html`<div class=${`said${item.text ? "" : " kind"}${isLong && !isWhole ? " cut" : ""}`} dir="auto">
          ${item.text ? html`<${Markdown} source=${item.text} tab=${tab} mentions=${item.mentions} />` : html`<${What} item=${item} branch=${branch} tab=${tab} />`}
        </div>`}
        ${isLong && !item.edits && html`<button type="button" class="quiet" tabindex=${tab} aria-expanded=${Boolean(isWhole)}
          onClick=${() => this.setState({ isWhole: !isWhole })}>${isWhole ? text.less : text.more}</button>`}
        ${!isVoid && html`<${PostActions} item=${item} repo=${current.value.repo} branch=${branch} tab=${tab} again=${renew} />`}
        ${item.files?.length > 0 && !isVoid && html`<${Attachments} item=${item} branch=${branch} tab=${tab} />`}
      </article>
      ${isSince && html`<p class="since">${text.newSince}</p>`}
    </li>`;
  }
}

function renew(commit) {
  return shown.value?.renew(commit);
}

/** What a commit without a text did, with the way to what it changed. */
export function What({ item, branch, tab }) {
  const gone = goneNote(item);
  if (gone) return gone;
  if (item.edits || item.deletes) return null; // the relation says it
  if (item.damaged) return text.damagedHere(text.kinds[item.kind] ?? item.kind);
  if (item.erased) return text.erased(text.kinds[item.kind] ?? item.kind);
  if (item.unreadable) return text.unreadable(text.kinds[item.kind] ?? item.kind);
  const panel = documentOf(item.kind);
  const said = ofOther(item) ?? text.kinds[item.kind] ?? item.kind;
  if (!panel) return said;
  return html`<a href=${addressOf(branch, panel)} tabindex=${tab}>${said}</a>`;
}

/** Of a merge and of a fork's first commit: which branch it names, where that is here. */
function ofOther(item) {
  const named = (item.merged ?? item.continues)?.branch;
  const repo = named && (repos.value ?? []).find((one) => one.branches.some(({ branch }) => branch === named));
  if (!repo) return null;
  const name = `${repo.name} : ${repo.branches.find(({ branch }) => branch === named).name}`;
  return item.merged ? text.mergedFrom(name) : text.continues(name);
}

/** Up and down by arrows or by j and k; Enter opens the details. */
function walk(event, branch) {
  const row = event.target.closest("article");
  if (!row || event.target !== row || event.ctrlKey || event.metaKey || event.altKey) return;
  const all = [...event.currentTarget.querySelectorAll("article")];
  const at = all.indexOf(row);
  const step = { ArrowDown: 1, j: 1, ArrowUp: -1, k: -1 }[event.key];
  if (step && all[at + step]) {
    event.preventDefault();
    focused.value = all[at + step].dataset.commit;
    all[at + step].focus();
  } else if (event.key === "Enter") {
    event.preventDefault();
    if ("several" in row.dataset) row.querySelector("[aria-expanded]").click();
    else go(branch, "commit", row.dataset.commit);
  }
}

/** Puts the keyboard into the timeline: on the row that it left last, else on the newest. */
export function focusTimeline() {
  (document.querySelector("#timeline article[tabindex='0']") ?? document.getElementById("middle"))?.focus();
}

function focusRow(commit) {
  focused.value = commit;
  const row = rowOf(commit);
  row?.scrollIntoView({ block: "center" });
  row?.focus();
}

/** The row that shows a commit. */
function rowOf(commit) {
  return document.querySelector(`article[data-commit="${CSS.escape(keys.get(commit) ?? commit)}"]`);
}
