// The files of a commit: pictures are shown, everything can be saved. What a file says of itself is not believed.

import { Icon } from "../parts/face.js";
import { Action, saveAs } from "../parts/form.js";
import { html } from "../parts/html.js";
import { api, attempt } from "../state/session.js";
import { text } from "../strings/en.js";
import { useEffect, useRef, useState } from "../vendor/preact-hooks.js";

const PICTURE_SIZE_MAX = 8 * 2 ** 20; // bytes that are fetched to show a picture
const PICTURES_MAX = 4; // of one message, shown as pictures
const PICTURE_NAME = /\.(png|jpe?g|gif|webp|avif)$/i;
const TYPES = [
  [[0x89, 0x50, 0x4e, 0x47], "image/png"],
  [[0xff, 0xd8, 0xff], "image/jpeg"],
  [[0x47, 0x49, 0x46, 0x38], "image/gif"],
  [[0x52, 0x49, 0x46, 0x46], "image/webp"],
];

/** The files of a message: of one commit or of several. What calls itself a picture is one until its bytes say otherwise. */
export function Attachments({ items, branch, tab }) {
  const [liars, setLiars] = useState([]);
  const files = items.flatMap((item) => item.files.map((name, index) => ({ name, file: item.files_added?.[index] ?? name, key: `${item.commit} ${name}` })));
  const pictures = files.filter(({ name, key }) => PICTURE_NAME.test(name) && !liars.includes(key)).slice(0, PICTURES_MAX);
  return html`<div class="att attachments">
    ${pictures.length > 0 && html`<div class=${`pics of-${pictures.length}`}>${pictures.map((one) => html`<${Picture} key=${one.key} branch=${branch} name=${one.name} tab=${tab}
      isNone=${() => setLiars((before) => [...before, one.key])} save=${() => save(branch, one.file, one.name)} />`)}</div>`}
    <ul class="docs">${files.filter((one) => !pictures.includes(one)).map((one) => html`<li key=${one.key}>
      <${Save} branch=${branch} file=${one.file} name=${one.name} tab=${tab}><span class="kind"><${Icon} name="file" /></span><b class="grow cut"><bdi>${one.name}</bdi></b><//></li>`)}</ul>
    ${files.length > 1 && html`<p class="facts">${text.filesCount(files.length)} <${Action} class="link" tab=${tab} act=${async () => {
      for (const one of files) await save(branch, one.file, one.name);
    }}>${text.saveAll}<//></p>`}
  </div>`;
}

/** A button that saves a file on this machine. */
export function Save({ branch, file, name, tab, children }) {
  return html`<${Action} class="doc save" tab=${tab} label=${text.save(name)} act=${() => save(branch, file, name)}>${children}<//>`;
}

async function save(branch, file, name) {
  const download = await api.getFile({ branch, file });
  saveAs(await download.blob(), name.split("/").pop());
}

/** Loaded when it comes into view, and saved when it is pressed. `isNone` is told where its bytes are no picture. */
function Picture({ branch, name, tab, save: press, isNone }) {
  const place = useRef(null);
  const [address, setAddress] = useState("");
  useEffect(() => {
    const stop = new AbortController();
    let made = "";
    const observer = new IntersectionObserver(async (entries) => {
      if (!entries.some((one) => one.isIntersecting)) return;
      observer.disconnect();
      made = await addressOf(branch, name, stop.signal).catch(() => "");
      if (stop.signal.aborted) URL.revokeObjectURL(made);
      else if (made) setAddress(made);
      else isNone();
    });
    observer.observe(place.current);
    return () => {
      observer.disconnect();
      stop.abort();
      if (made) URL.revokeObjectURL(made);
    };
  }, [branch, name]);
  return html`<button type="button" ref=${place} class="pic picture save" tabindex=${tab} aria-label=${text.save(name)} title=${text.save(name)} onClick=${() => attempt(press)}>${address && html`<img src=${address} alt=${text.picture(name)} />`}</button>`;
}

async function addressOf(branch, file, signal) {
  const download = await api.getFile({ branch, file }, { signal });
  if (download.size > PICTURE_SIZE_MAX) {
    await download.cancel();
    return "";
  }
  const blob = await download.blob();
  const start = new Uint8Array(await blob.slice(0, 4).arrayBuffer());
  const type = TYPES.find(([mark]) => mark.every((byte, at) => start[at] === byte))?.[1];
  return type ? URL.createObjectURL(blob.slice(0, blob.size, type)) : "";
}

