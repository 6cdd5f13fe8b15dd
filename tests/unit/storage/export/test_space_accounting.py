"""Space accounting, against counting every block of every commit and file one by one."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, delete, func, select, update

from node.authoring.drafting import Draft
from protocol.formats.block import decode_block
from protocol.formats.content import FileEntry, Files
from protocol.formats.object import build_object
from protocol.ids import BlockId
from protocol.limits.formats import LEAF_SIZE
from storage.engine.id_keys import pack_nums, unpack_nums
from storage.export import space_accounting as holdings
from storage.export.manifest import Holdings
from storage.export.space_accounting import HoldingsCount, count_holdings
from storage.schema.schema import blocks, commits, files, pack_blocks
from tests.support.nodes import Node

NOTHING = HoldingsCount(None, "")
LARGE = bytes(LEAF_SIZE) * 3 + b"its own end"  # of three equal leaves, one is held


@pytest.fixture
def node(tmp_path: Path) -> Node:
    """Make two posts of one text, one without its body; a small file, a large one twice, and a block that nobody names."""
    node = Node(tmp_path, "alice")
    _, branch = node.create_repo()
    for text in ("equal", "equal", "erased"):
        node.write(branch, text)
    for name, content in (("small", b"small"), ("large", LARGE), ("again", LARGE)):
        reference, made = build_object(content, node.epoch().convergence_secret)
        with node.replica.packs.draft() as draft:
            for block in made:
                draft.put(block)
            draft.finish()
            entry = Draft(Files((FileEntry(name, len(content)),)), files=(reference,))
            node.author.write(branch, entry, after=lambda connection, _: draft.keep(connection))
            draft.is_kept = True
    with node.replica.database.write() as connection:
        query = select(commits.c.num, commits.c.block_nums).where(commits.c.body_kind == "post")
        num, packed = connection.execute(query.order_by(commits.c.num.desc()).limit(1)).one()
        own, body = unpack_nums(packed)
        connection.execute(update(commits).where(commits.c.num == num).values(block_nums=pack_nums([own])))
        connection.execute(delete(blocks).where(blocks.c.num == body))
    return node


def _one_by_one(connection: Connection, node: Node) -> Holdings:
    sizes = [len(encoded) for encoded in connection.execute(select(blocks.c.encoded)).scalars()]
    sizes += connection.execute(select(pack_blocks.c.size)).scalars()
    by_num = {
        num: len(encoded) for num, encoded in connection.execute(select(blocks.c.num, blocks.c.encoded))
    }
    named = [
        by_num[num]
        for (packed,) in connection.execute(select(commits.c.block_nums))
        for num in unpack_nums(packed)
    ]
    ahead = list(connection.execute(select(files.c.object_id)).scalars())
    while ahead:
        block = node.replica.packs.find(connection, ahead.pop())
        assert block is not None
        named.append(len(block.encoded))
        ahead += decode_block(block.encoded).child_ids
    return Holdings(len(sizes), sum(sizes), len(named), sum(named))


def test_blocks_are_counted_as_held_and_as_often_as_they_are_named(node: Node, tmp_path: Path) -> None:
    with node.replica.database.read() as connection:
        found = count_holdings(connection, NOTHING, tmp_path).holdings
        assert found == _one_by_one(connection, node)
        rows = connection.execute(select(func.count()).select_from(commits)).scalar_one()
    assert found is not None
    assert found.referenced_bytes - found.bytes > 4 * LEAF_SIZE, "two leaves in each copy, and a whole copy"
    assert found.referenced_blocks == 2 * rows - 1 + 1 + 2 * 5
    node.replica.close()


def test_more_files_than_can_be_walked_are_not_counted(
    node: Node, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The small file, the large one's root, and its two different leaves: four look-ups.
    with node.replica.database.read() as connection:
        monkeypatch.setattr(holdings, "FILE_BLOCKS_WALKED_MAX", 4)
        found = count_holdings(connection, NOTHING, tmp_path).holdings
        assert found is not None
        monkeypatch.setattr(holdings, "FILE_BLOCKS_WALKED_MAX", 3)
        assert count_holdings(connection, NOTHING, tmp_path).holdings is None
        monkeypatch.setattr(holdings, "FILE_BLOCKS_WALKED_MAX", 4)
        monkeypatch.setattr(holdings, "SIZE_MAX", found.referenced_bytes)
        assert count_holdings(connection, NOTHING, tmp_path).holdings == found
        monkeypatch.setattr(holdings, "SIZE_MAX", found.referenced_bytes - 1)
        assert count_holdings(connection, NOTHING, tmp_path).holdings is None
    node.replica.close()


Walk = Callable[[Connection, Path, list[BlockId]], Iterator[tuple[BlockId, int, tuple[BlockId, ...]]]]


@pytest.fixture
def walked(monkeypatch: pytest.MonkeyPatch) -> list[BlockId]:
    """Return the blocks of files, as they are looked up."""
    seen: list[BlockId] = []
    look_up: Walk = holdings._look_up

    def note(connection: Connection, folder: Path, ids: list[BlockId]) -> Iterator[Any]:
        for found in look_up(connection, folder, ids):
            seen.append(found[0])
            yield found

    monkeypatch.setattr(holdings, "_look_up", note)
    return seen


def test_what_blocks_of_one_level_name_is_bounded_as_it_grows(
    node: Node, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, walked: list[BlockId]
) -> None:
    # Of the first level's two blocks the large file's root names two more: one over, before the small file is read.
    monkeypatch.setattr(holdings, "FILE_BLOCKS_WALKED_MAX", 3)
    with node.replica.database.read() as connection:
        assert count_holdings(connection, NOTHING, tmp_path).holdings is None
    assert len(walked) == 1
    node.replica.close()


def test_files_are_walked_again_when_something_came_or_left(
    node: Node, tmp_path: Path, walked: list[BlockId], monkeypatch: pytest.MonkeyPatch
) -> None:
    database = node.replica.database

    def count(before: HoldingsCount) -> HoldingsCount:
        walked.clear()
        with database.read() as connection:
            return count_holdings(connection, before, tmp_path)

    first = count(NOTHING)
    assert (len(walked), count(first), len(walked)) == (4, first, 0)
    (branch,) = (one for one in node.replica.branches.values() if not one.facts.is_root_branch)
    node.write(branch, "came")
    second = count(first)
    assert (second != first, len(walked)) == (True, 4)
    with database.write() as connection:
        last = select(func.max(files.c.num)).scalar_subquery()
        connection.execute(delete(files).where(files.c.num == last))
    third = count(second)
    assert (third != second, len(walked)) == (True, 4), "the large file stays, named once"
    monkeypatch.setattr(holdings, "FILE_BLOCKS_WALKED_MAX", 3)
    assert count(third) == third
    too_many = count(NOTHING)
    assert too_many == HoldingsCount(None, third.state)
    assert (count(too_many), walked) == (too_many, []), "nor is it tried again"
    node.replica.close()


def test_damaged_files_are_not_counted_and_stop_nothing(node: Node, tmp_path: Path) -> None:
    for path in (tmp_path / "packs").iterdir():
        path.unlink()
    with node.replica.database.read() as connection:
        assert count_holdings(connection, NOTHING, tmp_path) == NOTHING, "and are looked at again"
    node.replica.close()
