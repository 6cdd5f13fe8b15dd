// First sync of Scuttlebutt's usual pair, ssb-db2 and ssb-ebt: two programs on the loopback, of which one has one feed.
//
//   node ssb_first_sync.js [messages]
//
// A process writes so many small signed messages and listens. Another, whose log is empty, requests the feed and dials.
// Prints one line of JSON: seconds from the dial to the first message in the newcomer's log and to the last, and messages
// a second from the first to the last. Both logs are in a temporary folder, which is removed.
// `benchmarks/bench_peers.py` runs this beside Ravel's first sync.
"use strict";

const { fork } = require("child_process");
const fs = require("fs");
const os = require("os");
const path = require("path");

const caps = require("ssb-caps");
const keys = require("ssb-keys");
const SecretStack = require("secret-stack");

const MESSAGE_COUNT = Number(process.argv[2] ?? 5000);
const GIVE_UP_MS = 300_000;
// Messages wait so long to be checked together. By default 250 ms: the first of a feed then enters the log with the last.
const BATCH_MS = 20;

function start(folder) {
  const App = SecretStack({ caps })
    .use(require("ssb-db2/core"))
    .use(require("ssb-classic"))
    .use(require("ssb-db2/compat/ebt"))
    .use(require("ssb-ebt"));
  return App({
    path: folder,
    keys: keys.generate(),
    db2: { addBatchThrottle: BATCH_MS },
    connections: {
      incoming: { net: [{ scope: "device", transform: "shs", port: 0, host: "127.0.0.1" }] },
      outgoing: { net: [{ transform: "shs" }] },
    },
  });
}

/** Write a feed, and tell the process above where it is. */
async function give(folder) {
  const stack = start(folder);
  for (let number = 0; number < MESSAGE_COUNT; number++) {
    const content = { type: "post", text: `post number ${number}` };
    await new Promise((resolve, reject) => {
      stack.db.create({ keys: stack.config.keys, content }, (error) => (error ? reject(error) : resolve()));
    });
  }
  // Else the newcomer would wait until all of it is in the index that serves by sequence.
  await new Promise((resolve) => stack.db.onDrain("ebt", resolve));
  stack.ebt.request(stack.id, true);
  process.send({ id: stack.id, address: stack.getAddress("device") });
}

/** Get a feed. Resolves with the times when all of it is in the log. */
function take(folder, giver) {
  const stack = start(folder);
  return new Promise((resolve, reject) => {
    let dialed = 0;
    let first = 0;
    let count = 0;
    stack.db.onMsgAdded((added) => {
      if (added?.kvt?.value.author !== giver.id) return;
      count += 1;
      const now = performance.now();
      first ||= now;
      if (count < MESSAGE_COUNT) return;
      const rate = ((count - 1) * 1000) / (now - first);
      resolve({ messages: count, first_seconds: (first - dialed) / 1000, last_seconds: (now - dialed) / 1000, rate });
    });
    stack.ebt.request(giver.id, true);
    dialed = performance.now();
    stack.connect(giver.address, (error) => error && reject(error));
  });
}

async function main() {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), "ssb-first-sync-"));
  const giving = fork(__filename, [String(MESSAGE_COUNT)], { env: { ...process.env, GIVE_IN: path.join(folder, "giver") } });
  try {
    const giver = await new Promise((resolve, reject) => {
      giving.once("message", resolve);
      giving.once("exit", (code) => reject(new Error(`the giver ended with ${code}`)));
    });
    console.log(JSON.stringify(await take(path.join(folder, "taker"), giver)));
  } finally {
    giving.removeAllListeners();
    const ended = new Promise((resolve) => giving.once("exit", resolve));
    giving.kill();
    await ended;
    fs.rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
  }
}

function fail(error) {
  console.error(error);
  process.exit(1);
}

if (process.env.GIVE_IN) {
  process.on("disconnect", () => process.exit(1)); // the process above is gone
  give(process.env.GIVE_IN).catch(fail);
} else {
  setTimeout(() => fail(new Error("not all messages came in time")), GIVE_UP_MS).unref();
  main().then(() => process.exit(0), fail);
}
