"""Whose turn it is, so that a huge topic does not hold up a small one.

A connection's batches are read as they come and stored in order, but only in the order that matters: after earlier ones of
the same topic, and after earlier ones of root branches, which say what the others may. Between connections and topics a
short batch goes before long ones that wait, some times in a row at most.
"""

from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Final, Protocol

import trio

from protocol.limits import BACKLOG_SIZE_MAX

SHORT_COUNT_MAX: Final = 64
"""Publications of a batch that counts as short: some milliseconds of work, where a full one takes a tenth of a second."""
_OVERTAKEN_MAX: Final = 8
"""Short batches that go before a long one that waits: half a full one's time."""


class Previous(Protocol):
    """What a batch waits for before it is stored."""

    async def wait(self) -> None:
        """Return when it has happened."""


@dataclass(frozen=True, slots=True)
class _All:
    events: tuple[trio.Event, ...]

    async def wait(self) -> None:
        for event in self.events:
            await event.wait()


class Turns:
    """The order in which the batches of one connection are stored."""

    def __init__(self) -> None:
        self._last: dict[bytes, trio.Event] = {}  # by topic
        self._last_of_root: trio.Event | None = None

    def next(self, topic: bytes, *, is_root: bool) -> tuple[Previous, trio.Event]:
        """What a batch that has come now waits for, and what to set when it is stored."""
        events = (self._last.get(topic), self._last_of_root)
        done = self._last[topic] = trio.Event()
        if is_root:
            self._last_of_root = done
        return _All(tuple(event for event in events if event is not None)), done


class Backlog:
    """Bytes of batches that wait, of all connections: who reads more of them asks first whether there is room."""

    def __init__(self, size_max: int = BACKLOG_SIZE_MAX) -> None:
        self._size_max = size_max
        self._size = 0
        self._shrunk = trio.Event()

    @contextmanager
    def holding(self, items: Sequence[bytes]) -> Iterator[None]:
        """Count a batch until it is dealt with."""
        size = sum(map(len, items))
        self._size += size
        try:
            yield
        finally:
            self._size -= size
            self._shrunk.set()
            self._shrunk = trio.Event()

    async def has_room(self) -> None:
        """Return when there is room. What is there is being worked on, so it comes."""
        while self._size >= self._size_max:
            await self._shrunk.wait()


class ShortFirst:
    """A lock that short work gets before long work that waits for it."""

    def __init__(self) -> None:
        self._is_held = False
        self._waiting: list[tuple[bool, trio.Event]] = []  # whether it is short
        self._overtaken = 0  # times in a row that the first was not the next

    @asynccontextmanager
    async def held(self, count: int) -> AsyncIterator[None]:
        """Hold it for work on so many publications."""
        await self._acquire(is_short=count <= SHORT_COUNT_MAX)
        try:
            yield
        finally:
            self._release()

    async def _acquire(self, *, is_short: bool) -> None:
        if not self._is_held:
            self._is_held = True
            return
        mine = (is_short, trio.Event())
        self._waiting.append(mine)
        try:
            await mine[1].wait()
        except trio.Cancelled:
            if mine in self._waiting:
                self._waiting.remove(mine)
            else:  # it was handed over a moment before
                self._release()
            raise

    def _release(self) -> None:
        if not self._waiting:
            self._is_held = False
            return
        chosen = self._waiting[0]
        if self._overtaken < _OVERTAKEN_MAX:
            chosen = next((one for one in self._waiting if one[0]), chosen)
        self._overtaken = 0 if chosen is self._waiting[0] else self._overtaken + 1
        self._waiting.remove(chosen)
        chosen[1].set()
