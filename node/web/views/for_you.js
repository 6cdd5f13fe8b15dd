// For you: who mentions you, who asks to be let in, and what is offered, of all repos in one list.

import { Face, Icon } from "../parts/face.js";
import { Empty, Loaded, useLoaded } from "../parts/form.js";
import { ID_SHOWN, when, whenExactly } from "../parts/format.js";
import { html } from "../parts/html.js";
import { Markdown } from "../parts/markdown.js";
import { addressOf, go, may, placeOf, repos } from "../state/node.js";
import { news } from "../state/news.js";
import { actions, api } from "../state/session.js";
import { showInTimeline } from "../state/timeline.js";
import { text } from "../strings/text.js";
import { computed } from "../vendor/signals.js";
import { writeAbout } from "./compose.js";

const OFFERS = 20; // of each repo that are looked at
const MENTIONS_MAX = 50; // branches whose latest mention is shown

/** Whether news are of a repo of one's own. A branch that somebody offers repeats what was written before. */
function isOfRepo({ branch }) {
  return Boolean(placeOf(branch)?.repo.whole);
}

/** How many things wait for this user: what the badge says. */
export const waiting = computed(() => {
  const mentions = [...news.value.values()].filter(isOfRepo).reduce((sum, one) => sum + one.mentions, 0);
  const seesRequests = actions.value.includes("node");
  return (repos.value ?? []).reduce((sum, repo) => sum + (seesRequests ? repo.requests : 0) + (may(repo, "admin") ? repo.offers : 0), mentions);
});

export function ForYou() {
  const marks = [...news.value.values()].filter((one) => one.latest_mention && isOfRepo(one));
  const loaded = useLoaded(async () => (await Promise.all([mentions(marks), requests(), offers()])).flat().sort((a, b) => b.time - a.time),
    [marks.map((one) => one.latest_mention.commit), waiting.value]);
  return html`<${Loaded} of=${loaded}>${(items) => html`
    ${!items.length && html`<${Empty}><p>${text.nothingForYou}</p><//>`}
    <ul class="for-you" id="for-you">${items.map((item) => html`<${Row} key=${item.key} item=${item} />`)}</ul>`}<//>`;
}

function Row({ item }) {
  const { id, name, said, time, body, address, label } = item;
  const show = () => body && showInTimeline(item.branch, item.commit);
  const answer = () => {
    go(item.branch);
    writeAbout("reply", body);
  };
  return html`<li class="for"><${Face} id=${id} name=${name} /><div class="grow">
    <p class="by"><b class="who"><bdi>${name || id.slice(0, ID_SHOWN)}</bdi></b> <span class="facts">${said}</span> ${time > 0 && html`<time class="facts" datetime=${whenExactly(time)}>${when(time)}</time>`}</p>
    ${body && html`<div class="said" dir="auto"><${Markdown} source=${body.text} tab=${0} mentions=${body.mentions} /></div>`}
    <p class="buttons"><a class="button" href=${address} onClick=${show}>${label}</a>
      ${body && may(placeOf(item.branch).repo, "write") && html`<button type="button" class="quiet answer" onClick=${answer}><${Icon} name="reply" size="s" />${text.reply}</button>`}</p></div></li>`;
}

async function mentions(marks) {
  const shown = marks.slice(0, MENTIONS_MAX);
  return Promise.all(shown.map(async ({ branch, latest_mention: { commit, author, author_name: name } }) => {
    const { repo, branch: own } = placeOf(branch);
    const body = await api.showCommit({ commit });
    return { key: commit, id: author, name, said: text.mentionsIn(`${repo.name} / ${own.name}`), time: body.time, body: body.text ? body : null, branch, commit, address: addressOf(branch), label: text.goThere };
  }));
}

async function requests() {
  if (!actions.value.includes("node") || !repos.value?.some((one) => one.requests)) return [];
  const found = (await api.listAllRequests()).requests.filter((one) => one.status === "waiting");
  return found.map((one) => ({ key: one.request, id: one.user, name: one.name, said: text.asksInto(one.repo_name), time: one.asked_at, address: addressOf(one.repo, "members"), label: text.compareWords }));
}

async function offers() {
  const open = (repos.value ?? []).filter((one) => one.offers && may(one, "admin"));
  const lists = await Promise.all(open.map(async (repo) => (await api.listOffers({ repo: repo.repo, status: "open", limit: OFFERS })).offers.map((one) => ({ repo, one }))));
  return lists.flat().map(({ repo, one }) => ({
    key: one.offer, id: one.author, name: one.author_name, said: text.offersTo(one.kind, repo.name), time: 0, body: null,
    address: addressOf(one.branch, "inbox"), label: text.lookAtIt,
  }));
}
