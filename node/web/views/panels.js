// The panels by their names in the address, and how one is shown: in the middle or in the details.

import { nameOf } from "../parts/face.js";
import { html } from "../parts/html.js";
import { later } from "../parts/later.js";
import { chosenBranch, chosenRepo, current, devicesOf, go, route } from "../state/node.js";
import { text } from "../strings/text.js";
import { useEffect, useRef } from "../vendor/preact-hooks.js";
import { About } from "./about.js";
import { Commit } from "./commit.js";
import { Files } from "./files.js";
import { ForYou } from "./for_you.js";
import { Search } from "./search.js";
import { focusTimeline } from "./timeline.js";
import { Thread } from "./thread.js";
import { Unread } from "./unread.js";

/**
 * Name in the address -> what is shown; `needs`: what must be chosen; `action`: of the token; `over`: the view it stands
 * beside; `isOfView`: the argument is that view's; `icon`: in the list of the node's pages.
 */
export const PANELS = {
  about: { needs: "repo", show: About },
  members: { needs: "repo", show: later(() => import("./members.js"), "Members") },
  person: { needs: "person", show: later(() => import("./person.js"), "Person"), over: "members" },
  "posts-by": { needs: "branch", show: later(() => import("./posts_by.js"), "PostsBy"), over: "members" },
  branches: { needs: "repo", show: later(() => import("./branches.js"), "Branches") },
  files: { needs: "branch", show: Files },
  set: { needs: "branch", show: later(() => import("./documents.js"), "SetOfItems") },
  dict: { needs: "branch", show: later(() => import("./documents.js"), "Dict") },
  text: { needs: "branch", show: later(() => import("./text.js"), "Text") },
  written: { needs: "branch", show: later(() => import("./written.js"), "Written"), over: "text", isOfView: true },
  inbox: { needs: "branch", show: later(() => import("./inbox.js"), "Inbox") },
  quorum: { needs: "repo", show: later(() => import("./quorum.js"), "Quorum") },
  commit: { needs: "commit", show: Commit },
  thread: { needs: "commit", show: Thread },
  "for-you": { needs: "", show: ForYou },
  unread: { needs: "", show: Unread },
  search: { needs: "", show: Search },
  new: { needs: "", action: "admin", show: later(() => import("./join.js"), "NewRepo") },
  join: { needs: "", action: "admin", show: later(() => import("./join.js"), "JoinRepo") },
  settings: { needs: "", action: "node", show: later(() => import("./settings.js"), "Settings"), icon: "gear" },
  people: { needs: "", action: "node", show: later(() => import("./people.js"), "People"), icon: "person" },
  devices: { needs: "", action: "node", show: later(() => import("./devices.js"), "Devices"), icon: "laptop" },
  browsers: { needs: "", action: "node", show: later(() => import("./browsers.js"), "Browsers"), icon: "phone" },
  peers: { needs: "", action: "node", show: later(() => import("./peers.js"), "Peers"), icon: "link" },
  relay: { needs: "", action: "node", show: later(() => import("./relay.js"), "Relay"), icon: "relay" },
  backup: { needs: "", action: "node", show: later(() => import("./backup.js"), "Backup"), icon: "lock" },
  health: { needs: "", action: "node", show: later(() => import("./health.js"), "Health"), icon: "heart" },
  storage: { needs: "", action: "node", show: later(() => import("./storage.js"), "Storage"), icon: "disk" },
  tokens: { needs: "", action: "node", show: later(() => import("./tokens.js"), "Tokens"), icon: "app" },
  report: { needs: "", action: "node", show: later(() => import("./report.js"), "Report"), icon: "sheet" },
  log: { needs: "", action: "node", show: later(() => import("./log.js"), "Log"), icon: "text" },
};

let opener = null; // what had the focus when the panel was opened
let isBack = false; // the panel beside a view was closed, and that view is what is asked for: the keyboard stays where it was

/** Closes the panel. The keyboard goes back to where it was, else to the timeline. */
export function closePanel() {
  const back = opener;
  const { over = "", isOfView } = PANELS[route.value.panel] ?? {};
  isBack = Boolean(over && back?.isConnected);
  go(chosenBranch.value || (over && chosenRepo.value), over, isOfView ? route.value.argument : "");
  setTimeout(() => { // when the columns are drawn
    if (back?.isConnected) back.focus();
    if (document.activeElement !== back) focusTimeline();
  }, 0);
}

/** What a panel's heading says: of a person the name. */
export function titleOf(name) {
  const { argument } = route.value;
  if (!["person", "posts-by"].includes(name)) return text.panels[name];
  const called = nameOf(devicesOf(argument)[0] ?? { user: argument });
  return name === "person" ? called : text.postsBy(called);
}

/** What a panel shows; null where what it needs is not chosen. `heading`: the class of its heading; empty: it stands elsewhere. */
export function Panel({ name, heading = "" }) {
  const { repo, branch } = current.value;
  const panel = PANELS[name];
  const place = useRef(null);
  const opened = `${route.value.panel}/${route.value.argument}`;
  useEffect(() => {
    // Keyboards and screen readers go where one asked to go. What is shown unasked takes nothing away.
    if (route.value.panel !== name) return;
    if (isBack) {
      isBack = false;
      return;
    }
    const from = document.activeElement;
    const isWithin = from?.closest(".panel") && (heading || !from.closest(".mid")); // what opens a panel beside a view stands in it
    if (from && !isWithin && from !== document.body) opener = from;
    (place.current?.querySelector("[data-first]") ?? document.getElementById(heading ? "panel-title" : "details-title"))?.focus();
  }, [opened]);
  /** A view that had to be loaded takes the keyboard then, unless that has gone elsewhere. */
  const enterFirst = () => {
    if (route.value.panel === name && document.activeElement?.matches("body, #panel-title, #details-title")) place.current?.querySelector("[data-first]")?.focus();
  };
  if (panel.needs && !repo) return null;
  if (["branch", "commit"].includes(panel.needs) && !branch) return null;
  const key = `${name} ${panel.needs === "branch" ? chosenBranch.value : chosenRepo.value}`;
  return html`<div class="panel" ref=${place}>
    ${heading && html`<h2 id="panel-title" tabindex="-1" class=${heading}>${text.panels[name]}</h2>`}
    <${panel.show} key=${key} came=${enterFirst} repo=${repo} branch=${branch} argument=${route.value.argument} />
  </div>`;
}
