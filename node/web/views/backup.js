// Backups in a folder of the node's machine, how the keys are kept, and the user's key as words for paper.

import { Action, Form, Loaded, ask, useLoaded } from "../parts/form.js";
import { bytes, when } from "../parts/format.js";
import { html } from "../parts/html.js";
import { usePolled } from "../parts/polled.js";
import { beside, me } from "../state/node.js";
import { api, isPerson } from "../state/session.js";
import { text } from "../strings/opened.js";
import { useState } from "../vendor/preact-hooks.js";

const KEY_FILE_READ = 20_000; // bytes of a chosen file: more than the node takes
export const OFFERED = "ravel-words-offered"; // in this browser's storage: user whose words were offered

export function Backup({ argument }) {
  const loaded = usePolled(() => api.showBackup());
  const isBack = argument === "restore";
  const restore = html`<${Restore} stop=${loaded.data?.stop_command ?? ""} isOpen=${isBack} />`;
  return html`${isBack && restore}<p>${text.backupAbout}</p>
    <${Loaded} of=${loaded} lines=${4}>${(backup) => html`
      <${State} backup=${backup} />
      ${isPerson.value && !backup.running && html`<${Form} id="start-backup" button=${text.startBackup} keep send=${async ({ folder }) => {
        await api.startBackup({ folder: folder.trim() });
        await loaded.again();
      }}><label>${text.backupFolder} <input key=${backup.suggested} name="folder" required maxlength="1024" autocomplete="off" spellcheck="false" defaultValue=${backup.suggested} /></label><//>`}`}<//>
    ${!isBack && restore}
    <h3>${text.ownKeys}</h3>
    <${Keys} />`;
}

/** How somebody goes on who was here before. A backup is not for the page: this node has to be stopped. */
function Restore({ stop, isOpen }) {
  const loaded = useLoaded(() => api.showKeys(), [], true);
  const [taken, setTaken] = useState("");
  if (taken) return html`<${Recovered} isBack=${me.value?.user === taken} />`;
  return html`<details id="restore" open=${isOpen || undefined}><summary>${text.restoreTitle}</summary>
    <p>${text.restoreChoose}</p>
    <h3>${text.restoreWays.device}</h3><p>${text.restoreDevice} <a href=${beside("devices")}>${text.panels.devices}</a></p>
    <h3>${text.restoreWays.backup}</h3><p>${text.restoreWhy}</p><${Steps} all=${text.restoreSteps(stop)} /><p>${text.restoreAfter}</p>
    <h3>${text.restoreWays.words}</h3><p>${text.restoreWords}</p>
    <${Loaded} of=${loaded} lines=${2}>${(keys) => (keys.unused && isPerson.value
      ? html`<${Recover} isSealed=${keys.protection === "passphrase"} done=${setTaken} />`
      : html`<p>${text.restoreUsed}</p><${Steps} all=${text.restoreWordsSteps} />`)}<//>
    <h3>${text.restoreWays.friends}</h3><p>${text.restoreFriends} <a href=${beside("devices", "lost")}>${text.lostKeys}</a></p></details>`;
}

/** Takes up the person of 24 words or of a key file, in place of a key that nothing was written with. */
function Recover({ isSealed, done }) {
  const send = async ({ words = "", file, filePassphrase: file_passphrase = "", passphrase = "" }) => {
    if (!(await ask({ title: text.recoverAsk, lines: text.recoverLines }, text.recover))) return;
    const key_file = file ? await file.slice(0, KEY_FILE_READ).text() : "";
    const { user } = await api.recoverUser({ words, key_file, file_passphrase, passphrase });
    done(user);
  };
  const own = isSealed && html`<label>${text.passphraseHere} <input type="password" name="passphrase" required maxlength="1024" autocomplete="current-password" /></label>`;
  return html`<${Form} id="recover" button=${text.recover} keep send=${send}>
      <label>${text.typedWords} <textarea name="words" rows="4" required maxlength="1024" autocomplete="off" autocapitalize="none" spellcheck="false"></textarea></label>${own}<//>
    <details><summary>${text.recoverByFile}</summary><${Form} id="recover-file" button=${text.recover} keep send=${send}>
      <label>${text.keyFile} <input type="file" name="file" required /></label>
      <label>${text.keyFilePassphrase} <input type="password" name="filePassphrase" maxlength="1024" autocomplete="off" /></label>${own}<//></details>`;
}

/** The node starts anew by itself, and says then whose it is. */
function Recovered({ isBack }) {
  if (!isBack) return html`<p class="asked" role="status">${text.recovering}</p>`;
  return html`<div class="asked" id="recovered" role="status"><p class="good">${text.recovered}</p>
    <p><a class="button main" href=${beside("join")}>${text.panels.join}</a></p></div>`;
}

function Steps({ all }) {
  return html`<ol class="how">${all.map(([said, command]) => html`<li>${said} <${Command} command=${command} /></li>`)}</ol>`;
}

/** A command with a way to copy it. */
export function Command({ command }) {
  return html`<span class="command"><code>${command}</code> <${Action} class="quiet" label=${text.copyCommand(command)} act=${() => navigator.clipboard.writeText(command)}>${text.copy}<//></span>`;
}

function State({ backup }) {
  if (backup.running) {
    return html`<p id="backup-runs" role="status">${text.backingUp(backup.folder)}</p>
      ${backup.size_expected > 0
        ? html`<progress max=${Math.max(backup.size_expected, backup.size)} value=${backup.size} aria-label=${text.written}></progress>
          <p class="facts">${text.sizeOf(bytes(backup.size), bytes(backup.size_expected))}</p>`
        : html`<progress aria-label=${text.written}></progress><p class="facts">${bytes(backup.size)}</p>`}`;
  }
  if (backup.error) return html`<p class="error" role="status">${text.backupFailed(text.sentence(backup.error))}</p>`;
  if (!backup.finished_at) return null;
  return html`<div id="backup-done" class="asked" role="status">
    <p class="good">${text.backedUp(backup.folder, bytes(backup.size), when(backup.finished_at))}</p>
    <p>${text.restoreAbout}</p><p><${Command} command=${backup.restore_command} /></p>
    <p class="facts">${text.restoreWarning}</p></div>`;
}

function Keys() {
  const loaded = useLoaded(() => api.showKeys(), [], true);
  return html`<${Loaded} of=${loaded} lines=${2}>${(keys) => html`
    <p class=${keys.protection === "none" ? "alarm" : ""}>${text.protections[keys.protection]}</p>
    ${keys.protection === "none" && html`<p class="facts">${text.sealAbout} <${Command} command=${keys.seal_command} /></p>`}
    ${isPerson.value && html`<${Words} protection=${keys.protection} />`}`}<//>`;
}

function Words({ protection }) {
  const [words, setWords] = useState(null);
  if (words) {
    return html`<div class="link-box"><p>${text.wordsAbout}</p>
      <ol id="words" class="words">${words.map((word) => html`<li>${word}</li>`)}</ol>
      <button type="button" onClick=${() => setWords(null)}>${text.wordsWritten}</button></div>`;
  }
  return html`<details><summary>${text.showWords}</summary><${ShowWords} protection=${protection} shown=${setWords} /></details>`;
}

/** Gives the 24 words to `shown`; sealed keys ask for the passphrase first. */
export function ShowWords({ protection, shown }) {
  return html`<p>${text.wordsWarning}</p>
    <${Form} id="show-words" button=${text.showWords} send=${async ({ passphrase = "" }) => shown((await api.showKeyWords({ passphrase })).words)}>
      ${protection === "passphrase" && html`<label>${text.passphrase} <input type="password" name="passphrase" required maxlength="1024" autocomplete="current-password" /></label>`}<//>`;
}
