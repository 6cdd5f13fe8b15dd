"""Lists of documents: what was only asked for in a fork is not in them, and costs no walk over the fork's commits."""

from pathlib import Path

import pytest
from sqlalchemy import event, insert, update

from protocol.formats.body import kind_name
from protocol.formats.document_kinds import SetEdit
from storage.commits.document_reading import is_listed
from storage.schema.document_schema import documents
from storage.schema.schema import commits
from tests.support.nodes import open_nodes


@pytest.mark.sqlite  # it reads SQLite's plan of the query
def test_a_name_that_was_only_asked_for_is_looked_up_by_an_index(tmp_path: Path) -> None:
    asked: list[tuple[str, tuple[object, ...]]] = []

    def note(
        _connection: object, _cursor: object, statement: str, parameters: tuple[object, ...], *_: object
    ) -> None:
        asked.append((statement, parameters))

    with open_nodes(tmp_path, "alice") as (alice,):
        alice.create_repo()
        with alice.replica.database.read() as connection:
            event.listen(connection, "before_cursor_execute", note)
            assert not is_listed(connection, [1], "set", "asked")
            event.remove(connection, "before_cursor_execute", note)
            [(statement, parameters)] = asked
            rows = connection.exec_driver_sql(" ".join(("EXPLAIN QUERY PLAN", statement)), parameters)
            plan = [str(row[-1]) for row in rows]
    assert any("COVERING INDEX commits_documents (branch_num=? AND document=?)" in step for step in plan), (
        plan
    )


@pytest.mark.parametrize("name", ["", "named"])
def test_a_document_of_a_fork_is_listed_once_a_commit_says_something_of_it(tmp_path: Path, name: str) -> None:
    with open_nodes(tmp_path, "alice") as (alice,):
        alice.create_repo()
        branch = alice.branch()
        alice.write(branch, "a post")
        row = {"branch_num": branch.num, "kind": "set", "name": name, "depth": 1, "origins": b""}
        row |= {"is_stale": False, "has_snapshots": False, "made_upto": 0, "entry_count": 0, "changed_num": 0}
        with alice.replica.database.write() as connection:
            connection.execute(insert(documents).values(row))
            assert not is_listed(connection, [branch.num], "set", name)
            said = update(commits).where(commits.c.branch_num == branch.num)
            connection.execute(said.values(body_kind=kind_name(SetEdit), document=name))
            assert is_listed(connection, [branch.num], "set", name)
