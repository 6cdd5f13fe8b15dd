"""Answers to an operator, as sentences: what changed, who lags, what grows, what forks, what is missing.

The answers lie in the tables; here they are few numbers. What an analysis found is kept beside its tables (SUMMARY_NAME):
the next one into the same folder says what has changed since.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any, Final

from analytics.reading.times import DAY
from analytics.report import page
from analytics.report.labels import LABELS, label
from analytics.report.page import NO_NAMES, Names
from analytics.report.pictures import draw_received
from analytics.tables.periods import Period, Rows
from ravel.exports.schema import text_id

SUMMARY_NAME: Final = "summary.json"
_SUMMARY_SIZE_MAX: Final = 1 << 20
"""Bytes: it holds some numbers and the names of nodes."""
_RECENT: Final = 30 * DAY
_YEAR: Final = 365 * DAY
_NODES_MAX: Final = 10
"""Sentences of one kind; the tables hold all."""
_PICTURES_MAX: Final = 4
"""Each takes a third of a second to draw."""
_APART: Final = 60_000
"""Milliseconds between exports from which on the page says so."""
_ROWS_MAX: Final = 10
"""Of one table that stand behind a sentence; the table holds all."""


@dataclass(frozen=True, slots=True)
class Summary:
    """Summary that the next analysis compares itself with."""

    nodes: tuple[str, ...]
    exported_at: int  # unix seconds
    commits: int
    branches: int
    size: int  # bytes of commits
    lacking: int  # commits that a node lacks, over all nodes
    forked: int  # authors
    unmerged: int  # branches with several heads
    missing: int  # parents that are absent
    damaged: int  # repos whose root branch is damaged, over all nodes


@dataclass(frozen=True, slots=True)
class Lag:
    """Commits that one node lacks."""

    node: str
    branches: int
    lacking: int
    since: int | None  # unix milliseconds


@dataclass(frozen=True, slots=True)
class Received:
    """Growth of one node's store over time."""

    node: str
    points: tuple[tuple[int, int], ...]  # (start of a bucket in unix milliseconds, bytes in all by its end)
    bucket: int  # milliseconds
    recent: int  # bytes of the end of that time
    span: int  # milliseconds that this end lasts
    held: int | None = None  # bytes of blocks, None where the export does not say
    files: int = 0  # bytes of files that commits of that end add


@dataclass(frozen=True, slots=True)
class LagRow:
    """Commits of one branch that one node lacks."""

    branch_id: bytes
    name: str
    node: str
    lacking: int
    since: int | None  # unix milliseconds


@dataclass(frozen=True, slots=True)
class ForkRow:
    """An author's forked feed in one branch."""

    branch_id: bytes
    name: str
    author: bytes
    places: int
    first_place: int


@dataclass(frozen=True, slots=True)
class UnmergedRow:
    """A branch with several heads."""

    branch_id: bytes
    name: str
    heads: int
    oldest: int | None  # unix milliseconds
    newest: int | None  # unix milliseconds


@dataclass(frozen=True, slots=True)
class FaultRow:
    """A branch with commits that have no place in the order, for parents are missing or on a cycle."""

    branch_id: bytes
    name: str
    missing: int  # parents
    left_out: int  # commits


@dataclass(frozen=True, slots=True)
class ClockRow:
    """A clock that went back: a node's, or an author's in a branch."""

    branch_id: bytes | None
    name: str
    whose: str  # id as text
    steps: int
    back_max: int  # milliseconds
    first_at: int  # unix milliseconds


@dataclass(frozen=True, slots=True)
class Clocks:
    """Count the clocks that went back, and name those that went farthest."""

    count: int = 0
    back_max: int = 0  # milliseconds
    rows: tuple[ClockRow, ...] = ()


@dataclass(frozen=True, slots=True)
class StandingRows:
    """The rows behind the sentences: of each table those with most, perhaps not all."""

    lags: tuple[LagRow, ...] = ()
    forks: tuple[ForkRow, ...] = ()
    unmerged: tuple[UnmergedRow, ...] = ()
    faults: tuple[FaultRow, ...] = ()


@dataclass(frozen=True, slots=True)
class Standing:
    """The answers."""

    now: Summary
    before: Summary | None
    lags: tuple[Lag, ...]
    received: tuple[Received, ...]
    oldest_head: int | None  # unix milliseconds
    rows: StandingRows = StandingRows()
    absent: tuple[tuple[str, int], ...] = ()  # nodes, and how many branches they have nothing of
    clocks: Clocks = Clocks()
    apart: int = 0  # milliseconds from the oldest export of a node to the newest


def load_summary(out: Path) -> Summary | None:
    """Return what the analysis before found, None where there was none, or what is there is no summary."""
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
    damaged: int = 0,
    names: Names = NO_NAMES,
    apart: int = 0,
) -> Standing:
    """Ask the tables, which are written. `period` is that of receipts, `total` counts commits, branches and bytes.

    `damaged` counts repos whose root branch a node found damaged as it exported.
    """
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
        damaged,
    )
    held = rows("SELECT node, count(*) AS branches FROM replication GROUP BY node") if len(nodes) > 1 else []
    here = {row["node"]: int(row["branches"]) for row in held}
    absent = tuple((node, now.branches - here.get(node, 0)) for node in nodes if len(nodes) > 1)
    # Older exports may be analyzed after newer ones: nothing has come "since" those.
    is_compared = before is not None and set(before.nodes) == set(nodes) and before.exported_at <= exported_at
    return Standing(
        now,
        before if is_compared else None,
        tuple(lags[:_NODES_MAX]),
        _received(rows, period, exported_at * 1000),
        unmerged["oldest"],
        _find_rows(rows, now, names),
        tuple((node, branches) for node, branches in absent if branches > 0)[:_NODES_MAX],
        _find_clocks(rows, names),
        apart,
    )


def _find_rows(rows: Rows, now: Summary, names: Names) -> StandingRows:
    """Query only tables that have rows: most exports have none of these."""

    def of(is_any: int, table: str, columns: str, order: str, where: str = "true") -> list[list[Any]]:
        if not is_any:
            return []
        found = rows(
            f"SELECT branch_id, branch_name, repo_name, owner, namesakes, {columns} "
            f"FROM (SELECT * FROM {table} WHERE {where}) AS told JOIN {LABELS} USING (branch_id) "
            f"ORDER BY {order}, branch_id LIMIT {_ROWS_MAX}"
        )
        return [[row["branch_id"], label(row, names), *list(row.values())[5:]] for row in found]

    lags = of(now.lacking, "lags", "node, lacking, since", "lacking DESC, node")
    forks = of(now.forked, "feed_forks", "author, places, first_place", "places DESC, author")
    unmerged = of(now.unmerged, "unmerged", "heads, oldest, newest", "heads DESC")
    left_out = "commits - placed - void"
    faults = of(
        now.missing,
        "faults",
        f"causes_missing, {left_out} AS left_out",
        "causes_missing DESC",
        f"{left_out} > 0",
    )
    return StandingRows(
        tuple(LagRow(*row) for row in lags),
        tuple(ForkRow(*row) for row in forks),
        tuple(UnmergedRow(*row) for row in unmerged),
        tuple(FaultRow(*row) for row in faults),
    )


def _find_clocks(rows: Rows, names: Names) -> Clocks:
    (found,) = rows("SELECT count(*) AS clocks, max(back_max) AS back_max FROM clocks")
    if not found["clocks"]:
        return Clocks()
    told = rows(
        f"SELECT * FROM clocks LEFT JOIN {LABELS} USING (branch_id) "
        f"ORDER BY back_max DESC, node, branch_id, author LIMIT {_ROWS_MAX}"
    )
    return Clocks(
        found["clocks"],
        found["back_max"],
        tuple(
            ClockRow(
                row["branch_id"],
                "" if row["branch_id"] is None else label(row, names),
                row["node"] or text_id(row["author"]),
                row["steps"],
                row["back_max"],
                row["first_at"],
            )
            for row in told
        ),
    )


def _received(rows: Rows, period: Period | None, exported_at: int) -> tuple[Received, ...]:
    if period is None:
        return ()
    points: dict[str, list[tuple[int, int, int, int]]] = {}
    # A clock that ran ahead says nothing of the time after the export, and would thin the pace until then.
    for row in rows(
        f"SELECT * FROM store_growth WHERE bucket_start <= {exported_at} ORDER BY node, bucket_start"
    ):
        if row["node"] in points or len(points) < _NODES_MAX:
            points.setdefault(row["node"], []).append(
                (row["bucket_start"], row["bytes"], row["bytes_in_all"], row["file_bytes"])
            )
    held = {row["node"]: row["block_bytes"] for row in rows("SELECT node, block_bytes FROM stores")}
    found = []
    for node, buckets in points.items():
        # Up to the export: a node that received nothing of late has a pace of nothing, and not that of its last bucket.
        end = exported_at
        # With a bucket's beginning, as rows have whole buckets.
        start = max((end - _RECENT) // period.bucket * period.bucket, buckets[0][0])
        recent = sum(size for at, size, _, _ in buckets if at >= start)
        files = sum(size for at, _, _, size in buckets if at >= start)
        in_all = tuple((at, in_all) for at, _, in_all, _ in buckets)
        found.append(
            Received(node, in_all, period.bucket, int(recent), end - start, held.get(node), int(files))
        )
    return tuple(found)


def render_standing(standing: Standing, names: Names) -> str:
    """Return the section's content as HTML: sentences, then pictures and the rows that they are about."""
    now = standing.now
    sentences = [
        ("plain", _changed(now, standing.before)),
        *_lagging(standing, names),
        *(("plain", _grows(one, names)) for one in standing.received),
        (
            ("bad", f"{page.counted(now.forked, 'author')} used a place of a feed twice, as with a copied key or a restored "
            f"backup{_compared(now, standing.before, 'forked')}: {_link('feed_forks')}.")
            if now.forked
            else ("good", "No author forked a feed.")
        ),
        _heads(standing),
        (
            ("bad", f"{page.counted(now.missing, 'parent')} of commits {_is(now.missing)} missing"
            f"{_compared(now, standing.before, 'missing')}: {_link('faults')}.")
            if now.missing
            else ("good", "No parent of a commit is missing.")
        ),
        (
            ("bad", f"{page.counted(now.damaged, 'repo')} {_has(now.damaged)} a damaged root branch"
            f"{_compared(now, standing.before, 'damaged')}. Its members are not in the export: "
            "<code>ravel fsck</code> says more.")
            if now.damaged
            else ("good", "No root branch is damaged.")
        ),
        (
            ("bad", f"{page.counted(standing.clocks.count, 'clock')} went back, {page.duration(standing.clocks.back_max)} "
            f"at most: {_link('clocks')}. Times of these nodes and authors are as good as their clocks.")
            if standing.clocks.count
            else ("good", "No clock went back.")
        ),
    ]  # fmt: skip
    items = "".join(f'<li class="{kind}">{text}</li>' for kind, text in sentences)
    pictures = "".join(
        f"<figure><h3>{names.of(one.node)}</h3>{draw_received(one.points, one.bucket, _pace(one, one.recent))}"
        "<figcaption>Commits received, by this node's clock (UTC)."
        f"{'' if _pace(one, one.recent) is None else ' Dashed: on at the pace of late.'}</figcaption>"
        "</figure>"
        for one in [one for one in standing.received if len(one.points) > 1][:_PICTURES_MAX]
    )
    charts = f'<div class="charts">{pictures}</div>' if pictures else ""
    return f'<ul class="standing">{items}</ul>{charts}{_render_rows(standing, names)}'


def _render_rows(standing: Standing, names: Names) -> str:
    rows, moment = standing.rows, page.moment
    asked_at = standing.now.exported_at * 1000
    return "".join(
        (
            _section(
                "lags",
                "Who is behind",
                ("branch", "commits missing", "node", "another node has them since"),
                [
                    (one.branch_id, one.name, one.lacking, names.of(one.node), moment(one.since))
                    for one in rows.lags
                ],
            ),
            _section(
                "feed_forks",
                "Forked feeds",
                ("branch", "places", "author", "first place"),
                [
                    (
                        one.branch_id,
                        one.name,
                        one.places,
                        names.of(text_id(one.author)),
                        f"{one.first_place:,}",
                    )
                    for one in rows.forks
                ],
            ),
            _section(
                "unmerged",
                "Unmerged heads",
                ("branch", "heads", "oldest", "newest", "age of the oldest"),
                [
                    (
                        one.branch_id,
                        one.name,
                        one.heads,
                        moment(one.oldest),
                        moment(one.newest),
                        page.DASH if one.oldest is None else page.duration(max(asked_at - one.oldest, 0)),
                    )
                    for one in rows.unmerged
                ],
            ),
            _section(
                "faults",
                "Missing parents",
                ("branch", "parents", "commits left out"),
                [(one.branch_id, one.name, one.missing, f"{one.left_out:,}") for one in rows.faults],
            ),
            _section(
                "clocks",
                "Clocks that went back",
                ("branch", "times", "whose", "farthest", "first back to"),
                [
                    (
                        one.branch_id,
                        one.name,
                        one.steps,
                        names.of(one.whose),
                        page.lasted(one.back_max),
                        moment(one.first_at),
                    )
                    for one in standing.clocks.rows
                ],
            ),
        )
    )


def _section(
    table: str,
    title: str,
    heads: Sequence[str],
    rows: Sequence[tuple[bytes | None, str, int, *tuple[str, ...]]],
) -> str:
    """Rows of a table as HTML: a branch (None: all), a number with a bar, and cells of HTML. Nothing without rows."""
    if not rows:
        return ""
    most = max(*(row[2] for row in rows), 1)
    cells = [
        (
            '<th scope="row">all</th>' if branch_id is None else page.branch_cell(name, branch_id),
            page.bar(count, most),
            *more,
        )
        for branch_id, name, count, *more in rows
    ]
    note = f'<p class="note">{"The first: all" if len(rows) == _ROWS_MAX else "All"} rows are in {page.link_to(table)}.</p>'
    return f'<h3 id="rows-{table}">{title}</h3>{page.table(heads, cells)}{note}'


def _changed(now: Summary, before: Summary | None) -> str:
    if before is None:
        return "This folder has no earlier analysis of these nodes: the next one says here what has changed."
    since = f"Since the export of {page.moment(before.exported_at * 1000)}"
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


def _lagging(standing: Standing, names: Names) -> list[tuple[str, str]]:
    if len(standing.now.nodes) == 1:
        return [
            (
                "plain",
                "This is one node's export, which does not hold what peers have. <code>ravel status</code> shows it for "
                "connected peers. <code>ravel analyze EXPORT1 EXPORT2</code> compares nodes and shows since when one lags.",
            )
        ]
    absent = [
        (
            "plain",
            f"{_node(node, names)} has no commit of {_branches(branches)}: it does not follow "
            f"{'it' if branches == 1 else 'them'}, or nothing has come yet.",
        )
        for node, branches in standing.absent
    ]
    if not standing.lags:
        return [("good", "No node is behind another in a branch that it has in part."), *absent]
    age = (
        f" The exports were made {page.duration(standing.apart)} apart: some of this may have come since."
        if standing.apart >= _APART
        else ""
    )
    return [
        (
            "bad",
            f"{_node(lag.node, names)} is behind by {page.counted(lag.lacking, 'commit')} of {_branches(lag.branches)}. "
            f"Another node has had the earliest since {page.moment(lag.since)}: {_link('lags')}.{age}",
        )
        for lag in standing.lags
    ] + absent


def _grows(one: Received, names: Names) -> str:
    received = (
        f"{_node(one.node, names)} received {page.sized(one.recent)} of commits"
        f"{f', which add {page.sized(one.files)} of files,' if one.files else ''} in {page.duration(one.span)}."
    )
    held = "" if one.held is None else f" It holds {page.sized(one.held)} of blocks."
    pace = _pace(one, one.recent + one.files)
    if pace is None:
        return received + held
    growth = round(pace * _YEAR)
    forecast = f" At that pace they take {page.sized(growth)} more disk space in a year"
    return f"{received}{held}{forecast}{'' if one.held is None else f', {page.sized(one.held + growth)} in all'}."


def _pace(one: Received, size: int) -> float | None:
    """Bytes in a millisecond; None of less than a day: a first sync says nothing of a year."""
    return size / one.span if one.span >= DAY else None


def _heads(standing: Standing) -> tuple[str, str]:
    now = standing.now
    if not now.unmerged:
        return "good", "No branch has several heads."
    age = ""
    if standing.oldest_head is not None:
        old = page.duration(max(now.exported_at * 1000 - standing.oldest_head, 0))
        age = f" The oldest is of {page.moment(standing.oldest_head)}, {old} before the export"
    return (
        "plain",
        f"{_branches(now.unmerged)} {_has(now.unmerged)} several heads{_compared(now, standing.before, 'unmerged')}."
        f"{age or ' None states a time'}: {_link('unmerged')}.",
    )


def _compared(now: Summary, before: Summary | None, name: str) -> str:
    """Return how many there were before, if that is another number."""
    if before is None or getattr(before, name) == getattr(now, name):
        return ""
    return f" ({getattr(before, name):,} before)"


def _node(node: str, names: Names) -> str:
    """Return a node as the first words of a sentence."""
    return f"{'' if node in names.known else 'Node '}{names.of(node)}"


def _link(table: str) -> str:
    """Return a link to the rows on the same page."""
    return f'<a href="#rows-{table}">the rows</a>'


def _branches(count: int) -> str:
    return "1 branch" if count == 1 else f"{count:,} branches"


def _is(count: int) -> str:
    return "is" if count == 1 else "are"


def _has(count: int) -> str:
    return "has" if count == 1 else "have"
