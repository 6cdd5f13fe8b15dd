"""Computes ranks within one range of a large branch, given the ranks of external parents. Pure numpy.

Pure numpy, as the kernel.

A giant's commits are cut into ranges that fit a task each. A commit is known by a number whose upper bits are its range.
What a range acks elsewhere are its *externals*; the ranks of these are all that it needs of other ranges, and the
checkpoints that its own commits lead to are all that these need to hear back. `analytics.order.large_branches` moves both.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from analytics.order import kernel
from analytics.order.kernel import Ints

RANGE_SHIFT: Final = 33
"""`monotonically_increasing_id` puts the partition above the lower 33 bits."""

UNKNOWN: Final = -1
"""In place of a rank. What stays unknown in the end lies on a cycle or depends on one."""

MISSING: Final = -1
NO_ACK: Final = -2
"""In place of a cause's number: there is none of that id; the commit acks nothing."""


@dataclass(frozen=True, slots=True)
class CommitRange:
    """One range. Commit i acks `causes[offsets[i]:offsets[i + 1]]`: rows below `len(nums)`, externals from there on."""

    nums: Ints  # (n,) ascending
    hints: Ints  # (n,) what the ranges were made by
    is_missing: NDArray[np.bool_]  # (n,) whether the commit acks what is not there
    offsets: Ints  # (n + 1,)
    causes: Ints  # (m,)
    externals: Ints  # (k,) numbers, ascending, each once

    @property
    def range(self) -> int:
        """Number of this range."""
        return int(self.nums[0]) >> RANGE_SHIFT


def build_block(effects: Ints, causes: Ints, hints: Ints) -> CommitRange:
    """Return a range from its acks as numbers of commits, in any order; a commit without acks has one row with NO_ACK."""
    order = np.argsort(effects, kind="stable")
    effects, causes, hints = effects[order], causes[order], hints[order]
    nums, first = np.unique(effects, return_index=True)
    rows = np.searchsorted(nums, effects)
    is_missing = np.zeros(len(nums), np.bool_)
    is_missing[rows[causes == MISSING]] = True
    is_there = causes >= 0
    rows, causes = rows[is_there], causes[is_there]
    is_external = causes >> RANGE_SHIFT != nums[0] >> RANGE_SHIFT
    externals = np.unique(causes[is_external])
    local = np.where(
        is_external, len(nums) + np.searchsorted(externals, causes), np.searchsorted(nums, causes)
    )
    offsets = np.searchsorted(rows, np.arange(len(nums) + 1))
    return CommitRange(nums, hints[first], is_missing, offsets, local, externals)


def rank_block(block: CommitRange, known: Ints) -> Ints:
    """Ranks, as far as these ranks of the externals determine them; NO_RANK and more behind a missing cause."""
    count = len(block.nums)
    effects = np.repeat(np.arange(count), np.diff(block.offsets))
    is_external = block.causes >= count
    outside, at = effects[is_external], block.causes[is_external] - count
    initial = np.zeros(count, np.int64)
    initial[block.is_missing] = kernel.NO_RANK
    is_known = known[at] != UNKNOWN
    np.maximum.at(initial, outside[is_known], known[at[is_known]] + 1)
    is_blocked = np.zeros(count, np.bool_)
    is_blocked[outside[~is_known]] = True
    ranks, is_ready = kernel.longest_paths(
        effects[~is_external], block.causes[~is_external], initial, is_blocked
    )
    return np.where(is_ready, ranks, UNKNOWN)


def lead_block(block: CommitRange, own: dict[int, int]) -> tuple[Sequence[int], Sequence[int]]:
    """Checkpoints, as bits, that each commit and each external leads to; `own` are those of single commits by number.

    The hints must be ranks.
    """
    count = len(block.nums)
    bits = [0] * (count + len(block.externals))
    for num, checkpoints in own.items():
        bits[int(np.searchsorted(block.nums, num))] |= checkpoints
    kernel.hand_back(np.argsort(-block.hints, kind="stable"), block.offsets, block.causes, bits)
    return bits[:count], bits[count:]
