// Forms and buttons that run once at a time, questions before what cannot be undone, lists that are being loaded, and files
// that are saved.

import { api, attempt, problem, sentenceOf } from "../state/session.js";
import { changes } from "../state/node.js";
import { text } from "../strings/text.js";
import { useEffect, useRef, useState } from "../vendor/preact-hooks.js";
import { signal } from "../vendor/signals.js";
import { Icon } from "./face.js";
import { isOnlyHere } from "./format.js";
import { html } from "./html.js";

const READ_MS = 60_000; // by then a browser has begun to read what it saves

/** `send(values, form)` gets the fields' values. The form is emptied when that went well. A disabled button would lose the focus. */
export function Form({ id, class: name = "form", send, button, children, keep = false }) {
  const [isBusy, setBusy] = useState(false);
  const submit = async (event) => {
    event.preventDefault();
    if (isBusy) return;
    const form = event.currentTarget;
    setBusy(true);
    const went = await attempt(() => send(Object.fromEntries(new FormData(form)), form));
    setBusy(false);
    if (went && !keep) form.reset();
  };
  return html`<form id=${id} class=${name} onSubmit=${submit}>
    ${children}
    <button aria-busy=${isBusy}>${isBusy ? text.working : button}</button>
  </form>`;
}

/** A button that does `act`, after a question if it has one. */
export function Action({ act, children, question = "", yes = children, class: name = "", id, label, tab }) {
  const [isBusy, setBusy] = useState(false);
  const press = async (event) => {
    const place = event.currentTarget.closest(".pane, .mid, .side");
    if (isBusy || (question && !(await ask(question, yes)))) return;
    setBusy(true);
    await attempt(act);
    setBusy(false);
    setTimeout(() => keepFocus(place), 0); // when what it did is drawn
  };
  return html`<button
    type="button" id=${id} class=${name} aria-label=${label} title=${label} tabindex=${tab}
    aria-busy=${isBusy} onClick=${press}>${children}</button>`;
}

/** A box that does `act(isTicked)` at once. What was refused shows again how things are: `isOn`. */
export function Tick({ isOn, act, ...rest }) {
  const latest = useRef(isOn);
  latest.current = isOn;
  const change = async ({ target }) => {
    if (!(await attempt(() => act(target.checked)))) target.checked = latest.current;
  };
  return html`<input type="checkbox" ...${rest} checked=${isOn} onChange=${change} />`;
}

/** Where a button has gone with what it acted on, the keyboard stays in the same column. */
function keepFocus(place) {
  if (document.activeElement !== document.body) return;
  place?.querySelector("#panel-title, #details-title, article[tabindex='0']")?.focus({ preventScroll: true });
}

/**
 * What `load` gives, again whenever `keys` or, unless `isStill`, the node's repos change: `{ data, error, again }`.
 * `data` is undefined until it came the first time.
 */
export function useLoaded(load, keys, isStill = false) {
  const [state, setState] = useState({ keys: null });
  const turn = useRef(0);
  const key = JSON.stringify(keys);
  const again = async () => {
    const own = (turn.current += 1);
    let next;
    try {
      next = { key, data: await load() };
    } catch (error) {
      next = { key, error };
    }
    if (own === turn.current) setState((before) => (next.error && before.key === key ? { ...before, ...next } : next));
  };
  useEffect(() => {
    again();
    return () => {
      turn.current += 1;
    };
  }, [key, isStill ? 0 : changes.value]);
  const isOwn = state.key === key;
  return { data: isOwn ? state.data : undefined, error: isOwn ? state.error : undefined, again };
}

/** What was loaded by `useLoaded`: a skeleton, what went wrong, or `children(data)`. That the node is away stands above the page. */
export function Loaded({ of, lines = 3, children }) {
  if (of.error && of.data === undefined) return of.error.code === "not_running" ? null : html`<p class="error">${sentenceOf(of.error)}</p>`;
  if (of.data === undefined) return html`<${Skeleton} lines=${lines} />`;
  return children(of.data);
}

export function Skeleton({ lines = 3 }) {
  return html`<div class="skeleton" aria-busy="true" aria-label=${text.loading} role="status">
    ${Array.from({ length: lines }, () => html`<span></span>`)}
  </div>`;
}

/** What is empty, and what one does next. */
export function Empty({ children, id }) {
  return html`<div class="empty" id=${id}>${children}</div>`;
}

const question = signal(null);

/** Whether the user says yes. What is said is a question, or `{ title, lines }`: what happens, each in a line. */
export function ask(said, yes) {
  problem.value = "";
  return new Promise((answer) => {
    question.value = { said, yes, answer };
  });
}

export function Question() {
  const dialog = useRef(null);
  const asked = question.value;
  useEffect(() => {
    if (asked) dialog.current.showModal();
  }, [asked]);
  if (!asked) return null;
  const close = () => {
    const isYes = dialog.current.returnValue === "yes";
    question.value = null;
    asked.answer(isYes);
  };
  const end = (value) => () => dialog.current.close(value);
  const { title, lines } = asked.said;
  return html`<dialog ref=${dialog} class="question" onClose=${close} aria-labelledby="question-said">
    ${title ? html`<h2 id="question-said">${title}</h2><ul class="what">${lines.map((line) => html`<li><${Icon} name="info" size="s" />${line}</li>`)}</ul>` : html`<p id="question-said">${asked.said}</p>`}
    <div class="buttons">
      <button type="button" onClick=${end("")}>${text.cancel}</button>
      <button type="button" class="main danger" onClick=${end("yes")}>${asked.yes}</button>
    </div>
  </dialog>`;
}

/** A secret link with its QR code and a way to copy it. */
export function LinkBox({ id, link, about, facts = "", alarm = "", qr }) {
  const box = useRef(null);
  useEffect(() => {
    box.current?.select();
    box.current?.parentNode.scrollIntoView({ block: "nearest" }); // with what one does with it
  }, [link]);
  return html`<div class="link-box">
    <p>${about}</p>
    <textarea id=${id} ref=${box} rows="4" readonly aria-label=${text.link} value=${link}></textarea>
    <${Action} act=${() => navigator.clipboard.writeText(link)}>${text.copy}<//>
    ${facts && html`<p class="facts">${facts}</p>`}
    ${alarm && html`<p class="error">${alarm}</p>`}
    ${qr && html`<svg class="qr" role="img" aria-label=${text.linkAsQr} viewBox=${`0 0 ${qr.size} ${qr.size}`}><path d=${qr.path} /></svg>`}
  </div>`;
}

/** The properties of `LinkBox` for a link that the node made. */
export async function describeLink(answer, field) {
  const { addresses } = answer;
  const link = answer[field];
  const names = addresses.join(", ");
  const isFar = addresses.length > 0 && (answer.reach ? answer.reach !== "machine" : !isOnlyHere(addresses));
  const alarm = isFar ? "" : addresses.length ? text.onlyHere(names) : text.noAddress;
  const facts = isFar && `${text.names(names)} ${answer.reach === "network" ? text.onlyNear : ""}`;
  return { link, facts, alarm, qr: await api.drawQr({ text: link }) };
}

/** Has the browser save what stands at an address of this node. */
export function saveFrom(address, name = "") {
  const link = document.createElement("a");
  link.href = address;
  link.download = name;
  link.click();
}

/** Has the browser save a blob as a file. */
export function saveAs(blob, name) {
  saveFrom(addressFor(blob), name);
}

/** Opens a blob in a tab that knows nothing of this one. */
export function openAs(blob) {
  Object.assign(document.createElement("a"), { href: addressFor(blob), target: "_blank", rel: "noopener" }).click();
}

function addressFor(blob) {
  const address = URL.createObjectURL(blob);
  setTimeout(() => URL.revokeObjectURL(address), READ_MS);
  return address;
}
