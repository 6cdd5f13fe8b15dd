"""Rows of documents: statements of a write, and the indexes by which they find rows."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from sqlalchemy import Engine, Table, delete, event, select

from node.authoring.drafting import Draft
from node.care.fsck import check_store
from protocol.formats.document_kinds import JSON
from protocol.ids import CommitId
from storage.commits.document_counters import load_increments
from storage.commits.document_rows import flip_operations, forget_operations
from storage.schema.document_schema import (
    OF_DOCUMENTS,
    document_increments,
    document_operations,
    document_tips,
    documents,
)
from storage.schema.schema import commits
from tests.support.builders import STORE_KEY
from tests.support.nodes import Node, open_nodes

_TABLES = [table.name for table in OF_DOCUMENTS]


@contextmanager
def _heard() -> Iterator[dict[str, object]]:
    """Hear statements, with the parameters of each."""
    heard: dict[str, object] = {}

    def hear(_: object, __: object, statement: str, parameters: object, *___: object) -> None:
        heard[statement] = parameters

    event.listen(Engine, "before_cursor_execute", hear)
    yield heard
    event.remove(Engine, "before_cursor_execute", hear)


def _add(alice: Node, *replaces: CommitId) -> CommitId:
    body = JSON.edit.make({"\0n": '{"add":1}'}, (), {"\0n": replaces})
    [written], _ = alice.author.write_many(alice.branch(), [Draft(body)])
    return written.commit_id


def test_a_commit_has_one_row_for_what_it_says_and_what_it_replaces(tmp_path: Path) -> None:
    with open_nodes(tmp_path, "alice") as (alice,):
        alice.create_repo()
        first = _add(alice)
        with _heard() as heard:
            _add(alice, first)
    inserts = [one.split()[2] for one in heard if one.startswith("INSERT INTO document")]
    assert not [one for one in heard if one.startswith("SELECT commits.commit_id, commits.num")]
    assert sorted(inserts) == ["document_increments", "document_operations", "document_tips"]


@pytest.mark.sqlite
@pytest.mark.parametrize("table", [document_operations, document_increments, document_tips])
def test_a_check_finds_rows_of_a_document_that_are_gone(tmp_path: Path, table: Table) -> None:
    with open_nodes(tmp_path, "alice") as (alice,):
        alice.create_repo()
        _add(alice)
        folder, database = alice.replica.database.folder, alice.replica.database
        assert check_store(folder, STORE_KEY).problems == []
        with database.write() as connection:
            connection.execute(delete(table))
        assert [one.kind for one in check_store(folder, STORE_KEY).problems] == ["document"]


@pytest.mark.sqlite  # it reads SQLite's plans
def test_rows_are_found_by_indexes_alone(tmp_path: Path) -> None:
    with open_nodes(tmp_path, "alice") as (alice,):
        alice.create_repo()
        first = _add(alice)
        with _heard() as heard:
            _add(alice, first)
            database = alice.replica.database
            with database.write() as connection:
                query = select(commits.c.num).where(commits.c.body_kind == JSON.name)
                nums = list(connection.execute(query).scalars())
                doc_num = connection.execute(select(documents.c.num)).scalar_one()
                assert len(load_increments(connection, doc_num, b"\0n", 1) or ()) == 1
                assert load_increments(connection, doc_num, b"\0n", 0) is None
                flip_operations(database, connection, nums, is_void=True)
                forget_operations(connection, nums)
        with database.read() as connection:
            plans = [
                str(row[-1])
                for statement, parameters in heard.items()
                if any(table in statement for table in _TABLES) and not statement.startswith("INSERT")
                for row in connection.exec_driver_sql(
                    f"EXPLAIN QUERY PLAN {statement}",
                    tuple(parameters[0] if isinstance(parameters, list) else parameters),  # type: ignore[arg-type]
                )
            ]
    assert any("document_operations" in step for step in plans)
    assert not [step for step in plans if step.startswith("SCAN document")]
    assert not [step for step in plans if "operations" in step and step.endswith("(doc_num=?)")]
