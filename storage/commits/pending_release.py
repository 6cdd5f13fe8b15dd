"""Releases pending commits: removes arrived causes from their lists, and returns commits that lack none.

Of the table `pending` this module changes what the module `pending` keeps. Each step takes and gives counts, so that a
transaction can stop after so much work and another goes on: what is ready and was not taken up is marked so, and which
causes are settled can be told from commits and rejections. A cause is named by its key (`pending`), and to be settled is to
be accepted or rejected.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import BindParameter, Connection, bindparam, delete, select, update

from protocol.ids import CommitId
from storage.commits.pending import CAUSES, READY, UNREAD, Arrival
from storage.engine.bulk import change_rows, select_in, select_rows
from storage.engine.id_keys import chunks, id_key
from storage.engine.queries import stream_parts, stream_rows
from storage.schema.schema import commits, pending, pending_causes, pending_publications, rejections

_ANY_PENDING = select(pending.c.num).limit(1)
_CAUSES = (pending_causes.c.id_key, pending_causes.c.pending_num)
_KEYS: BindParameter[list[int]] = bindparam("keys", expanding=True)
_LIMIT: BindParameter[int] = bindparam("limit")
_NUMBER: BindParameter[int] = bindparam("number")
_AWAITED = select(*_CAUSES).where(pending_causes.c.id_key.in_(_KEYS)).order_by(*_CAUSES).limit(_LIMIT)
_COLUMNS = select(pending.c.num, pending.c.id_key, pending.c.size, pending.c.lacking)
_WAITING = _COLUMNS.where(pending.c.num.in_(_KEYS), pending.c.reason == CAUSES)
_READY = _COLUMNS.where(pending.c.reason == READY).order_by(pending.c.num).limit(_LIMIT)
_ARRIVED = select(pending.c.commit_id, pending.c.arrived_at, pending.c.arrival).where(
    pending.c.num.in_(_KEYS)
)
_KEPT = (
    select(pending.c.num, pending.c.topic_num, pending_publications.c.publication)
    .join(pending_publications, pending_publications.c.pending_num == pending.c.num)
    .where(pending.c.num.in_(_KEYS))
)
_DROP = delete(pending).where(pending.c.num == _NUMBER)
_DROP_PUBLICATION = delete(pending_publications).where(pending_publications.c.pending_num == _NUMBER)
_DROP_CAUSE = delete(pending_causes).where(
    pending_causes.c.id_key == bindparam("key"), pending_causes.c.pending_num == _NUMBER
)
_MARK_READY = update(pending).values(reason=bindparam("new_reason")).where(pending.c.num == _NUMBER)
_COUNT_DOWN = (
    update(pending).values(lacking=pending.c.lacking - bindparam("count")).where(pending.c.num == _NUMBER)
)
_READ_AT_ONCE = 500


@dataclass(frozen=True, slots=True)
class ReleasedCommit:
    """Pending commit to be judged: it lacks nothing, or is doomed, since a cause of it was rejected."""

    num: int
    key: int
    size: int
    is_doomed: bool


@dataclass(frozen=True, slots=True)
class ReleaseResult:
    """Result of crossing off causes: what was released, the causes that are left, and how many rows have gone."""

    released: list[ReleasedCommit]
    left: dict[int, bool]
    count: int


def is_any_pending(connection: Connection) -> bool:
    """Return True if anything waits. Costs O(1): mostly nothing does, and every batch asks."""
    return select_rows(connection, _ANY_PENDING).first() is not None


def release_if_accepted(
    connection: Connection, woken: Collection[int], count_max: int
) -> tuple[list[ReleasedCommit], int]:
    """Find pending commits that would lack nothing if the commits with these keys were accepted; cross off these alone.

    Commits that lack more keep their rows. It is not known yet whether these causes will be accepted, and a wrong guess
    must not be remembered. Looks at `count_max` rows at most, and returns at how many.
    """
    released: list[ReleasedCommit] = []
    looked_at = 0
    for part in chunks(sorted(woken)):
        rows = _load_some(connection, part, count_max - looked_at) if looked_at < count_max else []
        looked_at += len(rows)
        counts = Counter(num for _, num in rows)
        found: list[ReleasedCommit] = []
        for nums in chunks(sorted(counts)):
            found += [
                ReleasedCommit(num, key, size, is_doomed=False)
                for num, key, size, lacking in select_in(connection, _WAITING, nums)
                if lacking <= counts[num]
            ]
        woken_nums = {one.num for one in found}
        change_rows(connection, _DROP_CAUSE, [row for row in rows if row[1] in woken_nums])
        released += found
    return released, looked_at


def settle_causes(connection: Connection, settled: Mapping[int, bool], count_max: int) -> ReleaseResult:
    """Cross off causes, each with whether it was rejected, until `count_max` rows have gone. Costs O(those rows)."""
    left = dict(settled)
    released: list[ReleasedCommit] = []
    count = 0
    for part in chunks(list(settled)):
        room = count_max - count
        if room <= 0:
            break
        rows = _load_some(connection, part, room)
        count += len(rows)
        done = [key for key in part if len(rows) < room or key < rows[-1][0]]
        if rows:
            released += _cross_off(connection, rows, settled)
            change_rows(connection, _DROP_CAUSE, rows)
        for key in done:
            del left[key]
    return ReleaseResult(released, left, count)


def _load_some(connection: Connection, keys: Sequence[int], limit: int) -> list[tuple[int, int]]:
    """Load pairs of a cause and the number of a pending commit that waits for it, in order."""
    return [(row[0], row[1]) for row in select_in(connection, _AWAITED, keys, limit=limit)]


def _cross_off(
    connection: Connection, rows: Sequence[tuple[int, int]], settled: Mapping[int, bool]
) -> list[ReleasedCommit]:
    """Count one missing cause less for each pending commit that is still stored; return those that lack no cause
    now."""
    counts = Counter(num for _, num in rows)
    change_rows(connection, _COUNT_DOWN, [(count, num) for num, count in counts.items()])
    doomed = {num for key, num in rows if settled[key]}
    return [
        ReleasedCommit(num, key, size, num in doomed)
        for nums in chunks(sorted(counts))
        for num, key, size, lacking in sorted(select_in(connection, _WAITING, nums))
        if lacking <= 0 or num in doomed
    ]


def mark_ready(connection: Connection, released: Sequence[ReleasedCommit]) -> None:
    """Mark released commits to wait for a later transaction."""
    change_rows(connection, _MARK_READY, [(READY, one.num) for one in released])


def load_ready(connection: Connection, limit: int) -> list[ReleasedCommit]:
    """Load the first commits that wait for a transaction. Costs O(limit)."""
    return [
        ReleasedCommit(num, key, size, lacking > 0)
        for num, key, size, lacking in select_rows(connection, _READY, limit=limit)
    ]


def pop_released(connection: Connection, released: Sequence[ReleasedCommit]) -> list[tuple[int, bytes]]:
    """Remove pending commits; return (topic's number, publication) of each, in that order. Costs O(released).

    What still lacks causes leaves the rows of these to `drop_causes`.
    """
    popped: dict[int, tuple[int, bytes]] = {}
    for part in chunks([one.num for one in released]):
        popped.update((row[0], (row[1], row[2])) for row in select_in(connection, _KEPT, part))
    change_rows(connection, _DROP_PUBLICATION, [(num,) for num in popped])
    change_rows(connection, _DROP, [(num,) for num in popped])
    return [popped[one.num] for one in released]


def load_arrivals(connection: Connection, released: Sequence[ReleasedCommit]) -> dict[CommitId, Arrival]:
    """Load when each came: before they are popped. Costs O(released)."""
    found: dict[CommitId, Arrival] = {}
    for part in chunks([one.num for one in released]):
        found.update((row[0], Arrival(row[1], row[2])) for row in select_in(connection, _ARRIVED, part))
    return found


def drop_causes(connection: Connection, num: int, causes: Collection[bytes] | None) -> None:
    """Remove what a commit that is no longer kept waited for: some of `causes`; None if they cannot be told."""
    if causes is None:
        connection.execute(delete(pending_causes).where(pending_causes.c.pending_num == num))
    else:
        change_rows(connection, _DROP_CAUSE, [(id_key(raw), num) for raw in causes])


def pop_unread(connection: Connection) -> dict[int, list[bytes]]:
    """Remove all unread publications; return them by the topic's number. Costs O(those)."""
    is_unread = pending.c.reason == UNREAD
    query = (
        select(pending.c.topic_num, pending_publications.c.publication)
        .join(pending_publications, pending_publications.c.pending_num == pending.c.num)
        .where(is_unread)
    )
    popped: dict[int, list[bytes]] = {}
    for topic_num, publication in connection.execute(query.order_by(pending.c.num)):
        popped.setdefault(topic_num, []).append(publication)
    nums = select(pending.c.num).where(is_unread)
    connection.execute(delete(pending_publications).where(pending_publications.c.pending_num.in_(nums)))
    connection.execute(delete(pending).where(is_unread))
    return popped


def find_settled(connection: Connection) -> dict[int, bool]:
    """Find awaited causes that are settled: what a crash, or a repair, left to cross off. Costs O(causes)."""
    found: dict[int, bool] = {}
    if not is_any_pending(connection):
        return found
    awaited = select(pending_causes.c.id_key).distinct()
    accepted = awaited.join(commits, commits.c.id_key == pending_causes.c.id_key)
    found.update((row[0], False) for row in stream_rows(connection, accepted, _READ_AT_ONCE))
    for rows in stream_parts(connection, select(rejections.c.commit_id), _READ_AT_ONCE):
        keys = [id_key(row[0]) for row in rows]
        here = connection.execute(awaited.where(pending_causes.c.id_key.in_(keys))).scalars()
        found.update(dict.fromkeys(here, True))
    return found
