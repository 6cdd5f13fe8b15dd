// What this user calls itself, and what it calls others.

import { Hues, hueOf, statedOf } from "../parts/face.js";
import { Action, Empty, Form, Loaded, useLoaded } from "../parts/form.js";
import { html } from "../parts/html.js";
import { refresh } from "../state/node.js";
import { api, isPerson, tell } from "../state/session.js";
import { text } from "../strings/opened.js";
import { useState } from "../vendor/preact-hooks.js";

export function People() {
  const me = useLoaded(() => api.showMe(), []);
  const [hue, setHue] = useState(null);
  const petnames = useLoaded(() => api.listPetnames(), []);
  return html`<${Loaded} of=${me}>${(own) => html`
      <p>${text.meAbout}</p>
      ${!isPerson.value && html`<p class="facts">${own.name && html`<bdi class="person">${own.name}</bdi> · `}${text.namesAtMachine}</p>`}
      ${isPerson.value && html`<${Form} id="me" keep button=${text.save_} send=${async ({ name, hue: chosen }) => {
        await api.stateMe({ name: name.trim() || null, color: statedOf(chosen) });
        await me.again();
        await refresh();
        tell(text.saved);
      }}>
        <label>${text.myName} <input name="name" maxlength="64" defaultValue=${own.name ?? ""} autocomplete="nickname" /></label>
        <${Hues} chosen=${hue ?? hueOf(own.user, own.color)} choose=${setHue} />
      <//>`}
      <details class="fold"><summary>${text.forExperts}</summary><dl class="pairs"><dt>${text.id}</dt><dd class="mono id">${own.user}</dd></dl></details>
      ${own.repos.some((one) => one.state === "due") && html`<ul class="plain">${own.repos.filter((one) => one.state === "due").map((one) => html`<li class="facts"><bdi>${one.name}</bdi>: ${text.stated[one.state]}</li>`)}</ul>`}`}<//>
    <h3>${text.petnames}</h3>
    <p class="facts">${text.petnamesAbout}</p>
    <${Loaded} of=${petnames} lines=${2}>${({ petnames: users, peers }) => {
      const all = [...users.map((one) => ({ ...one, peer: false })), ...peers.map((one) => ({ ...one, peer: true }))];
      return all.length
        ? html`<ul class="plain">${all.map((one) => html`<li><bdi class="person">${one.name}</bdi>
            ${isPerson.value && html`<${Action} class="quiet" act=${async () => {
              await api.setPetname({ user: one.user, name: null, peer: one.peer });
              await petnames.again();
              await refresh();
            }}>${text.remove}<//>`}</li>`)}</ul>`
        : html`<${Empty}><p>${text.noPetnames}</p><//>`;
    }}<//>`;
}
