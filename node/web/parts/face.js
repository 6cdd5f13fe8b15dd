// Icons, faces of people and tiles of repos: for the eye, since names say the same.

import { memberChanges, memberOf, personOf } from "../state/node.js";
import { text } from "../strings/text.js";
import { short } from "./format.js";
import { html } from "./html.js";

const COLORS = 12; // of style/base.css
const COLORS_STATED = 16; // from which a person chooses

export function Icon({ name, size = "" }) {
  return html`<svg class=${`i ${size}`} aria-hidden="true"><use href=${`#i-${name}`} /></svg>`;
}

/** Colors that a person may choose; `chosen` is marked. */
export function Hues({ chosen, choose }) {
  return html`<fieldset class="unfielded"><legend class="label">${text.color}</legend><div class="hues">${Array.from({ length: COLORS }, (_, one) => html`
    <input type="radio" name="hue" class=${`p${one}`} aria-label=${text.colorNumber(one + 1)} value=${one} checked=${one === chosen} onChange=${() => choose(one)} />`)}</div></fieldset>`;
}

/** How a person states a color; null: none. */
export function statedOf(hue) {
  return hue === null ? null : Math.ceil((Number(hue) * COLORS_STATED) / COLORS);
}

/** A person: initials on the color stated in the chosen repo, else by the id. */
export function Face({ id, name, color = memberOf(id)?.color ?? null, size = "", isOn = false }) {
  const letters = [...initials(name || id)].slice(0, size === "xs" ? 1 : 2).join("");
  return html`<span class=${`av ${size} ${colorOf(personOf(id), color)}${isOn ? " on" : ""}`} aria-hidden="true">${letters}</span>`;
}

export function Tile({ id, name }) {
  return html`<span class=${`tile ${colorOf(id)}`} aria-hidden="true">${[...initials(name)][0]}</span>`;
}

const colorOf = (id, stated) => `p${hueOf(id, stated)}`;

/** The number of a person's color: as stated, else by the id. */
export function hueOf(id, stated = null) {
  if (stated !== null) return Math.floor((stated * COLORS) / COLORS_STATED) % COLORS;
  let sum = 0;
  for (let at = 0; at < Math.min(id.length, 16); at += 1) sum = (sum * 31 + id.charCodeAt(at)) % 65_521;
  return sum % COLORS;
}

/** First letters of the first and the last word. A name without letters has a dot. */
function initials(name) {
  const words = name.match(/[\p{L}\p{N}][\p{L}\p{N}\p{M}]*/gu) ?? ["·"];
  const first = [...words[0]][0];
  return (words.length > 1 ? first + [...words.at(-1)][0] : first).toUpperCase();
}

/** What a member is called, or was before they went. */
export function nameOf({ user, name = memberChanges.value.findLast((one) => one.user === user)?.user_name }) {
  return name || short(user);
}
