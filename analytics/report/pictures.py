"""SVG charts of the report, in the page's colours (dark, light, print).

Nothing a user wrote goes into a picture: names stand in the page around it.
"""

import io
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.dates import AutoDateLocator, ConciseDateFormatter
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullLocator

# Matplotlib knows no CSS variables: it draws in colours that nothing else uses, which are then replaced.
QUIET: Final = "#010101"
_LINES: Final = "#020202"
MAIN: Final = "#030303"
MAIN_SOFT: Final = "#040404"
OTHER: Final = "#050505"
OTHER_SOFT: Final = "#060606"
THIRD: Final = "#070707"
FOURTH: Final = "#080808"
_VARIABLES: Final = {
    QUIET: "var(--soft-ink)",
    _LINES: "var(--lines)",
    MAIN: "var(--main)",
    MAIN_SOFT: "var(--main-soft)",
    OTHER: "var(--other)",
    OTHER_SOFT: "var(--other-soft)",
    THIRD: "var(--third)",
    FOURTH: "var(--fourth)",
}

STYLE: Final[dict[Any, Any]] = {
    "svg.fonttype": "none",  # text stays text: smaller, and it can be read aloud
    "font.size": 11,
    "text.color": QUIET,
    "axes.labelcolor": QUIET,
    "axes.edgecolor": _LINES,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.spines.left": False,
    "axes.axisbelow": True,
    "axes.grid": True,
    "axes.grid.axis": "y",
    "axes.xmargin": 0.01,
    "date.converter": "concise",
    "grid.color": _LINES,
    "grid.linewidth": 0.8,
    "xtick.color": _LINES,
    "xtick.labelcolor": QUIET,
    "ytick.left": False,
    "ytick.color": _LINES,
    "ytick.labelcolor": QUIET,
}


LINE_COLOURS: Final = (MAIN, OTHER, THIRD, FOURTH, QUIET)
"""Of lines in one picture: each has a contrast of 4.5 or more to the page, light and dark."""
_DASHES: Final = ((), (7, 2), (2, 2), (7, 2, 2, 2), (4, 4))
"""Lengths of their dashes and gaps in points: who sees no colours, or prints none, tells lines by these."""
_WIDE: Final = 5.0
_LOW: Final = 2.1
"""Inches of a picture. Its letters have their size where it is that wide: about as a phone shows it."""
TIME: Final = "time"
_NAMED_TIMES: Final = {
    1: "1 s", 10: "10 s", 60: "1 min", 600: "10 min", 3600: "1 h", 21_600: "6 h", 86_400: "1 day", 604_800: "7 days",
    2_592_000: "30 days", 31_536_000: "1 year",
}  # fmt: skip
"""Seconds."""

_ROUND_NUMBERS: Final = tuple(
    step * 10**power for power in range(9) for step in (2, 5, 10) if step * 10**power > 4
)

_BESIDE: Final = 0.14
_DIGIT: Final = 0.1
_RIGHT: Final = 0.3
_TITLE: Final = 0.32
_TICKS: Final = 0.34
_LABELLED: Final = 0.56
"""Inches: between numbers and axis or edge; a digit; half of the last number; a title; numbers below; and a label below."""
_BETWEEN: Final = 0.26
"""Between two axes, in parts of their height."""

_SIZES: Final = ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"), (1, "bytes"))
_LINEAR_BELOW: Final = 12
"""Numbers up to which an axis has equal steps; beyond, large ones would press small ones together."""

Points = Sequence[tuple[float, float]]


@dataclass(frozen=True, slots=True)
class WidthBin:
    """The widths of neighbouring ranks, from `rank` on."""

    rank: int
    widest: int
    mean: float


def draw_growth(points: Sequence[tuple[int, int]], bucket: int) -> str:
    """Commits in all, and per bucket, over time. Points are (start in unix milliseconds, commits), in order."""
    with mpl.rc_context({**STYLE, "svg.hashsalt": "growth"}):
        figure = Figure(figsize=(_WIDE, 3.4))
        total, each = figure.subplots(2, 1, sharex=True, height_ratios=(3, 2))
        edges, sums = _steps(points, bucket)
        total.fill_between(edges, sums, color=MAIN_SOFT, linewidth=0, step="post")
        total.step(edges, sums, color=MAIN, linewidth=1.8, where="post")
        width = np.timedelta64(bucket * 9 // 10, "ms")
        each.bar(edges[:-1], [count for _, count in points], width=width, align="edge", color=MAIN)
        each.set_xlim(edges[0] - width // 2, edges[-1] + width // 2)
        total.set_title("commits in all", loc="left", fontsize=11)
        each.set_title("new commits", loc="left", fontsize=11)
        for axes in (total, each):
            _count_axis(axes)
        total.tick_params(axis="x", length=0)
        _time_axis(each)
        return svg_of(figure, "Commits over time")


def draw_widths(bins: Sequence[WidthBin], ranks: int, number: int) -> str:
    """Return how many commits share a rank, along one branch of that many ranks. `number` tells pictures of a page apart."""
    with mpl.rc_context({**STYLE, "svg.hashsalt": f"widths-{number}"}):
        figure = Figure(figsize=(_WIDE, _LOW))
        axes = figure.subplots()
        edges = np.array([*(one.rank for one in bins), ranks]) - 0.5
        widest = np.array([one.widest for one in bins])
        axes.stairs(widest, edges, fill=True, color=MAIN_SOFT if bins_are_wide(bins, ranks) else MAIN)
        if bins_are_wide(bins, ranks):
            means = np.array([one.mean for one in bins])
            axes.stairs(means, edges, fill=True, color=MAIN)
        axes.set_xlim(edges[0], edges[-1])
        axes.set_xlabel("rank")
        axes.set_title("commits of a rank", loc="left", fontsize=11)
        _count_axis(axes)
        axes.xaxis.set_major_locator(MaxNLocator(6, integer=True))
        axes.xaxis.set_major_formatter(FuncFormatter(_grouped))
        return svg_of(figure, "Width per rank")


def draw_heads(points: Sequence[tuple[int, int]], bucket: int, number: int, until: int) -> str:
    """Return how many heads a branch had over time, until then (unix milliseconds).

    Points are (start of a bucket in unix milliseconds, heads at its end).
    """
    with mpl.rc_context({**STYLE, "svg.hashsalt": f"heads-{number}"}):
        figure = Figure(figsize=(_WIDE, _LOW))
        axes = figure.subplots()
        edges, heads = _levels(points, bucket, until)
        axes.fill_between(edges, heads, color=MAIN_SOFT, linewidth=0, step="post")
        axes.step(edges, heads, color=MAIN, linewidth=1.5, where="post")
        _count_axis(axes)
        _time_axis(axes)
        axes.set_title("heads", loc="left", fontsize=11)
        return svg_of(figure, "Heads over time")


def draw_received(points: Sequence[tuple[int, int]], bucket: int, number: int, pace: float | None) -> str:
    """Bytes that a node received over time, as `draw_heads` does; and on at a pace in bytes a millisecond."""
    with mpl.rc_context({**STYLE, "svg.hashsalt": f"received-{number}"}):
        figure = Figure(figsize=(_WIDE, _LOW))
        axes = figure.subplots()
        edges, sizes = _levels(points, bucket)
        power, unit = next(one for one in _SIZES if points[-1][1] >= one[0] or one[0] == 1)
        axes.fill_between(edges, sizes / power, color=MAIN_SOFT, linewidth=0, step="post")
        axes.step(edges, sizes / power, color=MAIN, linewidth=1.5, where="post")
        if pace is not None:
            ahead = (points[-1][0] + bucket - points[0][0]) // 2
            later = np.append(edges[-1:], edges[-1:] + np.timedelta64(ahead, "ms"))
            grown = np.array([points[-1][1], points[-1][1] + pace * ahead])
            axes.plot(later, grown / power, color=OTHER, linewidth=1.5, linestyle=(0, (4, 3)))
        axes.set_ylim(bottom=0)
        axes.yaxis.set_major_locator(MaxNLocator(4))
        _time_axis(axes)
        axes.set_title(f"{unit} in all", loc="left", fontsize=11)
        return svg_of(figure, "Commits received over time")


def draw_shares(lines: Sequence[Points], label: str, unit: str) -> str:
    """Distributions: which share of all is at most so large. Points are (size, share), in order; sizes are from 1 on.

    Lines have the colours of LINE_COLOURS, the first is strong. The unit TIME has sizes in seconds.
    """
    with mpl.rc_context({**STYLE, "svg.hashsalt": f"shares-{label}"}):
        figure = Figure(figsize=(_WIDE, _LOW))
        axes = figure.subplots()
        for number in reversed(range(len(lines))):
            sizes, shares = np.array([(lines[number][0][0], 0.0), *lines[number]]).T
            axes.step(
                sizes,
                shares * 100,
                color=LINE_COLOURS[number],
                linewidth=1.5 if number else 2.2,
                linestyle=(0, _DASHES[number]) if number else "solid",
                where="post",
                marker="o",
                markersize=2.5 if number else 3,
            )
        is_linear = unit != TIME and max(points[-1][0] for points in lines) < _LINEAR_BELOW
        axes.set_xscale("linear" if is_linear else "log")
        axes.set_ylim(0, 102)
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.0f} %"))
        if unit == TIME:
            ticks = spread_labels(_NAMED_TIMES, *axes.get_xlim())
            axes.xaxis.set_major_locator(FixedLocator(ticks))
            axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: _NAMED_TIMES.get(round(value), "")))
            axes.xaxis.set_minor_locator(NullLocator())
        else:
            most = axes.get_xlim()[1]
            few = [number for number in range(1, 10) if number <= most]
            named = {number: f"{number:,}" for number in (1, *_ROUND_NUMBERS)}
            round_ones = [*named] if is_linear else spread_labels(named, *axes.get_xlim())
            axes.xaxis.set_major_locator(FixedLocator(few if most < 10 else round_ones))
            axes.xaxis.set_major_formatter(FuncFormatter(_grouped))
            axes.xaxis.set_minor_locator(NullLocator())
            axes.set_xlabel(unit if is_linear else f"{unit} (logarithmic)")
        return svg_of(figure, label)


def spread_labels(labels: Mapping[int, str], low: float, high: float) -> list[int]:
    """Return the numbers between two whose labels stand apart on a logarithmic axis, from the left."""
    inches = (_WIDE - _BESIDE - _RIGHT) / math.log(high / low)
    found: list[int] = []
    end = -math.inf
    for number in (number for number in labels if low <= number <= high):
        half = len(labels[number]) * _DIGIT / 2
        at = math.log(number / low) * inches
        if at - half >= end:
            found.append(number)
            end = at + half + _DIGIT
    return found


def draw_members(points: Sequence[tuple[int, int]], bucket: int, epochs: Sequence[int]) -> str:
    """Return how many members a repo had over time, as `draw_heads` does, and when its epochs began (unix milliseconds)."""
    with mpl.rc_context({**STYLE, "svg.hashsalt": "members"}):
        figure = Figure(figsize=(_WIDE, _LOW))
        axes = figure.subplots()
        edges, counts = _levels(points, bucket)
        axes.fill_between(edges, counts, color=MAIN_SOFT, linewidth=0, step="post")
        axes.step(edges, counts, color=MAIN, linewidth=1.5, where="post")
        for began in epochs:
            axes.axvline(_moment(began), color=OTHER, linewidth=1, linestyle=(0, (4, 3)))
        _count_axis(axes)
        _time_axis(axes)
        axes.set_title("members", loc="left", fontsize=11)
        return svg_of(figure, "Members over time")


def bins_are_wide(bins: Sequence[WidthBin], ranks: int) -> bool:
    """Return True if a bin stands for more than one rank, so that its mean and its widest differ."""
    return len(bins) < ranks


def _steps(points: Sequence[tuple[int, int]], bucket: int) -> tuple[Any, Any]:
    """Starts and sums of the buckets, and the end of the last one: drawn flat where nothing was written."""
    starts = [start for start, _ in points]
    sums = np.cumsum([count for _, count in points])
    return np.array([*starts, starts[-1] + bucket], "datetime64[ms]"), np.append(sums, sums[-1])


def _levels(points: Sequence[tuple[int, int]], bucket: int, until: int | None = None) -> tuple[Any, Any]:
    """Starts and values of the buckets, and the end of the last one, or `until` where that comes before."""
    starts = [start for start, _ in points]
    values = [value for _, value in points]
    end = starts[-1] + bucket
    if until is not None and starts[-1] < until < end:
        end = until
    return np.array([*starts, end], "datetime64[ms]"), np.array([*values, values[-1]])


def _moment(milliseconds: int) -> Any:  # noqa: ANN401  # Matplotlib's stubs want a float where it takes numpy's times
    return np.datetime64(milliseconds, "ms")


def time_locator() -> AutoDateLocator:
    """Return what chooses few times of an axis. With fewer than seven it finds no interval for 31 to 36 months."""
    return AutoDateLocator(minticks=3, maxticks=7)  # type: ignore[no-untyped-call]  # their stubs have none


def _time_axis(axes: Axes) -> None:
    """Few times, each whole: of the formatter's own, seconds stand alone beside a minute."""
    locator = time_locator()
    axes.xaxis.set_major_locator(locator)
    axes.xaxis.set_major_formatter(
        ConciseDateFormatter(  # type: ignore[no-untyped-call]  # as above
            locator,
            formats=["%Y", "%b", "%d", "%H:%M", "%H:%M", "%H:%M:%S"],
            zero_formats=["", "%Y", "%b", "%b %d", "%H:%M", "%H:%M:%S"],
            offset_formats=["", "%Y", "%Y-%m", "%Y-%m-%d", "%Y-%m-%d", "%Y-%m-%d"],
        )
    )


def _count_axis(axes: Axes) -> None:
    axes.set_ylim(bottom=0)
    axes.yaxis.set_major_locator(MaxNLocator(4, integer=True))
    axes.yaxis.set_major_formatter(FuncFormatter(_grouped))


def _set_margins(figure: Figure) -> None:
    """Leave room for the labels beside the axes.

    Matplotlib's own layout draws everything once more to find it, which takes half of a picture's time.
    """
    width, height = figure.get_size_inches()
    longest = 0
    for axes in figure.axes:
        low, high = axes.get_ylim()
        ticks = [tick for tick in axes.yaxis.get_majorticklocs() if low <= tick <= high]
        longest = max([longest, *map(len, axes.yaxis.get_major_formatter().format_ticks(ticks))])
    last = figure.axes[-1].xaxis
    last.get_major_formatter().format_ticks(list(last.get_majorticklocs()))
    # Below dates stands the year or day that all of them are of, if there is one.
    has_label = figure.axes[-1].get_xlabel() or last.get_major_formatter().get_offset()
    figure.subplots_adjust(
        left=(_BESIDE + longest * _DIGIT) / width,
        right=1 - _RIGHT / width,
        top=1 - (_TITLE if figure.axes[0].get_title("left") else _BESIDE) / height,
        bottom=(_LABELLED if has_label else _TICKS) / height,
        hspace=_BETWEEN,
    )


def _grouped(value: float, _: object) -> str:
    return f"{value:,.0f}"


def svg_of(figure: Figure, label: str) -> str:
    """Return the picture as an element for a page: scaling with it, coloured by it, and the same bytes every time."""
    if figure.get_layout_engine() is None:
        _set_margins(figure)
    file = io.BytesIO()
    figure.savefig(file, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    text = file.getvalue().decode()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = re.sub(r'(<svg\b[^>]*?) width="[^"]*"', r"\1", text, count=1)
    text = re.sub(r'(<svg\b[^>]*?) height="[^"]*"', r"\1", text, count=1)
    text = re.sub(r"font: ([\d.]+)px [^;\"]*", r"font-size: \1px; font-family: inherit", text)
    for colour, variable in _VARIABLES.items():
        text = text.replace(colour, variable)
    return text.replace("<svg", f'<svg role="img" aria-label="{label}"', 1)


_ON_PAPER: Final = {
    "var(--soft-ink)": "#514b43",
    "var(--lines)": "#e5e0d8",
    "var(--main)": "#1b6090",
    "var(--main-soft)": "#bcd8ed",
    "var(--other)": "#855000",
    "var(--other-soft)": "#f0dcb4",
    "var(--third)": "#6d4aa8",
    "var(--fourth)": "#8a2d55",
}
"""The page's colours where it is light."""


def colour_of(number: int) -> str:
    """Return the colour of a line of LINE_COLOURS, as the page says it."""
    return _VARIABLES[LINE_COLOURS[number]]


def dashes_of(number: int) -> str:
    """Return the dashes of a line of LINE_COLOURS, as SVG has them."""
    return " ".join(str(length) for length in _DASHES[number]) or "none"


def as_file(picture: str) -> str:
    """Return a picture of a page as a file of its own, on white."""
    for variable, colour in _ON_PAPER.items():
        picture = picture.replace(variable, colour)
    picture = picture.replace("font-family: inherit", "font-family: sans-serif")
    opening, rest = picture.split(">", 1)
    return f'{opening}>\n <rect width="100%" height="100%" fill="#fff"/>{rest}'
