// The files of a branch: as a list with who added each, or as a grid of what they look like.

import { Face, Icon } from "../parts/face.js";
import { Action, Empty, Loaded, useLoaded } from "../parts/form.js";
import { bytes, fold, nameIn, when, whoOf } from "../parts/format.js";
import { html } from "../parts/html.js";
import { may } from "../state/node.js";
import { api, tell } from "../state/session.js";
import { text } from "../strings/text.js";
import { useEffect, useRef, useState } from "../vendor/preact-hooks.js";
import { signal } from "../vendor/signals.js";
import { Picture, iconOf, isPicture, isShown, save, view } from "./viewer.js";

const PAGE = 100;
const LOOKED_AT = 1000; // files of one window, of
const WINDOWS = 10; // that are looked through, and as many more whenever one asks for more
const LATEST = 5; // pictures that stand above the list
/** What one may look for alone -> whether a name is that. */
const KINDS = { all: () => true, pictures: isPicture, others: (name) => !isPicture(name) };
const isGrid = signal(false); // as one left it

export function Files({ repo, branch }) {
  const id = branch.branch;
  const [first, setFirst] = useState(0); // of those that are shown
  const [asked, setAsked] = useState("");
  const [kind, setKind] = useState("all");
  const [windows, setWindows] = useState(WINDOWS);
  const [isMany, setMany] = useState(false); // then they are looked through when the branch has changed, and not at each change of any
  const loaded = useLoaded(() => find(id, windows), [id, windows], isMany);
  const all = loaded.data?.files ?? [];
  useEffect(() => setMany(all.length > LOOKED_AT), [all.length > LOOKED_AT]);
  useEffect(() => {
    if (isMany) loaded.again();
  }, [branch.commits]);
  const fits = ({ name, ...of }) => KINDS[kind](name) && fold(`${name} ${whoOf(of, new Map())}`).includes(asked);
  const look = (set) => (value) => {
    set(value);
    setFirst(0);
  };
  const mayWrite = may(repo, "write") && !branch.archived;
  const Shown = isGrid.value ? Grid : List;
  return html`<div class="buttons tools"><label class="find"><${Icon} name="search" size="s" /><span class="unseen">${text.findFile}</span>
      <input type="search" id="find-file" placeholder=${text.findFile} autocomplete="off" onInput=${(event) => look(setAsked)(fold(event.target.value.trim()))} /></label>
      ${Object.keys(KINDS).map((one) => html`<button type="button" class="chip" key=${one} aria-pressed=${one === kind} onClick=${() => look(setKind)(one)}>${text.kindsOfFiles[one]} ${all.length > 0 && all.filter(({ name }) => KINDS[one](name)).length}</button>`)}
      <span class="grow"></span>
      <button type="button" class="quiet icon" aria-pressed=${!isGrid.value} aria-label=${text.asList} title=${text.asList} onClick=${() => (isGrid.value = false)}><${Icon} name="list" /></button>
      <button type="button" class="quiet icon" id="as-grid" aria-pressed=${isGrid.value} aria-label=${text.asGrid} title=${text.asGrid} onClick=${() => (isGrid.value = true)}><${Icon} name="grid" /></button>
      ${mayWrite && html`<${Add} branch=${id} again=${loaded.again} />`}</div>
    <${Loaded} of=${loaded}>${({ isCut }) => {
      const found = all.filter(fits);
      const files = found.slice(first, first + PAGE);
      const pictures = isGrid.value || asked || kind !== "all" || first ? [] : all.filter(({ name }) => isPicture(name)).slice(0, LATEST);
      return html`
    ${pictures.length > 0 && html`<section class="sect latest"><h3>${text.latestPictures}</h3><${Grid} id="latest" files=${pictures} branch=${id} /></section><h3>${text.allFiles}</h3>`}
    ${files.length ? html`<${Shown} files=${files} branch=${id} mayWrite=${mayWrite} again=${loaded.again} />` : html`<${Empty}><${Icon} name="clip" size="l" /><p>${all.length ? text.noFileFound : text.noFiles}</p><//>`}
    ${isCut && html`<p class="buttons"><span class="facts">${text.lookedThrough(all.length)}</span> <button type="button" onClick=${() => setWindows(windows + WINDOWS)}>${text.moreNotes}</button></p>`}
    ${found.length > PAGE && html`<p class="buttons"><span class="facts">${text.window(first + 1, first + files.length, found.length)}</span>
      <button type="button" disabled=${!first} onClick=${() => setFirst(first - PAGE)}>${text.previous}</button>
      <button type="button" disabled=${first + PAGE >= found.length} onClick=${() => setFirst(first + PAGE)}>${text.next}</button></p>`}`;
    }}<//>`;
}

/** All files of a branch, as far as they are looked through, the latest first. */
async function find(branch, windows) {
  const files = [];
  let after = 0;
  for (let window = 0; window < windows && after !== null; window += 1) {
    const found = await api.listFiles({ branch, limit: LOOKED_AT, places: 1, after });
    files.push(...found.files);
    after = found.next;
  }
  return { files: files.reverse(), isCut: after !== null };
}

function Add({ branch, again }) {
  const chooser = useRef(null);
  const add = async () => {
    for (const file of [...chooser.current.files]) await api.addFile({ branch, name: file.name, content: file }, { timeoutMs: 2 ** 31 - 1 });
    chooser.current.value = "";
    await again();
  };
  return html`<input type="file" id="add-files" multiple hidden ref=${chooser} aria-label=${text.addFiles} onChange=${() => document.getElementById("add-chosen").click()} />
    <${Action} id="add-chosen" act=${async () => (chooser.current.files.length ? add() : chooser.current.click())}><${Icon} name="clip" size="s" />${text.addFiles}<//>`;
}

function List({ files, branch, mayWrite, again }) {
  return html`<div class="card over"><table class="table stack-up"><thead><tr><th scope="col">${text.fileName}</th><th scope="col" class="wide">${text.fileFrom}</th><th scope="col">${text.fileWhen}</th>
    <th scope="col" class="num">${text.fileSize}</th><th scope="col" class="wide">${text.fileWhere}</th><th scope="col"><span class="unseen">${text.canDo}</span></th></tr></thead>
    <tbody id="files">${files.map((file, index) => html`<tr key=${file.commit + file.name}>
      <td><div class="who"><${Mini} files=${files} at=${index} branch=${branch} /><span class="grow"><b class="cut"><bdi>${file.name}</bdi></b></span></div></td>
      <td class="wide"><span class="by-in"><${Face} id=${file.author} name=${nameIn(file, new Map())} size="xs" /><bdi>${whoOf(file, new Map())}</bdi></span></td>
      <td class="facts">${when(file.time)}</td><td class="num facts">${file.size === null ? "" : bytes(file.size)}</td>
      <td class="wide"><${Place} file=${file} /></td>
      <td class="end"><${Action} class="quiet icon save" label=${text.save(file.name)} act=${() => save(branch, file.file, file.name)}><${Icon} name="save" /><//>
        ${mayWrite && html`<${Action} class="quiet icon" label=${text.removeOf(file.name)} question=${text.removeFileQuestion(file.name)} yes=${text.remove} act=${async () => {
          await remove(branch, file);
          await again();
          tell(text.removed(file.name));
        }}><${Icon} name="trash" /><//>`}</td></tr>`)}</tbody></table></div>`;
}

/** Remove what has a file's name. By the id all names would go that have its content. */
async function remove(branch, file) {
  try {
    await api.removeFile({ branch, file: file.name });
  } catch (error) {
    if (error.code !== "ambiguous") throw error; // another content has this name too
    await api.removeFile({ branch, file: file.file });
  }
}

/** Where a file's content is. Only what is not as one expects has a colour. */
function Place({ file }) {
  const said = file.place === "away" && file.relays ? text.filePlaces.relayed : text.filePlaces[file.place];
  return said && html`<span class=${`place ${file.place}`}>${said}</span>`;
}

/** What a file looks like beside its name. What can be shown opens. */
function Mini({ files, at, branch }) {
  const one = files[at];
  const press = () => view(branch, files, at);
  if (isPicture(one.name)) return html`<${Picture} class="mini" branch=${branch} file=${one.file} name=${one.name} press=${press} />`;
  if (!isShown(one.name)) return html`<span class="mini"><${Icon} name=${iconOf(one.name)} /></span>`;
  return html`<button type="button" class="mini" aria-label=${text.openFile(one.name)} onClick=${press}><${Icon} name=${iconOf(one.name)} /></button>`;
}

function Grid({ files, branch, id = "files" }) {
  return html`<ul class="files-grid" id=${id}>${files.map((file, index) => {
    const press = () => view(branch, files, index);
    return html`<li class="file-card" key=${file.commit + file.name}>
      ${isPicture(file.name)
        ? html`<${Picture} branch=${branch} file=${file.file} name=${file.name} press=${press} />`
        : html`<button type="button" class="pic" aria-label=${text.openFile(file.name)} onClick=${press}><${Icon} name=${iconOf(file.name)} size="l" /></button>`}
      <span><b class="cut"><bdi>${file.name}</bdi></b><span class="facts cut"><bdi>${whoOf(file, new Map())}</bdi>, ${when(file.time)}</span>${["only_here", "away"].includes(file.place) && html`<${Place} file=${file} />`}</span></li>`;
  })}</ul>`;
}
