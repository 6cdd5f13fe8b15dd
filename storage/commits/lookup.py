"""Finds commits by id prefix (accepted, pending or rejected), or by their id in the system they were imported from."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, insert, select

from protocol.ids import AnyId, CommitId
from storage.commits.pending import UNREAD
from storage.engine.database import Database
from storage.engine.id_keys import chunks, id_key
from storage.schema.schema import commits, imports, pending, rejections

_FOUND_MAX = 3


@dataclass(frozen=True, slots=True)
class FoundCommit:
    """Commit and its state: `accepted`, `pending`, `unread` or `rejected` (with code and detail)."""

    commit_id: CommitId
    branch_num: int
    state: str
    code: str = ""
    detail: str = ""


def find_commits(
    connection: Connection, low: AnyId, high: AnyId, branch_nums: Collection[int] | None = None
) -> list[FoundCommit]:
    """Find commits with ids from `low` to `high`: at least two where there are that many. Costs O(found).

    With `branch_nums` only those of these branches are looked for: others neither hide them nor make them ambiguous.
    """
    if branch_nums is None:
        return _find(connection, low, high, ())
    return [one for some in chunks(sorted(branch_nums)) for one in _find(connection, low, high, (some,))]


def _find(
    connection: Connection, low: AnyId, high: AnyId, among: Sequence[Sequence[int]]
) -> list[FoundCommit]:
    """Find these commits in all branches, or in the given ones."""
    # Not the column itself: without statistics SQLite would take the index of the branch, and read all of it, rather than
    # that of the ids.
    of_commits, of_rejections, of_pending = (
        [(table.c.branch_num + 0).in_(nums) for nums in among] for table in (commits, rejections, pending)
    )
    accepted = (
        select(commits.c.commit_id, commits.c.branch_num)
        .where(
            commits.c.id_key.between(id_key(low), id_key(high)),
            commits.c.commit_id.between(low, high),
            *of_commits,
        )
        .limit(_FOUND_MAX)
    )
    found = [FoundCommit(row[0], row[1], "accepted") for row in connection.execute(accepted)]
    rejected = (
        select(rejections.c.commit_id, rejections.c.branch_num, rejections.c.code, rejections.c.detail)
        .where(rejections.c.commit_id.between(low, high), *of_rejections)
        .limit(_FOUND_MAX)
    )
    found += [FoundCommit(row[0], row[1], "rejected", row[2], row[3]) for row in connection.execute(rejected)]
    waiting = (
        select(pending.c.commit_id, pending.c.branch_num, pending.c.reason)
        .where(
            pending.c.id_key.between(id_key(low), id_key(high)),
            pending.c.commit_id.between(low, high),
            *of_pending,
        )
        .limit(_FOUND_MAX)
    )
    found += [
        FoundCommit(row[0], row[1], "unread" if row[2] == UNREAD else "pending")
        for row in connection.execute(waiting)
    ]
    return found


def load_imported(
    connection: Connection, branch_num: int, source: str, source_ids: list[str]
) -> dict[str, CommitId]:
    """Load the commit ids of the given items that were imported from `source` before. Costs O(items)."""
    query = select(imports.c.source_id, imports.c.commit_id).where(
        imports.c.branch_num == branch_num, imports.c.source == source, imports.c.source_id.in_(source_ids)
    )
    return {row[0]: row[1] for row in connection.execute(query)}


def load_source_ids(
    connection: Connection, branch_num: int, source: str, after: int, limit: int
) -> list[tuple[int, str]]:
    """Load (number, id) of items imported from `source` with numbers above `after`, in order. Costs O(limit)."""
    query = (
        select(imports.c.num, imports.c.source_id)
        .where(imports.c.branch_num == branch_num, imports.c.source == source, imports.c.num > after)
        .order_by(imports.c.num)
        .limit(limit)
    )
    return [(row[0], row[1]) for row in connection.execute(query)]


def keep_imported(
    database: Database, connection: Connection, branch_num: int, source: str, items: dict[str, CommitId]
) -> None:
    """Store which commit each imported item became."""
    nums = database.next_nums(connection, imports, len(items))
    rows = [
        {
            "num": num,
            "branch_num": branch_num,
            "source": source,
            "source_id": source_id,
            "commit_id": commit_id,
        }
        for num, (source_id, commit_id) in zip(nums, items.items(), strict=True)
    ]
    if rows:
        connection.execute(insert(imports), rows)
