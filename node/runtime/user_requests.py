"""`UserRequests`: requests of this user that are at work, to which others give way."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import trio

FIRST_SECONDS: Final = 1.0
"""Seconds for which others give way to a request: one that takes longer mostly waits for a peer itself."""


class UserRequests:
    """Requests at work, each for FIRST_SECONDS at most."""

    def __init__(self) -> None:
        self._until: dict[
            object, float
        ] = {}  # by request: when others give way to it no more, the first first
        self._none_left = trio.Event()

    @property
    def are_at_work(self) -> bool:
        """Return True if there is any."""
        while self._until:
            first = next(iter(self._until))
            if self._until[first] > trio.current_time():
                return True
            del self._until[first]
        return False

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """Count one request while the block lasts."""
        request = object()
        self._until[request] = trio.current_time() + FIRST_SECONDS
        try:
            yield
        finally:
            self._until.pop(request, None)
            if not self._until:
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
        """Return True if there is a request to give way to."""
        return self._requests.are_at_work

    async def wait(self) -> None:
        """Return once no request is at work, or in its turn, so many seconds after the one before."""
        if self._requests.are_at_work:
            async with self._turn:
                await self._requests.wait(self._seconds)
