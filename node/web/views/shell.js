// The open page: the list, the middle, the details beside it, and what lies over them.

import { Icon } from "../parts/face.js";
import { Question } from "../parts/form.js";
import { html } from "../parts/html.js";
import { beside, hasPanel, isLive, repos, route, view } from "../state/node.js";
import { actions, attempt, dismiss, notices } from "../state/session.js";
import { text } from "../strings/text.js";
import { Details, closePanel, hasDetails } from "./details.js";
import { waiting } from "./for_you.js";
import { Keys, openKeys } from "./keys.js";
import { List } from "./list.js";
import { Middle } from "./middle.js";
import { Palette, openPalette } from "./palette.js";
import { focusTimeline, takeKey } from "./timeline.js";
import { Viewer } from "./viewer.js";

const WITH_BAR = ["for-you", "search", "settings"]; // where the bar of a phone leads to
const COLUMNS = { list: "list", middle: "mid", details: "pane" }; // of style/narrow.css

export function Shell() {
  const columns = `cols view-${COLUMNS[view.value]}${hasDetails.value ? "" : " two"}${WITH_BAR.includes(route.value.panel) || repos.value?.length === 0 ? " with-bar" : ""}`;
  return html`<div id="node" class=${isLive.value ? "app" : "app lost-node"} data-view=${view.value} data-panel=${route.value.panel}>
    <a class="skip" href="#middle" onClick=${skip}>${text.skip}</a>
    <main class=${columns}>
      <${List} />
      <div class="mid" id="middle" tabindex="-1"><${Middle} /></div>
      ${hasDetails.value && html`<${Details} />`}
    </main>
    <${Bar} />
    <${Notices} />
    <${Palette} />
    <${Keys} />
    <${Viewer} />
    <${Question} />
  </div>`;
}

function skip(event) {
  event.preventDefault(); // the address is the route
  focusTimeline();
}

/** On a phone, below the list: the ways to what is not a branch. */
function Bar() {
  const { panel } = route.value;
  const link = (name, address, icon, label) =>
    html`<a href=${address} aria-current=${panel === name ? "page" : undefined}><${Icon} name=${icon} />${label}</a>`;
  return html`<nav class="bar" aria-label=${text.views}>
    <a href="#/" aria-current=${view.value === "list" ? "page" : undefined}><${Icon} name="list" />${text.list}</a>
    <a href=${beside("for-you")} aria-current=${panel === "for-you" ? "page" : undefined}><${Icon} name="at" />${text.panels["for-you"]}
      ${waiting.value > 0 && html`<span class="badge at">${waiting.value}</span>`}</a>
    ${link("search", beside("search"), "search", text.panels.search)}
    ${actions.value.includes("node") && hasPanel("settings") && link("settings", beside("settings"), "person", text.panels.you)}
  </nav>`;
}

function Notices() {
  return html`<div class="toasts notices" role="status">${notices.value.map((one) => html`<p class="toast" key=${one.key}><span class="grow">${one.said}</span>
    ${one.undo && html`<button type="button" onClick=${() => { dismiss(one.key); attempt(one.undo); }}>${text.undo}</button>`}
    <button type="button" class="quiet icon" aria-label=${text.dismiss} onClick=${() => dismiss(one.key)}><${Icon} name="close" size="s" /></button></p>`)}</div>`;
}

const KEYS = ["j", "k", "r", "e"]; // of the timeline, from wherever nothing has the keyboard

addEventListener("keydown", (event) => {
  if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") {
    event.preventDefault();
    openPalette();
    return;
  }
  if (document.querySelector("dialog[open]") || document.activeElement?.matches("input, textarea, select")) return;
  if (event.key === "Escape" && route.value.panel) closePanel();
  else if (event.key === "?" && !document.activeElement?.isContentEditable) openKeys();
  else if (KEYS.includes(event.key) && !event.ctrlKey && !event.metaKey && !event.altKey && document.activeElement === document.body) {
    event.preventDefault(); // what is typed next is not to begin with it
    takeKey(event.key);
  }
});
