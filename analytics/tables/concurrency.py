"""Counts concurrency: heads over time, and the time from a fork to its merge.

Transforms from DataFrame to DataFrame; the input is as in `analytics.tables.statistics`. Both go by the times that authors
assert: a commit that claims to be older than its causes counts as backdated and has no latency.
"""

from typing import Final

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from analytics.reading.limits import PERCENTILE_ACCURACY
from analytics.reading.times import bucket_start, count_where, is_plausible, plausible_time
from analytics.tables.statistics import Period

_SHARES: Final = [0.5, 0.9]


def count_heads(ordered: DataFrame, period: Period) -> DataFrame:
    """How many heads each branch has at the end of a time bucket; rows where nothing was written or acked are left out.

    A commit is a head from its own time to that of the first that acks it. One whose time lies outside of the period, as
    in the growth table, is not counted; one that is acked by such commits only is none.
    """
    is_inside = F.col("time").between(period.start, period.end)
    acked_at = F.array_min(F.filter("acked_at", lambda time: time.between(period.start, period.end)))
    # An author's clock may run before that of its cause: the cause then was a head for no time.
    until = F.greatest("time", F.coalesce(acked_at, "time"))
    spans = ordered.where(is_inside)
    began = spans.select(
        "branch_id", bucket_start("time", period.bucket).alias("bucket_start"), F.lit(1).alias("step")
    )
    ended = (
        spans.where(F.size("acked_at") > 0)
        .select("branch_id", until.alias("until"))
        .select(
            "branch_id", bucket_start("until", period.bucket).alias("bucket_start"), F.lit(-1).alias("step")
        )
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
    `apart` is the time from the first of them. Merges that lack a plausible time, or ack one that does, are not timed, nor
    those of which no cause has a place: all are void.
    """
    each = ordered.where(F.col("acks_count") > 1).select(
        "branch_id",
        plausible_time().alias("merged_at"),
        F.col("causes_from").alias("first"),
        F.col("causes_until").alias("last"),
    )
    is_timed = is_plausible("first") & is_plausible("last") & F.col("merged_at").isNotNull()
    is_backdated = is_timed & (F.col("merged_at") < F.col("last"))
    is_sound = is_timed & ~is_backdated
    waited = F.when(is_sound, F.col("merged_at") - F.col("last"))
    apart = F.when(is_sound, F.col("merged_at") - F.col("first"))
    return (
        each.groupBy("branch_id")
        .agg(
            F.count("*").alias("merges"),
            count_where(is_sound).alias("timed"),
            count_where(is_backdated).alias("backdated"),
            F.percentile_approx(waited, _SHARES, PERCENTILE_ACCURACY).alias("waited"),
            F.max(waited).alias("waited_max"),
            F.percentile_approx(apart, _SHARES, PERCENTILE_ACCURACY).alias("apart"),
            F.max(apart).alias("apart_max"),
        )
        .select(
            "branch_id",
            "merges",
            "timed",
            "backdated",
            F.col("waited")[0].alias("waited_p50"),
            F.col("waited")[1].alias("waited_p90"),
            "waited_max",
            F.col("apart")[0].alias("apart_p50"),
            F.col("apart")[1].alias("apart_p90"),
            "apart_max",
        )
    )
