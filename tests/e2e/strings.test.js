// Texts of the page that depend on what happened.

import assert from "node:assert/strict";
import { test } from "node:test";
import { text } from "./strings/en.js";

test("a full account has another cause for a link than for what is stored", () => {
  assert.match(text.refusedBecause("link", "account_full"), /as many nodes as/);
  for (const what of ["topic", "commits", "file"]) assert.match(text.refusedBecause(what, "account_full"), /quota/);
  assert.match(text.refusedBecause("link", "used_link"), /Another node/);
  assert.equal(text.refusedBecause("file", "new_reason"), "new_reason");
});
