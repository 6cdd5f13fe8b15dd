"""The report: one HTML file a person likes to look at, on a screen, a phone or paper, with nothing to fetch.

Says what it was given and computes nothing of its own. Every string in it is escaped: names and authors come from anybody.
"""

import base64
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from html import escape
from pathlib import Path
from string import Template
from typing import Final

from analytics.pictures import WidthBin, bins_are_wide, draw_growth, draw_widths

_TEMPLATE: Final = Path(__file__).with_name("report.html")

_SHORT_ID_SIZE: Final = 10
"""Characters of an id that tell it from its neighbours on a page; commands take such prefixes."""

_DASH: Final = "\N{EN DASH}"


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
    size: int
    first_time: int | None  # unix milliseconds, as authors assert
    last_time: int | None


@dataclass(frozen=True, slots=True)
class AuthorLine:
    """One author in the report."""

    author: bytes
    commits: int
    branches: int
    last_time: int | None


@dataclass(frozen=True, slots=True)
class Growth:
    """Commits per time bucket, over all branches."""

    points: tuple[tuple[int, int], ...]  # (start in unix milliseconds, commits)
    bucket: int  # milliseconds
    left_out: int


@dataclass(frozen=True, slots=True)
class BranchWidths:
    """Widths along one branch."""

    name: str
    ranks: int
    bins: tuple[WidthBin, ...]


@dataclass(frozen=True, slots=True)
class Report:
    """All that the page says."""

    nodes: tuple[str, ...]
    exported_at: int  # unix seconds
    commits: int
    branches: int
    repos: int
    authors: int
    size: int
    is_verified: bool
    mismatches: int
    faults: dict[str, int]
    branch_lines: tuple[BranchLine, ...]  # the largest first, perhaps not all
    author_lines: tuple[AuthorLine, ...]
    growth: Growth | None
    widths: tuple[BranchWidths, ...]


def render(report: Report) -> str:
    """The page as text."""
    return Template(_TEMPLATE.read_text(encoding="utf-8")).substitute(
        subtitle=_subtitle(report),
        verdict=_verdict(report),
        tiles=_tiles(report),
        growth=_growth(report.growth),
        widths="".join(_widths(one, number) for number, one in enumerate(report.widths)),
        branches=_branches(report),
        authors=_authors(report),
    )


def text_id(raw: bytes) -> str:
    """The text form of an id: lowercase base32 without padding."""
    return base64.b32encode(raw).decode().rstrip("=").lower()


def _subtitle(report: Report) -> str:
    nodes = "nodes" if len(report.nodes) > 1 else "node"
    names = ", ".join(f'<code title="{escape(node)}">{escape(_short(node))}</code>' for node in report.nodes)
    return f"Exported by {nodes} {names} on {_day(report.exported_at * 1000)}"


def _verdict(report: Report) -> str:
    lines = []
    if not report.is_verified:
        lines.append(("plain", "The order was computed anew, and not compared with the node's."))
    elif report.mismatches:
        lines.append(
            (
                "bad",
                f"{_counted(report.mismatches, 'commit')} stand elsewhere than the node says. "
                "The export was altered, or one of the two has a defect.",
            )
        )
    else:
        lines.append(
            (
                "good",
                "Spark computed the order of every branch anew, from acks alone, "
                f"and agrees with the node on all {report.commits:,} commits.",
            )
        )
    for fault, count in sorted(report.faults.items()):
        lines.append(
            ("bad", f"{_counted(count, 'commit')} left out, having no place in the order: {escape(fault)}.")
        )
    return "".join(f'<p class="verdict {kind}">{text}</p>' for kind, text in lines)


def _tiles(report: Report) -> str:
    tiles = [
        ("commits", f"{report.commits:,}"),
        ("branches", f"{report.branches:,}"),
        ("repos", f"{report.repos:,}"),
        ("authors", f"{report.authors:,}"),
        ("encrypted", _size(report.size)),
    ]
    return "".join(f"<div><dt>{name}</dt><dd>{value}</dd></div>" for name, value in tiles)


def _growth(growth: Growth | None) -> str:
    if growth is None:
        return "<p>No commit states a time.</p>"
    left_out = (
        f" {_counted(growth.left_out, 'commit')} with no time, or one far from all others, "
        f"{'is' if growth.left_out == 1 else 'are'} not shown."
        if growth.left_out
        else ""
    )
    return (
        f"<figure>{draw_growth(growth.points, growth.bucket)}"
        f"<figcaption>One bar is {_span(growth.bucket)}, by the time that authors state (UTC).{left_out}</figcaption>"
        "</figure>"
    )


def _widths(widths: BranchWidths, number: int) -> str:
    note = (
        "Neighbouring ranks are drawn together: the strong colour is their mean, the faint one the widest."
        if bins_are_wide(widths.bins, widths.ranks)
        else ""
    )
    return (
        f"<figure><h3>{_name(widths.name)}</h3>{draw_widths(widths.bins, widths.ranks, number)}"
        f"<figcaption>{note}</figcaption></figure>"
    )


def _branches(report: Report) -> str:
    rows = [
        (
            f'<th scope="row">{_name(line.name)} <code title="{text_id(line.branch_id)}">'
            f"{_short(text_id(line.branch_id))}</code></th>",
            f"{line.commits:,}",
            f"{line.authors:,}",
            f"{line.depth:,}",
            f"{line.heads:,}",
            f"{line.forks:,}",
            f"{line.merges:,}",
            f"{line.width_max:,}",
            f"{line.width_mean:,.2f}",
            _size(line.size),
            _day(line.first_time),
            _day(line.last_time),
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
        "size",
    )
    rest = report.branches - len(report.branch_lines)
    note = f"<p>And {rest:,} smaller ones, in <code>tables/branches</code>.</p>" if rest else ""
    return _table((*heads, "first", "last"), rows) + note


def _authors(report: Report) -> str:
    most = max((line.commits for line in report.author_lines), default=1)
    rows = [
        (
            f'<th scope="row"><code title="{text_id(line.author)}">{_short(text_id(line.author))}</code></th>',
            f'<span class="bar" style="--part:{line.commits / most:.3f}"></span>{line.commits:,}',
            f"{line.commits / max(report.commits, 1):.1%}",
            f"{line.branches:,}",
            _day(line.last_time),
        )
        for line in report.author_lines
    ]
    rest = report.authors - len(report.author_lines)
    note = f"<p>And {rest:,} more, in <code>tables/authors</code>.</p>" if rest else ""
    return _table(("author", "commits", "share", "branches", "last"), rows) + note


def _table(heads: Iterable[str], rows: Iterable[Sequence[str]]) -> str:
    """A table; the first cell of a row brings its own element."""
    head = "".join(f'<th scope="col">{name}</th>' for name in heads)
    body = "".join(f"<tr>{row[0]}{''.join(f'<td>{cell}</td>' for cell in row[1:])}</tr>\n" for row in rows)
    return f'<div class="wide" tabindex="0"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def _name(name: str) -> str:
    # A name may hold letters that turn the direction of text; it does so inside <bdi> only.
    return f"<bdi>{escape(name)}</bdi>" if name.strip() else "<i>(no name)</i>"


def _short(text: str) -> str:
    return text[:_SHORT_ID_SIZE] + "\N{HORIZONTAL ELLIPSIS}" if len(text) > _SHORT_ID_SIZE else text


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def _day(milliseconds: int | None) -> str:
    return _DASH if milliseconds is None else f"{datetime.fromtimestamp(milliseconds / 1000, UTC):%Y-%m-%d}"


def _span(milliseconds: int) -> str:
    for unit, name in ((86_400_000, "day"), (3_600_000, "hour"), (60_000, "minute")):
        if milliseconds >= unit:
            return _counted(milliseconds // unit, name)
    return _counted(milliseconds // 1000, "second")


def _size(count: int) -> str:
    size = float(count)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < 1024:
            return f"{size:,.0f} {unit}" if unit == "B" else f"{size:,.1f} {unit}"
        size /= 1024
    return f"{size:,.1f} TiB"
