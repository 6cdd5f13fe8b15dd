"""Per-commit graph data for statistics: numbers and times of parents and of children. Pure numpy.

Pure numpy on the columns of `analytics.order.kernel`, which has looked up every ack already: what is counted of tangles then
needs no join of acks with commits. Knows neither Spark nor files.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from analytics.order.kernel import Ints

TIMES: Final = ("time", "shown_at")
"""Columns that shapes are of: the time that the author states, and where the node shows a commit in time."""


@dataclass(frozen=True, slots=True)
class Shapes:
    """Columns with a row for each commit. Only placed commits count, as causes and effects; a repeated ack counts once."""

    acks_count: Ints  # commits that it acks, whether or not they have a place
    acked_count: Ints  # commits that ack it
    acked_from: Ints  # where the first of these is shown in time; 0 where there is none
    has_causes: NDArray[np.bool_]  # of merges: whether any of the commits that it acks has a place
    causes_from: Ints  # of merges with such causes: their least stated time,
    causes_until: Ints  # and their greatest


def find_shapes(
    causes: Ints,
    ack_offsets: Ints,
    times: Ints,
    shown: Ints,
    is_placed: NDArray[np.bool_],
    elsewhere: Ints | None = None,
) -> Shapes:
    """Return the shapes of the commits of one range. `causes` are the rows of their acks.

    `times` are stated times, `shown` those at which the node shows commits. `elsewhere` counts the acks of each commit that
    have no row here.
    """
    count = len(times)
    effects = np.repeat(np.arange(count), np.diff(ack_offsets))
    is_told = is_placed[effects]
    # Each pair once, by effect: as one number, which fits for far more commits than fit a task. (`np.unique` is slower.)
    pairs = np.sort(effects[is_told] * count + causes[is_told])
    effects, causes = np.divmod(pairs[np.diff(pairs, prepend=-1) != 0], max(count, 1))
    acks_count = np.bincount(effects, minlength=count) + (0 if elsewhere is None else elsewhere)
    is_told = is_placed[causes]
    effects, causes = effects[is_told], causes[is_told]

    by_cause = np.argsort(causes, kind="stable")
    acked = causes[by_cause]
    firsts = np.flatnonzero(np.diff(acked, prepend=-1))
    acked_from = np.zeros(count, np.int64)
    if len(firsts):
        acked_from[acked[firsts]] = np.minimum.reduceat(shown[effects[by_cause]], firsts)

    is_merged = acks_count[effects] > 1
    merges, merged_at = effects[is_merged], times[causes[is_merged]]
    starts = np.flatnonzero(np.diff(merges, prepend=-1))
    has_causes = np.zeros(count, np.bool_)
    has_causes[merges] = True
    causes_from, causes_until = np.zeros(count, np.int64), np.zeros(count, np.int64)
    if len(starts):
        causes_from[merges[starts]] = np.minimum.reduceat(merged_at, starts)
        causes_until[merges[starts]] = np.maximum.reduceat(merged_at, starts)
    acked_count = np.bincount(causes, minlength=count)
    return Shapes(acks_count, acked_count, acked_from, has_causes, causes_from, causes_until)
