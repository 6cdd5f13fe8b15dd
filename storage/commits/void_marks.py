"""Marks commits as void or valid again in the tables. A void commit stays in the graph and leaves every view."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import Connection, Select, bindparam, select, update

from protocol.ids import CommitId, UserId
from storage.commits.checkpoints import recount_checkpoints
from storage.commits.document_rows import flip_operations
from storage.commits.edits import Change, record_changes
from storage.commits.kept_texts import drop_kept_texts
from storage.commits.position_index import CANONICAL_ORDER, Gain, count_changes
from storage.commits.search_texts import invalidate_texts
from storage.engine.bulk import select_in, unindexed
from storage.engine.database import Database
from storage.engine.id_keys import chunks, id_key, unpack_ids
from storage.repos.row_changes import row_changes
from storage.schema.schema import authors, branches, checkpoints, commits, feed_forks, group_places

_JUDGED: Final[Select[Any]] = select(
    commits.c.num,
    commits.c.place_num,
    commits.c.commit_id,
    authors.c.user,
    commits.c.feed_sequence,
    commits.c.is_void,
    commits.c.body_kind,
    checkpoints.c.proposal,
).select_from(
    commits.join(authors, authors.c.num == commits.c.author_num).outerjoin(
        checkpoints, checkpoints.c.commit_num == commits.c.num
    )
)
_JUDGED_OF: Final[Select[Any]] = _JUDGED.where(
    commits.c.id_key.in_(bindparam("keys", expanding=True)),
    unindexed(commits.c.branch_num) == bindparam("branch"),
)


@dataclass(frozen=True, slots=True)
class Judged:
    """Accepted commit, as far as it must be known to judge it again."""

    num: int
    place_num: int  # of the root branch commits that it follows: `load_seen`
    commit_id: CommitId
    author: UserId
    sequence: int
    is_void: bool
    body_kind: str
    proposal: CommitId | None  # of a checkpoint


def load_judged_by(connection: Connection, branch_num: int, author: UserId) -> Iterator[Judged]:
    """Yield all accepted commits of an author in a branch. Costs O(those)."""
    query = _JUDGED.where(commits.c.branch_num == branch_num, authors.c.user == author)
    for row in connection.execute(query.order_by(commits.c.feed_sequence)):
        yield Judged(*row)


def load_judged(connection: Connection, branch_num: int, ids: Sequence[CommitId]) -> list[Judged]:
    """Load the given commits that are accepted in the branch. Costs O(ids)."""
    found: list[Judged] = []
    wanted = set(ids)
    for part in chunks([id_key(raw) for raw in wanted]):
        rows = select_in(connection, _JUDGED_OF, part, branch=branch_num)
        found += [one for row in rows if (one := Judged(*row)).commit_id in wanted]
    return found


def load_seen(connection: Connection, place_num: int) -> tuple[CommitId, ...]:
    """Load the root branch commits that a place in the group tangle names; none where it is not here. Costs O(those)."""
    query = select(group_places.c.ids).where(group_places.c.num == place_num)
    packed = connection.execute(query).scalar()
    return () if packed is None else unpack_ids(packed)


def mark_void(
    database: Database, connection: Connection, branch_num: int, nums: Sequence[int], *, is_void: bool
) -> None:
    """Mark commits of a branch as void, or valid again; each changes. Costs O(change and log n)."""
    changed: list[Change] = []
    gains: list[Gain] = []
    for part in chunks(nums):
        query = select(commits.c.num, *CANONICAL_ORDER).where(commits.c.num.in_(part)).order_by(commits.c.num)
        for num, passed, rank, commit_id in connection.execute(query):
            changed.append((num, passed, None) if is_void else (num, None, passed))
            gains.append(((passed, rank, commit_id), 0, -1 if is_void else 1))
        connection.execute(update(commits).where(commits.c.num.in_(part)).values(is_void=is_void))
    count_changes(connection, branch_num, gains)
    flip_operations(database, connection, nums, is_void=is_void)
    invalidate_texts(connection, nums, is_gone=is_void)
    drop_kept_texts(connection, nums)
    record_changes(database, connection, branch_num, changed)
    recount_checkpoints(database, connection, branch_num, nums, is_void=is_void)
    row_changes(connection).counted.add(branch_num)
    more = len(nums) if is_void else -len(nums)
    connection.execute(
        update(branches).where(branches.c.num == branch_num).values(void_count=branches.c.void_count + more)
    )


def load_void_ids(connection: Connection, branch_num: int) -> list[CommitId]:
    """Load the ids of a branch's void commits, in canonical order. Costs O(commits of the branch)."""
    query = select(*CANONICAL_ORDER).where(commits.c.branch_num == branch_num, commits.c.is_void)
    return [row[-1] for row in sorted(tuple(row) for row in connection.execute(query))]


def are_forked(connection: Connection, branch_num: int, ids: Sequence[CommitId]) -> bool:
    """Return True if any of these commits took a place of its author's feed that was taken. Costs O(ids)."""
    for part in chunks(ids):
        query = select(feed_forks.c.commit_id).where(
            feed_forks.c.branch_num == branch_num, feed_forks.c.commit_id.in_(part)
        )
        if connection.execute(query.limit(1)).first() is not None:
            return True
    return False


def has_forks(
    connection: Connection, branch_num: int, author: UserId, last: int, *, but: Collection[CommitId] = ()
) -> bool:
    """Return True if the author used a place of the feed up to `last` twice, the commits `but` aside."""
    query = (
        select(feed_forks.c.commit_id)
        .join(authors, authors.c.num == feed_forks.c.author_num)
        .where(
            feed_forks.c.branch_num == branch_num,
            authors.c.user == author,
            feed_forks.c.feed_sequence <= last,
        )
        .limit(len(but) + 1)
    )
    return any(row[0] not in but for row in connection.execute(query))
