// Reads a link from a QR code: by the camera, or from a picture of it.

import { html } from "../parts/html.js";
import { readQr } from "../parts/qr.js";
import { attempt } from "../state/session.js";
import { text } from "../strings/opened.js";
import { useEffect, useRef, useState } from "../vendor/preact-hooks.js";

const LOOK_MS = 250; // between two looks at what the camera sees

/** Calls `found(link)` with the text of a code that is a link of Ravel. */
export function Scan({ found }) {
  const [isOpen, setOpen] = useState(false);
  const chooser = useRef(null);
  const read = (event) => {
    const [file] = event.target.files;
    event.target.value = "";
    if (!file) return;
    attempt(async () => {
      const said = await readQr(await createImageBitmap(file));
      if (!isLink(said)) throw new Error(text.scanNothing);
      found(said);
    });
  };
  return html`<div class="buttons">
    ${navigator.mediaDevices && !isOpen && html`<button type="button" id="scan" onClick=${() => setOpen(true)}>${text.scan}</button>`}
    <input type="file" id="scan-file" accept="image/*" hidden ref=${chooser} aria-label=${text.scanPicture} onChange=${read} />
    <button type="button" onClick=${() => chooser.current.click()}>${text.scanPicture}</button>
    ${isOpen && html`<${Camera} close=${() => setOpen(false)} found=${(link) => { setOpen(false); found(link); }} />`}
  </div>`;
}

function Camera({ found, close }) {
  const video = useRef(null);
  useEffect(() => {
    let stream = null;
    let plan = 0;
    let isOver = false;
    const look = async () => {
      const said = video.current?.videoWidth ? await readQr(video.current).catch(() => "") : "";
      if (isOver) return;
      if (isLink(said)) found(said);
      else plan = setTimeout(look, LOOK_MS);
    };
    attempt(async () => {
      try {
        stream = await navigator.mediaDevices.getUserMedia({ video: { facingMode: "environment" } });
      } catch {
        close();
        throw new Error(text.scanRefused);
      }
      if (isOver) return stop();
      video.current.srcObject = stream;
      await video.current.play();
      look();
    });
    const stop = () => {
      isOver = true;
      clearTimeout(plan);
      stream?.getTracks().forEach((track) => track.stop());
    };
    return stop;
  }, []);
  return html`<div class="camera"><video ref=${video} muted playsinline aria-label=${text.scanAim}></video>
    <p class="facts">${text.scanAim}</p><button type="button" onClick=${close}>${text.scanStop}</button></div>`;
}

function isLink(said) {
  return said.trim().startsWith("ravel:");
}
