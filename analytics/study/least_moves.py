"""Counts the fewest moves after one arrival (longest increasing subsequence), as compiled code.

Only commits whose rank has grown can have changed places with anything. What stays neighbours, in either order, is one
block, so the search (for a heaviest increasing run of blocks) takes k log k for k blocks, however many commits these
are. Compiled; knows ranks and names, and nothing of causes.
"""

from typing import Final

import numpy as np

from analytics.study.compiled import Entries, Numbers, Table, compiled
from analytics.study.rank_lists import COMMIT_BITS, COMMIT_MASK, SIZE, START, pool_of

# Rows of the table of changes: the commits whose rank an arrival has changed, and what is worked out of them.
_COMMIT: Final = 0  # those, as they are found; then in today's order
_CHANGED_AT: Final = 1  # by commit: the last arrival that changed its rank
_TOUCHED_AT: Final = 2  # by rank: the last arrival that took something out of it or put something in
_FIRST: Final = 3  # by old rank: what left it, linked lists by name
_NEXT: Final = 4  # by commit
_NAME: Final = 5  # by commit
_OLD_INDEX: Final = 6  # by commit: how many of the changed stood before it
_OLD_BEFORE: Final = 7  # of the changed in their old order: how many unchanged stand before it
_NEW_BEFORE: Final = 8  # the same, in today's order
_ROWS: Final = 9

# Rows of the table of blocks.
_OLD: Final = 0  # old place of each block, in today's order
_BLOCK_SIZE: Final = 1
_RUN_END: Final = 2  # old places at which increasing runs end, increasing
_RUN_SIZE: Final = 3  # the most that such a run holds, increasing too

_NONE: Final = -1


@compiled
def empty_changes(count: int) -> tuple[Table, Table]:
    """Return both tables, for `count` commits: 84 bytes each."""
    changes = np.full((_ROWS, count + 1), _NONE, np.int32)
    return changes, np.empty((4, 3 * count + 1), np.int32)


@compiled
def note_change(changes: Table, arrived: int, commit: int, rank: int, entry: int, changed: int) -> int:
    """Note that a commit is about to leave its rank, and return how many have. Quick where the last name of a rank comes
    first.
    """
    if changes[_CHANGED_AT, commit] == arrived:
        return changed
    changes[_CHANGED_AT, commit] = arrived
    changes[_COMMIT, changed] = commit
    changes[_NAME, commit] = name = entry >> COMMIT_BITS
    _touch(changes, rank, arrived)
    before, after = _NONE, changes[_FIRST, rank]
    while after != _NONE and changes[_NAME, after] < name:
        before, after = after, changes[_NEXT, after]
    changes[_NEXT, commit] = after
    if before == _NONE:
        changes[_FIRST, rank] = commit
    else:
        changes[_NEXT, before] = commit
    return changed + 1


@compiled
def least_moves(
    changes: Table,
    blocks: Table,
    lists: Table,
    pools: Entries,
    ranks: Numbers,
    arrived: int,
    low: int,
    changed: int,
) -> int:
    """Count the moves that the changes need, besides the insert of the arrival. Nothing below the rank `low` changed."""
    high = low
    _touch(changes, ranks[arrived], arrived)
    for at in range(changed):
        rank = ranks[changes[_COMMIT, at]]
        high = max(high, rank)
        _touch(changes, rank, arrived)
    unchanged = _compare(changes, lists, pools, arrived, low, high)
    count = _cut(changes, blocks, changed, unchanged)
    if count == 1:
        return 0
    return changed + unchanged - _heaviest_run(blocks, count)


@compiled
def _touch(changes: Table, rank: int, arrived: int) -> None:
    if changes[_TOUCHED_AT, rank] != arrived:
        changes[_TOUCHED_AT, rank] = arrived
        changes[_FIRST, rank] = _NONE


@compiled
def _compare(changes: Table, lists: Table, pools: Entries, arrived: int, low: int, high: int) -> int:
    """Find where the changed stood and stand, and put them into today's order; gives how many others are between."""
    pool = pool_of(lists, pools)
    unchanged = olds = news = 0
    for rank in range(low, high + 1):
        size = lists[SIZE, rank]
        if changes[_TOUCHED_AT, rank] != arrived:
            unchanged += size
            continue
        old, start = changes[_FIRST, rank], lists[START, rank]
        for at in range(start, start + size):
            commit = pool[at] & COMMIT_MASK
            if commit == arrived:
                continue
            if changes[_CHANGED_AT, commit] == arrived:
                changes[_COMMIT, news] = commit
                changes[_NEW_BEFORE, news] = unchanged
                news += 1
                continue
            while old != _NONE and changes[_NAME, old] < pool[at] >> COMMIT_BITS:
                changes[_OLD_INDEX, old] = olds
                changes[_OLD_BEFORE, olds] = unchanged
                olds += 1
                old = changes[_NEXT, old]
            unchanged += 1
        while old != _NONE:
            changes[_OLD_INDEX, old] = olds
            changes[_OLD_BEFORE, olds] = unchanged
            olds += 1
            old = changes[_NEXT, old]
    return unchanged


@compiled
def _cut(changes: Table, blocks: Table, changed: int, unchanged: int) -> int:
    """Cut today's order into blocks whose commits are neighbours in the old order too; return their number."""
    count = done = olds = 0
    for new in range(changed + 1):
        until = unchanged if new == changed else changes[_NEW_BEFORE, new]
        while done < until:
            while olds < changed and changes[_OLD_BEFORE, olds] <= done:
                olds += 1
            end = min(until, changes[_OLD_BEFORE, olds]) if olds < changed else until
            count = _add_block(blocks, count, done + olds, end - done)
            done = end
        if new < changed:
            index = changes[_OLD_INDEX, changes[_COMMIT, new]]
            count = _add_block(blocks, count, changes[_OLD_BEFORE, index] + index, 1)
    return count


@compiled
def _add_block(blocks: Table, count: int, old: int, size: int) -> int:
    if count and blocks[_OLD, count - 1] + blocks[_BLOCK_SIZE, count - 1] == old:
        blocks[_BLOCK_SIZE, count - 1] += size
        return count
    blocks[_OLD, count], blocks[_BLOCK_SIZE, count] = old, size
    return count + 1


@compiled
def _heaviest_run(blocks: Table, count: int) -> int:
    """Return the most that blocks hold whose old places increase: patience sorting, with weights."""
    runs = 0
    for block in range(count):
        old, size = blocks[_OLD, block], blocks[_BLOCK_SIZE, block]
        at, end = 0, runs
        while at < end:
            middle = (at + end) // 2
            if blocks[_RUN_END, middle] < old:
                at = middle + 1
            else:
                end = middle
        if at:
            size += blocks[_RUN_SIZE, at - 1]
        beaten = at  # they end later, and hold no more
        while beaten < runs and blocks[_RUN_SIZE, beaten] <= size:
            beaten += 1
        if beaten == at:
            for later in range(runs, at, -1):
                blocks[_RUN_END, later] = blocks[_RUN_END, later - 1]
                blocks[_RUN_SIZE, later] = blocks[_RUN_SIZE, later - 1]
            runs += 1
        elif beaten > at + 1:
            gone = beaten - at - 1
            for later in range(beaten, runs):
                blocks[_RUN_END, later - gone] = blocks[_RUN_END, later]
                blocks[_RUN_SIZE, later - gone] = blocks[_RUN_SIZE, later]
            runs -= gone
        blocks[_RUN_END, at], blocks[_RUN_SIZE, at] = old, size
    return int(blocks[_RUN_SIZE, runs - 1])
