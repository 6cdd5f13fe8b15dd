// The panels by their names in the address, and how one is shown: in the middle or in the details.

import { Skeleton } from "../parts/form.js";
import { html } from "../parts/html.js";
import { chosenBranch, chosenRepo, current, go, route } from "../state/node.js";
import { problem } from "../state/session.js";
import { text } from "../strings/text.js";
import { useEffect, useRef, useState } from "../vendor/preact-hooks.js";
import { About } from "./about.js";
import { Backup } from "./backup.js";
import { Branches } from "./branches.js";
import { Browsers } from "./browsers.js";
import { Commit } from "./commit.js";
import { Devices } from "./devices.js";
import { Dict, SetOfItems } from "./documents.js";
import { Files } from "./files.js";
import { ForYou } from "./for_you.js";
import { Health } from "./health.js";
import { Inbox } from "./inbox.js";
import { JoinRepo, NewRepo } from "./join.js";
import { Log } from "./log.js";
import { Members } from "./members.js";
import { Peers } from "./peers.js";
import { People } from "./people.js";
import { Person, devicesOf, nameOf } from "./person.js";
import { Quorum } from "./quorum.js";
import { Report } from "./report.js";
import { Search } from "./search.js";
import { Settings } from "./settings.js";
import { Storage } from "./storage.js";
import { focusTimeline } from "./timeline.js";
import { Thread } from "./thread.js";
import { Tokens } from "./tokens.js";
import { Unread } from "./unread.js";

/** A view whose scripts come when it is opened: the first visit loads the others. */
function later(load) {
  return function Later(given) {
    const [view, setView] = useState(null);
    useEffect(() => {
      load().then((found) => setView(() => found), () => (problem.value = text.noView));
    }, []);
    return view ? html`<${view} ...${given} />` : html`<${Skeleton} lines=${5} />`;
  };
}

/**
 * Name in the address -> what is shown; `needs`: what must be chosen; `action`: of the token; `over`: the view it stands
 * beside; `isOfView`: the argument is that view's; `icon`: in the list of the node's pages.
 */
export const PANELS = {
  about: { needs: "repo", show: About },
  members: { needs: "repo", show: Members },
  person: { needs: "person", show: Person, over: "members" },
  branches: { needs: "repo", show: Branches },
  files: { needs: "branch", show: Files },
  set: { needs: "branch", show: SetOfItems },
  dict: { needs: "branch", show: Dict },
  text: { needs: "branch", show: later(async () => (await import("./text.js")).Text) },
  written: { needs: "branch", show: later(async () => (await import("./written.js")).Written), over: "text", isOfView: true },
  inbox: { needs: "branch", show: Inbox },
  quorum: { needs: "repo", show: Quorum },
  commit: { needs: "commit", show: Commit },
  thread: { needs: "commit", show: Thread },
  "for-you": { needs: "", show: ForYou },
  unread: { needs: "", show: Unread },
  search: { needs: "", show: Search },
  new: { needs: "", action: "admin", show: NewRepo },
  join: { needs: "", action: "admin", show: JoinRepo },
  settings: { needs: "", action: "node", show: Settings, icon: "gear" },
  people: { needs: "", action: "node", show: People, icon: "person" },
  devices: { needs: "", action: "node", show: Devices, icon: "laptop" },
  browsers: { needs: "", action: "node", show: Browsers, icon: "phone" },
  peers: { needs: "", action: "node", show: Peers, icon: "link" },
  relay: { needs: "", action: "node", show: later(async () => (await import("./relay.js")).Relay), icon: "relay" },
  backup: { needs: "", action: "node", show: Backup, icon: "lock" },
  health: { needs: "", action: "node", show: Health, icon: "heart" },
  storage: { needs: "", action: "node", show: Storage, icon: "disk" },
  tokens: { needs: "", action: "node", show: Tokens, icon: "app" },
  report: { needs: "", action: "node", show: Report, icon: "sheet" },
  log: { needs: "", action: "node", show: Log, icon: "text" },
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
  return name === "person" ? nameOf(devicesOf(argument)[0] ?? { user: argument }) : text.panels[name];
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
  if (panel.needs && !repo) return null;
  if (["branch", "commit"].includes(panel.needs) && !branch) return null;
  const key = `${name} ${panel.needs === "branch" ? chosenBranch.value : chosenRepo.value}`;
  return html`<div class="panel" ref=${place}>
    ${heading && html`<h2 id="panel-title" tabindex="-1" class=${heading}>${text.panels[name]}</h2>`}
    <${panel.show} key=${key} repo=${repo} branch=${branch} argument=${route.value.argument} />
  </div>`;
}
