// What goes wrong with a request to a node.

const ADDRESS_TOO_LONG = 431; // status of a request that the node did not read, for its head: the answer has no content

/**
 * Anything that went wrong. `code` is stable (docs/reference/exit-codes.md), and the Python client says the same. After
 * `not_running` (no answer), `answer_lost` and, of an upload, `interrupted` (the connection ended before the answer), a
 * write may have happened. `incompatible`: the answer is none of a node's.
 */
export class RavelError extends Error {
  /**
   * @param {string} code
   * @param {string} message for people
   * @param {{ advice?: string, status?: number, cause?: unknown, retryAfterMs?: number }} [more] `status` is 0 where
   *   nothing was answered.
   */
  constructor(code, message, { advice = "", status = 0, cause, retryAfterMs = 0 } = {}) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = "RavelError";
    this.code = code;
    this.advice = advice;
    this.status = status;
    this.retryAfterMs = retryAfterMs;
  }
}

export async function errorOf(answer) {
  const retryAfterMs = (Number(answer.headers.get("retry-after")) || 0) * 1000; // a date is no number
  try {
    return errorFrom((await answer.json()).error, answer.status, retryAfterMs);
  } catch {
    const { status } = answer;
    if (status === ADDRESS_TOO_LONG) {
      return new RavelError("too_large", "the request's address is too long", { advice: "name less, as by a shorter filter", status });
    }
    return new RavelError("incompatible", `the node answered ${status} without a reason`, { status, retryAfterMs });
  }
}

export function errorFrom({ code, message, next = "" }, status, retryAfterMs = 0) {
  return new RavelError(String(code), String(message), { advice: String(next), status, retryAfterMs });
}

export function lost(cause, isWrite, isUpload = false) {
  const behind = isWrite ? "; it may have happened" : "";
  if (isSlow(cause)) return new RavelError("not_running", `no answer in time${behind}`, { cause });
  if (cause.name === "SyntaxError") return new RavelError("incompatible", "the answer is no JSON", { cause });
  return new RavelError(isUpload ? "interrupted" : "answer_lost", `the connection ended before the answer${behind}`, { cause });
}

/** Whether the node was only too slow: it may be at work on what it was asked, which is not asked again. */
export function isSlow(cause) {
  return cause?.name === "TimeoutError";
}

/** Whether another attempt would end the same: a refusal, or a defect of this client. */
export function isDefinite(error) {
  if (!(error instanceof RavelError)) return error instanceof SyntaxError;
  return ["unauthorized", "token_expired", "insufficient_scope", "bad_request", "too_large"].includes(error.code);
}
