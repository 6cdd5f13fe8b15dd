"""Queries for what a bundle carries: the commits of a branch from a moment of this store on, and what they stand on."""

from collections.abc import Collection
from typing import Final, NamedTuple

from sqlalchemy import Connection, bindparam, func, select

from protocol.ids import CommitId
from storage.engine.bulk import select_in, select_rows
from storage.engine.id_keys import chunks, id_key, unpack_ids
from storage.schema.schema import commits, topic_inits

_LAST: Final = select(func.coalesce(func.max(commits.c.num), 0))
_RECEIVED: Final = (
    select(commits.c.num, commits.c.received_at)
    .where(commits.c.num > bindparam("after"))
    .order_by(commits.c.num)
    .limit(1)
)
_CARRIED: Final = (
    select(commits.c.num, commits.c.topic_num, commits.c.size, commits.c.commit_id, commits.c.acks)
    .where(
        commits.c.branch_num == bindparam("branch"),
        commits.c.num > bindparam("after"),
        commits.c.num <= bindparam("upto"),
    )
    .order_by(commits.c.num)
    .limit(bindparam("many"))
)
_PLACES: Final = select(commits.c.commit_id, commits.c.num).where(
    commits.c.id_key.in_(bindparam("keys", expanding=True))
)
_INITS: Final = (
    select(topic_inits.c.commit_num)
    .where(topic_inits.c.topic_num == bindparam("topic"))
    .order_by(topic_inits.c.commit_num)
)


class CarriedRow(NamedTuple):
    """A commit to be carried: its numbers, the bytes of its blocks, its id and those that it acks."""

    num: int
    topic_num: int
    size: int
    commit_id: CommitId
    acks: tuple[CommitId, ...]


def find_last(connection: Connection) -> int:
    """Return the number of the last accepted commit, or 0. Costs O(1)."""
    return int(select_rows(connection, _LAST).scalars()[0])


def find_received_before(connection: Connection, since: int, last: int) -> int:
    """Return the number up to which all commits were accepted before `since`, unix milliseconds of this node's clock.

    Costs O(log(commits)). Numbers grow in the order of acceptance. So the commits up to this number hold all their
    causes, even if the clock was set back meanwhile and several numbers would do.
    """
    low, high = 0, last
    while low < high:
        middle = (low + high) // 2
        row = select_rows(connection, _RECEIVED, after=middle).first()
        if row is None or row[0] > high or row[1] >= since:
            high = middle
        else:
            low = row[0]
    return low


def load_carried(
    connection: Connection, branch_num: int, after: int, upto: int, many: int
) -> list[CarriedRow]:
    """Load commits of a branch with numbers above `after` and not above `upto`, in order, the first so many.

    Costs O(many).
    """
    rows = select_rows(connection, _CARRIED, branch=branch_num, after=after, upto=upto, many=many)
    return [
        CarriedRow(num, topic_num, size, commit_id, unpack_ids(acks))
        for num, topic_num, size, commit_id, acks in rows
    ]


def find_accepted_up_to(connection: Connection, ids: Collection[CommitId], upto: int) -> set[CommitId]:
    """Return the given commits that are here with a number not above `upto`. Costs O(ids)."""
    wanted, found = set(ids), set[CommitId]()
    for part in chunks([id_key(raw) for raw in wanted]):
        found |= {one for one, num in select_in(connection, _PLACES, part) if one in wanted and num <= upto}
    return found


def load_second_places(connection: Connection, topic_num: int) -> list[int]:
    """Load the numbers of the inits of epochs that stand on a topic, too. Costs O(those)."""
    return select_rows(connection, _INITS, topic=topic_num).scalars()
