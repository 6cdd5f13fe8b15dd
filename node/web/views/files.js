// The files of a branch.

import { Icon } from "../parts/face.js";
import { Action, Empty, Loaded, useLoaded } from "../parts/form.js";
import { bytes, when, whoOf } from "../parts/format.js";
import { html } from "../parts/html.js";
import { may } from "../state/node.js";
import { api, tell } from "../state/session.js";
import { text } from "../strings/en.js";
import { useState } from "../vendor/preact-hooks.js";
import { Save } from "./attachments.js";

const PAGE = 100;

export function Files({ repo, branch }) {
  const id = branch.branch;
  const [afters, setAfters] = useState([]); // where each window that was left began
  const after = afters.at(-1);
  const load = () => api.listFiles({ branch: id, limit: PAGE, ...(after !== undefined && { after }) });
  const loaded = useLoaded(load, [id, after ?? -1]);
  return html`<${Loaded} of=${loaded}>${({ files, next }) => html`
    ${!files.length && html`<${Empty}><p>${text.noFiles}</p><//>`}
    <ul class="plain" id="files">${files.map((file) => html`<li key=${file.commit + file.name}>
      <${Save} branch=${id} file=${file.file} name=${file.name}><span class="kind"><${Icon} name="file" /></span><b class="grow cut"><bdi>${file.name}</bdi></b><//>
      <p class="facts">${file.size === null ? "" : `${bytes(file.size)} · `}<bdi>${whoOf(file, new Map())}</bdi> · ${when(file.time)}
        ${may(repo, "write") && html` <${Action} class="quiet" question=${text.removeFileQuestion(file.name)} act=${async () => {
          await api.removeFile({ branch: id, file: file.file });
          await loaded.again();
          tell(text.removed(file.name));
        }}>${text.remove}<//>`}</p></li>`)}</ul>
    ${(after !== undefined || next !== null) && html`<p class="buttons">
      <button type="button" disabled=${after === undefined} onClick=${() => setAfters(afters.slice(0, -1))}>${text.previous}</button>
      <button type="button" disabled=${next === null} onClick=${() => setAfters([...afters, next])}>${text.next}</button></p>`}`}<//>`;
}
