"""Data types of range reconciliation: sorted items, bounds, and the lookups that a store must provide.

An *item* is a commit id with its depth: a number that both sides derive from the commit's past alone, and coarse (rank
divided by a power of two, say), so that what was written lately stands together at the end. Where two sides hold an id
at different depths, it is reported as differing on both, which costs bytes and is seen by looking it up; nothing is lost.

Items are sorted by (depth, id). A *bound* is (depth, some first bytes of an id), and lies before all items that begin
with it; a range is what lies from one bound up to another.
"""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from typing import Final, Protocol

from protocol.crypto.hashing import range_fingerprint
from protocol.crypto.keys import HashKey
from protocol.ids import ItemId

DEPTH_MAX: Final = 2**53 - 1
"""Depths lie below."""

Item = tuple[int, ItemId]
"""Depth and id (32 bytes)."""
Bound = tuple[int, bytes]
"""Depth and at most 32 bytes."""

START: Final[Bound] = (0, b"")
END: Final[Bound] = (DEPTH_MAX, b"")
"""Behind every item."""


class RangeLookup(Protocol):
    """Lookups in a set of items, which must not change between the calls that answer one frame.

    A store has an index on (depth, id). Counting and fingerprinting read the whole range.
    """

    def count(self, low: Bound, high: Bound) -> int:
        """Items from `low` up to `high`."""

    def fingerprint(self, low: Bound, high: Bound, key: HashKey) -> bytes:
        """`hashing.range_fingerprint` of their ids, in order."""

    def items(self, low: Bound, high: Bound, limit: int) -> Sequence[Item]:
        """Return the first of them, in order, at most so many."""

    def neighbours(self, low: Bound, high: Bound, offsets: Sequence[int]) -> Sequence[tuple[Item, Item]]:
        """Return for each offset, from 1 to below the count, the item before it and the one at it, counted from 0."""


def bound_between(before: Item, after: Item) -> Bound:
    """Return the shortest bound between two adjacent items."""
    depth, commit_id = after
    if before[0] < depth:
        return (depth, b"")
    size = 1
    while before[1][:size] == commit_id[:size]:
        size += 1
    return (depth, commit_id[:size])


class SortedItems:
    """Items in memory, each once."""

    __slots__ = ("_items",)

    def __init__(self, items: Iterable[Item]) -> None:
        self._items = sorted(items)

    def count(self, low: Bound, high: Bound) -> int:
        """See RangeLookup."""
        first, last = self._span(low, high)
        return last - first

    def fingerprint(self, low: Bound, high: Bound, key: HashKey) -> bytes:
        """See RangeLookup."""
        first, last = self._span(low, high)
        return range_fingerprint(key, [commit_id for _, commit_id in self._items[first:last]])

    def items(self, low: Bound, high: Bound, limit: int) -> Sequence[Item]:
        """See RangeLookup."""
        first, last = self._span(low, high)
        return self._items[first : min(last, first + limit)]

    def neighbours(self, low: Bound, high: Bound, offsets: Sequence[int]) -> Sequence[tuple[Item, Item]]:
        """See RangeLookup."""
        first, _ = self._span(low, high)
        return [(self._items[first + offset - 1], self._items[first + offset]) for offset in offsets]

    def _span(self, low: Bound, high: Bound) -> tuple[int, int]:
        return bisect_left(self._items, low), bisect_left(self._items, high)
