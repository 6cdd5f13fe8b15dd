// Changes of one document as one row of a timeline, whose key stays while commits join it.

import assert from "node:assert/strict";
import { test } from "node:test";
import { drawnAs, groupsOf, keysOf } from "./parts/groups.js";

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
  assert.deepEqual(drawnAs(newer), [
    { commit: "b", acks: ["post0"] },
    { commit: "post0", acks: [] },
  ]);
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
