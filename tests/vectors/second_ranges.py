"""The comparison by ranges, read a second time: from section 12 of docs/specification/protocol.md, with public libraries.

Both sides, over sorted lists in memory. Frames that do not fit 256 KiB are not made here, so nothing is said of kind 3.
"""

from bisect import bisect_left
from collections.abc import Sequence

from tests.vectors.second_reader import pack, require
from tests.vectors.second_sets import fingerprint, open_ranges

Bound = tuple[int, bytes]
Item = tuple[int, bytes]
PARTS = LISTED_MAX = 16
START: Bound = (0, b"")
END: Bound = (2**53 - 1, b"")
NOTHING, PRINT, LIST = 0, 1, 2


def within(items: Sequence[Item], low: Bound, high: Bound) -> list[bytes]:
    """Ids of the items from one bound up to another."""
    return [name for _, name in items[bisect_left(items, low) : bisect_left(items, high)]]


def parts_of(items: Sequence[Item], low: Bound, high: Bound) -> list[tuple[Bound, Bound]]:
    """A range in 16 parts."""
    first = bisect_left(items, low)
    count = bisect_left(items, high) - first
    ends: list[Bound] = []
    for part in range(1, PARTS):
        at = first + part * count // PARTS
        (depth_before, before), (depth, after) = items[at - 1], items[at]
        size = 0
        if depth_before == depth:
            size = next(size for size in range(1, 33) if before[:size] != after[:size])
        ends.append((depth, after[:size]))
    return list(zip([low, *ends], [*ends, high], strict=True))


def frame_of(said: Sequence[tuple[Bound, Bound, int, bytes]]) -> bytes:
    """A frame that says this of ranges; of what lies between them it says nothing."""
    ranges: list[list[object]] = []
    end = START
    for low, high, kind, content in said:
        if low > end:
            ranges.append([*low, NOTHING, b""])
        ranges.append([*high, kind, content])
        end = high
    return pack(["ranges1", ranges])


def ask(items: Sequence[Item], key: bytes, differing: Sequence[tuple[Bound, Bound]]) -> bytes:
    """The asker's frame about ranges that differ, or (the first) all there is."""
    said: list[tuple[Bound, Bound, int, bytes]] = []
    for low, high in differing:
        if len(within(items, low, high)) <= LISTED_MAX:
            said.append((low, high, LIST, b""))
            continue
        for start, end in parts_of(items, low, high):
            said.append((start, end, PRINT, fingerprint(key, within(items, start, end))))
    return frame_of(said)


def answer(items: Sequence[Item], key: bytes, question: bytes) -> bytes:
    """The answerer's frame."""
    said: list[tuple[Bound, Bound, int, bytes]] = []
    for low, high, kind, content in open_ranges(question):
        held = within(items, low, high)
        if kind == LIST or (kind == PRINT and len(held) <= LISTED_MAX and fingerprint(key, held) != content):
            said.append((low, high, LIST, b"".join(held)))
        elif kind == PRINT and fingerprint(key, held) != content:
            for start, end in parts_of(items, low, high):
                said.append((start, end, PRINT, fingerprint(key, within(items, start, end))))
    return frame_of(said)


def compare(
    ours: Sequence[Item], theirs: Sequence[Item], key: bytes
) -> tuple[list[bytes], set[bytes], set[bytes]]:
    """All frames in turn, the asker's first, and what either side alone holds as far as the asker learns it."""
    frames: list[bytes] = []
    here: set[bytes] = set()
    there: set[bytes] = set()
    differing: list[tuple[Bound, Bound]] = [(START, END)]
    while differing:
        frames.append(ask(ours, key, differing))
        frames.append(answer(theirs, key, frames[-1]))
        differing = []
        for low, high, kind, content in open_ranges(frames[-1]):
            held = set(within(ours, low, high))
            if kind == PRINT and fingerprint(key, within(ours, low, high)) != content:
                differing.append((low, high))
            elif kind == LIST:
                require(len(content) % 32 == 0, "whole ids")
                listed = {content[at : at + 32] for at in range(0, len(content), 32)}
                here |= held - listed
                there |= listed - held
    return frames, here, there
