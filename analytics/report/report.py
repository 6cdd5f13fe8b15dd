"""Renders the report as one self-contained HTML file (escapes all input).

Says what it was given and computes nothing of its own. Every string in it is escaped: names and authors come from anybody.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Final

from analytics.report import page
from analytics.report.charts import Points
from analytics.report.downloads import Download
from analytics.report.drawing import LEGEND, Drawing, draw_tangle
from analytics.report.member_page import MemberFigures, StoreLine, render_members, render_stores
from analytics.report.page import Names
from analytics.report.pictures import (
    LINE_COLOURS,
    TIME,
    WidthBin,
    bins_are_wide,
    dashes_of,
    draw_growth,
    draw_heads,
    draw_shares,
    draw_widths,
)
from analytics.report.standing import Standing, render_standing
from analytics.tables.definitions import TABLES
from ravel.exports.schema import text_id


@dataclass(frozen=True, slots=True)
class BranchLine:
    """One branch in the report."""

    branch_id: bytes
    name: str
    commits: int
    authors: int
    depth: int
    heads: int
    forks: int
    merges: int
    width_max: int
    width_mean: float
    concurrency: float  # share of commits that share their rank
    size: int
    first_time: int | None  # unix milliseconds, as authors assert
    last_time: int | None


@dataclass(frozen=True, slots=True)
class AuthorLine:
    """One author in the report."""

    author: bytes
    commits: int
    branches: int
    feed_forks: int
    last_time: int | None


@dataclass(frozen=True, slots=True)
class Growth:
    """Commits per time bucket, over all branches."""

    points: tuple[tuple[int, int], ...]  # (start in unix milliseconds, commits)
    bucket: int  # milliseconds
    left_out: int


@dataclass(frozen=True, slots=True)
class BranchShape:
    """Widths along one branch, and its heads over time."""

    name: str
    ranks: int
    bins: tuple[WidthBin, ...]
    concurrency: float
    heads: tuple[tuple[int, int], ...]  # (start of a bucket in unix milliseconds, heads at its end)
    bucket: int  # milliseconds


@dataclass(frozen=True, slots=True)
class Distribution:
    """Shares of all that are at most so large: of all branches, and of some beside them."""

    points: Points  # (size, share)
    total: int  # of what the shares are
    of_branches: tuple[tuple[str, int, Points], ...] = ()  # name, and the same


@dataclass(frozen=True, slots=True)
class MergeLine:
    """Durations of the merges of one branch, in milliseconds; None where none could be timed."""

    name: str
    branch_id: bytes
    merges: int
    backdated: int
    waited_p50: int | None
    waited_p90: int | None
    waited_max: int | None
    apart_p50: int | None
    apart_p90: int | None


@dataclass(frozen=True, slots=True)
class ReplicationLine:
    """Arrival of one branch at one node; delays in milliseconds, None where nothing was late."""

    name: str
    branch_id: bytes
    node: str
    commits: int
    lacking: int
    first_here: int
    delay_p50: int | None
    delay_p90: int | None
    delay_max: int | None


@dataclass(frozen=True, slots=True)
class RelayLine:
    """Counts of publications that one relay took for others, and that it still keeps."""

    node: str
    topics: int
    kept_topics: int
    commits: int
    size: int  # bytes taken
    kept_size: int  # bytes
    quota_use: float | None  # None where the export states no quota


_SET_ASIDE_SHOWN_MAX: Final = 10
"""Exports that the page names of those that were not read."""


@dataclass(frozen=True, slots=True)
class OrderVerdict:
    """Verdict on the node's own order."""

    is_verified: bool
    mismatches: int
    faults: dict[str, int]  # why commits have no place -> how many
    set_aside: tuple[tuple[str, str], ...] = ()  # exports that were not read, and why


@dataclass(frozen=True, slots=True)
class Report:
    """All that the page says."""

    exports: tuple[tuple[str, int], ...]  # nodes, and when each was exported last, in unix seconds
    exported_at: int  # unix seconds: the last one
    imported: int  # commits that were imported
    commits: int
    branches: int
    repos: int
    authors: int
    merges: int
    size: int
    verdict: OrderVerdict
    standing: Standing
    names: Names
    waits: Distribution  # seconds that merges waited at most, of merges
    widths: Distribution  # commits of a rank, of ranks
    concurrency: Distribution  # commits of a rank, of commits
    branch_lines: tuple[BranchLine, ...]  # the largest first, perhaps not all
    author_lines: tuple[AuthorLine, ...]
    merge_lines: tuple[MergeLine, ...]  # those with most merges
    replication_lines: tuple[ReplicationLine, ...]  # none for one node alone
    relay_lines: tuple[RelayLine, ...]  # none where nothing was taken for others
    store_lines: tuple[StoreLine, ...]
    members: MemberFigures
    growth: Growth | None
    shapes: tuple[BranchShape, ...]
    drawing: Drawing | None
    flows: str  # sections of `analytics.report.flows`
    downloads: tuple[Download, ...]


def render(report: Report) -> str:
    """Return the page as text."""
    are_told = any(line.blocks is not None for line in report.store_lines)
    names = report.names
    sections = [
        f"{_verdict(report)}<dl>{_tiles(report)}</dl>",
        f"<h2>At a glance</h2>{render_standing(report.standing, names)}",
        f"<h2>Growth over time</h2>{_growth(report.growth)}",
        _widths(report),
        f"<h2>Merge latency</h2>{_merges(report)}",
        f"<h2>Branches compared</h2>{_branches(report)}",
        f"<h2>Most active authors</h2>{_authors(report)}",
        f"<h2>A tangle</h2>{_drawing(report.drawing, names)}" if report.drawing else "",
        report.flows,
        f"<h2>Members and epochs</h2>{render_members(report.members, names)}" if report.members.lines else "",
        f"<h2>Stores</h2>{render_stores(report.store_lines, names)}" if are_told else "",
        f"<h2>Replication</h2>{_replication(report)}" if report.replication_lines else "",
        f"<h2>Relays</h2>{_relays(report)}" if report.relay_lines else "",
        f'<section class="files"><h2 id="tables">Tables</h2>{_tables(report.downloads)}</section>',
    ]
    return page.render("analysis of an export", _subtitle(report), "\n".join(sections))


def _subtitle(report: Report) -> str:
    nodes = "Nodes" if len(report.exports) > 1 else "Node"
    told = ", ".join(
        f"{report.names.of(node)} exported on {page.moment(at * 1000)}" for node, at in report.exports
    )
    return f"{nodes}: {told}. Times are UTC."


def _verdict(report: Report) -> str:
    lines = []
    states = " states" if len(report.exports) == 1 else "s state"
    if not report.verdict.is_verified:
        lines.append(("plain", "The order was computed anew, and not compared with the node's."))
    elif report.verdict.mismatches:
        lines.append(
            (
                "bad",
                f"{page.counted(report.verdict.mismatches, 'commit')} stand elsewhere than the node says. "
                "The export was altered, or one of the two has a defect.",
            )
        )
    else:
        lines.append(
            (
                "good",
                "The order of every branch was computed anew, from parents alone. For all "
                f"{report.commits:,} commits it is the one that the export{states}.",
            )
        )
    for fault, count in sorted(report.verdict.faults.items()):
        lines.append(
            (
                "bad",
                f"{page.counted(count, 'commit')} left out, having no place in the order: {escape(fault)}.",
            )
        )
    for source, reason in report.verdict.set_aside[:_SET_ASIDE_SHOWN_MAX]:
        lines.append(("bad", f"Not read: {escape(source)}. {escape(reason)}."))
    more = len(report.verdict.set_aside) - _SET_ASIDE_SHOWN_MAX
    if more > 0:
        lines.append(("bad", f"{page.counted(more, 'more export')} not read."))
    return "".join(f'<p class="verdict {kind}">{text}</p>' for kind, text in lines)


def _tiles(report: Report) -> str:
    counts = {"commit": report.commits, "branch": report.branches, "repo": report.repos}
    counts |= {"author": report.authors, "merge": report.merges}
    told = [page.counted(count, noun).split(" ") for noun, count in counts.items()]
    tiles = [*told, [page.sized(report.size), "encrypted size"]]
    return "".join(f"<div><dt>{name}</dt><dd>{value}</dd></div>" for value, name in tiles)


def _growth(growth: Growth | None) -> str:
    if growth is None:
        return "<p>No commit states a time.</p>"
    left_out = (
        f" {page.counted(growth.left_out, 'commit')} dated and received far from all others "
        f"{'is' if growth.left_out == 1 else 'are'} not shown."
        if growth.left_out
        else ""
    )
    if len(growth.points) == 1:
        ((start, commits),) = growth.points
        return f"<p>{page.counted(commits, 'commit')} of {page.moment(start)}.{left_out}</p>"
    return (
        f'<div class="charts"><figure>{draw_growth(growth.points, growth.bucket)}'
        f"<figcaption>One bar is {page.duration(growth.bucket)}, by the times that authors state, "
        "none after its receipt or before its parents (UTC)."
        f"{left_out}</figcaption>"
        "</figure></div>"
    )


def _widths(report: Report) -> str:
    """Branches along which something is concurrent; of others there is nothing to see."""
    if not report.shapes:
        return ""
    wide = [shape for shape in report.shapes if any(one.widest > 1 for one in shape.bins)]
    if not wide:
        return "<h2>Width and concurrency</h2><p>Nothing was written concurrently: every rank has one commit.</p>"
    ranks, commits = report.widths, report.concurrency
    return (
        '<h2>Width and concurrency</h2><p class="note">The width of a rank is the number of its commits: they were written '
        "without knowing of one another. Along a quiet branch it is one. Heads are what nothing follows yet.</p>"
        '<div class="charts">'
        f"<figure><h3>Width</h3>{_shares(ranks, 'Distribution of widths', 'commits of the rank')}"
        "<figcaption>Share of the ranks with this many commits or fewer.</figcaption></figure>"
        f"<figure><h3>Concurrency</h3>{_shares(commits, 'Distribution of concurrency', 'commits of the rank')}"
        "<figcaption>Share of the commits whose rank has this many commits or fewer.</figcaption>"
        "</figure>" + "".join(_shape(one, report.exported_at * 1000) for one in wide) + "</div>"
    )


def _shares(distribution: Distribution, label: str, unit: str) -> str:
    """Return the picture of a distribution, and what its lines are where there are several."""
    lines = [("all branches", distribution.total, distribution.points)] + [
        (page.named(name), total, points) for name, total, points in distribution.of_branches
    ]
    picture = draw_shares([points for _, _, points in lines], label, unit)
    items = "".join(
        f'<li><svg viewBox="0 0 28 8" aria-hidden="true"><path d="M0 4H28" stroke="{LINE_COLOURS[number]}" '
        f'stroke-width="{2 if number else 3}" stroke-dasharray="{dashes_of(number)}"/></svg> {name} (n = {total:,})</li>'
        for number, (name, total, _) in enumerate(lines)
    )
    return f'{picture}<ul class="legend">{items}</ul>'


def _shape(shape: BranchShape, exported_at: int) -> str:
    note = f"{shape.concurrency:.1%} of the commits share their rank with others."
    if bins_are_wide(shape.bins, shape.ranks):
        note += " Neighbouring ranks are drawn together: the strong colour is their mean, the faint one the widest."
    # One bucket is a number, and no course.
    is_ever_forked = len(shape.heads) > 1 and any(heads > 1 for _, heads in shape.heads)
    heads = draw_heads(shape.heads, shape.bucket, exported_at) if is_ever_forked else ""
    return (
        f"<figure><h3>{page.named(shape.name)}</h3>{draw_widths(shape.bins, shape.ranks)}{heads}"
        f"<figcaption>{note}</figcaption></figure>"
    )


def _merges(report: Report) -> str:
    if not report.merge_lines:
        return "<p>Nothing was merged.</p>"
    rows = [
        (
            page.branch_cell(line.name, line.branch_id),
            f"{line.merges:,}",
            *(page.lasted(value) for value in (line.waited_p50, line.waited_p90, line.waited_max)),
            *(page.lasted(value) for value in (line.apart_p50, line.apart_p90)),
            f"{line.backdated:,}",
        )
        for line in report.merge_lines
    ]
    heads = (
        "branch",
        "merges",
        "waited, median",
        "waited, p90",
        "waited, longest",
        "apart, median",
        "apart, p90",
        "backdated",
    )
    picture = (
        f'<div class="charts"><figure>{_shares(report.waits, "Distribution of merge latency", TIME)}'
        "<figcaption>Share of the merges that waited this long or less; logarithmic time.</figcaption></figure></div>"
        if len(report.waits.points) > 1
        else ""
    )
    return (
        '<p class="note">Waited: from the last parent of a merge to the merge. Apart: from its first parent to the merge. '
        "By the times that authors state. A merge that is older than a parent is backdated, and not timed.</p>"
        + picture
        + page.table(heads, rows)
    )


def _replication(report: Report) -> str:
    rows = [
        (
            page.branch_cell(line.name, line.branch_id),
            report.names.of(line.node),
            f"{line.commits:,}",
            f"{line.lacking:,}",
            f"{line.first_here:,}",
            *(page.lasted(value) for value in (line.delay_p50, line.delay_p90, line.delay_max)),
        )
        for line in report.replication_lines
    ]
    heads = (
        "branch",
        "node",
        "commits",
        "behind by",
        "first here",
        "delay, median",
        "delay, p90",
        "delay, longest",
    )
    return (
        '<p class="note">Delay: from the first of these nodes that had a commit to this one, each by its own clock. A node '
        "without any commit of a branch has no row.</p>" + page.table(heads, rows)
    )


def _relays(report: Report) -> str:
    rows = [
        (
            f'<th scope="row">{report.names.of(line.node)}</th>',
            f"{line.topics:,}",
            f"{line.kept_topics:,}",
            f"{line.commits:,}",
            page.sized(line.size),
            page.sized(line.kept_size),
            "" if line.quota_use is None else f"{line.quota_use:.1%}",
        )
        for line in report.relay_lines
    ]
    heads = ("relay", "topics", "kept", "commits taken", "taken", "kept now", "of its quota")
    return (
        page.table(heads, rows)
        + '<p class="note">A relay opens nothing: it knows topics, ids, parents and sizes.</p>'
    )


def _drawing(drawing: Drawing, names: Names) -> str:
    count, total = len(drawing.commits), drawing.total
    which = (
        f"All {page.counted(total, 'commit')}"
        if count == total
        else f"The last {count:,} of {total:,} commits"
        if drawing.first_rank is None
        else f"{count:,} of {total:,} commits, where most were written side by side"
    )
    end = " end" if drawing.first_rank is None else ""
    return (
        f"<figure><h3>{page.branch_label(drawing.name, drawing.branch_id)}</h3>"
        f'<div class="drawing{end}" tabindex="0">{draw_tangle(drawing.commits, names)}</div>{LEGEND}'
        f"<figcaption>{which}, from left to right by rank; a lane for each user who signed.</figcaption></figure>"
    )


def _branches(report: Report) -> str:
    rows = [
        (
            page.branch_cell(line.name, line.branch_id),
            f"{line.commits:,}",
            f"{line.authors:,}",
            f"{line.depth:,}",
            f"{line.heads:,}",
            f"{line.forks:,}",
            f"{line.merges:,}",
            f"{line.width_max:,}",
            f"{line.width_mean:,.2f}",
            f"{line.concurrency:.0%}",
            page.sized(line.size),
            page.moment(line.first_time),
            page.moment(line.last_time),
        )
        for line in report.branch_lines
    ]
    heads = (
        "branch",
        "commits",
        "authors",
        "depth",
        "heads",
        "forks",
        "merges",
        "widest",
        "mean width",
        "concurrent",
        "size",
    )
    rest = report.branches - len(report.branch_lines)
    ones = "smaller one" if rest == 1 else "smaller ones"
    note = f"<p>And {rest:,} {ones}, in {page.link_to('branches')}.</p>" if rest else ""
    return page.table((*heads, "first", "last"), rows) + note


def _authors(report: Report) -> str:
    most = max((line.commits for line in report.author_lines), default=1)
    rows = [
        (
            f'<th scope="row">{report.names.of(text_id(line.author))}</th>',
            page.bar(line.commits, most),
            f"{line.commits / max(report.commits, 1):.1%}",
            f"{line.branches:,}",
            f"{line.feed_forks:,}",
            page.moment(line.last_time),
        )
        for line in report.author_lines
    ]
    rest = report.authors - len(report.author_lines)
    note = f"<p>And {rest:,} more, in {page.link_to('authors')}.</p>" if rest else ""
    if report.imported:
        note += (
            f'<p class="note">{page.counted(report.imported, "commit")} of these {_were(report.imported)} imported. Their '
            "authors are those where they came from, each by a hash of the name, and not the user who signed the import.</p>"
        )
    return page.table(("author", "commits", "share", "branches", "feed forks", "last"), rows) + note


def _were(count: int) -> str:
    return "was" if count == 1 else "were"


def _tables(downloads: Sequence[Download]) -> str:
    """Return what each table beside the page holds, as its definition says."""
    items = [
        f'<li id="table-{one.name}"><details><summary><code>{one.name}</code> {page.counted(one.rows, "row")}: '
        f"{_files(one)}</summary>A row for each {_plain(TABLES[one.name].rows)}. {_plain(TABLES[one.name].meaning)}"
        "</details></li>"
        for one in downloads
    ]
    return (
        "<p>They lie beside this page: a folder of Parquet files each, which DuckDB, pandas, polars and Spark read, and "
        f'small ones also as CSV. Each opens to what it says.</p><ul class="tables note">{"".join(items)}</ul>'
    )


def _files(table: Download) -> str:
    """Links to its files."""
    # A node that shows the page in a frame, where nothing lies beside it, takes these out: node/care/reports.py.
    links = [f'<a class="file" href="tables/{table.name}/">Parquet</a>']
    links += [f'<a class="file" href="csv/{table.name}.csv">CSV</a>'] if table.has_csv else []
    return ", ".join(links)


def _plain(text: str) -> str:
    return escape(text.replace("`", ""))
