"""What was damaged comes back from peers, whatever it was; until then it is said, and everything else goes on."""

import os
from collections.abc import AsyncGenerator, Callable
from pathlib import Path

import pytest
import trio
from sqlalchemy import Connection, delete, select, update
from trio.testing import MockClock

from node.api.edits import Edits
from node.care.fsck import check_store
from node.care.repair import repair_store
from node.content.files import FileService
from node.sync.block_repair import BlockRepairer
from node.sync.session_queries import read_store
from node.timelines.commit_history import describe
from node.timelines.timelines import Timelines
from protocol.formats.text import id_text
from protocol.limits.formats import LEAF_SIZE
from protocol.session.events import BatchLoaded
from protocol.session.outputs import LoadBatch
from storage.blobs.garbage_collection import find_garbage
from storage.commits.blocks import DamagedBlock
from storage.commits.commits import load_timeline
from storage.commits.damaged import DamagedCount, count_damaged
from storage.engine.id_keys import unpack_nums
from storage.repos.repos import Branch
from storage.schema.schema import blocks, commits
from tests.support.builders import STORE_KEY, writing_topic
from tests.support.machine import fail_after
from tests.support.nodes import Node, connected, open_nodes, share, together, until_equal
from tests.support.relays import open_relay, visit

Harm = Callable[[Connection, tuple[int, ...]], object]


def _flip(connection: Connection, num: int) -> None:
    encoded = bytearray(connection.execute(select(blocks.c.encoded).where(blocks.c.num == num)).scalar_one())
    encoded[-1] ^= 1
    connection.execute(update(blocks).where(blocks.c.num == num).values(encoded=bytes(encoded)))


HARM: dict[str, Harm] = {
    "header_flipped": lambda connection, nums: _flip(connection, nums[0]),
    "body_flipped": lambda connection, nums: _flip(connection, nums[1]),
    "header_gone": lambda connection, nums: connection.execute(delete(blocks).where(blocks.c.num == nums[0])),
    "body_gone": lambda connection, nums: connection.execute(delete(blocks).where(blocks.c.num == nums[1])),
    "all_gone": lambda connection, nums: connection.execute(delete(blocks).where(blocks.c.num.in_(nums))),
    "row_names_nothing": lambda connection, nums: connection.execute(
        update(commits).where(commits.c.rank == 2, commits.c.branch_num == 2).values(block_nums=b"\1" * 16)
    ),
    "key_of_another": lambda connection, nums: connection.execute(
        update(commits).where(commits.c.rank == 2, commits.c.branch_num == 2).values(commit_key=b"k" * 32)
    ),
}


def _nums(connection: Connection, rank: int, branch: Branch) -> tuple[int, ...]:
    query = select(commits.c.block_nums).where(commits.c.rank == rank, commits.c.branch_num == branch.num)
    return unpack_nums(connection.execute(query).scalar_one())


def _count(node: Node) -> DamagedCount:
    with node.replica.database.read() as connection:
        return count_damaged(connection)


def _kinds(folder: Path) -> dict[str, int]:
    return dict(check_store(folder, STORE_KEY).kinds)


def _repair(node: Node, folder: Path) -> None:
    """The store is closed, repaired, and opened again."""
    node.replica.close()
    repair_store(folder, STORE_KEY)
    node.open()


async def _mend(node: Node, other: Node) -> None:
    """Connected to another node until nothing is damaged."""
    async with connected(node, other):
        await BlockRepairer(node.hub).run()
    assert not node.replica.has_damaged


@pytest.mark.slow
@pytest.mark.parametrize("harm", HARM)
async def test_a_damaged_commit_comes_back(tmp_path: Path, autojump_clock: MockClock, harm: str) -> None:
    with fail_after(300), open_nodes(tmp_path, "alice", "bob") as (alice, bob):
        await share(alice, bob)
        for number in range(4):
            alice.write(alice.branch(), f"post {number}")
        await together(alice, bob)
        before, heads = bob.digest(bob.branch()), bob.heads(bob.branch())
        with bob.replica.database.write() as connection:
            HARM[harm](connection, _nums(connection, 2, bob.branch()))
        _repair(bob, tmp_path / "bob")
        assert _kinds(tmp_path / "bob") == {"damaged": 1}
        assert _count(bob) == DamagedCount(1, 0)
        assert (bob.digest(bob.branch()), bob.heads(bob.branch())) == (before, heads), "its place is known"
        bob.write(bob.branch(), "goes on")
        alice.write(alice.branch(), "meanwhile")
        edits = Edits(bob.hub, lambda _: bob.branch())
        since = (await edits.window("", "", 1))["last"]
        await _mend(bob, alice)
        told = (await edits.window("", since, 100))["edits"]
        assert ("move", "post 1") in [(one["edit"], one.get("item", {}).get("text")) for one in told]
        async with connected(bob, alice):
            await until_equal(bob, alice)
        assert _kinds(tmp_path / "bob") == {}
        shown = await Timelines(bob.hub, lambda _: bob.branch()).window("", -1, 100)
        assert [item["text"] for item in shown["items"]].count("post 1") == 1
        with bob.replica.database.read() as connection:
            rows = load_timeline(connection, bob.branch().num, 0, 100)
        assert "post 1" in [describe(bob.replica, id_text(row.commit_id))["text"] for row in rows]
        garbage = find_garbage(tmp_path / "bob", keep_removed=True).blocks
        assert garbage == (2 if harm == "row_names_nothing" else 0), (
            "what its row still named has no second copy"
        )


@pytest.mark.slow
async def test_until_it_is_back_the_others_are_shown_and_sent(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    with fail_after(300), open_nodes(tmp_path, "alice", "bob") as (alice, bob):
        await share(alice, bob)
        for number in range(4):
            alice.write(alice.branch(), f"post {number}")
        await together(alice, bob)
        with bob.replica.database.write() as connection:
            HARM["body_flipped"](connection, _nums(connection, 2, bob.branch()))
        _repair(bob, tmp_path / "bob")
        shown = await Timelines(bob.hub, lambda _: bob.branch()).window("", -1, 100)
        assert [(item["text"], item.get("damaged", False)) for item in shown["items"]] == [
            (None, False),
            ("post 0", False),
            (None, True),
            ("post 2", False),
            ("post 3", False),
        ]
        damaged = next(item["commit"] for item in shown["items"] if item.get("damaged"))
        with pytest.raises(DamagedBlock):
            describe(bob.replica, damaged)
        topic = writing_topic(bob.replica, bob.branch())
        with bob.replica.database.read() as connection:
            nums = tuple(row.num for row in load_timeline(connection, bob.branch().num, 0, 100))
        sent = read_store(bob.replica, topic, LoadBatch(topic.topic, nums), of_publications=False)
        assert isinstance(sent, BatchLoaded)
        assert len(sent.items) == 2, "up to the damaged one"
        sent = read_store(bob.replica, topic, LoadBatch(topic.topic, nums[2:]), of_publications=False)
        assert sent == BatchLoaded(topic.topic, ()), "which is passed over"
        for of_publications in (False, True):
            whole = read_store(
                bob.replica, topic, LoadBatch(topic.topic, nums[3:]), of_publications=of_publications
            )
            assert isinstance(whole, BatchLoaded)
            assert len(whole.items) == 2


@pytest.mark.slow
async def test_a_root_branch_comes_back_and_with_it_what_waited_for_it(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    with fail_after(300), open_nodes(tmp_path, "alice", "bob") as (alice, bob):
        await share(alice, bob)
        await together(alice, bob)
        root = bob.branch("root")
        with bob.replica.database.write() as connection:
            for rank in (0, 2):
                HARM["all_gone"](connection, _nums(connection, rank, root))
        _repair(bob, tmp_path / "bob")
        assert _count(bob) == DamagedCount(2, 0)
        with pytest.raises(DamagedBlock):
            bob.replica.permission(bob.repo(), bob.author.user)
        with pytest.raises(DamagedBlock):
            bob.write(bob.branch(), "by whose right?")
        alice.write(alice.branch(), "meanwhile")
        await _mend(bob, alice)
        async with connected(bob, alice):
            await until_equal(bob, alice)
        assert bob.replica.permission(bob.repo(), bob.author.user) is not None
        bob.write(bob.branch(), "again")
        assert _kinds(tmp_path / "bob") == {}


@pytest.mark.slow
async def test_a_relay_brings_commits_back_too(tmp_path: Path, autojump_clock: MockClock) -> None:
    with (
        fail_after(300),
        open_nodes(tmp_path, "alice", "bob") as (alice, bob),
        open_relay(tmp_path / "r") as relay,
    ):
        await share(alice, bob)
        for number in range(4):
            alice.write(alice.branch(), f"post {number}")
        for node in (alice, bob):
            await visit(node, relay)
        before = bob.digest(bob.branch())
        with bob.replica.database.write() as connection:
            HARM["all_gone"](connection, _nums(connection, 2, bob.branch()))
            HARM["body_gone"](connection, _nums(connection, 1, bob.branch("root")))
        _repair(bob, tmp_path / "bob")
        assert _count(bob) == DamagedCount(2, 0)
        await _mend(bob, relay)
        await visit(bob, relay)
        assert bob.digest(bob.branch()) == before
        assert _kinds(tmp_path / "bob") == {}


async def _stream(data: bytes) -> AsyncGenerator[bytes]:
    await trio.lowlevel.checkpoint()
    yield data


def _files_of(node: Node) -> FileService:
    return FileService(node.hub, node.author, node.branch)


async def _get(node: Node) -> bytes:
    files = _files_of(node)
    file = await files.open("main", "far")
    return b"".join([part async for part in files.read(file, 0, file.size)])


def _flip_file(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


PACKS: dict[str, tuple[Callable[[Path], object], int]] = {
    "flipped": (_flip_file, 1),
    "cut": (lambda path: path.write_bytes(path.read_bytes()[:-1]), 1),
    "gone": (lambda path: path.unlink(), 3),
}


@pytest.mark.slow
@pytest.mark.parametrize("damage", PACKS)
async def test_the_content_of_a_file_comes_back(
    tmp_path: Path, autojump_clock: MockClock, damage: str
) -> None:
    data = os.urandom(3 * LEAF_SIZE)
    harm, count = PACKS[damage]
    with fail_after(300), open_nodes(tmp_path, "alice", "bob") as (alice, bob):
        await share(alice, bob)
        await _files_of(alice).add("main", "far", _stream(data))
        async with connected(bob, alice):
            await until_equal(alice, bob)
            assert await _get(bob) == data
        for pack in (tmp_path / "bob" / "packs").iterdir():
            harm(pack)
        _repair(bob, tmp_path / "bob")
        left = _count(bob)
        assert left.commits == 0
        assert left.blocks >= count
        assert _kinds(tmp_path / "bob") == {"damaged": left.blocks}
        await _mend(bob, alice)
        assert _kinds(tmp_path / "bob") == {}
        assert await _get(bob) == data, "without a peer"


@pytest.mark.slow
async def test_small_files_that_are_rows_come_back(tmp_path: Path, autojump_clock: MockClock) -> None:
    with fail_after(300), open_nodes(tmp_path, "alice", "bob") as (alice, bob):
        await share(alice, bob)
        await _files_of(alice).add("main", "far", _stream(b"small"))
        async with connected(bob, alice):
            await until_equal(alice, bob)
            assert await _get(bob) == b"small"
        with bob.replica.database.write() as connection:
            last = connection.execute(
                select(blocks.c.num).order_by(blocks.c.num.desc()).limit(1)
            ).scalar_one()
            _flip(connection, last)
        _repair(bob, tmp_path / "bob")
        assert _count(bob) == DamagedCount(0, 1)
        await _mend(bob, alice)
        assert await _get(bob) == b"small"
        assert _kinds(tmp_path / "bob") == {}


@pytest.mark.slow
async def test_another_peer_is_asked_where_one_has_not_got_it(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    with fail_after(300), open_nodes(tmp_path, "alice", "bob", "carol") as (alice, bob, carol):
        await share(alice, bob, carol)
        for number in range(4):
            alice.write(alice.branch(), f"post {number}")
        await together(alice, bob, carol)
        for node in (bob, carol):
            with node.replica.database.write() as connection:
                HARM["header_gone"](connection, _nums(connection, 2, node.branch()))
        _repair(bob, tmp_path / "bob")
        _repair(carol, tmp_path / "carol")
        async with connected(bob, carol), connected(bob, alice):
            await BlockRepairer(bob.hub).run()
        assert _kinds(tmp_path / "bob") == {}
        assert _count(carol) == DamagedCount(1, 0), "nobody gave it to her"
