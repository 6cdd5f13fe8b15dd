// The notes of a branch: its texts, lists and tables beside each other, and how one makes, names and removes a list or a table.

import { Icon } from "../parts/face.js";
import { Action, Form, useLoaded } from "../parts/form.js";
import { cut } from "../parts/format.js";
import { html } from "../parts/html.js";
import { addressOf, go, may } from "../state/node.js";
import { api, tell } from "../state/session.js";
import { text } from "../strings/text.js";
import { useEffect, useRef, useState } from "../vendor/preact-hooks.js";

const SHOWN = 100; // lists and tables of one window
const PANELS = ["text", "set", "dict"];
const ICONS = { text: "text", set: "list", dict: "sheet" };
const TITLE_LENGTH_MAX = 60; // characters: in UTF-8 no longer than a name may be

/** Lists and tables of a branch as the node lists them, in windows. */
function useDocuments(branch) {
  const [count, setCount] = useState(1); // windows
  const loaded = useLoaded(async () => {
    const found = [];
    let next = 0;
    for (let number = 0; number < count && next !== null; number += 1) {
      const window = await api.listDocuments({ branch, offset: next, limit: SHOWN });
      found.push(...window.documents.filter(({ kind }) => kind !== "text" && kind in ICONS)); // apps have others
      ({ next } = window);
    }
    return { documents: found, next };
  }, [branch, count]);
  return { ...loaded, more: () => setCount(count + 1) };
}

export function titleOf({ name, title }) {
  return title || name;
}

/** The way to every list, table and the texts, whichever is shown. */
export function NotesStrip({ repo, branch, panel, argument }) {
  const [isNew, setNew] = useState(false);
  const loaded = useDocuments(branch.branch);
  const chip = (kind, name, said, count) => html`<a class="chip" key=${`${kind} ${name}`} href=${addressOf(branch.branch, kind, name)}
    aria-current=${kind === panel && (kind === "text" || name === argument) ? "page" : undefined}><${Icon} name=${ICONS[kind]} size="s" /><bdi>${said}</bdi>${count > 0 && html`<small>${count}</small>`}</a>`;
  const all = loaded.data?.documents ?? [];
  const documents = all.filter(({ name }) => name); // those without one are always there
  const isListed = documents.some((one) => one.kind === panel && one.name === argument);
  return html`<nav class="notes-strip" id="notes" aria-label=${text.views_.notes}>
    ${PANELS.map((kind) => chip(kind, "", text.panels[kind], all.find((one) => one.kind === kind && !one.name)?.entries))}
    ${documents.map((one) => chip(one.kind, one.name, cut(titleOf(one)), one.entries))}
    ${loaded.data && argument && panel !== "text" && !isListed && chip(panel, argument, cut(argument))}
    ${loaded.data?.next != null && html`<button type="button" class="chip" onClick=${loaded.more}>${text.moreNotes}</button>`}
    ${may(repo, "write") && !branch.archived && html`<button type="button" id="new-note" class="chip" aria-label=${text.newNote} title=${text.newNote} onClick=${() => setNew(true)}><${Icon} name="plus" size="s" /></button>`}
  </nav>
  ${isNew && html`<${NewNote} branch=${branch} again=${loaded.again} end=${() => setNew(false)} />`}`;
}

/** A list and a table begin with what is written first into them: an empty one is nowhere. */
function NewNote({ branch, again, end }) {
  const dialog = useRef(null);
  const [kind, setKind] = useState("set");
  useEffect(() => dialog.current.showModal(), []);
  const make = async ({ title, first, value = "" }) => {
    const id = branch.branch;
    const name = await nameFor(id, kind, title.trim());
    if (kind === "set") await api.editSet({ branch: id, name, add: [first] });
    else await api.editDict({ branch: id, name, put: { [first]: value } });
    if (name !== title.trim()) await api.renameDocument({ branch: id, kind, name, title: title.trim() });
    await again();
    dialog.current.close();
    go(id, kind, name);
  };
  return html`<dialog ref=${dialog} id="note-dialog" aria-labelledby="note-title" onClose=${end}>
    <header><h2 id="note-title">${text.newNote}</h2><button type="button" class="quiet icon" aria-label=${text.closeDialog} onClick=${() => dialog.current.close()}><${Icon} name="close" /></button></header>
    <div class="body"><${Form} id="make-note" button=${text.create} send=${make}>
      <fieldset class="choice unfielded"><legend class="unseen">${text.newNote}</legend>${["set", "dict"].map((one) => html`<label>
        <input type="radio" name="kind" value=${one} checked=${one === kind} autofocus=${one === "set"} onChange=${() => setKind(one)} /><span><b>${text.panels[one]}</b><span class="facts">${text.noteKinds[one]}</span></span></label>`)}</fieldset>
      <label>${text.nameOfNote} <input name="title" type="text" required maxlength=${TITLE_LENGTH_MAX} pattern=".*\\S.*" autocomplete="off" /></label>
      <label>${kind === "set" ? text.firstItem : text.firstKey} <input name="first" type="text" required maxlength="1024" autocomplete="off" /></label>
      ${kind === "dict" && html`<label>${text.value} <input name="value" type="text" maxlength="262144" autocomplete="off" /></label>`}<//></div></dialog>`;
}

/** A name that no list or table of the kind has in the branch. One with a dot in front is of programs. */
async function nameFor(branch, kind, title) {
  const base = title.replace(/^\.+/, "") || "1";
  for (let number = 1; ; number += 1) {
    const name = number === 1 ? base : `${base} ${number}`;
    if (!(await find(branch, kind, name))) return name;
  }
}

async function find(branch, kind, name) {
  const { documents } = await api.listDocuments({ branch, kind, prefix: name, limit: SHOWN });
  return documents.find((one) => one.name === name);
}

/** The head of a list or table that has a name: its title, and what one does with all of it. */
export function NoteHead({ repo, branch, kind, name }) {
  const loaded = useLoaded(() => find(branch.branch, kind, name), [branch.branch, kind, name]);
  const one = loaded.data ?? { name, title: "", other_titles: [] };
  const title = titleOf(one);
  const id = branch.branch;
  const rename = async (said) => {
    await api.renameDocument({ branch: id, kind, name, title: said });
    await loaded.again();
  };
  return html`<h3 class="text-title"><bdi>${title}</bdi></h3>
    ${one.other_titles.length > 0 && html`<p class="alarm">${text.alsoCalled(one.other_titles.join(", "))}</p>`}
    ${may(repo, "write") && html`<details class="more"><summary>${text.change}</summary>
      <${Form} id="rename-note" class="form inline" keep key=${title} button=${text.rename} send=${async ({ title: said }) => {
        await rename(said.trim());
        tell(text.saved, () => rename(one.title));
      }}><label>${text.nameOfNote} <input name="title" type="text" required maxlength=${TITLE_LENGTH_MAX} pattern=".*\\S.*" defaultValue=${title} autocomplete="off" /></label><//>
      <${Action} id="remove-note" class="danger" question=${text.removeNoteQuestion(title)} yes=${text.remove} act=${async () => {
        await api.removeDocument({ branch: id, kind, name });
        go(id, kind);
        tell(text.removed(title));
      }}>${text.remove}<//></details>`}`;
}
