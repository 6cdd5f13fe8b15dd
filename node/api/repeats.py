"""Requests that are sent again since their answers were lost: each is done once, by the idempotency key that it carries.

A client makes up a key for a write, and sends the same request with the same key again where no answer came. The first
answer is kept in memory, for a while. It is not stored: that would take a second row for each write, in its transaction,
for the rare moment of a start. A client that repeats a request after a start would have it done twice, so a repetition
says for which run of the daemon it is (`Ravel-Run`, which every answer states), and another run refuses it.
"""

import re
import secrets
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Final

import trio
from blake3 import blake3
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from node.api.callers import Caller
from node.api.requests import json_response
from node.contract.endpoint import KEY_HEADER, REPO_HEADER, RUN_HEADER
from node.contract.table import AnyEndpoint
from node.runtime.errors import ServiceError, kind_of
from protocol.limits.users import (
    IDEMPOTENCY_COUNT_MAX,
    IDEMPOTENCY_KEY_SIZE_MAX,
    IDEMPOTENCY_SECONDS,
    IDEMPOTENCY_SIZE_MAX,
)

_KEY: Final = re.compile(f"[!-~]{{1,{IDEMPOTENCY_KEY_SIZE_MAX}}}")
_PASSING: Final = frozenset({"incomplete", "feed_uncertain"})
"""Codes of refusals, beside those of HTTP statuses from 500 on, that end by themselves: peers bring what is missing."""
_LOOK: Final = "look whether it was done before you do it again"


@dataclass(slots=True, eq=False)
class Kept:
    """A request under way, or its outcome.

    Over without answer or error means cut short: the outcome is unknown.
    """

    place: tuple[str, str]
    fingerprint: bytes
    since: float
    is_over: trio.Event = field(default_factory=trio.Event)
    answer: bytes | None = None
    error: ServiceError | None = None

    def say(self) -> bytes:
        """Return the answer to a request that is over. Raises its error, and ServiceError `answer_lost`."""
        if self.error is not None:
            raise ServiceError(self.error.code, self.error.message, self.error.advice)
        if self.answer is None:
            raise ServiceError("answer_lost", "the request was cut short", _LOOK)
        return self.answer


def new_run() -> str:
    """Return 64 random bits as text, which tell this run of the daemon from all others."""
    return secrets.token_hex(8)


class Repeats:
    """Requests by caller and key. Those that are finished are forgotten after a while, and when there are too many."""

    def __init__(self, run: str) -> None:
        self._run = run
        self._kept: OrderedDict[tuple[str, str], Kept] = OrderedDict()  # the oldest first
        self._size = 0  # bytes of answers

    async def answer(
        self,
        caller: Caller,
        request: Request,
        find_fingerprint: Callable[[], bytes],
        act: Callable[[], Awaitable[object]],
    ) -> Response:
        """Return the answer of `act`, or its earlier answer to this request. Raises ServiceError as it does or did.

        A request without a key is done. `bad_request`: the key is not one. `key_reused`: it came with another request.
        `answer_lost`: nothing tells whether the request was done.
        """
        key = _key_of(request)
        if not key:
            return json_response(await act())
        self.check_run(request)
        fingerprint = find_fingerprint()
        while True:
            kept, is_new = self.begin(caller, key, fingerprint)
            if is_new:
                break
            if kept.is_over.is_set():
                return Response(kept.say(), media_type="application/json")
            await kept.is_over.wait()
        try:
            response = json_response(await act())
        except Exception as error:
            self.finish(kept, error)
            raise
        else:
            self.finish(kept, bytes(response.body))
            return response
        finally:
            kept.is_over.set()

    def check_run(self, request: Request) -> None:
        """Raise ServiceError `answer_lost` where a request is for another run of the daemon."""
        if request.headers.get(RUN_HEADER, self._run) != self._run:
            raise ServiceError(
                "answer_lost", "the node was started again since the request was first sent", _LOOK
            )

    def begin(self, caller: Caller, key: str, fingerprint: bytes) -> tuple[Kept, bool]:
        """Return the entry of a request, and True if it is new: then the caller does its work and calls `finish`.

        Raises ServiceError `key_reused` if another request came with this key.
        """
        self._forget_old()
        place = ("" if caller.token is None else caller.token.digest, key)
        kept = self._kept.get(place)
        if kept is None:
            kept = self._kept[place] = Kept(place, fingerprint, trio.current_time())
            return kept, True
        if kept.fingerprint != fingerprint:
            raise ServiceError(
                "key_reused",
                f"{KEY_HEADER} {key!r} came with another request",
                "make up a key for each request",
            )
        return kept, False

    def finish(self, kept: Kept, outcome: bytes | Exception) -> None:
        """Keep the answer to a request, or its refusal. What undid the write is not kept: a repetition tries again."""
        if isinstance(outcome, bytes):
            kept.answer = outcome
            self._size += len(outcome)
        elif isinstance(outcome, ServiceError) and not _passes(outcome):
            kept.error = outcome
        else:
            del self._kept[kept.place]
        kept.is_over.set()

    def forget(self, kept: Kept) -> None:
        """Forget a request that is over, if it is still kept."""
        if self._kept.get(kept.place) is kept:
            del self._kept[kept.place]
            self._size -= len(kept.answer or b"")

    def _forget_old(self) -> None:
        """Forget what is too old or too much, the oldest first. What is under way stays; connections bound it."""
        latest = trio.current_time() - IDEMPOTENCY_SECONDS
        count, size, forgotten = len(self._kept), self._size, []
        for kept in self._kept.values():
            is_too_much = count >= IDEMPOTENCY_COUNT_MAX or size > IDEMPOTENCY_SIZE_MAX
            if kept.since > latest and not is_too_much:
                break
            if kept.is_over.is_set():
                forgotten.append(kept)
                count -= 1
                size -= len(kept.answer or b"")
        for kept in forgotten:
            self.forget(kept)


def _passes(error: ServiceError) -> bool:
    """Return True for a refusal that says how the node stood for a while, and that nothing was done.

    A repetition tries again, as such a refusal advises.
    """
    return kind_of(error).http_status >= HTTPStatus.INTERNAL_SERVER_ERROR or error.code in _PASSING


class StatesRun:
    """Has every answer of an application state the run of the daemon."""

    def __init__(self, application: ASGIApp, run: str) -> None:
        self._application = application
        self._header = (RUN_HEADER.lower().encode(), run.encode())

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request."""

        async def state(message: Message) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": [*message.get("headers", ()), self._header]}
            await send(message)

        await self._application(scope, receive, state)


def fingerprint_of(endpoint: AnyEndpoint, request: Request, content: bytes) -> bytes:
    """Return 32 bytes that tell requests apart. A repetition has the same path, query and body."""
    parts = (
        endpoint.name,
        request.url.path,
        request.url.query,
        request.headers.get(REPO_HEADER, ""),
    )
    digest = blake3()
    for part in (*(one.encode("utf-8", "surrogateescape") for one in parts), content):
        digest.update(len(part).to_bytes(8, "big") + part)
    return digest.digest()


def refuse_key(request: Request) -> None:
    """Raise ServiceError `bad_request` where a request whose content is streamed carries a key."""
    if _key_of(request):
        raise ServiceError(
            "bad_request",
            f"an upload takes no {KEY_HEADER}, since its content is not kept",
            _LOOK,
        )


def _key_of(request: Request) -> str:
    keys = request.headers.getlist(KEY_HEADER)
    if not keys:
        return ""
    if len(keys) > 1 or not _KEY.fullmatch(keys[0]):
        raise ServiceError(
            "bad_request", f"{KEY_HEADER} is one text of 1 to {IDEMPOTENCY_KEY_SIZE_MAX} characters of ASCII"
        )
    return keys[0]
