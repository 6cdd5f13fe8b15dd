"""Pending commits, as stored: causes are crossed off in bounded steps."""

from pathlib import Path

from sqlalchemy import insert, select

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
