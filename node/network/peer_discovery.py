"""Dials learned addresses when a repo has too few peers, or a configured peer cannot be reached.

Few at a time, under bounds of their own: `node.network.peer_dialing` dials configured peers and those of links anyway.
"""

from collections.abc import Awaitable, Callable
from typing import Final

import trio

from node.network.peer_registry import PeerRegistry
from node.sync.addresses import Learned
from node.sync.introductions import Introducer
from protocol.ids import PeerId
from protocol.limits.network import LEARNED_CONNECTIONS_MAX, LEARNED_DIALS_AT_ONCE_MAX, LEARNED_PEERS_WANTED

_LOOK_SECONDS: Final = 5.0
"""Seconds between two looks at what is due, where nothing new was learned."""


Dial = Callable[[Learned, Callable[[], Awaitable[None]]], Awaitable[bool]]
"""Dials, calls the other once the peer has proved its key, and converses; returns True if a session lasted."""


class PeerFinder:
    """Finds peers at learned addresses. `run` owns every task."""

    def __init__(self, registry: PeerRegistry, dial: Dial, introducer: Introducer) -> None:
        self._registry = registry
        self._dial = dial
        self._book = registry.book
        self._introducer = introducer
        self._sought: set[PeerId] = set()
        self._dialing = 0

    async def run(self) -> None:
        """Seek, until cancelled."""
        async with trio.open_nursery() as nursery:
            while True:
                news = self._introducer.news
                self._start_due(nursery)
                with trio.move_on_after(_LOOK_SECONDS):
                    await news.wait()

    def _start_due(self, nursery: trio.Nursery) -> None:
        now = trio.current_time()
        for learned in self._book.due(now):
            if self._dialing >= LEARNED_DIALS_AT_ONCE_MAX or len(self._sought) >= LEARNED_CONNECTIONS_MAX:
                return
            if self._is_wanted(learned) and self._book.begin(learned, now):
                self._sought.add(learned.peer)
                self._dialing += 1
                nursery.start_soon(self._try, learned)

    def _is_wanted(self, learned: Learned) -> bool:
        if learned.peer in self._sought or self._registry.is_direct(learned.peer):
            return False
        return self._registry.is_kept(learned.peer) or any(
            self._introducer.count_peers(repo) < LEARNED_PEERS_WANTED for repo in learned.repos
        )

    async def _try(self, learned: Learned) -> None:
        has_reached = False

        async def reached() -> None:
            nonlocal has_reached
            has_reached = True
            self._dialing -= 1
            self._book.reached(learned, trio.current_time())
            await self._registry.keep_learned(learned)

        try:
            has_conversed = await self._dial(learned, reached)
        finally:
            self._sought.discard(learned.peer)
            self._dialing -= not has_reached
        if has_conversed:
            self._book.left(learned, trio.current_time())
        elif self._book.failed(learned, trio.current_time(), is_online=self._registry.is_online()):
            await self._registry.drop_learned(learned)
