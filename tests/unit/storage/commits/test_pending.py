"""What waits, as stored: rows of an older Ravel are carried over, and causes are crossed off in bounded steps."""

from pathlib import Path

import pytest
from sqlalchemy import insert, select, text

from storage.commits.pending_release import (
    ReleasedCommit,
    find_settled,
    load_ready,
    mark_ready,
    pop_released,
    settle_causes,
)
from storage.engine.database import Database
from storage.engine.id_keys import id_key
from storage.engine.revisions import create, upgrade
from storage.schema.schema import pending, pending_causes, pending_publications, rejections


def _keep(database: Database, num: int, causes: range) -> None:
    key = 1000 + num
    with database.write() as connection:
        connection.execute(
            insert(pending).values(
                num=num,
                branch_num=1,
                topic_num=1,
                id_key=key,
                commit_id=num.to_bytes(32, "big"),
                author_key=0,
                reason="causes",
                size=1,
                cause_count=len(causes),
                lacking=len(causes),
            )
        )
        connection.execute(insert(pending_publications).values(pending_num=num, publication=b"p"))
        rows = [{"id_key": cause, "pending_num": num} for cause in causes]
        connection.execute(insert(pending_causes), rows)


def test_causes_are_crossed_off_in_bounded_steps_and_wake_what_lacks_none(tmp_path: Path) -> None:
    database = Database(tmp_path)
    for num in range(1, 5):
        _keep(database, num, range(num))  # the first lacks cause 0, the last 0 to 3
    with database.write() as connection:
        step = settle_causes(connection, {0: False, 1: False}, 3)
        assert (step.released, step.left, step.count) == (
            [ReleasedCommit(1, 1001, 1, False)],
            {0: False, 1: False},
            3,
        )
        step = settle_causes(connection, step.left, 10)
        assert ([one.num for one in step.released], step.left, step.count) == ([2], {}, 4)
        doomed = settle_causes(connection, {2: True}, 10)
        assert doomed.released == [ReleasedCommit(3, 1003, 1, True), ReleasedCommit(4, 1004, 1, True)]
        mark_ready(connection, doomed.released)
        assert load_ready(connection, 1) == [ReleasedCommit(3, 1003, 1, False)], "it lacks nothing by now"
        assert load_ready(connection, 2)[1] == ReleasedCommit(4, 1004, 1, True)
        assert pop_released(connection, doomed.released) == [(1, b"p"), (1, b"p")]
        assert [row[0] for row in connection.execute(select(pending_causes.c.id_key))] == [3]
    database.close()


def test_causes_that_were_rejected_before_a_crash_are_found(tmp_path: Path) -> None:
    database = Database(tmp_path)
    bad = b"r" * 32
    _keep(database, 1, range(id_key(bad), id_key(bad) + 2))
    with database.write() as connection:
        connection.execute(
            insert(rejections).values(num=1, branch_num=1, commit_id=bad, code="bad_body", detail="")
        )
        assert find_settled(connection) == {id_key(bad): True}
    database.close()


@pytest.mark.slow
def test_what_waited_in_an_older_store_waits_on(tmp_path: Path) -> None:
    database = Database(tmp_path)
    causes = [b"a" * 32, b"a" * 31 + b"b", b"c" * 32]  # two with one key
    with database.write() as connection:
        metadata = pending.metadata
        metadata.drop_all(connection)
        connection.execute(text("DROP TABLE alembic_version"))
        create(connection, "r0020")
        old = "INSERT INTO pending (num, branch_num, topic_num, commit_id, publication, reason) VALUES "
        rows = [(1, b"1" * 32, b"one", "causes"), (2, b"2" * 32, b"second", "version")]
        for num, commit_id, publication, reason in rows:
            values = {"num": num, "id": commit_id, "publication": publication, "reason": reason}
            connection.execute(text(old + "(:num, 5, 6, :id, :publication, :reason)"), values)
        for cause in causes:
            connection.execute(text("INSERT INTO pending_causes VALUES (:cause, 1)"), {"cause": cause})
        upgrade(connection)
        columns = ("num", "topic_num", "id_key", "reason", "size", "cause_count", "lacking")
        query = select(*(pending.c[name] for name in columns)).order_by(pending.c.num)
        assert [tuple(row) for row in connection.execute(query)] == [
            (1, 6, id_key(b"1" * 32), "causes", 3, 2, 2),
            (2, 6, id_key(b"2" * 32), "version", 6, 0, 0),
        ]
        kept = connection.execute(select(pending_publications).order_by(pending_publications.c.pending_num))
        assert [tuple(row) for row in kept] == [(1, b"one"), (2, b"second")]
        found = connection.execute(select(pending_causes)).all()
        assert {tuple(row) for row in found} == {(id_key(causes[0]), 1), (id_key(causes[2]), 1)}
    database.close()
