// A thread beside the posts: the first one and its replies, with the way to answer there.

import { Face, Icon } from "../parts/face.js";
import { Loaded, useLoaded } from "../parts/form.js";
import { nameIn, when, whoOf } from "../parts/format.js";
import { filesOf } from "../parts/groups.js";
import { html } from "../parts/html.js";
import { Markdown } from "../parts/markdown.js";
import { addressOf, go, may, members } from "../state/node.js";
import { api } from "../state/session.js";
import { text } from "../strings/text.js";
import { Attachments } from "./attachments.js";
import { writeAbout } from "./compose.js";
import { goneNote, isPost } from "./post_actions.js";

const THREAD = 200; // replies that are shown

/** `argument`: any post of the thread. */
export function Thread({ repo, branch, argument }) {
  const loaded = useLoaded(() => api.showThread({ commit: argument, limit: THREAD }), [argument]);
  const names = new Map((members.value ?? []).map((one) => [one.user, one.name]));
  const answer = (item) => () => {
    go(branch.branch);
    writeAbout("reply", item);
  };
  return html`<${Loaded} of=${loaded}>${({ items }) => {
    const last = items.findLast((item) => isPost(item) && !item.deleted && !item.hidden_by);
    return html`<ol class="plain" id="thread">${items.map((item) => html`<li class="post" key=${item.commit}>
      <${Face} id=${item.origin?.author ?? item.author} name=${nameIn(item, names)} />
      <div><p class="by"><b class="who"><bdi>${whoOf(item, names)}</bdi></b> <a class="when" href=${addressOf(branch.branch, "commit", item.commit)}>${when(item.time)}</a></p>
        <div class="said" dir="auto">${item.text ? html`<${Markdown} source=${item.text} tab=${0} mentions=${item.mentions} />` : (goneNote(item) ?? item.kind)}</div>
        ${item.attachments?.some(({ files }) => files.length) && html`<${Attachments} files=${filesOf({ item }, [])} branch=${branch.branch} tab=${0} />`}</div></li>`)}</ol>
      ${may(repo, "write") && last && html`<p class="buttons"><button type="button" id="answer-thread" onClick=${answer(last)}><${Icon} name="reply" size="s" />${text.answerThread}</button></p>`}`;
  }}<//>`;
}

/** Under a post that was answered: who did, how often, and who last. */
export function ThreadLine({ count, last, people, isMore, branch, first, tab }) {
  const names = new Map((members.value ?? []).map((one) => [one.user, one.name]));
  return html`<a class="thread" href=${addressOf(branch, "thread", first)} tabindex=${tab}>
    <span class="stack">${people.map((one) => html`<${Face} key=${one.id} id=${one.id} name=${names.get(one.id) || one.name} size="xs" />`)}</span>
    <span>${text.replies(count, isMore)}</span><span class="facts cut">${text.lastReply(whoOf(last, names), when(last.time))}</span></a>`;
}
