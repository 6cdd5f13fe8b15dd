"""Log of timeline changes other than inserts: commits that become void, return, or move.

An insert costs no row: the commit's own is its record. The rows here have numbers of the same sequence, so commits and
changes together are a branch's history, which `edits` reads. Only the newest are kept.
"""

from collections.abc import Sequence
from typing import Final

from sqlalchemy import Connection, delete, select, update

from protocol.limits.users import CHANGES_KEPT_MAX
from storage.engine.bulk import insert_rows
from storage.engine.database import Database, remember_last_number
from storage.schema.schema import branches, changes, commits

_COLUMNS: Final = ("num", "branch_num", "commit_num", "passed_before", "passed_after")

Change = tuple[int, int | None, int | None]
"""A commit's number, and the checkpoints it had passed before and has now; None where it does not stand there."""


def record_changes(
    database: Database, connection: Connection, branch_num: int, new: Sequence[Change]
) -> None:
    """Write down what has changed in a branch's timeline, in this order, in the transaction that changes it."""
    if not new:
        return
    nums = database.next_nums(connection, commits, len(new))
    insert_rows(
        connection,
        changes,
        _COLUMNS,
        [(num, branch_num, *change) for num, change in zip(nums, new, strict=True)],
    )
    remember_last_number(connection, commits, nums[-1])
    query = (
        select(changes.c.num)
        .where(changes.c.branch_num == branch_num)
        .order_by(changes.c.num.desc())
        .offset(CHANGES_KEPT_MAX)
        .limit(1)
    )
    last_gone = connection.execute(query).scalar()
    if last_gone is not None:
        connection.execute(
            delete(changes).where(changes.c.branch_num == branch_num, changes.c.num <= last_gone)
        )
        connection.execute(
            update(branches).where(branches.c.num == branch_num).values(changes_from=last_gone)
        )
