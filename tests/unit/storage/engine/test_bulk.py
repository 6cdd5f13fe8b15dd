"""Statements as text: what they read is what SQLAlchemy reads by the same statement."""

from pathlib import Path

import pytest
from sqlalchemy import bindparam, event, select
from sqlalchemy.exc import DBAPIError

from storage.engine.bulk import insert_rows, select_in, select_rows
from storage.engine.errors import StorageError
from storage.schema.schema import authors, commits
from tests.support.builders import World

_BY_RANK = (
    select(commits.c.rank)
    .where(commits.c.branch_num == bindparam("branch"), commits.c.rank.in_(bindparam("keys", expanding=True)))
    .where(commits.c.rank < bindparam("end"))
    .order_by(commits.c.rank)
    .limit(100)
)
_FROM = select(commits.c.rank).where(commits.c.rank >= bindparam("low")).order_by(commits.c.rank).limit(2)


@pytest.mark.parametrize("count", [1, 2, 3, 5, 64])
def test_any_number_of_keys_finds_its_rows_and_no_others(tmp_path: Path, count: int) -> None:
    # Keys stand between other parameters, and a statement has values of its own.
    world = World(tmp_path)
    world.write("a, a <- b, b <- c, c <- d, d <- e")
    keys = list(range(1, count + 1))
    given = {"branch": world.branch.num, "end": 5}
    with world.replica.database.read() as connection:
        found = select_in(connection, _BY_RANK, keys, **given).scalars()
        assert found == connection.execute(_BY_RANK, {"keys": keys, **given}).scalars().all()
        assert found == [rank for rank in keys if rank < 5]
        assert select_rows(connection, _FROM, low=2).scalars() == [2, 3]
    world.close()


def test_an_error_of_the_driver_is_one_of_the_store(tmp_path: Path) -> None:
    world = World(tmp_path)
    rows = [(1000, b"a" * 32), (1000, b"b" * 32)]
    with pytest.raises(StorageError) as caught, world.replica.database.write() as connection:
        insert_rows(connection, authors, ("num", "user"), rows)
    assert isinstance(caught.value.__cause__, DBAPIError)
    with world.replica.database.read() as connection:
        assert b"a" * 32 not in connection.execute(select(authors.c.user)).scalars().all()
    with (
        world.replica.database.write() as connection
    ):  # the transaction is undone, of which SQLAlchemy knows nothing
        insert_rows(connection, authors, ("num", "user"), rows[1:])
    with world.replica.database.read() as connection:
        assert b"b" * 32 in connection.execute(select(authors.c.user)).scalars().all()
    world.close()


def test_who_listens_to_statements_hears_of_all(tmp_path: Path) -> None:
    heard: list[str] = []

    def note(_connection: object, _cursor: object, statement: str, *_: object) -> None:
        heard.append(statement)

    world = World(tmp_path)
    with world.replica.database.read() as connection:
        unheard = list(select_rows(connection, _FROM, low=0))
        event.listen(connection, "before_cursor_execute", note)
        assert list(select_rows(connection, _FROM, low=0)) == unheard
        event.remove(connection, "before_cursor_execute", note)
    assert len(heard) == 1
    world.close()
