"""Sections of the report about exchange between people and nodes: answers, bytes, merges and delays.

A section shows the first rows of one table of the results. An empty table gives no section. All input is escaped.
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from html import escape
from typing import Any, Final

from analytics.report import page
from analytics.report.labels import LABELS, label
from analytics.report.page import Names
from analytics.tables.periods import Rows
from ravel.exports.schema import text_id

_PEOPLE_MAX: Final = 12
"""People in the matrix: a phone still shows so many columns."""
_ROWS_MAX: Final = 20
_THREADS_MAX: Final = 10
_MONTHS_MAX: Final = 24
"""Rows that a page can show and a person take in; the tables hold all."""


def render_flows(rows: Rows, names: Names) -> str:
    """Return the sections as HTML. The tables must have been written."""
    sections = (_answers, _threads, _disk, _months, _pairs, _held_back)
    return "\n".join(section(rows, names) for section in sections)


def _answers(rows: Rows, names: Names) -> str:
    """Return a matrix of answers, from people in rows to people in columns. It has those with most answers."""
    people = rows(
        f"SELECT id, given, received FROM reply_nodes ORDER BY given + received DESC, id LIMIT {_PEOPLE_MAX}"
    )
    if not people:
        return ""
    told = ", ".join(f"X'{one['id'].hex()}'" for one in people)
    edges = {
        (row["source"], row["target"]): int(row["weight"])
        for row in rows(
            f"SELECT source, target, sum(weight) AS weight FROM reply_edges "
            f"WHERE source IN ({told}) AND target IN ({told}) GROUP BY source, target"
        )
    }
    most = max(edges.values(), default=1)

    def cell(source: bytes, target: bytes) -> str:
        weight = edges.get((source, target), 0)
        text = text_id(target)
        head = escape(names.known.get(text) or page.short(text))
        return f'<td data-head="{head}" style="--part:{weight / most:.2f}">{f"{weight:,}" if weight else ""}</td>'

    called = [names.of(text_id(one["id"])) for one in people]
    head = "".join(f'<th scope="col">{name}</th>' for name in called)
    body = "".join(
        f'<tr><th scope="row">{name}</th>{"".join(cell(one["id"], other["id"]) for other in people)}</tr>\n'
        for name, one in zip(called, people, strict=True)
    )
    return (
        '<h2>Who answers whom</h2><p class="note">Each cell counts the answers from the left person to the upper one. '
        f"All edges by month, for networkx, Gephi or GraphFrames: {page.link_to('reply_edges')}, their nodes: "
        f'{page.link_to("reply_nodes")}.</p><div class="wide matrix" tabindex="0"><table><thead><tr><th></th>{head}</tr>'
        f"</thead><tbody>{body}</tbody></table></div>"
    )


def _threads(rows: Rows, names: Names) -> str:
    lines = [
        (
            page.branch_cell(label(row, names), row["root"]),
            f"{row['commits'] - 1:,}",
            f"{row['authors']:,}",
            f"{row['depth']:,}",
            page.lasted(row["latency_p50"]),
            page.lasted(row["latency_p90"]),
            page.moment(row["last_time"]),
        )
        for row in rows(
            f"SELECT * FROM tangles JOIN {LABELS} USING (branch_id) WHERE kind = 'reply' AND commits > 1 "
            f"ORDER BY commits DESC, root LIMIT {_THREADS_MAX}"
        )
    ]
    heads = ("thread", "answers", "people", "depth", "time to an answer, median", "p90", "last")
    note = f"By branch, and the post that began each. All: {page.link_to('tangles')}."
    return _section("Most answered threads", heads, lines, note)


def _held_back(rows: Rows, names: Names) -> str:
    lines = [
        (
            f'<th scope="row">{names.of(row["node"])}</th>',
            page.named(label(row, names)) if row["owner"] else page.DASH,
            row["state"],
            escape(row["reason"]),
            f"{row['commits']:,}",
            page.DASH if row["bytes"] is None else page.sized(row["bytes"]),
            page.moment(row["oldest_at"]),
        )
        for row in rows(
            f"SELECT * FROM held_back LEFT JOIN {LABELS} USING (branch_id) "
            f"ORDER BY commits DESC, node, state, reason, branch_id LIMIT {_ROWS_MAX}"
        )
    ]
    heads = ("node", "branch", "state", "reason", "commits", "size", "oldest")
    note = f"Commits that have no place yet, or none. All: {page.link_to('held_back')}."
    return _section("Waiting and refused", heads, lines, note)


def _disk(rows: Rows, names: Names) -> str:
    found = rows(
        "SELECT repo_id, min(repo_name) AS repo_name FROM branch_names GROUP BY repo_id ORDER BY repo_id"
    )
    stated = {row["repo_id"]: row["repo_name"] for row in found}
    lines = [
        (
            f'<th scope="row">{_repo(row["repo_id"], stated, names)}</th>',
            names.of(text_id(row["author"])),
            f"{row['commits']:,}",
            page.sized(row["bytes"]),
            f"{row['files']:,}",
            page.sized(row["file_bytes"]),
        )
        for row in rows(
            f"SELECT * FROM disk ORDER BY bytes + file_bytes DESC, repo_id, author LIMIT {_ROWS_MAX}"
        )
    ]
    heads = ("repo", "author", "commits", "commits take", "files", "files take")
    return _section(
        "Disk by repo and author", heads, lines, f"Files as authors state them. All: {page.link_to('disk')}."
    )


def _months(rows: Rows, names: Names) -> str:
    largest = rows(
        "SELECT repo_id, sum(merges) AS merges FROM merge_months GROUP BY repo_id ORDER BY merges DESC, repo_id LIMIT 1"
    )
    if not largest:
        return ""
    repo = largest[0]["repo_id"]
    stated = rows(f"SELECT min(repo_name) AS repo_name FROM branch_names WHERE repo_id = X'{repo.hex()}'")
    lines = [
        (
            f'<th scope="row">{_month(row["month_start"])}</th>',
            f"{row['merges']:,}",
            page.lasted(row["waited_p50"]),
            page.lasted(row["waited_p90"]),
        )
        for row in rows(
            f"SELECT * FROM merge_months WHERE repo_id = X'{repo.hex()}' ORDER BY month_start DESC LIMIT {_MONTHS_MAX}"
        )
    ]
    return _section(
        "Merge latency by month",
        ("month", "merges", "waited, median", "waited, p90"),
        lines,
        f"Of {_repo(repo, {repo: stated[0]['repo_name']}, names)}, which has most merges. "
        f"All: {page.link_to('merge_months')}.",
    )


def _pairs(rows: Rows, names: Names) -> str:
    lines = [
        (
            f'<th scope="row">{_month(row["month_start"])}</th>',
            names.of(row["first_node"]),
            names.of(row["node"]),
            f"{row['commits']:,}",
            page.lasted(row["delay_p50"]),
            page.lasted(row["delay_p90"]),
        )
        for row in rows(
            f"SELECT * FROM node_pairs ORDER BY month_start DESC, commits DESC, first_node, node LIMIT {_ROWS_MAX}"
        )
    ]
    heads = ("month", "from", "to", "commits", "delay, median", "delay, p90")
    return _section(
        "Delay between nodes",
        heads,
        lines,
        f"From the first node that had a commit, the latest months first. All: {page.link_to('node_pairs')}.",
    )


def _section(title: str, heads: Sequence[str], lines: Sequence[Sequence[str]], note: str) -> str:
    if not lines:
        return ""
    return f'<h2>{title}</h2><p class="note">{note}</p>{page.table(heads, lines)}'


def _repo(repo_id: bytes, stated: Mapping[bytes, Any], names: Names) -> str:
    text = text_id(repo_id)
    name = names.known.get(text) or stated.get(repo_id)
    return page.named(name) if name else names.of(text)


def _month(start: int) -> str:
    return f"<time>{datetime.fromtimestamp(start / 1000, UTC):%Y-%m}</time>"
