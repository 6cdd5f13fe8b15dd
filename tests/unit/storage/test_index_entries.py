"""A commit adds one index entry at a random place, of its own id: what it writes grows slowly with the store."""

from contextlib import closing
from itertools import pairwise
from pathlib import Path
from typing import Final

import pytest
from sqlalchemy import Connection

from node.authoring.drafting import Draft
from protocol.formats.content import Post
from protocol.ids import PeerId
from storage.commits.blocks import SHARED_SIZE_MIN
from storage.engine.database import Database
from storage.relay.quotas import Visitor
from tests.support.builders import World
from tests.support.relays import fill_relay

pytestmark = pytest.mark.sqlite  # its file tells what an index holds

_TABLE_ROWS_MIN: Final = 50
"""Of fewer entries nobody can tell whether they stand in the order of rows."""


def _count_random_entries(connection: Connection) -> dict[str, int]:
    """Count the entries of each index whose order is not that of the rows: a third of them stand before an older row's."""
    indexes = connection.exec_driver_sql(
        "SELECT name, tbl_name, sql FROM sqlite_master WHERE type = 'index'"
        " AND tbl_name IN (SELECT name FROM pragma_table_list WHERE NOT wr)"  # others have no order of rows
    )
    found: dict[str, int] = {}
    for name, table, statement in indexes.all():
        columns = ", ".join(row[2] for row in connection.exec_driver_sql(f"PRAGMA index_info({name})"))
        condition = statement.partition(" WHERE ")[2] if statement else ""
        query = f"SELECT rowid FROM {table} INDEXED BY {name} WHERE {condition or True} ORDER BY {columns}"  # noqa: S608  # ours
        nums = list(connection.exec_driver_sql(query).scalars())
        backward = sum(after < before for before, after in pairwise(nums))
        if len(nums) >= _TABLE_ROWS_MIN and backward > len(nums) / 3:
            found[name] = len(nums)
    return found


def _write_posts(world: World, count: int, size: int = 0) -> None:
    world.author.write_many(world.branch, [Draft(Post(f"{number} {'-' * size}")) for number in range(count)])


@pytest.mark.parametrize("count", [100, 200])
def test_an_accepted_commit_adds_one_random_entry(tmp_path: Path, count: int) -> None:
    with closing(World(tmp_path)) as world:
        _write_posts(world, count)
        with world.replica.database.read() as connection:
            entries = _count_random_entries(connection)
            total = connection.exec_driver_sql("SELECT count(*) FROM commits").scalar_one()
    assert entries == {"commits_id_key": total}


def test_a_large_body_adds_another_by_which_equal_ones_are_found(tmp_path: Path) -> None:
    with closing(World(tmp_path)) as world:
        _write_posts(world, 100, SHARED_SIZE_MIN)
        with world.replica.database.read() as connection:
            entries = _count_random_entries(connection)
    assert entries["blocks_id_key"] == 100


@pytest.mark.parametrize("count", [100, 200])
def test_a_publication_that_a_relay_keeps_adds_one_random_entry(tmp_path: Path, count: int) -> None:
    (tmp_path / "relay").mkdir()
    with closing(World(tmp_path / "world")) as world, closing(Database(tmp_path / "relay")) as database:
        _write_posts(world, count)
        kept = fill_relay(database, world, Visitor(PeerId(b"F" * 32), is_known=True))
        with database.read() as connection:
            entries = _count_random_entries(connection)
    assert entries == {"relay_commits_id_key": kept}
