"""Commits that are found by id: in the branches that are asked for alone, at a cost that follows what is found."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Final

import pytest
from sqlalchemy import Connection, insert

from protocol.ids import AnyId
from storage.commits.lookup import find_commits
from storage.engine.database import Database
from storage.engine.id_keys import id_key
from storage.schema.schema import pending, rejections
from tests.support.rows import counted_steps, put_branch, put_commits, some_id

_HALVES: Final = [
    (AnyId(first + bytes(31)), AnyId(last + b"\xff" * 31))
    for first, last in ((b"\0", b"\x7f"), (b"\x80", b"\xff"))
]
"""All ids. No range that is looked for has ids of both: the first character of a prefix says five bits."""
_FEW_STEPS: Final = 300
"""Of SQLite's machine: three look-ups of one row each take about half."""


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    with closing(Database(tmp_path)) as database:
        yield database


def _put(database: Database, connection: Connection, branch_num: int, numbers: range) -> None:
    """Store commits of a branch: a third accepted, a third rejected, a third pending."""
    ids = [some_id(number) for number in numbers]
    put_commits(database, connection, branch_num, [(0, 1, one) for one in ids[::3]])
    row = {"branch_num": branch_num, "code": "bad_author", "detail": ""}
    connection.execute(insert(rejections), [{**row, "commit_id": one} for one in ids[1::3]])
    row = {"branch_num": branch_num, "topic_num": branch_num, "author_key": 0, "reason": "causes"}
    row |= {"size": 1, "cause_count": 1, "lacking": 1}
    rows = [{**row, "id_key": id_key(one), "commit_id": one} for one in ids[2::3]]
    connection.execute(insert(pending), rows)


def test_commits_are_found_in_the_branches_that_are_asked_for(database: Database) -> None:
    with database.write() as connection:
        first, second = put_branch(connection), put_branch(connection)
        _put(database, connection, first, range(3))
        _put(database, connection, second, range(3, 6))
        for nums, numbers in (({first}, range(3)), ({second}, range(3, 6)), (None, range(6)), (set(), ())):
            lists = [find_commits(connection, low, high, nums) for low, high in _HALVES]
            found = {one.commit_id: one.state for some in lists for one in some}
            states = ("accepted", "rejected", "pending")
            assert found == {some_id(number): states[number % 3] for number in numbers}


@pytest.mark.sqlite  # it counts the steps of SQLite's machine
def test_a_commit_is_found_without_reading_its_branch(database: Database) -> None:
    with database.write() as connection:
        branch = put_branch(connection)
        _put(database, connection, branch, range(600))
    with database.read() as connection:
        for number in (300, 301, 302):
            wanted = some_id(number)
            with counted_steps(connection) as steps:
                [found] = find_commits(connection, AnyId(wanted), AnyId(wanted), {branch})
            assert found.commit_id == wanted
            assert steps[0] < _FEW_STEPS
