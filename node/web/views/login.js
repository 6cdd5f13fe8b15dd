// The locked page: how one gets in, and out. In on the node's machine by `ravel open` or a token, elsewhere by pairing this browser.

import { ask } from "../parts/form.js";
import { html } from "../parts/html.js";
import { api, enter, isRemote, lock, loginError, ownToken, pair, pairing, tokenKind } from "../state/session.js";
import { text } from "../strings/text.js";
import { useEffect, useRef, useState } from "../vendor/preact-hooks.js";

export function Login() {
  return html`<main id="login" class="login">
    <h1>${text.name}</h1>
    ${isRemote ? html`<${Pair} />` : html`<p>${text.login.how} <code>${text.login.open}</code></p><p class="facts">${text.login.stay}</p><${Token} isFirst />`}
    <p id="login-error" class="error" role="alert">${loginError.value}</p>
  </main>`;
}

function Token({ isFirst = false }) {
  const token = useRef(null);
  const [isBusy, setBusy] = useState(false);
  useEffect(() => {
    if (isFirst) token.current.focus();
  }, []);
  const send = async (event) => {
    event.preventDefault();
    if (isBusy) return;
    setBusy(true);
    await enter(token.current.value.trim());
    setBusy(false);
  };
  return html`<p>${text.login.paste}</p>
    <form id="login-form" onSubmit=${send}>
      <label for="token">${text.login.token}</label>
      <input id="token" ref=${token} type="password" autocomplete="off" required />
      <button aria-busy=${isBusy}>${text.login.button}</button>
    </form>`;
}

/** Asks for the code of `ravel open --remote`, which a link or QR code has filled in, and for what to call this browser. */
function Pair() {
  const { code, fingerprint } = pairing.value;
  const form = useRef(null);
  const [isBusy, setBusy] = useState(false);
  useEffect(() => form.current.elements[code ? "name" : "code"].focus(), [code]);
  const send = async (event) => {
    event.preventDefault();
    if (isBusy) return;
    setBusy(true);
    await pair(form.current.elements.code.value.trim(), form.current.elements.name.value.trim());
    setBusy(false);
  };
  return html`<p>${text.pairing.how} <code>${text.pairing.open}</code></p>
    <form id="pair-form" class="form" ref=${form} onSubmit=${send}>
      <label>${text.pairing.code} <input name="code" key=${code} defaultValue=${code} autocomplete="off" autocapitalize="none" spellcheck="false" maxlength="64" required /></label>
      <label>${text.pairing.name} <input name="name" defaultValue=${text.pairing.kindOf(navigator.userAgent)} autocomplete="off" maxlength="64" required /></label>
      <button class="main" aria-busy=${isBusy}>${text.pairing.button}</button>
    </form>
    ${fingerprint && html`<p>${text.pairing.compare}</p>
      <p class="id" id="fingerprint">${fingerprint.toUpperCase().match(/../g).join(":")}</p>`}
    <details><summary>${text.pairing.other}</summary><${Token} /></details>`;
}

/** Locks the page; a paired browser only if its user knows that it must be paired again. One here ends that it stays. */
export async function leave() {
  if (tokenKind.value === "browser" && !(await ask(text.unpairQuestion, text.lock))) return;
  if (tokenKind.value === "kept") await api.revokeBrowser({ browser: ownToken.value }).catch(() => {}); // it ends by itself
  lock();
}
