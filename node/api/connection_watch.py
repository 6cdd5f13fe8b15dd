"""`ConnectionWatch`: ends connections without a request, and has those with long answers look whether their client is there.

There is one timer for all connections of a listener. One of its own for each request would take as long as parsing it.
"""

import math
from typing import Final, Protocol

import trio

IDLE_SECONDS: Final = 5.0
"""Until a request's headers have come whole. Browsers and the client open another connection when they need one."""
_LOOK_SECONDS: Final = 0.5
"""Between two looks at all connections, and how long an answer takes before its client is looked for."""


class Watched(Protocol):
    """A connection."""

    def end_idle(self) -> None:
        """Wait for a request no longer."""
        ...

    def look_for_client(self) -> None:
        """Notice if the client of the answer under way leaves."""
        ...


class ConnectionWatch:
    """The connections of one listener. Each is waiting for a request, is answering one, or is not known."""

    def __init__(self) -> None:
        # Since when, the longest first.
        self._waiting: dict[Watched, float] = {}
        self._answering: dict[Watched, float] = {}
        self._has_some = trio.Event()

    def wait_for_request(self, connection: Watched) -> None:
        """A connection begins to wait for a request."""
        self._answering.pop(connection, None)
        self._waiting[connection] = trio.current_time()
        if not self._has_some.is_set():
            self._has_some.set()

    def begin_answer(self, connection: Watched) -> None:
        """The request of a connection has come."""
        del self._waiting[connection]
        self._answering[connection] = trio.current_time()

    def forget(self, connection: Watched) -> None:
        """A connection has ended."""
        self._waiting.pop(connection, None)
        self._answering.pop(connection, None)

    async def run(self) -> None:
        """Look at them again and again, until cancelled."""
        while True:
            if not self._waiting and not self._answering:
                self._has_some = trio.Event()
                await self._has_some.wait()
            await trio.sleep(_LOOK_SECONDS)
            self._look(trio.current_time())

    def _look(self, now: float) -> None:
        for connection in _take_until(self._waiting, now - IDLE_SECONDS):
            connection.end_idle()
        for connection in _take_until(self._answering, now - _LOOK_SECONDS):
            connection.look_for_client()
            self._answering[connection] = now


def _take_until(since: dict[Watched, float], latest: float) -> list[Watched]:
    """Take out those that have been there so long."""
    found = []
    for connection, began in since.items():
        if began > latest + math.ulp(latest):
            break
        found.append(connection)
    for connection in found:
        del since[connection]
    return found
