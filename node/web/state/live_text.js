// One text that is open: its Yjs document, what of it the node has not saved yet, and who else has it open.
//
// What is typed goes to the node in pushes, one at a time; the node gathers these into commits. Until the node has said that a
// push is in the text, its changes are kept here, and in the browser's database, so that neither a node that is away nor a
// closed tab loses them.
//
// The document types under a client id that the node gives, and under no other: words under another id are nobody's. A document
// that is made anew gets a new id, for what the old one said may count again.

import { keep, takeKept } from "./kept_changes.js";
import { text } from "../strings/opened.js";
import { signal } from "../vendor/signals.js";

const PUSH_MS = 300; // between a key and its push: several keys are one update
const RETRY_MS = 2000; // before the first new attempt; doubled for each further one
const RETRY_MS_MAX = 60_000; // the stream tells when the node is back, and then nothing waits
const TELL_MS = 60; // between two statements of where the cursor is, and what is typed there: others see a key before it is saved
const TYPED_MAX = 64; // characters that are told before they are saved
const TELL_AGAIN_MS = 10_000; // others forget it after thirty seconds
const KEEP_MS = 500;
const HIDDEN_MS = 30_000; // as long as others remember who fell silent
const PUSH_SIZE_MAX = 256 * 1024; // bytes of changes in one push, unless one change is larger
const SESSION_SIZE = 8;
const TITLES = "ravel-titles"; // of the document: the name of each text -> its title
const GONE = "ravel-gone"; // where the node keeps what a program had deleted before it was pushed
const NODE = "node"; // the origin of changes that are saved
/** The text that every document has. */
export const FIRST_ROOT = "text";
/** Answers after which the same push would be refused again. */
const FINAL = ["bad_input", "bad_request", "bad_shape", "too_large", "not_permitted", "insufficient_scope", "not_found", "incomplete", "unauthorized", "token_expired"];

export class LiveText {
  /** Of a branch. `Y` is the library. `onError` is called with what goes wrong while nobody waits, `onEnd` at the end. */
  constructor({ api, branch, mayWrite, Y, onError, onEnd }) {
    this.mayWrite = mayWrite;
    this.onEnd = onEnd;
    this.api = api;
    this.branch = branch;
    this.Y = Y;
    this.onError = onError;
    this.session = crypto.getRandomValues(new Uint8Array(SESSION_SIZE));
    this.unsaved = [];
    /** The client id under which the document types; 0 while it has none, and must not be typed into. */
    this.client = signal(0);
    /** Whether the text came, and an id with it where this user may write. */
    this.isReady = signal(false);
    /** The document; another one after what it was made of counts no more. Null: nothing came yet. */
    this.document = signal(null);
    /** Counted up with each change of the document. */
    this.changes = signal(0);
    /** How many changes the node has not saved. */
    this.unsavedCount = signal(0);
    this.isLive = signal(false);
    /** Why the node takes no changes, if it refused one. */
    this.refusal = signal("");
    /** Whether the browser keeps what is unsaved. */
    this.isKept = signal(true);
    this.failures = 0; // pushes in a row that came to nothing
    this.madeCount = 0; // changes made here, saved or not
    this.keptCount = 0; // of these, the first so many were kept once
    this.others = signal([]);
    this.ends = new AbortController();
    this.isClosed = false;
    this.told = null;
    this.first = true;
  }

  /** Follows the text until it is closed. */
  async open() {
    this.make();
    const { signal: ended } = this.ends;
    const found = await takeKept(this.branch).catch(() => null);
    if (ended.aborted) return;
    if (found?.changes.length) {
      // What they build on is not here yet, so the document tells nothing of them.
      this.unsaved.push(...found.changes);
      this.unsavedCount.value = this.unsaved.length;
      for (const change of found.changes) this.Y.applyUpdate(this.document.value, change, NODE);
      this.left = found; // by other tabs: forgotten there once it is kept here, or saved
      this.keepSoon();
    }
    this.again = setInterval(() => this.tell(), TELL_AGAIN_MS);
    document.addEventListener("visibilitychange", () => this.rest(), { signal: ended });
    const onState = (isLive) => {
      this.isLive.value = isLive;
      this.others.value = []; // until the stream tells who is here now
      if (!isLive) return;
      this.first = true;
      this.tell();
      this.pushSoon(0);
    };
    const values = { branch: this.branch, session: urlSafe(this.session) };
    while (!ended.aborted) {
      this.resting = new AbortController();
      const signal = AbortSignal.any([ended, this.resting.signal]);
      for await (const { name, data } of this.api.watchText(values, { signal, onState })) {
        try {
          if (name === "presence") this.others.value = data.others;
          if (name === "update") await this.take(bytesOf(data.update));
          if (name === "whole") await this.replace(bytesOf(data.update));
        } catch (error) {
          reportError(error);
          this.onError(new Error(text.textUnreadable)); // and what comes later is shown
        }
      }
      if (!ended.aborted && document.hidden) await new Promise((wake) => (this.wake = wake));
    }
  }

  /** A tab that nobody sees follows nothing after a while: browsers open six connections to one node, for all tabs. */
  rest() {
    clearTimeout(this.hiding);
    if (document.hidden) this.hiding = setTimeout(() => this.resting.abort(), HIDDEN_MS);
    else this.wake?.();
  }

  /** The editor is gone. What is unsaved goes to the node still, if that answers. */
  close() {
    this.isClosed = true;
    clearInterval(this.again);
    this.flush();
    this.settle();
  }

  /** Ends a text without an editor once the node has all of it; or the browser, where the node takes it not. */
  settle() {
    if (!this.isClosed || this.isPushing) return;
    if (!this.unsaved.length || (this.isSafe && (this.refusal.value || this.ends.signal.aborted))) this.end();
  }

  end() {
    this.stop();
    this.onEnd(this);
  }

  stop() {
    clearInterval(this.again);
    clearTimeout(this.pushing);
    this.pushing = null;
    clearTimeout(this.hiding);
    this.ends.abort();
    this.wake?.();
  }

  /** The page is locked: this sends nothing more. Gives how many changes are in this tab alone: it must stay open for these. */
  async pause() {
    this.isClosed = true;
    this.stop();
    await this.flush();
    this.settle();
    return this.isSafe ? 0 : this.unsaved.length;
  }

  /** The page is open again: what `pause` left over goes to the node. */
  resume(api) {
    if (!this.ends.signal.aborted) return;
    this.api = api;
    this.ends = new AbortController();
    this.refusal.value = "";
    this.pushSoon(0);
  }

  /** Whether neither a closed tab nor a node that is away loses anything. */
  get isSafe() {
    return !this.unsaved.length || (this.isKept.value && this.keptCount === this.madeCount);
  }

  /** A new document, shown once these updates are in it: one that cannot be read leaves the old one. It types under `client`. */
  make(updates = [], client = 0) {
    const { Y } = this;
    const document = new Y.Doc();
    document.getMap(TITLES);
    document.getText(FIRST_ROOT);
    document.on("update", (update, origin) => {
      this.changes.value += 1;
      if (origin === NODE) return;
      this.unsaved.push(update);
      this.madeCount += 1;
      this.unsavedCount.value = this.unsaved.length;
      this.keepSoon();
      this.pushSoon(PUSH_MS);
    });
    for (const update of updates) Y.applyUpdate(document, update, NODE);
    if (client) document.clientID = client;
    this.client.value = client;
    this.document.value = document;
  }

  /** A client id that no other editor has; 0 where the node gives none. */
  async askClient() {
    const { signal: ended } = this.ends;
    for (let failures = 1; this.mayWrite && !ended.aborted; failures += 1) {
      try {
        return (await this.api.openText({ branch: this.branch }, { signal: ended })).client;
      } catch (error) {
        if (ended.aborted) return 0;
        if (FINAL.includes(error.code)) {
          this.onError(error);
          return 0;
        }
        await new Promise((wake) => setTimeout(wake, retryMs(error, failures)));
      }
    }
    return 0;
  }

  async take(update) {
    const { Y } = this;
    if (this.first && this.lacks(update)) return this.replace(update);
    this.first = false;
    Y.applyUpdate(this.document.value, update, NODE);
    if (!this.isReady.value) {
      const client = await this.askClient();
      if (client) this.document.value.clientID = client;
      this.client.value = client;
      this.isReady.value = true;
    }
    // Yjs takes another id by itself where words come back under this one.
    if (this.client.value) this.document.value.clientID = this.client.value;
    return undefined;
  }

  /** Whether the whole text, as it came after a pause, lacks what this document has: that counts no more. */
  lacks(whole) {
    const { Y } = this;
    const fresh = new Y.Doc();
    for (const update of [whole, ...this.unsaved]) Y.applyUpdate(fresh, update);
    const there = Y.decodeStateVector(Y.encodeStateVector(fresh));
    const here = Y.decodeStateVector(Y.encodeStateVector(this.document.value));
    return [...here].some(([client, clock]) => (there.get(client) ?? 0) < clock);
  }

  /** Begins anew with a whole text, and what is unsaved on top of it. */
  async replace(whole) {
    this.first = false;
    const client = await this.askClient();
    this.make([whole, ...this.unsaved], client);
    this.isReady.value = true;
  }

  // --- saving ---

  pushSoon(ms) {
    if (this.isPushing || !this.unsaved.length || this.refusal.value || this.ends.signal.aborted) return;
    const at = performance.now() + ms;
    if (this.pushing && this.pushAt <= at) return; // else who types without a pause would save nothing
    clearTimeout(this.pushing);
    this.pushAt = at;
    this.pushing = setTimeout(() => {
      this.pushing = null;
      this.push();
    }, ms);
  }

  async push() {
    const { signal: ended } = this.ends;
    if (this.isPushing || !this.unsaved.length || ended.aborted) return;
    this.isPushing = true;
    let wait = 0;
    try {
      let count = 0;
      let size = 0;
      while (count < this.unsaved.length && (!count || size + this.unsaved[count].length <= PUSH_SIZE_MAX)) {
        size += this.unsaved[count].length;
        count += 1;
      }
      const update = this.Y.mergeUpdates(this.unsaved.slice(0, count));
      const values = { branch: this.branch, update: textOf(update), gather: true };
      const { has } = await this.api.pushText(values, { once: true, signal: ended });
      this.failures = 0;
      if (this.misses(update, has)) return this.refuse(new Error(text.textMissed));
      this.unsaved.splice(0, count);
      this.unsavedCount.value = this.unsaved.length;
      this.keepSoon();
      this.tellAgainSoon(); // the cursor alone, or what was typed meanwhile
    } catch (error) {
      if (ended.aborted) return;
      if (FINAL.includes(error.code)) this.refuse(error);
      this.failures += 1;
      wait = retryMs(error, this.failures);
    } finally {
      this.isPushing = false;
      this.pushSoon(wait);
      this.settle();
    }
    return undefined;
  }

  /** Whether the text that the node has shows less than was pushed. */
  misses(update, has) {
    const shown = new Map(has.map(({ client, clock }) => [client, clock]));
    return [...this.Y.parseUpdateMeta(update).to].some(([client, clock]) => (shown.get(client) ?? 0) < clock);
  }

  refuse(error) {
    this.refusal.value = text.errors.said(error.code, error.message);
    this.onError(error);
  }

  /** After a refusal: tries once more. */
  tryAgain() {
    this.refusal.value = "";
    this.pushSoon(0);
  }

  /** The words of what is unsaved, as they were typed. */
  get unsavedWords() {
    if (!this.unsaved.length) return "";
    const { structs } = this.Y.decodeUpdate(this.Y.mergeUpdates(this.unsaved));
    return structs.map((one) => one.content?.str ?? "").join("");
  }

  /** After a refusal: types the words of what is unsaved at the end of a text, in place of that. */
  async typeAgain(root) {
    const { update } = await this.api.followText({ branch: this.branch });
    const client = await this.askClient();
    if (!client) return;
    const words = this.unsavedWords;
    this.unsaved = [];
    this.unsavedCount.value = 0;
    this.refusal.value = "";
    this.make([bytesOf(update)], client);
    const type = this.document.value.getText(root);
    type.insert(type.length, words);
    this.keepSoon();
  }

  keepSoon() {
    this.keeping ??= setTimeout(() => this.keep(), KEEP_MS);
  }

  /** Keeps at once what would be kept soon. */
  async flush() {
    if (this.keeping || !this.isSafe) await this.keep();
  }

  async keep() {
    clearTimeout(this.keeping);
    this.keeping = null;
    const count = this.madeCount;
    const changes = this.unsaved.length ? [this.Y.mergeUpdates(this.unsaved)] : [];
    this.isKept.value = await keep(this.branch, urlSafe(this.session), changes).catch(() => false);
    if (this.isKept.value) {
      this.keptCount = Math.max(this.keptCount, count); // two may be under way
      this.left?.forget();
      this.left = null;
    }
    this.settle();
  }

  // --- texts of the document ---

  /** All texts: `{ root, title }`, by title. */
  get texts() {
    const document = this.document.value;
    const titles = document.getMap(TITLES);
    const roots = new Set([FIRST_ROOT, ...titles.keys()]);
    for (const [root, type] of document.share) if (root !== TITLES && this.holdsText(type)) roots.add(root);
    for (const root of [TITLES, GONE]) roots.delete(root); // others may give them titles; they are no texts
    const found = [...roots].map((root) => ({ root, title: String(titles.get(root) ?? root) }));
    return found.sort((one, other) => (one.title < other.title ? -1 : 1));
  }

  holdsText(type) {
    return type instanceof this.Y.Text || (type.constructor === this.Y.AbstractType && type._map.size === 0 && type._start !== null);
  }

  rename(root, title) {
    this.document.value.getMap(TITLES).set(root, title);
  }

  /** A new text; gives the name of its root. */
  add(title) {
    const taken = new Set(this.texts.map((one) => one.root));
    const root = nameFor(title, taken);
    this.rename(root, title);
    return root;
  }

  // --- who is here ---

  /** States where the cursor is, soon: encoded relative positions, or none. */
  tellSoon(root, anchor, head) {
    this.cursor = { root, anchor: anchor ? textOf(anchor) : "", head: head ? textOf(head) : "" };
    this.tellAgainSoon();
  }

  tellAgainSoon() {
    this.telling ??= setTimeout(() => {
      this.telling = undefined;
      if (JSON.stringify(this.standing()) !== this.told) this.tell();
    }, TELL_MS);
  }

  /** The cursor; while something is typed and not saved, where that begins, what it is, and which part of the document. */
  standing() {
    if (!this.unsaved.length || !this.client.value) return this.cursor;
    const { Y } = this;
    const { structs, ds } = Y.decodeUpdate(Y.mergeUpdates(this.unsaved));
    const [first] = structs;
    const own = (one, at) => one.id.client === this.client.value && typeof one.content?.str === "string" && (!at || one.origin?.clock === one.id.clock - 1);
    const end = structs.findIndex((one, at) => !own(one, at));
    const words = structs.slice(0, end < 0 ? undefined : end).map((one) => one.content.str).join("");
    if (!words || ds.clients.size || (first.parent ?? this.cursor.root) !== this.cursor.root) return this.cursor; // others see it once it is saved
    const { client, clock } = first.id;
    const type = this.document.value.getText(this.cursor.root);
    const before = first.origin
      ? Y.createRelativePositionFromJSON({ item: first.origin, assoc: -1 })
      : Y.createRelativePositionFromTypeIndex(type, 0, -1);
    const place = textOf(Y.encodeRelativePosition(before));
    return { ...this.cursor, anchor: place, head: place, typed: [...words].slice(0, TYPED_MAX).join(""), client, clock };
  }

  async tell() {
    if (!this.cursor || this.isClosed || !this.isLive.value) return;
    const standing = this.standing();
    this.told = JSON.stringify(standing);
    const values = { branch: this.branch, session: textOf(this.session), ...standing };
    await this.api.tellPresence(values, { once: true, signal: this.ends.signal }).catch(() => {}); // told again soon
  }
}

/** A name for a root that is free, as short as names of roots are. */
export function nameFor(title, taken) {
  const base = [...title].slice(0, 56).join("") || FIRST_ROOT;
  for (let number = 1; ; number += 1) {
    const name = number === 1 ? base : `${base} ${number}`;
    if (!taken.has(name) && name !== TITLES && name !== GONE) return name;
  }
}

export function bytesOf(encoded) {
  return Uint8Array.from(atob(encoded), (one) => one.charCodeAt(0));
}

function textOf(bytes) {
  let binary = "";
  for (let start = 0; start < bytes.length; start += 0x8000) binary += String.fromCharCode(...bytes.subarray(start, start + 0x8000));
  return btoa(binary);
}

/** How long to wait after so many failures in a row. A busy node says how long at least. */
function retryMs(error, failures) {
  const most = Math.min(RETRY_MS * 2 ** Math.min(failures - 1, 10), RETRY_MS_MAX);
  return Math.max(error.retryAfterMs ?? 0, most * (0.5 + Math.random() / 2));
}

function urlSafe(bytes) {
  return textOf(bytes).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}
