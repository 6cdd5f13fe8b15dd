"""Collects the rows on members, epochs and stores that the report shows."""

from typing import Final

from analytics.engines.engine import Catalog
from analytics.report.member_page import MemberCurve, MemberFigures, RepoLine, StoreLine
from analytics.tables.definitions import TABLES
from analytics.tables.periods import Period, Rows

_REPO_LINES_MAX: Final = 20
_STORE_LINES_MAX: Final = 40
_EPOCHS_DRAWN_MAX: Final = 100
"""Rows that a page can show and a person take in; the tables hold all."""


def member_figures(rows: Rows, catalog: Catalog, period: Period | None) -> MemberFigures:
    """Return what the page says of members and epochs, once the tables are written."""
    if not catalog.has_rows_of(TABLES["repos"].of):
        return MemberFigures()
    found = rows(
        "WITH numbered AS (SELECT repo_id, started_at, reason, "
        "row_number() OVER (PARTITION BY repo_id ORDER BY number DESC) AS place FROM epochs), "
        "latest AS (SELECT repo_id, started_at, reason FROM numbered WHERE place = 1) "
        "SELECT * FROM repos LEFT JOIN latest USING (repo_id) "
        f"ORDER BY members DESC, operations DESC, repo_id LIMIT {_REPO_LINES_MAX}"
    )
    lines = tuple(
        RepoLine(
            row["repo_id"],
            row["members"],
            row["persons"],
            row["admins"],
            row["joins"],
            row["removals"],
            row["uncounted"],
            row["left_out"],
            row["epochs"],
            row["started_at"],
            row["reason"],
        )
        for row in found
    )
    (total,) = rows("SELECT count(*) AS repos FROM repos")
    curve = None if period is None or not lines else _curve(rows, period, lines[0].repo_id)
    return MemberFigures(lines, total["repos"], curve)


def store_lines(rows: Rows) -> tuple[StoreLine, ...]:
    """Return what the page says of each node, from the table `stores`."""
    return tuple(
        StoreLine(
            row["node"],
            row["commits"],
            row["blocks"],
            row["block_bytes"],
            row["referenced_bytes"],
            row["deduplication"],
        )
        for row in rows(f"SELECT * FROM stores ORDER BY node LIMIT {_STORE_LINES_MAX}")
    )


def _curve(rows: Rows, period: Period, repo_id: bytes) -> MemberCurve | None:
    """Return the curve of members of a repo; None if it has its founders alone."""
    span = f"BETWEEN {period.start} AND {period.end}"
    points = rows(
        f"SELECT time - time % {period.bucket} AS bucket_start, max_by(members, (position, member)) AS members "
        f"FROM membership WHERE repo_id = X'{repo_id.hex()}' AND time {span} GROUP BY bucket_start ORDER BY bucket_start"
    )
    if len(points) < 2:
        return None
    begun = rows(
        f"SELECT started_at FROM epochs WHERE repo_id = X'{repo_id.hex()}' AND started_at {span} "
        f"ORDER BY number DESC LIMIT {_EPOCHS_DRAWN_MAX}"
    )
    return MemberCurve(
        repo_id,
        tuple((row["bucket_start"], row["members"]) for row in points),
        period.bucket,
        tuple(sorted(row["started_at"] for row in begun)),
    )
