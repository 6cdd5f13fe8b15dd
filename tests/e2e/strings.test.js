// Texts of the page that depend on what happened.

import assert from "node:assert/strict";
import { test } from "node:test";
import { text } from "./strings/en.js";

test("a transfer is told with what there is, its rate and the time left, as far as these are known", () => {
  const progress = { direction: "receiving", done: 25030, total: 60001, rate: 5600, seconds_left: 130 };
  const topic = { state: "receiving", progress, stalled_because: null };
  assert.equal(text.transfer(topic), "receiving, 25030 of 60001 commits, 5600/s, 2 min left");
  const unknown = { ...progress, total: null, rate: null, seconds_left: null };
  assert.equal(text.transfer({ ...topic, progress: unknown }), "receiving, 25030 of an unknown number of commits");
  assert.equal(text.transfer({ ...topic, state: "comparing", progress: null }), "comparing");
  assert.match(text.transferred({ ...progress, seconds_left: 7500 }), /2 h 5 min left$/);
});

test("a full account has another cause for a link than for what is stored", () => {
  assert.match(text.refusedBecause("link", "account_full"), /as many nodes as/);
  for (const what of ["topic", "commits", "file"]) assert.match(text.refusedBecause(what, "account_full"), /quota/);
  assert.match(text.refusedBecause("link", "used_link"), /Another node/);
  assert.equal(text.refusedBecause("file", "new_reason"), "new_reason");
});
