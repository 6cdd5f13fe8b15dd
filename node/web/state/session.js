// Who looks: the token of this tab, the client made with it, and what the last action failed with.

import { RavelError, connect } from "../client/ravel.js";
import { text } from "../strings/en.js";
import { signal } from "../vendor/signals.js";

const TOKEN = "ravel-token"; // in this tab's session storage, and nowhere else
const NOTICE_MS = 12_000; // how long an undo is offered
const NOTICES_MAX = 3;

/** `opening`, `locked` or `open`. */
export const session = signal("opening");
/** Why the page is locked, and what the last action failed with. Empty: nothing. */
export const loginError = signal("");
export const problem = signal("");
/** What was done lately: `{ key, said, undo }`; `undo` may be null. */
export const notices = signal([]);
/** What the token may do (docs/reference/api.md#tokens): a page of `ravel open` has all actions, a pasted token may not. */
export const actions = signal([]);
/** The client, while the page is open. */
export let api = null;

let ends = new AbortController();
let noticeCount = 0;
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
      sessionStorage.setItem(TOKEN, await redeem(code));
    } catch (error) {
      loginError.value = sentenceOf(error);
    }
  }
  const token = sessionStorage.getItem(TOKEN);
  if (token) await enter(token);
  else lock();
}

/** Opens the page with a token, if the node knows it. */
export async function enter(token) {
  loginError.value = "";
  api = connect({ token });
  try {
    actions.value = (await api.showToken()).may;
  } catch (error) {
    if (error.code === "not_running") {
      loginError.value = sentenceOf(error);
      session.value = "locked"; // the token may be good: a reload tries it again
    } else {
      lock(sentenceOf(error));
    }
    return;
  }
  sessionStorage.setItem(TOKEN, token);
  session.value = "open";
  problem.value = "";
  ends = new AbortController();
  for (const work of beginnings) attempt(() => work(ends.signal));
}

export function lock(why = "") {
  ends.abort();
  sessionStorage.removeItem(TOKEN);
  api = null;
  notices.value = [];
  session.value = "locked";
  if (why) loginError.value = why;
}

/** Runs what may fail, and says what went wrong. True: it went well. A token that is good no more locks the page. */
export async function attempt(work) {
  try {
    await work();
    problem.value = "";
    return true;
  } catch (error) {
    if (error?.name === "AbortError") return false;
    if (["unauthorized", "token_expired"].includes(error.code)) lock(sentenceOf(error));
    else problem.value = sentenceOf(error);
    if (!(error instanceof RavelError)) reportError(error); // a defect of the page
    return false;
  }
}

/** Tells what was done, with what takes it back, if anything does. */
export function tell(said, undo = null) {
  noticeCount += 1;
  const notice = { key: noticeCount, said, undo };
  notices.value = [...notices.value, notice].slice(-NOTICES_MAX);
  setTimeout(() => dismiss(notice.key), NOTICE_MS);
}

export function dismiss(key) {
  notices.value = notices.value.filter((one) => one.key !== key);
}

/** An error as people read it. What the API advises to programs is not for them. */
export function sentenceOf(error) {
  if (["answer_lost", "interrupted"].includes(error.code) || error.cause?.name === "TimeoutError") return text.errors.lost(error.message);
  if (error.code === "not_running") return text.errors.notRunning;
  const advice = ["unauthorized", "token_expired"].includes(error.code) ? text.errors.openAgain : error.advice;
  return advice ? `${error.message} (${advice})` : String(error.message);
}

async function redeem(code) {
  const headers = { "Content-Type": "application/json" };
  let answer;
  try {
    answer = await fetch("/open", { method: "POST", headers, body: JSON.stringify({ code }) });
  } catch (error) {
    throw new RavelError("not_running", error.message);
  }
  const body = await answer.json();
  if (!answer.ok) throw new RavelError(body.error.code, body.error.message, { status: answer.status });
  return body.token;
}
