"""`ConnectionWatch`: ends connections without a request, and has those with long answers look whether their client is there.

There is one timer for all connections of a listener. One of its own for each request would take as long as parsing it.
"""

from typing import Final, Protocol

import trio

IDLE_SECONDS: Final = 5.0
"""Until a request's headers have come whole, or half a second more. Clients open another connection when they need one."""
_LOOK_SECONDS: Final = 0.5
"""Between two looks at all connections. A client of an answer that takes longer is looked for."""
_IDLE_LOOKS: Final = 1 + round(IDLE_SECONDS / _LOOK_SECONDS)


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
        # Since which look, the longest first. Looks are counted: what time it is costs more to ask than all the rest.
        self._waiting: dict[Watched, int] = {}
        self._answering: dict[Watched, int] = {}
        self._looks = 0
        self._has_some = trio.Event()

    def wait_for_request(self, connection: Watched) -> None:
        """A connection begins to wait for a request."""
        self._answering.pop(connection, None)
        self._waiting[connection] = self._looks
        if not self._has_some.is_set():
            self._has_some.set()

    def begin_answer(self, connection: Watched) -> None:
        """The request of a connection has come."""
        del self._waiting[connection]
        self._answering[connection] = self._looks

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
            self._look()

    def _look(self) -> None:
        self._looks += 1
        for connection in _take_until(self._waiting, self._looks - _IDLE_LOOKS):
            connection.end_idle()
        # Two looks ago at the latest: between these there was half a second.
        for connection in _take_until(self._answering, self._looks - 2):
            connection.look_for_client()
            self._answering[connection] = self._looks


def _take_until(since: dict[Watched, int], latest: int) -> list[Watched]:
    """Take out those that have been there since that look or longer."""
    found = []
    for connection, look in since.items():
        if look > latest:
            break
        found.append(connection)
    for connection in found:
        del since[connection]
    return found
