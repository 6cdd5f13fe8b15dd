"""Statements as text: what they read is what SQLAlchemy reads by the same statement."""

from pathlib import Path

import pytest
from sqlalchemy import bindparam, select

from storage.engine.bulk import select_in, select_rows
from storage.schema.schema import commits
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
    """Keys stand between other parameters, and a statement has values of its own."""
    world = World(tmp_path)
    world.write("a, a <- b, b <- c, c <- d, d <- e")
    keys = list(range(1, count + 1))
    given = {"branch": world.branch.num, "end": 5}
    with world.replica.database.read() as connection:
        found = select_in(connection, _BY_RANK, keys, **given).scalars().all()
        assert found == connection.execute(_BY_RANK, {"keys": keys, **given}).scalars().all()
        assert found == [rank for rank in keys if rank < 5]
        assert select_rows(connection, _FROM, low=2).scalars().all() == [2, 3]
    world.close()
