// The page: opens the node, shows what it holds, and follows what happens. Everything that others wrote is text.

import { Api, ApiError, redeem } from "./api.js";
import { Timeline, make } from "./timeline.js";

const TOKEN = "ravel-token"; // in this tab's session storage, and nowhere else
const STORAGE_MS = 30_000; // between two looks at the disk
const byId = (id) => document.getElementById(id);

let api = null;
let repos = []; // as listed, each with its branches
let storageShownAt = -Infinity; // by performance.now()
let counts = new Map(); // of the last look at peers: when, sent and received
let chosen = { repo: "", branch: "" };
let following = new AbortController(); // the chosen branch
let watching = new AbortController(); // the node
const timeline = new Timeline(byId("timeline"), byId("older"));

async function begin() {
  const code = /^#code=([\w-]+)$/.exec(location.hash)?.[1];
  if (code) {
    history.replaceState(null, "", "/");
    try {
      sessionStorage.setItem(TOKEN, await redeem(code));
    } catch (error) {
      byId("login-error").textContent = error.message;
    }
  }
  const token = sessionStorage.getItem(TOKEN);
  if (token) await enter(token);
  else lock();
}

async function enter(token) {
  api = new Api(token);
  try {
    showStatus(await api.get("/status"));
  } catch (error) {
    lock(error.message);
    return;
  }
  sessionStorage.setItem(TOKEN, token);
  storageShownAt = -Infinity;
  byId("login").hidden = true;
  byId("node").hidden = false;
  watching = new AbortController();
  const tell = (isLive) => {
    byId("live").textContent = isLive ? "live" : "not connected, trying again";
    byId("live").className = isLive ? "good" : "alarm";
  };
  attempt(() => api.follow("/events", "", (name, data) => attempt(() => takeNews(name, data)), tell, watching.signal));
}

function lock(message = "") {
  watching.abort();
  following.abort();
  sessionStorage.removeItem(TOKEN);
  api = null;
  chosen = { repo: "", branch: "" };
  byId("node").hidden = true;
  byId("login").hidden = false;
  if (message) byId("login-error").textContent = message;
  byId("token").value = "";
  byId("token").focus();
}

/** Runs what may fail, and says what went wrong. A token that is good no more locks the page. */
async function attempt(work) {
  try {
    await work();
    byId("problem").textContent = "";
  } catch (error) {
    if (error instanceof ApiError && error.status === 401) lock(error.message);
    else byId("problem").textContent = error.message;
  }
}

async function takeNews(name, data) {
  if (name === "peers") showPeers(data.peers);
  if (name === "repos") {
    repos = await Promise.all(
      data.repos.map(async (repo) => ({ ...repo, branches: (await api.get(`/repos/${repo.repo}/branches`)).branches })),
    );
    showStatus(await api.get("/status"));
    await showRepos();
    if (performance.now() - storageShownAt > STORAGE_MS) showStorage(await api.get("/storage"));
  }
}

function showStorage(storage) {
  storageShownAt = performance.now();
  const store = storage.database + storage.log + storage.older + storage.packs;
  byId("sizes").textContent = `${bytes(store)}, of which files ${bytes(storage.packs)} · ${bytes(storage.free)} free`;
  const days = [...storage.days].reverse();
  const most = Math.max(1, ...days.map((one) => one.commits));
  byId("growth").replaceChildren(
    ...days.map((one) => {
      const bar = make("li");
      bar.title = `${one.day}: ${countOf(one.commits, "commit")}, ${bytes(one.size)}`;
      bar.style.setProperty("--share", one.commits / most);
      bar.append(make("span", "unseen", bar.title));
      return bar;
    }),
  );
  const last = storage.days[0];
  byId("growth-facts").textContent = last ? `${last.day}: ${countOf(last.commits, "commit")}, ${bytes(last.size)}` : "";
  const relay = storage.relay;
  byId("relay").hidden = !relay;
  if (!relay) return;
  byId("relay-room").value = relay.size / relay.size_max;
  byId("relay-facts").textContent = `${bytes(relay.size)} of ${bytes(relay.size_max)} · ${countOf(relay.topics, "topic")}`;
}

function bytes(size) {
  const power = Math.min(Math.floor(Math.log2(Math.max(size, 1)) / 10), 4);
  return `${(size / 1024 ** power).toFixed(power ? 1 : 0)} ${["B", "KiB", "MiB", "GiB", "TiB"][power]}`;
}

function showStatus(status) {
  const facts = [countOf(status.repos, "repo"), countOf(status.commits, "commit"), `version ${status.version}`];
  if (status.pending) facts.push(`${status.pending} waiting for causes`);
  if (status.rejected) facts.push(`${status.rejected} rejected`);
  const damaged = status.damaged.commits + status.damaged.blocks;
  if (damaged) facts.push(`${damaged} damaged, asked of peers`);
  byId("status").textContent = `node ${status.node.slice(0, 12)}… · ${facts.join(" · ")}`;
}

async function showRepos() {
  const focused = document.activeElement?.dataset.branch;
  byId("repos").replaceChildren(...repos.map(repoEntry));
  if (focused) document.querySelector(`[data-branch="${CSS.escape(focused)}"]`)?.focus();
  byId("empty").hidden = repos.length > 0;
  const all = repos.flatMap((repo) => repo.branches.map((branch) => ({ repo, branch })));
  const named = location.hash.slice(1);
  const called = (id) => all.find(({ branch }) => branch.branch === id);
  const found = called(named) ?? called(chosen.branch) ?? all.find(({ branch }) => !branch.archived);
  if (!found) {
    byId("branch").hidden = byId("people").hidden = true;
    return;
  }
  showBranch(found.repo, found.branch);
  await showMembers(found.repo);
  if (found.branch.branch !== chosen.branch) await choose(found.repo, found.branch);
}

function repoEntry(repo) {
  const entry = make("li");
  entry.append(make("strong", "", repo.name), make("span", "facts", `${repo.permission} · ${countOf(repo.commits, "commit")}`));
  const branches = make("ul");
  for (const branch of repo.branches.filter((one) => !one.archived)) {
    const button = make("button");
    button.type = "button";
    button.dataset.branch = branch.branch;
    button.setAttribute("aria-current", branch.branch === chosen.branch);
    button.append(make("span", "", branch.name), make("span", "facts", branch.commits));
    button.addEventListener("click", () => {
      location.hash = branch.branch;
    });
    const item = make("li");
    item.append(button);
    branches.append(item);
  }
  entry.append(branches);
  return entry;
}

function showBranch(repo, branch) {
  byId("branch").hidden = byId("people").hidden = false;
  byId("branch-name").textContent = `${repo.name} : ${branch.name}`;
  const facts = [countOf(branch.commits, "commit"), countOf(branch.head_count, "head")];
  for (const name of ["pending", "void", "rejected"]) if (branch[name]) facts.push(`${branch[name]} ${name}`);
  byId("branch-facts").textContent = facts.join(" · ");
  byId("write").hidden = ["read", "former", "joining", "damaged"].includes(repo.permission);
}

async function choose(repo, branch) {
  following.abort();
  following = new AbortController();
  const { signal } = following;
  chosen = { repo: repo.repo, branch: branch.branch };
  byId("invitation").hidden = true;
  for (const button of document.querySelectorAll("[data-branch]")) {
    button.setAttribute("aria-current", button.dataset.branch === chosen.branch);
  }
  const since = await timeline.load(api, branch.branch);
  if (signal.aborted) return;
  const take = (name, edit) => {
    if (name === "edit") timeline.take(edit);
    if (name === "reset") attempt(() => choose(repo, branch)); // away for too long: the window is loaded anew
  };
  attempt(() => api.follow(`/branches/${branch.branch}/edits`, since, take, () => {}, signal));
}

async function showMembers(repo) {
  let members = [];
  try {
    members = (await api.get(`/repos/${repo.repo}/members`)).members;
  } catch (error) {
    // A single branch is followed, or who is a member cannot be computed for damage: the timeline is shown all the same.
    if (!(error instanceof ApiError && ["not_permitted", "damaged"].includes(error.code))) throw error;
  }
  timeline.call(new Map(members.map((member) => [member.user, member.name])));
  const devices = Map.groupBy(members, (member) => member.person); // the first one of each first
  byId("members").replaceChildren(
    ...[...devices.values()].map(([first, ...others]) => {
      const entry = memberEntry(first);
      const list = make("ul", "plain");
      list.append(...others.map((device) => memberEntry(device, "device: ")));
      if (others.length) entry.append(list);
      return entry;
    }),
  );
  byId("invite").parentElement.hidden = !["owner", "admin"].includes(repo.permission);
}

function memberEntry(member, what = "") {
  const entry = make("li");
  if (member.name) entry.append(make("bdi", "person", member.name), " ");
  if (member.name && member.color !== null) {
    entry.firstChild.classList.add("colored");
    entry.style.setProperty("--hue", member.color * 22.5);
  }
  entry.append(make("span", "id", `${what}${member.user.slice(0, 16)}… `), make("span", "facts", member.permission));
  entry.title = member.user;
  return entry;
}

function showPeers(peers) {
  const now = performance.now();
  const before = counts;
  counts = new Map();
  const entries = peers.map((peer) => {
    const sum = (name) => peer.topics.reduce((total, topic) => total + topic[name], 0);
    const count = { now, sent: sum("sent"), received: sum("received") };
    counts.set(`${peer.peer} ${peer.direction}`, count);
    const old = before.get(`${peer.peer} ${peer.direction}`) ?? count;
    const rate = (name) => Math.max(Math.round(((count[name] - old[name]) * 1000) / (now - old.now || 1)), 0);
    const isConnected = peer.state === "connected";
    const shared = peer.topics.filter((topic) => topic.state !== "not joined"); // others are not the peer's to have
    const inSync = shared.filter((topic) => topic.state === "in sync").length;
    const entry = make("li");
    entry.title = peer.peer;
    entry.append(
      make("span", "id", `${peer.name || `${peer.peer.slice(0, 12)}…`} `),
      make("strong", isConnected ? "good" : "alarm", `${peer.state} (${peer.direction})`),
      make("p", "facts", peer.address),
    );
    if (isConnected) {
      entry.append(
        make("p", "facts", `${inSync} of ${shared.length} shared topics in sync, ${sum("behind")} commits behind`),
        make("p", "facts", `commits: ${count.sent} sent (${rate("sent")}/s), ${count.received} received (${rate("received")}/s)`),
      );
    }
    if (peer.last_error) entry.append(make("p", "facts", `last error: ${peer.last_error}`));
    return entry;
  });
  if (!entries.length) entries.push(make("li", "facts", "none: `ravel peer add` or an invitation makes some"));
  byId("peers").replaceChildren(...entries);
}

function countOf(count, what) {
  return `${count} ${what}${count === 1 ? "" : "s"}`;
}

/** Calls `work` when a form is sent or a button pressed, once at a time. */
function on(id, kind, work) {
  const element = byId(id);
  const button = element.tagName === "FORM" ? element.querySelector("button") : element;
  element.addEventListener(kind, async (event) => {
    event.preventDefault();
    button.disabled = true;
    await attempt(() => work(element));
    button.disabled = false;
  });
}

on("login-form", "submit", () => {
  byId("login-error").textContent = "";
  return enter(byId("token").value.trim());
});
on("leave", "click", () => lock());
on("older", "click", () => timeline.loadOlder());
on("write", "submit", async () => {
  await api.post(`/branches/${chosen.branch}/commits`, { text: byId("text").value });
  byId("text").value = "";
  byId("text").focus();
});
on("invite", "submit", async (form) => {
  const { permission, days, uses } = Object.fromEntries(new FormData(form));
  const body = { permission, expires_seconds: Number(days) * 86400, uses: Number(uses) };
  const answer = await api.post(`/repos/${chosen.repo}/invitations`, body);
  byId("link").value = answer.invitation;
  byId("invitation-facts").textContent = answer.addresses.length
    ? `It names ${answer.addresses.join(", ")}.`
    : "It names no address that can be dialed from elsewhere.";
  byId("invitation").hidden = false;
  byId("link").select();
  const { size, path } = await api.post("/qr", { text: answer.invitation });
  byId("qr").setAttribute("viewBox", `0 0 ${size} ${size}`);
  byId("qr").firstElementChild.setAttribute("d", path);
});
on("copy", "click", () => navigator.clipboard.writeText(byId("link").value));
on("export", "click", async () => {
  byId("exported").textContent = "exporting…";
  const answer = await api.post("/export");
  byId("exported").textContent = `${answer.commits} commits, ${answer.added} of them new, in ${answer.path}`;
});
addEventListener("hashchange", () => {
  if (api) attempt(showRepos);
  else begin();
});

begin();
