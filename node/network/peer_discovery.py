"""Dials learned addresses when a repo has too few peers, or a configured peer cannot be reached.

Few at a time, under bounds of their own: configured peers and those of links are dialed by `node.network.network` whatever
happens here.
"""

from collections.abc import Awaitable, Callable
from typing import Final, Protocol

import trio

from node.sync.addresses import AddressBook, Learned
from node.sync.introductions import Introducer
from protocol.ids import PeerId
from protocol.limits.peers import LEARNED_CONNECTIONS_MAX, LEARNED_DIALS_AT_ONCE_MAX, LEARNED_PEERS_WANTED

_LOOK_SECONDS: Final = 5.0
"""Seconds between two looks at what is due, where nothing new was learned."""


class Dialer(Protocol):
    """What can be asked of the network."""

    def is_direct(self, peer: PeerId) -> bool:
        """Whether there is a connection with a peer that goes through no relay."""
        ...

    def is_kept(self, peer: PeerId) -> bool:
        """Whether a user or a link asked for a connection with a peer."""
        ...

    async def try_learned(self, learned: Learned, reached: Callable[[], Awaitable[None]]) -> bool:
        """Dial, call `reached` once the peer has proved its key, and converse. Whether a conversation came of it."""
        ...

    def is_online(self) -> bool:
        """Whether any peer is connected."""
        ...


class PeerFinder:
    """Finds peers at learned addresses. `run` owns every task."""

    def __init__(
        self,
        dialer: Dialer,
        book: AddressBook,
        introducer: Introducer,
        keep: Callable[[Learned], Awaitable[None]],
        drop: Callable[[Learned], Awaitable[None]],
    ) -> None:
        """`keep` and `drop` note where a peer was reached, and that it is not there any more."""
        self._dialer = dialer
        self._book = book
        self._introducer = introducer
        self._keep = keep
        self._drop = drop
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
        if learned.peer in self._sought or self._dialer.is_direct(learned.peer):
            return False
        return self._dialer.is_kept(learned.peer) or any(
            self._introducer.count_peers(repo) < LEARNED_PEERS_WANTED for repo in learned.repos
        )

    async def _try(self, learned: Learned) -> None:
        has_reached = False

        async def reached() -> None:
            nonlocal has_reached
            has_reached = True
            self._dialing -= 1
            self._book.reached(learned, trio.current_time())
            await self._keep(learned)

        try:
            has_conversed = await self._dialer.try_learned(learned, reached)
        finally:
            self._sought.discard(learned.peer)
            self._dialing -= not has_reached
        if has_conversed:
            self._book.left(learned, trio.current_time())
        elif self._book.failed(learned, trio.current_time(), is_online=self._dialer.is_online()):
            await self._drop(learned)
