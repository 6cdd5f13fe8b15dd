"""Chooses the width of buckets for counts over time."""

from typing import Final

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
    """Return the narrowest width that needs at most POINTS_MAX buckets for this time, or the widest there is."""
    for width in BUCKETS:
        if end // width - start // width < POINTS_MAX:
            return width
    return BUCKETS[-1]
