// What the page holds of a node's repos: that of its devices is in no list, and the node is not new with it.

import assert from "node:assert/strict";
import { after, test } from "node:test";

const storage = { getItem: () => null, setItem: () => {}, removeItem: () => {} };
const removals = [];
const answers = [{ name: "page", kind: "page", actions: ["read"] }];
Object.assign(globalThis, {
  location: { protocol: "http:", origin: "http://127.0.0.1:7475", hash: "" },
  localStorage: storage,
  sessionStorage: storage,
  addEventListener: () => {},
  matchMedia: () => ({ matches: false }),
  fetch: (url, { signal }) => {
    const waiting = String(url).endsWith("/healthz") ? [{}] : String(url).endsWith("/removals") ? removals : answers;
    return waiting.length
      ? Promise.resolve(Response.json(waiting.shift()))
      : new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
  },
});
const { enter, lock, notices, session } = await import("./state/session.js");
const { hasDevices, refresh, repos } = await import("./state/node.js");
const { text } = await import("./strings/opened.js");
const { change } = await import("./views/person.js");

enter("token"); // its watch of the node is never answered
while (session.value !== "open") await new Promise((resolve) => setTimeout(resolve, 0));

after(lock); // it ends the watch

async function take(list) {
  answers.push({ repos: [], gone: [], complete: false, cursor: "next", ...list });
  await refresh();
  return [repos.value.length, hasDevices.value];
}

test("a repo of devices is known until it is gone", async () => {
  const devices = { repo: "r1", of_devices: true, permission: "owner", branches: 1, revision: 1 };
  assert.deepEqual(await take({ repos: [devices], complete: true }), [0, true]);
  assert.deepEqual(await take({}), [0, true]);
  assert.deepEqual(await take({ gone: ["r1"] }), [0, false]);
  assert.deepEqual(await take({ repos: [devices] }), [0, true]);
  assert.deepEqual(await take({ complete: true }), [0, false]);
});

test("it is said how many computers of a person stayed as they are", async () => {
  const devices = [{ user: "a".repeat(52), name: "Ben", permission: "write", person: "a".repeat(52) }];
  for (const staying of [[], ["b".repeat(52)]]) {
    removals.push({ devices: [], other_devices: staying, voided: 0 });
    answers.push({ repos: [], gone: [], complete: false, cursor: "next" });
    assert.equal(await change({ repo: "r1", name: "notes" }, devices, "read", true), true);
    assert.equal(notices.value.at(-1).said, text.mayNow("Ben", text.permissions.read) + (staying.length ? text.staying(1) : ""));
  }
});
