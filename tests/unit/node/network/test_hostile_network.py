"""What a network and a peer may do to a node: each has a bounded cost, and where it ends the connection, a named reason.

docs/understanding/threat-model.md lists all of it with the tests; here is what shows only on a whole connection.
"""

import re
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest
import trio
from sqlalchemy import select
from trio.testing import MockClock, memory_stream_pair

from node.authoring.drafting import Draft
from node.sync.connection import Connection, Ended
from node.wire.transport import TransportError
from protocol.crypto.hashing import block_id
from protocol.formats.content import Post
from protocol.limits.formats import TIMESTAMP_MAX_MS
from protocol.limits.peers import (
    BATCHES_OF_TOPIC_MAX,
    IDLE_TIMEOUT_SECONDS,
    SEND_TIMEOUT_SECONDS,
)
from protocol.session.messages import Fetch, Goodbye, KeepAlive, Publications, Receipt
from storage.commits.blocks import SHARED_SIZE_MIN
from storage.schema.schema import blocks
from tests.support.builders import publications_of, writing_topic
from tests.support.machine import fail_after
from tests.support.nodes import Node, connected, open_nodes, share, until_equal
from tests.support.strangers import met
from tests.support.streams import PassingStream

_MANY = 10_000


def _connection(node: Node) -> Connection:
    (source,) = node.hub.sources
    assert isinstance(source, Connection)
    return source


def _same(drafts: list[Draft], _connection: object) -> list[Draft]:
    return drafts


class _Clogging(PassingStream):
    """A stream whose far end reads so many bytes, and then no more."""

    def __init__(self, stream: trio.abc.Stream, room: int) -> None:
        super().__init__(stream)
        self._room = room

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        self._room -= len(data)
        if self._room < 0:
            await trio.sleep_forever()
        await self._stream.send_all(data)


def test_the_tests_that_the_threat_model_names_are_there() -> None:
    tests = Path(__file__).parents[3]
    text = (tests.parent / "docs/understanding/threat-model.md").read_text()
    named = set(re.findall(r"\b((?:\w+/)+(?:test|long)_\w+)", text))
    assert len(named) > 10
    assert [
        one
        for one in named
        if not any(place.exists() for place in (tests / f"{one}.py", tests / "unit" / f"{one}.py"))
    ] == []


@pytest.mark.slow
async def test_a_peer_that_stops_reading_is_left(tmp_path: Path, autojump_clock: MockClock) -> None:
    def make() -> tuple[trio.abc.Stream, trio.abc.Stream]:
        ours, theirs = memory_stream_pair()
        return ours, _Clogging(theirs, 2000)

    with open_nodes(tmp_path, "alice") as (alice,):
        _, branch = alice.create_repo()
        for number in range(30):
            alice.write(branch, f"post {number}")
        began = trio.current_time()
        async with met(alice, make) as stranger:
            await stranger.compare(writing_topic(alice.replica, branch).topic)
        assert SEND_TIMEOUT_SECONDS <= trio.current_time() - began < 2 * SEND_TIMEOUT_SECONDS
    assert stranger.ended == Ended("peer_does_not_read")


@pytest.mark.slow
async def test_a_peer_that_asks_on_and_reads_nothing_is_left_at_the_bound(
    tmp_path: Path, autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    def make() -> tuple[trio.abc.Stream, trio.abc.Stream]:
        ours, theirs = memory_stream_pair()
        return ours, _Clogging(theirs, 2000)

    monkeypatch.setattr("node.wire.send_queue.OUTGOING_SIZE_MAX", 20_000)
    with open_nodes(tmp_path, "alice") as (alice,):
        _, branch = alice.create_repo()
        alice.write(branch, "x" * SHARED_SIZE_MIN)
        with alice.replica.database.read() as connection:
            (encoded,) = connection.execute(select(blocks.c.encoded).where(blocks.c.is_shared)).scalars()
        began = trio.current_time()
        async with met(alice, make) as stranger:
            topic = await stranger.compare(writing_topic(alice.replica, branch).topic)
            while stranger.ended is None and trio.current_time() < began + SEND_TIMEOUT_SECONDS:
                with suppress(TransportError):
                    await stranger.say(Fetch(topic, (block_id(encoded),)))
                await trio.sleep(0.1)
        assert trio.current_time() < began + SEND_TIMEOUT_SECONDS, "long before a write has taken too long"
    assert stranger.ended == Ended("peer_does_not_read")


@pytest.mark.extended
@pytest.mark.slow
async def test_ten_thousand_commits_wait_in_the_store_for_who_takes_none_and_none_is_lost(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    with open_nodes(tmp_path, "alice") as (alice,):
        _, branch = alice.create_repo()
        async with met(alice) as stranger:
            topic = await stranger.join(writing_topic(alice.replica, branch).topic)
            for _ in range(_MANY // 1000):
                drafts = [Draft(Post("x"))] * 1000
                alice.hub.announce(alice.author.write_many(branch, partial(_same, drafts))[1])
                await trio.sleep(0.1)
            connection = _connection(alice)
            (progress,) = [one for one in connection.topics if one.is_joined]
            assert progress.in_flight == BATCHES_OF_TOPIC_MAX, "with what it was sent at first"
            assert connection.outgoing.count == 0, "what waits is in the store"
            await stranger.say(Receipt(topic))
            got = 0
            while got < _MANY:
                said = await stranger.hear(Publications)
                got += len(said.items)
                await stranger.say(Receipt(topic))
            await stranger.say(Goodbye("bye"))
        assert got == _MANY
    assert stranger.ended == Ended("peer_left")


@pytest.mark.slow
async def test_the_same_publication_for_ever_is_stored_once_and_acknowledged_each_time(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    """An honest peer may send twice what it does not know to be there, so nobody is left for it."""
    with open_nodes(tmp_path, "alice") as (alice,):
        _, branch = alice.create_repo()
        before = alice.digest(branch)
        items = tuple(publications_of(alice.replica, branch))
        async with met(alice) as stranger:
            topic = await stranger.join(writing_topic(alice.replica, branch).topic)
            for _ in range(200):
                await stranger.say(Publications(topic, items))
                await stranger.hear(Receipt)
            await stranger.say(Goodbye("bye"))
        assert alice.digest(branch) == before
        assert alice.hub.totals.already == 200 * len(items)
    assert stranger.ended == Ended("peer_left")


@pytest.mark.slow
async def test_clocks_that_are_wrong_by_ages_change_no_order(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    with fail_after(300), open_nodes(tmp_path, "alice", "bob") as (alice, bob):
        await share(alice, bob)
        async with connected(bob, alice):
            for node, stamp in ((alice, TIMESTAMP_MAX_MS), (bob, 0), (alice, 1)):
                _, ingested = node.author.write(node.branch(), Draft(Post(str(stamp)), timestamp=stamp))
                node.hub.announce(ingested)
                await until_equal(alice, bob)
                assert len(node.heads(node.branch())) == 1, "each stands on what its author had seen"


async def test_a_flood_of_tiny_messages_ends_the_connection(
    tmp_path: Path, autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("node.sync.connection.MESSAGES_AT_ONCE_MAX", 8)
    monkeypatch.setattr("node.sync.connection.MESSAGES_PER_SECOND_MAX", 1)
    with open_nodes(tmp_path, "alice") as (alice,):
        async with met(alice) as stranger:
            await stranger.say(*[KeepAlive()] * 8)
            await trio.sleep(60)
            await stranger.say(*[KeepAlive()] * 8)
            await trio.sleep(0.01)
            assert stranger.ended is None
            await stranger.say(*[KeepAlive()] * 9)
            assert await stranger.hear(Goodbye) == Goodbye("too_many_messages")
    assert stranger.ended == Ended("too_many_messages")


async def test_all_signs_of_life_of_an_hour_may_come_together(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    """Signs of life wait behind what is sent on a slow line, or before a node that has no room for more."""
    with open_nodes(tmp_path, "alice") as (alice,):
        async with met(alice) as stranger:
            await stranger.say(*[KeepAlive()] * int(3600 / (IDLE_TIMEOUT_SECONDS / 3)))
            await trio.sleep(0.01)
            assert stranger.ended is None
