"""Server-sent events as a client reads them, and how a stream that was cut goes on. Format: WHATWG HTML, 9.2."""

import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager, AbstractContextManager, AsyncExitStack, ExitStack
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Any, Final, Self

from ravel.errors import RavelError, decode, read_error
from ravel.exchange import Memory, Send
from ravel.operations import Request

_WAITS: Final = (0.2, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0)
"""Seconds before each attempt to go on. A daemon that is not back in the minute that they make was stopped for longer."""
_RESUME: Final = "watch again, from the last cursor"


@dataclass(frozen=True, slots=True)
class StreamEvent:
    """One event of a stream. A reader that has handled it continues from `cursor`, where it has one.

    docs/reference/endpoints.md has the type of `data` for each name.
    """

    name: str
    cursor: str
    data: dict[str, Any]


class StreamCut(Exception):
    """The stream has ended, and another may go on."""


class Following:
    """Position of a reader of events and the time of its next request, for both kinds of stream."""

    def __init__(self, memory: Memory, request: Request, *, reconnect: bool) -> None:
        self._memory = memory
        self._request = replace(request, headers={**request.headers, "Accept": "text/event-stream"})
        self._reconnect = reconnect
        self._failures = 0
        self._lines: dict[str, str] = {}
        self.cursor = ""
        """Of the latest event that had one."""

    def begin(self) -> Send:
        """Return the request to send, and forget parts of an event that was cut."""
        self._lines = {}
        headers = {**self._request.headers, **({"Last-Event-ID": self.cursor} if self.cursor else {})}
        return Send(self._memory.target, replace(self._request, headers=headers))

    def hear(self, line: str) -> StreamEvent | None:
        """Return the event that this line ends, if it ends one. Raises StreamCut, and RavelError as the daemon does."""
        key, _, value = line.partition(": ")
        if line:
            if key in ("event", "id", "data"):  # else a comment, or what a later version says
                self._lines[key] = value
            elif line.startswith(":"):  # the daemon is there, and has nothing to tell
                self._failures = 0
            return None
        name, data = self._lines.get("event", ""), self._lines.get("data", "")
        cursor = self._lines.get("id", self.cursor)
        self._lines = {}
        if name == "closing":
            raise StreamCut
        if not data:
            return None
        if name == "error" and (error := read_error(data)) is not None:
            raise error
        event = StreamEvent(name, cursor, decode(data, dict[str, Any]))
        if cursor != self.cursor:  # else it may be what every stream begins with
            self._failures, self.cursor = 0, cursor
        return event

    def cut(self, error: RavelError | None = None) -> float:
        """Seconds to wait before the stream is asked for again. Raises RavelError where it is not."""
        if not self._reconnect or self._failures == len(_WAITS):
            raise error or RavelError("interrupted", "the daemon has ended the stream", _RESUME)
        if error is not None and error.code not in ("busy", "not_running", "interrupted"):
            raise error
        self._failures += 1
        return _WAITS[self._failures - 1]

    def find_again(self) -> None:
        """Look where the daemon is now. Raises RavelError `not_running`."""
        self._memory.target = self._memory.target.found_again()


class EventStream:
    """Events as they come, one after the other: `with client.watch_edits(branch) as events: for event in events: ...`."""

    def __init__(
        self, following: Following, open_lines: Callable[[Send], AbstractContextManager[Iterator[str]]]
    ) -> None:
        """`open_lines` asks for a stream and gives its lines. It raises RavelError, and its lines StreamCut."""
        self._following = following
        self._open_lines = open_lines
        self._opened = ExitStack()
        self._lines: Iterator[str] = iter(())

    def __enter__(self) -> Self:
        self._open()
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self._opened.close()

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> StreamEvent:
        """Wait for the next event. Raises RavelError, `interrupted` where the stream was cut and does not go on."""
        while True:
            try:
                for line in self._lines:
                    if (event := self._following.hear(line)) is not None:
                        return event
                raise StreamCut
            except StreamCut:
                self._reopen()

    @property
    def cursor(self) -> str:
        """Cursor for another stream: after the latest event."""
        return self._following.cursor

    def _open(self) -> None:
        self._opened.close()
        self._lines = self._opened.enter_context(self._open_lines(self._following.begin()))

    def _reopen(self) -> None:
        error: RavelError | None = None
        while True:
            # Before it connects again: the reader waits in its own thread.
            time.sleep(self._following.cut(error))
            try:
                self._following.find_again()
                self._open()
            except RavelError as failed:
                error = failed
            else:
                return


class AsyncEventStream:
    """Awaitable stream of events: `async with client.watch_edits(branch) as events: async for event in events: ...`."""

    def __init__(
        self,
        following: Following,
        open_lines: Callable[[Send], AbstractAsyncContextManager[AsyncIterator[str]]],
        sleep: Callable[[float], Awaitable[None]],
    ) -> None:
        """Open the stream. `sleep` waits this many seconds."""
        self._following = following
        self._open_lines = open_lines
        self._sleep = sleep
        self._opened = AsyncExitStack()
        self._lines: AsyncIterator[str] | None = None

    async def __aenter__(self) -> Self:
        await self._open()
        return self

    async def __aexit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        await self._opened.aclose()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> StreamEvent:
        """Await the next event. Raises as EventStream."""
        assert self._lines is not None, "a stream is entered before it is read"
        while True:
            try:
                async for line in self._lines:
                    if (event := self._following.hear(line)) is not None:
                        return event
                raise StreamCut
            except StreamCut:
                await self._reopen()

    @property
    def cursor(self) -> str:
        """Cursor for another stream: after the latest event."""
        return self._following.cursor

    async def _open(self) -> None:
        await self._opened.aclose()
        self._lines = await self._opened.enter_async_context(self._open_lines(self._following.begin()))

    async def _reopen(self) -> None:
        error: RavelError | None = None
        while True:
            await self._sleep(self._following.cut(error))
            try:
                self._following.find_again()
                await self._open()
            except RavelError as failed:
                error = failed
            else:
                return
