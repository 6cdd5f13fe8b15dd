"""Old files of others are given up where a member's node shows all of their blocks that are here, and come again."""

import os
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from pathlib import Path

import pytest
import trio
from trio.testing import MockClock

from node.care.giving_up import PostAges
from node.content.files import FileService
from node.sync.body_proofs import BodyProofs
from node.sync.connection import Connection
from node.sync.conversation import Conversation
from node.sync.given_blocks import keep_fetched
from protocol.ids import BlockId, TopicKey
from protocol.limits.formats import LEAF_SIZE
from storage.blobs.garbage_collection import collect_garbage
from storage.blobs.spared import count_old_files
from storage.blobs.unfetched import count_unfetched
from storage.commits.absent_bodies import OldPosts
from storage.repos.repos import DAY_MS
from tests.support.nodes import Node, open_nodes, share
from tests.unit.node.care.test_giving_up import NOW_MS, online, rule
from tests.unit.node.content.test_file_batch import _body

pytestmark = pytest.mark.slow
DATA = os.urandom(2 * LEAF_SIZE + 5)


@pytest.fixture
async def nodes(tmp_path: Path, autojump_clock: MockClock) -> AsyncIterator[list[Node]]:
    """Alice, carol and bob, whose clocks show the 200th day. Alice added a file on the first, which carol has opened."""
    with open_nodes(tmp_path, "alice", "carol", "bob") as (alice, carol, bob):
        await share(alice, carol, bob)
        await _files(alice).add("main", "old", _stream(DATA))
        for node in (alice, carol, bob):
            node.set_clock(NOW_MS)
        async with online((carol, alice)):
            assert await read(carol) == DATA
            settle(alice)
        assert unfetched(alice) == 0
        yield [alice, carol, bob]


def _files(node: Node) -> FileService:
    return FileService(node.hub, node.author, lambda _: node.branch())


async def _stream(data: bytes) -> AsyncGenerator[bytes]:
    await trio.lowlevel.checkpoint()
    yield data


async def read(node: Node, name: str = "old") -> bytes:
    file = await _files(node).open("main", name)
    return b"".join([part async for part in _files(node).read(file, 0, file.size)])


async def look(node: Node) -> int:
    return await PostAges(node.hub, node.author.user).look()


def spared(node: Node) -> int:
    with node.replica.database.read() as connection:
        return count_old_files(connection, node.replica.packs, OldPosts(node.branch().num, None, 0))[1]


async def places(node: Node) -> list[str]:
    return [one["place"] for one in (await _files(node).window("main", 0, 9, places=True))["files"]]


def collect(node: Node) -> None:
    """Collect garbage, as `ravel gc` does on a node that is stopped."""
    node.replica.close()
    collect_garbage(node.replica.database.folder, keep_removed=True)
    node.open()


def settle(node: Node) -> None:
    new = node.hub.given.take_new()
    keep_fetched(node.replica, node.hub.given.settle(node.replica, new), new, node.author.user)


def unfetched(node: Node) -> int:
    num = node.repo().num
    with node.replica.database.read() as connection:
        return count_unfetched(connection, [num], node.author.user, 1000)[num]


async def test_an_old_file_goes_once_a_member_has_shown_it_and_comes_again_when_it_is_opened(
    nodes: list[Node], autojump_clock: MockClock
) -> None:
    alice, carol, _ = nodes
    async with online((carol, alice)):
        assert await look(carol) == 0, "there is no rule"
        rule(carol, 90)
        assert await look(carol) == 1
        assert await look(carol) == 0, "it crosses the line once"
        settle(alice)
        assert unfetched(alice) == 1, "carol was the one that had fetched it, and asked alice to keep it"
    collect(carol)
    assert await places(carol) == ["away"]
    assert await places(alice) == ["only_here"]
    async with online((carol, alice)):
        assert await read(carol) == DATA
        assert spared(carol) == 0, "what came again goes when it is shown again"
        settle(alice)
        assert unfetched(alice) == 1, "carol may give it up again"
        assert await look(carol) == 1


async def test_a_file_that_is_not_old_stays_and_counts_as_fetched(
    nodes: list[Node], autojump_clock: MockClock
) -> None:
    alice, _, bob = nodes
    async with online((bob, alice)):
        rule(bob, 90)
        await trio.sleep(3)
        await _files(alice).add("main", "new", _stream(os.urandom(10)))
        await trio.sleep(3)
        await read(bob, "new")
        assert unfetched(alice) == 1
        settle(alice)
        assert unfetched(alice) == 0, "bob keeps it for 90 days, and then until another shows it"
        assert await look(bob) == 0


async def test_own_files_stay_and_what_they_share_with_others(
    nodes: list[Node], autojump_clock: MockClock
) -> None:
    alice, carol, _ = nodes
    carol.set_clock(NOW_MS - 190 * DAY_MS)
    await _files(carol).add("main", "also hers", _stream(DATA))
    carol.set_clock(NOW_MS)
    async with online((carol, alice)):
        rule(alice, 90)
        rule(carol, 90)
        rule(alice, 0)
        await trio.sleep(3)
        assert await look(carol) == 1
    collect(carol)
    assert await read(carol, "also hers") == DATA


async def test_two_who_keep_less_give_no_file_up_for_each_other(
    nodes: list[Node], autojump_clock: MockClock
) -> None:
    _, carol, bob = nodes
    async with online((bob, carol)):
        assert await read(bob) == DATA
        for node in (carol, bob):
            rule(node, 90)
        await trio.sleep(3)
        assert [await look(node) for node in (carol, bob, carol)] == [0, 0, 0]
        rule(bob, 0)
        await trio.sleep(3)
        assert await look(carol) == 1, "bob keeps all again, and shows it"
        rule(bob, 90)
        await trio.sleep(3)
        assert await look(bob) == 0, "the last copy stays"
    collect(bob)
    assert await read(bob) == DATA


async def test_who_lacks_a_block_is_not_relied_on_nor_asked_again_that_day(
    nodes: list[Node], monkeypatch: pytest.MonkeyPatch, autojump_clock: MockClock
) -> None:
    _, carol, bob = nodes
    asked = list[int]()
    ask = BodyProofs.ask_blocks

    async def count(self: BodyProofs, source: Conversation, topic: TopicKey, ids: Sequence[BlockId]) -> bool:
        asked.append(len(ids))
        return await ask(self, source, topic, ids)

    async with online((bob, carol)):
        file = await _files(bob).open("main", "old")
        assert [len(part) async for part in _files(bob).read(file, 0, 1)] == [1]
        monkeypatch.setattr(BodyProofs, "ask_blocks", count)
        rule(carol, 90)
        ages = PostAges(carol.hub, carol.author.user)
        assert [await ages.look(), await ages.look()] == [0, 0]
        assert asked == [4], "the root and three leaves, of which bob has two"
        assert spared(carol) == 0


def _change_the_rule(alice: Node, carol: Node) -> None:
    rule(carol, 0)


def _keep_less_at_the_holder(alice: Node, carol: Node) -> None:
    rule(alice, 90)


def _have_more_come(alice: Node, carol: Node) -> None:
    """A reader fetches a block that was not here when the file was shown."""
    assert carol.hub.proofs.file is not None
    _files(carol)._keep_fetched(carol.branch(), carol.hub.proofs.file)


def _leave(alice: Node, carol: Node) -> None:
    for source in carol.hub.sources:
        source.part("stopping")


@pytest.mark.parametrize("happen", [_change_the_rule, _keep_less_at_the_holder, _have_more_come, _leave])
async def test_a_file_that_was_shown_stays_where_something_has_changed(
    nodes: list[Node],
    monkeypatch: pytest.MonkeyPatch,
    happen: Callable[[Node, Node], None],
    autojump_clock: MockClock,
) -> None:
    alice, carol, _ = nodes
    ask = BodyProofs.ask_blocks

    async def ask_then_wait(
        self: BodyProofs, source: Conversation, topic: TopicKey, ids: Sequence[BlockId]
    ) -> bool:
        assert await ask(self, source, topic, ids)
        happen(alice, carol)
        await trio.sleep(3)
        return True

    async with online((carol, alice)):
        rule(carol, 90)
        monkeypatch.setattr(BodyProofs, "ask_blocks", ask_then_wait)
        assert await look(carol) == 0
        assert spared(carol) == 0


async def test_a_wider_rule_takes_files_back_that_are_marked(
    nodes: list[Node], autojump_clock: MockClock
) -> None:
    alice, carol, _ = nodes
    async with online((carol, alice)):
        rule(carol, 90)
        assert await look(carol) == 1
        rule(carol, 150)
        assert spared(carol) == 1
        rule(carol, 300)
        assert spared(carol) == 0
    collect(carol)
    assert await places(carol) == ["here"]


@pytest.mark.parametrize("others", [{}, {"new": b"new"}])
async def test_a_file_that_is_added_again_stays(
    nodes: list[Node], others: dict[str, bytes], autojump_clock: MockClock
) -> None:
    """Its commit is there already, and what is added may have blocks that nobody has shown."""
    alice, carol, _ = nodes
    async with online((carol, alice)):
        rule(carol, 90)
        assert await look(carol) == 1
    await _files(carol).add_many("main", _stream(_body({"old": DATA, **others})))
    assert spared(carol) == 0
    collect(carol)
    assert await read(carol) == DATA


async def test_an_answer_to_a_question_from_before_shows_nothing(
    nodes: list[Node], monkeypatch: pytest.MonkeyPatch, autojump_clock: MockClock
) -> None:
    """A reader may have asked for the block before the rule was told."""
    alice, carol, _ = nodes
    async with online((carol, alice)):
        [source] = carol.hub.sources
        fetched = list[float]()

        async def fetch(*_: object) -> bytes:
            fetched.append(trio.current_time())
            return b""

        monkeypatch.setattr(Connection, "fetch", fetch)
        began, block = trio.current_time(), BlockId(bytes(32))
        async with trio.open_nursery() as nursery:
            nursery.start_soon(source.questions.ask, block, lambda: True, lambda: 0)
            await trio.sleep(1)
            nursery.start_soon(carol.hub.proofs.ask_blocks, source, carol.epoch().topic, [block])
            await trio.sleep(4)
            source.questions.settle(block, None)
        assert fetched == [began + 5]
