// Settings of the node: what each does, where its value comes from, and changes of the configuration file.

import { Icon } from "../parts/face.js";
import { Action, Loaded, Tick, useLoaded } from "../parts/form.js";
import { fold } from "../parts/format.js";
import { html } from "../parts/html.js";
import { beside, me, refresh } from "../state/node.js";
import { api, attempt, isPerson, tell } from "../state/session.js";
import { text } from "../strings/opened.js";
import { useState } from "../vendor/preact-hooks.js";
import { Command } from "./backup.js";
import { ThisBrowser } from "./notices.js";

/** What most people ask for, as they would group it. All settings stand below, as the file has them. */
const GROUPS = {
  reach: ["network.advertise", "network.map_port", "network.discover_lan", "network.circuits"],
  computer: ["search.enabled", "storage.size_max", "relay.enabled"],
};

export function Settings() {
  const loaded = useLoaded(() => api.listSettings(), [], true);
  const [asked, setAsked] = useState("");
  return html`${loaded.data?.settings.some((one) => one.restart) && html`<${Restart} found=${loaded.data} />`}
    <${ThisBrowser} />
    ${loaded.data && Object.keys(GROUPS).map((group) => html`<${Plain} key=${group} group=${group} settings=${loaded.data.settings} again=${loaded.again} />`)}
    <h3>${text.allSettings}</h3>
    <p class="facts">${text.settingsAbout}</p>
    <label class="find">${text.findSetting} <input type="search" id="setting-filter" autocomplete="off" onInput=${(event) => setAsked(fold(event.target.value))} /></label>
    <${Loaded} of=${loaded} lines=${8}>${(found) => html`
      <${Sections} settings=${found.settings.filter((one) => fold(`${one.setting} ${one.about}`).includes(asked))} again=${loaded.again} isOpen=${Boolean(asked)} />
      <p class="facts">${text.configFile(found.config)}</p>`}<//>
    <p><a href=${beside("backup", "restore")}>${text.start.before}</a></p>
    <p class="facts">${text.removeRavel} <${Command} command="ravel uninstall" /></p>`;
}

function Restart({ found }) {
  const mayRestart = found.restarts && isPerson.value;
  return html`<div id="restart" class="strip warn round" role="status"><${Icon} name="info" /><p>${mayRestart ? text.waitForRestart : html`${text.needsRestart} <code>${found.restart_command}</code>`}</p>
    ${mayRestart && html`<${Action} id="restart-now" act=${() => api.restartNode()}>${text.restartNow}<//>`}</div>`;
}

/** A group of settings in plain words, each with a control that takes effect at once. */
function Plain({ group, settings, again }) {
  const shown = GROUPS[group].map((name) => settings.find((one) => one.setting === name)).filter(Boolean);
  return html`<h3>${text.settingGroups[group]}</h3><div class="card" id=${`plain-${group}`}>${group === "computer" && html`<${Own} />`}${shown.map((one) => {
    const [title, about] = text.plainSettings[one.setting];
    const change = async ({ target: field }) => {
      if (!(await attempt(() => store(one, field.value, again)))) field.value = one.value;
    };
    const common = { id: `plain-${one.setting}`, disabled: !isPerson.value, "aria-describedby": `about-${one.setting}` };
    return html`<div class="setting" key=${one.setting}><b><label for=${`plain-${one.setting}`}>${title}</label></b>
      <p class="facts" id=${`about-${one.setting}`}>${about}${one.restart ? html` <span class="alarm">${text.afterRestart}</span>` : ""}</p>
      ${one.kind === "flag" ? html`<${Tick} class="switch" ...${common} isOn=${one.value === "true"} act=${(isOn) => store(one, String(isOn), again)} />` : html`<input type="text" ...${common} inputmode=${one.kind === "number" ? "numeric" : undefined} autocomplete="off" value=${one.value} onChange=${change} />`}</div>`;
  })}</div>`;
}

/** What this computer is called beside its person's name, and whether Ravel starts with the login. */
function Own() {
  const start = useLoaded(() => api.showStartWithLogin(), [], true);
  const own = me.value;
  const name = async ({ target: field }) => {
    const went = await attempt(async () => {
      await api.stateMe({ name: field.value.trim() || null, color: own.color });
      await refresh();
      tell(text.saved);
    });
    if (!went) field.value = own.name ?? "";
  };
  const turn = async (starts) => {
    await api.startWithLogin({ starts });
    await start.again();
    tell(text.settingSaved(text.startWithLogin[0]), () => api.startWithLogin({ starts: !starts }).then(start.again));
  };
  const { starts, hindrance } = start.data ?? {};
  return html`${own?.shown && html`<div class="setting"><b><label for="own-name">${text.computerName[0]}</label></b><p class="facts" id="about-own-name">${text.computerName[1](own.shown)}</p>
      <input type="text" id="own-name" maxlength="64" autocomplete="off" aria-describedby="about-own-name" disabled=${!isPerson.value} value=${own.name ?? ""} onChange=${name} /></div>`}
    ${start.data && html`<div class="setting"><b><label for="start-with-login">${text.startWithLogin[0]}</label></b><p class="facts" id="about-start">${text.startWithLogin[1]} ${text.startHindrances[hindrance]}</p>
      <${Tick} class="switch" id="start-with-login" aria-describedby="about-start" disabled=${!isPerson.value || Boolean(hindrance)} isOn=${starts} act=${turn} /></div>`}`;
}

/** Stores a setting, and tells so with what takes it back. */
async function store(one, value, again) {
  const before = one.value;
  const done = await api.changeSetting({ setting: one.setting, value });
  const undo = one.hidden ? null : async () => {
    await api.changeSetting({ setting: one.setting, value: before });
    await again();
  };
  tell(done.overridden_by ? text.savedInVain(one.setting, done.overridden_by) : text.settingSaved(text.plainSettings[one.setting]?.[0] ?? one.setting), undo);
  await again();
}

function Sections({ settings, again, isOpen }) {
  const names = [...new Set(settings.map((one) => one.setting.split(".")[0]))];
  if (!names.length) return html`<p class="facts">${text.noSetting}</p>`;
  return names.map((name) => html`<details key=${name} open=${isOpen || undefined}><summary>${text.sections[name] ?? name}</summary>
    <ul class="plain settings">${settings.filter((one) => one.setting.startsWith(`${name}.`)).map((one) => html`<${Row} key=${one.setting} one=${one} again=${again} />`)}</ul>
  </details>`);
}

function Row({ one, again }) {
  const change = (before) => async (event) => {
    const field = event.target;
    const { value } = field;
    if (value === before) return;
    const went = await attempt(() => store(one, value, again));
    if (!went) field.value = before;
  };
  const name = one.setting.split(".")[1];
  return html`<li id=${`setting-${one.setting}`}>
    <label for=${`value-${one.setting}`}><code>${name}</code></label>
    <${Field} one=${one} change=${change} />
    <p class="facts">${one.about}</p>
    <p class="facts">${text.sources[one.source]}${one.value === one.default ? "" : ` · ${text.defaultOf(one.default)}`}</p>
    ${["environment", "option"].includes(one.source) && html`<p class="alarm note">${text.overridden(one.source === "environment" ? one.variable : "")}</p>`}
    ${one.restart && html`<p class="alarm note">${text.afterRestart}</p>`}
  </li>`;
}

function Field({ one, change }) {
  const common = { id: `value-${one.setting}`, disabled: !isPerson.value, key: one.value };
  const choices = one.kind === "flag" ? ["true", "false"] : one.choices;
  if (choices.length) {
    return html`<select ...${common} onChange=${change(one.value)}>
      ${choices.map((choice) => html`<option value=${choice} selected=${choice === one.value}>${text.flags[choice] ?? choice}</option>`)}</select>`;
  }
  if (one.hidden) {
    return html`<span class="facts">${one.value && text.nowHidden(one.value)}</span>
      <input ...${common} class="cell" autocomplete="off" placeholder=${text.newValue} onChange=${change("")} />`;
  }
  if (one.kind === "list") return html`<textarea ...${common} rows="2" spellcheck="false" defaultValue=${one.value} onChange=${change(one.value)}></textarea>`;
  return html`<input ...${common} class="cell" type=${one.kind === "number" ? "number" : "text"} autocomplete="off" defaultValue=${one.value} onChange=${change(one.value)} />`;
}
