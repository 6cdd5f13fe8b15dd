"""Commits as rows alone, for what asks only where they stand: no blocks, no signatures, nothing that could be opened."""

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from sqlalchemy import Connection, func, insert, select, update

from protocol.ids import CommitId
from storage.commits.position_index import OrderKey, count_changes
from storage.engine.database import Database
from storage.engine.id_keys import id_key
from storage.schema.schema import authors, branches, commits, repos
from tests.support.ids import as_commit_id

_OFTEN = 10
"""Steps of SQLite's machine between two looks."""


def some_id(number: int) -> CommitId:
    """An id that follows from a number, and stands anywhere."""
    return as_commit_id(hashlib.blake2b(number.to_bytes(8, "big"), digest_size=32).digest())


def put_branch(connection: Connection) -> int:
    """Another branch without anything, of a repo without anything; its number."""
    num = int(connection.execute(select(func.coalesce(func.max(branches.c.num), 0))).scalar_one()) + 1
    name = {"num": num, "repo_id": some_id(num), "name": str(num), "epoch_num": 0}
    connection.execute(insert(repos).values(init_id=bytes(32), init_key=bytes(32), **name))
    row = {"num": num, "repo_num": num, "branch_id": some_id(-num % 2**63), "name": str(num)}
    connection.execute(insert(branches).values(root_id=bytes(32), commit_count=0, **row))
    if connection.execute(select(authors.c.num)).first() is None:
        connection.execute(insert(authors).values(num=1, user=bytes(32)))
    return num


def put_commits(
    database: Database, connection: Connection, branch_num: int, keys: Sequence[OrderKey]
) -> list[int]:
    """Store commits that stand at these keys, in one go, and count them; gives their numbers."""
    nums = database.next_nums(connection, commits, len(keys))
    rows = [
        {
            "num": num,
            "id_key": id_key(commit_id),
            "commit_id": commit_id,
            "branch_num": branch_num,
            "topic_num": branch_num,
            "epoch_num": 0,
            "place_num": 0,
            "author_num": 1,
            "feed_sequence": num,
            "feed_link": b"",
            "rank": rank,
            "acks": b"",
            "commit_key": bytes(32),
            "signature": bytes(64),
            "block_nums": b"",
            "body_kind": "post1",
            "size": 0,
            "timestamp": 0,
            "received_at": 0,
            "passed": passed,
        }
        for num, (passed, rank, commit_id) in zip(nums, keys, strict=True)
    ]
    connection.execute(insert(commits), rows)
    more = branches.c.commit_count + len(rows)
    connection.execute(update(branches).where(branches.c.num == branch_num).values(commit_count=more))
    count_changes(connection, branch_num, [(key, 1, 1) for key in keys])
    return list(nums)


@contextmanager
def counted_steps(connection: Connection) -> Iterator[list[int]]:
    """Gives a list that has, in the end, how many steps SQLite's machine took: the same for the same work, always."""
    driver = connection.connection.driver_connection
    assert driver is not None, "it is open"
    looks = 0

    def look() -> int:
        nonlocal looks
        looks += 1
        return 0

    counted: list[int] = []
    driver.set_progress_handler(look, _OFTEN)
    try:
        yield counted
    finally:
        driver.set_progress_handler(None, _OFTEN)
    counted.append(looks * _OFTEN)
