"""What is counted of concurrency: heads over time, and how long what had forked stood apart before it was merged.

Transforms from DataFrame to DataFrame; the input is as in `analytics.statistics`. Both go by the times that authors
assert: a commit that claims to be older than its causes counts as backdated and has no latency.
"""

from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from analytics.statistics import Period
from analytics.times import bucket_start, count_where, plausible_time

_ACCURACY: Final = 10_000
"""Of percentiles: exact up to about as many different values, then within a ten thousandth of the rows."""


def count_heads(ordered: DataFrame, period: Period) -> DataFrame:
    """How many heads each branch has at the end of a time bucket; rows where nothing was written or acked are left out.

    A commit is a head from its own time to that of the first that acks it. One whose time lies outside of the period, as
    in the growth table, is not counted; one that is acked by such commits only is none.
    """
    inside = F.col("time").between(period.start, period.end)
    acked = (
        ordered.select(
            "branch_id",
            F.explode(F.array_distinct("acks")).alias("commit_id"),
            F.when(inside, F.col("time")).alias("acked_at"),
        )
        .groupBy("branch_id", "commit_id")
        .agg(F.min("acked_at").alias("acked_at"), F.lit(True).alias("is_acked"))
    )
    # An author's clock may run before that of its cause: the cause then was a head for no time.
    until = F.greatest("time", F.coalesce("acked_at", "time"))
    spans = (
        ordered.where(inside)
        .select("branch_id", "commit_id", "time")
        .join(acked, on=["branch_id", "commit_id"], how="left")
        .select("branch_id", "time", F.when(F.col("is_acked"), until).alias("until"))
    )
    began = spans.select(
        "branch_id", bucket_start("time", period.bucket).alias("bucket_start"), F.lit(1).alias("step")
    )
    ended = spans.where(F.col("until").isNotNull()).select(
        "branch_id", bucket_start("until", period.bucket).alias("bucket_start"), F.lit(-1).alias("step")
    )
    so_far = Window.partitionBy("branch_id").orderBy("bucket_start").rowsBetween(Window.unboundedPreceding, 0)
    return (
        began.unionByName(ended)
        .groupBy("branch_id", "bucket_start")
        .agg(F.sum("step").alias("step"))
        .select("branch_id", "bucket_start", F.sum("step").over(so_far).alias("heads"))
    )


def count_merges(ordered: DataFrame) -> DataFrame:
    """One row per branch with merges: how long they took, in milliseconds.

    `waited` is the time from the last of the commits that a merge acks to the merge: how long there was something to merge.
    `apart` is the time from the first of them. Merges that lack a plausible time, or ack one that does, are not timed.
    """
    merges = ordered.where(F.size(F.array_distinct("acks")) > 1).select(
        "branch_id",
        F.col("commit_id").alias("merge_id"),
        plausible_time().alias("merged_at"),
        F.explode(F.array_distinct("acks")).alias("commit_id"),
    )
    causes = ordered.select("branch_id", "commit_id", plausible_time().alias("written_at"))
    each = (
        merges.join(causes, on=["branch_id", "commit_id"], how="inner")
        .groupBy("branch_id", "merge_id")
        .agg(
            F.first("merged_at").alias("merged_at"),
            F.min("written_at").alias("first"),
            F.max("written_at").alias("last"),
            count_where(F.col("written_at").isNull()).alias("timeless"),
        )
    )
    is_timed = (F.col("timeless") == 0) & F.col("merged_at").isNotNull()
    is_backdated = is_timed & (F.col("merged_at") < F.col("last"))
    is_sound = is_timed & ~is_backdated
    waited = F.when(is_sound, F.col("merged_at") - F.col("last"))
    apart = F.when(is_sound, F.col("merged_at") - F.col("first"))
    return each.groupBy("branch_id").agg(
        F.count("*").alias("merges"),
        count_where(is_sound).alias("timed"),
        count_where(is_backdated).alias("backdated"),
        _percentile(waited, 0.5).alias("waited_p50"),
        _percentile(waited, 0.9).alias("waited_p90"),
        F.max(waited).alias("waited_max"),
        _percentile(apart, 0.5).alias("apart_p50"),
        _percentile(apart, 0.9).alias("apart_p90"),
        F.max(apart).alias("apart_max"),
    )


def _percentile(column: Column, share: float) -> Column:
    return F.percentile_approx(column, F.lit(share), F.lit(_ACCURACY))
