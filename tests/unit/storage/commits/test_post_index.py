"""Costs of finding what counts for a post: the same, whatever was stated about it."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import Connection, insert, update

from protocol.ids import CommitId, UserId
from storage.commits.commits import load_rows
from storage.commits.post_index import load_changes, load_replies, load_versions
from storage.engine.database import Database
from storage.schema.schema import authors, commits
from tests.support.ids import as_commit_id
from tests.support.rows import counted_steps, put_branch, put_commits, some_id
from verifier.posts import Relation

_AUTHOR, _OTHER = UserId(bytes(32)), UserId(b"o" * 32)
_POST = 1_000_000


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    with closing(Database(tmp_path)) as database:
        yield database


def _put(
    database: Database, connection: Connection, count: int, relation: Relation, author_num: int = 1
) -> list[CommitId]:
    """Store so many commits about the post, in canonical order."""
    first = database.next_nums(connection, commits, 1)[0]
    made = [as_commit_id(some_id(first * 100_000 + number)) for number in range(count)]
    keys = [(0, 1 + number, commit_id) for number, commit_id in enumerate(made)]
    nums = put_commits(database, connection, 1, keys)
    values = {
        "relation": relation.value,
        "about": some_id(_POST),
        "author_num": author_num,
        "body_kind": "post",
    }
    connection.execute(update(commits).where(commits.c.num.in_(nums)).values(values))
    return made


def _begin(database: Database, connection: Connection) -> None:
    put_branch(connection)
    connection.execute(insert(authors).values(num=2, user=_OTHER))
    nums = put_commits(database, connection, 1, [(0, 0, some_id(_POST))])
    connection.execute(update(commits).where(commits.c.num.in_(nums)).values(body_kind="post", relation=""))


def _cost(connection: Connection) -> tuple[int, CommitId | None]:
    row = load_rows(connection, [some_id(_POST)])[some_id(_POST)]
    with counted_steps(connection) as counted:
        change = load_changes(connection, [row], {}).get(row.num)
        load_versions(connection, row, {}, 10)
        load_replies(connection, 1, some_id(_POST), 10)
    return counted[0], None if change is None or change.edit is None else change.edit.commit_id


@pytest.mark.slow
@pytest.mark.sqlite
def test_ten_thousand_edits_cost_what_ten_do(database: Database) -> None:
    with database.write() as connection:
        _begin(database, connection)
        last = _put(database, connection, 10, Relation.EDIT)[-1]
        _put(database, connection, 10, Relation.REPLY, 2)
        few, shown = _cost(connection)
        assert shown == last
        last = _put(database, connection, 10_000, Relation.EDIT)[-1]
        # Others may state as much as they like about it.
        _put(database, connection, 10_000, Relation.EDIT, 2)
        _put(database, connection, 10_000, Relation.DELETE, 2)
        _put(database, connection, 1_000, Relation.REPLY, 2)
        many, shown = _cost(connection)
        assert shown == last
        assert many <= 1.5 * few, (few, many)


@pytest.mark.sqlite
def test_void_edits_are_passed_over_at_once(database: Database) -> None:
    with database.write() as connection:
        _begin(database, connection)
        last = _put(database, connection, 10, Relation.EDIT)[-1]
        few, _ = _cost(connection)
        void = _put(database, connection, 2_000, Relation.EDIT)
        connection.execute(update(commits).where(commits.c.commit_id.in_(void)).values(is_void=True))
        many, shown = _cost(connection)
        assert shown == last
        assert many <= 1.5 * few, (few, many)


def test_versions_of_several_devices_are_told_in_order(database: Database) -> None:
    with database.write() as connection:
        _begin(database, connection)
        row = load_rows(connection, [some_id(_POST)])[some_id(_POST)]
        first = _put(database, connection, 3, Relation.EDIT)
        second = _put(database, connection, 4, Relation.EDIT, 2)
        persons = {_OTHER: _AUTHOR}
        found = [one.commit_id for one in load_versions(connection, row, persons, 100)]
        assert set(found) == {*first, *second}
        assert found[-1] == second[-1]
        change = load_changes(connection, [row], persons)[row.num]
        assert change.edit is not None
        assert change.edit.commit_id == second[-1], "it has the highest rank"
        assert [one.commit_id for one in load_versions(connection, row, {}, 100)] == first
        shown = [one.commit_id for one in load_versions(connection, row, persons, 2)]
        assert shown == found[-2:]
        end = load_rows(connection, shown[:1])[shown[0]]
        assert [one.commit_id for one in load_versions(connection, row, persons, 2, end)] == found[-4:-2]
