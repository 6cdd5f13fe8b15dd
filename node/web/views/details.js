// The third view: panels about the chosen repo and branch, about one commit, and about the node.

import { html } from "../parts/html.js";
import { addressOf, chosenBranch, chosenRepo, current, go, route } from "../state/node.js";
import { text } from "../strings/en.js";
import { useEffect, useRef } from "../vendor/preact-hooks.js";
import { About } from "./about.js";
import { Backup } from "./backup.js";
import { Branches } from "./branches.js";
import { Browsers } from "./browsers.js";
import { Commit } from "./commit.js";
import { Devices } from "./devices.js";
import { Dict, SetOfItems } from "./documents.js";
import { Files } from "./files.js";
import { Health } from "./health.js";
import { Inbox } from "./inbox.js";
import { JoinRepo, NewRepo } from "./join.js";
import { Log } from "./log.js";
import { Members } from "./members.js";
import { Peers } from "./peers.js";
import { People } from "./people.js";
import { Quorum } from "./quorum.js";
import { Relay } from "./relay.js";
import { Report } from "./report.js";
import { Search } from "./search.js";
import { Settings } from "./settings.js";
import { Storage } from "./storage.js";
import { Text } from "./text.js";
import { focusTimeline } from "./timeline.js";
import { Tokens } from "./tokens.js";

/** Name in the address -> what is shown; `needs`: what must be chosen; `action`: of the token. In the order of the tabs. */
export const PANELS = {
  about: { needs: "repo", show: About },
  members: { needs: "repo", show: Members },
  branches: { needs: "repo", show: Branches },
  files: { needs: "branch", show: Files },
  set: { needs: "branch", show: SetOfItems },
  dict: { needs: "branch", show: Dict },
  text: { needs: "branch", show: Text },
  inbox: { needs: "branch", show: Inbox },
  quorum: { needs: "repo", show: Quorum },
  commit: { needs: "commit", show: Commit },
  search: { needs: "", show: Search },
  new: { needs: "", action: "admin", show: NewRepo },
  join: { needs: "", action: "admin", show: JoinRepo },
  peers: { needs: "", action: "node", show: Peers },
  relay: { needs: "", action: "node", show: Relay },
  people: { needs: "", action: "node", show: People },
  devices: { needs: "", action: "node", show: Devices },
  browsers: { needs: "", action: "node", show: Browsers },
  settings: { needs: "", action: "node", show: Settings },
  tokens: { needs: "", action: "node", show: Tokens },
  health: { needs: "", action: "node", show: Health },
  backup: { needs: "", action: "node", show: Backup },
  report: { needs: "", action: "node", show: Report },
  storage: { needs: "", action: "node", show: Storage },
  log: { needs: "", action: "node", show: Log },
};

let opener = null; // what had the focus when the panel was opened

/** Closes the panel. The keyboard goes back to where it was, else to the timeline. */
export function closePanel() {
  const back = opener;
  go(chosenBranch.value);
  setTimeout(() => { // when the views are drawn
    if (back?.isConnected) back.focus();
    if (document.activeElement !== back) focusTimeline();
  }, 0);
}

export function DetailsView() {
  const { repo, branch } = current.value;
  const asked = PANELS[route.value.panel] ? route.value.panel : repo ? "about" : "people";
  const panel = PANELS[asked];
  const place = useRef(null);
  const opened = `${route.value.panel}/${route.value.argument}`;
  const before = useRef(opened);
  useEffect(() => {
    // Keyboards and screen readers go where one asked to go. What is only shown beside the timeline takes nothing away.
    if (before.current === opened) return;
    before.current = opened;
    const from = document.activeElement;
    if (!from?.closest(".pane.details") && from !== document.body) opener = from;
    if (route.value.panel) (place.current?.querySelector("[data-first]") ?? place.current?.querySelector("h2"))?.focus();
  }, [opened]);
  if (panel.needs && !repo) return null;
  if (["branch", "commit"].includes(panel.needs) && !branch) return null;
  return html`
    ${repo && panel.needs && html`<${Tabs} asked=${asked} branch=${branch} />`}
    <section class="panel" ref=${place} aria-labelledby="panel-title">
      <h2 id="panel-title" tabindex="-1">${text.panels[asked]}</h2>
      <${panel.show} key=${`${asked} ${panel.needs === "branch" ? chosenBranch.value : chosenRepo.value}`} repo=${repo} branch=${branch} argument=${route.value.argument} />
    </section>`;
}

function Tabs({ asked, branch }) {
  const here = chosenBranch.value || chosenRepo.value;
  const names = Object.keys(PANELS).filter((name) => PANELS[name].needs === "repo" || (PANELS[name].needs === "branch" && branch));
  return html`<nav class="panel-tabs" aria-label=${text.panelsOf}>
    ${names.map((name) => html`<a href=${addressOf(here, name)} aria-current=${name === asked ? "page" : undefined}>${text.tabs[name]}</a>`)}
  </nav>`;
}
