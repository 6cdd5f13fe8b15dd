// Hypercore: an append-only log of one writer, in a store of several, over Noise and TCP. Who writes too, has a second log.
"use strict";

const Corestore = require("corestore");
const { dial, listen } = require("./framed.js");

exports.open = async (folder) => {
  const store = new Corestore(folder);
  const own = store.get({ name: "own", valueEncoding: "utf-8" });
  await own.ready();
  const logs = [own];
  let socket = null;
  let wake = () => null;

  async function follow(key) {
    const log = store.get({ key: Buffer.from(key, "hex"), valueEncoding: "utf-8" });
    await log.ready();
    log.download({ start: 0, end: -1 });
    log.on("download", () => wake());
    logs.push(log);
  }

  function talk(taken, dials) {
    const stream = store.replicate(dials);
    taken.on("error", () => null);
    stream.on("error", () => null);
    stream.pipe(taken).pipe(stream);
  }

  const here = () => logs.reduce((sum, log) => sum + log.contiguousLength, 0);
  return {
    async found() {
      return { key: own.key.toString("hex"), port: await listen((taken) => talk(taken, false)) };
    },
    async join({ key, port }) {
      if (logs.length === 1) await follow(key);
      socket = await dial(port);
      talk(socket, true);
    },
    /** Read the newest entries without those before them, which this log can check alone. */
    async look({ ticket: { key, port }, count }) {
      const log = store.get({ key: Buffer.from(key, "hex"), valueEncoding: "utf-8" });
      await log.ready();
      socket = await dial(port);
      talk(socket, true);
      while (log.length < count) await log.update({ wait: true });
      await Promise.all(Array.from({ length: count }, (_, at) => log.get(log.length - count + at)));
    },
    name: () => own.key.toString("hex"),
    admit: (key) => follow(key),
    async write(texts) {
      for (const text of texts) await own.append(text);
    },
    async until(wanted) {
      while (here() < wanted) await new Promise((resolve) => (wake = resolve));
    },
    async newest(wanted) {
      const log = logs.at(-1);
      const from = Math.max(0, log.length - wanted);
      return (await Promise.all(Array.from({ length: log.length - from }, (_, at) => log.get(from + at)))).length;
    },
    leave: () => new Promise((resolve) => socket.once("close", resolve).destroy()),
    close: () => store.close(),
  };
};
