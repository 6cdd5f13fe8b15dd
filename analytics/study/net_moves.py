"""Computes the fewest moves from one list order to another; no intermediate list breaks an order that both keep.

What need not move is a longest increasing run of the old places, in the new order; everything else moves once. Items
that stay neighbours are one block, so that the search (a heaviest increasing run of blocks) takes k log k for k blocks,
however long these are.

**The order of the moves.** First what moves to the right, from the right end on; then what moves to the left, from the
left end on. Then at every step, each two items stand as in the old list or as in the new one: an order that both lists
keep, such as causes before effects, holds in between.
"""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Hashable, Sequence
from itertools import compress, count, islice
from operator import ne, sub
from typing import NamedTuple, TypeVar

Item = TypeVar("Item", bound=Hashable)


class _Mover(NamedTuple):
    """Places in the two lists, and how many of the staying items stand before them."""

    old: int
    new: int
    stay_before_old: int
    stay_before_new: int


def net_moves(before: Sequence[Item], after: Sequence[Item]) -> list[tuple[Item, int, int]]:
    """(item, from, to) in order: taken out at `from` as the list is then, put in at `to` of the list without it.

    The lists hold the same items, each once. O(n) for n items, in C, and O(k log k) for what moves.
    """
    places = dict(zip(before, range(len(before)), strict=True))
    shifts = list(map(sub, map(places.__getitem__, after), count()))
    starts = [0, *compress(count(1), map(ne, shifts, islice(shifts, 1, None)))]
    if len(starts) == 1:
        return []
    ends = [*starts[1:], len(after)]
    # Place in the old list, in the new one, length.
    blocks = [(new + shifts[new], new, end - new) for new, end in zip(starts, ends, strict=True)]
    staying = _heaviest_run(blocks)
    return [(after[mover.new], left, put) for mover, left, put in _in_order(_movers(blocks, staying))]


def _heaviest_run(blocks: list[tuple[int, int, int]]) -> set[int]:
    """Numbers of blocks whose old places increase, and whose lengths add up to the most."""
    ends: list[int] = []  # old places, increasing, and with them the best weight of a run that ends there
    weights: list[int] = []
    numbers: list[int] = []
    earlier: list[int] = []
    for number, (old, _, length) in enumerate(blocks):
        at = bisect_left(ends, old)
        weight = length + (weights[at - 1] if at else 0)
        earlier.append(numbers[at - 1] if at else -1)
        beaten = bisect_right(weights, weight, lo=at)  # they end later, and weigh no more
        ends[at:beaten], weights[at:beaten], numbers[at:beaten] = [old], [weight], [number]
    staying = set[int]()
    number = numbers[-1]
    while number >= 0:
        staying.add(number)
        number = earlier[number]
    return staying


def _movers(blocks: list[tuple[int, int, int]], staying: set[int]) -> list[_Mover]:
    """Return what moves, by its place in the new list."""
    moving = [block for number, block in enumerate(blocks) if number not in staying]
    stay_before_old: list[int] = []
    moved = 0
    by_old = sorted(moving)
    for old, _, length in by_old:
        stay_before_old.append(old - moved)
        moved += length
    stays = dict(zip(by_old, stay_before_old, strict=True))
    movers: list[_Mover] = []
    for old, new, length in moving:
        stay_before_new = new - len(movers)
        stay_before = stays[old, new, length]
        movers += [_Mover(old + at, new + at, stay_before, stay_before_new) for at in range(length)]
    return movers


def _in_order(movers: list[_Mover]) -> list[tuple[_Mover, int, int]]:
    """Return each mover with the place that it leaves and the one where it is put, as the list is then.

    None has the same staying items before it in both lists: it could have stayed too. Between two staying items stand,
    at any time, those that have not moved yet first, then those that moved right.
    """
    rights = [mover for mover in movers if mover.stay_before_new > mover.stay_before_old]
    lefts = [mover for mover in movers if mover.stay_before_new < mover.stay_before_old]
    assert len(rights) + len(lefts) == len(movers), "a longest run was not the longest"
    steps: list[tuple[_Mover, int, int]] = []

    lefts_stay_before = sorted(mover.stay_before_old for mover in lefts)
    done: list[int] = []  # old places of those that have moved, in this direction
    for mover in reversed(rights):
        leaves = mover.old - bisect_left(done, mover.old)
        unmoved_rights = len(rights) - len(done) - 1
        put = mover.stay_before_new + bisect_right(lefts_stay_before, mover.stay_before_new) + unmoved_rights
        steps.append((mover, leaves, put))
        insort(done, mover.old)

    rights_stay_before = [mover.stay_before_new for mover in rights]
    lefts_old = sorted(mover.old for mover in lefts)
    done = []
    for mover in lefts:
        unmoved_before = bisect_left(lefts_old, mover.old) - bisect_left(done, mover.old)
        leaves = (
            mover.stay_before_old
            + len(done)
            + unmoved_before
            + bisect_left(rights_stay_before, mover.stay_before_old)
        )
        steps.append((mover, leaves, mover.new))
        insort(done, mover.old)
    return steps
