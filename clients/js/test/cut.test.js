// What the client does when a node refuses, falls silent, or is cut off in the middle: against servers that do so.

import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import { test } from "node:test";

import { RavelError, connect } from "../ravel.js";

const TOKEN = "a-token";

/** Serves `answer(request, response, count)`; gives the client and what was asked. */
async function serving(context, answer) {
  const asked = [];
  const server = createServer((request, response) => {
    asked.push(request);
    answer(request, response, asked.length);
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  context.after(() => {
    server.closeAllConnections();
    server.close();
  });
  const url = `http://127.0.0.1:${server.address().port}`;
  return { ravel: connect({ url, token: TOKEN, retryMs: 1 }), asked, url };
}

function json(response, status, body, headers = {}) {
  response.writeHead(status, { "Content-Type": "application/json", ...headers });
  response.end(JSON.stringify(body));
}

function failing(code, extra = {}) {
  return (error) => {
    assert.ok(error instanceof RavelError, String(error));
    assert.equal(error.code, code);
    for (const [name, value] of Object.entries(extra)) assert.equal(error[name], value, name);
    return true;
  };
}

const edit = (id) => `id: ${id}\nevent: edit\ndata: {"commit":"${id}"}\n\n`;

test("a writer sends what waits by one request, and again where the answer was lost", async (context) => {
  const bodies = [];
  const { ravel, asked } = await serving(context, async (request, response, count) => {
    if (request.url === "/healthz") return json(response, 200, {}, { "Ravel-Run": "r1" });
    let body = "";
    for await (const chunk of request) body += chunk;
    const lines = body.split("\n").filter(Boolean).map((line) => JSON.parse(line));
    bodies.push(lines);
    if (count === 2) return response.destroy();
    response.writeHead(200, { "Content-Type": "application/x-ndjson", "Ravel-Run": "r1" });
    const refused = { error: { code: "not_permitted", message: "no", next: "" } };
    for (const { text } of lines) response.write(`${JSON.stringify(text === "bad" ? refused : { commit: text })}\n`);
    response.end();
  });
  const writer = ravel.writer("main");
  const [one, bad, two] = ["one", "bad", "two"].map((text) => writer.post(text));
  assert.equal((await one).commit, "one");
  await assert.rejects(bad, failing("not_permitted"));
  assert.equal((await two).commit, "two");
  assert.deepEqual(bodies[0], bodies[1], "with the same keys");
  assert.deepEqual(asked.map(({ headers }) => headers["ravel-run"]), [undefined, undefined, "r1"]);
  assert.ok(asked.every(({ headers }) => !headers["idempotency-key"]));
  let settled = 0;
  for (let number = 0; number < 256; number += 1) writer.post(String(number));
  const ready = writer.ready.then(() => (settled += 1));
  await null;
  assert.equal(settled, 0, "256 are not answered");
  await ready;
  await assert.rejects(writer.close(), failing("not_permitted"));
});

test("a cut stream goes on after its last whole event", async (context) => {
  const { ravel, asked } = await serving(context, (request, response, count) => {
    response.writeHead(200, { "Content-Type": "text/event-stream" });
    if (count === 1) {
      response.write(`retry: 2000\n\n: still here\n\n${edit("1")}id: 2\nevent: edit\nda`);
      setTimeout(() => response.destroy(), 10);
    } else {
      response.end(`${edit("2")}event: of the future\ndata: {"new":true}\n\nevent: closing\ndata: {}\n\n`);
    }
  });
  const states = [];
  const seen = [];
  const options = { onState: (isLive) => states.push(isLive) };
  for await (const event of ravel.watchEdits({ branch: "a/b", since: "0" }, options)) {
    seen.push([event.name, event.id]);
    if (seen.length === 4) break;
  }
  assert.deepEqual(seen.slice(0, 3), [["edit", "1"], ["edit", "2"], ["of the future", ""]]);
  assert.equal(asked[0].url, "/api/v1/branches/a%2Fb/edits?since=0");
  assert.equal(asked[0].headers["last-event-id"], undefined);
  assert.equal(asked[1].headers["last-event-id"], "1");
  assert.equal(asked[0].headers.authorization, `Bearer ${TOKEN}`);
  assert.deepEqual(states.slice(0, 4), [true, false, true, false]);
});

test("a stream waits where the node is busy, and ends where it is refused", async (context) => {
  const busy = { error: { code: "busy", message: "1024 streams", next: "close one" } };
  const refused = { error: { code: "unauthorized", message: "revoked", next: "make another" } };
  const { ravel, asked } = await serving(context, (request, response, count) => {
    if (count === 1) json(response, 503, busy, { "Retry-After": "0" });
    else if (count === 2) {
      response.writeHead(200);
      response.end(`event: error\ndata: ${JSON.stringify({ error: { ...refused.error, code: "storage_failed" } })}\n\n`);
    } else json(response, 401, refused);
  });
  const events = ravel.watchNode();
  await assert.rejects(events.next(), failing("unauthorized", { advice: "make another", status: 401 }));
  assert.equal(asked.length, 3);
});

test("a stream that is cut behind its first event is asked for ever more seldom", async (context) => {
  const times = [];
  const { url } = await serving(context, (request, response) => {
    times.push(Date.now());
    response.writeHead(200);
    response.end('event: peers\ndata: {"peers":[]}\n\n');
  });
  const ravel = connect({ url, token: TOKEN, retryMs: 40 });
  for await (const event of ravel.watchNode()) if (event && times.length === 6) break;
  assert.ok(times[5] - times[0] >= 600, "40, 80, 160, 320, 640 ms, of which half is left to chance");
});

test("a stream that its owner leaves or aborts ends", { timeout: 60_000 }, async (context) => {
  const closed = [];
  const { ravel } = await serving(context, (request, response) => {
    closed.push(once(response, "close"));
    response.writeHead(200);
    response.write(edit("1"));
  });
  for await (const event of ravel.watchEdits({ branch: "b" })) if (event) break;
  const controller = new AbortController();
  for await (const event of ravel.watchEdits({ branch: "b" }, { signal: controller.signal })) {
    assert.equal(event.id, "1");
    controller.abort();
  }
  assert.equal(closed.length, 2);
  await Promise.all(closed);
});

test("an event over the limit is refused before it is held", async (context) => {
  const { ravel } = await serving(context, (request, response) => {
    response.writeHead(200);
    response.end(`event: edit\ndata: "${"x".repeat(16 * 2 ** 20)}"\n\n`);
  });
  await assert.rejects(ravel.watchEdits({ branch: "b" }).next(), failing("too_large"));
});

test("a read is tried again; a write only where the node knows it again", async (context) => {
  let run = "";
  const { ravel, asked } = await serving(context, (request, response, count) => {
    const stated = run ? { "Ravel-Run": run } : {};
    if (request.url === "/healthz") return json(response, 200, {}, stated);
    if (request.method === "GET" && count === 3) return json(response, 200, { repos: [], of_the_future: 1 }, stated);
    if (request.headers["ravel-run"] === "one") return json(response, 200, { commit: "c" }, stated);
    if (request.headers["ravel-run"] === "gone") {
      return json(response, 409, { error: { code: "answer_lost", message: "started again", next: "" } });
    }
    response.writeHead(200, { "Content-Type": "application/json", "Content-Length": "100", ...stated });
    response.write('{"repos": [');
    setTimeout(() => response.destroy(), 10);
  });
  assert.deepEqual((await ravel.listRepos()).repos, []);
  assert.equal(asked.length, 3);
  const write = () => ravel.writePost({ branch: "main", text: "once" });
  await assert.rejects(write(), failing("answer_lost", { status: 0 }), "an older node would write twice");
  assert.equal(asked.filter((one) => one.method === "POST").length, 1);
  run = "one";
  assert.equal((await write()).commit, "c");
  const [, first, again] = asked.filter((one) => one.method === "POST");
  assert.match(first.headers["idempotency-key"], /^[0-9a-f]{32}$/);
  assert.equal(first.headers["idempotency-key"], again.headers["idempotency-key"]);
  assert.deepEqual([first.headers["ravel-run"], again.headers["ravel-run"]], [undefined, "one"]);
  run = "gone";
  await assert.rejects(ravel.listRepos({}, { once: true }));
  await assert.rejects(write(), failing("answer_lost", { status: 409 }));
  await assert.rejects(ravel.addFile({ branch: "b", name: "n", content: "c" }), failing("interrupted", { status: 0 }));
  assert.equal(asked.at(-1).headers["idempotency-key"], undefined);
});

test("a node that is away, or too slow, is told apart", async (context) => {
  const { ravel, asked } = await serving(context, () => {});
  await assert.rejects(ravel.listRepos({}, { timeoutMs: 30 }), (error) => {
    assert.match(error.message, /in time/);
    return failing("not_running")(error);
  });
  assert.equal(asked.length, 1, "what a slow node is at work on is not asked again");
  const away = connect({ url: "http://127.0.0.1:1", token: TOKEN, retryMs: 1 });
  await assert.rejects(away.listRepos(), (error) => {
    assert.match(error.advice, /ravel run/);
    return failing("not_running")(error);
  });
  await assert.rejects(ravel.listRepos({}, { signal: AbortSignal.abort() }), { name: "AbortError" });
});

test("errors keep code, advice and status; what is no answer of a node is incompatible", async (context) => {
  const { ravel } = await serving(context, (request, response) => {
    if (request.url.endsWith("/repos")) {
      return json(response, 409, { error: { code: "already_exists", message: "taken", next: "choose" } });
    }
    if (request.url.includes("/offers")) return response.writeHead(431).end();
    response.writeHead(request.url.endsWith("/peers") ? 200 : 502);
    response.end("<h1>a proxy</h1>");
  });
  const expected = { status: 409, advice: "choose", message: "taken" };
  await assert.rejects(ravel.createRepo({ name: "a" }), failing("already_exists", expected));
  await assert.rejects(ravel.showStatus(), failing("incompatible", { status: 502 }));
  await assert.rejects(ravel.listPeers(), failing("incompatible"));
  await assert.rejects(ravel.listOffers({ repo: "a" }), failing("too_large", { status: 431 }));
});

test("a call that no endpoint fits is refused before it is sent", async (context) => {
  const { ravel, asked } = await serving(context, () => {});
  await assert.rejects(ravel.showTimeline({}), failing("bad_request"));
  await assert.rejects(ravel.showTimeline({ branch: "b", limits: 1 }), failing("bad_request"));
  await assert.rejects(ravel.request("noSuch"), failing("bad_request"));
  for (const name of [".", "..", "\ud800", null]) {
    await assert.rejects(ravel.removeTag({ repo: "notes", name }), failing("bad_request"));
  }
  const board = ravel.document("main", "board");
  for (const value of [undefined, NaN, [{ votes: -Infinity }]]) {
    await assert.rejects(board.put("votes", value), failing("bad_request"));
    await assert.rejects(board.insert("todo", value), failing("bad_request"));
  }
  await assert.rejects(ravel.request("constructor"), failing("bad_request"));
  const long = { name: "n".repeat(5000), content: "" };
  await assert.rejects(ravel.addFiles({ branch: "b", files: [long] }), failing("bad_request"));
  assert.equal(asked.length, 0);
});

test("a cut transfer goes on where it was, and not with another file", async (context) => {
  const content = Buffer.from("0123456789");
  let tag = '"one"';
  const { ravel, asked } = await serving(context, (request, response) => {
    const from = Number(/bytes=(\d+)-/.exec(request.headers.range ?? "")?.[1] ?? 0);
    const isSame = from && request.headers["if-range"] === tag;
    const rest = isSame ? content.subarray(from) : content;
    response.writeHead(isSame ? 206 : 200, {
      ETag: tag,
      "Content-Length": rest.length,
      "Content-Disposition": "attachment; filename*=UTF-8''a%20b.txt",
    });
    if (isSame) return response.end(rest);
    response.write(rest.subarray(0, 4));
    setTimeout(() => response.destroy(), 10);
  });
  const download = await ravel.getFile({ branch: "b", file: "f" });
  assert.deepEqual([download.name, download.size], ["a b.txt", 10]);
  assert.equal(await (await download.blob()).text(), "0123456789");
  assert.equal(asked.at(-1).headers.range, "bytes=4-");
  const other = await ravel.getFile({ branch: "b", file: "f" });
  tag = '"two"';
  await assert.rejects(other.blob(), failing("interrupted"));
});
