"""How requests to the local API are read, each part within its bound, and answered."""

import re
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from typing import Any, Final, TypeVar

import msgspec
import trio
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from node.runtime.errors import ServiceError
from protocol.codec import DecodeError
from protocol.limits.formats import MIB

REQUEST_SIZE_MAX: Final = 8 * MIB
"""Bytes of a request's body: an import batch of the largest legal texts is cut smaller by its sender."""
BODY_WAIT_SECONDS: Final = 30
"""Longest pause in a request's body."""

T = TypeVar("T")
Handler = Callable[[Request], Awaitable[Response]]


async def answer_json(answer: Awaitable[dict[str, Any]]) -> Response:
    """What is awaited, as JSON."""
    return JSONResponse(await answer)


def answer_of(parameter: str, method: Callable[[str], Awaitable[dict[str, Any]]]) -> Handler:
    """Answers with what a method says of the part of the path that is called so."""
    return lambda request: answer_json(method(request.path_params[parameter]))


async def read_chunks(request: Request) -> AsyncGenerator[bytes]:
    """The request's body as it comes. Raises ServiceError `interrupted` when it stops coming."""
    async with aclosing(request.stream()) as chunks:
        while True:
            with trio.move_on_after(BODY_WAIT_SECONDS) as waiting:
                try:
                    chunk = await anext(chunks)
                except StopAsyncIteration:
                    return
            if waiting.cancelled_caught:
                raise ServiceError("interrupted", f"nothing came of the body for {BODY_WAIT_SECONDS} s")
            yield chunk


async def read_body(request: Request, kind: type[T], size_max: int | None = None) -> T:
    """The request's JSON body, bounded (by REQUEST_SIZE_MAX) before it is buffered. Raises ServiceError."""
    limit = REQUEST_SIZE_MAX if size_max is None else size_max
    content = bytearray()
    async with aclosing(read_chunks(request)) as chunks:
        async for chunk in chunks:
            content += chunk
            if len(content) > limit:
                raise ServiceError("too_large", f"a request has at most {limit} bytes", "send less at once")
    try:
        return msgspec.json.decode(bytes(content), type=kind)
    except (msgspec.DecodeError, ValueError, RecursionError, DecodeError) as error:
        raise ServiceError("bad_request", f"the request is not of the expected form: {error}") from None


def read_number(request: Request, name: str, default: int, low: int, high: int) -> int:
    """A number of the query, in its bounds. Raises ServiceError."""
    text = request.query_params.get(name)
    if text is None:
        return default
    if re.fullmatch(r"-?[0-9]{1,16}", text) is None:
        raise ServiceError("bad_request", f"{name} is a number, not {text[:20]!r}")
    if not low <= int(text) <= high:
        raise ServiceError("bad_request", f"{name} is from {low} to {high}, not {text}")
    return int(text)
