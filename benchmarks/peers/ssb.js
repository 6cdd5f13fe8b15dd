// Scuttlebutt's usual pair: the store ssb-db2, with ssb-ebt, which replicates feeds. Each member writes a feed.
"use strict";

const caps = require("ssb-caps");
const keys = require("ssb-keys");
const SecretStack = require("secret-stack");
const { where, type, descending, paginate, toPromise } = require("ssb-db2/operators");

// Messages wait so long to be checked together. By default 250 ms: the first of a feed then enters the log with the last.
const BATCH_MS = 20;

exports.open = async (folder) => {
  const App = SecretStack({ caps })
    .use(require("ssb-db2/core"))
    .use(require("ssb-classic"))
    .use(require("ssb-db2/compat/ebt"))
    .use(require("ssb-ebt"));
  const stack = App({
    path: folder,
    keys: keys.loadOrCreateSync(`${folder}/secret`),
    db2: { addBatchThrottle: BATCH_MS },
    connections: {
      incoming: { net: [{ scope: "device", transform: "shs", port: 0, host: "127.0.0.1" }] },
      outgoing: { net: [{ transform: "shs" }] },
    },
  });
  let count = 0;
  let waiting = null;
  let connection = null;
  stack.db.onMsgAdded(() => {
    count += 1;
    if (waiting && count >= waiting.count) waiting.done();
  });
  stack.ebt.request(stack.id, true);

  return {
    found: () => ({ id: stack.id, address: stack.getAddress("device") }),
    async join({ id, address }) {
      stack.ebt.request(id, true);
      connection = await new Promise((resolve, reject) => {
        stack.connect(address, (error, rpc) => (error ? reject(error) : resolve(rpc)));
      });
    },
    name: () => stack.id,
    admit: (id) => stack.ebt.request(id, true),
    async write(texts) {
      for (const text of texts) {
        await new Promise((resolve, reject) => {
          const post = { keys: stack.config.keys, content: { type: "post", text } };
          stack.db.create(post, (error) => (error ? reject(error) : resolve()));
        });
      }
      // Else a newcomer would wait until all of it is in the index that serves by sequence.
      await new Promise((resolve) => stack.db.onDrain("ebt", resolve));
    },
    async until(wanted) {
      if (count < wanted) await new Promise((done) => (waiting = { count: wanted, done }));
      waiting = null;
    },
    async newest(wanted) {
      const page = await stack.db.query(where(type("post")), descending(), paginate(wanted), toPromise());
      return page.results.length;
    },
    leave: () => new Promise((resolve) => connection.close(true, resolve)),
    close: () => new Promise((resolve) => stack.close(true, resolve)),
  };
};
