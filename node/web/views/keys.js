// All keys in one list: ? opens it.

import { Icon } from "../parts/face.js";
import { html } from "../parts/html.js";
import { text } from "../strings/text.js";
import { useEffect, useRef } from "../vendor/preact-hooks.js";
import { signal } from "../vendor/signals.js";

const isOpen = signal(false);

export function openKeys() {
  isOpen.value = true;
}

export function Keys() {
  return isOpen.value ? html`<${Open} />` : null;
}

function Open() {
  const dialog = useRef(null);
  useEffect(() => dialog.current.showModal(), []);
  return html`<dialog ref=${dialog} id="keys" aria-labelledby="keys-title" onClose=${() => (isOpen.value = false)}>
    <header><h2 id="keys-title">${text.keyboard}</h2><button type="button" class="quiet icon" aria-label=${text.closeDialog} onClick=${() => dialog.current.close()}><${Icon} name="close" /></button></header>
    <div class="body"><dl class="pairs">${text.keys.map(([keys, said]) => html`<dt>${keys.map((one) => html`<kbd>${one}</kbd> `)}</dt><dd>${said}</dd>`)}</dl></div></dialog>`;
}
