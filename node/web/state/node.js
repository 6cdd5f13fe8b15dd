// What the node holds, as it changes: repos with their branches, peers, members of the chosen repo; and what is chosen.

import { batch, computed, effect, signal } from "../vendor/signals.js";
import { actions, api, attemptItself, forgetAbsence, onOpen, session, trouble } from "./session.js";

const MEMBER_CHANGES = 100; // shown among posts: who looks further back sees them in `ravel log`
const LOOK_MS = 5000; // between two looks at a node that can store nothing
const RATE_MS_MIN = 500; // two looks closer than this make no rate

/** Null until the first list came. Each repo has its `branches`. */
export const repos = signal(null);
/** Whether the node follows a repo of its user's devices, which is none of `repos`. */
export const hasDevices = signal(false);
/** Null until the first list came. Each peer has its `rates`, commits in a second. */
export const peers = signal(null);
export const status = signal(null);
/** What this user is called: `{ user, name, color }`. Null: not known yet, or not to this token. */
export const me = signal(null);
export const isLive = signal(true);
/** Members of the chosen repo; null where they cannot be known. */
export const members = signal([]);
/** Who came to the chosen repo, left, was excluded, may do something else or has another name: the latest, by time. */
export const memberChanges = signal([]);
/** Counted up when repos changed: what was loaded of them is to be looked at again. */
export const changes = signal(0);

/** Whether a panel says anything on this node: it may be no relay. */
export const hasPanel = (name) => name !== "relay" || Boolean(status.value?.relay);

/** Of the address: `#/BRANCH/PANEL/ARGUMENT`. All may be empty. */
export const route = signal(parse(location.hash));
const lastBranch = signal("");

/** The repo and the branch that are shown: `{ repo, branch }`, either may be null. */
export const current = computed(() => {
  const all = (repos.value ?? []).flatMap((repo) => repo.branches.map((branch) => ({ repo, branch })));
  const called = (id) => all.find(({ branch }) => branch.branch === id);
  const repoCalled = (id) => {
    const repo = (repos.value ?? []).find((one) => one.repo === id);
    return repo && { repo, branch: repo.branches.find((one) => !one.archived) ?? null };
  };
  return (
    called(route.value.branch) ??
    repoCalled(route.value.branch) ??
    called(lastBranch.value) ??
    all.find(({ branch }) => !branch.archived) ??
    ((repos.value ?? []).length ? { repo: repos.value[0], branch: null } : { repo: null, branch: null })
  );
});

/** The repo and the branch of an id; null where it is not here. */
export function placeOf(id) {
  for (const repo of repos.value ?? []) {
    const branch = repo.branches.find((one) => one.branch === id);
    if (branch) return { repo, branch };
  }
  return null;
}

/** Ids alone, so that what depends on them does not change with every commit. */
export const chosenBranch = computed(() => current.value.branch?.branch ?? "");
export const chosenRepo = computed(() => current.value.repo?.repo ?? "");

/** Panels that explain what is chosen. They stand beside the middle; all others stand in it, where there is room. */
const BESIDE = ["about", "branches", "quorum", "commit", "thread", "person", "posts-by", "written"];
export const isBeside = (panel) => BESIDE.includes(panel);

/** On a narrow screen: which of the three columns is shown. */
export const view = computed(() => {
  const { branch, panel } = route.value;
  if (isBeside(panel)) return "details";
  return branch || panel || repos.value?.length === 0 ? "middle" : "list"; // without a repo, the start
});

/** People of the chosen repo, each as a list of their computers, the first one first. */
export const persons = computed(() => {
  const found = new Map();
  for (const one of members.value ?? []) found.set(one.person, [...(found.get(one.person) ?? []), one]);
  return [...found.values()];
});
const membersByUser = computed(() => new Map((members.value ?? []).map((one) => [one.user, one])));

/** A user as a member of the chosen repo; undefined where they are none, or that is not known. */
export function memberOf(user) {
  return membersByUser.value.get(user);
}

/** Devices of a person of the chosen repo, named by any of them, the first one first; none of who is no member. */
export function devicesOf(user) {
  return persons.value.find((devices) => devices.some((one) => one.user === user)) ?? [];
}

/** The key by which a user's person is known in the chosen repo: all computers of a person have the same. */
export function personOf(user) {
  return memberOf(user)?.person ?? user;
}

/** Whether a user is this node's person, with this computer or another one. */
export function isMine(user) {
  const own = status.value?.user;
  return own !== undefined && personOf(user) === personOf(own);
}

/** What this user may do in a repo, each including those before. */
const LEVELS = ["read", "write", "manage", "admin", "owner"];

const ACTIONS = { read: "read", write: "write", manage: "manage", admin: "admin", owner: "admin" };

export function may(repo, permission) {
  return actions.value.includes(ACTIONS[permission]) && LEVELS.indexOf(repo?.permission) >= LEVELS.indexOf(permission);
}

/** True if this user may write in a branch, and this computer may do so now. */
export function mayPost({ repo, branch }) {
  return may(repo, "write") && branch !== null && !branch.archived && !repo.standing.uncertain;
}

export function addressOf(branch, panel = "", argument = "") {
  const parts = [branch || "-", panel, encodeURIComponent(argument)];
  return `#/${parts.join("/").replace(/\/+$/, "")}`;
}

export const INVITE = "invite"; // in the address of the members: the dialog is open

export function go(branch, panel = "", argument = "") {
  location.hash = addressOf(branch, panel, argument);
}

/** The address of a panel beside what is shown now. */
export function beside(panel, argument = "") {
  return addressOf(chosenBranch.value || chosenRepo.value, panel, argument);
}

function parse(hash) {
  const said = /^#\/(.*)$/.exec(hash)?.[1] ?? ""; // else a code that opens the page
  const [branch = "", panel = "", argument = ""] = said.split("/");
  let decoded = "";
  try {
    decoded = decodeURIComponent(argument);
  } catch {
    decoded = ""; // typed by hand
  }
  return { branch: branch === "-" ? "" : branch, panel, argument: decoded };
}

addEventListener("hashchange", () => {
  route.value = parse(location.hash);
});

effect(() => {
  if (chosenBranch.value) lastBranch.value = chosenBranch.value;
});

let cursor = ""; // of the list that is shown
let devicesRepos = new Set(); // of that list
let opened = 0; // counted up with each session: what was asked for in another is not shown in this one
let latest = Promise.resolve();

/**
 * Asks which repos have changed, without waiting for the node's own news. One after the other: of two answers the older
 * one would else be shown if it came last.
 */
export function refresh() {
  const of = opened;
  latest = latest.catch(() => {}).then(async () => take(await api.listRepos({ since: cursor }), of));
  return latest;
}

onOpen(async (signal) => {
  opened += 1;
  cursor = "";
  batch(() => {
    repos.value = peers.value = status.value = me.value = null;
    devicesRepos = new Set();
    hasDevices.value = false;
    members.value = memberChanges.value = [];
    membersRead = "";
  });
  const onState = (live) => {
    isLive.value = live;
    if (live) forgetAbsence();
  };
  for await (const { name, data } of api.watchNode({ changes: true }, { signal, onState })) {
    await attemptItself(async () => {
      if (name === "peers") peers.value = withRates(data.peers);
      if (name === "repos" && data.complete) await startFrom(data);
      else if (name === "repos") await refresh();
    });
  }
});

/** A whole list comes at first, and after a restart of the node. */
function startFrom(list) {
  const of = opened;
  latest = latest.catch(() => {}).then(() => take(list, of));
  return latest;
}

async function take(list, of) {
  const before = new Map((repos.value ?? []).map((repo) => [repo.repo, repo]));
  const found = list.repos.filter((repo) => !repo.of_devices); // what devices tell each other is nothing to read
  const changed = await Promise.all(found.map(async (repo) => ({ ...repo, branches: await branchesOf(repo, before.get(repo.repo)) })));
  if (of !== opened) return;
  const after = new Map(list.complete ? [] : before);
  for (const id of [...list.gone, ...list.repos.filter((repo) => repo.of_devices).map(({ repo }) => repo)]) after.delete(id);
  for (const repo of changed) after.set(repo.repo, repo);
  if (list.complete) devicesRepos = new Set();
  for (const id of list.gone) devicesRepos.delete(id);
  for (const repo of list.repos) if (repo.of_devices) devicesRepos.add(repo.repo);
  cursor = list.cursor;
  batch(() => {
    repos.value = [...after.values()];
    hasDevices.value = devicesRepos.size > 0;
    changes.value += 1;
  });
}

/** Asked for only where something of the repo was stored. Of one that this user has asked to join, nothing is here. */
async function branchesOf(repo, held) {
  if (held?.revision === repo.revision) return held.branches;
  if (repo.permission === "joining" && !repo.branches) return [];
  return (await api.listBranches({ repo: repo.repo })).branches;
}

effect(() => {
  if (session.value !== "open" || !(changes.value + trouble.value) || !actions.value.includes("node")) return;
  attemptItself(async () => {
    [status.value, me.value] = await Promise.all([api.showStatus(), api.showMe()]);
  });
});

/** Nothing comes from a node that can store nothing: whether it can again is asked. */
effect(() => {
  if (!status.value?.faults?.length) return undefined;
  const timer = setTimeout(() => (trouble.value += 1), LOOK_MS);
  return () => clearTimeout(timer);
});

let membersRead = ""; // the repo and its members when their changes were read

effect(() => {
  const repo = chosenRepo.value;
  if (session.value !== "open" || !repo || !changes.value) return;
  const { permission, whole } = current.peek().repo ?? {};
  if (permission === "joining") return;
  attemptItself(async () => {
    let found = null;
    try {
      if (whole) found = (await api.listMembers({ repo })).members;
    } catch (error) {
      // A token may be for a branch alone, or who is a member cannot be computed for damage: the timeline is shown all the same.
      if (!["not_permitted", "damaged"].includes(error.code)) throw error;
    }
    if (chosenRepo.value !== repo) return;
    const key = repo + JSON.stringify(found);
    if (key === membersRead) return; // each look at the changes costs as much as there is of the membership, and faces are drawn anew
    members.value = found;
    const read = found ? (await api.listMemberChanges({ repo, limit: MEMBER_CHANGES })).changes : [];
    if (chosenRepo.value === repo) [memberChanges.value, membersRead] = [read, key];
  });
});

let counts = new Map();

function withRates(found) {
  const now = performance.now();
  const before = counts;
  counts = new Map();
  return found.map((peer) => {
    const sum = (name) => peer.topics.reduce((total, topic) => total + topic[name], 0);
    const count = { now, sent: sum("sent"), received: sum("received") };
    const key = `${peer.peer} ${peer.direction} ${peer.path}`;
    counts.set(key, count);
    const old = before.get(key) ?? count;
    const rate = (name) =>
      now - old.now < RATE_MS_MIN ? 0 : Math.max(Math.round(((count[name] - old[name]) * 1000) / (now - old.now)), 0);
    return { ...peer, sent: count.sent, received: count.received, rates: { sent: rate("sent"), received: rate("received") } };
  });
}
