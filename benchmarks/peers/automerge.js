// Automerge with its sync protocol over TCP, unencrypted. One document has a list of posts; a post is one change.
//
// Automerge brings no store and no network: a change is appended to a file here, which the whole document replaces at the end.
"use strict";

const fs = require("fs");

const Automerge = require("@automerge/automerge");
const { dial, listen, receive, send } = require("./framed.js");

exports.open = async (folder) => {
  const file = `${folder}/document`;
  let document = fs.existsSync(file) ? Automerge.load(fs.readFileSync(file)) : Automerge.init();
  let waiting = null;
  let line = null;

  function save() {
    fs.appendFileSync(file, Automerge.saveIncremental(document));
  }

  function talk(socket) {
    line = { socket, state: Automerge.initSyncState() };
    const own = line;
    socket.on("error", () => null);
    socket.on("close", () => line === own && (line = null));
    receive(socket, (message) => {
      let state;
      [document, state] = Automerge.receiveSyncMessage(document, own.state, message);
      own.state = state;
      save();
      if (waiting && (document.posts?.length ?? 0) >= waiting.count) waiting.done();
      tell(own);
    });
    tell(own);
  }

  function tell(own) {
    for (;;) {
      const [state, message] = Automerge.generateSyncMessage(document, own.state);
      own.state = state;
      if (message === null) return;
      send(own.socket, message);
    }
  }

  return {
    async found() {
      document = Automerge.change(document, (made) => (made.posts = []));
      return await listen(talk);
    },
    async join(port) {
      talk(await dial(port));
    },
    name: () => null,
    admit: () => null,
    write(texts) {
      for (const text of texts) {
        const post = { text: new Automerge.ImmutableString(text) };
        document = Automerge.change(document, { time: Math.floor(Date.now() / 1000) }, (made) => made.posts.push(post));
        save();
      }
      if (line !== null) tell(line);
    },
    async until(wanted) {
      if ((document.posts?.length ?? 0) < wanted) await new Promise((done) => (waiting = { count: wanted, done }));
      waiting = null;
    },
    newest: (wanted) => document.posts.slice(-wanted).map((post) => post.text.toString()).length,
    leave: () => new Promise((resolve) => line.socket.once("close", resolve).destroy()),
    close: () => fs.writeFileSync(file, Automerge.save(document)),
  };
};
