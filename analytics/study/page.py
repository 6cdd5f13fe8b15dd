"""Renders the study's results beside the published figures, as HTML and as text."""

from collections.abc import Iterable, Sequence
from html import escape

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator
from pyspark.sql import Row

from analytics.report import page
from analytics.study.figures import MAIN, MAIN_SOFT, OTHER, OTHER_SOFT, QUIET, STYLE, as_file, svg_of
from analytics.study.runs import AS_ARRIVED, Run
from analytics.study.study import (
    FIRST_OF_TIES,
    FULL,
    PAPER_EDITS,
    PAPER_WIDTHS,
    PAPERS_DELIVERY,
    PAPERS_MODEL,
    STREAMS,
    TIE_MODELS,
    Plan,
    StudyTables,
)

_PAPER_LABEL = "paper, one run"
_PAPER = (
    "The paper <i>ScuttleSort: Incremental and Convergent Linearization of Tangles</i> "
    "(Christian Tschudin, 2022, section 4)"
)


def scale_of(plan: Plan) -> str:
    """Return how large a study is, beside the paper's, in words."""
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
    """Return the medians as a table for a terminal."""
    title = "edits per commit, median of seeds"
    width = max([len(title), *(len(_scenario(row)) for row in result.percentiles)])
    lines = [f"{title:{width}} {'paper':>7} {'reference':>10} {'net':>7} {'waiting':>8}"]
    lines += [
        f"{_scenario(row):{width}} {_edits(row['paper']):>7} {_edits(row['reference_p50']):>10} "
        f"{_edits(row['net_p50']):>7} {_edits(row['waiting_room_p50']):>8}"
        for row in result.percentiles
    ]
    return "\n".join(lines)


def render_study(plan: Plan, result: StudyTables) -> str:
    """Return the page as HTML. Its title is the conclusion."""
    papers = [row for row in result.percentiles if _is_papers(row)]
    parts = [_figure(picture, caption) for picture, caption in _pictures(plan, result, papers).values()]
    body = (
        f"<p>{_PAPER} asks how many edits keep a list in order while entries come before what they refer to. "
        f"Here its simulation is run again, {page.counted(plan.seeds, 'seed')} for each point, beside what it leaves open: "
        "the fewest edits possible, other ways to keep the list, and the order in which commits really arrived at nodes.</p>"
        '<p class="note"><b>ScuttleSort</b> is the stream that the published algorithm sends after its own compression. '
        "<b>Least</b> is one insert and the commits outside a longest increasing subsequence: no stream that shows the same "
        "is shorter. In a <b>waiting room</b> what lacks causes stands apart and moves once. <b>Causal</b>: a commit enters "
        "when its causes are there, as in Ravel's timelines. That is one edit, whatever the delivery.</p>"
        f"<h2>Edits per commit</h2>{''.join(parts)}{_said_of_real(result)}<h2>All scenarios</h2>"
        f"{_table(result)}"
        '<p class="note">Medians, and 10th to 90th percentile over seeds, in edits per commit; all of this run. '
        "Runs: <code>tables/runs</code>. Pictures: <code>figures</code>.</p>"
    )
    return page.render(_conclusion(papers), f"{len(result.runs):,} runs: {scale_of(plan)}", body)


def figures_of(plan: Plan, result: StudyTables) -> dict[str, str]:
    """Return the pictures of the page as files of their own: names and SVG."""
    papers = [row for row in result.percentiles if _is_papers(row)]
    return {name: as_file(picture) for name, (picture, _) in _pictures(plan, result, papers).items()}


def _conclusion(papers: Sequence[Row]) -> str:
    """Return what the paper's scenario at its least height came to."""
    low = min((row["height"] for row in papers), default=0)
    rows = sorted((row for row in papers if row["height"] == low), key=lambda row: row["width"])
    if not rows:
        return "edits that keep a timeline in order"
    few, many = rows[0], rows[-1]
    return (
        "a timeline that waits for causes takes one edit per commit; ScuttleSort takes "
        f"{few['reference_p50']:.1f} with {few['width']:,} feeds and {many['reference_p50']:.1f} with {many['width']:,}"
    )


def _pictures(plan: Plan, result: StudyTables, papers: Sequence[Row]) -> dict[str, tuple[str, str]]:
    """Name -> picture and caption, in the order of the page."""
    seeds = page.counted(plan.seeds, "seed")
    found: dict[str, tuple[str, str]] = {}
    for height in sorted({min(plan.heights), max(plan.heights)}):
        found[f"width-{height}"] = (
            draw_by_width([row for row in papers if row["height"] == height], height),
            f"Two feeds a step, {height:,} commits, delivered feed by feed at random. "
            f"Bands: 10th to 90th percentile of {seeds}.",
        )
    if len(plan.heights) > 1:
        found["height"] = (
            draw_by_height(papers),
            "The same by height, a line for each width: strong the least edits, faint ScuttleSort's; grey the paper's.",
        )
    ties = [run for run in result.runs if run[0] in TIE_MODELS and run[1] == PAPERS_DELIVERY]
    if len({run[0] for run in ties}) > 1:
        found["ties"] = (
            draw_ties(ties),
            "ScuttleSort's edits where each commit names the longest other feed, and two are equally long: "
            f"a dot for each of {seeds} and each height. The paper's runs have 32,768 to 524,288 commits.",
        )
    real = [run for run in result.runs if run[0] in result.real]
    if real:
        found["measured"] = (
            draw_measured(real),
            "Branches of exports. Left of each pair: the order in which commits arrived at a node, a dot for each node and "
            "branch. Right: the same branches, delivered feed by feed at random, a dot for each seed and branch. "
            "The axis begins at one edit.",
        )
    return found


def _said_of_real(result: StudyTables) -> str:
    """Return what was measured, in a sentence, or how to have it measured."""
    logs = [run for run in result.runs if run[0] in result.real and run[1].startswith(AS_ARRIVED)]
    if not logs:
        return (
            '<p class="note">No delivery was measured: <code>ravel study scuttlesort EXPORT...</code> adds the logs '
            "of nodes that hold all of a branch.</p>"
        )
    waited = sorted(run[7] - 1 for run in logs)
    worst = max(run[5] for run in logs)
    return (
        f"<p>In {page.counted(len(logs), 'log')} of real nodes, {waited[0]:.2%} to {waited[-1]:.2%} of the commits came "
        f"before one that they refer to. ScuttleSort would have sent at most {_edits(worst)} edits per commit.</p>"
    )


def _table(result: StudyTables) -> str:
    heads = (
        "scenario",
        "commits",
        "feeds",
        "seeds",
        "paper",
        "ScuttleSort",
        "least",
        "waiting room",
        "causal",
        "most waiting",
    )
    rows = [
        (
            f'<th scope="row">{escape(row["model"])}, {escape(row["delivery"])}</th>',
            f"{row['height']:,}",
            f"{row['width']:,}",
            f"{row['seeds']:,}",
            _edits(row["paper"]),
            *(_banded(row, stream) for stream in STREAMS),
            "1",
            f"{row['most_waiting']:,}",
        )
        for row in result.percentiles
    ]
    return page.table(heads, rows)


def _banded(row: Row, stream: str) -> str:
    """Median, and in brackets the percentiles where seeds differ."""
    low, middle, high = (_edits(row[f"{stream}_{part}"]) for part in ("p10", "p50", "p90"))
    return middle if low == high else f"{middle} ({low}{page.DASH}{high})"


def draw_ties(runs: Sequence[Run]) -> str:
    """Edits per commit of each seed by either rule for ties, beside the paper's runs."""
    widths = sorted({run[3] for run in runs if run[0] == FIRST_OF_TIES})
    # Of far smaller tangles the paper says nothing.
    papers = PAPER_EDITS.values() if max(run[2] for run in runs) >= min(PAPER_EDITS) else ()
    with mpl.rc_context({**STYLE, "svg.hashsalt": "ties"}):
        figure = Figure(figsize=(7.2, 3.6), layout="constrained")
        axes = figure.subplots()
        rules = ("one of two is drawn", "the first is meant")
        for model, label, shift, color in zip(TIE_MODELS, rules, (-0.2, 0.2), (MAIN, OTHER), strict=True):
            axes.plot([], [], color=color, linewidth=0, marker="o", markersize=3, label=label)
            for place, width in enumerate(widths):
                edits = sorted(run[5] for run in runs if run[0] == model and run[3] == width)
                axes.plot(
                    _spread(place + shift, edits), edits, color=color, linewidth=0, marker="o", markersize=3
                )
        for place, width in enumerate(widths):
            if width in PAPER_WIDTHS:
                stated = [row[PAPER_WIDTHS.index(width)] for row in papers]
                axes.plot([place] * len(stated), stated, color=QUIET, linewidth=0, marker="D", markersize=5)
        if papers:
            axes.plot([], [], color=QUIET, linewidth=0, marker="D", markersize=5, label="the paper's runs")
        axes.set_ylim(bottom=0)
        axes.legend(frameon=False, loc="upper left")
        axes.set_xticks(range(len(widths)), [f"{width:,} feeds" for width in widths])
        axes.set_title("edits per commit", loc="left", fontsize=11)
        return svg_of(figure, "Edits per commit by the rule for ties")


def draw_measured(runs: Sequence[Run]) -> str:
    """Edits per commit of real branches as commits arrived, beside the same delivered at random."""
    ways = (("ScuttleSort", 5), ("least", 6), ("waiting room", 7), ("causal", None))
    with mpl.rc_context({**STYLE, "svg.hashsalt": "measured"}):
        figure = Figure(figsize=(7.2, 3.2), layout="constrained")
        axes = figure.subplots()
        for place, (_, column) in enumerate(ways):
            for shift, color, is_log in ((-0.17, MAIN, True), (0.17, OTHER, False)):
                label = ("as they arrived" if is_log else "random feeds") if place == 0 else None
                edits = sorted(
                    1.0 if column is None else float(run[column])
                    for run in runs
                    if run[1].startswith(AS_ARRIVED) is is_log and (is_log or run[1] == PAPERS_DELIVERY)
                )
                places = _spread(place + shift, edits)
                axes.plot(places, edits, color=color, linewidth=0, marker="o", markersize=4, label=label)
        axes.legend(frameon=False, loc="upper right")
        # No way takes less than one, and logs of real nodes differ by some thousandths from it.
        most = max(axes.get_ylim()[1], 1.01)
        axes.set_ylim(1 - (most - 1) / 10, most)
        axes.set_xticks(range(len(ways)), [name for name, _ in ways])
        axes.set_title("edits per commit", loc="left", fontsize=11)
        return svg_of(figure, "Edits per commit, measured deliveries")


def _spread(place: float, values: Sequence[float]) -> list[float]:
    """Places side by side for dots of equal height, without chance."""
    step = 0.24 / max(len(values) - 1, 1)
    return [place - 0.12 + step * (number * 7 % len(values)) for number in range(len(values))]


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
            edits = [row["reference_p50"] for row in line]
            least = [row["net_p50"] for row in line]
            axes.plot(heights, edits, color=OTHER_SOFT, linewidth=1.8, label="ScuttleSort")
            axes.plot(heights, least, color=MAIN, linewidth=1.5, marker="o", markersize=3, label="least")
            stated = [row for row in line if row["paper"] is not None]
            axes.scatter(
                [row["height"] for row in stated],
                [row["paper"] for row in stated],
                color=QUIET,
                marker="D",
                s=9,
                linewidths=0,
                alpha=0.6,
                label=_PAPER_LABEL,
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
        # One of each name: there is a line for each number of feeds.
        named = dict(zip(*reversed(axes.get_legend_handles_labels()), strict=True))
        axes.legend(named.values(), named.keys(), frameon=False, loc="upper left")
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
    return bool(row["model"] == PAPERS_MODEL and row["delivery"] == PAPERS_DELIVERY)


def _scenario(row: Row) -> str:
    return f"{row['model']}, {row['delivery']}, {row['height']:,} x {row['width']:,}"


def _edits(value: float | None) -> str:
    """Format a number with two digits behind the point, or three where two would show 1.00 for more than 1."""
    if value is None:
        return page.DASH
    is_near_one = 1 < value < 1.005
    return f"{value:.3f}" if is_near_one else f"{value:,.2f}"
