"""Decides which snapshots of a set or dict apply to a key, and which commits they make redundant.

A snapshot covers a range of keys of all that it has in its past. Where several cover a key, those count that no other one
of them has in its past: they are *on top*. Snapshots are bits here, so that "has one of these in its past" is one `&`.
"""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PlacedSnapshot:
    """One snapshot: its bit, the bits of those in whose past it is, and its range of keys as UTF-8 bytes (None: no end)."""

    bit: int
    covered_by: int
    first: bytes
    end: bytes | None


class Coverage:
    """What some snapshots of one document cover. Costs O(n^2) of their number, once."""

    def __init__(self, snapshots: Sequence[PlacedSnapshot]) -> None:
        """Divide all keys where a snapshot begins or ends."""
        ends = {one.end for one in snapshots if one.end is not None}
        self._starts = sorted({b"", *(one.first for one in snapshots), *ends})
        self._relevant: list[int] = []
        self._on_top: list[int] = []
        for start in self._starts:
            here = [one for one in snapshots if one.first <= start and (one.end is None or start < one.end)]
            relevant = _union(one.bit for one in here)
            self._relevant.append(relevant)
            self._on_top.append(_union(one.bit for one in here if not one.covered_by & relevant))

    def on_top(self, key: str) -> int:
        """Bits of the snapshots that decide about a key."""
        return self._on_top[bisect_right(self._starts, key.encode()) - 1]

    def is_settled(self, covered_by: int) -> bool:
        """Whether a commit in the past of these snapshots has nothing to say of its own, whatever keys it is about."""
        return all(relevant & covered_by for relevant in self._relevant)


def _union(bits: Iterable[int]) -> int:
    union = 0
    for bit in bits:
        union |= bit
    return union
