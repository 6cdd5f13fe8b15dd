// Branches of a repo: create, fork, merge, rename, archive; and the tags that name commits.

import { Action, Empty, Form, Loaded, Tick, ask, useLoaded } from "../parts/form.js";
import { bytes, namesOf, when } from "../parts/format.js";
import { html } from "../parts/html.js";
import { addressOf, go, may, refresh } from "../state/node.js";
import { actions, api, attempt, tell } from "../state/session.js";
import { text } from "../strings/opened.js";
import { fork } from "./commit.js";
import { Import } from "./import.js";

const AGES = [365, 90, 30, 7]; // days of which posts may be kept

export function Branches({ repo, branch }) {
  const mayManage = may(repo, "manage");
  const others = repo.branches.filter((one) => one !== branch);
  return html`
    <ul class="plain" id="branches">${repo.branches.map((one) => html`<li key=${one.branch}>
      <a href=${addressOf(one.branch)}><bdi>${one.name}</bdi></a>${" "}
      <span class="facts">${[one.main && text.mainBranch, one.archived && text.archived, !one.kept && text.notKeptHere, one.latest_at && text.lastWritten(when(one.latest_at))].filter(Boolean).join(" · ")}</span>
      ${mayManage && html`<div class="buttons">${!one.main && !one.archived && html`<${Action} act=${() => pointMain(one, repo.branches.find(({ main }) => main))}>${text.makeMain}<//>`}
        <${Action} act=${() => archive(one, !one.archived)}>${one.archived ? text.takeBack : text.archive}<//></div>`}
    </li>`)}</ul>
    ${mayManage && html`<h3>${text.newBranch}</h3>
      <${Form} id="new-branch" class="form inline" button=${text.create} send=${async ({ name }) => {
        const made = await api.createBranch({ repo: repo.repo, name: name.trim() });
        await refresh();
        go(made.branch);
      }}><${Name} /><//>`}
    ${mayManage && branch && html`<h3>${text.forkBranch(branch.name)}</h3>
      <p class="facts">${text.forkBranchAbout}</p>
      <${Form} id="fork-branch" class="form inline" button=${text.fork} send=${({ name }) => fork(branch, name)}><${Name} /><//>
      <h3>${text.renameBranch(branch.name)}</h3>
      <${Form} id="rename-branch" class="form inline" button=${text.rename} send=${({ name }) => rename(branch, name.trim())}><${Name} /><//>`}
    ${may(repo, "write") && branch && others.length > 0 && html`<h3>${text.mergeInto(branch.name)}</h3>
      <${Form} id="merge-branch" class="form inline" button=${text.merge} send=${({ source }) => merge(branch, source)}>
        <label>${text.from} <select name="source">${others.map((one) => html`<option value=${one.branch}>${one.name}</option>`)}</select></label><//>`}
    ${repo.whole && html`<h3>${text.keptOnThis}</h3><${KeptAge} repo=${repo} />
      ${others.length > 0 && html`<details class="fold" id="kept-branches"><summary>${text.keptBranches}</summary>
        <p class="facts">${text.keptBranchesAbout}</p>
        ${repo.branches.map((one) => html`<label class="check" key=${one.branch}><${Tick} disabled=${!mayKeep()} isOn=${one.kept} act=${(kept) => keep(repo, one, kept)} /><bdi>${one.name}</bdi></label>`)}</details>`}`}
    <h3>${text.tags}</h3>
    <${Tags} repo=${repo} mayManage=${mayManage} />
    ${may(repo, "write") && branch && html`<details><summary>${text.importTitle}</summary><${Import} repo=${repo} branch=${branch} /></details>`}
    ${mayManage && branch && html`<details><summary>${text.careOf(branch.name)}</summary>
      <p>${text.compactAbout}</p>
      <${Action} id="compact" act=${() => compact(branch)}>${text.compact}<//></details>`}`;
}

function Name() {
  return html`<label>${text.nameOfBranch} <input name="name" required maxlength="255" autocomplete="off" /></label>`;
}

async function rename(branch, name) {
  await api.editBranch({ branch: branch.branch, name });
  await refresh();
  tell(text.renamed(branch.name, name), () => rename({ ...branch, name }, branch.name));
}

async function pointMain(branch, before) {
  await api.pointMain({ branch: branch.branch });
  await refresh();
  tell(text.mainNow(branch.name), before ? () => pointMain(before, branch) : null);
}

async function archive(branch, archived) {
  await api.editBranch({ branch: branch.branch, archived });
  await refresh();
  tell(archived ? text.archivedNow(branch.name) : text.takenBack(branch.name), archived ? () => archive(branch, false) : null);
}

/** Whether the token may say what this computer keeps: that is no right in the repo. */
function mayKeep() {
  return actions.value.includes("admin");
}

/** Has this computer keep contents of a branch, or fetch them when they are opened. */
async function keep(repo, branch, kept) {
  const those = repo.branches.filter((one) => (one === branch ? kept : one.kept)).map((one) => one.branch);
  const { last_days: days, files } = await api.showKeeping({ repo: repo.repo });
  await api.setKeeping({ repo: repo.repo, branches: those.length < repo.branches.length ? those : null, last_days: days, files });
  await refresh();
  tell(kept ? text.keptNow(branch.name) : text.letGoNow(branch.name));
}

/** Of which age posts are kept here. Before older ones of others are given up, one is told how many, and asked. */
function KeptAge({ repo }) {
  const loaded = useLoaded(() => api.showKeeping({ repo: repo.repo }), [repo.repo], true);
  const set = async (wanted) => {
    const { branches, last_days: days, files } = await api.showKeeping({ repo: repo.repo });
    await api.setKeeping({ repo: repo.repo, branches, last_days: days, files, ...wanted });
    await loaded.again();
    await refresh();
    return { days, files };
  };
  const keepFor = async (days) => {
    const before = await set({ last_days: days });
    tell(text.keptAgeNow(days), () => keepFor(before.days));
  };
  return html`<${Loaded} of=${loaded} lines=${1}>${({ last_days: days, files }) => {
    const change = async ({ target: field }) => {
      const wanted = Number(field.value) || null;
      const went = await attempt(async () => {
        if (!(await mayGiveUp(repo, wanted))) field.value = days ?? "";
        else await keepFor(wanted);
      });
      if (!went) field.value = days ?? "";
    };
    const ages = [null, ...new Set([...AGES, days ?? AGES[0]])];
    return html`<div class="field"><label for="kept-age">${text.keptPosts}</label>
      <select id="kept-age" disabled=${!mayKeep()} aria-describedby="kept-age-about" onChange=${change}>${ages.map((one) => html`
        <option value=${one ?? ""} selected=${one === days}>${text.keptAge(one)}</option>`)}</select>
      <p class="facts" id="kept-age-about">${text.keptPostsAbout}</p></div>
      <label class="check"><${Tick} id="kept-files" disabled=${!mayKeep()} isOn=${files === "all"} act=${(all) => set({ files: all ? "all" : "on_demand" })} />${text.keptFiles}</label>`;
  }}<//>`;
}

/** Whether contents of older posts of others may leave this computer, where there are any. */
async function mayGiveUp(repo, days) {
  if (days === null) return true;
  const { older_here: count, keepers } = await api.showKeeping({ repo: repo.repo, last_days: days });
  return !count || ask(text.giveUpQuestion(repo.name, days, count, keepers), text.giveUp);
}

/** Compacts a branch, after one has seen what that lets go. */
async function compact(branch) {
  const { bodies, size } = await api.compactBranch({ branch: branch.branch, dry_run: true });
  if (!bodies) return tell(text.nothingToCompact);
  if (!(await ask(text.compactQuestion(branch.name, bodies, bytes(size)), text.compact))) return;
  await api.compactBranch({ branch: branch.branch });
  await refresh();
  tell(text.compacted(branch.name));
}

async function merge(branch, source) {
  const done = await api.mergeBranch({ branch: branch.branch, source });
  await refresh();
  tellMerge(done);
}

/** Tells what a merge did, and what it could not do. */
export function tellMerge({ commit, carried, left, files_left: files }) {
  const isAll = !left && !files.length;
  const said = commit ? text.merged(carried, left) : isAll ? text.nothingToMerge : text.mergedNothing(left);
  tell(files.length ? `${said} ${text.filesLeft(namesOf(files))}` : said, null, !isAll);
}

function Tags({ repo, mayManage }) {
  const loaded = useLoaded(() => api.listTags({ repo: repo.repo }), [repo.repo]);
  return html`<${Loaded} of=${loaded} lines=${1}>${({ tags }) =>
    tags.length
      ? html`<ul class="plain">${tags.map((one) => html`<li>
          <a href=${addressOf(one.branch, "commit", one.commit)}><bdi>${one.name}</bdi></a>
          ${mayManage && html` <${Action} class="quiet" act=${async () => {
            await api.removeTag({ repo: repo.repo, name: one.name });
            await loaded.again();
            tell(text.tagRemoved(one.name), () => api.setTag({ repo: repo.repo, name: one.name, commit: one.commit }).then(loaded.again));
          }}>${text.remove}<//>`}</li>`)}</ul>`
      : html`<${Empty}><p>${text.noTags}</p><//>`}<//>`;
}
