"""`UserRequests`: requests of this user that are at work, to which others give way."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

import trio

FIRST_SECONDS: Final = 1.0
"""Seconds after the latest request began for which others give way: one that takes longer mostly waits for a peer itself."""


class UserRequests:
    """Count of requests at work."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """`clock` counts seconds, in any thread."""
        self._clock = clock
        self._count = 0
        self._until = 0.0
        self._none_left = trio.Event()

    @property
    def are_at_work(self) -> bool:
        """Return True if others are to give way to any. For every thread."""
        return self._count > 0 and self._clock() < self._until

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """Count one request while the block lasts."""
        self._count += 1
        self._until = self._clock() + FIRST_SECONDS
        try:
            yield
        finally:
            self._count -= 1
            if not self._count:
                self._none_left.set()
                self._none_left = trio.Event()

    async def wait(self, seconds: float) -> None:
        """Return once no request is at work, after so many seconds at the latest."""
        if self.are_at_work:
            with trio.move_on_after(seconds):
                await self._none_left.wait()


class GivingWay:
    """Queue of those that give way to this user's requests: all together have one turn in that time, however many wait."""

    def __init__(self, requests: UserRequests, seconds: float) -> None:
        self._requests = requests
        self._seconds = seconds
        self._turn = trio.StrictFIFOLock()

    @property
    def is_due(self) -> bool:
        """Return True if there is a request to give way to. For every thread."""
        return self._requests.are_at_work

    async def wait(self) -> None:
        """Return once no request is at work, or in its turn, so many seconds after the one before."""
        if self._requests.are_at_work:
            async with self._turn:
                await self._requests.wait(self._seconds)
