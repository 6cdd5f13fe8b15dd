"""The table of files: what a list costs, and which files there are whatever came first."""

from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event, select

from node.authoring.drafting import Draft
from node.care.fsck import check_store
from node.ingest.replica import Replica
from protocol.crypto.keys import BlockKey
from protocol.formats.block import Reference
from protocol.formats.content import FileEntry, Files
from protocol.formats.publication import decode_publication
from protocol.ids import CommitId
from storage.blobs.files import load_files
from storage.repos.deletion import forget_repo
from storage.repos.repos import Branch
from storage.schema.schema import awaited_adders
from tests.support.builders import STORE_KEY, World, count_accepted, give
from tests.support.ids import as_commit_id, as_object_id
from tests.support.nodes import open_nodes


@pytest.mark.sqlite  # it reads SQLite's plan of the query
def test_a_window_of_files_is_read_in_order_without_sorting(tmp_path: Path) -> None:
    asked: list[tuple[str, dict[str, Any]]] = []

    def note(
        _connection: object, _cursor: object, statement: str, parameters: dict[str, Any], *_: object
    ) -> None:
        asked.append((statement, parameters))

    with open_nodes(tmp_path, "alice") as (alice,):
        alice.create_repo()
        with alice.replica.database.read() as connection:
            event.listen(connection, "before_cursor_execute", note)
            load_files(connection, alice.branch().num, 0, 100)
            event.remove(connection, "before_cursor_execute", note)
            [(statement, parameters)] = asked
            rows = connection.exec_driver_sql(" ".join(("EXPLAIN QUERY PLAN", statement)), parameters)
            plan = [str(row[-1]) for row in rows]
    assert any("files_branch (branch_num=? AND num>?)" in step for step in plan)
    assert not any("ORDER BY" in step for step in plan), plan


_FILE, _OTHER = as_object_id(b"f" * 32), as_object_id(b"o" * 32)


def _add(world: World, branch: Branch, name: str, acks: tuple[CommitId, ...]) -> bytes:
    """Write a commit that adds two files."""
    files = tuple(Reference(one, BlockKey(b"k" * 32)) for one in (_FILE, _OTHER))
    body = Files((FileEntry(f"{name} 1", 1), FileEntry(f"{name} 2", 1)))
    return world.author.write(branch, Draft(body, acks, files=files))[0].encoded


def _remove(world: World, branch: Branch, adder: bytes, acks: tuple[CommitId, ...]) -> bytes:
    """Write a commit that removes one of them, and names who added it without acking it."""
    deps = (decode_publication(adder).commit_id,)
    return world.author.write(branch, Draft(Files(()), acks, deps=deps, removed_files=(_FILE,)))[0].encoded


def _names(replica: Replica, branch: Branch) -> list[str]:
    with replica.database.read() as connection:
        return [row.name for row in load_files(connection, branch.num, 0, 100)]


@pytest.mark.parametrize("is_late", [False, True])
def test_a_file_is_removed_though_it_comes_after_what_removes_it(world: World, *, is_late: bool) -> None:
    # Who added it is the remover's word: no cause, and so it may come later.
    acks = (world.branch.facts.root_id,)
    items = [_add(world, world.branch, "a", acks)]
    items.append(_remove(world, world.branch, items[0], acks))
    items.append(_add(world, world.branch, "b", acks))
    expected = _names(world.replica, world.branch)
    assert expected == ["a 2", "b 1", "b 2"]
    replica, branch = world.copy()
    for item in [items[1], items[2], items[0]] if is_late else items:
        assert count_accepted(give(replica, [item])) == 1
    assert sorted(_names(replica, branch)) == expected
    assert check_store(replica.database.folder, STORE_KEY).problems == []


@pytest.mark.parametrize("is_late", [False, True])
def test_no_file_of_another_branch_is_removed_whichever_comes_first(world: World, *, is_late: bool) -> None:
    side = world.author.founding.create_branch(world.repo, "side")[0]
    added = _add(world, world.branch, "a", (world.branch.facts.root_id,))
    removed = _remove(world, side, added, (side.facts.root_id,))
    replica, branch = world.copy()
    give(replica, world.publications(side)[:1])
    give(replica, [removed, added] if is_late else [added, removed])
    assert _names(replica, branch) == _names(world.replica, world.branch) == ["a 1", "a 2"]
    assert check_store(replica.database.folder, STORE_KEY).problems == []


def test_commits_that_are_named_may_begin_alike_and_never_come(world: World) -> None:
    deps = tuple(as_commit_id(b"begin so" + bytes([number]) * 24) for number in range(3))
    draft = Draft(Files(()), deps=deps, removed_files=(_FILE, _OTHER))
    item = world.author.write(world.branch, draft)[0].encoded
    replica, _ = world.copy()
    assert count_accepted(give(replica, [item])) == 1
    assert check_store(replica.database.folder, STORE_KEY).problems == []
    with replica.change() as change:
        forget_repo(change.connection, 1)
    with replica.database.read() as connection:
        assert connection.execute(select(awaited_adders)).all() == []
