// Who looks: the token of this tab, the client made with it, and what the last action failed with.

import { RavelError, connect } from "../client/ravel.js";
import { text } from "../strings/text.js";
import { batch, signal } from "../vendor/signals.js";

// In this tab's session storage, and nowhere else; that of a browser that stays signed in in its local storage.
const TOKEN = "ravel-token";
const BROWSERS = ["Firefox", "Edg", "Chrome", "Safari"]; // each names itself so, and those behind it, too
const UNDO_MS = 12_000; // how long an undo is offered
const NOTICE_MS = 5000; // how long what was done is said without one
const NOTICES_MAX = 2;
const RETRY_MS = 1000; // before a node that does not answer is asked again; doubled each time
const RETRY_MS_MAX = 15_000;

/** `opening`, `locked`, `away` (the node does not answer, and is asked again) or `open`. */
export const session = signal("opening");
/** Counted up when the node could not store something: how it is then is news. */
export const trouble = signal(0);
/** Why the page is locked, and what the last action failed with. Empty: nothing. */
export const loginError = signal("");
export const problem = signal("");
/** What was done lately: `{ key, said, undo }`; `undo` may be null. */
export const notices = signal([]);
/** What the token may do (docs/apps/tokens.md): a page of `ravel open` has all actions, a pasted token may not. */
export const actions = signal([]);
/** Whose token it is: `page`, `kept` (a browser here that stays signed in), `browser` (a paired one), `app` or `home`. */
export const tokenKind = signal("");
/** What a link for pairing said: `{ code, fingerprint }`, both may be empty. */
export const pairing = signal({ code: "", fingerprint: "" });
/** Whether the page came over TLS: from another machine, where `ravel open` does not lead. */
export const isRemote = location.protocol === "https:";
/** Whether the token is one of a page that the person of this node opened, and no app's; and what the token is called. */
export const isPerson = signal(false);
export const ownToken = signal("");
/** The client, while the page is open. */
export let api = null;

let ends = new AbortController();
let retry = 0;
let failures = 0; // to reach the node, in a row
let noticeCount = 0;
let isProblemOfAction = false; // what the last action failed with stays until the next one, or until it is dismissed
const beginnings = [];

/** Runs `work(signal)` whenever the page was opened; the signal is aborted when it is locked. */
export function onOpen(work) {
  beginnings.push(work);
}

export async function begin() {
  const code = /^#code=([\w-]+)$/.exec(location.hash)?.[1];
  if (code) {
    history.replaceState(null, "", "/");
    try {
      sessionStorage.setItem(TOKEN, await redeem({ code }));
    } catch (error) {
      loginError.value = sentenceOf(error);
    }
  }
  const link = /^#pair=([a-z2-7-]{1,64})(?:&sha256=([0-9a-f]{64}))?$/i.exec(location.hash);
  if (link) {
    history.replaceState(null, "", "/");
    pairing.value = { code: link[1], fingerprint: link[2] ?? "" };
  }
  const token = sessionStorage.getItem(TOKEN) ?? localStorage.getItem(TOKEN);
  if (token) await enter(token);
  else lock();
  if (link) loginError.value = ""; // of a token from before: the code is what counts now
}

/** Pairs this browser by a code, and opens the page. */
export async function pair(code, name) {
  loginError.value = "";
  let token;
  try {
    token = await redeem({ code, name });
  } catch (error) {
    loginError.value = sentenceOf(error);
    return;
  }
  pairing.value = { code: "", fingerprint: "" };
  localStorage.setItem(TOKEN, token);
  await enter(token);
}

/** Opens the page with a token, if the node knows it. */
export async function enter(token) {
  loginError.value = "";
  clearTimeout(retry);
  const client = connect({ token });
  api = client;
  try {
    const shown = await client.showToken();
    if (api !== client) return; // the page was locked meanwhile, or another token came
    batch(() => {
      actions.value = shown.actions;
      tokenKind.value = shown.kind;
      isPerson.value = ["page", "kept", "home"].includes(shown.kind);
      ownToken.value = shown.name;
    });
  } catch (error) {
    if (api !== client) return;
    const isPassing = ["not_running", "answer_lost"].includes(error.code) || error.status >= 500; // busy, or a proxy's word
    if (isPassing) {
      keep(token); // it may be good
      session.value = "away";
      retry = setTimeout(() => enter(token), Math.min(RETRY_MS * 2 ** failures, RETRY_MS_MAX));
      failures += 1;
    } else {
      lock(sentenceOf(error));
    }
    return;
  }
  keep(token);
  failures = 0;
  session.value = "open";
  problem.value = "";
  ends = new AbortController();
  for (const work of beginnings) attemptItself(() => work(ends.signal));
}

/** Has this browser of the node's machine stay signed in, so that a bookmark opens the page. */
export async function staySignedIn() {
  const token = sessionStorage.getItem(TOKEN);
  const agent = BROWSERS.find((one) => navigator.userAgent.includes(one)) ?? "Browser";
  const { name } = await api.keepBrowser({ name: agent });
  localStorage.setItem(TOKEN, token);
  sessionStorage.removeItem(TOKEN);
  [tokenKind.value, ownToken.value] = ["kept", name];
}

/** Remembers the token for this tab; one that stays lies where other tabs find it, too. */
function keep(token) {
  if (localStorage.getItem(TOKEN) !== token) sessionStorage.setItem(TOKEN, token);
}

export function lock(why = "") {
  ends.abort();
  clearTimeout(retry);
  sessionStorage.removeItem(TOKEN);
  localStorage.removeItem(TOKEN);
  api = null;
  notices.value = [];
  session.value = "locked";
  if (why) loginError.value = why;
}

/** Runs what a person asked for, and says what went wrong. True: it went well. A token that is good no more locks the page. */
export function attempt(work) {
  return run(work, true);
}

/** As `attempt`, of what the page does by itself: that it goes well says nothing of what a person asked for before. */
export function attemptItself(work) {
  return run(work, false);
}

async function run(work, isAsked) {
  try {
    await work();
    if (isAsked || !isProblemOfAction) problem.value = "";
    return true;
  } catch (error) {
    if (error?.name === "AbortError") return false;
    if (["unauthorized", "token_expired"].includes(error.code)) lock(sentenceOf(error));
    else problem.value = sentenceOf(error);
    if (error.code === "storage_failed") trouble.value += 1;
    isProblemOfAction = isAsked;
    if (!(error instanceof RavelError)) reportError(error); // a defect of the page
    return false;
  }
}

/** The node answers again: that it did not is no news any more. */
export function forgetAbsence() {
  if (problem.value === text.errors.notRunning) problem.value = "";
}

/** Tells what was done, with what takes it back, if anything does. What one has to act on `stays` until it is dismissed. Gives its key. */
export function tell(said, undo = null, stays = false) {
  noticeCount += 1;
  const notice = { key: noticeCount, said, undo };
  notices.value = [...notices.value, notice].slice(-NOTICES_MAX);
  if (!stays) setTimeout(() => dismiss(notice.key), undo ? UNDO_MS : NOTICE_MS);
  return notice.key;
}

export function dismiss(key) {
  notices.value = notices.value.filter((one) => one.key !== key);
}

/** An error as people read it. What the API advises to programs is not for them. */
export function sentenceOf(error) {
  if (["answer_lost", "interrupted"].includes(error.code) || error.cause?.name === "TimeoutError") return text.errors.lost(text.errors.said(error.code, error.message));
  if (error.code === "not_running") return text.errors.notRunning;
  const advice = ["unauthorized", "token_expired"].includes(error.code) ? openAgain() : error.advice;
  const said = text.errors.said(error.code, String(error.message));
  return advice ? `${said} (${text.nodeSaid(advice)})` : said;
}

function openAgain() {
  return isRemote ? text.errors.pairAgain : text.errors.openAgain;
}

async function redeem(given) {
  const headers = { "Content-Type": "application/json" };
  let answer;
  try {
    answer = await fetch("/open", { method: "POST", headers, body: JSON.stringify(given) });
  } catch (error) {
    throw new RavelError("not_running", error.message);
  }
  const body = await answer.json();
  if (!answer.ok) throw new RavelError(body.error.code, body.error.message, { status: answer.status });
  return body.token;
}
