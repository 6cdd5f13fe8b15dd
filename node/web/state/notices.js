// Notifications of this browser, while its tab is hidden: mentions, new members, requests to be let in.

import { text } from "../strings/text.js";
import { effect, signal } from "../vendor/signals.js";
import { addressOf, repos } from "./node.js";
import { api, session } from "./session.js";

const WANTED = "ravel-notices"; // in this browser's storage: a permission is of a browser, too

/** `on`, `off`, `refused` by the browser, or `impossible`. */
export const notices = signal(standing());

let mentioned = null; // branch -> the commit that mentioned last; null: nothing was looked at yet
let known = null; // repo -> { commits, requests, members }

function standing() {
  if (!("Notification" in window)) return "impossible";
  if (Notification.permission === "denied") return "refused";
  return Notification.permission === "granted" && localStorage.getItem(WANTED) ? "on" : "off";
}

export async function turnOn() {
  if (notices.value === "impossible") return;
  await Notification.requestPermission();
  localStorage.setItem(WANTED, "1");
  notices.value = standing();
}

export function turnOff() {
  localStorage.removeItem(WANTED);
  notices.value = standing();
}

/** Tells of mentions that are new since the last look. */
export function noteNews(found) {
  const now = new Map([...found.values()].filter((one) => one.latest_mention).map((one) => [one.branch, one.latest_mention]));
  for (const [branch, { commit, author_name: name, author }] of now) {
    if (!mentioned || mentioned.get(branch) === commit) continue;
    tell(text.mentionedYou(name || author.slice(0, 12)), nameOf(branch), commit, addressOf(branch, "commit", commit));
  }
  const before = mentioned ?? new Map();
  mentioned = new Map([...before, ...[...now].map(([branch, one]) => [branch, one.commit])]);
}

effect(() => {
  if (session.value !== "open") {
    mentioned = known = null;
  } else if (repos.value && notices.value === "on") {
    noteRepos(repos.value).catch(() => {}); // the page says by itself that the node is away
  }
});

/** Tells of members and requests that are new. Members are counted only where something was written. */
async function noteRepos(found) {
  const before = known;
  known = new Map(before ?? []);
  for (const repo of found) {
    const old = before?.get(repo.repo);
    if (old && old.commits === repo.commits && old.requests === repo.requests) continue;
    const members = await countMembers(repo);
    known.set(repo.repo, { commits: repo.commits, requests: repo.requests, members });
    if (!old) continue;
    const address = addressOf(repo.branches[0]?.branch ?? repo.repo, "members");
    if (members > old.members) tell(text.somebodyJoined(members - old.members, repo.name), "", `members ${repo.repo}`, address);
    if (repo.requests > old.requests) tell(text.somebodyAsks(repo.name), "", `requests ${repo.repo}`, address);
  }
}

async function countMembers(repo) {
  try {
    return new Set((await api.listMembers({ repo: repo.repo })).members.map((one) => one.person)).size;
  } catch {
    return 0; // a single branch is followed, or its membership is damaged
  }
}

/** What others wrote is not shown: a notification may stand on a locked screen. */
async function tell(title, body, tag, address) {
  if (notices.value !== "on" || document.visibilityState === "visible") return;
  const options = { body, tag, icon: "/web/icons/icon-192.png", data: { address } };
  const worker = await navigator.serviceWorker?.getRegistration();
  if (worker?.active) {
    await worker.showNotification(title, options); // the only way on phones
    return;
  }
  const shown = new Notification(title, options);
  shown.onclick = () => follow(address);
}

function follow(address) {
  window.focus();
  location.hash = address;
}

function nameOf(branch) {
  for (const repo of repos.value ?? []) {
    const found = repo.branches.find((one) => one.branch === branch);
    if (found) return `${repo.name} : ${found.name}`;
  }
  return "";
}

navigator.serviceWorker?.addEventListener("message", ({ data }) => {
  if (typeof data?.address === "string" && data.address.startsWith("#/")) follow(data.address);
});
