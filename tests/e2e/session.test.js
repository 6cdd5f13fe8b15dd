// The page's session, while answers of the node are under way.

import assert from "node:assert/strict";
import { test } from "node:test";

function storage() {
  const held = new Map();
  return {
    getItem: (name) => held.get(name) ?? null,
    setItem: (name, value) => held.set(name, value),
    removeItem: (name) => held.delete(name),
  };
}

const asked = [];
Object.assign(globalThis, {
  location: { protocol: "http:", origin: "http://127.0.0.1:7475", hash: "" },
  localStorage: storage(),
  sessionStorage: storage(),
  fetch: () => new Promise((resolve) => asked.push(resolve)),
});
const { enter, lock, onOpen, session } = await import("./state/session.js");
let opened = 0;
onOpen(() => {
  opened += 1;
});

const later = () => new Promise((resolve) => setTimeout(resolve, 0));
async function asks(count) {
  while (asked.length < count) await later();
}
function answer(status = 200) {
  const good = { name: "page", kind: "page", actions: ["read"] };
  const bad = { error: { code: "unauthorized", message: "no" } };
  asked.shift()(Response.json(status === 200 ? good : bad, { status }));
}

test("a page that was locked meanwhile stays locked", async () => {
  const entered = enter("one");
  await asks(1);
  lock();
  answer();
  await entered;
  assert.deepEqual([session.value, opened], ["locked", 0]);
  assert.equal(sessionStorage.getItem("ravel-token"), null);
});

test("the last token counts, and the page opens once", async () => {
  const entered = [enter("one"), enter("two")];
  await asks(2);
  answer(401);
  answer();
  await Promise.all(entered);
  assert.deepEqual([session.value, opened], ["open", 1]);
  assert.equal(sessionStorage.getItem("ravel-token"), "two");
});

test("a node that is busy now does not lock the page", async () => {
  const entered = enter("three");
  await asks(1);
  asked.shift()(Response.json({ error: { code: "busy", message: "as many as may" } }, { status: 503 }));
  await entered;
  assert.deepEqual([session.value, sessionStorage.getItem("ravel-token")], ["away", "three"]);
  const again = enter("three"); // as the timer does
  await asks(1);
  answer();
  await again;
  assert.deepEqual([session.value, opened], ["open", 2]);
});
