// The node's API from a page: requests with the token, and event streams that resume. One file, without dependencies.

const RETRY_MS = 2000;

/** What the API answered that is no success: `code`, a message, and what to do next. */
export class ApiError extends Error {
  constructor(status, error) {
    super(error.next ? `${error.message} (${error.next})` : error.message);
    this.status = status;
    this.code = error.code;
  }
}

export class Api {
  /** @param {string} token of the node; sent in a header and never in an address. */
  constructor(token) {
    this.token = token;
  }

  get(path) {
    return this.#call("GET", path);
  }

  post(path, body = {}) {
    return this.#call("POST", path, body);
  }

  /**
   * Follows an event stream until `signal` is aborted: `take(name, data)` for each event, `tell(isLive)` when the
   * connection comes or goes. After a break it goes on from the last id. Throws ApiError where trying again is no use.
   */
  async follow(path, since, take, tell, signal) {
    let cursor = since;
    while (!signal.aborted) {
      try {
        const headers = { Accept: "text/event-stream", ...this.#authorization() };
        if (cursor) headers["Last-Event-ID"] = cursor;
        const answer = await fetch(`/api/v1${path}`, { headers, signal, cache: "no-store" });
        if (!answer.ok) throw await errorOf(answer);
        tell(true);
        for await (const event of readEvents(answer.body)) {
          try {
            take(event.name, event.data);
          } catch (error) {
            reportError(error); // a defect of the page, not of the connection
          }
          cursor = event.id || cursor;
        }
      } catch (error) {
        if (signal.aborted) return;
        if (error instanceof ApiError && error.status < 500) throw error;
      }
      tell(false);
      await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
    }
  }

  async #call(method, path, body) {
    const headers = this.#authorization();
    if (body) headers["Content-Type"] = "application/json";
    const options = { method, headers, body: body && JSON.stringify(body), cache: "no-store" };
    const answer = await fetch(`/api/v1${path}`, options);
    if (!answer.ok) throw await errorOf(answer);
    return answer.json();
  }

  #authorization() {
    return { Authorization: `Bearer ${this.token}` };
  }
}

/** Gives a code of `ravel open` for the token. */
export async function redeem(code) {
  const headers = { "Content-Type": "application/json" };
  const answer = await fetch("/open", { method: "POST", headers, body: JSON.stringify({ code }) });
  if (!answer.ok) throw await errorOf(answer);
  return (await answer.json()).token;
}

async function errorOf(answer) {
  try {
    return new ApiError(answer.status, (await answer.json()).error);
  } catch {
    return new ApiError(answer.status, { code: "internal", message: `the node answered ${answer.status}` });
  }
}

async function* readEvents(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    text += value;
    const blocks = text.split("\n\n");
    text = blocks.pop();
    for (const block of blocks) {
      const fields = Object.fromEntries(block.split("\n").map((line) => splitOnce(line, ": ")));
      if (fields.event) yield { name: fields.event, id: fields.id ?? "", data: JSON.parse(fields.data) };
    }
  }
}

function splitOnce(line, mark) {
  const at = line.indexOf(mark);
  return at < 0 ? [line, ""] : [line.slice(0, at), line.slice(at + mark.length)];
}
