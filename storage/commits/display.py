"""Display order by time, local to this node; no rule and no other node depends on it.

It breaks the ties that causes leave by the earlier of two times, the one that the author asserts and the one at which
this node took the commit in: who asserts a time to come is shown when it came. So that causes stay before their effects
whatever their authors assert, a commit's *display time* is that, or the latest display time of what it acks where this
is later. Checkpoints come first, as in the canonical order, or who backdates would be shown among what was signed; among
equals the order of arrival decides, in which causes come first too. Each commit's display time is found once, from its
acks' alone, and an index is read in both directions.
"""

from collections.abc import Sequence
from typing import Final

from sqlalchemy import BigInteger, Connection, bindparam, func, literal, select, tuple_

from protocol.formats.commit import Commit
from protocol.ids import CommitId
from storage.engine.bulk import select_by_ids
from storage.engine.id_keys import id_key
from storage.schema.schema import commits

DISPLAY_ORDER: Final = (commits.c.passed, commits.c.display_time, commits.c.num)
"""Display order of the commits of one branch."""
_TIMES: Final = select(commits.c.commit_id, commits.c.display_time).where(
    commits.c.id_key.in_(bindparam("keys", expanding=True))
)


def find_display_times(
    connection: Connection, new: Sequence[Commit], before: set[CommitId], received_at: int
) -> list[int]:
    """Compute display times (unix ms) of commits about to be stored, causes before effects. Costs O(acks).

    `before` is what of their acks is stored already.
    """
    times: dict[CommitId, int] = dict(select_by_ids(connection, _TIMES, before))
    for commit in new:
        latest = min(commit.content.timestamp, received_at)
        for ack in commit.acks:
            if times[ack] > latest:
                latest = times[ack]
        times[commit.commit_id] = latest
    return [times[commit.commit_id] for commit in new]


def load_latest_time(connection: Connection, branch_num: int) -> int | None:
    """Return the display time (unix ms) of the last commit that counts; None in a branch without one.

    Costs O(log n, and the void commits that stand after it).
    """
    here = (commits.c.branch_num == branch_num) & ~commits.c.is_void
    last = (
        select(commits.c.display_time).where(here).order_by(*(one.desc() for one in DISPLAY_ORDER)).limit(1)
    )
    return connection.execute(last).scalar()


def load_display_window(
    connection: Connection,
    branch_num: int,
    limit: int,
    *,
    after: CommitId | None,
    before: CommitId | None,
    since: int | None = None,
) -> list[int]:
    """Load numbers of commits by display time: the first after a commit or since a time, or the last before one or the end.

    A void commit is passed over, and may be what one goes on from. Beside a commit that is not here is nothing. `since`
    is a display time in unix milliseconds. It costs a look for each checkpoint that the branch has passed.
    """
    here = (commits.c.branch_num == branch_num) & ~commits.c.is_void
    query = select(commits.c.num).where(here).limit(limit)
    if since is not None:
        first = _find_first(connection, branch_num, since)
        if first is None:
            return []
        query = query.where(tuple_(*DISPLAY_ORDER) >= tuple_(*(literal(one, BigInteger) for one in first)))
        return list(connection.execute(query.order_by(*DISPLAY_ORDER)).scalars())
    mark = after or before
    if mark is not None:
        at = select(*DISPLAY_ORDER).where(
            commits.c.id_key == id_key(mark), commits.c.commit_id == mark, commits.c.branch_num == branch_num
        )
        row = connection.execute(at).first()
        if row is None:
            return []
        key = tuple_(*(literal(value, BigInteger) for value in row))
        query = query.where(tuple_(*DISPLAY_ORDER) > key if after else tuple_(*DISPLAY_ORDER) < key)
    if after:
        return list(connection.execute(query.order_by(*DISPLAY_ORDER)).scalars())
    backwards = query.order_by(*(column.desc() for column in DISPLAY_ORDER))
    return list(connection.execute(backwards).scalars())[::-1]


def _find_first(connection: Connection, branch_num: int, since: int) -> Sequence[int] | None:
    """Find the place in display order of the first commit that counts with this display time or a later one."""
    of_branch = commits.c.branch_num == branch_num
    passed = -1
    while True:
        above = select(func.min(commits.c.passed)).where(of_branch, commits.c.passed > passed)
        following: int | None = connection.execute(above).scalar()
        if following is None:
            return None
        passed = following
        here = of_branch & (commits.c.passed == passed) & ~commits.c.is_void
        late = select(*DISPLAY_ORDER).where(here, commits.c.display_time >= since)
        row = connection.execute(late.order_by(*DISPLAY_ORDER).limit(1)).first()
        if row is not None:
            return tuple(row)
