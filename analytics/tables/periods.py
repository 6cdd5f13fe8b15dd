"""The time that a table over time covers: the period around the bulk of what it counts, and the width of its buckets.

One absurd clock then does not flatten the picture. What the period leaves out, and what states no time, counts from its
receipt; where that is outside, too, in rows without a bucket. Years outside 1970 to 2200 are taken for no time: authors may
lie or have a wrong clock.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from analytics.reading.times import BUCKETS, DAY, bucket_for

_SHARES_ACCURACY: Final = 10_000

WAITS: Final = tuple(width for width in BUCKETS if width <= 365 * DAY)
"""Milliseconds by which the lengths of merges are told apart."""

SHOWN: Final = "shown_at"
"""The time of a commit in tables over time."""

Rows = Callable[[str], Sequence[Mapping[str, Any]]]


@dataclass(frozen=True, slots=True)
class Period:
    """Unix milliseconds, `start` and `end` included."""

    start: int
    end: int
    bucket: int  # width of one bucket

    def values(self) -> dict[str, str]:
        """Return what a definition with a period gets."""
        return {"start": str(self.start), "end": str(self.end), "bucket": str(self.bucket)}


def find_period(rows: Rows, relation: str, column: str) -> Period | None:
    """Return the period of a relation's column of times, or None if it holds no plausible time."""
    (bulk,) = rows(
        f"SELECT percentile_approx(plausible({column}), 0.01, {_SHARES_ACCURACY}) AS low, "
        f"percentile_approx(plausible({column}), 0.99, {_SHARES_ACCURACY}) AS high FROM {relation}"
    )
    if bulk["low"] is None:
        return None
    # The bulk, and as much again on either side: wide enough for growth that is slow at first, too narrow for 1980 or 2150.
    margin = max(bulk["high"] - bulk["low"], DAY)
    (inside,) = rows(
        f"SELECT min(plausible({column})) AS first_time, max(plausible({column})) AS last_time "
        f"FROM {relation} WHERE plausible({column}) BETWEEN {bulk['low'] - margin} AND {bulk['high'] + margin}"
    )
    start, end = int(inside["first_time"]), int(inside["last_time"])
    return Period(start, end, bucket_for(start, end))
