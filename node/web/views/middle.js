// The middle: a branch with its views, or a page of the node, of search, of a new repo.

import { Face, Icon } from "../parts/face.js";
import { useLoaded } from "../parts/form.js";
import { ID_SHOWN, short } from "../parts/format.js";
import { html } from "../parts/html.js";
import { later } from "../parts/later.js";
import { addressOf, beside, chosenBranch, current, hasPanel, isBeside, isLive, isMine, may, members, peers, persons, repos, route, status } from "../state/node.js";
import { api, attempt, attemptItself, problem } from "../state/session.js";
import { Timeline } from "../state/timeline.js";
import { text } from "../strings/text.js";
import { useEffect, useRef } from "../vendor/preact-hooks.js";
import { Lost } from "./away.js";
import { Compose } from "./compose.js";
import { hasDetails, offered, toggleDetails } from "./details.js";
import { leave } from "./login.js";
import { NotesStrip } from "./notes.js";
import { openPalette } from "./palette.js";
import { PANELS, Panel } from "./panels.js";
import { Standing, Transfer, isOnlyYou, isPassedOn, signOf } from "./standing.js";
import { Posts, goTo, shown } from "./timeline.js";

const Start = later(() => import("./start.js"), "Start");
const FACES = 3;
const COUNTED_MAX = 100; // files, and lists, tables and texts, that a tab counts
/** The views of a branch: name -> panels that stand in it, the first for the tab itself. */
const VIEWS = { notes: ["text", "set", "dict"], files: ["files"], offers: ["inbox"], people: ["members"] };
const NODE_PAGES = Object.keys(PANELS).filter((name) => PANELS[name].action === "node");

export function Middle() {
  const { repo, branch } = current.value;
  useTimeline(chosenBranch.value);
  const { panel } = route.value;
  const isPage = PANELS[panel] && !PANELS[panel].needs;
  if (isPage) return html`<${Page} name=${panel} />`;
  if (!repo) return html`<${Strips} />${repos.value && html`<${Start} />`}`;
  const inMiddle = PANELS[panel]?.over ?? (PANELS[panel] && !isBeside(panel) ? panel : "");
  return html`<${Head} repo=${repo} branch=${branch} />
    <${Strips} />
    ${branch && html`<${Tabs} repo=${repo} branch=${branch} asked=${inMiddle} />`}
    ${inMiddle ? html`<${View} name=${inMiddle} branch=${branch} />` : branch && html`<section id="branch" class="fills" aria-labelledby="branch-name">
      <${Posts} timeline=${shown.value} branch=${branch} />
      <${Foot} repo=${repo} branch=${branch} /></section>`}`;
}

/** Follows the timeline of the chosen branch, whichever of its views is shown. */
function useTimeline(id) {
  useEffect(() => {
    if (!id) return undefined;
    const stop = new AbortController();
    const timeline = new Timeline(api, id, (error) => attemptItself(() => Promise.reject(error)));
    shown.value = timeline;
    attemptItself(() => timeline.follow(stop.signal));
    return () => {
      stop.abort();
      shown.value = null;
    };
  }, [id, api]);
}

/** What went wrong, and that the node is away. */
function Strips() {
  return html`<${Lost} />
    <div id="problem" class=${problem.value ? "strip bad" : ""} role="alert">${problem.value && html`<${Icon} name="warn" /><p>${problem.value}</p>
      <button type="button" class="quiet icon" aria-label=${text.dismiss} onClick=${() => (problem.value = "")}><${Icon} name="close" size="s" /></button>`}</div>`;
}

function Back() {
  return html`<a class="button quiet icon back" href="#/" aria-label=${text.backToList}><${Icon} name="back" /></a>`;
}

function Head({ repo, branch }) {
  const { standing } = repo;
  const isAlone = isOnlyYou(repo);
  const people = addressOf(branch?.branch ?? repo.repo, "members");
  return html`<header class="top"><${Back} />
    <div class="title">
      <h1 id="branch-name"><bdi class="cut of">${repo.name}</bdi>${branch && html`<span class="of" aria-hidden="true">/</span><bdi class="cut">${branch.name}</bdi>`}</h1>
      <p id="standing" class=${`sync ${isAlone ? "off" : signOf(standing)}`}><span class="cut">${isAlone ? html`${text.onlyYou}` : html`<${Standing} of=${standing} />`}</span></p>
      <${Transfer} of=${standing.progress} />
    </div>
    <${Faces} people=${people} />
    ${branch && html`<${Jump} />`}
    <button type="button" class="quiet icon" aria-label=${text.searchOrDo} title=${text.searchOrDo} onClick=${openPalette}><${Icon} name="search" /></button>
    ${branch && html`<button type="button" id="details" class="quiet icon" aria-label=${text.panels[offered.value]} title=${text.panels[offered.value]} aria-pressed=${hasDetails.value}
      onClick=${toggleDetails}><${Icon} name="pane" /></button>`}
  </header>`;
}

/** Who is in the repo: others first, those that are connected with a dot. */
function Faces({ people }) {
  const all = persons.value.map(([first]) => first).filter((one) => !isMine(one.user));
  if (!all.length) return null;
  const rest = all.length - FACES;
  return html`<a class="stack wide" href=${people} title=${text.panels.members}><span class="unseen">${text.panels.members}</span>
    ${all.slice(0, FACES).map((one) => html`<${Face} key=${one.user} id=${one.user} name=${one.name} size="s" />`)}
    ${rest > 0 && html`<span class="av s rest" aria-hidden="true">+${rest}</span>`}</a>`;
}

function Jump() {
  const timeline = shown.value;
  const jump = async (event) => {
    const seconds = new Date(`${event.target.value}T00:00:00`).getTime() / 1000;
    if (timeline && !Number.isNaN(seconds)) await attempt(() => goTo(seconds));
  };
  const pick = (event) => event.currentTarget.nextElementSibling.showPicker?.();
  return html`<span class="pick-day wide"><button type="button" class="quiet icon" aria-label=${text.jumpTo} title=${text.jumpTo} onClick=${pick}><${Icon} name="calendar" /></button>
    <input type="date" id="jump" tabindex="-1" aria-label=${text.jumpTo} onChange=${jump} /></span>`;
}

/** How many notes and files a branch has, as far as they are counted; nothing while that is not known. */
function useCounts(branch, panel) {
  const files = useLoaded(() => api.listFiles({ branch, limit: COUNTED_MAX }), [branch]).data;
  // Looking for documents costs more the more there are: not at each change, but as one goes from view to view.
  const found = useLoaded(() => api.listDocuments({ branch, limit: COUNTED_MAX }), [branch, panel], true).data;
  const last = useRef({}); // while the next comes
  if (found) last.current = { branch, next: found.next, all: found.documents.filter(({ kind }) => VIEWS.notes.includes(kind)) };
  return { notes: last.current.branch === branch ? countOf(last.current) : "", files: countOf(files && { next: files.next, all: files.files }) };
}

const countOf = (of) => (of?.all.length ? text.unreadCount(of.all.length, of.next !== null) : "");

function Tabs({ repo, branch, asked }) {
  const counts = useCounts(branch.branch, asked);
  const tab = (name, panel, count, isNew = false) => {
    const isHere = name === "posts" ? !asked : VIEWS[name].includes(asked);
    return html`<a href=${addressOf(branch.branch, panel)} aria-current=${isHere ? "page" : undefined}>${text.views_[name]}
      ${Boolean(count) && (isNew ? html`<span class="badge at">${count}</span>` : html` <small>${count}</small>`)}</a>`;
  };
  return html`<nav class="tabs" aria-label=${text.views}>
    ${tab("posts", "")}
    ${tab("notes", "text", counts.notes)}
    ${tab("files", "files", counts.files)}
    ${tab("offers", "inbox", repo.offers, true)}
    ${repo.requests > 0 ? tab("people", "members", repo.requests, true) : tab("people", "members", persons.value.length)}
  </nav>`;
}

/** One view of a branch but its posts. */
function View({ name, branch }) {
  return html`<div class="scroll" tabindex="0" role="region" aria-labelledby="panel-title">
    ${branch && VIEWS.notes.includes(name) && html`<${NotesStrip} repo=${current.value.repo} branch=${branch} panel=${name} argument=${route.value.argument} />`}
    <div class=${name === "text" ? "paper" : "sheet"}><${Panel} key=${VIEWS.notes.slice(1).includes(name) ? `${name} ${route.value.argument}` : name} name=${name} heading="unseen" /></div></div>`;
}

/** A page that is about no branch: of the node they stand beside each other. */
function Page({ name }) {
  const isNode = NODE_PAGES.includes(name);
  useEffect(() => document.querySelector(".set-nav [aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" }), [name]);
  const page = html`<div class="scroll" tabindex="0" role="region" aria-labelledby="panel-title"><div class="sheet narrow"><${Panel} key=${name} name=${name} heading="title-xl" /></div></div>`;
  if (!isNode) return html`<header class="top"><${Back} /><h1 class="unseen">${text.name}</h1></header><${Strips} />${page}`;
  return html`<header class="top"><${Back} /><div class="title"><h1>${text.thisNode}</h1><${Company} /></div></header><${Strips} />
    <div class="settings lined">
      <nav class="set-nav" aria-label=${text.thisNode}>${NODE_PAGES.filter(hasPanel).map((one) => html`
        <a class="nav-row" href=${beside(one)} aria-current=${one === name ? "page" : undefined}><${Icon} name=${PANELS[one].icon} />${text.panels[one]}</a>`)}
        <button id="leave" type="button" class="nav-row" onClick=${leave}><${Icon} name="out" />${text.lock}</button></nav>
      ${page}
    </div>`;
}

/** Whose computers this one is connected with. */
function Company() {
  if (!peers.value || !isLive.value) return null;
  const names = [...new Set(peers.value.filter(({ state }) => state === "connected").map((one) => text.calledPeer(one) || short(one.peer)))];
  const rest = names.length - FACES;
  return html`<p id="company" class=${names.length ? "sync" : "sync off"}><bdi class="cut">${names.length ? text.connectedWith(names.slice(0, FACES), rest) : text.nobodyConnected}</bdi></p>`;
}

/** Where one writes; or why one does not. */
function Foot({ repo, branch }) {
  if (may(repo, "write") && !branch.archived) {
    if (repo.standing.uncertain) return html`<p id="may-not" class="foot">${text.notYet}</p>`;
    return html`<${Nameless} repo=${repo} /><${Compose} key=${branch.branch} repo=${repo} branch=${branch} />`;
  }
  const why = isPassedOn(repo) ? "moved" : repo.permission;
  return html`<p id="may-not" class="foot">${branch.archived ? text.archivedHere : (text.mayNot[why] ?? text.mayNot.read)}
    ${why === "former" && html` <a href=${addressOf(branch.branch, "about")}>${text.formerNext}</a>`}</p>`;
}

/** A member who has stated no name sees how others see them. */
function Nameless({ repo }) {
  const own = members.value?.find((one) => one.user === status.value?.user);
  if (!own || own.name || !may(repo, "write")) return null;
  return html`<p id="nameless" class="foot">${text.namelessAbout(own.user.slice(0, ID_SHOWN))} <a href=${beside("people")}>${text.nameYourself}</a></p>`;
}
