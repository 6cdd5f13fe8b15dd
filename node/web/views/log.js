// The latest lines of the daemon's log: those of a level or worse, that say what one looks for; and all of them as a file.

import { Action, Empty, Loaded, saveAs, useLoaded } from "../parts/form.js";
import { fold } from "../parts/format.js";
import { html } from "../parts/html.js";
import { api } from "../state/session.js";
import { text } from "../strings/opened.js";
import { useState } from "../vendor/preact-hooks.js";

const LEVELS = ["debug", "info", "warning", "error", "critical"];
const CHOICES = ["info", "warning", "error"];
const LINE = /^timestamp='([^']*)' level='([a-z]+)' event=(.*)$/s;

/** `{ time, level, said }` of a line; of one in another form the whole is said. */
function parse(line) {
  const [, time = "", level = "", said = line] = LINE.exec(line) ?? [];
  return { time, level, said: said.replace(/^'([^']*)'/, "$1") };
}

export function Log() {
  const loaded = useLoaded(() => api.showLog(), [], true);
  const [least, setLeast] = useState("");
  const [asked, setAsked] = useState("");
  const isWanted = (line) => {
    const { level } = parse(line);
    return (!least || LEVELS.indexOf(level) >= LEVELS.indexOf(least)) && fold(line).includes(fold(asked));
  };
  return html`<p>${text.logAbout}</p>
    <div class="form inline">
      <label>${text.filter} <input type="search" id="log-filter" data-first autocomplete="off" onInput=${(event) => setAsked(event.target.value)} /></label>
      <label>${text.logLevel} <select id="log-level" onChange=${(event) => setLeast(event.target.value)}>
        <option value="">${text.logLevels[""]}</option>${CHOICES.map((one) => html`<option value=${one}>${text.logLevels[one]}</option>`)}</select></label>
      <${Action} act=${loaded.again}>${text.again}<//>
      ${loaded.data && html`<${Action} id="save-log" act=${() => saveAs(new Blob([loaded.data.lines.join("\n"), "\n"], { type: "text/plain" }), "ravel.log")}>${text.saveFile}<//>`}
    </div>
    <${Loaded} of=${loaded} lines=${8}>${({ lines }) => {
      const wanted = lines.filter(isWanted);
      return html`<p id="log-count" class="facts" role="status">${text.logCount(wanted.length, lines.length)}</p>
        ${wanted.length ? html`<ol class="log" reversed tabindex="0" aria-label=${text.panels.log}>${wanted.reverse().map((line) => html`<${Line} line=${line} />`)}</ol>` : html`<${Empty}><p>${text.logNothing}</p><//>`}`;
    }}<//>`;
}

function Line({ line }) {
  const { time, level, said } = parse(line);
  return html`<li class=${level}>${time && html`<time datetime=${time}>${time.slice(0, 19).replace("T", " ")}</time> `}${level && html`<strong>${level}</strong> `}${said}</li>`;
}
