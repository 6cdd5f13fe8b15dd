"""Sorted list of commits by (rank, id) with fast positions and bulk changes of rank.

A list for each rank, sorted by id, and the counts of 64 ranks, and of 64 times 64, added up. What Python does in C on
short lists is faster than a tree written in it: some 4 us for an insert and its position among 30,000, on a crowded
machine. A balanced list of (rank, id) from a library (sortedcontainers) does so in 6 us, but is no help where hundreds
of commits change their rank with every delivery: it takes them out and in one by one, 10 us each there.

Commits of one rank are expected to be few, at most some ten thousand: an insert moves those that follow.
"""

from bisect import bisect_left
from collections.abc import Iterator, Mapping
from itertools import chain
from operator import attrgetter
from typing import Final

from analytics.study.causes import Entry

_BY_ID = attrgetter("commit_id")
_SHIFT: Final = 6
# Where fewer than one in so many leave a level, each is looked up; else all are looked at.
_FEW: Final = 16


class RankedOrder:
    """Entries by (level, commit id), where an entry's level is its rank when it was placed."""

    def __init__(self) -> None:
        self._levels: list[list[Entry]] = []
        self._counts: list[int] = []  # of 64 levels
        self._sums: list[int] = []  # of 64 counts
        self._len = 0

    def __len__(self) -> int:
        return self._len

    def __iter__(self) -> Iterator[Entry]:
        return chain.from_iterable(self._levels)

    def position(self, entry: Entry) -> int:
        """Return where a placed entry stands."""
        return self.start(entry.level) + bisect_left(self._levels[entry.level], entry.commit_id, key=_BY_ID)

    def start(self, rank: int) -> int:
        """Return how many stand below this rank."""
        block, part = rank >> _SHIFT, rank >> 2 * _SHIFT
        return (
            sum(self._sums[:part])
            + sum(self._counts[part << _SHIFT : block])
            + sum(map(len, self._levels[block << _SHIFT : rank]))
        )

    def window(self, low: int, high: int) -> list[list[Entry]]:
        """Return the entries of ranks `low` to `high`, a list for each, not to be changed."""
        self._reach(high)
        return self._levels[low : high + 1]

    def count(self, rank: int) -> int:
        """Return how many stand at this rank."""
        return len(self._levels[rank]) if rank < len(self._levels) else 0

    def insert(self, entry: Entry) -> int:
        """Place an entry by its rank, and give its position."""
        entry.level = entry.rank
        entry.is_placed = True
        self._reach(entry.rank)
        level = self._levels[entry.rank]
        at = bisect_left(level, entry.commit_id, key=_BY_ID)
        level.insert(at, entry)
        self._count(entry.rank, 1)
        return self.start(entry.rank) + at

    def remove(self, entry: Entry) -> int:
        """Take out a placed entry, and give the position where it stood."""
        position = self.position(entry)
        entry.is_placed = False
        del self._levels[entry.level][position - self.start(entry.level)]
        self._count(entry.level, -1)
        return position

    def rerank(
        self,
        leaving: Mapping[int, list[Entry]],
        arriving: Mapping[int, list[Entry]],
        before: dict[int, list[Entry]],
    ) -> None:
        """Take placed entries out of the ranks where they stand, and put them where their new levels are.

        What is not placed may be among those that leave. The entries that a rank had are added to `before`, where it is
        not there yet.
        """
        if not arriving:
            return
        self._reach(max(max(arriving), max(leaving)))
        levels = self._levels
        for rank in leaving.keys() | arriving.keys():
            level = levels[rank]
            if rank not in before:
                before[rank] = level
            if rank not in leaving:
                kept = level.copy()
            elif len(level) < _FEW * len(leaving[rank]):
                kept = [entry for entry in level if entry.level == rank]
            else:
                kept = _without(level, leaving[rank])
            if rank in arriving:
                kept += arriving[rank]
                if len(kept) > 1:
                    kept.sort(key=_BY_ID)
            levels[rank] = kept
            if len(kept) != len(level):
                self._count(rank, len(kept) - len(level))

    def shift(self, rank: int, more: int) -> None:
        """Raise all that stands at this rank and above by as much, as it stands."""
        for entry in chain.from_iterable(self._levels[rank:]):
            entry.level = entry.rank = entry.level + more
        self._levels[rank:rank] = [[] for _ in range(more)]
        block = rank >> _SHIFT
        self._counts[block:] = _sums_of([len(level) for level in self._levels[block << _SHIFT :]])
        part = block >> _SHIFT
        self._sums[part:] = _sums_of(self._counts[part << _SHIFT :])

    def _count(self, rank: int, more: int) -> None:
        self._len += more
        self._counts[rank >> _SHIFT] += more
        self._sums[rank >> 2 * _SHIFT] += more

    def _reach(self, rank: int) -> None:
        while len(self._levels) <= rank:
            if not len(self._levels) & ((1 << _SHIFT) - 1):
                if not len(self._counts) & ((1 << _SHIFT) - 1):
                    self._sums.append(0)
                self._counts.append(0)
            self._levels.append([])


def _sums_of(counts: list[int]) -> list[int]:
    """Split a level into blocks of 64 and the rest."""
    return [sum(counts[start : start + (1 << _SHIFT)]) for start in range(0, len(counts), 1 << _SHIFT)]


def _without(level: list[Entry], left: list[Entry]) -> list[Entry]:
    """Return a copy of the level less those that left it."""
    kept = level.copy()
    for entry in left:
        if entry.is_placed:
            del kept[bisect_left(kept, entry.commit_id, key=_BY_ID)]
    return kept
