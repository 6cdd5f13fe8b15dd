// The HTTP API of a Ravel node from JavaScript: browsers, Node 20 and later, Deno. No dependencies.
//
// Each endpoint is a method that takes one object: parts of the path, values of the query and fields of the body, by their
// names in docs/reference/endpoints.md. `endpoints.js` and `ravel.d.ts` are made from the node's own table of endpoints.

import { ENDPOINTS } from "./endpoints.js";
import { RavelError, errorFrom, errorOf, isDefinite, isSlow, lost } from "./errors.js";
import { JsonDocument, liveResults } from "./json_documents.js";

export { JsonDocument, RavelError };

const PREFIX = "/api/v1";
const RETRY_MS = 500; // by default: before the first new attempt; doubled for each further one
const RETRY_MS_MAX = 15_000;
const ATTEMPTS = 3; // of a request that changes nothing, or that the node knows again by its key
const SILENCE_MS = 45_000; // three comments of the node: without them the connection is dead, also where it is open
const EVENT_SIZE_MAX = 16 * 2 ** 20; // characters of one event; the longest list of repos is far below
const WINDOW_MAX = 1000; // documents that the node finds at once
const FOUND_MAX = 100; // documents of a query that states no other limit
const OWED_MAX = 256; // posts of a writer that are not answered, as the node takes them
const HEAD_SIZE_MAX = 4096; // bytes of a line before a file of a batch

/**
 * Gives a client. It opens no connection: the first request does.
 * @param {{ url?: string, token: string, fetch?: typeof globalThis.fetch, retryMs?: number }} options `url` of the node,
 *   as http://127.0.0.1:7475; the page's own origin where none is given. `retryMs`: before the first new attempt.
 */
export function connect({ url = "", token, fetch = globalThis.fetch, retryMs = RETRY_MS }) {
  return new Ravel(url.replace(/\/+$/, ""), token, fetch, retryMs);
}

export class Ravel {
  #url;
  #token;
  #fetch;
  #retryMs;
  #run = ""; // of the daemon, as its latest answer stated; another after each start

  constructor(url, token, fetch, retryMs) {
    this.#url = url;
    this.#token = token;
    this.#fetch = fetch.bind(globalThis);
    this.#retryMs = retryMs;
  }

  /**
   * Any endpoint by its name; the methods are this with the name filled in. What gets no answer is asked again: reads, and
   * writes with an idempotency key, which the node then does once (docs/apps/http-api.md, "Repeated requests").
   */
  async request(name, values = {}, options = {}) {
    const endpoint = endpointOf(name);
    const { path, body } = this.#fill(name, endpoint, values);
    const isRead = endpoint.method === "GET";
    const key = endpoint.key ? newKey() : "";
    const isKeyed = endpoint.key || endpoint.body === "lines"; // each line has a key of its own
    if (isKeyed && !this.#run) await this.#learnRun(options.signal);
    const run = this.#run; // a node that states none knows no keys, and would write twice
    const attempts = (isRead || (isKeyed && run)) && !options.once ? ATTEMPTS : 1;
    for (let attempt = 1; ; attempt += 1) {
      const keyed = { ...(key && { "Idempotency-Key": key }), ...(isKeyed && attempt > 1 && { "Ravel-Run": run }) };
      try {
        return await this.#once(endpoint, path, body, options, keyed);
      } catch (error) {
        const isUnanswered = error instanceof RavelError && !error.status && ["not_running", "answer_lost"].includes(error.code);
        if (!isUnanswered || isSlow(error.cause) || attempt >= attempts) throw error;
        await pause(backOff(this.#retryMs, attempt), options.signal);
      }
    }
  }

  /**
   * The events of an endpoint, for ever: a cut connection is opened again, and the stream goes on after the last event.
   * An event is `{ name, id, data }`. Ends when `signal` is aborted. Throws RavelError where asking again is no use.
   * `onState(isLive)` tells when the connection comes and goes.
   */
  async *stream(name, values = {}, { signal, onState = () => {} } = {}) {
    const endpoint = endpointOf(name);
    if (!endpoint.events) throw new RavelError("bad_request", `${name} has no events`);
    let cursor = "";
    let failures = 0;
    while (!signal?.aborted) {
      let wait = 0;
      let since = Infinity;
      const { path } = this.#fill(name, endpoint, values);
      const guard = new Guard(signal);
      try {
        const headers = { Accept: "text/event-stream", ...(cursor && { "Last-Event-ID": cursor }) };
        const answer = await this.#send("GET", path, { headers, signal: guard.signal });
        if (!answer.ok) throw await errorOf(answer);
        onState(true);
        since = Date.now();
        for await (const event of readEvents(answer.body, guard)) {
          if (event.id && event.id !== cursor) failures = 0; // others may be what every stream begins with
          cursor = event.id || cursor;
          if (event.name === "error") throw errorFrom(event.data.error ?? event.data, 0);
          if (event.name !== "closing") yield event;
        }
      } catch (error) {
        if (signal?.aborted) return;
        const refused = error instanceof RavelError && error.status >= 400 && error.status < 500 && error.status !== 429;
        if (refused || isDefinite(error)) throw error;
        wait = error.retryAfterMs ?? 0;
      } finally {
        guard.end();
        onState(false);
      }
      if (Date.now() - since > RETRY_MS_MAX) failures = 0; // it has lasted
      failures += 1;
      await pause(Math.max(wait, backOff(this.#retryMs, failures)), signal).catch(() => {});
    }
  }

  /**
   * A JSON document of a branch (a `JsonDocument`), whether it has been written to or not. With `schema`, a JSON Schema, and
   * `findFaults`, a validator of the app that gives a list of texts for a value and a schema, each write is checked first.
   */
  document(branch, name = "", checks = {}) {
    return new JsonDocument(this, branch, name, checks);
  }

  /**
   * JSON documents of a branch that a query finds: `prefix` of their names, `where` (a filter), `sort` (a list of fields),
   * `limit`. `read` gives them, and `live` goes on with each change (docs/apps/json.md). `branch`: several in a list, or null
   * for all of all repos, or of `repo`.
   */
  documents(branch, { where, sort = [], repo, ...query } = {}) {
    const isOfOne = typeof branch === "string";
    if (branch === undefined ? !repo : branch !== null && (!branch.length || repo)) {
      const advice = "`branch` null asks all of them";
      throw new RavelError("bad_request", "a query has branches or a repo", { advice });
    }
    const of = isOfOne ? { branch } : { branches: branch?.join(","), repo };
    const values = { ...of, ...query, where: where && JSON.stringify(where), sort: [sort].flat().join(",") };
    const name = isOfOne ? "followJsonDocuments" : "followJsonAnywhere";
    return {
      read: async (options) => {
        const found = [];
        const limit = query.limit ?? FOUND_MAX;
        for (let cursor = ""; cursor !== null && found.length < limit; ) {
          const asked = Math.min(limit - found.length, WINDOW_MAX);
          const window = await this.request(name, { ...values, limit: asked, cursor }, options);
          found.push(...window.documents);
          ({ cursor } = window);
        }
        return found;
      },
      live: (options) => liveResults(this.stream(name, { limit: FOUND_MAX, ...values }, options)),
    };
  }

  /** Writes posts into a branch without waiting for each (a `PostWriter`). */
  writer(branch, options) {
    return new PostWriter((lines) => this.request("streamPosts", { branch, lines }, options));
  }

  /** A file's content: an async iterable of bytes that goes on where it was cut. */
  async getFile(values, options = {}) {
    const { path } = this.#fill("getFile", endpointOf("getFile"), values);
    const ask = async (from, tag) => {
      const headers = from ? { Range: `bytes=${from}-`, "If-Range": tag } : {};
      const answer = await this.#send("GET", path, { headers, signal: options.signal });
      if (!answer.ok) throw await errorOf(answer);
      return answer;
    };
    return new Download(await ask(0, ""), ask, options.signal, this.#retryMs);
  }

  #fill(name, endpoint, values) {
    const left = { ...values };
    const part = (_, key) => {
      const value = left[key];
      if (value === undefined || value === null || value === "") throw new RavelError("bad_request", `${name} needs \`${key}\``);
      delete left[key];
      return partOf(String(value));
    };
    let path = PREFIX + endpoint.path.replace(/\{(\w+)\}/g, part);
    const query = new URLSearchParams();
    for (const key of endpoint.query) {
      const value = left[key];
      delete left[key];
      if (value !== undefined && value !== null) query.set(key, typeof value === "boolean" ? Number(value) : value);
    }
    if (query.size) path += `?${query}`;
    let body;
    if (endpoint.body === "bytes") {
      body = left.content;
      delete left.content;
    } else if (endpoint.body === "files") {
      body = batchOf(left.files ?? []);
      delete left.files;
    } else if (endpoint.body === "lines") {
      body = left.lines;
      delete left.lines;
    } else if (endpoint.body === "json") {
      return { path, body: JSON.stringify(left, onlyFinite) };
    }
    const unknown = Object.keys(left);
    if (unknown.length) throw new RavelError("bad_request", `${name} takes no \`${unknown[0]}\``);
    return { path, body };
  }

  /** Asks the node for its run before the first write. */
  async #learnRun(signal) {
    try {
      this.#note(await this.#fetch(`${this.#url}/healthz`, { signal, cache: "no-store" }));
    } catch {
      // the write itself says that the node is away
    }
  }

  #note(answer) {
    this.#run = answer.headers.get("ravel-run") ?? this.#run;
    return answer;
  }

  async #once(endpoint, path, body, options, keyed) {
    const signals = [AbortSignal.timeout(options.timeoutMs ?? endpoint.seconds * 1000)];
    if (options.signal) signals.push(options.signal);
    const headers = { ...keyed, ...(endpoint.body === "json" && { "Content-Type": "application/json" }) };
    if (options.repo) headers["Ravel-Repo"] = options.repo;
    const isWrite = endpoint.method !== "GET";
    const answer = await this.#send(endpoint.method, path, { headers, body, signal: AbortSignal.any(signals), isWrite });
    if (!answer.ok) throw await errorOf(answer);
    try {
      if (answer.headers.get("content-type") === "application/octet-stream") return answer.body;
      return endpoint.body === "lines" ? linesOf(await answer.text()) : await answer.json();
    } catch (error) {
      throw options.signal?.aborted ? options.signal.reason : lost(error, isWrite, isStreamed(endpoint));
    }
  }

  async #send(method, path, { headers, body, signal, isWrite = false }) {
    const all = { ...headers, Authorization: `Bearer ${this.#token}` };
    const init = { method, headers: all, body, signal, cache: "no-store", redirect: "error" };
    if (body instanceof ReadableStream) init.duplex = "half";
    try {
      return this.#note(await this.#fetch(this.#url + path, init));
    } catch (error) {
      if (isSlow(error)) throw lost(error, isWrite);
      if (signal?.aborted) throw error;
      const message = isWrite ? "the node does not answer; the request may have reached it" : "the node does not answer";
      throw new RavelError("not_running", message, { advice: "`ravel up` or `ravel run` starts it", cause: error });
    }
  }
}

for (const [name, endpoint] of Object.entries(ENDPOINTS)) {
  const define = (called, value) => Object.defineProperty(Ravel.prototype, called, { value, configurable: true });
  if (name !== "getFile" && endpoint.body !== "lines") {
    define(name, function call(...given) {
      return this.request(name, ...given);
    });
  }
  if (endpoint.events) {
    define(name.replace(/^follow/, "watch"), function follow(values, options) {
      return this.stream(name, values, options);
    });
  }
}

/** Writes posts in order, as many by one request as wait for it. A post is written once, also where answers are lost. */
export class PostWriter {
  #send;
  #waiting = [];
  #owed = 0;
  #running = null;
  #failure = null;
  #room = later();

  constructor(send) {
    this.#send = send;
    this.#room.resolve();
  }

  /** Settles when fewer than 256 posts are not answered. */
  get ready() {
    return this.#room.promise;
  }

  /** Resolves to the commit once it is durable. Rejects with the failure, which `close` throws too. */
  post(text) {
    const { promise, resolve, reject } = later();
    promise.catch((error) => (this.#failure ??= error));
    this.#waiting.push({ line: `${JSON.stringify({ text, key: newKey() })}\n`, resolve, reject });
    this.#owed += 1;
    if (this.#owed === OWED_MAX) this.#room = later();
    this.#running ??= this.#run();
    return promise;
  }

  /** Waits until all are answered, and throws the first failure. */
  async close() {
    await this.#running;
    if (this.#failure) throw this.#failure;
  }

  async #run() {
    await null; // so that posts of one turn go together
    while (this.#waiting.length) {
      const posts = this.#waiting.splice(0, OWED_MAX);
      try {
        const answers = await this.#send(posts.map(({ line }) => line).join(""));
        if (answers.length !== posts.length) throw new RavelError("incompatible", "not one answer for each post");
        posts.forEach(({ resolve, reject }, at) => {
          const { error } = answers[at];
          if (error) reject(errorFrom(error, 200));
          else resolve(answers[at]);
        });
      } catch (error) {
        for (const { reject } of posts) reject(error); // of those that were answered, this changes nothing
      }
      this.#owed -= posts.length;
      if (this.#owed < OWED_MAX) this.#room.resolve();
    }
    this.#running = null;
  }
}

function later() {
  const parts = {};
  parts.promise = new Promise((resolve, reject) => Object.assign(parts, { resolve, reject }));
  return parts;
}

function linesOf(text) {
  return text.split("\n").filter(Boolean).map((line) => JSON.parse(line));
}

/** The content of a file as it comes. Read it once. */
export class Download {
  #answer;
  #ask;
  #signal;
  #retryMs;

  constructor(answer, ask, signal, retryMs) {
    this.#answer = answer;
    this.#ask = ask;
    this.#signal = signal;
    this.#retryMs = retryMs;
    /** Bytes of the whole content. */
    this.size = Number(answer.headers.get("content-length") ?? 0);
    const named = /filename\*=UTF-8''([^;]+)/.exec(answer.headers.get("content-disposition") ?? "");
    /** Its name, as its author states it: no path to write to. */
    this.name = named ? decodeURIComponent(named[1]) : "";
  }

  async *[Symbol.asyncIterator]() {
    const tag = this.#answer.headers.get("etag") ?? "";
    let answer = this.#answer;
    let have = 0;
    let failures = 0;
    for (;;) {
      try {
        for await (const chunk of answer.body) {
          have += chunk.length;
          failures = 0;
          yield chunk;
        }
        if (have >= this.size) return;
      } catch (error) {
        if (this.#signal?.aborted) throw error;
      }
      failures += 1;
      if (failures > ATTEMPTS) throw new RavelError("interrupted", "the transfer was cut again and again");
      await pause(backOff(this.#retryMs, failures), this.#signal);
      try {
        answer = await this.#ask(have, tag);
      } catch (error) {
        if (this.#signal?.aborted || isDefinite(error)) throw error;
        answer = { status: 206, body: [] };
      }
      if (answer.status !== 206) throw new RavelError("interrupted", "the file was replaced while it was read");
    }
  }

  /** The whole content as a Blob of a type that the caller knows to be right. */
  async blob(type = "application/octet-stream") {
    const parts = [];
    for await (const chunk of this) parts.push(chunk);
    return new Blob(parts, { type });
  }

  /** Stops the transfer. */
  cancel() {
    return this.#answer.body.cancel().catch(() => {});
  }
}

/** Aborts a stream that was silent for too long, or whose owner has enough. */
class Guard {
  #controller = new AbortController();
  #timer;
  #outer;
  #stop = () => this.#controller.abort();

  constructor(outer) {
    this.#outer = outer;
    if (outer?.aborted) this.#stop();
    outer?.addEventListener("abort", this.#stop, { once: true });
    this.heard();
  }

  get signal() {
    return this.#controller.signal;
  }

  heard() {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(this.#stop, SILENCE_MS);
  }

  end() {
    clearTimeout(this.#timer);
    this.#outer?.removeEventListener("abort", this.#stop);
    this.#stop();
  }
}

/** Events of the format of WHATWG HTML 9.2, as far as the node uses it. A block that the end cuts is passed over. */
async function* readEvents(body, guard) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    guard.heard();
    text += value;
    if (text.length > EVENT_SIZE_MAX) throw new RavelError("too_large", "an event is over 16 MiB", { status: 413 });
    const blocks = text.split("\n\n");
    text = blocks.pop();
    for (const block of blocks) {
      const fields = Object.fromEntries(block.split("\n").map((line) => splitOnce(line, ": ")));
      if (fields.event) yield { name: fields.event, id: fields.id ?? "", data: JSON.parse(fields.data) };
    }
  }
}

/** JSON has no such number, and `JSON.stringify` would put null in its place. */
function onlyFinite(_, value) {
  if (typeof value !== "number" || Number.isFinite(value)) return value;
  throw new RavelError("bad_request", `${value} is no JSON`, { advice: "send texts, finite numbers or null" });
}

function newKey() {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

function splitOnce(line, mark) {
  const at = line.indexOf(mark);
  return at < 0 ? [line, ""] : [line.slice(0, at), line.slice(at + mark.length)];
}

/** One Blob of all files, a line of JSON before each (docs/apps/http-api.md, "Many files"). */
function batchOf(files) {
  const parts = files.flatMap(({ name, content }) => {
    const blob = new Blob([content]);
    const head = new TextEncoder().encode(`${JSON.stringify({ name, size: blob.size })}\n`);
    if (head.length > HEAD_SIZE_MAX) throw new RavelError("bad_request", "the name of a file is too long");
    return [head, blob];
  });
  return new Blob(parts);
}

function endpointOf(name) {
  if (!Object.hasOwn(ENDPOINTS, name)) throw new RavelError("bad_request", `there is no endpoint ${name}`);
  return ENDPOINTS[name];
}

/** A part of a path. Of dots alone it would mean the part above, in whatever way it is written. */
function partOf(text) {
  if (text === "." || text === ".." || /\p{Surrogate}/u.test(text)) {
    throw new RavelError("bad_request", `${JSON.stringify(text)} cannot be named in an address`, { advice: "name it by its id" });
  }
  return encodeURIComponent(text);
}

/** Whether the content of a request is gone once it was sent. */
function isStreamed({ body }) {
  return ["bytes", "files"].includes(body);
}

function backOff(first, failures) {
  // By chance, so that clients of one node do not come back at one moment.
  return Math.min(first * 2 ** Math.min(failures - 1, 10), RETRY_MS_MAX) * (0.5 + Math.random() / 2);
}

function pause(ms, signal) {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(done, ms);
    function done() {
      signal?.removeEventListener("abort", stopped);
      resolve();
    }
    function stopped() {
      clearTimeout(timer);
      reject(signal.reason);
    }
    if (signal?.aborted) stopped();
    else signal?.addEventListener("abort", stopped, { once: true });
  });
}
