// What this browser alone is set to.

import { Action } from "../parts/form.js";
import { html } from "../parts/html.js";
import { notices, turnOff, turnOn } from "../state/notices.js";
import { text } from "../strings/opened.js";

export function ThisBrowser() {
  const state = notices.value;
  const said = { on: text.noticesOn, off: text.noticesAbout, refused: text.noticesRefused, impossible: text.noticesImpossible };
  return html`<h3>${text.notices}</h3>
    <p class="facts">${said[state]}</p>
    ${state === "off" && html`<${Action} id="notices-on" act=${turnOn}>${text.turnOn}<//>`}
    ${state === "on" && html`<${Action} id="notices-off" act=${turnOff}>${text.turnOff}<//>`}`;
}
