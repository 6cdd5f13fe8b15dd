"""A disk that is full: a write fails whole and says why, reads go on, and so do writes once there is room."""

from pathlib import Path

import pytest
from sqlalchemy import insert, select, text

from storage.engine.database import Database, StorageError
from storage.schema.schema import authors
from tests.support.nodes import Node

_TABLES = ("authors", "blocks", "commits")
_REFUSE = """
CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    RAISE EXCEPTION 'could not extend file: the disk is full' USING ERRCODE = 'disk_full';
END $$
"""
"""As a PostgreSQL server answers whose disk is full."""


def _fill(database: Database) -> None:
    """Allow no page more than there are."""
    with database.write() as connection:
        if connection.dialect.name == "postgresql":
            connection.exec_driver_sql(_REFUSE)
            for table in _TABLES:
                made = f"CREATE TRIGGER full_disk BEFORE INSERT ON {table} EXECUTE FUNCTION refuse()"
                connection.exec_driver_sql(made)
            return
        pages = connection.execute(text("PRAGMA page_count")).scalar_one()
        connection.execute(text(f"PRAGMA max_page_count={pages}"))


def _make_room(database: Database) -> None:
    with database.write() as connection:
        if connection.dialect.name == "postgresql":
            connection.exec_driver_sql("DROP FUNCTION refuse CASCADE")
        else:
            connection.execute(text("PRAGMA max_page_count=1000000"))


def test_a_write_fails_whole_says_why_and_succeeds_later(tmp_path: Path) -> None:
    database = Database(tmp_path)
    rows = [{"num": num, "user": num.to_bytes(32)} for num in range(1, 2000)]
    with database.write() as connection:
        connection.execute(insert(authors), rows[:1])
    assert database.fault == ""
    _fill(database)
    for _ in range(2):
        with pytest.raises(StorageError, match="full"), database.write() as connection:
            connection.execute(insert(authors), rows[1:])
        assert "full" in database.fault
        with database.read() as connection:
            assert connection.execute(select(authors.c.num)).scalars().all() == [1]
    database.probe()
    assert database.fault == "", "what needs no room can be written"
    _make_room(database)
    with database.write() as connection:
        connection.execute(insert(authors), rows[1:])
    database.close()
    again = Database(tmp_path)
    with again.read() as connection:
        assert len(connection.execute(select(authors.c.num)).all()) == len(rows)
    again.close()


def test_a_node_goes_on_where_it_stopped(tmp_path: Path) -> None:
    node = Node(tmp_path, "alice")
    _, branch = node.create_repo()
    node.write(branch, "before")
    _fill(node.replica.database)
    kept = 0
    with pytest.raises(StorageError, match="full"):  # the last pages have room for some
        for _ in range(1000):
            node.write(branch, "x" * 1000)
            kept += 1
    _make_room(node.replica.database)
    before = node.digest(branch)
    assert before[1] == kept + 2, "all that was acknowledged and the branch's root"
    node.replica.close()
    node.open()
    assert node.digest(node.branch()) == before
    node.write(node.branch(), "after")
    assert node.digest(node.branch())[1] == before[1] + 1
    node.replica.close()
