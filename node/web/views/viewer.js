// Files of people: pictures that load when they come into view, and the viewer in which one looks at a file.

import { Icon } from "../parts/face.js";
import { Action, openAs, saveAs } from "../parts/form.js";
import { bytes, when } from "../parts/format.js";
import { html } from "../parts/html.js";
import { go } from "../state/node.js";
import { api } from "../state/session.js";
import { showInTimeline } from "../state/timeline.js";
import { text } from "../strings/text.js";
import { useEffect, useRef, useState } from "../vendor/preact-hooks.js";
import { signal } from "../vendor/signals.js";

const PICTURE_SIZE_MAX = 8 * 2 ** 20; // bytes that are fetched to show a picture
const TEXT_SIZE_MAX = 256 * 2 ** 10; // bytes of a text that is shown; more would hold up the page
const PICTURE_NAME = /\.(png|jpe?g|gif|webp|avif)$/i;
const TEXT_NAME = /\.(txt|md|csv|json|log|ics|vcf|toml|ya?ml)$/i;
const PDF_NAME = /\.pdf$/i;
const PDF_MARK = "%PDF-"; // its first bytes
const TYPES = [
  [[0x89, 0x50, 0x4e, 0x47], "image/png"],
  [[0xff, 0xd8, 0xff], "image/jpeg"],
  [[0x47, 0x49, 0x46, 0x38], "image/gif"],
  [[0x52, 0x49, 0x46, 0x46], "image/webp"],
];

/** What is looked at: `{ branch, files, at }`, each file with `name`, `file` and `commit`. Null: nothing. */
const opened = signal(null);

export const isPicture = (name) => PICTURE_NAME.test(name);
export const isShown = (name) => isPicture(name) || TEXT_NAME.test(name) || PDF_NAME.test(name);
/** The icon that stands for a file. */
export const iconOf = (name) => (isPicture(name) ? "picture" : /\.(csv|ods|xlsx?)$/i.test(name) ? "sheet" : TEXT_NAME.test(name) ? "text" : "file");

export function view(branch, files, at) {
  opened.value = { branch, files, at };
}

export async function save(branch, file, name) {
  const download = await api.getFile({ branch, file });
  saveAs(await download.blob(), name.split("/").pop());
}

/** The address of a picture in this browser, or "" until there is one. `isNone` is told where its bytes are no picture. */
function usePicture(branch, file, isWanted, isNone) {
  const [address, setAddress] = useState("");
  useEffect(() => {
    setAddress("");
    if (!isWanted) return undefined;
    const stop = new AbortController();
    let made = "";
    fetchPicture(branch, file, stop.signal).catch(() => "").then((found) => {
      made = found;
      if (stop.signal.aborted) URL.revokeObjectURL(made);
      else if (made) setAddress(made);
      else isNone?.();
    });
    return () => {
      stop.abort();
      if (made) URL.revokeObjectURL(made);
    };
  }, [branch, file, isWanted]);
  return address;
}

async function fetchPicture(branch, file, signal) {
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

/** A picture that is loaded when it comes into view, and opens the viewer. */
export function Picture({ branch, file, name, tab, class: kind = "pic", press, isNone, isCurrent = false }) {
  const place = useRef(null);
  const [isNear, setNear] = useState(false);
  const [isOther, setOther] = useState(false); // its bytes are no picture
  const address = usePicture(branch, file, isNear, isNone ?? (() => setOther(true)));
  useEffect(() => {
    const observer = new IntersectionObserver((entries) => entries.some((one) => one.isIntersecting) && setNear(true));
    observer.observe(place.current);
    return () => observer.disconnect();
  }, []);
  return html`<button type="button" ref=${place} class=${`${kind} picture`} tabindex=${tab} aria-label=${text.openFile(name)} title=${name} aria-current=${isCurrent ? "true" : undefined}
    onClick=${press}>${address ? html`<img src=${address} alt=${text.picture(name)} />` : (isOther || kind !== "pic") && html`<${Icon} name="picture" />`}</button>`;
}

export function Viewer() {
  return opened.value ? html`<${Open} ...${opened.value} />` : null;
}

function Open({ branch, files, at }) {
  const dialog = useRef(null);
  useEffect(() => dialog.current.showModal(), []);
  const one = files[at];
  const to = (next) => (opened.value = { branch, files, at: (next + files.length) % files.length });
  const key = (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step || files.length < 2 || event.target.closest("pre")) return;
    event.preventDefault();
    to(at + step);
  };
  const showPost = () => {
    dialog.current.close();
    go(branch);
    showInTimeline(branch, one.commit);
  };
  const turn = (step, icon, label) => html`<button type="button" class="icon" aria-label=${label} onClick=${() => to(at + step)}><${Icon} name=${icon} /></button>`;
  return html`<dialog ref=${dialog} class="viewer" id="viewer" aria-labelledby="viewer-name" onKeyDown=${key} onClose=${() => (opened.value = null)}>
    <header><span class="grow"><h2 id="viewer-name" class="cut"><bdi>${one.name}</bdi></h2><span class="facts cut">${[files.length > 1 && text.fileOf(at + 1, files.length), one.size && bytes(one.size), one.time && when(one.time)].filter(Boolean).join(", ")}</span></span>
      <button type="button" onClick=${showPost}><${Icon} name="thread" size="s" />${text.showPost}</button>
      <${Action} id="save-viewed" label=${text.save(one.name)} act=${() => save(branch, one.file, one.name)}><${Icon} name="save" size="s" />${text.save_}<//>
      <button type="button" class="icon" aria-label=${text.closeViewer} onClick=${() => dialog.current.close()}><${Icon} name="close" /></button></header>
    <div class="look">${files.length > 1 && turn(-1, "back", text.previousFile)}
      <div class="big"><${Big} key=${one.file + one.commit} branch=${branch} one=${one} /></div>
      ${files.length > 1 && turn(1, "arrow", text.nextFile)}</div>
    ${files.length > 1 && html`<div class="film" role="group" aria-label=${text.filesOfPost}>${files.map((other, index) => {
      const press = () => to(index);
      const isCurrent = index === at;
      if (isPicture(other.name)) return html`<${Picture} key=${other.file + other.commit} branch=${branch} file=${other.file} name=${other.name} press=${press} isCurrent=${isCurrent} />`;
      return html`<button type="button" class="pic" key=${other.file + other.commit} aria-label=${text.openFile(other.name)} aria-current=${isCurrent ? "true" : undefined} onClick=${press}><${Icon} name=${iconOf(other.name)} /></button>`;
    })}</div>`}
  </dialog>`;
}

/** A file as large as there is room. What cannot be shown is said, and can be saved. */
function Big({ branch, one }) {
  const isPdf = PDF_NAME.test(one.name) && navigator.pdfViewerEnabled;
  const [isNone, setNone] = useState(!isShown(one.name) || (PDF_NAME.test(one.name) && !isPdf));
  const [said, setSaid] = useState(null);
  const address = usePicture(branch, one.file, isPicture(one.name), () => setNone(true));
  useEffect(() => {
    if (isPicture(one.name) || isPdf || isNone) return undefined;
    const stop = new AbortController();
    readText(branch, one.file, stop.signal).catch(() => null).then((found) => (found === null ? setNone(true) : setSaid(found)));
    return () => stop.abort();
  }, []);
  if (isNone) return html`<p role="status">${text.cannotShow}</p>`;
  if (isPdf) return html`<div class="outside"><p>${text.pdfOutside}</p><${Action} id="open-pdf" act=${async () => setNone(!(await openPdf(branch, one.file)))}>${text.openInTab}<//></div>`;
  if (said !== null) return html`<pre class="document" tabindex="0" aria-label=${one.name} dir="auto">${said}</pre>`;
  return address ? html`<img src=${address} alt=${text.picture(one.name)} />` : html`<p role="status">${text.loading}</p>`;
}

/**
 * Opens a PDF in a tab of its own, with the browser's viewer: browsers show none in a frame that is closed off, and in another
 * one a link of the file leads the whole page away. False: its bytes are no PDF.
 */
async function openPdf(branch, file) {
  const blob = await (await api.getFile({ branch, file })).blob();
  if ((await blob.slice(0, PDF_MARK.length).text()) !== PDF_MARK) return false;
  openAs(blob.slice(0, blob.size, "application/pdf"));
  return true;
}

async function readText(branch, file, signal) {
  const download = await api.getFile({ branch, file }, { signal });
  if (download.size > TEXT_SIZE_MAX) {
    await download.cancel();
    return null;
  }
  return new TextDecoder("utf-8", { fatal: true }).decode(await (await download.blob()).arrayBuffer());
}
