// What is new since the last visit. The node keeps the marks, so that all pages of it agree.

import { computed, effect, signal } from "../vendor/signals.js";
import { text } from "../strings/text.js";
import { changes, chosenBranch, placeOf, route } from "./node.js";
import { noteNews } from "./notices.js";
import { actions, api, attemptItself, session } from "./session.js";

/** Branch -> `{ unseen, more, mentions, latest_mention }`. */
export const news = signal(new Map());
/** Branches of what the page lists in which something is unread, each with its `place`. */
export const unread = computed(() => [...news.value.values()].filter((one) => one.unseen).map((one) => ({ ...one, place: placeOf(one.branch) })).filter((one) => one.place));
/** What was new in a branch when its timeline came into view; it stays so until the next visit. */
export const fresh = signal({ branch: "", ids: new Set() });

let visit = ""; // branch of which this visit's news were noted
let isLooking = false;
let isDue = false;

/** Asks what is new, and has seen what is in view. */
async function look() {
  isDue = true;
  if (isLooking) return;
  isLooking = true;
  try {
    while (isDue && session.value === "open") {
      isDue = false;
      const { branches } = await api.listUnseen();
      const found = new Map(branches.map((one) => [one.branch, one]));
      noteNews(found);
      await see(chosenBranch.value, found);
      news.value = found;
    }
  } finally {
    isLooking = false;
  }
}

/** Marks all of these branches as seen, read or not. */
export async function seeAll(branches) {
  try {
    for (const branch of branches) {
      const { up_to: upTo } = await api.showUnseen({ branch });
      await api.markSeen({ branch, up_to: upTo });
    }
  } finally {
    await look(); // those before one that failed are seen
  }
}

async function see(branch, found) {
  if (!branch || !isInView()) return;
  const isVisit = visit !== branch;
  visit = branch;
  if (!isVisit && !found.has(branch)) return;
  const { commits, visited, up_to: upTo } = await api.showUnseen({ branch });
  // To who was never here, all is new, so that it is no news what is. Where nothing is, what the last visit found stays marked.
  if (isVisit && (commits.length || fresh.value.branch !== branch)) fresh.value = { branch, ids: new Set(visited ? commits : []) };
  if (visited && !found.has(branch)) return;
  if (!actions.value.includes("write")) return; // a token for reading leaves no marks
  await api.markSeen({ branch, up_to: upTo });
  found.delete(branch);
}

/** Whether somebody may look at the timeline: in a tab that is shown, and on a phone in that view. */
function isInView() {
  return document.visibilityState === "visible" && document.getElementById("branch")?.checkVisibility();
}

function lookSoon() {
  if (session.value === "open") setTimeout(() => attemptItself(look), 0); // after the view was drawn
}

effect(() => {
  if (session.value !== "open") {
    news.value = new Map();
    visit = "";
  } else if (changes.value) {
    void chosenBranch.value;
    void route.value;
    lookSoon();
  }
});

effect(() => {
  const count = [...news.value.values()].reduce((total, one) => total + one.unseen, 0);
  document.title = count ? text.titleWith(count, text.name) : text.name;
});

document.addEventListener("visibilitychange", () => {
  if (document.visibilityState === "hidden") visit = "";
  else lookSoon();
});
