"""Sorted lists of commits per rank in flat arrays, for compiled code.

A commit stands there as its *entry*, name and number in one integer, so that entries sort by name. The lists lie in one
pool; one that outgrows its room moves to the pool's end, and when that is reached, all move close together into a
second pool. Knows nothing of causes and edits.
"""

from typing import Final

import numpy as np

from analytics.study.compiled import Entries, Table, compiled

COMMIT_BITS: Final = 32
COMMIT_MASK: Final = (1 << COMMIT_BITS) - 1

# Rows of the table of lists, by rank. Entries of rank r stand at pool[start : start + size], and there is room for more.
START: Final = 0
SIZE: Final = 1
ROOM: Final = 2
_POOL: Final = 3  # [0] says which pool is in use, [1] where its free end begins

_POOL_PER_COMMIT: Final = 6
"""Close together, n entries take up to 1.5 n, and the list that needs room 2 n + 2: the rest puts the next time off."""


@compiled
def empty_lists(count: int) -> tuple[Table, Entries]:
    """Return the table and both pools, for `count` commits: 112 bytes each. There is a rank more than they can have, to look
    at.
    """
    return np.zeros((4, count + 2), np.int32), np.empty((2, _POOL_PER_COMMIT * count + 8), np.int64)


@compiled
def pool_of(lists: Table, pools: Entries) -> Entries:
    """Return the present pool; the next `insert` replaces it."""
    pool: Entries = pools[lists[_POOL, 0]]
    return pool


@compiled
def insert(lists: Table, pools: Entries, rank: int, entry: int) -> bool:
    """Put an entry where it belongs in a rank; gives whether others stand before it."""
    size = lists[SIZE, rank]
    if size == lists[ROOM, rank]:
        _make_room(lists, pools, rank)
    pool, start = lists[_POOL, 0], lists[START, rank]
    at = start + size
    while at > start and pools[pool, at - 1] > entry:
        pools[pool, at] = pools[pool, at - 1]
        at -= 1
    pools[pool, at] = entry
    lists[SIZE, rank] = size + 1
    return bool(at > start)


@compiled
def remove(lists: Table, pools: Entries, rank: int, entry: int) -> None:
    """Take out an entry that is there."""
    pool, at = lists[_POOL, 0], lists[START, rank]
    last = at + lists[SIZE, rank] - 1
    while pools[pool, at] != entry:
        at += 1
    while at < last:
        pools[pool, at] = pools[pool, at + 1]
        at += 1
    lists[SIZE, rank] -= 1


@compiled
def _make_room(lists: Table, pools: Entries, rank: int) -> None:
    size = lists[SIZE, rank]
    room = 2 * size + 2
    if lists[_POOL, 1] + room > pools.shape[1]:
        _move_together(lists, pools)
    pool, start, end = pool_of(lists, pools), lists[START, rank], lists[_POOL, 1]
    for at in range(size):
        pool[end + at] = pool[start + at]
    lists[START, rank], lists[ROOM, rank] = end, room
    lists[_POOL, 1] = end + room


@compiled
def _move_together(lists: Table, pools: Entries) -> None:
    source = pool_of(lists, pools)
    lists[_POOL, 0] = 1 - lists[_POOL, 0]
    target = pool_of(lists, pools)
    end = 0
    for rank in range(lists.shape[1]):
        size, start = lists[SIZE, rank], lists[START, rank]
        for at in range(size):
            target[end + at] = source[start + at]
        lists[START, rank], lists[ROOM, rank] = end, size + size // 2
        end += lists[ROOM, rank]
    lists[_POOL, 1] = end
