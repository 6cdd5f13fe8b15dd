"""Content of files from the peers that have it: by range, from several, and with whatever peers may do to it."""

import os
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
import trio
from trio.testing import MockClock

from node.content.files import FileService
from node.runtime.errors import ServiceError
from node.sync.block_requests import NotFetched
from node.sync.fetching import fetch_blocks
from protocol.crypto.keys import ConvergenceSecret
from protocol.formats.block import Block, encrypt_block
from protocol.ids import BlockId, TopicKey
from protocol.limits.formats import LEAF_SIZE
from protocol.limits.peers import FETCH_WINDOW_COUNT_MAX, FETCHED_COUNT_MAX
from tests.support.machine import fail_after
from tests.support.nodes import Node, connected, open_nodes, share, until_equal
from tests.support.sources import Source


def _files_of(node: Node) -> FileService:
    return FileService(node.hub, node.author, node.branch)


async def _stream(data: bytes) -> AsyncGenerator[bytes]:
    await trio.lowlevel.checkpoint()
    yield data


async def _get(node: Node, start: int = 0, stop: int | None = None) -> bytes:
    files = _files_of(node)
    file = await files.open("main", "far")
    return b"".join([part async for part in files.read(file, start, file.size if stop is None else stop)])


def _stored(node: Node) -> int:
    """Bytes of all packs."""
    return sum(path.stat().st_size for path in (node.replica.database.folder / "packs").glob("*"))


@pytest.mark.slow
async def test_a_file_comes_from_a_peer_as_it_is_read_and_stays(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    data = os.urandom((FETCH_WINDOW_COUNT_MAX + 3) * LEAF_SIZE + 17)
    with fail_after(300), open_nodes(tmp_path, "alice", "bob") as (alice, bob):
        await share(alice, bob)
        await _files_of(alice).add("main", "far", _stream(data))
        async with connected(bob, alice):
            await until_equal(alice, bob)
            assert _stored(bob) == 0, "commits travel, content does not"
            assert (
                await _get(bob, 5 * LEAF_SIZE - 3, 5 * LEAF_SIZE + 4)
                == data[5 * LEAF_SIZE - 3 : 5 * LEAF_SIZE + 4]
            )
            assert _stored(bob) < 6 * LEAF_SIZE, "the root, the last leaf, and the two that the range touches"
            assert await _get(bob) == data
        assert await _get(bob) == data, "it is here now"


@pytest.mark.slow
async def test_without_a_peer_that_has_it_a_file_is_incomplete_and_says_what_to_do(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    with fail_after(300), open_nodes(tmp_path, "alice", "bob", "carol") as (alice, bob, carol):
        await share(alice, bob, carol)
        await _files_of(alice).add("main", "far", _stream(os.urandom(2 * LEAF_SIZE)))
        async with connected(bob, alice):
            await until_equal(alice, bob)
        async with connected(carol, bob):
            await until_equal(carol, bob)
            with pytest.raises(ServiceError, match="none of 1 connected peers") as none_has_it:
                await _get(carol)
        with pytest.raises(ServiceError, match="no peer") as nobody_there:
            await _get(carol)
        assert none_has_it.value.code == nobody_there.value.code == "incomplete"


class _Source(Source):
    """A peer that has some blocks, and leaves after a number of answers."""

    def __init__(self, topic: TopicKey, blocks: list[Block], answers: int = 1_000) -> None:
        self._topic = topic
        self._blocks = {block.block_id: block.encoded for block in blocks}
        self._answers = answers
        self.given: list[bytes] = []
        self.asked: list[bytes] = []

    def has_joined(self, topic: TopicKey) -> bool:
        return topic == self._topic

    async def fetch(self, topic: TopicKey, wanted: BlockId) -> bytes | None:
        self.asked.append(wanted)
        await trio.sleep(1)
        if len(self.given) == self._answers:
            raise NotFetched
        found = self._blocks.get(wanted)
        if found is not None:
            self.given.append(wanted)
        return found


def _blocks(count: int) -> list[Block]:
    return [encrypt_block(bytes([number]) * 1000, ConvergenceSecret(b"s" * 32))[0] for number in range(count)]


async def test_several_peers_give_what_each_has_and_one_may_leave(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    blocks = _blocks(40)
    with fail_after(60), open_nodes(tmp_path, "alice") as (alice,):
        _, branch = alice.create_repo()
        sources = [
            _Source(alice.epoch().topic, blocks[:30]),
            _Source(alice.epoch().topic, blocks[20:]),
            _Source(alice.epoch().topic, blocks, answers=3),
            _Source(TopicKey(b"o" * 32), blocks),
        ]
        alice.hub.sources += sources
        before = trio.current_time()
        await fetch_blocks(alice.hub, branch, [block.block_id for block in blocks])
        with alice.replica.database.read() as connection:
            found = [alice.replica.packs.find(connection, block.block_id) for block in blocks]
        assert found == blocks
        assert sorted(raw for source in sources for raw in source.given) == sorted(
            block.block_id for block in blocks
        ), "each came once"
        assert len(sources[2].given) == 3
        assert sources[3].given == [], "it does not follow the branch"
        assert trio.current_time() - before < 20, "side by side, not one after the other"


async def test_what_nobody_has_does_not_keep_back_what_came(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    blocks = _blocks(5)
    with fail_after(60), open_nodes(tmp_path, "alice") as (alice,):
        _, branch = alice.create_repo()
        alice.hub.sources += [
            _Source(alice.epoch().topic, blocks[:2]),
            _Source(alice.epoch().topic, blocks[1:4]),
        ]
        with pytest.raises(ServiceError, match="has 1 of its blocks"):
            await fetch_blocks(alice.hub, branch, [block.block_id for block in blocks])
        with alice.replica.database.read() as connection:
            held = alice.replica.packs.find_held(connection, [block.block_id for block in blocks])
        assert held == {block.block_id for block in blocks[:4]}


async def test_a_peer_that_has_none_of_a_file_is_asked_for_the_first_blocks_alone(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    blocks = _blocks(40)
    with fail_after(60), open_nodes(tmp_path, "alice") as (alice,):
        _, branch = alice.create_repo()
        relay, other = _Source(alice.epoch().topic, []), _Source(alice.epoch().topic, blocks)
        alice.hub.sources += [relay, other]
        await fetch_blocks(alice.hub, branch, [block.block_id for block in blocks])
        assert 1 <= len(relay.asked) <= FETCHED_COUNT_MAX + 1
        assert len(other.given) == len(blocks)


async def test_a_peer_that_has_only_the_last_blocks_is_asked_for_what_others_have_not_got(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    blocks = _blocks(40)
    with fail_after(60), open_nodes(tmp_path, "alice") as (alice,):
        _, branch = alice.create_repo()
        late, other = _Source(alice.epoch().topic, blocks[35:]), _Source(alice.epoch().topic, blocks[:35])
        alice.hub.sources += [late, other]
        await fetch_blocks(alice.hub, branch, [block.block_id for block in blocks])
        assert (len(late.given), len(other.given)) == (5, 35)


async def test_of_its_id_and_no_block_is_the_authors_fault_and_ends_nothing(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    with fail_after(60), open_nodes(tmp_path, "alice") as (alice,):
        _, branch = alice.create_repo()
        source = _Source(alice.epoch().topic, _blocks(1))
        source._blocks[BlockId(b"w" * 32)] = b"no block"
        alice.hub.sources.append(source)
        with pytest.raises(ServiceError, match="not here whole"):
            await fetch_blocks(alice.hub, branch, [BlockId(b"w" * 32)])
