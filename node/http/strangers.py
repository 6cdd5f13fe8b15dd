"""Limits for API connections that have not shown a token: how many, for how long, and how fast they are served."""

import math
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import Final

import trio

from node.http.remote import Remote
from node.runtime.user_requests import GivingWay, UserRequests
from protocol.limits.formats import KIB
from protocol.limits.peers import GIVING_WAY_SECONDS
from protocol.limits.users import (
    API_STRANGER_SECONDS,
    API_STRANGERS_MAX,
    REMOTE_STRANGERS_MAX,
    REMOTE_STRANGERS_SUBNET_MAX,
)

_AT_ONCE_MAX: Final = 4
_TURN_SECONDS: Final = 0.01
"""Least time of a turn. With `_AT_ONCE_MAX` it allows 400 answers a second, a fifth of a processor: a page has 70 files."""
_READ_SIZE: Final = 64 * KIB
_FIRST_READ_SIZE: Final = 8 * KIB
"""Bytes read before the first turn. A browser's head fits, so its token is seen under a flood."""
_STRANGER_READ_SIZE: Final = KIB
"""Bytes read at a time. Chunks of one byte in 1 KiB are parsed in 0.02 ms, small requests in 0.07; of 64 KiB in 4 ms."""


class Stranger:
    """A connection, which is a stranger until one of its requests has shown a token."""

    def __init__(
        self,
        turns: trio.Semaphore | None,
        subnet: str = "",
        here: "dict[Stranger, None] | None" = None,
        giving_way: GivingWay | None = None,
        parsing: trio.StrictFIFOLock | None = None,
    ) -> None:
        """`here` has all strangers of the listener, this one too until it leaves.

        `giving_way` lets the user's requests go first. `parsing` lets one stranger parse at a time.
        """
        self.subnet = subnet
        self.is_trusted = False
        self.scope = trio.CancelScope()
        self.asked_at = 0.0
        """When it began to wait for its present request."""
        self._here = {} if here is None else here
        self._turns = turns
        self._giving_way = giving_way
        self._parsing = parsing
        self._has_taken_turn = False

    def trust(self) -> None:
        """Lift all limits: a request has shown a token."""
        self.is_trusted = True
        self.scope.deadline = math.inf
        self.leave()

    def leave(self) -> None:
        """Give up the place among strangers."""
        self._here.pop(self, None)

    def begin_request(self) -> None:
        """Start the time in which the next request must come whole."""
        if not self.is_trusted:
            self.asked_at = trio.current_time()
            self.scope.deadline = self.asked_at + API_STRANGER_SECONDS

    def end_request(self) -> None:
        """Stop that time: the request has come whole, and its answer may take any time."""
        self.scope.deadline = math.inf

    @property
    def read_size(self) -> int:
        """Bytes that are read at a time."""
        if self.is_trusted:
            return _READ_SIZE
        return _STRANGER_READ_SIZE if self._has_taken_turn else _FIRST_READ_SIZE

    async def wait_to_parse(self) -> None:
        """Wait until no other stranger is parsed in this turn of the event loop: 100 that come at once would take 60 ms."""
        if not self.is_trusted and self._parsing is not None:
            async with self._parsing:
                await trio.lowlevel.checkpoint()

    async def take_turn(self) -> None:
        """Wait for a turn of the strangers, so that they leave most of the processor to others."""
        self._has_taken_turn = True
        if not self.is_trusted and self._turns is not None:
            async with self._turns:
                if self._giving_way is not None:
                    await self._giving_way.wait()
                await trio.sleep(_TURN_SECONDS)


class Strangers:
    """All strangers of one listener."""

    def __init__(self, remote: Remote | None = None, requests: UserRequests | None = None) -> None:
        """`requests` are those with a token, to which strangers of this machine give way."""
        self.remote = remote
        self._giving_way = None if requests is None else GivingWay(requests, GIVING_WAY_SECONDS)
        # Of other machines only their number is bounded, by subnet: they would wait for each other.
        self._turns = trio.Semaphore(_AT_ONCE_MAX) if remote is None else None
        self._parsing = trio.StrictFIFOLock()
        self._here: dict[Stranger, None] = {}  # the oldest first

    @contextmanager
    def admit(self, scope: trio.CancelScope, subnet: str = "") -> Iterator[Stranger]:
        """Count a connection as a stranger while it lasts, or until it is trusted. `scope` ends all of it.

        One over the limit of its subnet, or of all, ends the stranger with the oldest request.
        """
        near = [one for one in self._here if subnet and one.subnet == subnet]
        if len(near) >= REMOTE_STRANGERS_SUBNET_MAX:
            self._end_one(near)
        elif len(self._here) >= (API_STRANGERS_MAX if self.remote is None else REMOTE_STRANGERS_MAX):
            self._end_one(self._here)
        stranger = Stranger(self._turns, subnet, self._here, self._giving_way, self._parsing)
        stranger.scope = scope
        stranger.begin_request()
        self._here[stranger] = None
        try:
            yield stranger
        finally:
            stranger.leave()

    def _end_one(self, some: Collection[Stranger]) -> None:
        # A connection that is about to show its token is among the newest.
        found = min(some, key=lambda one: one.asked_at)
        del self._here[found]
        found.scope.cancel()
