"""Writes the tables of members, epochs and stores, and collects their rows for the report."""

from collections.abc import Sequence
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from analytics.reading.export_reader import Export
from analytics.reading.times import bucket_start
from analytics.report.member_page import MemberCurve, MemberFigures, RepoLine, StoreLine
from analytics.tables import members
from analytics.tables.statistics import Period
from analytics.tables.tables import TableWriter

_REPO_LINES_MAX: Final = 20
_STORE_LINES_MAX: Final = 40
_EPOCHS_DRAWN_MAX: Final = 100
"""What a page can show and a person take in; the tables hold all."""


def write_members(
    tables: TableWriter, exports: Sequence[Export], ordered: DataFrame, period: Period | None
) -> MemberFigures:
    """Write what is told of members and epochs; gives what the page says. Raises OSError."""
    if not any(export.tables[name] for export in exports for name in ("memberships", "members")):
        nothing = {  # older exports: nothing to count, and no wait for that
            name: ordered.sparkSession.createDataFrame([], schema) for name, schema in members.NOTHING.items()
        }
        tables.write_all(nothing)
        return MemberFigures()
    told = members.load_told(ordered.sparkSession, exports, ordered)
    operations = told.operations.persist()
    try:
        written = tables.write_all(
            {
                "membership": members.count_membership(told),
                "epochs": members.count_epochs(told, ordered),
            }
        )
        membership, epochs = written["membership"], written["epochs"]
        repos = tables.write("repos", members.count_repos(told, membership, epochs))
    finally:
        operations.unpersist()
    last = epochs.groupBy("repo_id").agg(F.max(F.struct("number", "started_at", "reason")).alias("last"))
    rows = (
        repos.join(last, on="repo_id", how="left")
        .orderBy(F.desc("members"), F.desc("operations"), "repo_id")
        .limit(_REPO_LINES_MAX)
        .collect()
    )
    lines = tuple(
        RepoLine(
            bytes(row["repo_id"]),
            row["members"],
            row["persons"],
            row["admins"],
            row["joins"],
            row["removals"],
            row["uncounted"],
            row["left_out"],
            row["epochs"],
            row["last"]["started_at"] if row["last"] else None,
            row["last"]["reason"] if row["last"] else None,
        )
        for row in rows
    )
    curve = None if period is None or not lines else _curve(membership, epochs, period, lines[0].repo_id)
    return MemberFigures(lines, repos.count(), curve)


def store_lines(table: DataFrame) -> tuple[StoreLine, ...]:
    """What the page says of each node, from the table `stores`."""
    return tuple(
        StoreLine(
            row["node"],
            row["commits"],
            row["blocks"],
            row["block_bytes"],
            row["referenced_bytes"],
            row["deduplication"],
        )
        for row in table.orderBy("node").limit(_STORE_LINES_MAX).collect()
    )


def _curve(membership: DataFrame, epochs: DataFrame, period: Period, repo_id: bytes) -> MemberCurve | None:
    """The largest repo's; None where nobody came but with its founding."""
    is_this = (F.col("repo_id") == F.lit(repo_id)) & F.col("time").between(period.start, period.end)
    points = (
        membership.where(is_this)
        .groupBy(bucket_start("time", period.bucket).alias("bucket_start"))
        .agg(F.max_by("members", "position").alias("members"))
        .orderBy("bucket_start")
        .collect()
    )
    if len(points) < 2:
        return None
    begun = (
        epochs.where(
            (F.col("repo_id") == F.lit(repo_id)) & F.col("started_at").between(period.start, period.end)
        )
        .orderBy(F.desc("number"))
        .limit(_EPOCHS_DRAWN_MAX)
        .collect()
    )
    return MemberCurve(
        repo_id,
        tuple((row["bucket_start"], row["members"]) for row in points),
        period.bucket,
        tuple(sorted(row["started_at"] for row in begun)),
    )
