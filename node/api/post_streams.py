"""Streams of posts: a request whose body is lines, and whose answer has a line for each, once that is durable.

One task reads lines, and another writes what waits: so the lines of a client that does not wait for answers share
transactions. The stream reads on while it owes few answers, and so holds a bounded amount for a client that reads none.
A line with an idempotency key is known, when it comes again on another connection (`node.api.repeats`).
"""

from collections import deque
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import msgspec
import structlog
import trio
from blake3 import blake3
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from node.api.callers import Callers, caller_of
from node.api.repeats import Kept, Repeats, fingerprint_of
from node.api.requests import parse_json, read_chunks, refusal_of
from node.content.posts import Posts, check_said
from node.contract.commits import STREAM_POSTS, StreamedPost
from node.contract.endpoint import LINES_TYPE
from node.runtime.blocking import RunBlocking
from node.runtime.errors import ServiceError
from protocol.limits.users import (
    EVENT_SEND_SECONDS,
    WRITE_STREAM_COUNT_MAX,
    WRITE_STREAM_KEYS_MAX,
    WRITE_STREAM_LINE_SIZE_MAX,
    WRITE_STREAM_SIZE_MAX,
)

log = structlog.get_logger()

_WRITTEN_MAX: Final = WRITE_STREAM_COUNT_MAX // 2
"""Lines that are written at a time: as many more may come meanwhile."""


class PostStreams:
    """Opens streams of posts."""

    def __init__(self, posts: Posts, repeats: Repeats, callers: Callers, run_blocking: RunBlocking) -> None:
        self.posts = posts
        self.repeats = repeats
        self.callers = callers
        self.run_blocking = run_blocking

    async def open(self, request: Request) -> Response:
        """Return the answer to a stream. Raises ServiceError `answer_lost` where it is for another run of the daemon."""
        self.repeats.check_run(request)
        return _PostStream(self, request)


class LineCutter:
    """Cuts a body that comes in pieces into its lines. Pure."""

    def __init__(self, size_max: int) -> None:
        self._size_max = size_max
        self._begun = bytearray()
        self._is_too_long = False

    def add(self, piece: bytes) -> Iterator[bytes | None]:
        """Yield the lines that end in a piece, but for blank ones; None for one of more than `size_max` bytes."""
        *ends, rest = piece.split(b"\n")
        for end in ends:
            self._extend_line(end)
            if self._begun or self._is_too_long:
                yield from self.finish()
        self._extend_line(rest)

    def finish(self) -> Iterator[bytes | None]:
        """Yield the line that has begun, if any, as `add` does."""
        if self._is_too_long:
            yield None
        elif line := bytes(self._begun).strip():  # of CRLF, and of spaces between lines
            yield line
        self._begun.clear()
        self._is_too_long = False

    def _extend_line(self, part: bytes) -> None:
        if not self._is_too_long:
            self._begun += part
        if len(self._begun) > self._size_max:
            self._is_too_long = True
            self._begun.clear()


class _Line(NamedTuple):
    """Line that is to be written, and what is kept of it for a repetition."""

    post: StreamedPost
    kept: Kept | None


class _PostStream(Response):
    """Stream of posts until the end of the body or of the connection."""

    def __init__(self, streams: PostStreams, request: Request) -> None:
        super().__init__(media_type=LINES_TYPE, headers={"Cache-Control": "no-store"})
        del self.headers["content-length"]
        self._streams = streams
        self._request = request
        self._caller = caller_of(request)
        self._named: str = request.path_params["branch"]
        self._branch = ""  # its ids, once they are found: a rename sends no line elsewhere
        self._path = request.url.path
        self._origin = fingerprint_of(STREAM_POSTS, request, b"")
        self._waiting: deque[bytes | None] = deque()  # lines that were read
        self._owed = 0  # answers
        self._size = 0  # bytes of the lines that are not answered
        self._is_whole = False
        self._changed = trio.Event()
        self._known: deque[Kept] = deque()  # of its latest lines with keys

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve it."""
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._read)
            while await self._wait_for_line():
                lines = [self._waiting.popleft() for _ in range(min(len(self._waiting), _WRITTEN_MAX))]
                await self._answer(lines, send)
            nursery.cancel_scope.cancel()
        with trio.move_on_after(EVENT_SEND_SECONDS):
            await send({"type": "http.response.body", "body": b""})

    # --- reading ---

    async def _read(self) -> None:
        """Read lines until the body ends, or nothing comes of it for a while."""
        cutter = LineCutter(WRITE_STREAM_LINE_SIZE_MAX)
        try:
            async for piece in read_chunks(self._request):
                for line in cutter.add(piece):
                    await self._take(line)
            for line in cutter.finish():
                await self._take(line)
        except ServiceError:  # it has paused for long: the client begins another stream
            pass
        except ClientDisconnect:
            log.info("client left", path=self._path)
            self._waiting.clear()  # nobody hears of them, and a client that comes back sends them again
        self._is_whole = True
        self._changed.set()

    async def _take(self, line: bytes | None) -> None:
        while self._owed >= WRITE_STREAM_COUNT_MAX or self._size >= WRITE_STREAM_SIZE_MAX:
            await self._wait()
        self._waiting.append(line)
        self._owed += 1
        self._size += len(line or b"")
        self._change()

    async def _wait_for_line(self) -> bool:
        while not self._waiting and not self._is_whole:
            await self._wait()
        return bool(self._waiting)

    async def _wait(self) -> None:
        await self._changed.wait()

    def _change(self) -> None:
        self._changed.set()
        self._changed = trio.Event()

    # --- writing ---

    async def _answer(self, lines: Sequence[bytes | None], send: Send) -> None:
        """Write lines and answer them, in order."""
        answers: list[bytes] = []
        ready: list[_Line] = []
        try:
            for line in lines:
                try:
                    found = await self._prepare(line, ready, answers)
                except ServiceError as error:
                    found = _encode(error.as_json())
                if isinstance(found, _Line):
                    ready.append(found)
                else:
                    answers += await self._write(ready)
                    ready.clear()
                    answers.append(found)
            answers += await self._write(ready)
            ready.clear()
        finally:
            for one in ready:  # cut short: nobody knows what became of them
                if one.kept is not None:
                    one.kept.is_over.set()
        with trio.move_on_after(EVENT_SEND_SECONDS) as sending:
            await send({"type": "http.response.body", "body": b"".join(answers), "more_body": True})
        if sending.cancelled_caught:
            log.info("stream of posts cut, since nobody reads its answers")
            self._waiting.clear()
            self._is_whole = True
        self._owed -= len(lines)
        self._size -= sum(len(line or b"") for line in lines)
        self._change()

    async def _prepare(self, line: bytes | None, ready: list[_Line], answers: list[bytes]) -> _Line | bytes:
        """Return a line that is to be written, or the answer to one that is known. Raises ServiceError for a bad one.

        What is ready is written before it waits for another connection that writes the same line.
        """
        if line is None:
            raise ServiceError(
                "too_large", f"a line has at most {WRITE_STREAM_LINE_SIZE_MAX} bytes", "send a shorter text"
            )
        post = await parse_json(line, StreamedPost, self._streams.run_blocking)
        check_said(post.text)
        if not post.key:
            return _Line(post, None)
        fingerprint = blake3(self._origin + line).digest()
        while True:
            kept, is_new = self._streams.repeats.begin(self._caller, post.key, fingerprint)
            if is_new:
                return _Line(post, kept)
            if kept.is_over.is_set():
                return kept.say()
            answers += await self._write(ready)
            ready.clear()
            await kept.is_over.wait()

    async def _write(self, lines: Sequence[_Line]) -> list[bytes]:
        """Write lines that are ready; returns their answers. Raises nothing of theirs."""
        if not lines:
            return []
        outcomes: Sequence[object]
        try:
            self._streams.callers.check(self._caller)
            posts = self._streams.posts
            self._branch = self._branch or posts.resolve(self._named)
            outcomes = await posts.write_each(self._branch, [one.post.text for one in lines])
        except Exception as error:  # of whatever type: it is each line's
            outcomes = [error] * len(lines)
        return [self._finish(one, outcome) for one, outcome in zip(lines, outcomes, strict=True)]

    def _finish(self, line: _Line, outcome: object) -> bytes:
        error = refusal_of(outcome, self._path) if isinstance(outcome, Exception) else None
        answer = _encode(outcome if error is None else error.as_json())
        if line.kept is not None:
            self._streams.repeats.finish(line.kept, answer if error is None else error)
            self._known.append(line.kept)
            while len(self._known) > WRITE_STREAM_KEYS_MAX:
                self._streams.repeats.forget(self._known.popleft())
        return answer


def _encode(answer: object) -> bytes:
    return msgspec.json.encode(answer) + b"\n"
