// What the store takes, how it grows, exports, and the daemon's log.

import { Action, Loaded, useLoaded } from "../parts/form.js";
import { bytes } from "../parts/format.js";
import { html } from "../parts/html.js";
import { status } from "../state/node.js";
import { api } from "../state/session.js";
import { text } from "../strings/en.js";
import { useState } from "../vendor/preact-hooks.js";

export function Storage() {
  const loaded = useLoaded(() => api.showStorage(), [], true);
  const [exported, setExported] = useState("");
  return html`<${Loaded} of=${loaded}>${(storage) => html`<${Use} storage=${storage} />`}<//>
    <h3>${text.export}</h3>
    <p>${text.exportAbout}</p>
    <${Action} id="export" act=${async () => {
      setExported(text.exporting);
      try {
        const done = await api.exportStore();
        setExported(text.exported(done.commits, done.added, done.path));
      } catch (error) {
        setExported("");
        throw error;
      }
    }}>${text.export}<//>
    <p id="exported" class="facts" role="status">${exported}</p>
    <p class="facts">${status.value && text.home(status.value.home, status.value.listen)}</p>`;
}

function Use({ storage }) {
  const store = storage.database + storage.log + storage.older + storage.packs;
  const days = [...storage.days].reverse();
  const most = Math.max(1, ...days.map((one) => one.commits));
  const last = storage.days[0];
  const { relay } = storage;
  return html`<p id="sizes">${text.sizes(bytes(store), bytes(storage.packs), bytes(storage.free))}</p>
    <ol id="growth" class="growth" aria-label=${text.growth}>${days.map((one) => html`<li key=${one.day} title=${text.day(one.day, one.commits, bytes(one.size))}
      style=${{ "--share": one.commits / most }}><span class="unseen">${text.day(one.day, one.commits, bytes(one.size))}</span></li>`)}</ol>
    ${last && html`<p class="facts">${text.day(last.day, last.commits, bytes(last.size))}</p>`}
    ${relay && html`<p id="relay" class="facts"><label>${text.keptForOthers} <meter min="0" max="1" high="0.9" value=${relay.size / relay.size_max}></meter></label>
      ${text.relayRoom(bytes(relay.size), bytes(relay.size_max), relay.topics)}</p>`}`;
}

export function Log() {
  const loaded = useLoaded(() => api.showLog(), [], true);
  return html`<p>${text.logAbout}</p>
    <${Action} act=${loaded.again}>${text.again}<//>
    <${Loaded} of=${loaded} lines=${8}>${({ lines }) => html`<pre class="log" tabindex="0" aria-label=${text.panels.log}>${lines.join("\n") || text.nothing}</pre>`}<//>`;
}
