// The files of a message: pictures are shown, everything can be saved. What a file says of itself is not believed.

import { Icon } from "../parts/face.js";
import { Action } from "../parts/form.js";
import { html } from "../parts/html.js";
import { text } from "../strings/text.js";
import { useState } from "../vendor/preact-hooks.js";
import { Picture, iconOf, isPicture, isShown, save, view } from "./viewer.js";

const PICTURES_MAX = 4; // of one message, shown as pictures

/** The files of a message: of one commit or of several. What calls itself a picture is one until its bytes say otherwise. */
export function Attachments({ items, branch, tab }) {
  const [liars, setLiars] = useState([]);
  const files = items.flatMap((item) => item.files.map((name, index) => ({ name, file: item.files_added?.[index] ?? name, commit: item.commit, key: `${item.commit} ${name}` })));
  const pictures = files.filter(({ name, key }) => isPicture(name) && !liars.includes(key)).slice(0, PICTURES_MAX);
  const open = (one) => () => view(branch, files, files.indexOf(one));
  return html`<div class="att attachments">
    ${pictures.length > 0 && html`<div class=${`pics of-${pictures.length}`}>${pictures.map((one) => html`<${Picture} key=${one.key} branch=${branch} file=${one.file} name=${one.name} tab=${tab}
      isNone=${() => setLiars((before) => [...before, one.key])} press=${open(one)} />`)}</div>`}
    <ul class="docs">${files.filter((one) => !pictures.includes(one)).map((one) => html`<li key=${one.key}>
      <${Document} branch=${branch} one=${one} tab=${tab} open=${isShown(one.name) && !liars.includes(one.key) ? open(one) : null} /></li>`)}</ul>
    ${files.length > 1 && html`<p class="facts">${text.filesCount(files.length)} <${Action} class="link" tab=${tab} act=${async () => {
      for (const one of files) await save(branch, one.file, one.name);
    }}>${text.saveAll}<//></p>`}
  </div>`;
}

/** A card that opens what can be shown, and saves the rest. */
function Document({ branch, one, tab, open }) {
  const label = open ? text.openFile(one.name) : text.save(one.name);
  return html`<${Action} class="doc" tab=${tab} label=${label} act=${open ?? (() => save(branch, one.file, one.name))}>
    <span class="kind"><${Icon} name=${iconOf(one.name)} /></span><b class="grow cut"><bdi>${one.name}</bdi></b><//>`;
}
