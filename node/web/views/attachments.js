// The files of a message: pictures are shown, everything can be saved. What a file says of itself is not believed.

import { Icon } from "../parts/face.js";
import { Action } from "../parts/form.js";
import { bytes } from "../parts/format.js";
import { html } from "../parts/html.js";
import { api } from "../state/session.js";
import { text } from "../strings/text.js";
import { useEffect, useState } from "../vendor/preact-hooks.js";
import { signal } from "../vendor/signals.js";
import { Picture, iconOf, isPicture, isShown, save, view } from "./viewer.js";

const PICTURES_MAX = 4; // of one message, shown as pictures
const LISTED = 1000; // files of one window
const WINDOWS_MAX = 10; // of a branch in which sizes are looked for: files beyond them have none

/** Key of a file in a message -> its bytes, as its author states them; null where the list of the branch's files does not say. */
const sizes = signal(new Map());
const wanted = new Map(); // branch -> files of rows that are shown, until the list comes

/** What adds files names them, and the list of a branch's files has the sizes: one is asked for, for all rows that want some. */
function useSizes(branch, files) {
  const due = files.filter(({ key, size }) => size === undefined && !sizes.value.has(key)).map(({ key }) => key);
  useEffect(() => {
    if (!due.length) return;
    if (wanted.has(branch)) due.forEach((one) => wanted.get(branch).add(one));
    else {
      wanted.set(branch, new Set(due));
      setTimeout(() => look(branch), 0);
    }
  }, [branch, due.join()]);
}

const keyOf = (commit, name) => `${commit} ${name}`;

async function look(branch) {
  const found = new Map();
  for (let after, windows = 0; windows < WINDOWS_MAX; windows += 1) {
    const { files, next } = await api.listFiles({ branch, limit: LISTED, ...(after && { after }) }).catch(() => ({ files: [], next: null }));
    for (const one of files) found.set(keyOf(one.commit, one.name), one.size);
    if (next === null || ![...wanted.get(branch)].some((one) => !found.has(one))) break;
    after = next;
  }
  const all = new Map(sizes.value);
  for (const one of wanted.get(branch)) all.set(one, found.get(one) ?? null);
  wanted.delete(branch);
  sizes.value = all;
}

const sizeOf = (one) => (one.size === undefined ? sizes.value.get(one.key) : one.size) ?? null;

/** The files of a message, as `filesOf` gives them. What calls itself a picture is one until its bytes say otherwise. */
export function Attachments({ files: given, branch, tab }) {
  const [liars, setLiars] = useState([]);
  const files = given.map((one) => ({ ...one, key: keyOf(one.commit, one.name) }));
  useSizes(branch, files);
  const all = files.map(sizeOf);
  const sum = all.includes(null) ? "" : bytes(all.reduce((total, one) => total + one, 0));
  const pictures = files.filter(({ name, key }) => isPicture(name) && !liars.includes(key)).slice(0, PICTURES_MAX);
  const open = (one) => () => view(branch, files, files.indexOf(one));
  return html`<div class="att attachments">
    ${pictures.length > 0 && html`<div class=${`pics of-${pictures.length}`}>${pictures.map((one) => html`<${Picture} key=${one.key} branch=${branch} file=${one.file} name=${one.name} tab=${tab}
      isNone=${() => setLiars((before) => [...before, one.key])} press=${open(one)} />`)}</div>`}
    <ul class="docs">${files.filter((one) => !pictures.includes(one)).map((one) => html`<li key=${one.key}>
      <${Document} branch=${branch} one=${one} tab=${tab} open=${isShown(one.name) && !liars.includes(one.key) ? open(one) : null} /></li>`)}</ul>
    ${files.length > 1 && html`<p class="facts">${text.filesCount(files.length)}${sum && `, ${sum}`} <${Action} class="link" tab=${tab} act=${async () => {
      for (const one of files) await save(branch, one.file, one.name);
    }}>${text.saveAll}<//></p>`}
  </div>`;
}

/** A card that opens what can be shown, and saves the rest. */
function Document({ branch, one, tab, open }) {
  const size = sizeOf(one);
  const label = open ? text.openFile(one.name) : text.save(one.name);
  return html`<${Action} class="doc" tab=${tab} label=${label} act=${open ?? (() => save(branch, one.file, one.name))}>
    <span class="kind"><${Icon} name=${iconOf(one.name)} /></span><span class="grow" data-size=${size !== null ? bytes(size) : undefined}><b class="cut"><bdi>${one.name}</bdi></b></span><//>`;
}
