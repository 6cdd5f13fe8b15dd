// One commit: all that it says, why it counts or does not, and what one can do with it.

import { Action, Form, Loaded, useLoaded } from "../parts/form.js";
import { short, whenExactly, whoOf } from "../parts/format.js";
import { html } from "../parts/html.js";
import { Markdown } from "../parts/markdown.js";
import { addressOf, may, members } from "../state/node.js";
import { api, tell } from "../state/session.js";
import { text } from "../strings/en.js";
import { Attachments } from "./attachments.js";
import { fork } from "./branches.js";
import { PostActions, Relation, Story, isPost } from "./post_actions.js";
import { What, shown } from "./timeline.js";

const ACKS_SHOWN = 20;

export function Commit({ repo, branch, argument }) {
  const loaded = useLoaded(() => api.showCommit({ commit: argument }), [argument]);
  return html`<${Loaded} of=${loaded} lines=${5}>${(commit) => html`<${Whole} repo=${repo} branch=${branch} commit=${commit} again=${loaded.again} />`}<//>`;
}

function Whole({ repo, branch, commit, again }) {
  const names = new Map((members.value ?? []).map((one) => [one.user, one.name]));
  const isKnown = Boolean(commit.author && commit.kind);
  const isVoid = commit.verdict === "void";
  return html`
    ${isKnown && html`<${Relation} item=${commit} branch=${commit.branch} tab=${0} />
      <p><bdi class="person">${whoOf(commit, names)}</bdi> <span class="facts">${whenExactly(commit.time)}</span></p>
      <div class="said whole" dir="auto">${commit.text ? html`<${Markdown} source=${commit.text} tab=${0} bounds="alone" mentions=${commit.mentions} />` : html`<${What} item=${commit} branch=${commit.branch} tab=${0} />`}</div>
      ${commit.files?.length > 0 && html`<${Attachments} item=${commit} branch=${commit.branch} tab=${0} />`}`}
    ${isKnown && !isVoid && html`<${PostActions} item=${commit} repo=${repo} branch=${commit.branch} tab=${0} again=${async (id) => {
      await again();
      await shown.value?.renew(id);
    }} />`}
    ${isKnown && isPost(commit) && html`<${Story} commit=${commit} branch=${branch} names=${names} />`}
    <h3>${text.why}</h3>
    <p id="verdict" class=${commit.verdict === "accepted" ? "good" : "alarm"}><strong>${text.verdicts[commit.verdict] ?? commit.verdict}</strong></p>
    <p>${text.sentence(commit.reason)}</p>
    ${commit.by?.length > 0 && html`<p class="facts">${text.decidedBy} ${links(commit.by, branch)}</p>`}
    ${isVoid && may(repo, "admin") && html`<p>${text.adoptAbout}</p><${Action} id="adopt" act=${async () => {
      await api.adoptCommits({ branch: commit.branch, commits: [commit.commit] });
      await again();
      tell(text.adopted);
    }}>${text.adopt}<//>`}
    ${isKnown && may(repo, "manage") && html`
      <details><summary>${text.nameCommit}</summary>
        <${Form} id="tag" class="form inline" button=${text.save_} send=${async ({ name }) => {
          await api.setTag({ repo: repo.repo, name: name.trim(), commit: commit.commit });
          tell(text.named(name.trim()));
        }}><label>${text.tag} <input name="name" required maxlength="255" autocomplete="off" /></label><//></details>
      <details><summary>${text.forkHere}</summary>
        <${Form} class="form inline" button=${text.fork} send=${({ name }) => fork(branch, name, commit.commit)}>
          <label>${text.nameOfBranch} <input name="name" required maxlength="255" autocomplete="off" /></label><//></details>`}
    <h3>${text.facts}</h3>
    <dl>
      <dt>${text.id}</dt><dd class="id">${commit.commit}</dd>
      ${isKnown && html`<dt>${text.author}</dt><dd class="id">${commit.author}</dd>
        <dt>${text.kind}</dt><dd>${commit.kind}</dd>
        <dt>${text.rank}</dt><dd>${commit.rank}</dd>
        <dt>${text.follows}</dt><dd>${commit.acks.length ? links(commit.acks, branch) : text.nothing}</dd>`}
    </dl>`;
}

function links(commits, branch) {
  const shown = commits.slice(0, ACKS_SHOWN);
  return html`${shown.map((id, index) => html`${index ? ", " : ""}<a class="id" href=${addressOf(branch.branch, "commit", id)}>${short(id)}</a>`)}
    ${commits.length > shown.length ? ` ${text.andMore(commits.length - shown.length)}` : ""}`;
}
