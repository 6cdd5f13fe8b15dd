"""Computes ranks and the timeline's canonical order of many branches in one call (numpy). See docs/understanding/order.md.

Pure numpy on flat columns; knows neither Spark nor files. Ranks follow from acks alone. A commit that acks what
is not there, or that lies on a cycle, has no rank, and neither has anything that depends on it: these get a fault
instead.

How it is fast without compiled code of our own:

- Ids are sorted, and acks looked up, by their first 8 bytes as a number; whole ids are compared after. Only where two
  numbers are alike, whole keys of 40 bytes (tangle, id) are sorted: ids made to collide only cost time.
- Where the ranks that an export states solve the equations of ranks, they are the ranks: that is a few calls of numpy.
- Else exports stand in acceptance order, causes before effects. Where that holds, ranks are one pass without a queue. A pass
  level by level in numpy would cost one call per rank, hopeless for deep tangles; the plain loop costs about
  0.2 us a commit.
- Where it does not hold (exports of several nodes merged, or a false one), Kahn's algorithm does it.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

ID_SIZE: Final = 32

NO_FAULT: Final = 0
MISSING_CAUSE: Final = 1
"""Acks a commit that is not in its tangle here."""
BEHIND_MISSING: Final = 2
"""Fault of a commit that depends on one with a missing cause."""
CYCLE: Final = 3
"""Fault of a commit that lies on a cycle (also one that acks itself), or depends on such a commit."""
VOID: Final = 4
"""Marked so: it gives others their rank, and has no place itself."""

UNMARKED: Final = 0
MARKED_VOID: Final = 1
MARKED_CHECKPOINT: Final = 2

NO_RANK: Final = 1 << 62
"""Added to, and compared with, like a rank: whatever depends on a commit without a rank then has none, at no cost."""

_SPREAD: Final = np.uint64(0x9E3779B97F4A7C15)
"""Odd, so that no two tangles have the same product."""

Ints = NDArray[np.int64]
Bytes = NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class Tangles:
    """Commits of any number of tangles as columns; commit i acks `acks[ack_offsets[i]:ack_offsets[i + 1]]`."""

    tangle: Ints  # (n,) which tangle, any number from 0
    commit_ids: Bytes  # (n, 32), unique in a tangle
    ack_offsets: Ints  # (n + 1,)
    acks: Bytes  # (m, 32)
    sequence: Ints  # (n,) acceptance order: a hint that makes it fast, never believed
    marks: NDArray[np.int8]  # (n,) UNMARKED, MARKED_VOID or MARKED_CHECKPOINT
    stated: Ints | None = (
        None  # (n,) ranks to try: taken where they solve the equations of all rows, else not looked at
    )


@dataclass(frozen=True, slots=True)
class Linearization:
    """The rows of a `Tangles` in order: by tangle, checkpoints passed, rank, id. Those with a fault stand last."""

    row: Ints  # index into the input
    passed: Ints  # checkpoints; -1 with a fault
    rank: Ints  # -1 with a fault
    position: Ints  # index in the tangle's timeline; -1 with a fault
    fault: NDArray[np.int8]
    causes: Ints  # row of every ack in the input; the number of rows for one that is not there


def linearize_tangles(tangles: Tangles) -> Linearization:
    """Order all tangles. Raises ValueError if an id stands twice in a tangle or a column has the wrong length."""
    count = len(tangles.tangle)
    _check_shape(tangles, count)
    by_sequence = np.argsort(tangles.sequence, kind="stable")
    ack_counts = np.diff(tangles.ack_offsets)
    causes = _find_causes(tangles, np.repeat(tangles.tangle, ack_counts))
    if tangles.stated is not None and _are_ranks(tangles.stated, causes, tangles.ack_offsets, ack_counts):
        ranks, is_cyclic = tangles.stated, np.zeros(count, np.bool_)
    else:
        ranks, is_cyclic = _ranks(causes, tangles.ack_offsets, ack_counts, by_sequence)
    has_missing = np.zeros(count, np.bool_)
    has_missing[np.repeat(np.arange(count), ack_counts)[causes == count]] = True
    fault = np.where(ranks < NO_RANK, NO_FAULT, BEHIND_MISSING).astype(np.int8)
    fault[is_cyclic] = CYCLE
    fault[has_missing] = MISSING_CAUSE
    passed = _passed(tangles, causes, ranks)
    is_void = (fault == NO_FAULT) & (tangles.marks == MARKED_VOID)
    fault[is_void] = VOID
    passed[fault != NO_FAULT] = NO_RANK  # behind everything that has a place

    order = sort_rows(tangles.tangle, passed, ranks, tangles.commit_ids)
    position = _positions(tangles.tangle[order])
    is_ordered = fault[order] == NO_FAULT
    return Linearization(
        row=order,
        passed=np.where(is_ordered, passed[order], -1),
        rank=np.where(is_ordered, ranks[order], -1),
        position=np.where(is_ordered, position, -1),
        fault=fault[order],
        causes=causes,
    )


def _check_shape(tangles: Tangles, count: int) -> None:
    lengths = {
        len(tangles.commit_ids),
        len(tangles.sequence),
        len(tangles.marks),
        len(tangles.ack_offsets) - 1,
    }
    if lengths != {count}:
        raise ValueError("columns of a tangle differ in length")
    if tangles.commit_ids.shape[1:] != (ID_SIZE,) or tangles.acks.shape[1:] != (ID_SIZE,):
        raise ValueError(f"ids are not {ID_SIZE} bytes")
    if tangles.ack_offsets[0] != 0 or tangles.ack_offsets[-1] != len(tangles.acks):
        raise ValueError("offsets of acks do not span the acks")


def _keys(tangle: Ints, ids: Bytes) -> NDArray[np.bytes_]:
    """(tangle, id) as one string. Numpy drops zeros at a string's end; all being of one length, none are confused."""
    keys = np.empty((len(ids), 8 + ID_SIZE), np.uint8)
    keys[:, :8] = tangle.astype(">u8").view(np.uint8).reshape(-1, 8)
    keys[:, 8:] = ids
    return keys.view(f"S{8 + ID_SIZE}").reshape(-1)


def _find_causes(tangles: Tangles, tangle_of_ack: Ints) -> Ints:
    """Return the row of every ack; the number of rows for an ack that is not there."""
    count = len(tangles.tangle)
    starts = _starts(tangles.tangle, tangles.commit_ids)
    by_start = np.argsort(starts)
    in_order = starts[by_start]
    if bool((in_order[1:] == in_order[:-1]).any()):
        return _find_causes_by_key(tangles, tangle_of_ack)
    if count == 0 or len(tangles.acks) == 0:
        return np.full(len(tangles.acks), count, np.int64)
    # Each number is there once: its row is the only one that an ack can mean.
    causes: Ints = by_start[search_near(in_order, _starts(tangle_of_ack, tangles.acks))]
    is_it = (tangles.tangle[causes] == tangle_of_ack) & are_same(tangles.commit_ids[causes], tangles.acks)
    return np.where(is_it, causes, count)


def _find_causes_by_key(tangles: Tangles, tangle_of_ack: Ints) -> Ints:
    """Return what `_find_causes` does, by whole keys."""
    count = len(tangles.tangle)
    keys = _keys(tangles.tangle, tangles.commit_ids)
    by_key = np.argsort(keys)
    in_order = keys[by_key]
    if bool((in_order[1:] == in_order[:-1]).any()):
        raise ValueError("a commit id stands twice in a tangle")
    wanted = _keys(tangle_of_ack, tangles.acks)
    at = np.minimum(np.searchsorted(in_order, wanted), count - 1)
    return np.where(in_order[at] == wanted, by_key[at], count)


def _starts(tangle: Ints, ids: Bytes) -> NDArray[np.uint64]:
    """Return a number for each id, another one where the same id stands in another tangle."""
    return prefixes(ids) ^ (tangle.astype(np.uint64) * _SPREAD)


def search_near(in_order: NDArray[np.uint64], wanted: NDArray[np.uint64]) -> Ints:
    """Return where each wanted number stands, or a place nearby where there is none.

    They are searched in their order: memory is then read from one end to the other, which takes a third of the time.
    """
    order = np.argsort(wanted)
    at = np.empty(len(wanted), np.int64)
    at[order] = np.searchsorted(in_order, wanted[order])
    return np.minimum(at, len(in_order) - 1)


def are_same(ids: Bytes, others: Bytes) -> NDArray[np.bool_]:
    """Return True for each row where two ids are equal, compared in words of 8 bytes."""
    left, right = (np.ascontiguousarray(rows).view(np.uint64) for rows in (ids, others))
    is_same: NDArray[np.bool_] = (left == right).all(axis=1)
    return is_same


def prefixes(ids: Bytes) -> NDArray[np.uint64]:
    """Return the first eight bytes of each id as a number, by which ids are searched several times faster than whole."""
    return np.ascontiguousarray(ids[:, :8]).view(np.uint64).reshape(-1)


def _are_ranks(stated: Ints, causes: Ints, offsets: Ints, ack_counts: Ints) -> bool:
    """Return True if no cause is missing, and each stated rank is 1 + the largest of the causes, 0 without causes.

    These equations have one solution, and none on a cycle: `analytics.order.large_branches`.
    """
    if bool((causes == len(stated)).any() or (stated < 0).any()):
        return False
    highest = np.full(len(stated), -1, np.int64)
    has_causes = ack_counts > 0
    if len(causes):
        highest[has_causes] = np.maximum.reduceat(stated[causes], offsets[:-1][has_causes])
    return bool((stated == highest + 1).all())


def _ranks(
    causes: Ints, offsets: Ints, ack_counts: Ints, by_sequence: Ints
) -> tuple[Ints, NDArray[np.bool_]]:
    """Rank of every row (at least NO_RANK where it has none), and which rows lie on or behind a cycle."""
    count = len(by_sequence)
    step = np.empty(count + 1, np.int64)
    step[by_sequence] = np.arange(count)
    step[count] = -1  # a missing cause holds nothing up
    if bool((step[causes] < np.repeat(step[:count], ack_counts)).all()):
        return _ranks_in_order(causes, offsets, by_sequence), np.zeros(count, np.bool_)
    return _ranks_by_kahn(causes, offsets, ack_counts)


def _ranks_in_order(causes: Ints, offsets: Ints, by_sequence: Ints) -> Ints:
    count = len(by_sequence)
    ranks = [0] * count + [NO_RANK]
    of = causes.tolist()
    first, last = offsets[:-1][by_sequence].tolist(), offsets[1:][by_sequence].tolist()
    for row, low, high in zip(by_sequence.tolist(), first, last, strict=True):
        if high - low == 1:  # by far the most common, and three times as fast as the general case
            ranks[row] = ranks[of[low]] + 1
        elif high != low:
            ranks[row] = max([ranks[cause] for cause in of[low:high]]) + 1
    return np.array(ranks[:count], np.int64)


def _ranks_by_kahn(causes: Ints, offsets: Ints, ack_counts: Ints) -> tuple[Ints, NDArray[np.bool_]]:
    count = len(ack_counts)
    is_missing = causes == count
    effects = np.repeat(np.arange(count), ack_counts)
    initial = np.zeros(count, np.int64)
    initial[effects[is_missing]] = NO_RANK
    ranks, is_ready = longest_paths(
        effects[~is_missing], causes[~is_missing], initial, np.zeros(count, np.bool_)
    )
    ranks[~is_ready] = NO_RANK
    return ranks, ~is_ready


def longest_paths(
    effects: Ints, causes: Ints, initial: Ints, is_blocked: NDArray[np.bool_]
) -> tuple[Ints, NDArray[np.bool_]]:
    """Compute the rank of every row by Kahn's algorithm, and whether it is known; `effects[i]` acks `causes[i]`.

    A rank is at least the row's `initial`, and one more than that of every cause. It stays unknown for blocked rows, for
    rows on a cycle, and for rows that depend on these.
    """
    count = len(initial)
    # Edges grouped by cause: effect_of[starts[c]:starts[c + 1]] ack c.
    by_cause = np.argsort(causes, kind="stable")
    effect_of = effects[by_cause].tolist()
    starts = np.searchsorted(causes[by_cause], np.arange(count + 1)).tolist()
    waiting = np.bincount(effects, minlength=count) + is_blocked
    ranks, waits_for = initial.tolist(), waiting.tolist()
    ready = np.flatnonzero(waiting == 0).tolist()
    done = 0
    while done < len(ready):
        cause = ready[done]
        done += 1
        next_rank = ranks[cause] + 1
        for effect in effect_of[starts[cause] : starts[cause + 1]]:
            if ranks[effect] < next_rank:
                ranks[effect] = next_rank
            waits_for[effect] -= 1
            if not waits_for[effect]:
                ready.append(effect)
    is_ready = np.zeros(count, np.bool_)
    is_ready[ready] = True
    return np.array(ranks, np.int64), is_ready


def hand_back(rows: Ints, offsets: Ints, causes: Ints, bits: list[int]) -> None:
    """Pass every row's bits on to its causes. `rows` are those to do, effects before causes."""
    starts = offsets.tolist()
    for row in rows.tolist():
        if own := bits[row]:
            for cause in causes[starts[row] : starts[row + 1]].tolist():
                bits[cause] |= own


def _passed(tangles: Tangles, causes: Ints, ranks: Ints) -> Ints:
    """Return how many sets of heads that checkpoints of its tangle merge each row is behind: 0 where there are none.

    A row is not behind heads that it is among or in the past of, or that it merges as a checkpoint itself. Effects before
    causes, each row hands on the sets that it leads to, as the bits of a number.
    """
    passed = np.zeros(len(ranks), np.int64)
    is_checkpoint = (tangles.marks == MARKED_CHECKPOINT) & (ranks < NO_RANK)
    merged: dict[int, dict[tuple[int, ...], int]] = {}
    bits = [0] * (len(ranks) + 1)
    for row in np.flatnonzero(is_checkpoint).tolist():
        known = merged.setdefault(int(tangles.tangle[row]), {})
        heads = causes[tangles.ack_offsets[row] : tangles.ack_offsets[row + 1]].tolist()
        bits[row] = 1 << known.setdefault(tuple(sorted(heads)), len(known))
    if not merged:
        return passed
    rows = np.flatnonzero(np.isin(tangles.tangle, list(merged)) & (ranks < NO_RANK))
    hand_back(rows[np.argsort(-ranks[rows], kind="stable")], tangles.ack_offsets, causes, bits)
    for row in rows.tolist():
        passed[row] = len(merged[int(tangles.tangle[row])]) - bits[row].bit_count()
    return passed


def sort_rows(tangle: Ints, passed: Ints, rank: Ints, commit_ids: Bytes) -> Ints:
    """Return the rows by tangle, checkpoints passed, rank and id."""
    # By the first eight bytes as a number, which is several times faster than by whole ids.
    starts = np.ascontiguousarray(commit_ids[:, :8]).view(">u8").reshape(-1).astype(np.uint64)
    varied = [key for key in (rank, passed, tangle) if bool((key != key[:1]).any())]
    order = np.lexsort((starts, *varied))
    if _has_ties(*(column[order] for column in (tangle, passed, rank, starts))):
        by_id = np.argsort(commit_ids.view(f"S{ID_SIZE}").reshape(-1), kind="stable")
        order = by_id[np.lexsort((rank[by_id], passed[by_id], tangle[by_id]))]
    return order


def _has_ties(*keys: NDArray[np.int64] | NDArray[np.uint64]) -> bool:
    is_same = np.ones(max(len(keys[0]) - 1, 0), np.bool_)
    for key in keys:
        is_same &= key[1:] == key[:-1]
    return bool(is_same.any())


def _positions(tangle: Ints) -> Ints:
    """Index of every row in its own run of equal tangles."""
    index = np.arange(len(tangle))
    is_first = np.ones(len(tangle), np.bool_)
    is_first[1:] = tangle[1:] != tangle[:-1]
    return index - np.maximum.accumulate(np.where(is_first, index, 0))
