// The client against a real node, whose address and token are in the environment.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";

import { ENDPOINTS } from "../endpoints.js";
import { Ravel, connect } from "../ravel.js";

const ravel = connect({ url: process.env.RAVEL_TEST_URL, token: process.env.RAVEL_TEST_TOKEN });

test("every endpoint is a method", () => {
  for (const [name, { body }] of Object.entries(ENDPOINTS)) {
    assert.equal(typeof Ravel.prototype[body === "lines" ? "writer" : name], "function", name);
  }
});

test("a writer writes posts in order, and tells of each", async () => {
  const { repo } = await ravel.createRepo({ name: "streamed" });
  const { branches } = await ravel.listBranches({ repo });
  const { branch } = branches[0];
  const writer = ravel.writer(branch);
  const posted = [];
  for (let number = 0; number < 300; number += 1) {
    await writer.ready;
    posted.push(writer.post(`post ${number}`));
  }
  await writer.close();
  const commits = (await Promise.all(posted)).map(({ commit }) => commit);
  const { items } = await ravel.showTimeline({ branch, limit: 1000 });
  assert.deepEqual(items.slice(1).map(({ commit }) => commit), commits);
  assert.deepEqual(items.slice(1).map(({ text }) => text), commits.map((_, number) => `post ${number}`));
});

test("posts are written, read and followed", async () => {
  const repo = await ravel.createRepo({ name: "a/b" });
  await assert.rejects(ravel.createRepo({ name: "a/b" }), { code: "already_exists", status: 409 });
  const { branches } = await ravel.listBranches({ repo: "a/b" });
  const { branch } = branches[0];
  const first = await ravel.writePost({ branch: "main", text: "first" }, { repo: repo.repo });
  const window = await ravel.showTimeline({ branch, limit: 10 });
  assert.deepEqual(window.items.map((item) => item.text).slice(1), ["first"]);
  assert.equal(window.items[1].commit, first.commit);
  await ravel.writePosts({ branch, texts: ["second", "third"] });
  const seen = [];
  for await (const event of ravel.watchEdits({ branch, since: window.cursor })) {
    if (event.name === "edit") seen.push(event.data.item.text);
    if (seen.length === 3) break;
    if (seen.length === 2) await ravel.writePost({ branch, text: "fourth" });
  }
  assert.deepEqual(seen, ["second", "third", "fourth"]);
});

test("the node's events come as lists", async () => {
  for await (const event of ravel.watchNode()) {
    if (event.name !== "repos") continue;
    assert.ok(Array.isArray(event.data.repos));
    break;
  }
});

test("files go in and out", async () => {
  await ravel.createRepo({ name: "files" });
  const bytes = new Uint8Array(300_000).map((_, at) => at % 251);
  const added = await ravel.addFile({ branch: "files:main", name: "dir/a b.bin", content: bytes });
  assert.equal(added.size, bytes.length);
  const download = await ravel.getFile({ branch: "files:main", file: "dir/a b.bin" });
  assert.deepEqual(new Uint8Array(await (await download.blob()).arrayBuffer()), bytes);
  const files = [
    { name: "one", content: "1" },
    { name: "two", content: new Blob(["22"]) },
  ];
  const many = await ravel.addFiles({ branch: "files:main", files });
  assert.deepEqual(many.files.map((file) => [file.name, file.size]), [["one", 1], ["two", 2]]);
  const { files: all } = await ravel.listFiles({ branch: "files:main" });
  assert.equal(all.length, 3);
});

test("a bundle goes out and in", async () => {
  await ravel.createRepo({ name: "carried" });
  const content = await new Response(await ravel.writeBundle({ repo: "carried", branches: "main" })).blob();
  const found = await ravel.readBundle({ content });
  assert.deepEqual([found.taken, found.already], [0, found.commits]);
  await assert.rejects(ravel.readBundle({ content: content.slice(0, -1) }), { code: "interrupted" });
});

test("refusals of the node come with their advice", async () => {
  await assert.rejects(ravel.showTimeline({ branch: "nowhere" }), { code: "not_found", status: 404 });
  await assert.rejects(ravel.createRepo({ name: "x", more: 1 }), { code: "bad_request", status: 400 });
  const stranger = connect({ url: process.env.RAVEL_TEST_URL, token: "wrong" });
  await assert.rejects(stranger.listRepos(), { code: "unauthorized", status: 401 });
  await assert.rejects(stranger.watchNode().next(), { code: "unauthorized" });
});

test("a JSON document is edited and followed", async () => {
  await ravel.createRepo({ name: "boards" });
  const board = ravel.document("boards:main", "board");
  await board.put([], { title: "Plan", todo: [], done: [] });
  const card = await board.insert("todo", { title: "one", votes: 0 });
  const first = await board.insert("todo", { title: "zero" }, { before: card });
  await board.add("votes", 2, { item: card });
  const states = [];
  for await (const { value } of board.live()) {
    states.push([value.todo.map((one) => one.title), value.done.map((one) => [one.title, one.votes])]);
    if (states.length === 1) await board.move(card, "done");
    if (states.length === 2) await board.remove([], { item: first });
    if (states.length === 3) break;
  }
  assert.deepEqual(states, [
    [["zero", "one"], []],
    [["zero"], [["one", 2]]],
    [[], [["one", 2]]],
  ]);
  await assert.rejects(board.put(["title", "x"], 1), { code: "bad_input", status: 400 });
  const isAdvised = ({ code, advice }) => code === "too_large" && advice.startsWith("add it as a file");
  await assert.rejects(board.put("long", "x".repeat(2 ** 20)), isAdvised);
  const long = "x".repeat(2 ** 20 - 2);
  await board.put("long", long);
  assert.equal((await board.read()).value.long, long);
  await assert.rejects(board.put("votes", Number.NaN), { code: "bad_request" });
  const circle = {};
  circle.self = circle;
  await assert.rejects(board.put("circle", circle), TypeError);
  assert.deepEqual((await ravel.document("boards:main").read()).value, {});
});

test("the lines of the page about documents run", async () => {
  const page = await readFile(new URL("../../../docs/apps/json.md", import.meta.url), "utf8");
  const [, lines] = page.match(/```js\n([^]*?)```/);
  await ravel.createRepo({ name: "friends" });
  const shown = [];
  const show = (value) => {
    shown.push(value);
    throw new Error("enough");
  };
  const run = new (async () => {}).constructor("ravel", "show", lines);
  await assert.rejects(run(ravel, show), /enough/);
  assert.deepEqual(shown[0].done.map(({ title }) => title), ["Buy tea"]);
});

test("a write that would not keep to the schema is refused, and apps see the schemas of others", async () => {
  await ravel.createRepo({ name: "forms" });
  const schema = { type: "object", required: ["title"] };
  const findFaults = (value, { required }) => required.filter((key) => !(key in value)).map((key) => `no ${key}`);
  const form = ravel.document("forms:main", "form", { schema, findFaults });
  await assert.rejects(form.put("text", "x"), { code: "bad_input", faults: ["no title"] });
  assert.deepEqual((await form.read()).value, {});
  await form.put([], { title: "Form", list: [{ a: 1 }] });
  await ravel.document("forms:main", "form").remove("title");
  assert.deepEqual(form.faults((await form.read()).value), ["no title"]);
  await form.stateSchema();
  const unchecked = ravel.document("forms:main", "form", { schema });
  await assert.rejects(unchecked.put("title", "x"), { code: "bad_request" });
  assert.deepEqual(await ravel.document("forms:main", "form").statedSchemas(), [schema]);
  await ravel.document("forms:main", "schema/form").put("schema", "no JSON");
  assert.deepEqual(await form.statedSchemas(), []);
  await ravel.document("forms:main", "schema/form").put([], null);
  assert.deepEqual(await form.statedSchemas(), []);
});

test("JSON documents are found and followed by their fields", async () => {
  await ravel.createRepo({ name: "cards" });
  const card = (name) => ravel.document("cards:main", `card/${name}`);
  await card("a").put([], { status: "open", votes: 1 });
  await card("b").put([], { status: "open", votes: 2 });
  await card("c").put([], { status: "done" });
  const query = ravel.documents("cards:main", { prefix: "card/", where: { status: "open" }, sort: ["-votes"] });
  assert.deepEqual((await query.read()).map((one) => one.name), ["card/b", "card/a"]);
  const more = ravel.documents("cards:main", { sort: "-votes", limit: 2000 });
  assert.deepEqual((await more.read()).map((one) => one.name), ["card/b", "card/a", "card/c"]);
  const all = ravel.documents("cards:main", { limit: 2 });
  assert.deepEqual((await all.read()).map((one) => one.name), ["card/a", "card/b"]);
  const seen = [];
  for await (const { documents, ...changes } of query.live()) {
    seen.push([documents.map((one) => one.value.votes), changes]);
    if (seen.length === 1) await card("a").add("votes", 5);
    if (seen.length === 2) await card("b").put("status", "done");
    if (seen.length === 3) break;
  }
  const none = { added: [], changed: [], moved: [], removed: [] };
  assert.deepEqual(seen[0], [[2, 1], { ...none, added: ["card/b", "card/a"] }]);
  assert.deepEqual(seen[1][0], [6, 2]);
  assert.deepEqual(seen[1][1].changed, ["card/a"]);
  assert.equal(seen[1][1].moved.length, 1);
  assert.deepEqual(seen[2], [[6], { ...none, removed: ["card/b"] }]);
  await ravel.createRepo({ name: "more" });
  await ravel.document("more:main", "card/a").put([], { status: "open", votes: 7 });
  const together = ravel.documents(["cards:main", "more:main"], { where: { status: "open" }, sort: "-votes" });
  const [first, second] = await together.read();
  assert.deepEqual([first.value.votes, second.value.votes], [7, 6]);
  assert.notEqual(first.branch, second.branch);
  assert.equal((await ravel.documents(undefined, { repo: "more" }).read()).length, 1);
  for (const nothing of [undefined, []]) assert.throws(() => ravel.documents(nothing), { code: "bad_request" });
  const told = [];
  for await (const { documents, ...changes } of together.live()) {
    told.push([documents.map((one) => one.value.votes), changes]);
    if (told.length === 1) await card("a").add("votes", 2);
    if (told.length === 2) break;
  }
  assert.deepEqual(told[0], [[7, 6], { ...none, added: [first.key, second.key] }]);
  assert.deepEqual(told[1][0], [8, 7]);
  assert.deepEqual(told[1][1].changed, [second.key]);
});
