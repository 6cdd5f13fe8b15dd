// Changes of one document, and a message with its files, as one row of a timeline, whose key stays while commits join it.

import assert from "node:assert/strict";
import { test } from "node:test";
import { filesOf, groupsOf, keysOf, threadsOf } from "./parts/groups.js";

/** Rows of commits, the newest first; all change one set, but for `post`. */
function rowsOf(...commits) {
  const kind = (commit) => (commit.startsWith("post") ? "post" : "set");
  return commits.map((commit, index) => ({ item: { commit, kind: kind(commit), time: -index, acks: commits.slice(index + 1, index + 2) } }));
}

const shownAs = (rows, before) => groupsOf(rows, new Set(keysOf(before).values()));
const keys = (groups) => groups.map(({ key }) => key);

test("a group keeps its key while newer and older commits join it", () => {
  const first = groupsOf(rowsOf("post1", "c", "b"));
  assert.deepEqual(keys(first), ["post1", "b"]);
  const older = shownAs(rowsOf("post1", "c", "b", "a", "post0"), first);
  assert.deepEqual(keys(older), ["post1", "b", "post0"]);
  const newer = shownAs(rowsOf("d", "c", "b", "a", "post0"), older);
  assert.deepEqual(keys(newer), ["b", "post0"]);
});

test("changes of a document of an app are one row", () => {
  const rows = ["json", "json-squeeze", "json"].map((kind, time) => ({ item: { commit: `c${time}`, kind, time, document: "board" } }));
  assert.deepEqual(groupsOf(rows).map(({ document, rows: of }) => [document, of.length]), [["json", 3]]);
});

test("changes that a merge carried over are one row, and posts among them are not", () => {
  const items = [{}, { text: "hello" }, {}, {}, { hidden_by: "ann" }, { edits: "c0" }];
  const rows = items.map((item, time) => ({ item: { commit: `c${time}`, kind: "carried", time, ...item } }));
  const shown = groupsOf(rows).map(({ document, rows: of }) => [document, of.length]);
  assert.deepEqual(shown, [["carried", 1], ["", 1], ["carried", 2], ["", 1], ["", 1]]);
});

test("a group that loses the commit of its key has another of its own", () => {
  const first = groupsOf(rowsOf("c", "b", "a"));
  const second = shownAs(rowsOf("c", "b"), first);
  assert.deepEqual(keys(second), ["b"]);
});

test("each of two groups that were one has a key of its own", () => {
  const first = groupsOf(rowsOf("d", "c", "b", "a"));
  const parted = shownAs(rowsOf("d", "c", "post", "b", "a"), first);
  assert.deepEqual(keys(parted), ["c", "post", "a"]);
});

test("groups that become one have one key", () => {
  const first = groupsOf(rowsOf("d", "c", "post", "b", "a"));
  const joined = shownAs(rowsOf("d", "c", "b", "a"), first);
  assert.deepEqual(keys(joined), ["c"]);
  assert.deepEqual([...keysOf(joined).values()], ["c", "c", "c", "c"]);
});

test("changes of another list of the branch are a group of their own", () => {
  const [d, c, b, a] = rowsOf("d", "c", "b", "a");
  for (const row of [d, c]) row.item.document = "shopping";
  assert.deepEqual(groupsOf([d, c, b, a]).map(({ rows }) => rows.length), [2, 2]);
});

/** A commit of a message: files, or a post. */
function part(commit, kind, time, author = "ann", more = {}) {
  return { item: { commit, kind, time, author, ...(kind === "files" && { files: ["a.png"] }), ...more } };
}

test("files that came just before a post of the same author are of its message", () => {
  const rows = [part("post", "post", 100), part("b", "files", 99), part("a", "files", 95), part("old", "files", 30), part("other", "files", 29, "bob")];
  const groups = groupsOf(rows);
  assert.deepEqual(groups.map(({ rows: all }) => all.map(({ item }) => item.commit)), [["post", "b", "a"], ["old"], ["other"]]);
  assert.deepEqual(groups.map(({ main }) => main.item.commit), ["post", "old", "other"]);
});

test("files that a post names are of its message, whatever stands between, and no others are", () => {
  const attachments = ["b", "a"].map((commit) => ({ commit, files: [{ name: `${commit}.png`, file: `id-${commit}`, size: 1 }] }));
  const rows = [part("post", "post", 300, "ann", { attachments }), part("near", "files", 299), part("bob", "post", 200, "bob"), part("b", "files", 100), part("a", "files", 0)];
  const groups = groupsOf(rows);
  assert.deepEqual(groups.map(({ rows: all }) => all.map(({ item }) => item.commit)), [["post", "b", "a"], ["near"], ["bob"]]);
  assert.deepEqual(filesOf(rows[0], groups[0].rows).map(({ commit, file }) => [commit, file]), [["b", "id-b"], ["a", "id-a"]]);
  assert.deepEqual(filesOf(rows[1], groups[1].rows), [{ commit: "near", name: "a.png", file: "a.png" }]);
});

test("a post that is void, edits another or was deleted takes no files to it", () => {
  for (const more of [{ edits: "x" }, { deletes: "x" }, { deleted: true }, { hidden_by: "bob" }, { damaged: true }]) {
    assert.equal(groupsOf([part("post", "post", 100, "ann", more), part("a", "files", 99)]).length, 2);
  }
  assert.equal(groupsOf([{ ...part("post", "post", 100), isVoid: true }, part("a", "files", 99)]).length, 2);
});

test("a thread counts the replies that say something, and shows who answered last", () => {
  const reply = (commit, author, more = {}) => ({ item: { commit, author, author_name: author, time: 0, reply_to: { commit: "post", thread: "post" }, ...more } });
  const rows = [reply("r5", "ann"), { ...reply("r4", "void"), isVoid: true }, reply("r3", "gone", { deleted: true }), reply("r2", "ben"), reply("r1", "ann"), { item: { commit: "post", author: "ann" } }];
  const threads = threadsOf(rows);
  assert.deepEqual([...threads.keys()], ["post"]);
  const { count, last, people } = threads.get("post");
  assert.deepEqual([count, last.commit, people.map(({ id }) => id)], [3, "r5", ["ann", "ben"]]);
  assert.equal(threadsOf(rows.slice(1)).get("post").key, "2 r2");
});
