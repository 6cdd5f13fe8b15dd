"""Renders the report's sections on members, epochs and stores (escapes all input).

Computes nothing of its own; escapes what it is given.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from analytics.report import page
from analytics.report.page import Names
from analytics.report.pictures import draw_members
from ravel.exports.schema import text_id


@dataclass(frozen=True, slots=True)
class RepoLine:
    """One repo in the report."""

    repo_id: bytes
    members: int
    persons: int
    admins: int
    joins: int
    removals: int
    uncounted: int  # operations that others outrank
    left_out: int
    epochs: int
    last_epoch: int | None  # unix milliseconds
    last_reason: str | None


@dataclass(frozen=True, slots=True)
class MemberCurve:
    """Number of members of one repo over time."""

    repo_id: bytes
    points: tuple[tuple[int, int], ...]  # (start of a bucket in unix milliseconds, members at its end)
    bucket: int  # milliseconds
    epochs: tuple[int, ...]  # when they began: unix milliseconds


@dataclass(frozen=True, slots=True)
class MemberFigures:
    """Figures of all repos."""

    lines: tuple[RepoLine, ...] = ()  # those of most members, perhaps not all
    repos: int = 0
    curve: MemberCurve | None = None


@dataclass(frozen=True, slots=True)
class StoreLine:
    """Holdings of one node; None where its export does not say, or deduplicates nothing."""

    node: str
    commits: int
    blocks: int | None
    block_size: int | None  # bytes
    referenced_size: int | None  # bytes
    deduplication: float | None


def render_members(members: MemberFigures, names: Names) -> str:
    """Return the section's content as HTML."""
    rows = [
        (
            f'<th scope="row">{names.of(text_id(line.repo_id))}</th>',
            f"{line.members:,}",
            f"{line.persons:,}",
            f"{line.admins:,}",
            f"{line.joins:,}",
            f"{line.removals:,}",
            f"{line.uncounted:,}",
            f"{line.epochs:,}",
            page.moment(line.last_epoch),
            line.last_reason or page.DASH,
        )
        for line in members.lines
    ]
    heads = (
        "repo",
        "members",
        "persons",
        "admins",
        "joined",
        "left",
        "not counted",
        "epochs",
        "last epoch",
        "its reason",
    )
    rest = members.repos - len(members.lines)
    note = f"<p>And {rest:,} more, in {page.link_to('repos')}.</p>" if rest else ""
    left_out = sum(line.left_out for line in members.lines)
    bad = (
        f'<p class="verdict bad">{page.counted(left_out, "operation")} on members left out: without a place in the order, '
        "or not what such a commit says.</p>"
        if left_out
        else ""
    )
    return (
        f"{bad}{_curve(members.curve, names)}{page.table(heads, rows)}{note}"
        '<p class="note">Members as the node finds them now. Joined and left: by the operations of the root branch that '
        "count. Not counted: operations that others outrank. Each epoch has new secrets; times are UTC.</p>"
    )


def render_stores(lines: Sequence[StoreLine], names: Names) -> str:
    """Return the section's content as HTML."""
    rows = [
        (
            f'<th scope="row">{names.of(line.node)}</th>',
            f"{line.commits:,}",
            page.DASH if line.blocks is None else f"{line.blocks:,}",
            *(
                page.DASH if size is None else page.sized(size)
                for size in (line.block_size, line.referenced_size)
            ),
            page.DASH if line.deduplication is None else f"{line.deduplication:,.2f}",
        )
        for line in lines
    ]
    heads = ("node", "commits", "blocks", "stored", "referenced", "deduplication")
    return (
        page.table(heads, rows)
        + '<p class="note">Stored: bytes of the blocks that the node has, each once. Referenced: the blocks of all commits '
        "and files, as often as these refer to them. Deduplication: referenced by stored; 2 where all is referred to "
        "twice.</p>"
    )


def _curve(curve: MemberCurve | None, names: Names) -> str:
    if curve is None:
        return ""
    return (
        f'<div class="charts"><figure><h3>{names.of(text_id(curve.repo_id))}</h3>'
        f"{draw_members(curve.points, curve.bucket, curve.epochs)}"
        "<figcaption>Members by the time that authors state (UTC); a dashed line where an epoch begins.</figcaption>"
        "</figure></div>"
    )
