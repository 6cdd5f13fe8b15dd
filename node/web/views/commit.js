// One commit: all that it says, why it counts or does not, and what one can do with it.

import { Face } from "../parts/face.js";
import { Action, Form, Loaded, useLoaded } from "../parts/form.js";
import { clock, short, nameIn, when, whenExactly, whoOf } from "../parts/format.js";
import { filesOf } from "../parts/groups.js";
import { html } from "../parts/html.js";
import { Markdown } from "../parts/markdown.js";
import { Lanes, layOut, widthOf } from "../parts/tangle.js";
import { addressOf, beside, chosenBranch, go, may, memberOf, members, refresh } from "../state/node.js";
import { api, tell } from "../state/session.js";
import { text } from "../strings/text.js";
import { Attachments } from "./attachments.js";
import { PostActions, Relation, Story, isPost } from "./post_actions.js";
import { What } from "./post_row.js";
import { shown } from "./timeline.js";

const ACKS_SHOWN = 20;
const AROUND = 5; // commits before and after one, whose tangle is drawn with it

export function Commit({ repo, branch, argument }) {
  const loaded = useLoaded(() => api.showCommit({ commit: argument }), [argument]);
  return html`<${Loaded} of=${loaded} lines=${5}>${(commit) => html`<${Whole} repo=${repo} branch=${branch} commit=${commit} again=${loaded.again} />`}<//>`;
}

function Whole({ repo, branch, commit, again }) {
  const names = new Map((members.value ?? []).map((one) => [one.user, one.name]));
  const isKnown = Boolean(commit.author && commit.kind);
  const isVoid = commit.verdict === "void";
  const who = isKnown ? whoOf(commit, names) : "";
  const files = isKnown ? filesOf({ item: commit }, [{ item: commit }]) : [];
  return html`
    ${isKnown && html`<div class="part"><${Relation} item=${commit} branch=${commit.branch} tab=${0} />
      <div class="bubble"><${Face} id=${(commit.origin ?? commit).author} name=${isKnown ? nameIn(commit, names) : ""} size="s" /><div>
        <p class="by"><b><${Name} commit=${commit} who=${who} /></b> <span class="facts" title=${whenExactly(commit.time)}>${when(commit.time)}</span></p>
        <div class="said whole" dir="auto">${commit.text ? html`<${Markdown} source=${commit.text} tab=${0} bounds="alone" mentions=${commit.mentions} />` : html`<${What} item=${commit} branch=${commit.branch} tab=${0} />`}</div>
        ${files.length > 0 && html`<${Attachments} files=${files} branch=${commit.branch} tab=${0} />`}</div></div></div>`}
    <div class="part"><h3>${text.why}</h3>
      <p id="verdict" class=${commit.verdict === "accepted" ? "good" : "alarm"}><strong>${text.verdicts[commit.verdict] ?? commit.verdict}</strong></p>
      <p class="facts">${text.sentence(commit.reason)}</p>
      ${isVoid && may(repo, "admin") && html`<p>${text.adoptAbout}</p><${Action} id="adopt" class="main" act=${async () => {
        await api.adoptCommits({ branch: commit.branch, commits: [commit.commit] });
        await again();
        tell(text.adopted);
      }}>${text.adopt}<//>`}</div>
    ${isKnown && isPost(commit) && html`<div class="part"><${Story} commit=${commit} branch=${branch} /></div>`}
    ${isKnown && html`<div class="part"><h3>${text.canDo}</h3>
      ${!isVoid && html`<${PostActions} item=${commit} repo=${repo} again=${async (id) => {
        await again();
        await shown.value?.renew(id);
      }} />`}
      ${may(repo, "manage") && html`
      <details class="fold"><summary>${text.nameCommit}</summary>
        <${Form} id="tag" class="form inline" button=${text.save_} send=${async ({ name }) => {
          await api.setTag({ repo: repo.repo, name: name.trim(), commit: commit.commit });
          tell(text.named(name.trim()));
        }}><label>${text.tag} <input name="name" type="text" required maxlength="255" autocomplete="off" /></label><//></details>
      <details class="fold"><summary>${text.forkHere}</summary>
        <${Form} class="form inline" button=${text.fork} send=${({ name }) => fork(branch, name, commit.commit)}>
          <label>${text.nameOfBranch} <input name="name" type="text" required maxlength="255" autocomplete="off" /></label><//></details>`}</div>`}
    <details class="fold" id="experts"><summary>${text.forExperts}</summary>
      ${isKnown && html`<${Tangle} commit=${commit.commit} names=${names} />`}
      <dl class="pairs">
        <dt>${text.id}</dt><dd class="mono id">${commit.commit}</dd>
        ${commit.by?.length > 0 && html`<dt>${text.decidedBy}</dt><dd>${links(commit.by, branch)}</dd>`}
        ${isKnown && html`<dt>${text.author}</dt><dd class="mono id">${commit.author}</dd>
          <dt>${text.kind}</dt><dd>${commit.kind}</dd>
          <dt>${text.rank}</dt><dd>${commit.rank}</dd>
          <dt>${text.follows}</dt><dd>${commit.acks.length ? links(commit.acks, branch) : text.nothing}</dd>`}
      </dl></details>`;
}

/** The author's name, which leads to the person where that is a member. */
function Name({ commit, who }) {
  const { author } = commit.origin ?? commit;
  const isMember = !commit.imported_author && memberOf(author);
  return isMember ? html`<a class="person" href=${beside("person", author)}><bdi>${who}</bdi></a>` : html`<span class="person"><bdi>${who}</bdi></span>`;
}

/** How a commit came together with those around it, as far as these are loaded: the newest above. */
function Tangle({ commit, names }) {
  const rows = shown.value?.rows.value ?? [];
  const at = rows.findIndex(({ item }) => item.commit === commit);
  if (at < 0) return null;
  const around = rows.slice(Math.max(at - AROUND, 0), at + AROUND + 1);
  const drawings = layOut(around.map(({ item }) => item));
  const width = widthOf(drawings);
  return html`<h3>${text.tangle}</h3><ol class="tangle" reversed>${around.map(({ item }, index) => html`<li key=${item.commit} class=${drawings[index].isHead ? "head" : ""} aria-current=${item.commit === commit ? "true" : undefined}>
    <${Lanes} drawing=${drawings[index]} width=${width} /><a class="cut" href=${addressOf(chosenBranch.value, "commit", item.commit)}>${whoOf(item, names)}, ${clock(item.time)}</a></li>`)}</ol>`;
}

function links(commits, branch) {
  const named = commits.slice(0, ACKS_SHOWN);
  return html`${named.map((id, index) => html`${index ? ", " : ""}<a class="id" href=${addressOf(branch.branch, "commit", id)}>${short(id)}</a>`)}
    ${commits.length > named.length ? ` ${text.andMore(commits.length - named.length)}` : ""}`;
}

/** A fork, of the whole branch or of what was known at a commit. */
export async function fork(branch, name, commit) {
  const made = await api.forkBranch({ branch: branch.branch, name: name.trim(), ...(commit && { commit }) });
  await refresh();
  go(made.branch);
  tell(text.forked(made.name));
}
