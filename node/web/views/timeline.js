// The posts of a branch: what was written, the newest last, by days and by authors. Changes of one document stand together.

import { Empty, Skeleton } from "../parts/form.js";
import { dayOf, nameIn, whoOf } from "../parts/format.js";
import { Icon } from "../parts/face.js";
import { useArrivals, useEye } from "../parts/eye.js";
import { groupsOf, keysOf, threadsOf } from "../parts/groups.js";
import { html } from "../parts/html.js";
import { INVITE, addressOf, chosenBranch, current, go, isMine, mayPost, memberChanges, members, personOf, repos, status } from "../state/node.js";
import { fresh } from "../state/news.js";
import { attemptItself } from "../state/session.js";
import { showInTimeline, wanted } from "../state/timeline.js";
import { text } from "../strings/text.js";
import { useEffect, useLayoutEffect, useMemo, useRef } from "../vendor/preact-hooks.js";
import { effect, signal } from "../vendor/signals.js";
import { Arriving } from "./arriving.js";
import { Changes, authorsOf } from "./changes.js";
import { written } from "./compose.js";
import { Post } from "./post_row.js";
import { isOnlyYou } from "./standing.js";

const NEAR = "800px"; // to the end of what is shown: then more is loaded
const FILLED_MAX = 1000; // commits up to which more are loaded by themselves where few rows show them
const RUN_SECONDS = 300; // within which posts of one author stand together under one name
const NONE = []; // one for all rows: what stays the same is not drawn again
const FRAMES_MAX = 60; // of the screen, in which what was asked for is drawn

/** The window that is shown, and which of its rows has the keyboard. */
export const shown = signal(null);
const focused = signal("");
let keys = new Map(); // commit -> the key of the group of several that shows it

effect(() => {
  const [asked, timeline] = [wanted.value, shown.value];
  if (!asked || timeline?.branch !== asked.branch || !timeline.rows.value) return;
  wanted.value = null;
  attemptItself(async () => {
    if (asked.writes) whenDrawn("#text", () => document.getElementById("text").focus());
    else if (!asked.commit) whenDrawn("#timeline", focusTimeline);
    else if (await timeline.goToCommit(asked.commit)) focusDrawn(asked.commit);
  });
});

let before = null; // the branch that was chosen; null: nothing came yet

// Where a form or a link went away with the view that it led from, the keyboard goes on in the new branch.
effect(() => {
  const id = repos.value && chosenBranch.value;
  if (id === null || id === before) return;
  const isFirst = before === null;
  before = id;
  focused.value = "";
  if (!isFirst && id) setTimeout(() => document.activeElement === document.body && !wanted.value && showInTimeline(id), 0);
});

/** Goes to where posts of a moment stand, in unix seconds. */
export async function goTo(seconds) {
  const commit = await shown.value.goTo(seconds);
  if (commit) focusDrawn(commit);
}

/** `branch` as the node lists it. */
export function Posts({ timeline, branch }) {
  const rows = timeline?.rows.value;
  const names = useMemo(() => new Map((members.value ?? []).map((one) => [one.user, one.name])), [members.value]);
  const scroller = useRef(null);
  const list = useRef(null);
  const toEnd = useEye({ scroller, list, drawn: rows, of: timeline, isLast: () => !timeline?.hasNewer.peek() });
  const isPast = Boolean(timeline?.arriving.value); // what comes is older than what stands below it, and thousands
  const arrived = useMemo(() => (isPast ? NONE : (rows ?? []).filter((row) => row.isNew && isSaid(row) && !isMine(row.item.author)).map(({ item }) => item.commit).reverse()), [rows, isPast]);
  const { above, below } = useArrivals({ scroller, rowOf, arrived });
  useEffect(() => {
    if (!written.value) return;
    written.value = "";
    if (timeline?.hasNewer.peek() || timeline?.arriving.peek()) attemptItself(() => timeline.load().then(toEnd));
    else toEnd();
  }, [written.value]);
  useEffect(() => {
    const isComing = current.value?.repo.standing.state === "syncing";
    if (timeline && (isComing || timeline.arriving.peek())) attemptItself(() => timeline.loadArriving());
  }, [timeline, repos.value]);
  useKeyboardPlace();
  if (!rows) return html`<div class="scroll posts-wrap"><${Skeleton} lines=${6} /></div>`;
  const newer = () => timeline.hasNewer.value && attemptItself(() => timeline.loadNewer());
  const older = () => timeline.hasOlder.value && attemptItself(() => timeline.loadOlder());
  const groups = groupsOf(rows, new Set(keys.values())).reverse();
  keys = keysOf(groups);
  const id = branch.branch;
  const isFresh = (group) => fresh.value.branch === id && group.rows.some(({ item }) => fresh.value.ids.has(item.commit));
  const oldest = groups.findIndex(isFresh);
  const reached = keys.get(focused.value) ?? focused.value;
  const has = groups.some(({ key }) => key === reached);
  const kept = keptOf(groups, current.value.repo);
  const arriving = timeline.hasNewer.value ? null : timeline.arriving.value;
  const came = comings(groups, timeline.hasOlder.value);
  const threads = threadsOf(rows);
  const filled = Math.min(rows.length, FILLED_MAX);
  return html`
    <div class="scroll posts-wrap" id="posts" ref=${scroller} tabindex="-1" role="region" aria-label=${text.timeline}>
    <${Sentinel} reach=${older} filled=${filled}>
      ${timeline.hasOlder.value && html`<button id="older" type="button" class="quiet" onClick=${older}>${text.older}</button>`}
    <//>
    <ol id="timeline" class="posts" ref=${list} tabindex="-1" onKeyDown=${(event) => walk(event, id)}>
      ${groups.map((group, index) => {
        const { key, main } = group;
        const previous = groups[index - 1];
        const day = dayOf(main.item.time);
        const common = { key, place: key, branch: id, isFresh: isFresh(group) };
        common.day = previous && dayOf(previous.main.item.time) === day ? "" : day;
        common.came = came[index];
        common.last = index === groups.length - 1 && !timeline.hasNewer.value ? came.at(-1) : NONE;
        common.isSince = index === oldest && oldest > 0;
        common.isReached = has ? key === reached : index === groups.length - 1;
        common.reach = () => (focused.value = key);
        if (group.document && group.rows.length > 1) {
          return html`<${Changes} ...${common} group=${group} names=${names} authors=${authorsOf(group, names).join("\n")} />`;
        }
        const isNext = !common.day && !common.isSince && isRun(previous, group);
        const thread = threadOf(threads, main.item, groups[index + 1]);
        return html`<${Post} ...${common} rows=${group.rows} row=${main} who=${whoOf(main.item, names)} name=${nameIn(main.item, names)}
          isNext=${isNext} thread=${thread} threadKey=${thread?.key} isMore=${Boolean(thread && timeline.hasNewer.value)} kept=${kept?.key === key ? kept.said : ""} />`;
      })}
    </ol>
    ${rows.length < 2 && !arriving && html`<${Empty}><${Icon} name="thread" size="l" /><p>${text.emptyTimeline}${mayPost(current.value) && ` ${text.writeFirst}`}</p>
      ${isOnlyYou(current.value.repo) && html`<a class="button main" href=${addressOf(id, "members", INVITE)}>${text.inviteSomebody}</a>`}<//>`}
    ${arriving && html`<${Arriving} ...${arriving} names=${names} />`}
    <${Sentinel} reach=${newer} filled=${filled}>
      ${timeline.hasNewer.value && html`<button type="button" class="quiet" onClick=${newer}>${text.newer}</button>`}
    <//></div>
    <div class="jump">
      ${oldest > 0 && html`<${To} id="first-unread" commit=${groups[oldest].key} icon="up">${text.firstUnread}<//>`}
      ${above.length > 0 && html`<${To} id="new-above" commit=${above[0]} icon="up">${text.cameAbove(above.length)}<//>`}
      ${below.length > 0 && html`<${To} id="new-below" commit=${below[0]} icon="down">${text.newPosts(below.length)}<//>`}
      ${timeline.hasNewer.value && html`<button type="button" id="newest" onClick=${() => attemptItself(() => timeline.load())}><${Icon} name="down" size="s" />${text.newest}</button>`}
    </div>`;
}

/** The way to a row that came while one reads elsewhere. */
function To({ id, commit, icon, children }) {
  return html`<button type="button" id=${id} onClick=${() => focusRow(commit)}><${Icon} name=${icon} size="s" />${children}</button>`;
}

/** The thread that begins with a post. One reply that stands right below it needs no line. */
function threadOf(threads, { commit }, next) {
  const thread = threads.get(commit);
  return thread && !(thread.count === 1 && next?.main.item === thread.last) ? thread : undefined;
}

/** Whether a post stands under the name of the one before it. */
function isRun(previous, group) {
  if (!previous || previous.document || !isSaid(previous.main) || !isSaid(group.main)) return false;
  const [last, next] = [previous.main.item, group.main.item];
  const isOne = personOf(last.author) === personOf(next.author) && last.origin?.author === next.origin?.author && last.imported_author === next.imported_author;
  return isOne && !next.reply_to && Math.abs(next.time - last.time) <= RUN_SECONDS;
}

function isSaid({ item, isVoid }) {
  return !isVoid && ["post", "files", "imported", "carried"].includes(item.kind) && !item.edits && !item.deletes;
}

/** Changes of members before each group, and last those after all. Before the first one none, where older ones are not shown. */
function comings(groups, hasOlder) {
  const all = memberChanges.value;
  const found = [];
  let at = hasOlder && groups.length ? all.findIndex((one) => one.time > groups[0].main.item.time) : 0;
  if (at < 0) at = all.length;
  for (const { main } of groups) {
    const from = at;
    while (at < all.length && all[at].time <= main.item.time) at += 1;
    found.push(at > from ? all.slice(from, at) : NONE);
  }
  return [...found, at < all.length ? all.slice(at) : NONE];
}

/** Of the newest own post: whether others have it, where that is known. Another computer of one's own has what it wrote. */
function keptOf(groups, repo) {
  const { unheld, unfetched_files: unfetched, parts } = repo.standing;
  const isOwn = unheld > 0 ? (author) => author === status.value?.user : isMine;
  const last = groups.findLast(({ main }) => isSaid(main) && isOwn((main.item.origin ?? main.item).author)); // what a merge carried is of who wrote it
  if (!last) return null;
  if (unheld > 0) return { key: last.key, said: text.keptHere };
  const found = (parts.find(({ code }) => code === "in_sync")?.peers ?? []).find((one) => text.calledPeer(one));
  if (!found) return null;
  const isWhole = !unfetched || !last.rows.some(({ item }) => item.files?.length || item.attachments?.length);
  const said = text[isWhole ? "keptToo" : "keptText"](text.calledPeer(found));
  return { key: last.key, said: found.name ? said : text.sentence(said).replace(/\.$/, "") }; // a name stays as it is written
}

/** Where a drawing replaces the row that has the keyboard, the row that shows its commit now has it. */
function useKeyboardPlace() {
  const place = document.activeElement?.closest("#timeline article")?.dataset.commit;
  useLayoutEffect(() => {
    if (place && document.activeElement === document.body) rowOf(place)?.focus({ preventScroll: true });
  });
}

/** A place that, when it comes near the screen or is so with more commits `filled` in, calls `reach`. */
function Sentinel({ reach, filled, children }) {
  const element = useRef(null);
  const latest = useRef(reach);
  latest.current = reach;
  useEffect(() => {
    const look = (entries) => entries.some((one) => one.isIntersecting) && latest.current();
    const observer = new IntersectionObserver(look, { root: element.current.closest(".scroll"), rootMargin: NEAR });
    observer.observe(element.current);
    return () => observer.disconnect();
  }, [filled]);
  return html`<div ref=${element} class="sentinel">${children}</div>`;
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
    else go(branch, "commit", row.dataset.main);
  } else if (["r", "e"].includes(event.key)) {
    event.preventDefault();
    row.querySelector(`[data-key="${event.key}"]`)?.click();
  }
}

/** Puts the keyboard into the timeline: on the row that it left last, else on the newest. */
export function focusTimeline() {
  (document.querySelector("#timeline article[tabindex='0']") ?? document.getElementById("middle"))?.focus();
}

/** Takes a key of the timeline while nothing else has the keyboard, as where the timeline was left. */
export function takeKey(key) {
  if (!document.getElementById("timeline")) return;
  focusTimeline();
  if (["r", "e"].includes(key)) document.activeElement.querySelector(`[data-key="${key}"]`)?.click();
}

/** Runs `work` once an element is drawn; the posts may be behind a panel that is just closed. */
function whenDrawn(selector, work, frames = FRAMES_MAX) {
  if (document.querySelector(selector)) work();
  else if (frames) requestAnimationFrame(() => whenDrawn(selector, work, frames - 1));
}

function focusDrawn(commit) {
  whenDrawn(`article[data-commit="${CSS.escape(keys.get(commit) ?? commit)}"]`, () => focusRow(commit));
}

function focusRow(commit) {
  focused.value = commit;
  const row = rowOf(commit);
  row?.scrollIntoView({ block: "center" });
  row?.focus({ preventScroll: true });
}

/** The row that shows a commit. */
function rowOf(commit) {
  return document.querySelector(`article[data-commit="${CSS.escape(keys.get(commit) ?? commit)}"]`);
}
