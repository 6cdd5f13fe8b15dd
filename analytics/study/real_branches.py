"""Loads the largest branches of exports as graphs for a study.

Each node's export gives a delivery: the commits in the order in which they *arrived* there. A commit that had to wait for
its causes stands where it came (`arrival`), and not where the node accepted it. So a log shows the disorder that the network
made, whatever the node's clock did. A node that
lacks commits of a branch has no log of it.

Feeds are those of authors; of imported commits, which one user signs, those of their authors where they came from.
"""

from collections.abc import Sequence

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from analytics.order.linearize import linearize
from analytics.reading.export_reader import load_commits, read_by_export
from analytics.report.page import short
from analytics.study.runs import AS_ARRIVED
from analytics.study.study import REAL_BRANCHES_MAX, REAL_BRANCHES_SHARE, REAL_COMMITS_MAX, RealBranch
from analytics.study.tangle_models import from_rows
from ravel.exports.checking import Export
from ravel.exports.schema import text_id


def load_real_branches(spark: SparkSession, exports: Sequence[Export]) -> list[RealBranch]:
    """Return the largest branches of at most REAL_COMMITS_MAX commits, in full; what has no place in the order is left out.

    Branches of less than REAL_BRANCHES_SHARE of the largest of these are left out, too.
    """
    commits = load_commits(spark, *exports)
    order = linearize(commits).where(F.col("fault").isNull())
    sizes = order.groupBy("branch_id").agg(F.count("*").alias("commits"))
    largest = (
        sizes.where(F.col("commits").between(2, REAL_COMMITS_MAX))
        .orderBy(F.desc("commits"), "branch_id")
        .limit(REAL_BRANCHES_MAX)
    )
    arrivals = (
        read_by_export(spark, exports, "commits")
        .groupBy("node", "commit_id")  # what several exports of a node tell
        .agg(
            F.min(F.coalesce("arrival", "sequence")).alias("arrived"),
            F.min("sequence").alias("accepted"),
        )
    )
    arrived = arrivals.groupBy("commit_id").agg(
        F.collect_list(F.struct("node", "arrived", "accepted")).alias("arrivals")
    )
    rows = (
        order.select("branch_id", "commit_id", "passed", "rank")
        .join(
            commits.select(
                "branch_id",
                "commit_id",
                "acks",
                F.coalesce("source_author", "author").alias("author"),
            ),
            ["branch_id", "commit_id"],
        )
        .join(arrived, "commit_id")
    )
    found = largest.collect()
    least = REAL_BRANCHES_SHARE * max((row["commits"] for row in found), default=0)
    return [_load_branch(rows, bytes(row["branch_id"])) for row in found if row["commits"] >= least]


def _load_branch(rows: DataFrame, branch_id: bytes) -> RealBranch:
    found = (
        rows.where(F.col("branch_id") == F.lit(branch_id))
        .orderBy("rank", "commit_id")  # causes before effects
        .select("commit_id", "acks", "author", "arrivals")
        .collect()
    )
    graph = from_rows(
        [
            (bytes(row["commit_id"]), [bytes(ack) for ack in row["acks"]], bytes(row["author"]))
            for row in found
        ]
    )
    logs: dict[str, list[tuple[int, int, int]]] = {}
    for number, row in enumerate(found):
        for node, arrived, accepted in row["arrivals"]:
            logs.setdefault(node, []).append((arrived, accepted, number))
    received = {
        f"{AS_ARRIVED} at {short(node)}": [number for _, _, number in sorted(log)]
        for node, log in sorted(logs.items())
        if len(log) == len(found)
    }
    return RealBranch(f"branch {short(text_id(branch_id))}", graph, received)
