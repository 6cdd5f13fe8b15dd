// The locked page: how one gets in.

import { html } from "../parts/html.js";
import { enter, loginError } from "../state/session.js";
import { text } from "../strings/en.js";
import { useEffect, useRef, useState } from "../vendor/preact-hooks.js";

export function Login() {
  const token = useRef(null);
  const [isBusy, setBusy] = useState(false);
  useEffect(() => token.current.focus(), []);
  const send = async (event) => {
    event.preventDefault();
    setBusy(true);
    await enter(token.current.value.trim());
    setBusy(false);
  };
  return html`<main id="login" class="login">
    <h1>${text.name}</h1>
    <p>${text.login.how} <code>${text.login.open}</code></p>
    <p>${text.login.paste}</p>
    <form id="login-form" onSubmit=${send}>
      <label for="token">${text.login.token}</label>
      <input id="token" ref=${token} type="password" autocomplete="off" required />
      <button disabled=${isBusy}>${text.login.button}</button>
    </form>
    <p id="login-error" class="error" role="alert">${loginError.value}</p>
  </main>`;
}
