"""Loads the largest branches of exports as graphs for a study.

Delivered by time of receipt: the first at which any of the exporting nodes had a commit. One node accepts causes before
effects, so in the log of one node every commit finds its causes, and each costs one insert; what waited for its causes
outside of the timeline is no edit. Logs of several nodes with clocks of their own need not be so.

Feeds are those of authors; of imported commits, which one user signs, those of their authors where they came from.
"""

from collections.abc import Sequence

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from analytics.order.linearize import linearize
from analytics.reading.export_reader import load_commits, read_table
from analytics.report.page import short, text_id
from analytics.study.study import REAL_BRANCHES_MAX, REAL_COMMITS_MAX, RealBranch
from analytics.study.tangle_models import from_rows
from ravel.exports.checking import Export


def load_real_branches(spark: SparkSession, exports: Sequence[Export]) -> list[RealBranch]:
    """The largest branches of at most REAL_COMMITS_MAX commits, in full; what has no place in the order is left out."""
    commits = load_commits(spark, *exports)
    order = linearize(commits).where(F.col("fault").isNull())
    sizes = order.groupBy("branch_id").agg(F.count("*").alias("commits"))
    largest = (
        sizes.where(F.col("commits").between(2, REAL_COMMITS_MAX))
        .orderBy(F.desc("commits"), "branch_id")
        .limit(REAL_BRANCHES_MAX)
    )
    received = (
        read_table(spark, exports, "commits")
        .groupBy("commit_id")
        .agg(F.min("received_at").alias("first_received"))
    )
    rows = (
        order.select("branch_id", "commit_id", "passed", "rank")
        .join(
            commits.select(
                "branch_id",
                "commit_id",
                "acks",
                F.coalesce("source_author", "author").alias("author"),
                "sequence",
            ),
            ["branch_id", "commit_id"],
        )
        .join(received, "commit_id")
    )
    return [_load_branch(rows, bytes(row["branch_id"])) for row in largest.collect()]


def _load_branch(rows: DataFrame, branch_id: bytes) -> RealBranch:
    found = (
        rows.where(F.col("branch_id") == F.lit(branch_id))
        .orderBy("rank", "commit_id")  # causes before effects
        .select("commit_id", "acks", "author", "first_received", "sequence")
        .collect()
    )
    graph = from_rows(
        [
            (bytes(row["commit_id"]), [bytes(ack) for ack in row["acks"]], bytes(row["author"]))
            for row in found
        ]
    )
    received = sorted(range(len(found)), key=lambda at: (found[at]["first_received"], found[at]["sequence"]))
    return RealBranch(f"branch {short(text_id(branch_id))}", graph, received)
