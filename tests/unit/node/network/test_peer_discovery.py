"""Learned addresses are dialed a few at a time, while a repo lacks peers or a kept one cannot be found."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path

import pytest
import trio
from trio.testing import MockClock

from node.network.peer_discovery import PeerFinder
from node.network.peer_registry import PeerRegistry
from node.sync.addresses import AddressSource, Learned
from node.sync.conversation import Conversation
from node.sync.introductions import Introducer
from protocol.formats.links import PeerAddress
from protocol.ids import PeerId, RepoId
from protocol.limits.network import (
    ADDRESS_FAILURES_MAX,
    LEARNED_CONNECTIONS_MAX,
    LEARNED_DIALS_AT_ONCE_MAX,
    LEARNED_PEERS_WANTED,
)
from protocol.session.events import Event
from protocol.session.outputs import FindPeers
from tests.support.machine import fail_after
from tests.support.nodes import Node, open_nodes

REPO = RepoId(b"r" * 32)

ACROSS = "10.1.0.1:5"


class _Peers(PeerRegistry):
    """A network in which dials take as long as the test wants."""

    def __init__(self, node: Node) -> None:
        super().__init__(node.hub, node.key, lambda: 0.0)
        self.tried: list[Learned] = []
        self.noted: list[bytes] = []
        self.dropped: list[bytes] = []
        self.kept: set[bytes] = set()
        self.connected: set[bytes] = set()
        self.answers = False
        """Whether peers prove their keys."""
        self.go_on = trio.Event()

    def is_direct(self, peer: PeerId) -> bool:
        return peer in self.connected

    def is_kept(self, peer: PeerId) -> bool:
        return peer in self.kept

    def is_online(self) -> bool:
        return True

    async def keep_learned(self, learned: Learned) -> None:
        self.noted.append(learned.peer)

    async def drop_learned(self, learned: Learned) -> None:
        self.dropped.append(learned.peer)

    async def dial(self, learned: Learned, reached: Callable[[], Awaitable[None]]) -> bool:
        self.tried.append(learned)
        if self.answers:
            await reached()
        await self.go_on.wait()
        return self.answers


class _Connection(Conversation):
    """One that tells nobody of anybody."""

    def __init__(self, peer: PeerId) -> None:
        self.peer = peer

    def happen(self, event: Event) -> None:
        pass


class _Search:
    """A seeker, and what it has to do with."""

    def __init__(self, node: Node) -> None:
        self.peers = _Peers(node)
        self.book = self.peers.book
        self.introducer = Introducer(node.hub, self.book, PeerAddress("10.1.0.9:7474", node.key))
        self.peer_finder = PeerFinder(self.peers, self.peers.dial, self.introducer)

    def learn(self, count: int, repo: RepoId = REPO) -> None:
        """Learn of so many peers, each at a host of its own."""
        for number in range(1, count + 1):
            key, address = PeerId(number.to_bytes(32, "big")), f"10.0.0.{number}:7474"
            assert self.book.learn(
                key, address, AddressSource.INTRODUCTION, told_by=key, repos=(repo,), now=trio.current_time()
            )


@asynccontextmanager
async def _searching(node: Node) -> AsyncIterator[_Search]:
    with fail_after(100_000):
        async with trio.open_nursery() as nursery:
            search = _Search(node)
            nursery.start_soon(search.peer_finder.run)
            yield search
            nursery.cancel_scope.cancel()


async def test_so_many_are_dialed_at_a_time(tmp_path: Path, autojump_clock: MockClock) -> None:
    with open_nodes(tmp_path, "alice") as (alice,):
        async with _searching(alice) as search:
            search.learn(LEARNED_DIALS_AT_ONCE_MAX + 1)
            await trio.sleep(60)
            assert len(search.peers.tried) == LEARNED_DIALS_AT_ONCE_MAX


async def test_so_many_are_connected_at_a_time(tmp_path: Path, autojump_clock: MockClock) -> None:
    with open_nodes(tmp_path, "alice") as (alice,):
        async with _searching(alice) as search:
            search.peers.answers = True
            search.learn(LEARNED_CONNECTIONS_MAX + 1)
            await trio.sleep(600)
            assert len(search.peers.tried) == len(search.peers.noted) == LEARNED_CONNECTIONS_MAX


@pytest.mark.slow
async def test_who_does_not_answer_is_dropped_after_so_many_tries(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    with open_nodes(tmp_path, "alice") as (alice,):
        async with _searching(alice) as search:
            search.peers.go_on.set()
            search.learn(1)
            await trio.sleep(24 * 3600)
            assert len(search.peers.tried) == ADDRESS_FAILURES_MAX
            assert len(search.peers.dropped) == 1


@pytest.mark.parametrize("met", [LEARNED_PEERS_WANTED - 1, LEARNED_PEERS_WANTED])
async def test_a_repo_that_has_peers_enough_needs_no_others(
    tmp_path: Path, autojump_clock: MockClock, met: int
) -> None:
    with open_nodes(tmp_path, "alice") as (alice,), ExitStack() as meetings:
        repo, _ = alice.create_repo()
        async with _searching(alice) as search:
            for number in range(met):
                connection = _Connection(PeerId(b"met" + bytes([number]) * 29))
                meetings.enter_context(search.introducer.while_connected(connection, ACROSS, is_dialed=False))
                find = FindPeers(alice.epoch().topic)
                search.introducer.perform(connection, find)
            search.learn(1, repo.repo_id)
            await trio.sleep(60)
            assert len(search.peers.tried) == (met < LEARNED_PEERS_WANTED)
            search.peers.kept.add((1).to_bytes(32, "big"))
            await trio.sleep(60)
            assert len(search.peers.tried) == 1, "a peer that is kept is always sought"


async def test_who_is_connected_is_not_dialed(tmp_path: Path, autojump_clock: MockClock) -> None:
    with open_nodes(tmp_path, "alice") as (alice,):
        async with _searching(alice) as search:
            search.peers.connected.add((1).to_bytes(32, "big"))
            search.learn(1)
            await trio.sleep(60)
            assert search.peers.tried == []
            search.peers.connected.clear()
            await trio.sleep(60)
            assert len(search.peers.tried) == 1
