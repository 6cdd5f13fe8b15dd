// What the store takes, how it grows, and exports.

import { Action, Loaded, saveFrom, useLoaded } from "../parts/form.js";
import { bytes, dayName, when } from "../parts/format.js";
import { html } from "../parts/html.js";
import { beside, status } from "../state/node.js";
import { api, isPerson } from "../state/session.js";
import { text } from "../strings/opened.js";
import { useState } from "../vendor/preact-hooks.js";

export function Storage() {
  const loaded = useLoaded(() => api.showStorage(), [], true);
  return html`<${Loaded} of=${loaded}>${(storage) => html`<${Use} storage=${storage} />`}<//>
    <h3>${text.export}</h3>
    <${Export} />
    <p class="facts">${status.value && text.home(status.value.home, status.value.listen)}</p>`;
}

function Export() {
  const found = useLoaded(() => api.showExport(), [], true);
  const [exported, setExported] = useState("");
  const write = async () => {
    setExported(text.exporting);
    let said = "";
    try {
      const done = await api.exportStore();
      said = text.exported(done.commits, done.added, done.path);
      await found.again();
    } finally {
      setExported(said);
    }
  };
  return html`<p>${text.exportAbout}</p>
    <p class="buttons"><${Action} id="export" act=${write}>${text.export}<//>
      ${isPerson.value && found.data?.made_at && html`<${Action} id="save-export" act=${async () => saveFrom((await api.makeExportCode()).path)}>${text.saveExport}<//>`}</p>
    <p id="exported" class="facts" role="status">${exported}</p>
    <${Loaded} of=${found} lines=${1}>${(one) => one.made_at && html`<p id="export-made" class="facts">${text.exportMade(when(one.made_at), bytes(one.size))}</p>`}<//>`;
}

function Use({ storage }) {
  const store = storage.database + storage.log + storage.older + storage.packs;
  const days = [...storage.days].reverse();
  const saidOf = (one) => text.day(dayName(one.day), one.commits, bytes(one.size));
  const most = Math.max(1, ...days.map((one) => one.commits));
  const last = storage.days[0];
  const { relay } = storage;
  const bound = status.value?.storage_bound;
  const over = bound && text.overBound[bound.state]?.(bytes(bound.size), bytes(bound.size_max));
  const said = over || (bound?.state === "giving_up" && text.givingUp);
  return html`<p id="sizes">${text.sizes(bytes(store), bytes(storage.packs), bytes(storage.free))}</p>
    ${bound && html`<p id="bound" class="facts">${text.storeBound(bytes(bound.size), bytes(bound.size_max), bound.days)}</p>`}
    ${said && html`<p id="bound-state" class=${over ? "alarm" : "facts"} role="status">${said}</p>`}
    <h3 id="growth-title">${text.growth}</h3>
    <ol id="growth" class="growth" aria-labelledby="growth-title">${days.map((one) => html`<li key=${one.day} title=${saidOf(one)}
      style=${{ "--share": one.commits / most }}><span class="unseen">${saidOf(one)}</span></li>`)}</ol>
    ${last && html`<p class="facts">${saidOf(last)}</p>`}
    ${relay && html`<p id="relay" class="facts"><label>${text.keptForOthers} <meter min="0" max="1" high="0.9" value=${relay.size / relay.size_max}></meter></label>
      ${text.relayRoom(bytes(relay.size), bytes(relay.size_max), relay.topics)} <a href=${beside("relay")}>${text.panels.relay}</a></p>`}`;
}
