"""SVG charts of the report, in the page's colours (dark, light, print).

Nothing a user wrote goes into a picture: names stand in the page around it.
"""

import io
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator, NullFormatter

# Matplotlib knows no CSS variables: it draws in colours that nothing else uses, which are then replaced.
QUIET: Final = "#010101"
_LINES: Final = "#020202"
MAIN: Final = "#030303"
MAIN_SOFT: Final = "#040404"
OTHER: Final = "#050505"
OTHER_SOFT: Final = "#060606"
_VARIABLES: Final = {
    QUIET: "var(--soft-ink)",
    _LINES: "var(--lines)",
    MAIN: "var(--main)",
    MAIN_SOFT: "var(--main-soft)",
    OTHER: "var(--other)",
    OTHER_SOFT: "var(--other-soft)",
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


@dataclass(frozen=True, slots=True)
class WidthBin:
    """The widths of neighbouring ranks, from `rank` on."""

    rank: int
    widest: int
    mean: float


def draw_growth(points: Sequence[tuple[int, int]], bucket: int) -> str:
    """Commits in all, and per bucket, over time. Points are (start in unix milliseconds, commits), in order."""
    with mpl.rc_context({**STYLE, "svg.hashsalt": "growth"}):
        figure = Figure(figsize=(7.2, 4.6), layout="constrained")
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
        return svg_of(figure, "Commits over time")


def draw_widths(bins: Sequence[WidthBin], ranks: int, number: int) -> str:
    """How many commits share a rank, along one branch of that many ranks. `number` tells pictures of a page apart."""
    with mpl.rc_context({**STYLE, "svg.hashsalt": f"widths-{number}"}):
        figure = Figure(figsize=(7.2, 2.4), layout="constrained")
        axes = figure.subplots()
        edges = np.array([*(one.rank for one in bins), ranks]) - 0.5
        widest = np.array([one.widest for one in bins])
        axes.stairs(widest, edges, fill=True, color=MAIN_SOFT if bins_are_wide(bins, ranks) else MAIN)
        if bins_are_wide(bins, ranks):
            means = np.array([one.mean for one in bins])
            axes.stairs(means, edges, fill=True, color=MAIN)
        axes.set_xlim(edges[0], edges[-1])
        axes.set_xlabel("rank")
        _count_axis(axes)
        axes.xaxis.set_major_locator(MaxNLocator(7, integer=True))
        axes.xaxis.set_major_formatter(FuncFormatter(_grouped))
        return svg_of(figure, "Width per rank")


def draw_heads(points: Sequence[tuple[int, int]], bucket: int, number: int) -> str:
    """How many heads a branch had over time. Points are (start of a bucket in unix milliseconds, heads at its end)."""
    with mpl.rc_context({**STYLE, "svg.hashsalt": f"heads-{number}"}):
        figure = Figure(figsize=(7.2, 2.4), layout="constrained")
        axes = figure.subplots()
        edges, heads = _levels(points, bucket)
        axes.fill_between(edges, heads, color=MAIN_SOFT, linewidth=0, step="post")
        axes.step(edges, heads, color=MAIN, linewidth=1.5, where="post")
        _count_axis(axes)
        axes.set_title("heads", loc="left", fontsize=11)
        return svg_of(figure, "Heads over time")


def draw_received(points: Sequence[tuple[int, int]], bucket: int, number: int) -> str:
    """Bytes that a node received over time, in MiB, as `draw_heads` does."""
    with mpl.rc_context({**STYLE, "svg.hashsalt": f"received-{number}"}):
        figure = Figure(figsize=(7.2, 2.4), layout="constrained")
        axes = figure.subplots()
        edges, sizes = _levels(points, bucket)
        axes.fill_between(edges, sizes / (1 << 20), color=MAIN_SOFT, linewidth=0, step="post")
        axes.step(edges, sizes / (1 << 20), color=MAIN, linewidth=1.5, where="post")
        axes.set_ylim(bottom=0)
        axes.yaxis.set_major_locator(MaxNLocator(4))
        axes.set_title("MiB in all", loc="left", fontsize=11)
        return svg_of(figure, "Commits received over time")


def draw_shares(points: Sequence[tuple[float, float]], label: str, unit: str) -> str:
    """A distribution: which share of all is at most so large. Points are (size, share), in order; sizes are from 1 on."""
    with mpl.rc_context({**STYLE, "svg.hashsalt": f"shares-{label}"}):
        figure = Figure(figsize=(7.2, 2.4), layout="constrained")
        axes = figure.subplots()
        sizes, shares = np.array(points).T
        axes.step(sizes, shares * 100, color=MAIN, linewidth=1.8, where="post", marker="o", markersize=3)
        axes.set_xscale("log")
        axes.set_ylim(0, 102)
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.0f} %"))
        axes.xaxis.set_major_formatter(FuncFormatter(_grouped))
        axes.xaxis.set_minor_formatter(NullFormatter())
        axes.set_xlabel(unit)
        return svg_of(figure, label)


def draw_members(points: Sequence[tuple[int, int]], bucket: int, epochs: Sequence[int]) -> str:
    """How many members a repo had over time, as `draw_heads` does, and when its epochs began (unix milliseconds)."""
    with mpl.rc_context({**STYLE, "svg.hashsalt": "members"}):
        figure = Figure(figsize=(7.2, 2.4), layout="constrained")
        axes = figure.subplots()
        edges, counts = _levels(points, bucket)
        axes.fill_between(edges, counts, color=MAIN_SOFT, linewidth=0, step="post")
        axes.step(edges, counts, color=MAIN, linewidth=1.5, where="post")
        for began in epochs:
            axes.axvline(_moment(began), color=OTHER, linewidth=1, linestyle=(0, (4, 3)))
        _count_axis(axes)
        axes.set_title("members", loc="left", fontsize=11)
        return svg_of(figure, "Members over time")


def bins_are_wide(bins: Sequence[WidthBin], ranks: int) -> bool:
    """Whether a bin stands for more than one rank, so that its mean and its widest differ."""
    return len(bins) < ranks


def _steps(points: Sequence[tuple[int, int]], bucket: int) -> tuple[Any, Any]:
    """Starts and sums of the buckets, and the end of the last one: drawn flat where nothing was written."""
    starts = [start for start, _ in points]
    sums = np.cumsum([count for _, count in points])
    return np.array([*starts, starts[-1] + bucket], "datetime64[ms]"), np.append(sums, sums[-1])


def _levels(points: Sequence[tuple[int, int]], bucket: int) -> tuple[Any, Any]:
    """Starts and values of the buckets, and the end of the last one."""
    starts = [start for start, _ in points]
    values = [value for _, value in points]
    return np.array([*starts, starts[-1] + bucket], "datetime64[ms]"), np.array([*values, values[-1]])


def _moment(milliseconds: int) -> Any:  # noqa: ANN401  # Matplotlib's stubs want a float where it takes numpy's times
    return np.datetime64(milliseconds, "ms")


def _count_axis(axes: Axes) -> None:
    axes.set_ylim(bottom=0)
    axes.yaxis.set_major_locator(MaxNLocator(4, integer=True))
    axes.yaxis.set_major_formatter(FuncFormatter(_grouped))


def _grouped(value: float, _: object) -> str:
    return f"{value:,.0f}"


def svg_of(figure: Figure, label: str) -> str:
    """The picture as an element for a page: scaling with it, coloured by it, and the same bytes every time."""
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
