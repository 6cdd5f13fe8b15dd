// What others offer to a branch, comments on it, and offers that one makes.

import { Face, Icon } from "../parts/face.js";
import { Action, Empty, Form, Loaded, useLoaded } from "../parts/form.js";
import { namesOf, short, when, whoOf } from "../parts/format.js";
import { html } from "../parts/html.js";
import { Markdown } from "../parts/markdown.js";
import { may, members, personOf, repos, status } from "../state/node.js";
import { api, tell } from "../state/session.js";
import { text } from "../strings/opened.js";
import { useState } from "../vendor/preact-hooks.js";
import { tellMerge } from "./branches.js";

const COMMENTS = 100;
const ICONS = { text: "text", set: "list", dict: "sheet" };
const SIGNS = { added: "+", removed: "−" };
const CLASSES = { added: "in", removed: "out", skipped: "skip-line" };

export function Inbox({ repo, branch }) {
  return repo.whole ? html`<${Whole} repo=${repo} branch=${branch} />` : html`<${Followed} repo=${repo} branch=${branch.branch} />`;
}

/** What somebody reads who has the branch by a link alone. */
function Followed({ repo, branch }) {
  const comments = useLoaded(() => api.listComments({ branch, limit: COMMENTS }), [branch]);
  return html`<${Said} comments=${comments} names=${new Map()} repo=${repo} branch=${branch} /><p class="facts">${text.noInbox}</p>`;
}

function Said({ comments, names, repo, branch, answer, again }) {
  return html`<${Loaded} of=${comments} lines=${2}>${({ items }) => html`
    ${!items.length && html`<p class="facts">${text.noComments}</p>`}
    <ul class="plain" id="comments">${items.map((item) => html`<${Comment} key=${item.commit} item=${item} names=${names} repo=${repo} branch=${branch} answer=${answer} again=${again} />`)}</ul>`}<//>`;
}

function Whole({ repo, branch }) {
  const id = branch.branch;
  const [answered, setAnswered] = useState(null);
  const offers = useLoaded(() => api.listOffers({ repo: repo.repo }), [repo.repo]);
  const comments = useLoaded(() => api.listComments({ branch: id, limit: COMMENTS }), [id]);
  const names = new Map((members.value ?? []).map((one) => [one.user, one.name]));
  const again = () => Promise.all([offers.again(), comments.again()]);
  return html`
    <${Loaded} of=${offers} lines=${2}>${({ offers: all }) =>
      all.length
        ? html`<ul class="plain" id="offers">${[...all].sort(byTurn).map((one) => html`<${Offer} key=${one.offer} offer=${one} repo=${repo} again=${again} />`)}</ul>`
        : html`<${Empty}><${Icon} name="merge" size="l" /><p>${text.noOffers}</p><//>`}<//>
    <h3>${text.comments}</h3>
    <${Said} comments=${comments} names=${names} repo=${repo} branch=${id} answer=${setAnswered} again=${again} />
    ${answered && html`<p class="facts"><q dir="auto">${answered.text}</q> <button type="button" onClick=${() => setAnswered(null)}>${text.cancel}</button></p>`}
    <${Form} id="comment" button=${text.comment} send=${async ({ said }) => {
      const done = await api.writeComment({ branch: id, text: said, answers: answered?.commit ?? "" });
      setAnswered(null);
      const accepts = done.status === "open" && may(repo, "admin"); // who may accept it has nobody to wait for
      if (accepts) await api.answerOffer({ repo: repo.repo, offer: done.offer, accepts });
      await again();
      if (done.status === "open" && !accepts) tell(text.commentWaits);
    }}><label>${text.commentOn(branch.name)} <textarea name="said" rows="2" required maxlength="900"></textarea></label><//>
    <${MakeOffer} repo=${repo} branch=${branch} again=${again} />`;
}

/** One comment, as who accepted it has read it. */
function Comment({ item, names, repo, branch, answer, again }) {
  const remove = async () => {
    await api.answerOffer({ repo: repo.repo, offer: item.offer, accepts: false });
    await again();
  };
  const erase = async () => {
    await api.deleteComment({ branch, comment: item.commit });
    await again();
  };
  return html`<li>
    <p class="by"><bdi class="who">${whoOf(item, names)}</bdi> <span class="facts">${when(item.time)}</span></p>
    ${item.quote && html`<blockquote dir="auto">${item.quote}</blockquote>`}
    <div class="said">${item.text ? html`<${Markdown} source=${item.text} tab=${0} />` : item.kind}</div>
    ${item.text && answer && html`<p class="buttons"><button type="button" onClick=${() => answer(item)}>${text.reply}</button>
      ${item.author === status.value?.user && html`<${Action} act=${erase}>${text.delete}<//>`}
      ${may(repo, "admin") && html`<${Action} act=${remove}>${text.remove}<//>`}</p>`}</li>`;
}

function postsFirst(one, other) {
  return (other.kind === "post") - (one.kind === "post");
}

/** What waits for an answer stands first, in the order in which it came. */
function byTurn(one, other) {
  return (other.status === "open") - (one.status === "open");
}

function Offer({ offer, repo, again }) {
  const branch = repo.branches.find((one) => one.branch === offer.branch);
  const [isFetched, setFetched] = useState(false);
  const isDue = may(repo, "admin") && offer.status === "open";
  const fetch = async () => {
    await api.fetchOffer({ repo: repo.repo, offer: offer.offer });
    setFetched(true);
  };
  const answer = (accepts) => async () => {
    await api.answerOffer({ repo: repo.repo, offer: offer.offer, accepts });
    await again();
  };
  return html`<li class="for"><${Face} id=${offer.author} name=${offer.author_name} /><div class="grow">
    <p><bdi class="who">${offer.author_name || offer.author.slice(0, 12)}</bdi> ${text.offered[offer.kind] ?? offer.kind} <bdi>${branch?.name ?? ""}</bdi>${" "}
      <span class=${offer.status === "open" ? "tag new" : "tag"}>${text.offerStates[offer.status]}</span></p>
    ${offer.note && html`<p dir="auto">${offer.note}</p>`}
    ${!offer.readable && html`<p class="alarm">${text.offerUnknown}</p>`}
    ${isDue && offer.kind === "pull" && !offer.commits && (isFetched ? html`<p class="facts">${text.offerComes}</p>` : html`<p class="facts">${text.lookAbout}</p>`)}
    ${isDue && offer.kind === "pull" && offer.commits > 0 && html`<${Look} offer=${offer} repo=${repo} again=${again} />`}
    ${isDue && html`<p class="buttons">${offer.kind === "pull" && !offer.commits && !isFetched && html`<${Action} class="main look" act=${fetch}>${text.lookFirst}<//>`}
      <${Action} class=${offer.kind === "pull" && !offer.commits ? "" : "main"} act=${answer(true)}>${text.accept}<//><${Action} act=${answer(false)}>${text.refuse}<//></p>`}
    ${may(repo, "write") && offer.kind === "pull" && offer.status === "accepted" && (offer.merged ? html`<p class="facts">${text.offerMerged}</p>` : !offer.commits ? html`<p class="facts">${text.offerComes}</p>`
      : html`<${Look} offer=${offer} repo=${repo} again=${again} refuse=${may(repo, "admin") ? answer(false) : null} />`)}
  </div></li>`;
}

/** What an offer would bring, before it is accepted or merged. */
function Look({ offer, repo, again, refuse }) {
  const loaded = useLoaded(() => api.previewOffer({ repo: repo.repo, offer: offer.offer }), [offer.offer, offer.commits]);
  const merge = async () => {
    const done = await api.mergeOffer({ repo: repo.repo, offer: offer.offer });
    await again();
    tellMerge(done);
  };
  const branch = repo.branches.find((one) => one.branch === offer.branch);
  return html`<${Loaded} of=${loaded} lines=${2}>${({ carried, kinds, authors, posts, documents, left, files_left: files }) => {
    const count = kinds.find(({ kind }) => kind === "post")?.count ?? 0;
    return html`<div class="link-box look-at" data-offer=${offer.offer}>
      <ul class="counts">${[...kinds].sort(postsFirst).map(({ kind, count: number }) => html`<li><b>${number}</b><span class="facts">${text.offeredKinds[kind]?.[number === 1 ? 0 : 1] ?? text.kinds[kind] ?? kind}</span></li>`)}</ul>
      ${authors.some(({ author }) => personOf(author) !== personOf(offer.author)) && html`<p class="facts">${text.offeredBy(authors.map((one) => one.author_name || short(one.author)))}</p>`}
      <ol class="posts-offered">${posts.map((one) => html`<li class="for"><${Face} id=${one.author} name=${one.author_name} size="s" /><div class="grow">
        <p class="by"><b class="who"><bdi>${one.author_name || short(one.author)}</bdi></b> <span class="facts">${when(one.time)}</span></p>
        <div class="said" dir="auto"><${Markdown} source=${one.text} tab=${0} /></div></div></li>`)}</ol>
      ${count > posts.length && html`<p class="facts">${text.andMore(count - posts.length)}</p>`}
      ${documents.map((one) => html`<${Difference} key=${`${one.kind} ${one.name}`} of=${one} />`)}
      ${left > 0 && html`<p class="note-box warn"><${Icon} name="info" />${text.cannotCome(left)}</p>`}
      ${files.length > 0 && html`<p class="note-box warn"><${Icon} name="info" />${text.filesLeft(namesOf(files))}</p>`}
      ${offer.status === "accepted" && html`<p class="facts">${text.mergeAbout(branch?.name ?? "")}</p>
        <p class="buttons"><${Action} class="main merge" act=${merge}>${carried ? text.mergeThem(count, carried - count) : text.merge}<//>
        ${refuse && html`<${Action} act=${refuse}>${text.refuse}<//>`}</p>`}</div>`;
  }}<//>`;
}

/** What a list, a table or a text would gain and lose, line by line. */
function Difference({ of: { kind, name, title, added, removed, lines } }) {
  const known = lines.filter(({ change }) => change in SIGNS).length;
  return html`<section class="sect"><header><h3><bdi>${title || (name.startsWith(".") && text.offeredNames[name]) || (kind === "text" ? text.mainText : text.panels[kind])}</bdi></h3>
      <span class="tag"><${Icon} name=${ICONS[kind]} size="s" />${text.gained(added, removed)}</span></header>
    <div class="diff" dir="auto">${lines.map(({ change, text: said }) => html`<div class=${CLASSES[change]}>
      <span aria-hidden="true">${SIGNS[change] ?? (change === "skipped" ? "…" : "")}</span><span>${change in SIGNS && html`<span class="unseen">${text.gainedOne[change]}: </span>`}${said}</span></div>`)}</div>
    ${added + removed > known && html`<p class="facts">${text.andMore(added + removed - known)}</p>`}</section>`;
}

/** Between this branch and one of another repo: commits of this one for that, or of that one for this. */
function MakeOffer({ repo, branch, again }) {
  const isMember = (one) => one.whole && may(one, "read");
  const others = repos.value
    .filter((one) => one !== repo && isMember(one))
    .flatMap((one) => one.branches.filter(({ archived }) => !archived).map(({ branch: id, name }) => ({ id, name: `${one.name} : ${name}` })));
  if (!others.length || !isMember(repo)) return null;
  const offer = (target, source) => async ({ other, note }) => {
    await api.makeOffer({ branch: target ?? other, source: source ?? other, note, pulls: true });
    await again();
    tell(text.offerMade);
  };
  const form = (id, label, send) => html`<${Form} id=${id} button=${text.offer} send=${send}>
    <label>${label} <select name="other">${others.map((one) => html`<option value=${one.id}>${one.name}</option>`)}</select></label>
    <label>${text.note} <input name="note" maxlength="1000" autocomplete="off" /></label><//>`;
  return html`
    ${may(repo, "owner") && html`<details><summary>${text.offerThis(branch.name)}</summary>
      <p>${text.offerThisAbout(branch.name)}</p>
      ${form("offer-this", text.offerTo, offer(null, branch.branch))}</details>`}
    <details><summary>${text.makeOffer}</summary>
      <p>${text.makeOfferAbout(branch.name)}</p>
      ${form("make-offer", text.from, offer(branch.branch, null))}</details>`;
}
