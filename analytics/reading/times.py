"""Time helpers: rejects implausible timestamps, and chooses the buckets for counts over time.

Times are asserted by authors, who may lie or have a wrong clock. Years outside 1970 to 2200 are taken for no time.
"""

from typing import Final

from pyspark.sql import Column
from pyspark.sql import functions as F

from storage.export.schema import TIME_END, TIME_MIN

POINTS_MAX: Final = 200
"""Buckets of a period: more than this are not told apart on a page."""

MINUTE: Final = 60_000
HOUR: Final = 60 * MINUTE
DAY: Final = 24 * HOUR
BUCKETS: Final = tuple(
    [n * 1000 for n in (1, 5, 15)]
    + [n * MINUTE for n in (1, 5, 15)]
    + [n * HOUR for n in (1, 3, 6, 12)]
    + [n * DAY for n in (1, 2, 7, 14, 30, 91, 182, 365, 730)]
)
"""Widths of buckets in milliseconds: such that a person can name them."""


def bucket_for(start: int, end: int) -> int:
    """The narrowest width that needs at most POINTS_MAX buckets for this time, or the widest there is."""
    for width in BUCKETS:
        if end // width - start // width < POINTS_MAX:
            return width
    return BUCKETS[-1]


def bucket_start(name: str, bucket: int) -> Column:
    """Where the bucket of a time begins, in unix milliseconds: a multiple of its width."""
    return F.col(name) - F.col(name) % F.lit(bucket)


def is_plausible(name: str) -> Column:
    """Whether a column holds a time that is one."""
    return F.col(name).between(TIME_MIN, TIME_END - 1)


def plausible_time(name: str = "time") -> Column:
    """The time, or null where it is none."""
    return F.when(is_plausible(name), F.col(name))


def count_where(condition: Column) -> Column:
    """How many rows of a group fulfil a condition."""
    return F.count(F.when(condition, F.lit(1)))
