// Autobase: the logs of several writers (Hypercore), and a list made of them that is the same for all who have the same.
"use strict";

const Autobase = require("autobase");
const Corestore = require("corestore");
const { dial, listen } = require("./framed.js");

// One by one, an entry takes ten times as long to write.
const BATCH = 50;

exports.open = async (folder) => {
  const store = new Corestore(folder);
  let base = null;
  let socket = null;

  async function begin(key) {
    base = new Autobase(store, key, {
      valueEncoding: "json",
      ackInterval: 0,
      open: (views) => views.get("posts", { valueEncoding: "utf-8" }),
      async apply(nodes, view, host) {
        for (const { value } of nodes) {
          if (value.writer) await host.addWriter(Buffer.from(value.writer, "hex"), { indexer: false });
          else await view.append(value.text);
        }
      },
    });
    await base.ready();
  }

  function talk(taken, dials) {
    const stream = base.replicate(dials);
    taken.on("error", () => null);
    stream.on("error", () => null);
    stream.pipe(taken).pipe(stream);
  }

  return {
    async found() {
      await begin(null);
      return { key: base.key.toString("hex"), port: await listen((taken) => talk(taken, false)) };
    },
    async join({ key, port }) {
      if (base === null) await begin(Buffer.from(key, "hex"));
      socket = await dial(port);
      talk(socket, true);
    },
    name: () => base.local.key.toString("hex"),
    admit: (writer) => base.append({ writer }),
    async write(texts) {
      const posts = texts.map((text) => ({ text }));
      for (let at = 0; at < posts.length; at += BATCH) await base.append(posts.slice(at, at + BATCH));
    },
    async until(wanted) {
      while (base.view.length < wanted) await new Promise((resolve) => base.once("update", resolve));
      await base.view.get(wanted - 1);
    },
    async newest(wanted) {
      const from = Math.max(0, base.view.length - wanted);
      const reads = Array.from({ length: base.view.length - from }, (_, at) => base.view.get(from + at));
      return (await Promise.all(reads)).length;
    },
    async leave() {
      // It was admitted before, and can write once it knows.
      while (!base.writable) await new Promise((resolve) => base.once("update", resolve));
      await new Promise((resolve) => socket.once("close", resolve).destroy());
    },
    close: () => base.close(),
  };
};
