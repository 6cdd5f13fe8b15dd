"""Exports say what commits state of one another, what they add, what waits, and what things are called now."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from sqlalchemy import Connection, insert, select, update

from node.authoring.drafting import Draft
from node.exports.export_headers import open_headers
from protocol.crypto.keys import HashKey
from protocol.formats.commit import TanglePlace
from protocol.formats.content import Post
from protocol.ids import BlockId, CommitId
from ravel.exports.schema import MANIFEST_NAME
from storage.commits.pending import keep_rejections
from storage.engine.id_keys import unpack_nums
from storage.export import export
from storage.schema.schema import blocks, branches, commits, files
from tests.support.builders import NOW_MS, World, give
from tests.support.exports import export_node
from verifier.posts import Relation, make_place
from verifier.verify import Rejected

Rows = list[dict[str, Any]]


def rows_of(folder: Path, table: str) -> Rows:
    parts = json.loads((folder / MANIFEST_NAME).read_bytes())["tables"][table]
    return [row for part in parts for row in pq.read_table(folder / part["path"]).to_pylist()]


def write(
    world: World, text: str, acks: list[str], *places: TanglePlace, deps: tuple[CommitId, ...] = ()
) -> CommitId:
    ids = tuple(world.commits[name].commit_id for name in acks)
    draft = Draft(Post(text), ids or (world.branch.facts.root_id,), deps=deps, tangles=places)
    world.commits[text], _ = world.author.write(world.branch, draft)
    return world.commits[text].commit_id


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "export"


def test_places_in_tangles_and_dependencies_of_new_commits_are_exported(world: World, folder: Path) -> None:
    root = write(world, "a", [])
    write(world, "b", ["a"], make_place(Relation.REPLY, root))
    answer = world.commits["b"].commit_id
    export_node(world.replica.database, folder, "node", 1, headers=open_headers)
    write(
        world,
        "c",
        ["b"],
        make_place(Relation.REPLY, root, answer),
        TanglePlace("vote", root, ()),
        deps=(answer,),
    )
    export_node(world.replica.database, folder, "node", 2, headers=open_headers)

    tangles = rows_of(folder, "tangles")
    named = {item.commit_id: name for name, item in world.commits.items()}
    told = [
        (named[row["commit_id"]], row["kind"], named[row["root"]], [named[one] for one in row["previous"]])
        for row in tangles
        if row["kind"] != "group"
    ]
    assert told == [("b", "reply", "a", ["a"]), ("c", "reply", "a", ["b"]), ("c", "vote", "a", [])]
    group = [row for row in tangles if row["kind"] == "group"]
    assert {row["root"] for row in group} == {world.repo.init_id}
    assert {named.get(row["commit_id"]) for row in group} >= {*"abc"}
    sequences = [row["sequence"] for row in tangles]
    assert sequences == sorted(sequences)
    (row,) = rows_of(folder, "dependencies")
    assert (named[row["commit_id"]], row["deps"], row["negative_deps"]) == ("c", [answer], [])


def test_a_damaged_commit_has_no_rows_until_it_is_repaired_and_others_have_theirs(
    world: World, folder: Path
) -> None:
    a, b = write(world, "a", []), write(world, "b", ["a"])

    def own_block(connection: Connection, encoded: bytes | None) -> bytes:
        packed = connection.execute(select(commits.c.block_nums).where(commits.c.commit_id == a)).scalar_one()
        own = blocks.c.num == unpack_nums(packed)[0]
        kept: bytes = connection.execute(select(blocks.c.encoded).where(own)).scalar_one()
        connection.execute(update(blocks).where(own).values(encoded=encoded))
        return kept

    def export(at: int) -> list[CommitId]:
        export_node(world.replica.database, folder, "node", at, headers=open_headers)
        return [row["commit_id"] for row in rows_of(folder, "tangles") if row["commit_id"] in (a, b)]

    with world.replica.database.write() as connection:
        kept = own_block(connection, b"damage")
    assert export(1) == export(2) == [b]
    with world.replica.database.write() as connection:
        own_block(connection, kept)
    assert export(3) == export(4) == [a, b]


def test_of_very_many_damaged_commits_the_first_are_looked_at_again(
    world: World, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(export, "UNOPENED_COUNT_MAX", 2)
    write(world, "a", [])
    asked: list[list[int]] = []

    def fail(_connection: Connection, _first: int, _last: int, unopened: list[int]) -> Iterator[Any]:
        asked.append([*unopened])
        unopened[:] = [5, 6, 7]
        return iter(())

    for at in (1, 2):
        export_node(world.replica.database, folder, "node", at, headers=fail)
    assert asked == [[], [5, 6]]


def test_what_waits_and_what_was_refused_is_stated_with_its_reason(world: World, folder: Path) -> None:
    items = world.write("a, a <- b")
    replica, branch = world.copy()
    give(replica, items[1:])
    with replica.database.write() as connection:
        keep_rejections(
            replica.database, connection, branch.num, [Rejected(CommitId(BlockId(b"r" * 32)), "bad_rank", "")]
        )
    export_node(replica.database, folder, "node", 1)
    (waiting,) = rows_of(folder, "pending")
    b = world.commits["b"].commit_id
    assert (waiting["commit_id"], waiting["branch_id"]) == (b, branch.branch_id)
    assert (waiting["reason"], waiting["lacking"], waiting["arrived_at"]) == ("causes", 1, NOW_MS)
    assert waiting["size"] > 0
    assert rows_of(folder, "rejections") == [
        {"commit_id": b"r" * 32, "branch_id": branch.branch_id, "code": "bad_rank"}
    ]
    give(replica, items[:1])
    export_node(replica.database, folder, "node", 2)
    assert rows_of(folder, "pending") == []
    by_turn = sorted(rows_of(folder, "commits"), key=lambda row: row["arrival"])
    assert [row["commit_id"] for row in by_turn][-2:] == [b, world.commits["a"].commit_id], "b came first"
    assert {row["arrival"] - row["sequence"] for row in by_turn[:-2]} == {0}


def test_names_are_those_of_now_and_a_row_keeps_those_of_its_time(world: World, folder: Path) -> None:
    write(world, "a", [])
    export_node(world.replica.database, folder, "node", 1)
    with world.replica.database.write() as connection:
        connection.execute(update(branches).where(branches.c.num == world.branch.num).values(name="hall"))
    export_node(world.replica.database, folder, "node", 2)
    names = {row["branch_id"]: (row["repo_name"], row["branch_name"]) for row in rows_of(folder, "names")}
    assert names == {world.repo.repo_id: ("world", "root"), world.branch.branch_id: ("world", "hall")}
    assert {row["branch_name"] for row in rows_of(folder, "commits")} == {"root", "main"}


def test_names_of_repos_are_not_told_beside_pseudonyms_nor_those_of_files_without_bodies(
    world: World, folder: Path
) -> None:
    a = write(world, "a", [])
    with world.replica.database.write() as connection:
        num = connection.execute(select(commits.c.num).where(commits.c.commit_id == a)).scalar_one()
        values = {"branch_num": world.branch.num, "commit_num": num, "object_key": b""}
        rows = [
            values | {"num": 1, "object_id": b"f" * 32, "name": "cat.jpg", "size": 700},
            values | {"num": 2, "object_id": b"g" * 32, "name": "", "size": None},
        ]
        connection.execute(insert(files), rows)
    key = HashKey(b"k" * 32)
    export_node(world.replica.database, folder, "node", 1, pseudonym_key=key)
    assert {row["repo_name"] for row in rows_of(folder, "names")} == {None}
    assert [(row["name"], row["size"]) for row in rows_of(folder, "files")] == [(None, 700), (None, None)]
    hidden = [row["object_id"] for row in rows_of(folder, "files")]
    assert len({*hidden, b"f" * 32, b"g" * 32}) == 4, "nobody finds by a file who added it"
    by_id = {row["commit_id"]: (row["files"], row["file_bytes"]) for row in rows_of(folder, "commits")}
    assert by_id.pop(a) == (2, 700)
    assert {*by_id.values()} == {(0, 0)}
    export_node(world.replica.database, folder, "node", 2, bodies=lambda *_: iter(()))
    assert [(row["name"], row["object_id"][:1]) for row in rows_of(folder, "files")] == [
        ("cat.jpg", b"f"),
        (None, b"g"),
    ]
