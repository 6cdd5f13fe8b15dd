// What stops the node from working now or soon, as `ravel doctor` finds it.

import { Action, Loaded, useLoaded } from "../parts/form.js";
import { html } from "../parts/html.js";
import { api } from "../state/session.js";
import { text } from "../strings/text.js";

const ORDER = ["problem", "warning", "ok"];

export function Health() {
  const loaded = useLoaded(() => api.checkHealth(), [], true);
  return html`<p>${text.healthAbout}</p>
    <${Action} act=${loaded.again}>${text.again}<//>
    <${Loaded} of=${loaded} lines=${8}>${({ checks, problems }) => html`
      <p id="verdict-of-checks" class=${problems ? "error" : "good"} role="status">${text.problems(problems, checks.filter((one) => one.state === "warning").length)}</p>
      <ul id="checks" class="plain">${ORDER.flatMap((state) => checks.filter((one) => one.state === state)).map((one) => html`<li class=${`check ${one.state}`}>
        <strong class=${one.state === "ok" ? "good" : "alarm"}>${text.checkStates[one.state]}</strong> <span class="facts">${text.nodeSaid(one.name)}</span>
        <p>${text.nodeSaid(one.detail)}</p>
        ${one.advice && html`<p class="facts">${text.whatToDo(text.nodeSaid(one.advice))}</p>`}</li>`)}</ul>`}<//>`;
}
