// A poll that a group keeps on a branch: each member votes offline too, and all pages end alike.
//
// Any web server can hand out this page. It calls the node of the machine that the browser runs on, with a token that was
// made for the page's origin: docs/apps/browser.md explains it.

import { RavelError, connect } from "../../clients/js/ravel.js";

const QUESTION = "poll/question";
const OPTION = "poll/option/";
const VOTE = "poll/vote/";
const REFRESH_MS = 100;
const KEPT = "poll"; // in the tab's session storage: gone with the tab, and no other origin reads it

const find = (id) => document.getElementById(id);
let stopFollowing = new AbortController();

/** Shows texts of others as text, never as HTML. */
function element(name, text, more = {}) {
  return Object.assign(document.createElement(name), { textContent: text }, more);
}

function say(text) {
  find("message").textContent = text;
}

/** Runs what a person asked for, and says what went wrong, and what to do next. */
async function attempt(work) {
  say("");
  try {
    await work();
  } catch (error) {
    if (!(error instanceof RavelError)) throw error;
    say(`${error.message}. ${error.advice}`);
  }
}

/** All entries of the branch's dict. */
async function load(ravel, branch) {
  const entries = new Map();
  let offset = 0;
  do {
    const window = await ravel.showDict({ branch, offset, limit: 1000 });
    for (const entry of window.entries) entries.set(entry.key, entry.value);
    offset = window.next;
  } while (offset !== null);
  return entries;
}

function show(entries, vote) {
  const keys = [...entries.keys()];
  const votes = keys.filter((key) => key.startsWith(VOTE)).map((key) => entries.get(key));
  const options = keys.filter((key) => key.startsWith(OPTION)).map((key) => key.slice(OPTION.length));
  find("question").textContent = entries.get(QUESTION) ?? "No question yet";
  find("options").replaceChildren(
    ...options.sort().map((option) => {
      const row = element("li", `${option}: ${votes.filter((one) => one === option).length} `);
      row.append(element("button", `Vote for ${option}`, { onclick: () => vote(option) }));
      return row;
    }),
  );
}

async function open({ url, branch, token, voter }) {
  const ravel = connect({ url, token });
  const put = (key, value) => attempt(() => ravel.editDict({ branch, put: { [key]: value } }));
  const refresh = async () => show(await load(ravel, branch), (option) => put(VOTE + voter, option));
  await refresh();
  sessionStorage.setItem(KEPT, JSON.stringify({ url, branch, token, voter }));
  find("connect").hidden = true;
  find("poll").hidden = false;
  find("ask").onsubmit = onForm(({ question }) => put(QUESTION, question));
  find("add").onsubmit = onForm(({ option }) => put(OPTION + option, ""));
  stopFollowing.abort();
  stopFollowing = new AbortController();
  // Each edit of the branch may have changed the dict; many that come together are one look. A stream that is cut goes on.
  let due;
  for await (const _ of ravel.watchEdits({ branch }, { signal: stopFollowing.signal })) {
    due ??= setTimeout(() => {
      due = undefined;
      attempt(refresh);
    }, REFRESH_MS);
  }
}

function onForm(work) {
  return (event) => {
    event.preventDefault();
    const values = Object.fromEntries(new FormData(event.target));
    attempt(() => work(values));
  };
}

find("connect").onsubmit = onForm(open);
const kept = sessionStorage.getItem(KEPT);
if (kept) attempt(() => open(JSON.parse(kept)));
