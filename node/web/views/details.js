// The third column: it explains what is chosen in the middle, a branch or a post.

import { Icon } from "../parts/face.js";
import { html } from "../parts/html.js";
import { current, isBeside, go, chosenBranch, chosenRepo, route } from "../state/node.js";
import { text } from "../strings/text.js";
import { computed, signal } from "../vendor/signals.js";
import { Panel, closePanel, titleOf } from "./panels.js";

export { closePanel };

const isWanted = signal(true); // where there is room for it
/** View -> the panel that stands beside it unasked: who reads posts or a text wants no more than to look aside. */
const BESIDE_VIEW = { "": "about", text: "written" };
/** What the button of the column opens. */
export const offered = computed(() => BESIDE_VIEW[route.value.panel] ?? "about");

/** The panel that the column shows; empty: none. */
const shown = computed(() => {
  const { panel } = route.value;
  if (isBeside(panel)) return panel;
  return isWanted.value && current.value.branch ? (BESIDE_VIEW[panel] ?? "") : "";
});
export const hasDetails = computed(() => shown.value !== "");

/** Opens the column at what is about the view or the branch, or closes it. */
export function toggleDetails() {
  const isRoom = matchMedia("(min-width: 75rem)").matches;
  if (isBeside(route.value.panel)) return hide();
  if (isRoom && hasDetails.value) return hide();
  isWanted.value = true;
  if (isRoom && shown.value) return undefined;
  return go(chosenBranch.value || chosenRepo.value, offered.value, offered.value === "about" ? "" : route.value.argument);
}

function hide() {
  isWanted.value = false;
  if (isBeside(route.value.panel)) closePanel();
}

export function Details() {
  const name = shown.value;
  return html`<section class=${`pane details${isBeside(route.value.panel) ? " asked" : ""}`} aria-labelledby="details-title">
    <header class="top"><h1 class="unseen">${current.value.repo?.name}</h1><h2 id="details-title" class="cut" tabindex="-1">${titleOf(name)}</h2>
      <button type="button" id="close-details" class="quiet icon" aria-label=${text.closeDetails} onClick=${hide}><${Icon} name="close" /></button></header>
    <div class="scroll" tabindex="0" role="region" aria-label=${text.details}><${Panel} key=${name} name=${name} /></div>
  </section>`;
}
