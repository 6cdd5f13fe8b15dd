// Documents of a branch: a set and a dict, unnamed or with a name, as tables that one edits.

import { Icon } from "../parts/face.js";
import { Action, Empty, Form, Loaded, useLoaded } from "../parts/form.js";
import { html } from "../parts/html.js";
import { may } from "../state/node.js";
import { api, attempt, tell } from "../state/session.js";
import { text } from "../strings/opened.js";
import { useState } from "../vendor/preact-hooks.js";
import { NoteHead } from "./notes.js";

const PAGE = 100;

/** A window of a document with the ways to its neighbours. */
function Paged({ load, branch, name, children }) {
  const [offset, setOffset] = useState(0);
  const loaded = useLoaded(() => load(offset), [branch.branch, name, offset]);
  return html`<${Loaded} of=${loaded}>${(window) => html`
    ${children(window, loaded.again)}
    ${window.total > PAGE && html`<p class="buttons"><span class="facts">${text.window(offset + 1, Math.min(offset + PAGE, window.total), window.total)}</span>
      <button type="button" disabled=${offset === 0} onClick=${() => setOffset(Math.max(offset - PAGE, 0))}>${text.previous}</button>
      <button type="button" disabled=${window.next === null} onClick=${() => setOffset(offset + PAGE)}>${text.next}</button></p>`}`}<//>`;
}

/** The argument is its name; empty: the unnamed one. */
export function SetOfItems({ repo, branch, argument: name }) {
  const id = branch.branch;
  const mayWrite = may(repo, "write");
  const edit = async (change, again) => {
    await api.editSet({ branch: id, name, ...change });
    await again();
  };
  return html`${name && html`<${NoteHead} repo=${repo} branch=${branch} kind="set" name=${name} />`}
    <${Paged} branch=${branch} name=${name} load=${(offset) => api.showSet({ branch: id, name, offset, limit: PAGE })}>${({ items }, again) => html`
    ${mayWrite && html`<${Form} id="add-item" class="form inline" button=${text.add} send=${({ item }) => edit({ add: [item] }, again)}>
      <label>${text.item} <input name="item" required maxlength="1024" autocomplete="off" /></label><//>`}
    ${!items.length && html`<${Empty}><p>${text.emptySet}</p><//>`}
    <ul class="plain" id="items">${items.map(({ item }) => html`<li key=${item} class="line"><bdi>${item}</bdi>
      ${mayWrite && html`<${Action} class="quiet icon" label=${text.removeOf(item)} act=${async () => {
        await edit({ remove: [item] }, again);
        tell(text.removed(item), () => edit({ add: [item] }, again));
      }}><${Icon} name="close" size="s" /><//>`}</li>`)}</ul>`}<//>`;
}

export function Dict({ repo, branch, argument: name }) {
  const id = branch.branch;
  const mayWrite = may(repo, "write");
  const edit = async (change, again) => {
    await api.editDict({ branch: id, name, ...change });
    await again();
  };
  return html`${name && html`<${NoteHead} repo=${repo} branch=${branch} kind="dict" name=${name} />`}
    <${Paged} branch=${branch} name=${name} load=${(offset) => api.showDict({ branch: id, name, offset, limit: PAGE })}>${({ entries }, again) => html`
    ${mayWrite && html`<${Form} id="add-entry" class="form inline" button=${text.add} send=${({ key, value }) => edit({ put: { [key]: value } }, again)}>
      <label>${text.key} <input name="key" required maxlength="1024" autocomplete="off" /></label>
      <label>${text.value} <input name="value" maxlength="262144" autocomplete="off" /></label><//>`}
    ${!entries.length && html`<${Empty}><p>${text.emptyDict}</p><//>`}
    ${entries.length > 0 && html`<table class="entries"><thead><tr><th scope="col">${text.key}</th><th scope="col">${text.value}</th><th scope="col"><span class="unseen">${text.remove}</span></th></tr></thead>
      <tbody id="entries">${entries.map((entry) => html`<tr key=${entry.key}>
        <th scope="row"><bdi>${entry.key}</bdi></th>
        <td><${Value} entry=${entry} mayWrite=${mayWrite} put=${async (value) => {
          await edit({ put: { [entry.key]: value } }, again);
          tell(text.saved, () => edit({ put: { [entry.key]: entry.value } }, again));
        }} /></td>
        <td>${mayWrite && html`<${Action} class="quiet icon" label=${text.removeOf(entry.key)} act=${async () => {
          await edit({ erase: [entry.key] }, again);
          tell(text.removed(entry.key), () => edit({ put: { [entry.key]: entry.value } }, again));
        }}><${Icon} name="close" size="s" /><//>`}</td></tr>`)}</tbody></table>`}`}<//>`;
}

/** A value that is saved when one leaves it or presses Enter, with others' values of the same time. */
function Value({ entry, mayWrite, put }) {
  const conflicts = entry.conflicts.length > 0 && html`<p class="alarm">${text.conflict} ${entry.conflicts.map((one) => html`
    <${Action} class="quiet" label=${text.takeValue(one.value)} act=${() => put(one.value)}><bdi>${one.value}</bdi><//> `)}</p>`;
  if (!mayWrite) return html`<bdi>${entry.value}</bdi>${conflicts}`;
  return html`<${Cell} entry=${entry} put=${put} />${conflicts}`;
}

function Cell({ entry, put }) {
  const save = (event) => event.target.value !== entry.value && attempt(() => put(event.target.value));
  return html`<input class="cell" aria-label=${text.valueOf(entry.key)} maxlength="262144" key=${entry.commit} defaultValue=${entry.value} onChange=${save} />`;
}
