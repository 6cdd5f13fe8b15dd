"""What an operator asks of an export, each as a sentence: what changed, who lags, what grows, what forks, what is missing.

The answers lie in the tables; here they are few numbers. What an analysis found is kept beside its tables (SUMMARY_NAME):
the next one into the same folder says what has changed since.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from html import escape
from pathlib import Path
from typing import Any, Final

from analytics.reading.times import DAY
from analytics.report import page
from analytics.report.pictures import draw_received
from analytics.tables.periods import Period, Rows

SUMMARY_NAME: Final = "summary.json"
_SUMMARY_SIZE_MAX: Final = 1 << 20
"""Bytes: it holds some numbers and the names of nodes."""
_RECENT: Final = 30 * DAY
_YEAR: Final = 365 * DAY
_NODES_MAX: Final = 10
"""Sentences of one kind; the tables hold all."""
_PICTURES_MAX: Final = 4
"""Each takes a third of a second to draw."""


@dataclass(frozen=True, slots=True)
class Summary:
    """What is compared with the next analysis."""

    nodes: tuple[str, ...]
    exported_at: int  # unix seconds
    commits: int
    branches: int
    size: int  # bytes of commits
    lacking: int  # commits that a node lacks, over all nodes
    forked: int  # authors
    unmerged: int  # branches with several heads
    missing: int  # parents that are absent


@dataclass(frozen=True, slots=True)
class Lag:
    """What one node lacks."""

    node: str
    branches: int
    lacking: int
    since: int | None  # unix milliseconds


@dataclass(frozen=True, slots=True)
class Received:
    """What one node received over time."""

    node: str
    points: tuple[tuple[int, int], ...]  # (start of a bucket in unix milliseconds, bytes in all by its end)
    bucket: int  # milliseconds
    recent: int  # bytes of the end of that time
    span: int  # milliseconds that this end lasts


@dataclass(frozen=True, slots=True)
class Standing:
    """The answers."""

    now: Summary
    before: Summary | None
    lags: tuple[Lag, ...]
    received: tuple[Received, ...]
    oldest_head: int | None  # unix milliseconds


def load_summary(out: Path) -> Summary | None:
    """What the analysis before found, None where there was none, or what is there is no summary."""
    try:
        with (out / SUMMARY_NAME).open("rb") as file:
            content = file.read(_SUMMARY_SIZE_MAX + 1)
        values = json.loads(content) if len(content) <= _SUMMARY_SIZE_MAX else None
    except (OSError, ValueError, RecursionError):
        return None
    if not isinstance(values, dict) or values.keys() != {field.name for field in fields(Summary)}:
        return None
    nodes = values.pop("nodes")
    if not isinstance(nodes, list) or not all(isinstance(node, str) for node in nodes):
        return None
    if not all(type(value) is int and 0 <= value < 1 << 62 for value in values.values()):
        return None
    return Summary(tuple(nodes), **values)


def save_summary(out: Path, summary: Summary) -> None:
    """Keep what was found for the next analysis. Raises OSError."""
    (out / SUMMARY_NAME).write_text(json.dumps(asdict(summary), indent=1) + "\n", encoding="utf-8")


def find_standing(
    rows: Rows,
    before: Summary | None,
    period: Period | None,
    nodes: Sequence[str],
    exported_at: int,
    total: Mapping[str, Any],
) -> Standing:
    """Ask the tables, which are written. `period` is that of receipts, `total` counts commits, branches and bytes."""
    lags = [
        Lag(row["node"], row["branches"], row["lacking"], row["since"])
        for row in rows(
            "SELECT node, count(*) AS branches, sum(lacking) AS lacking, min(since) AS since FROM lags "
            "GROUP BY node ORDER BY lacking DESC, node"
        )
    ]
    (forked,) = rows("SELECT count(DISTINCT author) AS authors FROM feed_forks")
    (unmerged,) = rows("SELECT count(*) AS branches, min(oldest) AS oldest FROM unmerged")
    (missing,) = rows("SELECT sum(causes_missing) AS causes FROM faults")
    now = Summary(
        tuple(nodes),
        exported_at,
        int(total["commits"] or 0),
        int(total["branches"]),
        int(total["bytes"] or 0),
        sum(int(lag.lacking) for lag in lags),
        int(forked["authors"]),
        int(unmerged["branches"]),
        int(missing["causes"] or 0),
    )
    # Older exports may be analyzed after newer ones: nothing has come "since" those.
    is_compared = before is not None and set(before.nodes) == set(nodes) and before.exported_at <= exported_at
    return Standing(
        now,
        before if is_compared else None,
        tuple(lags[:_NODES_MAX]),
        _received(rows, period, exported_at * 1000),
        unmerged["oldest"],
    )


def _received(rows: Rows, period: Period | None, exported_at: int) -> tuple[Received, ...]:
    if period is None:
        return ()
    points: dict[str, list[tuple[int, int, int]]] = {}
    for row in rows("SELECT * FROM store_growth ORDER BY node, bucket_start"):
        if row["node"] in points or len(points) < _NODES_MAX:
            points.setdefault(row["node"], []).append(
                (row["bucket_start"], row["bytes"], row["bytes_in_all"])
            )
    found = []
    for node, buckets in points.items():
        # Up to the export: a node that received nothing of late has a pace of nothing, and not that of its last bucket.
        end = max(buckets[-1][0] + period.bucket, exported_at)
        # With a bucket's beginning, as rows have whole buckets.
        start = max((end - _RECENT) // period.bucket * period.bucket, buckets[0][0])
        recent = sum(size for at, size, _ in buckets if at >= start)
        in_all = tuple((at, in_all) for at, _, in_all in buckets)
        found.append(Received(node, in_all, period.bucket, int(recent), end - start))
    return tuple(found)


def render_standing(standing: Standing) -> str:
    """The section's content as HTML."""
    now = standing.now
    sentences = [
        ("plain", _changed(now, standing.before)),
        *_lagging(standing),
        *(("plain", _grows(one)) for one in standing.received),
        (
            ("bad", f"{page.counted(now.forked, 'author')} used a place of a feed twice, as with a copied key or a restored "
            f"backup{_compared(now, standing.before, 'forked')}: {_rows_of('feed_forks')}")
            if now.forked
            else ("good", "No author forked a feed.")
        ),
        _heads(standing),
        (
            ("bad", f"{page.counted(now.missing, 'parent')} of commits {_is(now.missing)} missing"
            f"{_compared(now, standing.before, 'missing')}: {_rows_of('faults')}")
            if now.missing
            else ("good", "No parent of a commit is missing.")
        ),
    ]  # fmt: skip
    items = "".join(f'<li class="{kind}">{text}</li>' for kind, text in sentences)
    pictures = "".join(
        f"<figure><h3>{_node(one.node)}</h3>{draw_received(one.points, one.bucket, number)}"
        "<figcaption>Commits received, in MiB, by this node's clock (UTC).</figcaption></figure>"
        for number, one in enumerate(
            [one for one in standing.received if len(one.points) > 1][:_PICTURES_MAX]
        )
    )
    return f'<ul class="standing">{items}</ul>{pictures}'


def _changed(now: Summary, before: Summary | None) -> str:
    if before is None:
        return "This folder has no earlier analysis of these nodes: the next one says here what has changed."
    since = f"Since the export of {page.day(before.exported_at * 1000)}"
    if replace(now, nodes=before.nodes, exported_at=before.exported_at) == before:
        return f"{since} nothing has changed."
    if now.commits < before.commits:
        fewer = page.counted(before.commits - now.commits, "commit")
        return f"{since} there are {fewer} fewer: void, or deleted."
    branches = now.branches - before.branches
    more = f" and {_branches(branches)}" if branches > 0 else ""
    return (
        f"{since}, {page.counted(now.commits - before.commits, 'commit')}{more} came: "
        f"{page.sized(max(now.size - before.size, 0))}."
    )


def _lagging(standing: Standing) -> list[tuple[str, str]]:
    if len(standing.now.nodes) == 1:
        return [
            ("plain", "One node's export says nothing of its peers: analyze the exports of several together.")
        ]
    if not standing.lags:
        return [("good", "No node lacks a commit of a branch that it has in part.")]
    return [
        (
            "bad",
            f"Node {_node(lag.node)} lacks {page.counted(lag.lacking, 'commit')} of {_branches(lag.branches)}. Another node "
            f"has had the earliest since {page.day(lag.since)}: {_rows_of('lags')}",
        )
        for lag in standing.lags
    ]


def _grows(one: Received) -> str:
    received = (
        f"Node {_node(one.node)} received {page.sized(one.recent)} of commits in {page.duration(one.span)}."
    )
    if one.span < DAY:  # a first sync says nothing of a year
        return received
    pace = page.sized(one.recent * _YEAR // one.span)
    return f"{received} At that pace they take {pace} more disk space in a year."


def _heads(standing: Standing) -> tuple[str, str]:
    now = standing.now
    if not now.unmerged:
        return "good", "No branch has several heads."
    verb = "has" if now.unmerged == 1 else "have"
    age = ""
    if standing.oldest_head is not None:
        days = max(now.exported_at * 1000 - standing.oldest_head, 0) // DAY
        age = f" The oldest is of {page.day(standing.oldest_head)}, {page.counted(days, 'day')} before the export."
    return (
        "plain",
        f"{_branches(now.unmerged)} {verb} several heads{_compared(now, standing.before, 'unmerged')}.{age} "
        f"{_rows_of('unmerged')}",
    )


def _compared(now: Summary, before: Summary | None, name: str) -> str:
    """How many there were before, if that is another number."""
    if before is None or getattr(before, name) == getattr(now, name):
        return ""
    return f" ({getattr(before, name):,} before)"


def _rows_of(table: str) -> str:
    return f"<code>tables/{table}</code>."


def _branches(count: int) -> str:
    return "1 branch" if count == 1 else f"{count:,} branches"


def _is(count: int) -> str:
    return "is" if count == 1 else "are"


def _node(node: str) -> str:
    return f'<code title="{escape(node)}">{escape(page.short(node))}</code>'
