"""Pending commits, as stored: causes are crossed off in bounded steps."""

from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path

from sqlalchemy import Engine, event, insert, select

from protocol.ids import BlockId, CommitId, UserId
from storage.commits.pending import PendingPublication, keep_pending
from storage.commits.pending_release import (
    ReleasedCommit,
    find_settled,
    load_ready,
    mark_ready,
    pop_released,
    release_if_accepted,
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


@contextmanager
def _statements() -> Iterator[list[str]]:
    """Collect all statements of stores that are opened meanwhile."""
    heard: list[str] = []

    def hear(_connection: object, _cursor: object, statement: str, *_rest: object) -> None:
        heard.append(statement)

    event.listen(Engine, "before_cursor_execute", hear)
    try:
        yield heard
    finally:
        event.remove(Engine, "before_cursor_execute", hear)


def _waiting(count: int) -> list[PendingPublication]:
    ids = [CommitId(BlockId(sha256(bytes([count, number])).digest())) for number in range(2 * count)]
    return [
        PendingPublication(one, b"\x90" * 9, (cause,), author=UserId(bytes([number]) * 32))
        for number, (one, cause) in enumerate(zip(ids[:count], ids[count:], strict=True))
    ]


def test_a_batch_is_kept_and_released_by_as_many_statements_as_one_commit(tmp_path: Path) -> None:
    counts: list[int] = []
    with _statements() as heard:
        database = Database(tmp_path)
        for batch in (_waiting(1), _waiting(2), _waiting(60)):
            causes = [id_key(cause) for item in batch for cause in item.causes]
            heard.clear()
            with database.write() as connection:
                assert len(keep_pending(database, connection, 1, batch).ids) == len(batch)
                woken, looked_at = release_if_accepted(connection, causes, 1000)
                assert (len(woken), looked_at) == (len(batch), len(batch))
                mark_ready(connection, woken)
                assert [one.num for one in load_ready(connection, 1000)] == sorted(one.num for one in woken)
                assert len(pop_released(connection, woken)) == len(batch)
                assert connection.execute(select(pending_causes.c.id_key)).first() is None
            counts.append(len(heard))
        database.close()
    _first, few, many = counts  # the first also reads how far row numbers have gone
    assert 10 < many <= few
