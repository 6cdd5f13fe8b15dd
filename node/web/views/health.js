// What stops the node from working now or soon, as `ravel doctor` finds it.

import { Icon } from "../parts/face.js";
import { Action, Loaded, useLoaded } from "../parts/form.js";
import { html } from "../parts/html.js";
import { api } from "../state/session.js";
import { text } from "../strings/opened.js";

const ORDER = ["problem", "warning", "ok"];
const SIGNS = { problem: ["bad", "warn"], warning: ["warn", "warn"], ok: ["good", "check"] }; // state -> its color and icon
const capital = (said) => said[0].toUpperCase() + said.slice(1);

export function Health() {
  const loaded = useLoaded(() => api.checkHealth(), [], true);
  return html`<p>${text.healthAbout}</p>
    <${Action} act=${loaded.again}>${text.again}<//>
    <${Loaded} of=${loaded} lines=${8}>${({ checks, problems }) => html`
      <p id="verdict-of-checks" class=${problems ? "error" : "good"} role="status">${text.problems(problems, checks.filter((one) => one.state === "warning").length)}</p>
      <ul id="checks" class="card">${ORDER.flatMap((state) => checks.filter((one) => one.state === state)).map((one) => html`<li class="health" data-state=${one.state}>
        <span class=${SIGNS[one.state][0]}><${Icon} name=${SIGNS[one.state][1]} /></span>
        <b><span class="unseen">${text.checkStates[one.state]}: </span>${capital(text.nodeSaid(one.name))}</b>
        <p class="facts">${text.nodeSaid(one.detail)}</p>
        ${one.advice && html`<p>${text.whatToDo(text.nodeSaid(one.advice))}</p>`}</li>`)}</ul>`}<//>`;
}
