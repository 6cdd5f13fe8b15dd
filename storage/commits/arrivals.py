"""Counts the commits and bytes that arrived on each of the last days, and tells whether any came after another."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from sqlalchemy import Connection, func, select

from protocol.limits.users import GROWTH_COMMIT_COUNT_MAX, GROWTH_DAY_COUNT_MAX
from storage.engine.id_keys import chunks
from storage.engine.sums import sum_of
from storage.schema.schema import commits

_DAY_MS: Final = 24 * 60 * 60 * 1000


class Day(NamedTuple):
    """What came on one day: commits, and bytes of their blocks."""

    day: int  # since 1970-01-01 in UTC
    commits: int
    size: int


def load_growth(connection: Connection) -> list[Day]:
    """Days on which commits came, the latest first, GROWTH_DAY_COUNT_MAX at most.

    The latest GROWTH_COMMIT_COUNT_MAX commits are looked at: of more, the earliest day given is not whole.
    """
    latest = (
        select((commits.c.received_at // _DAY_MS).label("day"), commits.c.size)
        .order_by(commits.c.num.desc())
        .limit(GROWTH_COMMIT_COUNT_MAX)
        .subquery()
    )
    query = select(latest.c.day, func.count(), sum_of(latest.c.size)).group_by(latest.c.day)
    query = query.order_by(latest.c.day.desc())
    return [Day(*row) for row in connection.execute(query.limit(GROWTH_DAY_COUNT_MAX))]


def has_newer(connection: Connection, branch_nums: Sequence[int], upto: int) -> bool:
    """Whether a commit of these branches came after the one of that number, by any author."""
    for part in chunks(branch_nums):
        query = select(commits.c.num).where(commits.c.branch_num.in_(part), commits.c.num > upto).limit(1)
        if connection.execute(query).first() is not None:
            return True
    return False
