"""Simulates ScuttleSort: shows commits at once, moves them when parents arrive, and counts edits.

The reference's edits are counted here as ranks rise, those that would do in `analytics.study.least_moves`. Compiled; on
commits that are numbered by delivery, so that those delivered are the numbers up to now.

The published algorithm keeps a list and the index of every entry in it. Between two late causes that list is sorted by
(rank, name), so here it is a sorted list of names per rank. A move is counted if something stands between the place
a commit has and the one it gets; its neighbours, not its index, tell that.

All that rises is found first, from low ranks to high, and then moved from high to low, as the algorithm does. What
rises from a rank has left it when lower ones are moved, so one walk over the ranks does: it takes out what rises, and
knows how many of the rank stay behind it, and which rank above is the lowest that holds anything.
"""

from typing import Final

import numpy as np

from analytics.study.compiled import Entries, Numbers, Table, compiled
from analytics.study.least_moves import empty_changes, least_moves, note_change
from analytics.study.rank_lists import (
    COMMIT_BITS,
    COMMIT_MASK,
    SIZE,
    START,
    empty_lists,
    insert,
    pool_of,
    remove,
)

# Rows of the table of a timeline.
NAME: Final = 0  # by commit
RANK: Final = 1  # by commit
_NEW_RANK: Final = 2  # by commit, of what rises; else 0
_RISING: Final = 3  # what rises, a list
_FIRST: Final = 4  # by old rank: what rises from it, linked lists
_NEXT: Final = 5  # by commit
_ROWS: Final = 6

_NONE: Final = -1
_FAR: Final = 1 << 40
"""Above every rank."""


@compiled
def count_eager(
    cause_starts: Numbers, causes: Numbers, effect_starts: Numbers, effects: Numbers, names: Numbers
) -> tuple[int, int, int]:
    """Edits that ScuttleSort sends, edits that are needed, and how often a rank grew. 230 bytes a commit.

    Causes of commit c are `causes[cause_starts[c] : cause_starts[c + 1]]`; its effects likewise, as they are delivered.
    """
    count = len(names)
    timeline = np.zeros((_ROWS, count + 1), np.int32)
    timeline[NAME, :count] = names
    timeline[_FIRST] = _NONE
    lists, pools = empty_lists(count)
    changes, blocks = empty_changes(count)
    at_rank = np.empty(count, np.int64)
    sent = needed = ranks_changed = 0
    for arrived in range(count):
        rank = 0
        for slot in range(cause_starts[arrived], cause_starts[arrived + 1]):
            if causes[slot] < arrived:
                rank = max(rank, timeline[RANK, causes[slot]] + 1)
        timeline[RANK, arrived] = rank
        insert(lists, pools, rank, _entry_of(timeline, arrived))

        last = arrived  # of the moves in a row for one commit one is sent, and none right after its insert
        sent += 1
        changed, low = 0, rank
        for slot in range(effect_starts[arrived], effect_starts[arrived + 1]):
            effect = effects[slot]
            if effect > arrived:
                break
            if timeline[RANK, effect] > rank:
                continue
            low = min(low, timeline[RANK, effect])
            top, rising = _find_rising(timeline, effect_starts, effects, arrived, effect)
            ranks_changed += rising
            moves, last, changed = _raise(
                timeline, lists, pools, changes, at_rank, arrived, effect, top, last, changed
            )
            sent += moves
            for at in range(rising):
                commit = timeline[_RISING, at]
                timeline[RANK, commit], timeline[_NEW_RANK, commit] = timeline[_NEW_RANK, commit], 0
        needed += 1
        if changed:
            needed += least_moves(changes, blocks, lists, pools, timeline[RANK], arrived, low, changed)
    return sent, needed, ranks_changed


@compiled
def _entry_of(timeline: Table, commit: int) -> int:
    return int(np.int64(timeline[NAME, commit]) << COMMIT_BITS | commit)


@compiled
def _find_rising(
    timeline: Table, effect_starts: Numbers, effects: Numbers, arrived: int, effect: int
) -> tuple[int, int]:
    """List all that rises if `effect` stands behind `arrived`, each settled once: its highest old rank, and how many."""
    old_rank = timeline[RANK, effect]
    timeline[_NEW_RANK, effect] = timeline[RANK, arrived] + 1
    timeline[_FIRST, old_rank] = effect
    timeline[_NEXT, effect] = _NONE
    found, settled = 1, 0
    while True:
        commit = timeline[_FIRST, old_rank]
        while commit != _NONE:
            timeline[_RISING, settled] = commit
            settled += 1
            rank = timeline[_NEW_RANK, commit] + 1
            for slot in range(effect_starts[commit], effect_starts[commit + 1]):
                later = effects[slot]
                if later > arrived:
                    break
                rank_before = timeline[RANK, later]
                if rank_before < rank:
                    known = timeline[_NEW_RANK, later]
                    if known == 0:
                        timeline[_NEXT, later] = timeline[_FIRST, rank_before]
                        timeline[_FIRST, rank_before] = later
                        found += 1
                    if known < rank:
                        timeline[_NEW_RANK, later] = rank
            commit = timeline[_NEXT, commit]
        if settled == found:
            return old_rank, found
        old_rank += 1


@compiled
def _raise(
    timeline: Table,
    lists: Table,
    pools: Entries,
    changes: Table,
    here: Entries,
    cause: int,
    effect: int,
    top: int,
    last: int,
    changed: int,
) -> tuple[int, int, int]:
    """Move all that rises, from the last to the first: moves sent, the last commit moved, commits changed by now.

    `here` is room for a copy of a rank.
    """
    low, name, effect_entry = timeline[RANK, effect], timeline[NAME, effect], _entry_of(timeline, effect)
    sent = 0
    remove(lists, pools, low, effect_entry)
    place_rank, place, is_moved = _first_move(timeline, lists, pools, effect, cause)
    if is_moved and last != effect:
        sent, last = 1, effect
    rank = max(top, place_rank)
    lowest = rank + 1 if lists[SIZE, rank + 1] else _FAR  # rank above that holds anything
    while rank >= low:
        has_effect = rank == place_rank
        if has_effect or timeline[_FIRST, rank] != _NONE:
            timeline[_FIRST, rank] = _NONE
            size, start, pool = lists[SIZE, rank], lists[START, rank], pool_of(lists, pools)
            for at in range(size):
                here[at] = pool[start + at]
            stay = size  # what stays is gathered at the end of `here`
            stays_effect = False
            at = size - 1
            while at >= 0 or has_effect:
                if has_effect and (at < 0 or 2 * (here[at] >> COMMIT_BITS) < place):
                    has_effect = False
                    entry, commit = effect_entry, effect
                else:
                    entry = here[at]
                    commit = entry & COMMIT_MASK
                    at -= 1
                new_rank = timeline[_NEW_RANK, commit]
                if new_rank == 0:
                    stay -= 1
                    here[stay] = entry
                    continue
                changed = note_change(changes, cause, commit, timeline[RANK, commit], entry, changed)
                if new_rank == rank:  # the effect alone, which was moved to this rank before
                    stays_effect = True
                    is_passed = False
                    for other in range(stay, size):
                        is_passed |= place < 2 * (here[other] >> COMMIT_BITS) < 2 * name
                else:
                    is_passed = insert(lists, pools, new_rank, entry) or stay < size or lowest < new_rank
                    lowest = min(lowest, new_rank)
                if is_passed and last != commit:
                    sent, last = sent + 1, commit
            start, pool = lists[START, rank], pool_of(lists, pools)
            for at in range(size - stay):
                pool[start + at] = here[stay + at]
            lists[SIZE, rank] = size - stay
            if stays_effect:
                insert(lists, pools, rank, effect_entry)
        if lists[SIZE, rank]:
            lowest = rank
        rank -= 1
    return sent, last, changed


@compiled
def _first_move(
    timeline: Table, lists: Table, pools: Entries, effect: int, cause: int
) -> tuple[int, int, bool]:
    """Return the place for the effect, which is taken out, before the entries behind it have made way.

    Gives the rank where it then stands, twice the name (odd: between two names), and whether it has moved.
    """
    rank, name, cause_name = timeline[RANK, effect], timeline[NAME, effect], timeline[NAME, cause]
    if rank < timeline[RANK, cause] or name < cause_name:
        return timeline[RANK, cause], 2 * cause_name + 1, True
    # It stands behind the cause already, at the same rank, and rises until something of its new rank is in the way.
    pool, start, size = pool_of(lists, pools), lists[START, rank], lists[SIZE, rank]
    has_moved = size > 0 and pool[start + size - 1] >> COMMIT_BITS > name
    blocked_by = np.int64(name)
    start = lists[START, rank + 1]
    for entry in pool[start : start + lists[SIZE, rank + 1]]:
        other = entry >> COMMIT_BITS
        if other > name or timeline[_NEW_RANK, entry & COMMIT_MASK]:
            blocked_by = other
            break
        has_moved = True
    if not has_moved:
        return rank, 2 * name, False
    return rank + 1, int(2 * blocked_by - 1), True
