"""Pictures of the report as SVG elements, in the page's colours (dark, light, print).

Nothing a user wrote goes into a picture: names stand in the page around it.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Final

from analytics.report import charts
from analytics.report.charts import QUIET, Axis, Mark, Panel, Points

MAIN: Final = "var(--main)"
MAIN_SOFT: Final = "var(--main-soft)"
OTHER: Final = "var(--other)"
LINE_COLOURS: Final = (MAIN, OTHER, "var(--third)", "var(--fourth)", QUIET)
"""Of lines in one picture: each has a contrast of 4.5 or more to the page, light and dark."""
LINE_DASHES: Final = ((), (7, 2), (2, 2), (7, 2, 2, 2), (4, 4))
"""Lengths of their dashes and gaps in points: who sees no colours, or prints none, tells lines by these."""
TIME: Final = "time"
_AHEAD: Final = (6, 4.5)
"""Dashes of what is to come, and of moments."""
_NAMED_TIMES: Final = {
    1: "1 s", 10: "10 s", 60: "1 min", 600: "10 min", 3600: "1 h", 21_600: "6 h", 86_400: "1 day", 604_800: "7 days",
    2_592_000: "30 days", 31_536_000: "1 year",
}  # fmt: skip
"""Seconds."""
_ROUND_NUMBERS: Final = tuple(
    step * 10**power for power in range(9) for step in (2, 5, 10) if step * 10**power > 4
)
_SIZES: Final = ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"), (1, "bytes"))
_LINEAR_BELOW: Final = 12
"""Numbers up to which an axis has equal steps; beyond, large ones would press small ones together."""
_LONG_FROM: Final = 1_000_000
"""Least number whose text takes the room of two steps along a horizontal axis."""
_LABEL_WIDTH: Final = 320.0
"""Points of a horizontal axis beside short numbers, and of a digit of its labels."""
_DIGIT: Final = 7.2


@dataclass(frozen=True, slots=True)
class WidthBin:
    """The widths of neighbouring ranks, from `rank` on."""

    rank: int
    widest: int
    mean: float


def draw_growth(points: Sequence[tuple[int, int]], bucket: int) -> str:
    """Draw commits in all, and per bucket, over time. Points are (start in unix milliseconds, commits), in order."""
    counts = [count for _, count in points]
    sums = [*accumulate(counts)]
    edges = [*(start for start, _ in points), points[-1][0] + bucket]
    line = charts.stepped([*zip(edges, [*sums, sums[-1]], strict=True)])
    width = bucket * 9 // 10
    bars = [
        Mark([(start, 0.0), (start, count), (start + width, count), (start + width, 0.0)], MAIN)
        for start, count in points
    ]
    return charts.draw(
        "Commits over time",
        charts.time_axis(edges[0], edges[-1]),
        (
            Panel(charts.count_axis(sums[-1]), _filled(line, 1.8), "commits in all", share=3),
            Panel(charts.count_axis(max(counts)), bars, "new commits", share=2),
        ),
        height=244.8,
    )


def draw_widths(bins: Sequence[WidthBin], ranks: int) -> str:
    """Draw how many commits share a rank, along one branch of that many ranks."""
    edges = [*(one.rank - 0.5 for one in bins), ranks - 0.5]
    widest = charts.area(charts.stairs(edges, [one.widest for one in bins]))
    are_wide = bins_are_wide(bins, ranks)
    marks = [Mark(widest, MAIN_SOFT if are_wide else MAIN)]
    if are_wide:
        marks.append(Mark(charts.area(charts.stairs(edges, [one.mean for one in bins])), MAIN))
    steps_max = 6 if ranks < _LONG_FROM else 3
    x = Axis(edges[0], edges[-1], charts.number_ticks(edges[0], edges[-1], steps_max), "rank")
    most = charts.count_axis(max(one.widest for one in bins))
    return charts.draw("Width per rank", x, [Panel(most, marks, "commits of a rank")])


def draw_heads(points: Sequence[tuple[int, int]], bucket: int, until: int) -> str:
    """Draw how many heads a branch had over time, until then (unix milliseconds).

    Points are (start of a bucket in unix milliseconds, heads at its end).
    """
    end = points[-1][0] + bucket
    end = until if points[-1][0] < until < end else end
    y = charts.count_axis(max(heads for _, heads in points))
    return _levels("Heads over time", "heads", points, end, y)


def draw_received(points: Sequence[tuple[int, int]], bucket: int, pace: float | None) -> str:
    """Draw bytes that a node received over time, as `draw_heads` does; and on at a pace in bytes a millisecond."""
    power, unit = next(one for one in _SIZES if points[-1][1] >= one[0] or one[0] == 1)
    end = points[-1][0] + bucket
    sized = [(start, size / power) for start, size in points]
    ahead: list[tuple[float, float]] = []
    if pace is not None:
        span = (end - points[0][0]) // 2
        ahead = [(end, sized[-1][1]), (end + span, sized[-1][1] + pace * span / power)]
    y = charts.count_axis(max(size for _, size in (*sized, *ahead)), is_whole=False)
    more = [Mark(ahead, stroke=OTHER, dashes=_AHEAD)] if ahead else []
    return _levels("Commits received over time", f"{unit} in all", sized, end, y, more)


def draw_members(points: Sequence[tuple[int, int]], bucket: int, epochs: Sequence[int]) -> str:
    """Draw how many members a repo had over time, as `draw_heads` does, and when its epochs began (unix milliseconds)."""
    y = charts.count_axis(max(count for _, count in points))
    begun = [Mark([(at, 0.0), (at, y.high)], stroke=OTHER, width=1, dashes=_AHEAD) for at in epochs]
    return _levels("Members over time", "members", points, points[-1][0] + bucket, y, begun)


def draw_shares(lines: Sequence[Points], label: str, unit: str) -> str:
    """Draw distributions: which share of all is at most so large. Points are (size, share), in order; sizes are from 1 on.

    Lines have the colours of LINE_COLOURS, the first is strong. The unit TIME has sizes in seconds.
    """
    marks = [
        Mark(
            charts.stepped([(line[0][0], 0.0), *((size, share * 100) for size, share in line)]),
            stroke=LINE_COLOURS[number],
            width=1.5 if number else 2.2,
            dashes=LINE_DASHES[number],
        )
        for number, line in enumerate(lines)
    ]
    shares = Axis(0.0, 102.0, {share: f"{share} %" for share in range(0, 101, 20)})
    return charts.draw(label, _size_axis(lines, unit), [Panel(shares, marks[::-1])])


def _size_axis(lines: Sequence[Points], unit: str) -> Axis:
    least, most = min(line[0][0] for line in lines), max(line[-1][0] for line in lines)
    if unit != TIME and most < _LINEAR_BELOW:
        low, high = charts.widened(least, most) if least < most else (least - 0.5, most + 0.5)
        numbers = range(math.ceil(low), math.floor(high) + 1)
        return Axis(low, high, {number: f"{number}" for number in numbers}, unit)
    bounds = charts.widened(math.log(least), math.log(most)) if least < most else (0.0, 0.0)
    low, high = map(math.exp, bounds) if least < most else (least / 10, most * 10)
    named = _NAMED_TIMES if unit == TIME else {number: f"{number:,}" for number in (1, *_ROUND_NUMBERS)}
    ticks: dict[float, str] = {number: named[number] for number in spread_labels(named, low, high)}
    return Axis(low, high, ticks, "" if unit == TIME else f"{unit} (logarithmic)", is_log=True)


def spread_labels(labels: Mapping[int, str], low: float, high: float) -> list[int]:
    """Return the numbers between two whose labels stand apart on a logarithmic axis, from the left."""
    scale = _LABEL_WIDTH / math.log(high / low)
    found: list[int] = []
    end = -math.inf
    for number in (number for number in labels if low <= number <= high):
        half = len(labels[number]) * _DIGIT / 2
        at = math.log(number / low) * scale
        if at - half >= end:
            found.append(number)
            end = at + half + _DIGIT
    return found


def bins_are_wide(bins: Sequence[WidthBin], ranks: int) -> bool:
    """Return True if a bin stands for more than one rank, so that its mean and its widest differ."""
    return len(bins) < ranks


def dashes_of(number: int) -> str:
    """Return the dashes of a line of LINE_COLOURS, as SVG has them."""
    return " ".join(str(length) for length in LINE_DASHES[number]) or "none"


def _levels(label: str, title: str, levels: Points, end: float, y: Axis, more: Sequence[Mark] = ()) -> str:
    """Draw values that hold from their time to the next, the last one until the end, and more marks."""
    line = charts.stepped([*levels, (end, levels[-1][1])])
    times = [time for mark in more for time, _ in mark.points]  # by other clocks: some before the levels
    x = charts.time_axis(min([levels[0][0], *times]), max([end, *times]))
    return charts.draw(label, x, [Panel(y, [*_filled(line), *more], title)])


def _filled(line: Points, width: float = 1.5) -> list[Mark]:
    """Return a line with the area below it."""
    return [Mark(charts.area(line), MAIN_SOFT), Mark(line, stroke=MAIN, width=width)]
