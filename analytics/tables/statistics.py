"""Core statistics as pure DataFrame transforms.

Their input, `ordered`, is one row per commit that has a place in its branch's order: the export's columns with `rank`,
`position` and the columns of SHAPES_SCHEMA as `analytics.order.linearize` computed them. Acks of one commit to the same
cause count once. What can be counted from a smaller table is: branches and authors from feeds.

The growth table covers the period around the bulk of the commits, so that one absurd clock does not flatten the
picture. What that leaves out, and what states no time, is counted in rows of its own, without a bucket.
"""

from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from analytics.order.linearize import FAULTS
from analytics.reading.times import DAY, bucket_for, bucket_start, count_where, plausible_time


@dataclass(frozen=True, slots=True)
class Period:
    """The time that the growth table covers, in unix milliseconds, `start` and `end` included."""

    start: int
    end: int
    bucket: int  # width of one bucket
    left_out: int  # commits with times outside of it


def count_branches(ordered: DataFrame, feeds: DataFrame, widths: DataFrame) -> DataFrame:
    """One row per branch: its size, shape, people and times. `feeds` and `widths` are those tables of `ordered`."""
    of_feeds = feeds.groupBy("branch_id").agg(
        F.sum("commits").alias("commits"),
        F.count("*").alias("authors"),
        F.max("last_rank").alias("depth"),
        F.sum("merges").alias("merges"),
        F.sum("bytes").alias("bytes"),
        F.min("first_time").alias("first_time"),
        F.max("last_time").alias("last_time"),
    )
    acked_by = F.size("acked_at")
    # Ids and names cannot be aggregated without sorting, so few rows are left before.
    of_topics = (
        ordered.groupBy("branch_id", "topic", "repo_id", "branch_name")
        .agg(
            F.max("sequence").alias("sequence"),
            count_where(F.col("acks_count") == 0).alias("roots"),
            count_where(acked_by == 0).alias("heads"),
            count_where(acked_by > 1).alias("forks"),
        )
        .groupBy("branch_id")
        .agg(
            F.min("repo_id").alias("repo_id"),
            F.max_by("branch_name", F.struct("sequence", "branch_name")).alias("branch_name"),
            F.count_distinct("topic").alias("topics"),
            *(F.sum(name).alias(name) for name in ("roots", "heads", "forks")),
        )
    )
    is_shared = F.when(F.col("width") > 1, F.col("width"))
    widest = widths.groupBy("branch_id").agg(
        F.max("width").alias("width_max"), F.coalesce(F.sum(is_shared), F.lit(0)).alias("rank_shared")
    )
    return (
        of_feeds.join(of_topics, on="branch_id", how="inner")
        .join(widest, on="branch_id", how="inner")
        .select(
            "repo_id",
            "branch_id",
            "branch_name",
            "commits",
            "authors",
            "topics",
            "depth",
            "roots",
            "heads",
            "forks",
            "merges",
            "width_max",
            (F.col("commits") / (F.col("depth") + 1)).alias("width_mean"),
            (F.col("rank_shared") / F.col("commits")).alias("concurrency"),
            "bytes",
            "first_time",
            "last_time",
        )
    )


def count_widths(ordered: DataFrame) -> DataFrame:
    """How many commits of each branch share each rank: what was written without knowing of one another."""
    return (
        ordered.select("branch_id", "rank")
        .groupBy("branch_id", "rank")
        .agg(F.count("*").alias("width"))
        .select("branch_id", "rank", "width")
    )


def count_authors(feeds: DataFrame) -> DataFrame:
    """One row per author, over all branches."""
    return (
        feeds.groupBy("author")
        .agg(
            F.sum("commits").alias("commits"),
            F.count("*").alias("branches"),
            F.sum("merges").alias("merges"),
            F.sum("bytes").alias("bytes"),
            F.min("first_time").alias("first_time"),
            F.max("last_time").alias("last_time"),
        )
        .select("author", "commits", "branches", "merges", "bytes", "first_time", "last_time")
    )


def count_feeds(ordered: DataFrame) -> DataFrame:
    """One row per branch and author: what the author did there."""
    return (
        ordered.groupBy("branch_id", "author")
        .agg(
            F.count("*").alias("commits"),
            count_where(F.col("acks_count") > 1).alias("merges"),
            F.sum("size").alias("bytes"),
            F.min("rank").alias("first_rank"),
            F.max("rank").alias("last_rank"),
            F.min(plausible_time()).alias("first_time"),
            F.max(plausible_time()).alias("last_time"),
        )
        .select(
            "branch_id",
            "author",
            "commits",
            "merges",
            "bytes",
            "first_rank",
            "last_rank",
            "first_time",
            "last_time",
        )
    )


def count_kinds(ordered: DataFrame) -> DataFrame:
    """One row per repo and kind of body."""
    return (
        ordered.groupBy("repo_id", "body_kind")
        .agg(F.count("*").alias("commits"), F.sum("size").alias("bytes"))
        .select("repo_id", "body_kind", "commits", "bytes")
    )


def count_faults(order: DataFrame, commits: DataFrame, *, is_complete: bool = False) -> DataFrame:
    """One row per branch: how many of its commits have a place, why the others have none, and how many causes are missing.

    `order` is a linearization of `commits`. A cause that several commits ack is missing once; `is_complete` says that none
    is, so that acks need not be looked through.
    """
    by_fault = order.groupBy("branch_id").agg(
        F.count("*").alias("commits"),
        count_where(F.col("fault").isNull()).alias("placed"),
        *(count_where(F.col("fault") == fault).alias(fault.replace(" ", "_")) for fault in FAULTS.values()),
    )
    if is_complete:
        return by_fault.withColumn("causes_missing", F.lit(0).cast("bigint"))
    named = commits.select("branch_id", F.explode("acks").alias("commit_id")).distinct()
    missing = (
        named.join(commits.select("branch_id", "commit_id"), on=["commit_id", "branch_id"], how="left_anti")
        .groupBy("branch_id")
        .agg(F.count("*").alias("causes_missing"))
    )
    return (
        by_fault.join(missing, on="branch_id", how="left")
        .fillna(0, ["causes_missing"])
        .select(*by_fault.columns, "causes_missing")
    )


def find_period(ordered: DataFrame) -> Period | None:
    """The period to show growth over, or None if no commit states a plausible time."""
    times = ordered.select(plausible_time().alias("time"))
    bulk = times.select(
        F.count("*").alias("rows"),
        F.percentile_approx("time", F.lit(0.01), F.lit(10_000)).alias("low"),
        F.percentile_approx("time", F.lit(0.99), F.lit(10_000)).alias("high"),
    ).first()
    assert bulk is not None  # an aggregate without groups has one row
    if bulk["low"] is None:
        return None
    # The bulk, and as much again on either side: wide enough for growth that is slow at first, too narrow for 1980 or 2150.
    margin = max(bulk["high"] - bulk["low"], DAY)
    inside = (
        times.where(F.col("time").between(bulk["low"] - margin, bulk["high"] + margin))
        .select(F.count("*").alias("rows"), F.min("time").alias("start"), F.max("time").alias("end"))
        .first()
    )
    assert inside is not None
    start, end = int(inside["start"]), int(inside["end"])
    return Period(start, end, bucket_for(start, end), int(bulk["rows"]) - int(inside["rows"]))


def count_growth(ordered: DataFrame, period: Period) -> DataFrame:
    """Commits per branch and time bucket; `bucket_start` is unix milliseconds, a multiple of the bucket's width.

    It is null of the commits outside of the period, so that a branch's rows count all of its commits.
    """
    return (
        ordered.select("branch_id", "time")
        .groupBy(F.col("branch_id"), _bucket_inside(period).alias("bucket_start"))
        .agg(F.count("*").alias("commits"))
        .select("branch_id", "bucket_start", "commits")
    )


def count_activity(ordered: DataFrame, period: Period) -> DataFrame:
    """Commits per author and time bucket, over all branches; the period and null as in `count_growth`."""
    return (
        ordered.groupBy("author", _bucket_inside(period).alias("bucket_start"))
        .agg(F.count("*").alias("commits"))
        .select("author", "bucket_start", "commits")
    )


def _bucket_inside(period: Period) -> Column:
    """The bucket of a time of the period, or null."""
    return F.when(F.col("time").between(period.start, period.end), bucket_start("time", period.bucket))
