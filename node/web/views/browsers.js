// Browsers that stay signed in: this one, and those of other machines; see when each last came, and end that.

import { Action, Empty, LinkBox, Loaded, useLoaded } from "../parts/form.js";
import { when } from "../parts/format.js";
import { html } from "../parts/html.js";
import { api, isPerson, ownToken, staySignedIn, tell, tokenKind } from "../state/session.js";
import { text } from "../strings/opened.js";
import { useEffect, useState } from "../vendor/preact-hooks.js";
import { Made, Revoke } from "./tokens.js";

const PORT = 7476; // beside those that a node listens on by default
const LOOK_MS = 3000; // while a code waits for its browser

/** A paired browser sees them, and pairs and revokes none. */
export function Browsers() {
  const loaded = useLoaded(() => api.listBrowsers(), [], true);
  const [made, setMade] = useState(null);
  useEffect(() => {
    if (!made) return undefined;
    const timer = setInterval(loaded.again, LOOK_MS);
    const end = setTimeout(() => setMade(null), made.expires_seconds * 1000);
    return () => {
      clearInterval(timer);
      clearTimeout(end);
    };
  }, [made]);
  useEffect(() => {
    const come = made && loaded.data?.browsers.find((one) => !one.revoked && !made.known.has(one.name));
    if (!come) return;
    setMade(null);
    tell(text.paired(come.name));
  }, [made, loaded.data]);
  return html`<${Stay} again=${loaded.again} /><p>${text.browsersAbout}</p>
    <${Loaded} of=${loaded}>${({ browsers, remote }) => html`
      ${remote && html`<p class="facts">${text.browsersReach(remote.addresses.join(", "))}</p>`}
      ${!browsers.length && html`<${Empty}><p>${remote ? text.noBrowsers : text.noRemote}</p><//>`}
      ${!remote && isPerson.value && html`<${OpenRemote} />`}
      <ul class="plain" id="browsers">${browsers.map((one) => html`<li key=${`${one.name} ${one.created_at}`}>
        <bdi>${one.name}</bdi> <span class="facts">${text.browserFacts(when(one.created_at), one.last_used_at && when(one.last_used_at), when(one.expires_at), one)}</span>
        <${Made} things=${one.made} />
        ${isPerson.value && html`<${Revoke} one=${one} question=${text.revokeBrowserQuestion(one.name)} revoke=${async (made) => {
          const answer = await api.revokeBrowser({ browser: one.name, made });
          await loaded.again();
          return answer;
        }} />`}</li>`)}</ul>
      ${remote && isPerson.value && html`<div class="buttons"><${Action} id="pair" act=${async () => {
        const answer = await api.makePairingCode();
        const qr = await api.drawQr({ text: answer.addresses[0] });
        setMade({ ...answer, qr, known: new Set(browsers.filter((one) => !one.revoked).map((one) => one.name)) });
      }}>${text.pairBrowser}<//></div>`}
      ${!isPerson.value && html`<p class="facts">${text.pairAtMachine}</p>`}`}<//>
    ${made && html`<${LinkBox} id="pairing-link" link=${made.addresses[0]} about=${text.pairAbout(made.code)} qr=${made.qr} />
      <p>${text.pairing.compare}</p><p class="id">${made.fingerprint}</p>`}`;
}

/** Has this browser stay signed in, or says that it does. For one of the node's machine. */
export function Stay({ again = () => {} }) {
  if (tokenKind.value === "kept") return html`<p id="stays" class="facts">${text.stays(ownToken.value)}</p>`;
  if (tokenKind.value !== "page") return null;
  return html`<div class="stay"><p class="facts">${text.stayAbout}</p>
    <div class="buttons"><${Action} id="stay" act=${async () => {
      await staySignedIn();
      tell(text.stayed);
      await again();
    }}>${text.stay}<//></div></div>`;
}

/** Has the node serve its page to other machines, from its next start on. */
function OpenRemote() {
  const loaded = useLoaded(() => api.listSettings(), [], true);
  const set = async (value) => {
    await api.changeSetting({ setting: "api.tls", value });
    await loaded.again();
    tell(text.saved, value ? () => set("") : null);
  };
  return html`<${Loaded} of=${loaded} lines=${2}>${({ settings, restart_command: command }) =>
    settings.find((one) => one.setting === "api.tls")?.value
      ? html`<p id="remote-waits" class="asked" role="status">${text.remoteWaits} <code>${command}</code></p>`
      : html`<p>${text.openRemoteAbout(PORT)}</p>
        <div class="buttons"><${Action} id="open-remote" act=${() => set(`*:${PORT}`)}>${text.openRemote}<//></div>`}<//>`;
}
