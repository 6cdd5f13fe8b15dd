// The first start: what others call one, what locks the key, the 24 words once, and where one begins.

import { Face, Hues, Icon, hueOf, statedOf } from "../parts/face.js";
import { Form, Loaded, useLoaded } from "../parts/form.js";
import { html } from "../parts/html.js";
import { beside, me, refresh } from "../state/node.js";
import { actions, api, isPerson } from "../state/session.js";
import { text } from "../strings/opened.js";
import { useEffect, useRef, useState } from "../vendor/preact-hooks.js";
import { Command, OFFERED, ShowWords } from "./backup.js";
import { Stay } from "./browsers.js";

const STEPS = ["name", "key", "begin"];

/** Shown while there is no repo. The steps are for the person of this node alone. */
export function Start() {
  const own = me.value;
  const [done, setDone] = useState(null);
  const isMine = isPerson.value && actions.value.includes("node");
  const keys = useLoaded(async () => isMine && api.showKeys(), [isMine, own?.user], true);
  if (isMine && !(own && (keys.data || keys.error))) return null; // it comes
  // Who came back by words or a file has them, and a name in each repo.
  const isOffered = !isMine || keys.data?.recovered || localStorage.getItem(OFFERED) === own.user;
  const step = done ?? (isOffered ? "begin" : own.name ? "key" : "name");
  const offered = () => {
    localStorage.setItem(OFFERED, own.user);
    setDone("begin");
  };
  return html`<div class="scroll starts"><section class=${`sheet-card${step === "key" ? " broad" : ""}`} id="start" aria-labelledby="start-title" data-step=${step}>
    ${isMine && html`<ol class="steps" aria-label=${text.start.steps}>${STEPS.map((one) => html`<li key=${one} aria-current=${one === step ? "step" : undefined}>
      ${STEPS.indexOf(one) < STEPS.indexOf(step) && html`<${Icon} name="check" size="s done" />`}<span>${text.start.step[one]}</span></li>`)}</ol>`}
    ${step === "name" && html`<${Name} own=${own} next=${() => setDone(isOffered ? "begin" : "key")} />`}
    ${step === "key" && html`<${Key} next=${offered} />`}
    ${step === "begin" && html`<${Begin} name=${own?.name ?? ""} isMine=${isMine} />`}</section></div>`;
}

/** The heading has the keyboard when a step comes after another. */
function Title({ children, isFirst = false }) {
  const title = useRef(null);
  useEffect(() => isFirst || title.current.focus(), []);
  return html`<h1 id="start-title" ref=${title} tabindex="-1">${children}</h1>`;
}

function Name({ own, next }) {
  const [name, setName] = useState(""); // this and the hue for the face alone: what is sent is what the form has when it is
  const [hue, setHue] = useState(null);
  const field = useRef(null);
  useEffect(() => field.current.focus(), []); // there is nothing else to do on this page
  return html`<${Title} isFirst>${text.start.nameTitle}<//><p>${text.start.nameAbout}</p>
    <${Form} id="start-name" button=${text.next} keep send=${async ({ name: said, hue: chosen = null }) => {
      await api.stateMe({ name: said.trim(), color: statedOf(chosen) });
      await refresh();
      next();
    }}>
      <div class="hello"><${Face} id=${own.user} name=${name} color=${statedOf(hue)} size="l" />
        <label>${text.myName} <input ref=${field} name="name" type="text" required maxlength="64" pattern=".*\\S.*" autocomplete="nickname" onInput=${(event) => setName(event.target.value)} /></label></div>
      <${Hues} chosen=${hue ?? hueOf(own.user)} choose=${setHue} />
    <//>
    <p><a href=${beside("backup", "restore")}>${text.start.before}</a></p>`;
}

function Key({ next }) {
  const loaded = useLoaded(() => api.showKeys(), [], true);
  const [words, setWords] = useState(null);
  return html`<${Title}>${text.start.keyTitle}<//>
    <${Loaded} of=${loaded} lines=${2}>${(keys) => html`
      <div class=${`note-box${keys.protection === "none" ? " warn" : ""}`}><${Icon} name="key" /><div><p>${text.start.locks[keys.protection] ?? text.protections[keys.protection]}</p>
        ${keys.protection === "none" && html`<p>${text.sealAbout} <${Command} command=${keys.seal_command} /></p>`}</div></div>
      ${words ? html`<ol id="words" class="words24">${words.map((word) => html`<li>${word}</li>`)}</ol><p>${text.wordsAbout}</p>`
        : html`<${ShowWords} protection=${keys.protection} shown=${setWords} />`}
      <p class="facts">${text.start.wordsAbout}</p>
      <div class="buttons end"><button type="button" id="words-later" class="quiet" onClick=${next}>${text.start.later}</button>
        ${words && html`<button type="button" id="words-written" class="main" onClick=${next}>${text.wordsWritten}</button>`}</div>`}<//>`;
}

function Begin({ name, isMine }) {
  const way = (address, icon, said, about) => html`<a class="way" href=${address}><${Icon} name=${icon} /><span><b>${said}</b><span class="facts">${about}</span></span><${Icon} name="turn" /></a>`;
  return html`<${Title}>${text.start.beginTitle(name)}<//><p>${text.welcomeAbout}</p>
    <div class="ways">${way(beside("join"), "link", text.panels.join, text.start.joinAbout)}
      ${way(beside("new"), "plus", text.panels.new, text.start.newAbout)}
      ${isMine && way(beside("backup", "restore"), "laptop", text.start.before, text.start.beforeAbout)}</div>
    <${Stay} />`;
}
