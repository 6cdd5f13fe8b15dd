"""Spans of clocks, as sets: joined, cut with each other, and subtracted."""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from operator import itemgetter

Span = tuple[int, int]
"""Clocks from the first one to before the second one."""


def join_spans(spans: Iterable[Span]) -> list[Span]:
    """Return the same clocks in order, with neighbours and overlaps as one."""
    joined: list[Span] = []
    for start, end in sorted(spans):
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((start, end))
    return joined


def overlap_spans(spans: Sequence[Span], others: Sequence[Span]) -> list[Span]:
    """Return the common part of two rows of sorted spans. Costs the shorter row, and what it meets in the other."""
    if len(others) < len(spans):
        spans, others = others, spans
    found: list[Span] = []
    for start, end in spans:
        for place in range(_place_of(start, others), len(others)):
            first, last = others[place]
            if first >= end:
                break
            if start < last:
                found.append((max(start, first), min(end, last)))
    return found


def subtract_spans(spans: Sequence[Span], others: Sequence[Span]) -> Iterator[Span]:
    """Yield what sorted spans have and others, which do not touch, have not."""
    for begin, end in spans:
        start = begin
        for place in range(_place_of(start, others), len(others)):
            first, last = others[place]
            if first >= end:
                break
            if start < first:
                yield start, first
            start = max(start, last)
        if start < end:
            yield start, end


def _place_of(clock: int, spans: Sequence[Span]) -> int:
    """Return the place of the last of sorted spans that begins at a clock or before, or 0."""
    return max(bisect_right(spans, clock, key=itemgetter(0)) - 1, 0)
