// What one person wrote in a branch, the latest first: the timeline is looked through from its end, as far back as one asks.

import { Action, Empty, Loaded, useLoaded } from "../parts/form.js";
import { when, whenExactly, withNames } from "../parts/format.js";
import { filesOf } from "../parts/groups.js";
import { html } from "../parts/html.js";
import { addressOf, go, personOf } from "../state/node.js";
import { api } from "../state/session.js";
import { showInTimeline } from "../state/timeline.js";
import { text } from "../strings/opened.js";
import { useState } from "../vendor/preact-hooks.js";
import { isPost } from "./post_actions.js";

const WINDOW = 500; // rows that are asked for at once
const WINDOWS = 4; // that are looked through before one is asked whether to look further back
const FOUND = 50; // posts after which one is asked, too

export function PostsBy({ branch, argument }) {
  const id = branch.branch;
  const first = useLoaded(() => look(id, argument), [id, argument], true);
  const [further, setFurther] = useState([]); // what was found further back
  return html`<${Loaded} of=${first}>${(latest) => {
    const all = [latest, ...further];
    const items = all.flatMap((one) => one.items);
    const { before, reached } = all.at(-1);
    return html`${!items.length && html`<${Empty}><p>${before ? text.noPostsSince(when(reached)) : text.noPostsBy}</p><//>`}
      <ul id="posts-by" class="rows hits-found">${items.map((item) => html`<li key=${item.commit}><${Written} item=${item} branch=${id} /></li>`)}</ul>
      ${before && html`<p class="buttons"><${Action} id="further-back" act=${async () => {
        const found = await look(id, argument, before);
        setFurther((known) => [...known, found]);
      }}>${text.furtherBack}<//></p>`}`;
  }}<//>`;
}

/** The posts of a person in the last windows before a commit or the end, where to go on, and how far back that is. */
async function look(branch, user, from = "") {
  const items = [];
  let [before, reached] = [from, 0];
  for (let turn = 0; turn < WINDOWS && items.length < FOUND; turn += 1) {
    const window = await api.showTimeline({ branch, order: "time", limit: WINDOW, ...(before && { before }) });
    items.push(...window.items.filter((item) => isBy(item, user)).reverse());
    before = window.previous ?? "";
    reached = window.items[0]?.time ?? reached;
    if (!before) break;
  }
  return { items, before, reached };
}

/** Whether a row is a post of a person that can be read. What an importer says of an author is no word of a member's. */
function isBy(item, user) {
  if (!isPost(item) || item.imported_author || item.deleted || item.hidden_by) return false;
  const { author, person = author } = item.origin ?? item;
  return personOf(person) === personOf(user);
}

function Written({ item, branch }) {
  const open = (event) => {
    event.preventDefault();
    go(branch);
    showInTimeline(branch, item.commit);
  };
  const files = filesOf({ item }, []).map((one) => one.name);
  return html`<a class="hit" href=${addressOf(branch, "commit", item.commit)} onClick=${open}><span class="grow">
    <span class="facts" title=${whenExactly(item.time)}>${when(item.time)}</span><span class="said" dir="auto">${withNames(item) || files.join(", ")}</span></span></a>`;
}
