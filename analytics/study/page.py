"""Renders the study's results beside the published figures, as HTML and as text."""

from collections.abc import Iterable, Sequence
from html import escape

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator
from pyspark.sql import Row

from analytics.report import page
from analytics.report.pictures import MAIN, MAIN_SOFT, OTHER, OTHER_SOFT, QUIET, STYLE, svg_of
from analytics.study.study import FULL, PAPER_WIDTHS, Plan, StudyTables

_PAPER_LABEL = "paper, one run"


def scale_of(plan: Plan) -> str:
    """How large a study is, beside the paper's, in words."""
    words = (
        f"{min(plan.heights):,} to {max(plan.heights):,} commits, {min(plan.widths):,} to "
        f"{max(plan.widths):,} feeds, {page.counted(plan.seeds, 'seed')} each"
    )
    if max(plan.heights) < min(FULL.heights):
        words += (
            f" (scaled down: the paper's tangles have {min(FULL.heights):,} to {max(FULL.heights):,} commits, "
            f"{min(PAPER_WIDTHS):,} to {max(PAPER_WIDTHS):,} feeds)"
        )
    return words


def as_text(result: StudyTables) -> str:
    """The medians as a table for a terminal."""
    lines = [
        f"{'edits per commit, median of seeds':44} {'paper':>7} {'reference':>10} {'net':>7} {'waiting':>8}"
    ]
    lines += [
        f"{_scenario(row)[:44]:44} {_edits(row['paper']):>7} {_edits(row['reference_p50']):>10} "
        f"{_edits(row['net_p50']):>7} {_edits(row['waiting_room_p50']):>8}"
        for row in result.percentiles
    ]
    return "\n".join(lines)


def render_study(plan: Plan, result: StudyTables) -> str:
    """The page as HTML."""
    papers = [row for row in result.percentiles if _is_papers(row)]
    figures = [
        _figure(
            draw_by_width([row for row in papers if row["height"] == height], height),
            f"Two feeds a step, {height:,} commits, delivered feed by feed at random. Bands: 10th to 90th percentile of "
            f"{page.counted(plan.seeds, 'seed')}.",
        )
        for height in sorted({min(plan.heights), max(plan.heights)})
    ]
    if len(plan.heights) > 1:
        figures.append(
            _figure(
                draw_by_height(papers),
                "The same by height, a line for each width: strong the least edits, faint ScuttleSort's; grey the paper's.",
            )
        )
    heads = (
        "scenario",
        "commits",
        "feeds",
        "paper",
        "ScuttleSort",
        "10th",
        "90th",
        "least",
        "10th",
        "90th",
        "waiting room",
        "most waiting",
    )
    rows = [
        (
            f'<th scope="row">{escape(row["model"])}, {escape(row["delivery"])}</th>',
            f"{row['height']:,}",
            f"{row['width']:,}",
            _edits(row["paper"]),
            *(
                _edits(row[f"{stream}_{part}"])
                for stream in ("reference", "net")
                for part in ("p50", "p10", "p90")
            ),
            _edits(row["waiting_room_p50"]),
            f"{row['most_waiting']:,}",
        )
        for row in result.percentiles
    ]
    body = (
        '<p class="note">How many inserts and moves a list needs, for each commit that arrives, to stay in order while '
        "commits come before their causes. <b>ScuttleSort</b> is the stream that the published algorithm sends after "
        "its own compression. <b>Least</b> is one insert and the commits outside a longest increasing subsequence: no "
        "stream that shows the same is shorter. In a <b>waiting room</b> what lacks causes stands apart and moves once. "
        "A timeline that lets commits in when their causes are there, as Ravel's does, needs exactly one.</p>"
        f"<h2>Edits per commit</h2>{''.join(figures)}<h2>All scenarios</h2>"
        f'{page.table(heads, rows)}<p class="note">Medians and percentiles over seeds, in edits per commit. '
        "Runs: <code>tables/runs</code>.</p>"
    )
    return page.render("edits of an eager timeline", f"{result.runs:,} runs: {scale_of(plan)}", body)


def draw_by_width(rows: Sequence[Row], height: int) -> str:
    """Edits per commit against the number of feeds, with the paper's."""
    with mpl.rc_context({**STYLE, "svg.hashsalt": f"by-width-{height}"}):
        figure = Figure(figsize=(7.2, 4.2), layout="constrained")
        axes = figure.subplots()
        widths = [row["width"] for row in rows]
        for stream, label, strong, soft in (
            ("reference", "ScuttleSort, simulated", OTHER, OTHER_SOFT),
            ("net", "least possible", MAIN, MAIN_SOFT),
        ):
            low, middle, high = ([row[f"{stream}_{part}"] for row in rows] for part in ("p10", "p50", "p90"))
            axes.fill_between(widths, low, high, color=soft, linewidth=0)
            axes.plot(widths, middle, color=strong, linewidth=1.8, marker="o", markersize=4, label=label)
        waiting = [row["waiting_room_p50"] for row in rows]
        axes.plot(widths, waiting, color=MAIN, linewidth=1.2, linestyle=(0, (4, 3)), label="waiting room")
        stated = [row for row in rows if row["paper"] is not None]
        if stated:
            axes.plot(
                [row["width"] for row in stated],
                [row["paper"] for row in stated],
                color=QUIET,
                linewidth=0,
                marker="D",
                markersize=5,
                label=_PAPER_LABEL,
            )
        _log_axis(axes, widths)
        axes.set_xlabel("feeds")
        axes.legend(frameon=False, loc="upper left")
        return svg_of(figure, f"Edits per commit by width, {height} commits")


def draw_by_height(rows: Sequence[Row]) -> str:
    """Edits per commit against the number of commits."""
    with mpl.rc_context({**STYLE, "svg.hashsalt": "by-height"}):
        figure = Figure(figsize=(7.2, 4.2), layout="constrained")
        axes = figure.subplots()
        for width in sorted({row["width"] for row in rows}):
            line = sorted((row for row in rows if row["width"] == width), key=lambda row: row["height"])
            heights = [row["height"] for row in line]
            axes.plot(heights, [row["reference_p50"] for row in line], color=OTHER_SOFT, linewidth=1.8)
            least = [row["net_p50"] for row in line]
            axes.plot(heights, least, color=MAIN, linewidth=1.5, marker="o", markersize=3)
            stated = [row for row in line if row["paper"] is not None]
            axes.scatter(
                [row["height"] for row in stated],
                [row["paper"] for row in stated],
                color=QUIET,
                marker="D",
                s=9,
                linewidths=0,
                alpha=0.6,
            )
            axes.annotate(
                f"{width:,}",
                (heights[-1], least[-1]),
                (6, 0),
                textcoords="offset points",
                color=QUIET,
                va="center",
                fontsize=9,
                annotation_clip=False,
            )
        _log_axis(axes, sorted({row["height"] for row in rows}))
        axes.set_yscale("log", base=2)
        axes.set_ylim(bottom=1)
        axes.yaxis.set_major_formatter(FuncFormatter(_grouped))
        axes.set_xlabel("commits (numbers at the lines: feeds)")
        return svg_of(figure, "Edits per commit by height")


def _log_axis(axes: Axes, values: Iterable[int]) -> None:
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_locator(FixedLocator(list(values)))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(_grouped))
    axes.set_ylim(bottom=0)
    axes.set_title("edits per commit", loc="left", fontsize=11)


def _grouped(value: float, _: object) -> str:
    return f"{value:,.0f}"


def _figure(picture: str, caption: str) -> str:
    return f"<figure>{picture}<figcaption>{caption}</figcaption></figure>"


def _is_papers(row: Row) -> bool:
    return bool(row["model"] == "two feeds" and row["delivery"] == "random feed")


def _scenario(row: Row) -> str:
    return f"{row['model']}, {row['delivery']}, {row['height']:,} x {row['width']:,}"


def _edits(value: float | None) -> str:
    return page.DASH if value is None else f"{value:,.2f}"
