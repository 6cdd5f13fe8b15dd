// The open page: the head, the three views, and what lies over them.

import { Question } from "../parts/form.js";
import { short } from "../parts/format.js";
import { html } from "../parts/html.js";
import { addressOf, chosenBranch, current, isLive, route, status, view } from "../state/node.js";
import { dismiss, notices, problem, attempt } from "../state/session.js";
import { text } from "../strings/en.js";
import { Lost } from "./away.js";
import { leave } from "./browsers.js";
import { DetailsView, closePanel } from "./details.js";
import { ListView } from "./list.js";
import { Palette, openPalette } from "./palette.js";
import { TimelineView, focusTimeline } from "./timeline.js";

export function Shell() {
  return html`<div id="node" class=${isLive.value ? "node" : "node lost-node"} data-view=${view.value} data-panel=${route.value.panel}>
    <${Head} />
    <main>
      <${Lost} />
      <p id="problem" class="error" role="alert">${problem.value}
        ${problem.value && html`<button type="button" class="quiet" aria-label=${text.dismiss} onClick=${() => (problem.value = "")}>✕</button>`}</p>
      <div class="columns">
        <div class="pane list"><${ListView} /></div>
        <div class="pane middle" id="middle" tabindex="-1"><${TimelineView} /></div>
        <div class="pane details" role="region" aria-label=${text.details}><${DetailsView} /></div>
      </div>
      <${Notices} />
    </main>
    <${Tabs} />
    <${Palette} />
    <${Question} />
  </div>`;
}

function skip(event) {
  event.preventDefault(); // the address is the route
  focusTimeline();
}

function Head() {
  const known = status.value;
  const facts = known ? [text.repos(known.repos), text.commits(known.commits), text.version(known.version)] : [];
  if (known?.pending) facts.push(text.waitingForCauses(known.pending));
  if (known?.rejected) facts.push(text.rejected(known.rejected));
  const damaged = known ? known.damaged.commits + known.damaged.blocks : 0;
  if (damaged) facts.push(text.damaged(damaged));
  return html`<header>
    <a class="skip" href="#middle" onClick=${skip}>${text.skip}</a>
    <h1>${text.name}</h1>
    <p id="status" class="facts" title=${known?.node}>${known && text.node(short(known.node), facts.join(" · "))}</p>
    <p id="live" role="status" class=${isLive.value ? "good" : "alarm"}>${isLive.value ? text.live : text.notLive}</p>
    <button type="button" id="commands" aria-keyshortcuts="Control+K" onClick=${openPalette}>${text.commands} <kbd>${text.ctrlK}</kbd></button>
    <button id="leave" type="button" onClick=${leave}>${text.lock}</button>
  </header>`;
}

/** On a narrow screen: from one view to another. */
function Tabs() {
  const branch = chosenBranch.value || current.value.repo?.repo;
  const tab = (name, address, label) =>
    html`<a href=${address} aria-current=${view.value === name ? "page" : undefined}>${label}</a>`;
  return html`<nav class="tabs" aria-label=${text.views}>
    ${tab("list", "#/", text.list)}
    ${branch && tab("timeline", addressOf(branch), text.timeline)}
    ${branch && tab("details", addressOf(branch, route.value.panel || "about"), text.details)}
  </nav>`;
}

function Notices() {
  return html`<div class="notices" role="status">${notices.value.map((one) => html`<p key=${one.key}>${one.said}
    ${one.undo && html`<button type="button" onClick=${() => { dismiss(one.key); attempt(one.undo); }}>${text.undo}</button>`}
    <button type="button" class="quiet" aria-label=${text.dismiss} onClick=${() => dismiss(one.key)}>✕</button></p>`)}</div>`;
}

addEventListener("keydown", (event) => {
  if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") {
    event.preventDefault();
    openPalette();
  } else if (event.key === "Escape" && route.value.panel && !document.querySelector("dialog[open]")) {
    if (!["INPUT", "TEXTAREA", "SELECT"].includes(document.activeElement?.tagName)) closePanel();
  }
});
