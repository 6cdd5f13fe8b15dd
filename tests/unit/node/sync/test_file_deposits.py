"""Files through a relay: deposited by members, fetched by others, under quotas; and what a lying relay gains."""

import os
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
import trio
from sqlalchemy import Table, func, select, update
from trio.testing import MockClock

from node.care.fsck import check_store
from node.content.files import FileService
from node.runtime.errors import ServiceError
from node.sync import file_deposits, session_queries
from node.sync.file_deposits import FileDepositor
from protocol.formats.text import id_text
from protocol.ids import PeerId, ShortId, TopicKey
from protocol.limits.formats import LEAF_SIZE
from protocol.limits.peers import BLOCK_LOST_SECONDS, DEPOSIT_PAUSE_MAX_SECONDS, RELAY_FILES_SHARE
from protocol.session.deposits import short_file
from protocol.session.messages import FileDeposit
from storage.relay.quotas import RelayQuotas, forget_topics
from storage.repos.epochs import Epoch
from storage.schema.peer_schema import relayed_files
from storage.schema.relay_schema import relay_blocks, relay_file_blocks, relay_files, relay_topics
from tests.support.builders import STORE_KEY
from tests.support.machine import fail_after
from tests.support.nodes import Node, connected, open_nodes, share, until_equal
from tests.support.relays import PLENTY, is_settled, open_relay, until


def _files_of(node: Node) -> FileService:
    return FileService(node.hub, node.author, node.branch)


async def _stream(data: bytes) -> AsyncGenerator[bytes]:
    await trio.lowlevel.checkpoint()
    yield data


async def _add(node: Node, name: str, data: bytes) -> None:
    await _files_of(node).add("main", name, _stream(data))


async def _get(node: Node, name: str) -> bytes:
    files = _files_of(node)
    file = await files.open("main", name)
    return b"".join([part async for part in files.read(file, 0, file.size)])


def _count(node: Node, table: Table) -> int:
    with node.replica.database.read() as connection:
        return int(connection.execute(select(func.count()).select_from(table)).scalar_one())


def _whole(relay: Node) -> int:
    with relay.replica.database.read() as connection:
        whole = select(func.count()).select_from(relay_files).where(relay_files.c.is_whole)
        return int(connection.execute(whole).scalar_one())


@asynccontextmanager
async def _depositing(node: Node, relay: Node) -> AsyncIterator[None]:
    """A connection over which the node deposits files."""
    async with connected(node, relay), trio.open_nursery() as nursery:
        nursery.start_soon(FileDepositor(node.hub).run)
        yield
        nursery.cancel_scope.cancel()


@pytest.mark.slow
async def test_each_file_is_deposited_on_the_topic_of_the_commit_that_added_it(
    tmp_path: Path, autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A member who lacks the writers' secret adds files on the epoch's own topic."""
    with fail_after(300), open_nodes(tmp_path, "alice") as (alice,), open_relay(tmp_path) as relay:
        alice.create_repo()
        added = dict[TopicKey | None, int]()
        for number in range(2):
            await _add(alice, f"{number} by a writer", os.urandom(1000 + number))
            added[alice.epoch().writers_topic] = 1000 + number
            alice.author.start_epoch(alice.repo())
        with monkeypatch.context() as lacking:
            lacking.setattr(Epoch, "writers_seed", None)
            await _add(alice, "by another", os.urandom(2000))
            added[alice.epoch().topic] = 2000
        async with _depositing(alice, relay):
            await until(lambda: _count(alice, relayed_files) == 3)
        query = select(relay_topics.c.topic, relay_files.c.size).join(
            relay_topics, relay_topics.c.num == relay_files.c.topic_num
        )
        with relay.replica.database.read() as connection:
            kept = dict(map(tuple, connection.execute(query)))
        assert kept.keys() == added.keys()
        assert len({kept[topic] - size for topic, size in added.items()}) == 1, "what a file counts beside"


def _room_for(size: int) -> RelayQuotas:
    """What keeps files that count so much, of one topic."""
    return replace(PLENTY, topic=int(size / RELAY_FILES_SHARE) + 1)


@pytest.mark.slow
async def test_a_full_relay_refuses_files_and_takes_commits(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    with (
        fail_after(300),
        open_nodes(tmp_path, "alice", "bob") as (alice, bob),
        open_relay(tmp_path, _room_for(60_000)) as relay,
    ):
        await share(alice, bob)
        await _add(alice, "small", os.urandom(50_000))
        await _add(
            alice, "large", os.urandom(70_000)
        )  # more than all: of two with room the faster one is kept
        async with _depositing(alice, relay):
            await until(lambda: relay.hub.totals.files_settled["file_too_large"] == 1)
            alice.write(alice.branch(), "there is room for this")
            async with connected(bob, relay):
                await until_equal(alice, bob)
            listed = await _files_of(alice).window("main", 0, 10)
            assert listed["refusals"] == [{"relay": id_text(relay.key), "reason": "file_too_large"}]
        assert relay.hub.totals.files_settled == {"kept": 1, "file_too_large": 1}
        listed = await _files_of(alice).window("main", 0, 10)
        assert listed["refusals"] == [], "it has left"
        assert [(one["name"], one["relays"]) for one in listed["files"]] == [("small", 1), ("large", 0)]


@pytest.mark.slow
async def test_what_a_relay_has_lost_comes_back_and_is_asked_for_again_after_a_while(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    data = os.urandom(3000)
    with fail_after(900), open_nodes(tmp_path, "alice", "bob") as (alice, bob), open_relay(tmp_path) as relay:
        await share(alice, bob)
        await _add(alice, "file", data)
        async with connected(bob, alice):
            await until_equal(alice, bob)
        async with _depositing(alice, relay):
            await until(lambda: _count(alice, relayed_files) == 1)
        with relay.replica.database.write() as connection:
            num = connection.execute(select(relay_files.c.topic_num)).scalar_one()
            forget_topics(connection, [num])
        assert [_count(relay, one) for one in (relay_files, relay_blocks, relay_file_blocks)] == [0, 0, 0]
        assert relay.hub.relay is not None
        await relay.hub.relay.list_all()
        async with connected(bob, relay):
            await trio.sleep(1)
            await until(lambda: is_settled(bob))
            with pytest.raises(ServiceError, match="not here"):
                await _get(bob, "file")
            async with _depositing(alice, relay):  # lists, and sees that nothing is there
                await until(lambda: _whole(relay) == 1)
            with pytest.raises(ServiceError):
                await _get(bob, "file")  # not asked again yet
            await trio.sleep(BLOCK_LOST_SECONDS)
            assert await _get(bob, "file") == data


@pytest.mark.slow
async def test_a_damaged_block_is_not_given_and_its_file_is_deposited_again(
    tmp_path: Path, autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_deposits, "DEPOSIT_RELIST_ALL_SECONDS", 100.0)
    data = os.urandom(LEAF_SIZE + 17)
    with fail_after(900), open_nodes(tmp_path, "alice", "bob") as (alice, bob), open_relay(tmp_path) as relay:
        await share(alice, bob)
        await _add(alice, "file", data)
        async with connected(bob, alice):
            await until_equal(alice, bob)
        async with _depositing(alice, relay), connected(bob, relay):
            await until(lambda: _whole(relay) == 1)
            with relay.replica.database.write() as connection:
                junk = update(relay_blocks).where(relay_blocks.c.num == 2)
                connection.execute(junk.values(encoded=b"junk"))
            await until(lambda: is_settled(bob))
            with pytest.raises(ServiceError, match="not here"):
                await _get(bob, "file")
            assert relay.hub.relay is not None
            assert (_whole(relay), relay.hub.relay.blocks_damaged) == (0, 1)
            await until(lambda: _whole(relay) == 1)  # alice has asked again what is kept
            await trio.sleep(BLOCK_LOST_SECONDS)
            assert await _get(bob, "file") == data
        assert _count(relay, relay_blocks) == 3
    assert not check_store(tmp_path / "relay", STORE_KEY).problems


@pytest.mark.slow
async def test_a_relay_that_lies_is_found_out_charged_and_left_out(
    tmp_path: Path, autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    with fail_after(300), open_nodes(tmp_path, "alice", "bob") as (alice, bob), open_relay(tmp_path) as relay:
        await share(alice, bob)
        await _add(alice, "file", os.urandom(3000))
        async with _depositing(alice, relay):
            await until(lambda: _whole(relay) == 1)
        monkeypatch.setattr(session_queries, "load_kept_block", lambda *_: b"something else")
        async with connected(bob, relay):
            await until_equal(alice, bob)
            with pytest.raises(ServiceError):
                await _get(bob, "file")
        assert bob.hub.ledger.of_peer(relay.key).fruitless > 5
        with relay.replica.database.read() as connection:
            (file_id,) = connection.execute(select(relay_files.c.file_id)).scalars()
        assert bob.hub.useless_sources.is_useless(relay.key, file_id)


class _Refusing:
    """A relay that keeps topics, and no file."""

    keeps_files = True
    peer = PeerId(b"p" * 32)

    def __init__(self, topics: list[TopicKey], refusal: str) -> None:
        self._topics = topics
        self.refusal = refusal
        self.offered: list[float] = []
        self._kept: list[ShortId] = []

    def entrusted(self) -> list[TopicKey]:
        return self._topics

    def refused(self) -> list[TopicKey]:
        return []

    async def ask_list(self, topic: TopicKey, after: ShortId) -> tuple[ShortId, ...]:
        await trio.lowlevel.checkpoint()
        return tuple(self._kept)

    async def offer(self, topic: TopicKey, deposit: FileDeposit) -> str:
        await trio.lowlevel.checkpoint()
        self.offered.append(trio.current_time())
        self._kept += [] if self.refusal else [short_file(deposit.file)]
        return self.refusal


@pytest.mark.slow
@pytest.mark.parametrize("refusal", ["account_full", "incomplete"])
async def test_a_file_that_a_relay_refuses_is_offered_ever_more_seldom_and_kept_once_it_may_be(
    tmp_path: Path, autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch, refusal: str
) -> None:
    """Each offer may have the relay fetch all of the file."""
    with open_nodes(tmp_path, "alice") as (alice,):
        alice.create_repo()
        await _add(alice, "file", os.urandom(3000))
        relay = _Refusing(list(alice.replica.by_topic), refusal)
        monkeypatch.setattr(alice.hub, "relay_clients", [relay])
        monkeypatch.setattr(file_deposits, "DEPOSIT_LOOK_SECONDS", 60.0)  # hours of looks take long
        async with trio.open_nursery() as nursery:
            nursery.start_soon(FileDepositor(alice.hub).run)
            await trio.sleep(6 * 3600)
            assert 7 <= len(relay.offered) <= 6 / 0.7 + 5
            relay.refusal, count = "", len(relay.offered)
            await trio.sleep(2 * DEPOSIT_PAUSE_MAX_SECONDS)
            assert len(relay.offered) == count + 1
            nursery.cancel_scope.cancel()
