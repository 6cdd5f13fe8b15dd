"""Statistics of stores, and of how fast commits spread between them.

A receipt is one commit at one node: several exports have one for each node that holds it, however many of them are of one
node. `received_at` is by the clock of the receiving node, so times between nodes are as good as their clocks agree.
"""

from collections.abc import Sequence
from dataclasses import astuple
from typing import Final

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from analytics.reading.export_reader import Export, latest_exports, read_by_node
from analytics.reading.limits import PERCENTILE_ACCURACY
from analytics.reading.times import bucket_start, count_where, is_plausible

_RECEIPT: Final = (
    "node",
    "commit_id",
    "repo_id",
    "branch_id",
    "author",
    "size",
    "received_at",
    "is_void",
)


def load_receipts(exports: Sequence[Export], commits: DataFrame, *, is_alone: bool = False) -> DataFrame:
    """One row per commit and node: `node`, what the node says of the commit, and when it received it.

    `commits` are those of all exports as they were loaded; with `is_alone`, of one export, they are the receipts. Of what a
    node tells several times the row of the least sequence stays; what it calls void in one export is void there.
    """
    if is_alone:
        return commits.withColumn("node", F.lit(exports[0].node)).select(*_RECEIPT)
    spark = commits.sparkSession
    keys = ("node", "commit_id")
    told = [name for name in _RECEIPT if name not in (*keys, "is_void")]
    first = (
        read_by_node(spark, exports, "commits")
        .groupBy(*keys)
        .agg(F.min(F.struct("sequence", *told)).alias("row"))
        .select(*keys, *[F.col(f"row.{name}").alias(name) for name in told])
    )
    voids = read_by_node(spark, exports, "voids").select(*keys).distinct()
    marked = voids.withColumn("is_void", F.lit(True))  # a column's value
    return first.join(marked, on=[*keys], how="left").fillna(False, ["is_void"]).select(*_RECEIPT)  # as above


def count_stores(receipts: DataFrame) -> DataFrame:
    """One row per node: what it holds."""
    received = F.when(is_plausible("received_at"), F.col("received_at"))
    # What is told apart is told apart among feeds, which are far fewer than commits.
    by_feed = receipts.groupBy("node", "repo_id", "branch_id", "author").agg(
        F.count("*").alias("commits"),
        count_where(F.col("is_void")).alias("void"),
        F.sum("size").alias("bytes"),
        F.min(received).alias("first_received"),
        F.max(received).alias("last_received"),
    )
    return (
        by_feed.groupBy("node")
        .agg(
            F.sum("commits").alias("commits"),
            F.sum("void").alias("void"),
            F.count_distinct("repo_id").alias("repos"),
            F.count_distinct("branch_id").alias("branches"),
            F.count_distinct("author").alias("authors"),
            F.sum("bytes").alias("bytes"),
            F.min("first_received").alias("first_received"),
            F.max("last_received").alias("last_received"),
        )
        .select(
            "node",
            "commits",
            "void",
            "repos",
            "branches",
            "authors",
            "bytes",
            "first_received",
            "last_received",
        )
    )


def add_holdings(table: DataFrame, exports: Sequence[Export]) -> DataFrame:
    """The same as `count_stores`, and what each node said in its latest export of the blocks that it holds; else null."""
    said = [
        (export.node, *astuple(export.holdings))
        for export in latest_exports(exports)
        if export.holdings is not None
    ]
    schema = (
        "node string, blocks bigint, block_bytes bigint, referenced_blocks bigint, referenced_bytes bigint"
    )
    holdings = table.sparkSession.createDataFrame(said, schema)
    held = F.when(F.col("block_bytes") > 0, F.col("block_bytes"))
    return table.join(holdings, on="node", how="left").withColumn(
        "deduplication", F.col("referenced_bytes") / held
    )


def count_store_growth(receipts: DataFrame, bucket: int) -> DataFrame:
    """Commits and bytes received per node and time bucket of that many milliseconds, and bytes held at its end."""
    so_far = Window.partitionBy("node").orderBy("bucket_start").rowsBetween(Window.unboundedPreceding, 0)
    return (
        receipts.where(is_plausible("received_at"))
        .groupBy("node", bucket_start("received_at", bucket).alias("bucket_start"))
        .agg(F.count("*").alias("commits"), F.sum("size").alias("bytes"))
        .select("node", "bucket_start", "commits", "bytes", F.sum("bytes").over(so_far).alias("bytes_in_all"))
    )


def count_replication(receipts: DataFrame, *, is_alone: bool = False) -> DataFrame:
    """One row per branch and node that holds any of it: what it lacks, and how long after the first node it had the rest.

    Delays are in milliseconds, of commits that another node had first; null if there is none. With `is_alone` the receipts
    are of one export, where no commit has another copy to be looked for.
    """
    if is_alone:
        compared = receipts.withColumns({"first_received": F.col("received_at"), "copies": F.lit(1)})
        in_all = F.count("*")
    else:
        first = receipts.groupBy("commit_id").agg(
            F.min("received_at").alias("first_received"), F.count("*").alias("copies")
        )
        compared = receipts.join(first, on="commit_id", how="inner")
        in_all = F.count_distinct("commit_id")
    total = receipts.groupBy("branch_id").agg(in_all.alias("total"))
    delay = F.col("received_at") - F.col("first_received")
    late = F.when(delay > 0, delay)
    return (
        compared.groupBy("branch_id", "node")
        .agg(
            F.count("*").alias("commits"),
            count_where(delay == 0).alias("first_here"),
            count_where(F.col("copies") == 1).alias("only_here"),
            F.percentile_approx(late, F.lit(0.5), F.lit(PERCENTILE_ACCURACY)).alias("delay_p50"),
            F.percentile_approx(late, F.lit(0.9), F.lit(PERCENTILE_ACCURACY)).alias("delay_p90"),
            F.max(late).alias("delay_max"),
        )
        .join(total, on="branch_id", how="inner")
        .select(
            "branch_id",
            "node",
            "commits",
            (F.col("total") - F.col("commits")).alias("lacking"),
            "first_here",
            "only_here",
            "delay_p50",
            "delay_p90",
            "delay_max",
        )
    )
