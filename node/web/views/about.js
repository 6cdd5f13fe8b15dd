// A branch and its repo: how they stand with others, links for readers, a fork of one's own, and the way out.

import { Icon } from "../parts/face.js";
import { Action, Form, LinkBox, ask, describeLink, useLoaded } from "../parts/form.js";
import { namesOf } from "../parts/format.js";
import { html } from "../parts/html.js";
import { INVITE, addressOf, go, may, members, refresh } from "../state/node.js";
import { actions, api, tell } from "../state/session.js";
import { text } from "../strings/text.js";
import { useState } from "../vendor/preact-hooks.js";
import { Holders } from "./holders.js";
import { Standing, isOnlyYou, isPassedOn } from "./standing.js";

const LISTED = ["in_sync", "held", "requests"]; // parts of a standing that stand below, or with the people
const MARKS_SHOWN = 5; // the others stand with the branches

export function About({ repo, branch }) {
  const isMember = may(repo, "read") && members.value?.length > 0;
  const marks = useLoaded(async () => (repo.whole ? (await api.listTags({ repo: repo.repo })).tags : []), [repo.repo]).data ?? [];
  const told = { ...repo.standing, parts: repo.standing.parts.filter(({ code }) => !actions.value.includes("node") || !LISTED.includes(code)) };
  const way = (name, icon, said, argument = "") => html`<a class="line plain" href=${addressOf(branch?.branch ?? repo.repo, name, argument)}><${Icon} name=${icon} size="s" /><span class="grow">${said}</span></a>`;
  return html`
    <div class="part"><h3>${text.whoHasWhat}</h3>
      ${isOnlyYou(repo) ? html`<p>${text.onlyYou}</p>` : told.parts.length > 0 && html`<p class=${["former", "cut_off", "damaged"].includes(repo.standing.state) && !isPassedOn(repo) ? "error" : ""}><${Standing} of=${told} /></p>`}
      ${repo.standing.own_forks > 0 && html`<p class="alarm">${text.ownForks(repo.standing.own_forks)}</p>`}
      <${Holders} repo=${repo} />
      ${!isOnlyYou(repo) && html`<p class="facts">${text.knownFrom}</p>`}</div>
    ${marks.length > 0 && html`<div class="part"><h3>${text.tags}</h3><div class="rows">${marks.slice(0, MARKS_SHOWN).map((one) => html`<a class="line plain" key=${one.name} href=${addressOf(one.branch, "commit", one.commit)}>
      <${Icon} name="tag" size="s" /><bdi class="grow cut">${one.name}</bdi></a>`)}</div></div>`}
    <div class="part"><h3>${text.canDo}</h3><div class="rows">
      ${may(repo, "admin") && way("members", "invite", text.inviteSomebody, INVITE)}
      ${way("branches", "split", text.panels.branches)}
      ${repo.whole && way("quorum", "check", text.panels.quorum)}</div>
    ${may(repo, "admin") && branch && html`<${Reading} about=${text.readBranch(branch.name)} make=${() => api.shareBranch({ branch: branch.branch })} />`}
    ${may(repo, "admin") && html`<details><summary>${text.renewRepo}</summary>
      <p>${text.renewRepoAbout}</p>
      <${Action} id="renew-repo" question=${text.renewRepoQuestion(repo.name)} act=${async () => {
        await api.startEpoch({ repo: repo.repo });
        tell(text.renewed(repo.name));
      }}>${text.renew}<//></details>`}
    <details><summary>${text.forkRepo}</summary>
      <p>${text.forkRepoAbout}</p>
      <${Form} id="fork-repo" button=${text.fork} send=${async ({ name }) => {
        const made = await api.forkRepo({ repo: repo.repo, name });
        await refresh();
        go(made.branches[0]?.branch ?? made.repo);
        const left = made.files_left.length ? ` ${text.filesNotForked(namesOf([...new Set(made.files_left)]))}` : "";
        tell(text.forked(made.name) + left);
      }}><label>${text.nameOfRepo} <input name="name" required maxlength="255" autocomplete="off" /></label><//>
    </details>
    ${isMember && html`<details><summary>${text.leaveTitle}</summary>
      <p>${text.leaveAbout}</p>
      <${Action} class="danger" question=${text.leaveQuestion(repo.name)} act=${async () => {
        const { other_devices: others } = await api.leaveRepo({ repo: repo.repo });
        await refresh();
        tell(text.left(repo.name) + text.staying(others.length));
      }}>${text.leave}<//></details>`}
    <details><summary>${text.forgetTitle}</summary>
      <p>${text.forgetAbout}</p>
      <${Action} class="danger" question=${text.forgetQuestion(repo.name)} act=${() => forget(repo)}>${text.forget}<//>
    </details></div>
    <details class="fold" id="experts"><summary>${text.forExperts}</summary><dl class="pairs">
      <dt>${text.permission}</dt><dd>${text.permissions[repo.permission] ?? repo.permission}</dd>
      <dt>${text.commitsTitle}</dt><dd>${repo.commits}</dd>
      ${branch && html`<dt>${text.ofBranch}</dt><dd id="branch-facts">${factsOf(branch)}</dd>`}
      <dt>${text.id}</dt><dd class="mono id">${repo.repo}</dd>
    </dl></details>`;
}

function factsOf(branch) {
  const facts = [text.commits(branch.commits), text.heads(branch.head_count)];
  for (const name of ["pending", "void", "rejected"]) if (branch[name]) facts.push(text.state[name](branch[name]));
  return facts.join(" · ");
}

/** Deletes a repo here; where that may be its last copy, after a second question. */
async function forget(repo) {
  try {
    await api.forgetRepo({ repo: repo.repo });
  } catch (error) {
    if (error.code !== "last_copy") throw error;
    if (!(await ask(text.lastCopyQuestion(text.sentence(text.errors.said(error.code, error.message))), text.forget))) return;
    await api.forgetRepo({ repo: repo.repo, accept_loss: true });
  }
  await refresh();
  location.hash = "#/";
  tell(text.forgotten(repo.name));
}

/** A link with which anybody reads. */
function Reading({ about, make }) {
  const [made, setMade] = useState(null);
  return html`<details><summary>${about}</summary>
    <p>${text.readLinkWarning}</p>
    <${Action} act=${async () => setMade(await describeLink(await make(), "capability"))}>${text.makeLink}<//>
    ${made && html`<${LinkBox} ...${made} about=${text.readLinkAbout} />`}
  </details>`;
}
