// Who wrote in the texts of a branch, by days; and what one does with a text that is done: save it, print it, keep it as it is.

import { Face, Icon } from "../parts/face.js";
import { Action, Empty, Loaded, saveAs, useLoaded } from "../parts/form.js";
import { clock, dayName, dayOf, whoOf } from "../parts/format.js";
import { html } from "../parts/html.js";
import { Markdown } from "../parts/markdown.js";
import { addressOf, beside, may, members } from "../state/node.js";
import { api, tell } from "../state/session.js";
import { text } from "../strings/opened.js";
import { render } from "../vendor/preact.js";
import { shownText } from "./text.js";

const SHOWN = 1000; // changes, the latest

export function Written({ repo, branch }) {
  const id = branch.branch;
  const loaded = useLoaded(() => api.showState({ branch: id, kind: "text", limit: SHOWN }), [id]);
  return html`<${Loaded} of=${loaded}>${({ items, total }) => html`
    ${!items.length && html`<${Empty}><p>${text.emptyText}</p><//>`}
    ${daysOf(items).map(([day, people]) => html`<div class="part" key=${day}><h3>${dayName(day)}</h3><ul class="rows written">${people.map((one) => html`<${Row} key=${one.key} one=${one} />`)}</ul></div>`)}
    ${items.length < total && html`<p class="facts">${text.lastChanges(items.length)}</p>`}`}<//>
    ${shownText.value && html`<div class="part"><h3>${text.canDo}</h3><${Done} branch=${id} mayWrite=${may(repo, "write") && !branch.archived} /></div>`}`;
}

/** Days, the latest first, each with the people who wrote: how often, from when to when, and the last change. */
export function daysOf(items) {
  const days = new Map();
  for (const item of items.toReversed()) {
    const day = dayOf(item.time);
    const key = item.imported_author || (item.origin ?? item).person || (item.origin ?? item).author;
    if (!days.has(day)) days.set(day, new Map());
    const people = days.get(day);
    const one = people.get(key) ?? { key, item, count: 0, from: item.time, to: item.time };
    people.set(key, { ...one, count: one.count + 1, from: Math.min(one.from, item.time), to: Math.max(one.to, item.time) });
  }
  return [...days].map(([day, people]) => [day, [...people.values()]]);
}

function Row({ one: { item, count, from, to } }) {
  const { author } = item.origin ?? item;
  const name = whoOf(item, new Map((members.value ?? []).map((member) => [member.user, member.name])));
  return html`<li class="line"><${Face} id=${author} name=${name} size="s" />
    <span class="grow"><b class="cut"><a class="person whole-row" href=${beside("commit", item.commit)}><bdi>${name}</bdi></a></b>
      <span class="facts">${text.wroteBetween(clock(from), clock(to), count)}</span></span></li>`;
}

/** What one does with the text that is open, as it stands now. */
function Done({ branch, mayWrite }) {
  const { live, root, title } = shownText.value;
  const words = () => live.document.value.getText(root).toString();
  const name = `${title.replace(/[/\\\p{Cc}]/gu, "-").replace(/^\.+/, "")} ${dayOf(Date.now() / 1000)}.md`; // what is kept on another day has another name
  const way = (id, icon, said, act) => html`<${Action} id=${id} class="line plain" act=${act}><${Icon} name=${icon} size="s" /><span class="grow">${said}</span><//>`;
  return html`<div class="rows">
    ${way("save-text", "save", text.saveFile, () => saveAs(new Blob([words()], { type: "text/markdown" }), name))}
    ${way("print-text", "print", text.printText, () => print(title, words()))}
    ${mayWrite && way("keep-text", "file", text.keepText, async () => {
      await api.addFile({ branch, name, content: new Blob([words()]) });
      tell(html`${text.textKept(name)} <a href=${addressOf(branch, "files")}>${text.panels.files}</a>`);
    })}</div>`;
}

/** The editor holds the lines that are in view alone, so what is printed is drawn beside the page. */
function print(title, words) {
  const place = document.createElement("article");
  place.id = "printed";
  place.className = "said";
  document.body.append(place);
  render(html`<h1>${title}</h1><${Markdown} source=${words} tab=${-1} bounds="alone" />`, place);
  addEventListener("afterprint", () => place.remove(), { once: true }); // on a phone print() returns before the page is drawn
  window.print();
}
