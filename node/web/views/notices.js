// What this browser alone is set to.

import { Action } from "../parts/form.js";
import { html } from "../parts/html.js";
import { notices, turnOff, turnOn } from "../state/notices.js";
import { ownToken, staySignedIn, tell, tokenKind } from "../state/session.js";
import { text } from "../strings/opened.js";

export function ThisBrowser() {
  const state = notices.value;
  const said = { on: text.noticesOn, off: text.noticesAbout, refused: text.noticesRefused, impossible: text.noticesImpossible };
  return html`<h3>${text.settingGroups.browser}</h3><div class="card" id="this-browser">
    <div class="setting"><b>${text.notices}</b><p class="facts">${said[state]}</p>
      ${state === "off" && html`<${Action} id="notices-on" act=${turnOn}>${text.turnOn}<//>`}
      ${state === "on" && html`<${Action} id="notices-off" act=${turnOff}>${text.turnOff}<//>`}</div>
    ${["page", "kept"].includes(tokenKind.value) && html`<div class="setting"><b>${text.stay}</b><p class="facts">${tokenKind.value === "kept" ? text.stays(ownToken.value) : text.stayAbout}</p>
      ${tokenKind.value === "page" && html`<${Action} id="stay-here" act=${stay}>${text.turnOn}<//>`}</div>`}</div>`;
}

async function stay() {
  await staySignedIn();
  tell(text.stayed);
}
