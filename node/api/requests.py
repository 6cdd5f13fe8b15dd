"""Reading of API requests, each part within its bound, and JSON answers."""

import re
from codecs import BOM_UTF8
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping
from http import HTTPStatus
from typing import Any, Final, TypeVar

import msgspec
import structlog
import trio
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from node.api.plain_errors import describe_error
from node.contract.endpoint import QueryParameter
from node.contract.values import find_repeated_key
from node.http.connection import BodyStopped
from node.runtime.blocking import RunBlocking
from node.runtime.errors import ServiceError, damaged, storage_failed
from protocol.codec import DecodeError
from protocol.limits.formats import KIB
from protocol.limits.users import BODY_WAIT_SECONDS, REQUEST_SIZE_MAX
from storage.commits.blocks import DamagedBlock
from storage.engine.errors import StorageError

log = structlog.get_logger()

T = TypeVar("T")
_PARSED_AT_ONCE_SIZE_MAX: Final = 16 * KIB
"""Bytes of a body that is parsed in the event loop: half a millisecond, most of it to find repeated keys."""
_ENCODED_AT_ONCE_MAX: Final = 256
"""Items of a list that are encoded without giving others their turn: a seventh of a millisecond of topics."""
Handler = Callable[[Request], Awaitable[Response]]


def refusal_of(error: Exception, path: str) -> ServiceError:
    """Return the answer for an error; log the error unless it is the caller's."""
    if isinstance(error, ServiceError):
        return error
    if isinstance(error, DamagedBlock):
        log.error("damaged", path=path, error=str(error))
        return damaged(error)
    if isinstance(error, StorageError):
        log.error("storage failed", path=path, error=str(error))
        return storage_failed(error, "make room on the disk, or mend it: `ravel doctor` tells more")
    # A defect is answered without details, and logged whole.
    log.error("request failed", path=path, exc_info=error)
    return ServiceError("internal", "a defect in Ravel", "the daemon's log has the details")


def json_response(
    content: object, status_code: int = HTTPStatus.OK, headers: Mapping[str, str] | None = None
) -> Response:
    """Return a JSON answer. msgspec is faster than Starlette's encoder. Raises UnicodeEncodeError for lone surrogates."""
    return Response(msgspec.json.encode(content), status_code, headers, "application/json")


async def answer_json(answer: Awaitable[Mapping[str, object]]) -> Response:
    """Await an answer and return it as JSON."""
    return Response(await encode_in_pieces(await answer), media_type="application/json")


async def encode_in_pieces(answer: Mapping[str, object]) -> bytes:
    """Encode an answer, of long lists some items at a time: 16,384 topics of a peer or repos take 9 ms and more.

    Pieces are joined once: to copy megabytes at each level takes as long as to encode them.
    """
    pieces: list[bytes] = []
    await _encode_object(answer, pieces)
    return b"".join(pieces)


async def _encode_object(one: Mapping[str, object], pieces: list[bytes]) -> None:
    before = b"{"
    for key, value in one.items():
        pieces.append(before + msgspec.json.encode(key) + b":")
        before = b","
        if isinstance(value, list):
            await _encode_list(value, pieces)
        else:
            pieces.append(msgspec.json.encode(value))
    pieces.append(b"}" if one else b"{}")


def _is_long(one: object) -> bool:
    topics = one.get("topics") if isinstance(one, dict) else None
    return isinstance(topics, list) and len(topics) > _ENCODED_AT_ONCE_MAX


async def _encode_list(items: list[Any], pieces: list[bytes]) -> None:
    pieces.append(b"[")
    for start in range(0, len(items), _ENCODED_AT_ONCE_MAX):
        if start:
            pieces.append(b",")
            await trio.lowlevel.checkpoint()
        part = items[start : start + _ENCODED_AT_ONCE_MAX]
        if not any(_is_long(one) for one in part):
            pieces.append(msgspec.json.encode(part)[1:-1])
            continue
        for at, one in enumerate(part):
            pieces.append(b"," if at else b"")
            await _encode_object(one, pieces)
    pieces.append(b"]")


async def read_chunks(request: Request) -> AsyncGenerator[bytes]:
    """Yield the request's body as it comes. Raises ServiceError `interrupted` when it stops coming, and ClientDisconnect."""
    has_more = True
    while has_more:
        chunk, has_more = await _receive_chunk(request)
        if chunk:
            yield chunk


async def _receive_chunk(request: Request) -> tuple[bytes, bool]:
    """Return the next part of a request's body, and True if more follows. Raises as `read_chunks`."""
    try:
        message = await request.receive()
    except BodyStopped:
        raise ServiceError("interrupted", f"nothing came of the body for {BODY_WAIT_SECONDS} s") from None
    if message["type"] == "http.disconnect":
        raise ClientDisconnect
    return message.get("body", b""), message.get("more_body", False)


async def read_json(request: Request, kind: type[T], size_max: int = _PARSED_AT_ONCE_SIZE_MAX) -> T:
    """Return a small JSON body, bounded before it is buffered. Raises ServiceError."""
    return decode_json(await read_content(request, size_max), kind)


async def read_content(request: Request, size_max: int | None = None) -> bytes:
    """Return the request's body, bounded (by REQUEST_SIZE_MAX) before it is buffered. Raises ServiceError."""
    limit = REQUEST_SIZE_MAX if size_max is None else size_max
    content, has_more = bytearray(), True
    while has_more:
        chunk, has_more = await _receive_chunk(request)
        content += chunk
        if len(content) > limit:
            raise ServiceError("too_large", f"a request has at most {limit} bytes", "send less at once")
    return bytes(content)


async def parse_json(content: bytes, kind: type[T], run_blocking: RunBlocking) -> T:
    """Decode a JSON body to a type; a large one in a thread, so that others are served. Raises ServiceError."""
    if len(content) <= _PARSED_AT_ONCE_SIZE_MAX:
        return decode_json(content, kind)
    return await run_blocking(decode_json, content, kind)


def decode_json(content: bytes, kind: type[T]) -> T:
    """Decode a JSON body to a type. Raises ServiceError."""
    try:
        # RFC 8259, section 8.1: a byte order mark may be ignored. Some systems write one into every file.
        content = content.removeprefix(BOM_UTF8)
        found = msgspec.json.decode(content, type=kind)
        repeated = find_repeated_key(content)
    except msgspec.ValidationError as error:
        problem = describe_error(str(error))
        advice = (
            "give one"
            if problem.endswith(" is empty")
            else "docs/reference/endpoints.md lists fields and bounds"
        )
        raise ServiceError("bad_request", problem, advice) from None
    except (msgspec.DecodeError, ValueError, RecursionError, DecodeError) as error:
        raise ServiceError(
            "bad_request",
            f"the request is not of the expected form: {error}",
            "send one JSON object as the body",
        ) from None
    if repeated is not None:
        raise ServiceError(
            "bad_request", f"the key {repeated[:100]!r} stands twice in one object", "say it once"
        )
    return found


def read_query(request: Request, parameters: Iterable[QueryParameter]) -> dict[str, Any]:
    """Return the values of the query by name, of the types that the parameters state, or their defaults.

    Raises ServiceError `bad_request` for what is given twice, is no number, or not within its bounds.
    """
    given = Counter(name for name, _ in request.query_params.multi_items())
    for name, count in given.items():
        if count > 1:
            raise ServiceError("bad_request", f"{name[:100]!r} is given twice", "say it once")
    return {one.name: _read_value(request.query_params.get(one.name), one) for one in parameters}


def _read_value(text: str | None, parameter: QueryParameter) -> int | str | bool | None:
    if text is None:
        return parameter.default if parameter.type is not bool else bool(parameter.default)
    if parameter.type is str:
        return text
    if parameter.type is bool:
        return _read_number(text, parameter.name, 0, 1) == 1
    return _read_number(text, parameter.name, parameter.minimum, parameter.maximum)


def _read_number(text: str, name: str, low: int, high: int) -> int:
    if re.fullmatch(r"-?[0-9]{1,16}", text) is None:
        raise ServiceError("bad_request", f"{name} is a whole number, not {text[:20]!r}")
    if not low <= int(text) <= high:
        raise ServiceError("bad_request", f"{name} is from {low} to {high}, not {text}")
    return int(text)
