"""An hour with a store that fails: what works in the background tries on, ever more seldom, and goes on once it can.

Each failure is a line of the log, and the disk may be full because of it.
"""

from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest
import trio
from trio.testing import MockClock

from node.content.search_indexer import SearchIndexer
from node.content.search_texts import TextIndexer
from node.content.texts import Texts
from node.runtime.backoff import STORE_PAUSE_MAX_SECONDS
from node.sync.block_repair import BlockRepairer
from node.sync.body_fetching import BodyFetcher
from node.sync.feed_recovery import FeedRecovery
from node.sync.file_deposits import FileDepositor
from node.sync.partner_files import PartnerFiles
from protocol.ids import PeerId, ShortId, TopicKey
from protocol.limits.peers import DAMAGED_PAUSE_MAX_SECONDS
from storage.engine.database import Database
from storage.engine.errors import StorageError
from storage.relay.quotas import Visitor
from storage.repos.repos import Repo
from tests.support.nodes import Node
from tests.support.relays import open_relay

HOUR: Final = 3600.0
TRIES_MAX: Final = HOUR / (min(STORE_PAUSE_MAX_SECONDS, DAMAGED_PAUSE_MAX_SECONDS) * 0.7) + 8
"""Tries in an hour: 0.7 of a pause is not left to chance, and the first ones are short."""


class _Port:
    """A relay that keeps files, and is a partner."""

    keeps_files = True
    joined_count = 0
    peer = PeerId(b"p" * 32)

    def __init__(self, topics: list[TopicKey]) -> None:
        self._topics = topics

    def entrusted(self) -> list[TopicKey]:
        return self._topics

    def refused(self) -> list[TopicKey]:
        return []

    async def ask_list(self, topic: TopicKey, after: ShortId) -> tuple[ShortId, ...]:
        await trio.lowlevel.checkpoint()
        return ()


class _Disk:
    """A store that can be made to fail, and how often it was asked since."""

    def __init__(self, database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
        self.asked: Counter[bool] = Counter()  # by whether it failed
        self.fails = True
        for name in ("read", "write"):
            monkeypatch.setattr(database, name, self._failing(getattr(database, name)))

    def _failing(self, work: Callable[..., Iterator[object]]) -> object:
        @contextmanager
        def begin(*args: object, **named: object) -> Iterator[object]:
            self.asked[self.fails] += 1
            if self.fails:
                raise StorageError("the disk is full")
            with work(*args, **named) as connection:  # type: ignore[attr-defined]  # a context manager
                yield connection

        return begin


def _repairer(node: Node) -> Callable[[], Awaitable[None]]:
    node.replica.has_damaged = True
    return BlockRepairer(node.hub).run


TASKS: Final[dict[str, Callable[[Node], Callable[[], Awaitable[None]]]]] = {
    "repair": _repairer,
    "bodies": lambda node: BodyFetcher(node.hub).run,
    "deposits": lambda node: FileDepositor(node.hub).run,
    "partner": lambda node: PartnerFiles(node.hub).run,
    "search": lambda node: SearchIndexer(node.hub, is_enabled=True).run,
    "texts": lambda node: TextIndexer(node.hub, Texts(node.hub, node.author, lambda _: node.branch())).run,
}


@pytest.mark.parametrize("name", TASKS)
async def test_what_the_store_fails_is_tried_ever_more_seldom_and_goes_on_when_it_can(
    tmp_path: Path, autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    with open_relay(tmp_path) as node:
        _, branch = node.create_repo()
        node.write(branch, "a post")
        topics = list(node.replica.by_topic)
        assert node.hub.relay is not None
        await node.hub.relay.open(topics, Visitor(_Port.peer, is_known=True))
        node.hub.relay.is_partner = lambda _: True
        port = _Port(topics)
        monkeypatch.setattr(node.hub, "relay_clients", [port])
        run = TASKS[name](node)
        disk = _Disk(node.replica.database, monkeypatch)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(run)
            for _ in range(60):
                await trio.sleep(HOUR / 60)
                node.hub.changes.ring()
                node.hub.absences.ring()
            assert 4 <= disk.asked[True] <= TRIES_MAX
            disk.fails = False
            await trio.sleep(STORE_PAUSE_MAX_SECONDS + 120)
            assert disk.asked[False] > 0
            nursery.cancel_scope.cancel()


async def test_a_repo_that_cannot_be_kept_up_is_tried_ever_more_seldom_whatever_others_change(
    tmp_path: Path, autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_relay(tmp_path) as node:
        node.create_repo()
        tries: list[float] = []

        async def fail(repo: Repo) -> bool:
            await trio.lowlevel.checkpoint()
            tries.append(trio.current_time())
            raise StorageError("the disk is full")

        monkeypatch.setattr(node.joiner, "keep_up", fail)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(node.joiner.run)
            for _ in range(60):
                await trio.sleep(HOUR / 60)
                node.hub.topics_changed()
            nursery.cancel_scope.cancel()
    assert 4 <= len(tries) <= TRIES_MAX


async def test_a_store_that_fails_while_feeds_are_uncertain_ends_nothing(
    tmp_path: Path, autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_relay(tmp_path) as node:
        recovery, tries = FeedRecovery(node.hub), 0

        async def fail() -> None:
            nonlocal tries
            await trio.lowlevel.checkpoint()
            tries += 1
            raise StorageError("the disk is full")

        monkeypatch.setattr(recovery, "settle_all", fail)
        with trio.move_on_after(HOUR):
            await recovery.run()
    assert 4 <= tries <= TRIES_MAX
