// A window of a branch's timeline, kept right by edits alone. It grows at both ends and forgets at the other.

import { signal } from "../vendor/signals.js";

const WINDOW = 200;
const END = 2 ** 53; // behind every position
const SHOWN_MAX = 2000; // rows after which the other end is forgotten, where one looks further and further
const FOLLOWED_MAX = 2 * WINDOW; // the same while new ones come by themselves: each drawing looks at all of them
const ARRIVING_MAX = 100; // posts whose past is on its way
const VOID_SHOWN_MAX = 20;
const DRAW_MS = 100; // between two drawings, however many edits come
const DRAWN_MAX = 25; // new rows of one drawing: a key that is pressed meanwhile waits for all of them
const REST_MS = 20; // until the next ones of those that came together

/** A commit to go to, once its timeline is loaded: `{ branch, commit }`. Null: none. */
export const wanted = signal(null);

/** Puts the keyboard on a commit in its branch's timeline, else on the row that it left last: now, or when that is shown. */
export function showInTimeline(branch, commit = "") {
  wanted.value = { branch, commit };
}

export class Timeline {
  /** Of one branch. `onError` is called with what goes wrong while nobody waits. */
  constructor(api, branch, onError) {
    this.api = api;
    this.branch = branch;
    this.onError = onError;
    /** Rows, the newest first: `{ item, place, isVoid, isNew }`. Null: not loaded yet. */
    this.rows = signal(null);
    this.hasOlder = signal(false);
    this.hasNewer = signal(false);
    this.isLoading = signal(false);
    /** Newest posts whose past is on its way: `{ items, earlier, waiting }`, the newest last. Null: none. */
    this.arriving = signal(null);
    this.commits = new Map(); // id -> row
    this.start = 0; // position of the first that is shown
    this.total = 0;
    this.plan = 0;
    this.most = FOLLOWED_MAX;
    this.drawn = new Set(); // ids of the rows that are shown
    this.floor = ""; // the least place among `commits` when they were last drawn or forgotten: each edit asks for it
  }

  /** Loads the window's end and follows edits until `signal` is aborted. */
  async follow(signal) {
    for (;;) {
      const since = await this.load();
      if (signal.aborted) return;
      for await (const { name, data } of this.api.watchEdits({ branch: this.branch, since }, { signal })) {
        if (name === "edit") this.take(data);
        if (name === "reset") break; // away for too long
      }
      if (signal.aborted) return;
    }
  }

  /** Loads the window that ends before a position, by default the latest. Gives the cursor of edits to follow. */
  async load(before = END) {
    const { branch } = this;
    const window = await this.api.showTimeline({ branch, before_position: before, limit: WINDOW });
    this.commits.clear();
    this.most = FOLLOWED_MAX;
    this.start = window.items.length ? window.items[0].position : 0;
    this.total = window.total;
    for (const item of window.items) this.commits.set(item.commit, { item, place: item.place, isVoid: false });
    this.hasNewer.value = this.start + window.items.length < window.total;
    await this.#loadVoid();
    this.#draw();
    return window.cursor;
  }

  /** Asks which posts have come before their past; once that is here, loads the window's end with all of them. */
  async loadArriving() {
    const { branch } = this;
    const { arriving } = await this.api.showTimeline({ branch, before_position: END, limit: ARRIVING_MAX });
    const hasSettled = this.arriving.value && !arriving && !this.hasNewer.value;
    this.arriving.value = arriving ?? null;
    if (hasSettled) await this.load();
  }

  loadOlder() {
    return this.#grow(async () => {
      const count = Math.min(this.start, WINDOW);
      if (!count) return;
      const { branch } = this;
      this.start -= count;
      const { items } = await this.api.showTimeline({ branch, after_position: this.start - 1, limit: count });
      for (const item of items) this.commits.set(item.commit, { item, place: item.place, isVoid: false });
      this.#forget((sorted) => sorted.slice(0, -SHOWN_MAX), true);
    });
  }

  loadNewer() {
    return this.#grow(async () => {
      const { branch } = this;
      const last = this.start + this.#counting() - 1;
      const { items, total } = await this.api.showTimeline({ branch, after_position: last, limit: WINDOW });
      for (const item of items) this.commits.set(item.commit, { item, place: item.place, isVoid: false });
      this.hasNewer.value = last + 1 + items.length < total;
      this.#forget((sorted) => sorted.slice(SHOWN_MAX), false);
    });
  }

  /**
   * Goes to where commits of a moment stand, in unix seconds. Times are stated by authors, and the order is another:
   * the place is about right, as far as clocks are.
   */
  async goTo(seconds) {
    const { branch, total } = this;
    let [low, high] = [0, total];
    while (low < high) {
      const middle = Math.floor((low + high) / 2);
      const { items } = await this.api.showTimeline({ branch, after_position: middle - 1, limit: 1 });
      if (items.length && items[0].time < seconds) low = middle + 1;
      else high = middle;
    }
    await this.load(Math.min(low + WINDOW / 2, END));
    const sorted = this.rows.value.filter((row) => !row.isVoid);
    return sorted.findLast((row) => row.item.time >= seconds)?.item.commit ?? sorted[0]?.item.commit;
  }

  /** Goes to where a commit stands; whether it does. */
  async goToCommit(commit) {
    if (this.commits.has(commit)) return true;
    const { position } = await this.api.showCommit({ commit });
    if (position == null) return false; // void, or of another branch by now
    await this.load(Math.min(position + 1 + WINDOW / 2, END));
    return this.commits.has(commit);
  }

  /** Follows one edit. It may have been seen already: in the window, or before a break. */
  take(edit) {
    const known = this.commits.get(edit.commit);
    const about = (edit.item ?? known?.item)?.edits ?? (edit.item ?? known?.item)?.deletes;
    if (about) this.renew(about).catch(this.onError);
    if (edit.edit === "insert") this.total += 1;
    if (edit.edit === "remove") {
      if (known) this.commits.set(edit.commit, { ...known, isVoid: true });
    } else if (known) {
      this.commits.set(edit.commit, { ...known, item: edit.item ?? known.item, place: edit.place, isVoid: false });
    } else if (edit.item && (this.start === 0 || edit.place > this.floor)) {
      if (this.hasNewer.value && edit.place > this.#newest()) return; // behind the window
      this.commits.set(edit.commit, { item: edit.item, place: edit.place, isVoid: false, isNew: true });
      if (!this.hasNewer.value && this.commits.size > this.most + SHOWN_MAX) this.#forgetOldest(); // none was drawn for long
    } else if (edit.edit === "insert") {
      this.start += 1; // before the window
    }
    // A past that comes would push away the newest posts, which stand below it, ten times a second.
    if (!this.arriving.value || this.hasNewer.value) this.#plan();
  }

  /** Asks again what a post says: it was edited, deleted or hidden, or is so no more. */
  async renew(commit) {
    if (!this.commits.has(commit)) return;
    const item = await this.api.showCommit({ commit });
    const known = this.commits.get(commit);
    if (!known || !item.kind) return;
    this.commits.set(commit, { ...known, item });
    this.#plan();
  }

  async #grow(work) {
    if (this.isLoading.value) return;
    this.isLoading.value = true;
    this.most = Math.min(Math.max(this.most, this.commits.size + WINDOW + FOLLOWED_MAX), SHOWN_MAX);
    try {
      await work();
      this.#draw();
    } finally {
      this.isLoading.value = false;
    }
  }

  /** Lets go what is too much: the newest where older ones came (`isNewest`), else the oldest. */
  #forget(choose, isNewest) {
    if (this.commits.size <= SHOWN_MAX) return;
    const sorted = this.#sorted();
    const gone = isNewest ? sorted.slice(0, sorted.length - SHOWN_MAX) : choose(sorted);
    for (const row of gone) {
      this.commits.delete(row.item.commit);
      if (!isNewest && !row.isVoid) this.start += 1;
    }
    if (isNewest) this.hasNewer.value = true;
  }

  #forgetOldest() {
    if (this.commits.size <= this.most) return;
    for (const row of this.#sorted().slice(this.most)) {
      this.commits.delete(row.item.commit);
      if (!row.isVoid) this.start += 1;
    }
    this.floor = this.#oldest();
  }

  async #loadVoid() {
    const { branch } = this;
    const { voids } = await this.api.listVoids({ branch }).catch((error) => {
      if (error.code === "damaged") return { voids: [] }; // nobody can tell now; what stands in the timeline is known
      throw error;
    });
    const oldest = this.start ? this.#oldest() : "";
    const items = await Promise.all(
      voids.slice(-VOID_SHOWN_MAX).map(({ commit }) => this.api.showCommit({ commit })),
    );
    for (const item of items) {
      const isInside = item.place > oldest && !(this.hasNewer.value && item.place > this.#newest());
      if (isInside) this.commits.set(item.commit, { item, place: item.place, isVoid: true });
    }
  }

  #oldest() {
    let oldest = "~";
    for (const { place } of this.commits.values()) if (place < oldest) oldest = place;
    return oldest;
  }

  #newest() {
    let newest = "";
    for (const { place } of this.commits.values()) if (place > newest) newest = place;
    return newest;
  }

  #counting() {
    let count = 0;
    for (const { isVoid } of this.commits.values()) count += isVoid ? 0 : 1;
    return count;
  }

  #sorted() {
    return [...this.commits.values()].sort((a, b) => (a.place < b.place ? 1 : -1));
  }

  #plan(wait = DRAW_MS) {
    if (this.plan) return;
    this.plan = setTimeout(() => this.#draw(DRAWN_MAX), wait);
  }

  /** Shows what there is, but of new rows at most `most`: the lowest, so that none is skipped. The others follow. */
  #draw(most = Infinity) {
    clearTimeout(this.plan);
    this.plan = 0;
    if (!this.hasNewer.value) this.#forgetOldest();
    this.floor = this.#oldest();
    let rows = this.#sorted();
    const fresh = rows.filter(({ item }) => !this.drawn.has(item.commit));
    if (fresh.length > most) {
      const later = new Set(fresh.slice(0, -most));
      rows = rows.filter((row) => !later.has(row));
      this.#plan(REST_MS);
    }
    this.drawn = new Set(rows.map(({ item }) => item.commit));
    this.rows.value = rows;
    this.hasOlder.value = this.start > 0;
  }
}
