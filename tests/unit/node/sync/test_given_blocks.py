"""Which files other nodes have fetched is known once all their blocks were sent, and not before."""

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
from trio.testing import MockClock

from node.content.files import FileService
from node.network.network import Network
from node.observe.standing import Standings
from node.sync.given_blocks import GivenBlocks, keep_fetched
from protocol.ids import BlockId
from protocol.limits.formats import LEAF_SIZE
from protocol.limits.peers import FETCH_WINDOW_COUNT_MAX, FETCHED_COUNT_MAX
from storage.blobs.unfetched import count_unfetched
from storage.engine.database import StorageError
from tests.support.machine import fail_after
from tests.support.nodes import Node, connected, open_nodes, share, until_equal


def _id(number: int) -> BlockId:
    return BlockId(number.to_bytes(32, "big"))


def _files(node: Node) -> FileService:
    return FileService(node.hub, node.author, lambda _: node.branch())


async def _content(size: int) -> AsyncGenerator[bytes]:
    """So many bytes, of which no two blocks are alike."""
    yield b"".join(bytes([number]) * LEAF_SIZE for number in range(size // LEAF_SIZE + 1))[:size]


def _unfetched(node: Node, user: Node | None = None) -> int:
    with node.replica.database.read() as connection:
        found = count_unfetched(connection, [node.repo().num], (user or node).author.user, 1000)
    return found[node.repo().num]


def _settle(node: Node) -> None:
    new = node.hub.given.take_new()
    keep_fetched(node.replica, node.hub.given.settle(node.replica, new), new, node.author.user)


async def _get(node: Node, name: str, start: int = 0, stop: int = 2**40) -> None:
    files = _files(node)
    opened = await files.open("main", name)
    async for _ in files.read(opened, start, min(stop, opened.size)):
        pass


@pytest.mark.slow
async def test_a_file_is_elsewhere_once_a_peer_has_fetched_all_of_it(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    with fail_after(60), open_nodes(tmp_path, "alice", "bob") as (alice, bob):
        await share(alice, bob)
        await _files(alice).add("main", "small", _content(10))
        await _files(alice).add("main", "again", _content(10))
        await _files(alice).add("main", "large", _content(FETCH_WINDOW_COUNT_MAX * LEAF_SIZE + 1))
        removed = await _files(alice).add("main", "removed", _content(20))
        assert _unfetched(alice) == 4
        await _files(alice).remove("main", removed["file"])
        assert _unfetched(alice) == 3, "what was removed is not missed"
        async with connected(bob, alice):
            await until_equal(alice, bob)
            assert _unfetched(bob, alice) == 0, "what came from others was never here alone"
            await _get(bob, "small")
            _settle(alice)
            assert _unfetched(alice) == 1, "equal content is fetched with it"
            await _get(bob, "large", 0, LEAF_SIZE)
            _settle(alice)
            assert _unfetched(alice) == 1, "a part is not the whole"
            await _get(bob, "large")
            _settle(alice)
            assert _unfetched(alice) == 0


def test_what_was_to_be_sent_last_on_a_cut_connection_does_not_count(tmp_path: Path) -> None:
    given = GivenBlocks()
    for number in range(FETCHED_COUNT_MAX + 2):
        given.note("one", 1, _id(number))
    given.note("other", 1, _id(99))
    given.lose("one", is_cut=True)
    given.lose("other", is_cut=False)
    given.lose("other", is_cut=True)
    assert [*given.take_new()] == [(1, _id(0)), (1, _id(1)), (1, _id(99))]
    assert not given.take_new()


def test_the_blocks_that_are_remembered_are_bounded() -> None:
    given = GivenBlocks(count_max=3)
    for number in (0, 1, 2, 0, 3):
        given.note("one", 1, _id(number))
    assert {block_id for _, block_id in given.take_new()} == {_id(2), _id(0), _id(3)}


async def test_what_could_not_be_stored_is_stored_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with fail_after(60), open_nodes(tmp_path, "alice") as (alice,):
        hub = alice.hub
        hub.given = GivenBlocks(count_max=2)
        standings = Standings(hub, Network(hub, alice.seed, lambda: 0.0))
        for number in range(2):
            hub.given.note("one", 1, _id(number), 5)
        new = hub.given.take_new()
        hub.given.note("one", 1, _id(1))
        with monkeypatch.context() as patch:

            async def fail(*_: object) -> None:
                raise StorageError("full")

            patch.setattr(hub, "write", fail)
            with pytest.raises(StorageError):
                await standings._record_fetched(alice.author.user, new)
        assert hub.given.take_new() == {(1, _id(0)): 5, (1, _id(1)): 0}, "what came since counts"
        hub.given.note("one", 1, _id(2))
        hub.given.note_again(new)
        assert [block_id for _, block_id in hub.given.take_new()] == [_id(1), _id(2)]
