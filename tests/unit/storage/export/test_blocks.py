"""Blocks in exports: of every commit each block once, what is not here said to be, and nothing of them unless asked for."""

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from sqlalchemy import update

from protocol.formats.block import Block, decode_block, encrypt_block
from protocol.formats.publication import create_publication, decode_publication
from protocol.ids import BlockId, CommitId, PeerId
from protocol.limits.formats import MARK_SIZE
from ravel.exports.schema import KEPT_NAME
from storage.export.blocks import block_batches
from storage.export.parts import write_parts
from storage.relay.quotas import Visitor
from storage.relay.relay import open_topics, store_publications
from storage.schema.relay_schema import relay_commits
from storage.schema.schema import blocks
from tests.support.builders import World
from tests.support.exports import export_node
from tests.support.hard_stores import harden
from tests.support.ids import as_commit_id
from tests.support.relays import PLENTY
from tests.unit.storage.export.test_export import export, files_of, manifest_of, rows_of

Rows = list[dict[str, Any]]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "export"


def _row(sequence: int, commit_id: CommitId, block: Block, *, is_own: bool) -> dict[str, Any]:
    return {
        "sequence": sequence,
        "commit_id": commit_id,
        "block_id": block.block_id,
        "size": len(block.encoded),
        "child_ids": list(block.child_ids),
        "content": block.encoded if is_own else None,
    }


def _absent(sequence: int, commit_id: CommitId, block_id: BlockId) -> dict[str, Any]:
    rest: dict[str, Any] = {"size": None, "child_ids": [], "content": None}
    return {"sequence": sequence, "commit_id": commit_id, "block_id": block_id, **rest}


def test_blocks_are_those_of_the_publications_and_grow_with_them(world: World, folder: Path) -> None:
    written = world.write("a, a <- b")
    export(world, folder, 1, blocks=True)
    written += world.write("b <- c")
    export(world, folder, 2, blocks=True)
    assert export(world, folder, 3, blocks=True).added == 0
    rows = rows_of(folder, "blocks")
    commits = rows_of(folder, "commits")
    assert len(rows) == sum(row["blocks"] for row in commits)
    sequences = {row["commit_id"]: row["sequence"] for row in commits}
    expected = [
        _row(sequences[one.commit_id], one.commit_id, block, is_own=block is one.blocks[0])
        for one in map(decode_publication, written)
        for block in one.blocks
    ]
    assert rows[-len(expected) :] == expected
    assert [row["acks"] for row in commits] == [
        list(decode_block(row["content"]).acks) for row in rows if row["content"] is not None
    ]
    manifest = manifest_of(folder)
    assert (manifest["has_blocks"], manifest["blocks_watermark"]) == (True, manifest["watermark"])
    assert len(manifest["tables"]["blocks"]) == 2


@pytest.mark.slow
def test_what_is_not_here_is_said(world: World, folder: Path) -> None:
    world.tell_story()
    harden(world)
    export(world, folder, blocks=True)
    rows, commits = rows_of(folder, "blocks"), rows_of(folder, "commits")
    by_commit: dict[bytes, Rows] = {}
    for row in rows:
        by_commit.setdefault(row["commit_id"], []).append(row)
    assert [found[0]["block_id"] for found in by_commit.values()] == [row["commit_id"] for row in commits]
    erased, damaged = (decode_publication(world.commits[name].encoded) for name in ("erased", "damaged"))
    bare_id, tree_id = (row["commit_id"] for row in commits[-2:])
    own, body = by_commit[erased.commit_id]
    assert own == _row(own["sequence"], erased.commit_id, erased.blocks[0], is_own=True)
    assert body == _absent(own["sequence"], erased.commit_id, erased.blocks[1].block_id)
    (own,) = by_commit[damaged.commit_id]
    assert own == _absent(own["sequence"], damaged.commit_id, damaged.commit_id)
    own, body = by_commit[bare_id]
    assert (own["content"] is None, body["size"]) == (False, None)
    own, body, *children = by_commit[tree_id]
    assert [row["block_id"] for row in children] == body["child_ids"] != []
    assert children == [_absent(own["sequence"], tree_id, child) for child in body["child_ids"]]


def test_blocks_wanted_later_are_caught_up_with_and_no_longer_wanted_are_gone_at_once(
    world: World, folder: Path
) -> None:
    world.write("a")
    export(world, folder, 1, keep_seconds=1000)
    before, at_first = files_of(folder), manifest_of(folder)["watermark"]
    world.write("a <- b")
    assert export(world, folder, 2, blocks=True, keep_seconds=1000).added == 1, "nothing begins anew"
    assert before < files_of(folder)
    first = manifest_of(folder)
    assert (first["blocks_from"], first["blocks_watermark"]) == (at_first, first["watermark"])
    rows = rows_of(folder, "blocks")
    assert [row["commit_id"] for row in rows if row["content"] is not None] == [
        row["commit_id"] for row in rows_of(folder, "commits")
    ]
    for at in (3, 4, 5):  # merged meanwhile: what is replaced goes, too
        world.write("a")
        export(world, folder, at, blocks=True, keep_seconds=1000, parts_max=2)
    assert (
        len(list((folder / KEPT_NAME / "blocks").iterdir()))
        > len(manifest_of(folder)["tables"]["blocks"])
        > 0
    )
    assert manifest_of(folder)["blocks_from"] == at_first
    parts = manifest_of(folder)["tables"]["commits"]
    export(world, folder, 6, keep_seconds=1000)
    assert not [path for path in folder.rglob("*.parquet") if path.parent.name == "blocks"]
    manifest = manifest_of(folder)
    assert (manifest["has_blocks"], manifest["blocks_watermark"], manifest["tables"]["commits"]) == (
        False,
        0,
        parts,
    )
    export(world, folder, 7, blocks=True)
    assert len(rows_of(folder, "blocks")) == len(rows) + 6


def test_of_what_a_relay_keeps_blocks_are_told_too(world: World, folder: Path, tmp_path: Path) -> None:
    world.write("a")
    topic = world.topic()
    assert topic.seed is not None
    keys = world.replica.writing_epoch(world.repo).keys
    secret, mark = keys.convergence_secret, b"m" * MARK_SIZE
    # By a writer that says what it likes: a commit's block with a child, which comes, and one that has none of its own.
    last, _ = encrypt_block(b"last", secret)
    inner, _ = encrypt_block(b"inner", secret, child_ids=(last.block_id,))
    odd, key = encrypt_block(
        b"odd", secret, child_ids=(inner.block_id,), acks=(as_commit_id(b"k" * 32),), mark=mark
    )
    sealed = create_publication(topic.seed, keys.read_key, key, (odd, inner, inner))
    items = [*world.publications(world.branch), sealed.encoded]
    relay = World(tmp_path / "relay", is_another=True)
    try:
        database = relay.replica.database
        with database.write() as connection:
            open_topics(database, connection, [topic.topic], Visitor(PeerId(b"p" * 32)), PLENTY, 5)
            taken = [(decode_publication(one), one) for one in items]
            store_publications(database, connection, 1, Visitor(PeerId(b"p" * 32)), taken[:1], PLENTY, 7)
        export(relay, folder, 1)
        with database.write() as connection:
            store_publications(database, connection, 1, Visitor(PeerId(b"p" * 32)), taken[1:], PLENTY, 9)
        export(relay, folder, 2, blocks=True)
        export(relay, folder, 3, blocks=True)
    finally:
        relay.close()
    sequences = [row["sequence"] for row in rows_of(folder, "relay_commits")]
    rows = rows_of(folder, "relay_blocks")
    honest = [
        _row(sequence, one.commit_id, block, is_own=block is one.blocks[0])
        for sequence, (one, _) in zip(sequences, taken[:2], strict=False)
        for block in one.blocks
    ]
    at = sequences[-1]
    assert rows == [
        *honest,
        _row(at, CommitId(odd.block_id), odd, is_own=True),
        _row(at, CommitId(odd.block_id), inner, is_own=False),
        _absent(at, CommitId(odd.block_id), last.block_id),
    ]


def test_a_publication_that_cannot_be_read_any_more_stops_no_export(
    world: World, folder: Path, tmp_path: Path
) -> None:
    # Cut, it says nothing; with a flipped bit it is told as it lies there, under the commit as which it was taken.
    world.write("a")
    relay = World(tmp_path / "relay", is_another=True)
    try:
        database = relay.replica.database
        items = [(decode_publication(one), one) for one in world.publications(world.branch)]
        with database.write() as connection:
            open_topics(database, connection, [world.topic().topic], Visitor(PeerId(b"p" * 32)), PLENTY, 5)
            store_publications(database, connection, 1, Visitor(PeerId(b"p" * 32)), items, PLENTY, 7)
            (cut, whole), (flipped, other) = items
            content = flipped.blocks[0].encoded
            at = other.index(content) + len(content) - 1
            for commit_id, encoded in (
                (cut.commit_id, whole[:-1]),
                (flipped.commit_id, other[:at] + bytes([other[at] ^ 1]) + other[at + 1 :]),
            ):
                here = relay_commits.c.commit_id == commit_id
                connection.execute(update(relay_commits).where(here).values(publication=encoded))
        assert export(relay, folder, blocks=True).relayed == 2
    finally:
        relay.close()
    assert [row["blocks"] for row in rows_of(folder, "relay_commits")] == [0, 2]
    absent, own, body = rows_of(folder, "relay_blocks")
    assert absent == _absent(absent["sequence"], cut.commit_id, cut.commit_id)
    assert (own["commit_id"], own["block_id"], body["commit_id"]) == (flipped.commit_id,) * 3
    assert decode_block(own["content"]).block_id != flipped.commit_id
    assert (body["block_id"], body["size"]) == (
        flipped.blocks[1].block_id,
        len(flipped.blocks[1].encoded),
    )


def test_damage_that_nobody_knows_of_yet_stops_no_export(world: World, folder: Path) -> None:
    # Of the commit's own block the bytes are told, so that an audit finds it; of its body nobody knows the id.
    world.write("a")
    with world.replica.database.write() as connection:
        last = connection.execute(blocks.select().order_by(blocks.c.num.desc()).limit(2)).all()
        for row in last:
            flipped = row.encoded[:-1] + bytes([row.encoded[-1] ^ 1])
            connection.execute(update(blocks).where(blocks.c.num == row.num).values(encoded=flipped))
    export(world, folder, blocks=True)
    found = [row for row in rows_of(folder, "blocks") if row["commit_id"] == world.commits["a"].commit_id]
    assert [row["block_id"] for row in found] == [world.commits["a"].commit_id]
    assert decode_block(found[0]["content"]).block_id != found[0]["block_id"]


@pytest.mark.sqlite
@pytest.mark.slow
def test_neither_reading_nor_merging_holds_more_than_a_group(
    world: World, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = list("abcdefghij")
    world.write(", ".join(names))
    monkeypatch.setattr("storage.export.blocks.SIZE_AT_ONCE", 1)
    with world.replica.database.read() as connection:
        assert {batch.num_rows for batch in block_batches(connection, 1, 99)} == {2}, "a commit at once"
    monkeypatch.setattr("storage.export.parts.HEAVY_SIZE_PER_GROUP", 2000)
    monkeypatch.setattr("storage.export.export.BODIES_PER_GROUP", 1)
    for at, count in enumerate((10, 0, 5), 1):
        world.write(", ".join(names[:count]) or "x")
        export(world, folder, at, blocks=True, parts_max=1)
    (part,) = manifest_of(folder)["tables"]["blocks"]
    file = pq.ParquetFile(folder / part["path"])
    sizes = [file.read_row_group(at).nbytes for at in range(file.num_row_groups)]
    assert len(sizes) > 4
    assert 1000 < max(sizes) < 4000
    assert file.metadata.num_rows == 2 * (3 + 10 + 10 + 1 + 5)


@pytest.mark.sqlite
def test_groups_are_as_many_rows_as_a_group_has_and_lose_none(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.write("a, b, c, d")
    monkeypatch.setattr("storage.export.blocks.SIZE_AT_ONCE", 1)
    monkeypatch.setattr("storage.export.parts.ROWS_PER_GROUP", 5)
    with world.replica.database.read() as connection:
        single = list(block_batches(connection, 1, 99))
    ((_, written),) = write_parts(tmp_path, (("blocks", batch) for batch in single))
    with pq.ParquetFile(written.path) as file:
        groups = [file.read_row_group(number) for number in range(file.num_row_groups)]
    assert [group.num_rows for group in groups] == [6, 6, 2]
    assert [row for group in groups for row in group.to_pylist()] == [
        row for batch in single for row in batch.to_pylist()
    ]


@pytest.mark.sqlite
def test_without_being_asked_for_there_are_none(world: World, folder: Path) -> None:
    export_node(world.replica.database, folder, "node", 1)
    assert manifest_of(folder)["has_blocks"] is False
    assert not (folder / "blocks").exists()
