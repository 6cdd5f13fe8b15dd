"""Space of given-up contents is freed beside the daemon, and nothing goes that anything else needs."""

import errno
import os
import shutil
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import trio
from sqlalchemy import Engine, event, func, select
from trio.testing import MockClock

from node.care.freeing import SpaceFreeing
from node.care.fsck import check_store
from node.home.home import hold_content
from protocol.formats.object import build_object
from protocol.ids import BlockId
from protocol.limits.formats import LEAF_SIZE
from storage.blobs import garbage_collection, pack_moves
from storage.blobs.garbage_collection import Collection, Outdated, find_garbage
from storage.blobs.pack_moves import remove_packs
from storage.commits.blocks import put_shared_blocks
from storage.commits.damaged import mark_blocks_damaged
from storage.engine.database import StorageError
from storage.schema.schema import blocks, pack_blocks, packs
from tests.support.builders import STORE_KEY
from tests.support.nodes import Node, open_nodes, share
from tests.unit.node.care.test_giving_up import NOW_MS, online, opened, rule
from tests.unit.node.care.test_giving_up_files import _files, _stream, look, read, spared

pytestmark = pytest.mark.slow
DATA, OTHER = os.urandom(2 * LEAF_SIZE + 5), os.urandom(LEAF_SIZE)
POST = os.urandom(3000).hex()
"""A post whose body has more than 4 KiB, so that its block is found by its id, as those of files are."""


@pytest.fixture
async def nodes(tmp_path: Path, autojump_clock: MockClock) -> AsyncIterator[list[Node]]:
    """Alice and carol on the 200th day. Alice wrote a post and added a file on the first, and carol has all of it."""
    with open_nodes(tmp_path, "alice", "carol") as (alice, carol):
        await share(alice, carol)
        alice.write(alice.branch(), POST)
        await _files(alice).add("main", "old", _stream(DATA))
        for node in (alice, carol):
            node.set_clock(NOW_MS)
        async with online((carol, alice)):
            assert await read(carol) == DATA
        yield [alice, carol]


@contextmanager
def _collecting(node: Node) -> Iterator[Collection]:
    """A collection beside a node, that has marked."""
    collection = Collection(node.replica.database, node.replica.packs)
    try:
        collection.mark_given_up()
        yield collection
        remove_packs(node.replica.database.folder, collection.retired)
    finally:
        collection.end()


def _collect(node: Node) -> int:
    with _collecting(node) as collection:
        while collection.step():
            pass
    return collection.size


def _sizes(node: Node) -> tuple[int, int, int]:
    """Bytes of packs' files, of blocks in packs, and of rows."""
    with node.replica.database.read() as connection:
        packed = connection.execute(select(func.sum(pack_blocks.c.size))).scalar_one() or 0
        rows = connection.execute(select(func.sum(func.length(blocks.c.encoded)))).scalar_one()
    files = (node.replica.database.folder / "packs").glob("*")
    return sum(path.stat().st_size for path in files), packed, rows


def _check(node: Node) -> None:
    """See that nothing is wrong with the store, and that a new start finds it so."""
    node.replica.close()
    assert check_store(node.replica.database.folder, STORE_KEY).problems == []
    node.open()
    assert not (node.replica.database.folder / "quarantine").exists()


@pytest.fixture
async def given_up(nodes: list[Node], autojump_clock: MockClock) -> list[Node]:
    """Nodes of alice and carol, of which carol's has given a file up."""
    alice, carol = nodes
    async with online((carol, alice)):
        rule(carol, 90)
        assert await look(carol) == 2
    return nodes


async def test_what_was_given_up_is_freed_by_the_next_looks_and_comes_again(
    nodes: list[Node], autojump_clock: MockClock
) -> None:
    alice, carol = nodes
    freeing = SpaceFreeing(carol.hub, carol.author.user)
    before, folder = _sizes(carol), carol.replica.database.folder
    of_alice = _sizes(alice)
    async with online((carol, alice)):
        assert await freeing.look() == 0, "there is no rule"
        rule(carol, 90)
        assert await freeing.look() == 0, "what a look gives up is freed by the next one"
        assert await freeing.look() > len(DATA) + len(POST)
        assert _sizes(carol)[0] == before[0], "a reader may still have found the place"
        with hold_content(folder, alone=False):
            await freeing.look()
            assert _sizes(carol)[0] == before[0], "a backup copies the files"
        await freeing.look()
        assert _sizes(carol)[:2] == (0, 0)
        assert _sizes(carol)[2] < before[2] - len(POST)
    _check(carol)
    _check(alice)
    async with online((carol, alice)):
        assert await read(carol) == DATA
        await opened(carol)
        await trio.sleep(20)
        assert await opened(carol) == [POST]
    assert _sizes(alice) == of_alice


async def test_marks_are_made_in_a_hundredth_of_the_time(
    given_up: list[Node], monkeypatch: pytest.MonkeyPatch, autojump_clock: MockClock
) -> None:
    """Marking reads all rows of the store, and in a busy repo some post grows old at each look."""
    carol, marked = given_up[1], list[float]()
    freeing = SpaceFreeing(carol.hub, carol.author.user)

    def mark(_: Collection) -> None:
        autojump_clock.jump(10)
        marked.append(autojump_clock.current_time())

    monkeypatch.setattr(Collection, "mark_given_up", mark)
    for _ in range(3):
        freeing._is_due = True
        await freeing.look()
        await trio.sleep(900)
    assert len(marked) == 2
    assert marked[1] - marked[0] > 1000


async def test_what_a_start_finds_after_a_kill_is_deleted(
    given_up: list[Node], autojump_clock: MockClock
) -> None:
    _, carol = given_up
    collection = Collection(carol.replica.database, carol.replica.packs)
    collection.mark_given_up()
    while collection.step():
        pass
    assert collection.retired
    assert _sizes(carol)[0] > len(DATA)
    assert check_store(carol.replica.database.folder, STORE_KEY).checked["unnamed_packs"] == 0
    _check(carol)
    assert _sizes(carol)[0] == 0


async def test_a_collection_that_ends_after_any_step_is_gone_on_with(
    given_up: list[Node], monkeypatch: pytest.MonkeyPatch, autojump_clock: MockClock
) -> None:
    _, carol = given_up
    monkeypatch.setattr(garbage_collection, "_STEP_ROWS", 1)
    taken = 0
    for _ in range(20):
        with _collecting(carol) as collection:
            taken += collection.step()
        _check(carol)
    assert taken == 5, "three leaves, the body of the post, and the root"
    assert find_garbage(carol.replica.database.folder, keep_removed=True).blocks == 0
    assert _sizes(carol)[:2] == (0, 0)


async def test_the_root_of_a_file_stays_while_other_blocks_of_it_do(
    shared: Node, monkeypatch: pytest.MonkeyPatch, autojump_clock: MockClock
) -> None:
    """Nothing else tells what they are."""
    with monkeypatch.context() as patch:
        patch.setattr(garbage_collection, "_ROOM_MIN", 1 << 62)
        _collect(shared)
    assert _sizes(shared)[1] > LEAF_SIZE * 3
    _collect(shared)
    assert _sizes(shared)[0] == _sizes(shared)[1] < LEAF_SIZE * 3


async def test_content_that_this_user_adds_meanwhile_stays(
    given_up: list[Node], autojump_clock: MockClock
) -> None:
    _, carol = given_up
    with _collecting(carol) as collection:
        await _files(carol).add("main", "mine", _stream(DATA))
        while collection.step():
            pass
    assert await read(carol, "mine") == DATA
    _check(carol)


async def test_content_that_is_being_added_stays(given_up: list[Node], autojump_clock: MockClock) -> None:
    """Its blocks are here already, so the add leaves them out."""
    _, carol = given_up
    _, made = build_object(DATA, carol.epoch().convergence_secret)
    with carol.replica.packs.draft() as draft:
        for block in made:
            draft.put(block)
        draft._flush()
        before = _sizes(carol)
        _collect(carol)
        assert _sizes(carol)[:2] == before[:2]
    _collect(carol)
    assert _sizes(carol)[:2] == (0, 0), "once the draft has ended they go"


async def test_rows_that_a_write_names_once_more_stay(
    given_up: list[Node], autojump_clock: MockClock
) -> None:
    carol = given_up[1]
    _, made = build_object(DATA, carol.epoch().convergence_secret)
    with _collecting(carol) as collection:
        with carol.replica.database.write() as connection:
            put_shared_blocks(carol.replica.database, connection, [made[-1]])
        while collection.step():
            pass
    with carol.replica.database.read() as connection:
        assert carol.replica.packs.find(connection, made[-1].block_id) == made[-1]


async def test_blocks_that_a_file_has_which_is_fetched_meanwhile_stay(
    given_up: list[Node], autojump_clock: MockClock
) -> None:
    """Marks miss the blocks, since their root was absent then. The fetch leaves out blocks that are here."""
    alice, carol = given_up
    data = DATA[: 2 * LEAF_SIZE] + OTHER
    async with online((carol, alice)):
        await _files(alice).add("main", "newer", _stream(data))
        await trio.sleep(20)
        with _collecting(carol) as collection:
            assert await read(carol, "newer") == data
            while collection.step():
                pass
    assert await read(carol, "newer") == data
    _check(carol)


async def test_a_step_looks_up_no_file_that_was_given_up(
    given_up: list[Node], autojump_clock: MockClock
) -> None:
    """There may be very many, and the one writer would wait."""
    heard: list[str] = []

    def hear(_: object, __: object, statement: str, *___: object) -> None:
        heard.append(statement)

    with _collecting(given_up[1]) as collection:
        event.listen(Engine, "before_cursor_execute", hear)
        try:
            while collection.step():
                pass
        finally:
            event.remove(Engine, "before_cursor_execute", hear)
    found = [one for one in heard if "spared_files" in one and "files.object_id" not in one]
    assert found
    assert not [one for one in found if " IN (" in one]


def _fetch_again(node: Node) -> None:
    [file] = _files(node)._find(node.branch(), "old")
    _files(node)._keep_fetched(node.branch(), file.object_id)


def _damage(node: Node) -> None:
    with node.replica.database.write() as connection:
        mark_blocks_damaged(connection, {BlockId(bytes(32))})


@pytest.mark.parametrize("happen", [_fetch_again, _damage])
async def test_a_collection_ends_where_what_it_found_has_changed(
    given_up: list[Node], happen: Callable[[Node], None], autojump_clock: MockClock
) -> None:
    _, carol = given_up
    before = _sizes(carol)
    with _collecting(carol) as collection:
        happen(carol)
        with pytest.raises(Outdated):
            collection.step()
    assert _sizes(carol) == before
    assert await read(carol) == DATA


async def test_nothing_is_freed_while_a_block_is_damaged(
    given_up: list[Node], autojump_clock: MockClock
) -> None:
    """It may name others that are needed."""
    _, carol = given_up
    _damage(carol)
    with pytest.raises(Outdated), _collecting(carol):
        pass


@pytest.fixture
async def shared(given_up: list[Node]) -> Node:
    """Carol, who gave a file up, and added one of her own that has the first leaf of it."""
    carol = given_up[1]
    await _files(carol).add("main", "mine", _stream(DATA[:LEAF_SIZE] + OTHER))
    return carol


async def test_what_is_needed_of_a_pack_moves_to_a_new_one(shared: Node, autojump_clock: MockClock) -> None:
    before = _sizes(shared)
    assert _collect(shared) > LEAF_SIZE
    files, packed, _ = _sizes(shared)
    assert files == packed, "no pack has anything that is not needed"
    assert packed < before[1] - LEAF_SIZE
    _check(shared)
    assert await read(shared, "mine") == DATA[:LEAF_SIZE] + OTHER
    assert spared(shared) == 1
    assert _collect(shared) == 0


async def test_who_reads_an_older_moment_finds_all_that_it_had(
    shared: Node, autojump_clock: MockClock
) -> None:
    _, made = build_object(DATA, shared.epoch().convergence_secret)
    database, blobs = shared.replica.database, shared.replica.packs
    with database.read() as older:
        assert all(blobs.find(older, block.block_id) == block for block in made)
        collection = Collection(database, blobs)
        collection.mark_given_up()
        while collection.step():
            pass
        collection.end()
        assert all(blobs.find(older, block.block_id) == block for block in made)
        with database.read() as newer:
            assert [blobs.find(newer, block.block_id) for block in made[1:]] == [None] * 3
            assert blobs.find(newer, made[0].block_id) == made[0]


@pytest.mark.parametrize("moment", ["sync_folder", "may_be_named"])
async def test_a_kill_while_a_pack_is_written_anew_loses_and_leaves_nothing(
    shared: Node, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str, autojump_clock: MockClock
) -> None:
    """Before its rows are changed, and after."""
    folder, killed = shared.replica.database.folder, tmp_path / "killed"
    original = getattr(pack_moves, moment)

    def kill(*arguments: object) -> object:
        shutil.copytree(folder, killed)
        return original(*arguments)

    monkeypatch.setattr(pack_moves, moment, kill)
    _collect(shared)
    monkeypatch.undo()
    shared.replica.close()
    shared.folder = killed
    shared.open()
    with shared.replica.database.read() as connection:
        named = set(connection.execute(select(packs.c.name)).scalars())
    assert {path.name for path in (killed / "packs").iterdir()} == named
    _check(shared)
    assert await read(shared, "mine") == DATA[:LEAF_SIZE] + OTHER
    _collect(shared)
    assert _sizes(shared)[0] == _sizes(shared)[1]


async def test_a_pack_stays_whole_on_a_full_disk(
    shared: Node, monkeypatch: pytest.MonkeyPatch, autojump_clock: MockClock
) -> None:
    before = _sizes(shared)
    monkeypatch.setattr(garbage_collection, "_ROOM_MIN", 1 << 62)
    _collect(shared)
    assert _sizes(shared)[:2] == before[:2]
    monkeypatch.undo()

    def fail(*_: object) -> None:
        raise OSError(errno.ENOSPC, "no space")

    monkeypatch.setattr(pack_moves, "write_encoded", fail)
    with pytest.raises(StorageError):
        _collect(shared)
    monkeypatch.undo()
    assert _sizes(shared)[:2] == before[:2], "nothing of the new one is left"
    _check(shared)


async def test_no_damaged_block_is_moved(shared: Node, autojump_clock: MockClock) -> None:
    before = _sizes(shared)
    _, made = build_object(DATA, shared.epoch().convergence_secret)
    with shared.replica.database.read() as connection:
        query = select(packs.c.name, pack_blocks.c.offset).join(packs, packs.c.num == pack_blocks.c.pack_num)
        name, offset = connection.execute(query.where(pack_blocks.c.block_id == made[0].block_id)).one()
    with (shared.replica.database.folder / "packs" / name).open("r+b") as file:
        file.seek(offset + 100)
        file.write(b"damage")
    _collect(shared)
    assert _sizes(shared)[:2] == before[:2]
