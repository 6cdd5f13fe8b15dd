"""Orders the storing of a connection's received batches, and bounds the bytes that wait.

They are read as they come and stored in order, but only in the order that matters: after earlier ones of the same repo,
where later epochs' commits follow those of older ones, and after earlier ones of epochs' own topics, whose inits give keys.
What a relay keeps is ordered by topic. Between peers turns are `node.runtime.scheduling`'s.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol

import trio

from protocol.ids import TopicKey
from protocol.limits.peers import BACKLOG_SIZE_MAX


class Previous(Protocol):
    """Condition that a batch waits for before it is stored."""

    async def wait(self) -> None:
        """Return when it has happened."""


@dataclass(frozen=True, slots=True)
class _All:
    events: tuple[trio.Event, ...]

    async def wait(self) -> None:
        for event in self.events:
            await event.wait()


class BatchOrder:
    """The order in which the batches of one connection are stored."""

    def __init__(self) -> None:
        self._last: dict[TopicKey | int, trio.Event] = {}  # by repo or topic
        self._last_of_own: trio.Event | None = None

    def next(self, group: TopicKey | int, *, is_own: bool) -> tuple[Previous, trio.Event]:
        """Return what a batch that has come now waits for, and the event to set when it is stored.

        Args:
            group: The number of its repo, or a topic that is kept for others.
            is_own: Whether it came on an epoch's own topic.
        """
        events = (self._last.get(group), self._last_of_own)
        done = self._last[group] = trio.Event()
        if is_own:
            self._last_of_own = done
        return _All(tuple(event for event in events if event is not None)), done


class ByteBudget:
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

    @property
    def is_open(self) -> bool:
        """Return True if there is room now."""
        return self._size < self._size_max

    async def has_room(self) -> None:
        """Return when there is room. What is there is being worked on, so it comes."""
        while not self.is_open:
            await self._shrunk.wait()
