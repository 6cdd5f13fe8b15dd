"""What is damaged and asked of peers, and numbers that were given: both outlast the renaming of their tables."""

from pathlib import Path

import pytest
from sqlalchemy import insert, select, text

from storage.commits.damaged import DamagedCount, count_damaged
from storage.engine.database import Database
from storage.engine.revisions import create, upgrade
from storage.schema.schema import commits, damaged_blocks, damaged_commits, sequences


@pytest.mark.slow
def test_what_was_damaged_in_an_older_store_is_asked_for_on_and_no_number_is_given_twice(
    tmp_path: Path,
) -> None:
    database = Database(tmp_path)
    block_id = b"b" * 32
    with database.write() as connection:
        commits.metadata.drop_all(connection)
        connection.execute(text("DROP TABLE alembic_version"))
        create(connection, "r0021")
        connection.execute(text("INSERT INTO awaited_commits (commit_num, topic_num) VALUES (3, 7), (5, 7)"))
        connection.execute(text("INSERT INTO awaited_blocks (block_id) VALUES (:id)"), {"id": block_id})
        connection.execute(text("INSERT INTO numbers (name, last) VALUES ('relay_commits', 41)"))
        upgrade(connection)
        assert count_damaged(connection) == DamagedCount(2, 1)
        found = connection.execute(select(damaged_commits).order_by(damaged_commits.c.commit_num))
        assert [tuple(row) for row in found] == [(3, 7), (5, 7)]
        assert connection.execute(select(damaged_blocks.c.block_id)).scalars().all() == [block_id]
        assert [tuple(row) for row in connection.execute(select(sequences))] == [("relay_commits", 41)]
        connection.execute(insert(sequences).values(name="commits", last=9))
        assert database.next_nums(connection, commits, 1) == range(10, 11)
    database.close()
