"""Computes ranks and the timeline's canonical order of many branches in one call (numpy). See docs/understanding/order.md.

Pure numpy on flat columns; knows neither Spark nor files. Ranks are computed from acks alone. A commit that acks what
is not there, or that lies on a cycle, has no rank, and neither has anything that depends on it: these get a fault
instead.

How it is fast without compiled code of our own:

- (tangle, id) is one 40-byte key. Keys are sorted once, and the final order is a stable sort of ranks on top. Acks are
  looked up by a binary search of their first 8 bytes, then compared whole: ids made to collide only cost time.
- Exports stand in acceptance order, causes before effects. Where that holds, ranks are one pass without a queue. A pass
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
"""Depends on a commit with a missing cause."""
CYCLE: Final = 3
"""Lies on a cycle (a commit that acks itself is one), or depends on one that does."""
VOID: Final = 4
"""Marked so: it gives others their rank, and has no place itself."""

UNMARKED: Final = 0
MARKED_VOID: Final = 1
MARKED_CHECKPOINT: Final = 2

NO_RANK: Final = 1 << 62
"""Added to, and compared with, like a rank: whatever depends on a commit without a rank then has none, at no cost."""

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
    keys = _keys(tangles.tangle, tangles.commit_ids)
    by_key = np.argsort(keys, kind="stable")
    ack_counts = np.diff(tangles.ack_offsets)
    causes = _find_causes(tangles, keys, by_key, ack_counts)

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

    # by_key is sorted by id within each tangle, and lexsort is stable: equal ranks stay in the order of their ids.
    order = by_key[np.lexsort((ranks[by_key], passed[by_key], tangles.tangle[by_key]))]
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


def _find_causes(tangles: Tangles, keys: NDArray[np.bytes_], by_key: Ints, ack_counts: Ints) -> Ints:
    """Return the row of every ack; the number of rows for an ack that is not there."""
    count = len(keys)
    in_order = keys[by_key]
    if count > 1 and bool((in_order[1:] == in_order[:-1]).any()):
        raise ValueError("a commit id stands twice in a tangle")
    if count == 0 or len(tangles.acks) == 0:
        return np.full(len(tangles.acks), count, np.int64)
    wanted = _keys(np.repeat(tangles.tangle, ack_counts), tangles.acks)
    # Searching by the first eight bytes as a number is several times faster; only a match of the whole key counts, and
    # what did not match so (missing, or one of several with this prefix) is searched for by the whole key.
    starts = prefixes(tangles.commit_ids)
    by_prefix = np.argsort(starts, kind="stable")
    at = np.searchsorted(starts[by_prefix], prefixes(tangles.acks))
    causes: Ints = by_prefix[np.minimum(at, count - 1)]
    others = np.flatnonzero(keys[causes] != wanted)
    if len(others) > 0:
        at = np.minimum(np.searchsorted(in_order, wanted[others]), count - 1)
        causes[others] = np.where(in_order[at] == wanted[others], by_key[at], count)
    return causes


def prefixes(ids: Bytes) -> NDArray[np.uint64]:
    """Return the first eight bytes of each id as a number, by which ids are searched several times faster than whole."""
    return np.ascontiguousarray(ids[:, :8]).view(np.uint64).reshape(-1)


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
    """Give every row's causes the bits that it has itself. `rows` are those to do, effects before causes."""
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


def _positions(tangle: Ints) -> Ints:
    """Index of every row in its own run of equal tangles."""
    index = np.arange(len(tangle))
    is_first = np.ones(len(tangle), np.bool_)
    is_first[1:] = tangle[1:] != tangle[:-1]
    return index - np.maximum.accumulate(np.where(is_first, index, 0))
