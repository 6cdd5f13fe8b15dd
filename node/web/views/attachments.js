// The files of a commit: pictures are shown, everything can be saved. What a file says of itself is not believed.

import { Action, saveAs } from "../parts/form.js";
import { html } from "../parts/html.js";
import { api } from "../state/session.js";
import { text } from "../strings/en.js";
import { useEffect, useRef, useState } from "../vendor/preact-hooks.js";

const PICTURE_SIZE_MAX = 8 * 2 ** 20; // bytes that are fetched to show a picture
const PICTURES_MAX = 4; // of one commit
const PICTURE_NAME = /\.(png|jpe?g|gif|webp|avif)$/i;
const TYPES = [
  [[0x89, 0x50, 0x4e, 0x47], "image/png"],
  [[0xff, 0xd8, 0xff], "image/jpeg"],
  [[0x47, 0x49, 0x46, 0x38], "image/gif"],
  [[0x52, 0x49, 0x46, 0x46], "image/webp"],
];

export function Attachments({ item, branch, tab }) {
  const files = item.files_added ?? [];
  const pictures = item.files.filter((name) => PICTURE_NAME.test(name)).slice(0, PICTURES_MAX);
  return html`<ul class="attachments">
    ${item.files.map((name, index) => html`<li>
      ${pictures.includes(name) && html`<${Picture} branch=${branch} name=${name} />`}
      <${Save} branch=${branch} file=${files[index] ?? name} name=${name} tab=${tab}><bdi>${name}</bdi><//>
    </li>`)}
  </ul>`;
}

/** A button that saves a file on this machine. */
export function Save({ branch, file, name, tab, children }) {
  return html`<${Action} class="save" tab=${tab} label=${text.save(name)} act=${() => save(branch, file, name)}>↓ ${children}<//>`;
}

async function save(branch, file, name) {
  const download = await api.getFile({ branch, file });
  saveAs(await download.blob(), name.split("/").pop());
}

/** Loaded when it comes into view; a file whose bytes are no picture shows nothing. */
function Picture({ branch, name }) {
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
      else setAddress(made);
    });
    observer.observe(place.current);
    return () => {
      observer.disconnect();
      stop.abort();
      if (made) URL.revokeObjectURL(made);
    };
  }, [branch, name]);
  return html`<span ref=${place} class="picture">${address && html`<img src=${address} alt=${text.picture(name)} />`}</span>`;
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

