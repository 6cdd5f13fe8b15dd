"""Server-sent event streams: limited in number, resumable by last event id, closed when the node stops.

A stream holds what one read of its source gave, and asks for more when that was written. So nothing is kept for a client
that does not read: it is cut after a while, and finds in the store what it missed. Format: WHATWG HTML, 9.2.
"""

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Final, Protocol

import msgspec
import structlog
import trio
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from node.http.server import CUT
from node.runtime.errors import ServiceError
from protocol.limits.users import (
    EVENT_PAUSE_SECONDS,
    EVENT_PAUSE_SECONDS_MIN,
    EVENT_PAUSED_STREAMS,
    EVENT_SEND_SECONDS,
    EVENT_SILENCE_SECONDS,
    EVENT_STREAMS_MAX,
)
from storage.engine.database import StorageError

log = structlog.get_logger()

CONTENT_TYPE: Final = "text/event-stream"
_RETRY: Final = b"retry: 2000\n\n"
_LOOK_SHARE: Final = 0.1
"""Of EVENT_SEND_SECONDS: between two looks for streams that nobody reads."""
_STILL_HERE: Final = b": still here\n\n"


def pause_of(streams: int) -> float:
    """Return the seconds between two looks of a stream: the more there are, the longer, so that all take a bounded share."""
    return max(EVENT_PAUSE_SECONDS_MIN, min(1, streams / EVENT_PAUSED_STREAMS) * EVENT_PAUSE_SECONDS)


@dataclass(frozen=True)
class Event:
    """One event: its name, where a client goes on from after it ("" where that is nowhere), and its data."""

    name: str
    cursor: str
    data: Mapping[str, object]

    @cached_property
    def encoded(self) -> bytes:
        """Bytes of the event, made once for all streams. JSON has no line breaks of its own, so the data is one line."""
        lines = f"id: {self.cursor}\n" if self.cursor else ""
        return f"{lines}event: {self.name}\ndata: ".encode() + msgspec.json.encode(self.data) + b"\n\n"


class EventSource(Protocol):
    """Source of a stream's events."""

    def start(self) -> None:
        """Begin to notice."""
        ...

    def stop(self) -> None:
        """Cease to notice."""
        ...

    async def next(self) -> Sequence[Event]:
        """Wait for the next events; may be cancelled and called again without losing one.

        Raises ServiceError, StorageError.
        """
        ...


class EventStreams:
    """All streams of the node."""

    def __init__(self) -> None:
        self._waiting: dict[_Stream, trio.CancelScope] = {}
        self._sending: dict[_Stream, float] = {}  # since when, in trio's time
        self._open = 0
        self._all_ended = trio.Event()
        self.is_closing = False

    @property
    def count(self) -> int:
        """Number of open streams."""
        return self._open

    def open(self, source: EventSource) -> Response:
        """Return an answer that sends the source's events. Raises ServiceError `busy`."""
        if self._open >= EVENT_STREAMS_MAX or self.is_closing:
            raise ServiceError(
                "busy",
                f"{EVENT_STREAMS_MAX} event streams are open"
                if not self.is_closing
                else "the node is stopping",
                "close one, or ask for windows of edits instead",
            )
        self._open += 1
        return _Stream(self, source)

    async def run(self) -> None:
        """Cut streams that nobody reads, until cancelled: one look for all of them, for a timer takes as long as a write."""
        while True:
            await trio.sleep(EVENT_SEND_SECONDS * _LOOK_SHARE)  # a write that waits makes no sound
            latest = trio.current_time() - EVENT_SEND_SECONDS
            for stream in [one for one, since in self._sending.items() if since <= latest]:
                log.info("event stream cut, since nobody reads it")
                self._sending.pop(stream, None)
                await stream.cut()

    @contextmanager
    def sending(self, stream: "_Stream") -> Iterator[None]:
        """Something is being written, which may wait for the client."""
        self._sending[stream] = trio.current_time()
        try:
            yield
        finally:
            self._sending.pop(stream, None)

    async def close(self) -> None:
        """End all streams, each with a last event. Returns when they have ended."""
        self.is_closing = True
        for waiting in list(self._waiting.values()):
            waiting.cancel()
        if self._open:
            await self._all_ended.wait()

    def ended(self, stream: "_Stream") -> None:
        """Note that a stream has ended."""
        self._waiting.pop(stream, None)
        self._open -= 1
        if self.is_closing and not self._open:
            self._all_ended.set()

    async def wait(self, stream: "_Stream", source: EventSource) -> Sequence[Event] | None:
        """Return the source's next events; none after a quiet while, None when all streams end."""
        with trio.move_on_after(EVENT_SILENCE_SECONDS) as scope:
            self._waiting[stream] = scope
            if self.is_closing:
                return None
            return await source.next()
        return None if self.is_closing else ()


class _Stream(Response):
    """Event stream until its end: the client leaves or does not read, the source fails, or the node stops."""

    def __init__(self, streams: EventStreams, source: EventSource) -> None:
        super().__init__(media_type=CONTENT_TYPE, headers={"Cache-Control": "no-store"})
        del self.headers["content-length"]
        self._streams = streams
        self._source = source
        self.cut: Callable[[], Awaitable[None]] = _do_nothing
        """Close the connection under what is being written: a write that waits for the client ends at once."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve it."""
        self._source.start()
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(_wait_for_disconnect, receive, nursery.cancel_scope)
                self.cut = scope.get("extensions", {}).get(CUT, _do_nothing)
                await self._write(send, scope["path"])
                nursery.cancel_scope.cancel()
        finally:
            self._source.stop()
            self._streams.ended(self)

    async def _write(self, send: Send, path: str) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        content = _RETRY
        while True:
            await self._send(send, content, more=True)
            try:
                events = await self._streams.wait(self, self._source)
            except (StorageError, ServiceError) as error:
                log.warning("event stream failed", path=path, error=str(error))
                failed = (
                    error
                    if isinstance(error, ServiceError)
                    else ServiceError("storage_failed", str(error), "check the disk")
                )
                content = Event("error", "", failed.as_json()).encoded
                break
            if events is None:
                content = Event("closing", "", {}).encoded
                break
            content = b"".join(event.encoded for event in events) or _STILL_HERE
        await self._send(send, content, more=False)

    async def _send(self, send: Send, content: bytes, *, more: bool) -> None:
        with self._streams.sending(self):
            await send({"type": "http.response.body", "body": content, "more_body": more})


async def _do_nothing() -> None:
    """Do nothing, where there is no connection to cut."""


async def _wait_for_disconnect(receive: Receive, scope: trio.CancelScope) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    scope.cancel()
