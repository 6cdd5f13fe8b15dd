// The list: repos with their branches, what one can add, and the node's own pages.

import { Empty, Skeleton } from "../parts/form.js";
import { html } from "../parts/html.js";
import { addressOf, beside, chosenBranch, chosenRepo, hasPanel, repos, route, status } from "../state/node.js";
import { news } from "../state/news.js";
import { actions } from "../state/session.js";
import { text } from "../strings/en.js";

const NODE_PANELS = ["peers", "relay", "people", "devices", "browsers", "settings", "tokens", "backup", "health", "report", "storage", "log"];

export function ListView() {
  return html`<nav id="repos" aria-label=${text.reposAndBranches}>
    <ul class="links"><li><${Link} panel="search" text=${text.panels.search} /></li></ul>
    <${Amiss} />
    <${Repos} />
    ${actions.value.includes("admin") && html`<ul class="links add">
      <li><${Link} panel="new" text=${text.panels.new} /></li>
      <li><${Link} panel="join" text=${text.panels.join} /></li>
    </ul>`}
    ${actions.value.includes("node") && html`<h2>${text.thisNode}</h2>
    <ul class="links">${NODE_PANELS.filter(hasPanel).map((name) => html`<li><${Link} panel=${name} text=${text.panels[name]} /></li>`)}</ul>`}
  </nav>`;
}

/** What is wrong with the whole node, whatever its repos say: it may store nothing, or another node has its key. */
function Amiss() {
  const { faults = [], key_use: use } = status.value ?? {};
  const said = [...faults.map(text.fault), ...(use?.displaced_at ? [text.displaced] : [])];
  return said.map((one) => html`<p class="error amiss" role="alert">${one}</p>`);
}

function Link({ panel, text: shown }) {
  return html`<a href=${beside(panel)} aria-current=${route.value.panel === panel ? "page" : undefined}>${shown}</a>`;
}

function Repos() {
  if (!repos.value) return html`<${Skeleton} lines=${4} />`;
  if (!repos.value.length) {
    return html`<${Empty} id="empty"><p class="narrow">${text.welcomeAbout}</p><p>${text.noRepos}</p>
      <p><a class="button main" href=${beside("new")}>${text.panels.new}</a> <a class="button" href=${beside("join")}>${text.panels.join}</a></p><//>`;
  }
  return html`<ul class="repos">${repos.value.map(draw)}</ul>`;
}

const drawn = new WeakMap();

/** The same node for the same repo: Preact then passes over all repos but those that have changed. */
function draw(repo) {
  if (!drawn.has(repo)) drawn.set(repo, html`<${Repo} key=${repo.repo} repo=${repo} />`);
  return drawn.get(repo);
}

function Repo({ repo }) {
  const branches = repo.branches.filter((one) => !one.archived);
  const about = addressOf(branches[0]?.branch ?? repo.repo, branches.length ? "about" : "");
  return html`<li>
    <a class="repo" href=${about} aria-current=${repo.repo === chosenRepo.value ? "true" : undefined}><bdi>${repo.name}</bdi></a>
    <span class="facts">${text.permissions[repo.permission] ?? repo.permission} · ${text.commits(repo.commits)}</span>
    <span class=${`facts standing ${repo.standing.state}`}>${repo.standing.uncertain ? text.uncertain : (text.standing[repo.standing.state] ?? repo.standing.state)}</span>
    ${repo.requests > 0 && html`<a class="alarm" href=${addressOf(branches[0]?.branch ?? repo.repo, "members")}>${text.asking(repo.requests)}</a>`}
    ${repo.offers > 0 && html`<a class="alarm" href=${addressOf(branches[0]?.branch ?? repo.repo, "inbox")}>${text.offersWait(repo.offers)}</a>`}
    <ul>${branches.map((branch) => html`<li>
      <a class="branch" data-branch=${branch.branch} href=${addressOf(branch.branch)} aria-current=${branch.branch === chosenBranch.value ? "page" : undefined}>
        <bdi>${nameOf(branch)}</bdi> <${New} of=${news.value.get(branch.branch)} /> <span class="facts">${branch.commits}</span></a>
    </li>`)}</ul>
  </li>`;
}

/** How much of a branch is new. None, where the node has looked through as many commits as it does, and all were this user's. */
function New({ of }) {
  if (!of?.unseen) return null;
  return html`<span class=${of.mentions ? "badge mentioned" : "badge"} title=${of.mentions ? text.mentionsOf(of.mentions) : undefined}>${of.mentions ? "@ " : ""}${text.unreadCount(of.unseen, of.more)}<span class="unseen"> ${text.unreadWord}</span></span>`;
}

/** A branch of comments is called by the id of what they are about: the name of that says more. */
function nameOf(branch) {
  const id = /^on ([a-z2-7]{52})$/.exec(branch.name)?.[1];
  const about = id && repos.value.flatMap((repo) => repo.branches.map((one) => ({ repo, one }))).find(({ one }) => one.branch === id);
  return about ? text.commentsOn(about.repo.name, about.one.name) : branch.name;
}
