"""Statistics of relays: received and kept publications per topic.

A relay knows of a publication its topic, its id and what it acks, its blocks and bytes, and when it came; not who wrote
it, nor in which branch. `taken` is what ever came, `kept` what was there at the time of the export: topics are forgotten
to make room. Times are by the relay's clock.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from analytics.reading.export_reader import Export, latest_exports, read_by_node
from analytics.reading.times import bucket_start, count_where, is_plausible

NOTHING: Final[Mapping[str, str]] = {
    "relay_topics": """
        node string, topic binary, commits bigint, blocks bigint, bytes bigint, heads bigint, first_received bigint,
        last_received bigint, is_kept boolean, is_pinned boolean, kept_commits bigint, kept_bytes bigint, quota_use double
    """,
    "relays": """
        node string, topics bigint, kept_topics bigint, pinned_topics bigint, commits bigint, kept_commits bigint,
        blocks bigint, bytes bigint, kept_bytes bigint, quota bigint, quota_use double, first_received bigint,
        last_received bigint
    """,
    "relay_growth": "node string, bucket_start bigint, commits bigint, bytes bigint, bytes_in_all bigint",
}
"""The tables of exports in which nothing was taken for others."""


def load_relayed(spark: SparkSession, exports: Sequence[Export]) -> DataFrame:
    """One row per node and publication: `relay_commits` with `node`. A commit may have several publications."""
    return read_by_node(spark, exports, "relay_commits").dropDuplicates(["node", "sequence"])


def count_topics(spark: SparkSession, exports: Sequence[Export], taken: DataFrame) -> DataFrame:
    """One row per node and topic: what was taken, its heads, and what is kept of it under which part of the quota."""
    acked = taken.select("node", "topic", F.explode("acks").alias("commit_id")).distinct()
    heads = (
        taken.join(acked, on=["node", "topic", "commit_id"], how="left_anti")
        .groupBy("node", "topic")
        .agg(F.count_distinct("commit_id").alias("heads"))
    )
    counted = taken.groupBy("node", "topic").agg(
        F.count_distinct("commit_id").alias("commits"),
        F.sum("blocks").alias("blocks"),
        F.sum("size").alias("bytes"),
        F.min(_received()).alias("first_received"),
        F.max(_received()).alias("last_received"),
    )
    kept = read_by_node(spark, latest_exports(exports), "relay_topics").select(
        "node",
        "topic",
        "is_pinned",
        F.col("commits").alias("kept_commits"),
        F.col("size").alias("kept_bytes"),
    )
    return (
        counted.join(kept, on=["node", "topic"], how="full")
        .join(heads, on=["node", "topic"], how="left")
        .join(_quotas(spark, exports), on="node", how="left")
        .select(
            "node",
            "topic",
            *[
                F.coalesce(F.col(name), F.lit(0)).alias(name)
                for name in ("commits", "blocks", "bytes", "heads")
            ],
            "first_received",
            "last_received",
            F.col("kept_bytes").isNotNull().alias("is_kept"),
            F.coalesce("is_pinned", F.lit(False)).alias("is_pinned"),  # a column's value
            *[F.coalesce(F.col(name), F.lit(0)).alias(name) for name in ("kept_commits", "kept_bytes")],
            (F.coalesce("kept_bytes", F.lit(0)) / F.col("topic_quota")).alias("quota_use"),
        )
    )


def count_relays(spark: SparkSession, exports: Sequence[Export], topics: DataFrame) -> DataFrame:
    """One row per node that took anything for others: all of its topics, and the part of its quota in use."""
    return (
        topics.groupBy("node")
        .agg(
            F.count("*").alias("topics"),
            count_where(F.col("is_kept")).alias("kept_topics"),
            count_where(F.col("is_pinned")).alias("pinned_topics"),
            F.sum("commits").alias("commits"),
            F.sum("kept_commits").alias("kept_commits"),
            F.sum("blocks").alias("blocks"),
            F.sum("bytes").alias("bytes"),
            F.sum("kept_bytes").alias("kept_bytes"),
            F.min("first_received").alias("first_received"),
            F.max("last_received").alias("last_received"),
        )
        .join(_quotas(spark, exports), on="node", how="left")
        .select(
            "node",
            "topics",
            "kept_topics",
            "pinned_topics",
            "commits",
            "kept_commits",
            "blocks",
            "bytes",
            "kept_bytes",
            F.col("total_quota").alias("quota"),
            (F.col("kept_bytes") / F.col("total_quota")).alias("quota_use"),
            "first_received",
            "last_received",
        )
    )


def count_growth(taken: DataFrame, bucket: int) -> DataFrame:
    """Publications (as `commits`) and bytes taken per node and bucket of so many milliseconds, and bytes up to its end."""
    so_far = Window.partitionBy("node").orderBy("bucket_start").rowsBetween(Window.unboundedPreceding, 0)
    return (
        taken.where(is_plausible("received_at"))
        .groupBy("node", bucket_start("received_at", bucket).alias("bucket_start"))
        .agg(F.count("*").alias("commits"), F.sum("size").alias("bytes"))
        .select("node", "bucket_start", "commits", "bytes", F.sum("bytes").over(so_far).alias("bytes_in_all"))
    )


def count_delivered(spark: SparkSession, exports: Sequence[Export], receipts: DataFrame) -> DataFrame:
    """One row per branch and node: the edits by which its timeline came about. An export before schema 3 has no row.

    Every commit was inserted once when it was accepted; `returns` are inserts of what had left.
    """
    edits = read_by_node(spark, exports, "edits").dropDuplicates(["node", "sequence"])
    kinds = edits.groupBy("branch_id", "node").agg(
        count_where(F.col("kind") == "insert").alias("returns"),
        count_where(F.col("kind") == "move").alias("moves"),
        count_where(F.col("kind") == "remove").alias("removes"),
    )
    told = [export.node for export in exports if export.schema_version >= 3]
    commits = (
        receipts.where(F.col("node").isin(told))
        .groupBy("branch_id", "node")
        .agg(F.count("*").alias("commits"))
    )
    counted = commits.join(kinds, on=["branch_id", "node"], how="left").fillna(0)
    edited = F.col("commits") + F.col("returns") + F.col("moves") + F.col("removes")
    return counted.select(
        "branch_id",
        "node",
        "commits",
        "returns",
        "moves",
        "removes",
        (edited / F.col("commits")).alias("edits_per_commit"),
    )


def _quotas(spark: SparkSession, exports: Sequence[Export]) -> DataFrame:
    """One row per node that has quotas: those of its latest export."""
    stated = [
        (export.node, export.quotas.total, export.quotas.topic)
        for export in latest_exports(exports)
        if export.quotas is not None
    ]
    return spark.createDataFrame(stated, "node string, total_quota bigint, topic_quota bigint")


def _received() -> Column:
    return F.when(is_plausible("received_at"), F.col("received_at"))
