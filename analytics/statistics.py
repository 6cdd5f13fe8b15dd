"""What is counted: transforms from DataFrame to DataFrame, which read and write nothing.

Their input, `ordered`, is one row per commit that has a place in its branch's order: the export's columns with `rank`
and `position` as `analytics.linearize` computed them. Acks of one commit to the same cause count once.

Times are asserted by authors, who may lie or have a wrong clock. Years outside 1970 to 2200 are taken for no time, and
the growth table covers the period around the bulk of the commits, so that one absurd clock does not flatten the
picture; how many commits that leaves out is part of the result.
"""

from dataclasses import dataclass
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

TIME_MIN: Final = 1
"""Unix milliseconds. Zero is what an author without a clock states."""
TIME_END: Final = 7_258_118_400_000
"""2200-01-01 in unix milliseconds."""

GROWTH_POINTS_MAX: Final = 200
"""More points than this are not told apart on a page."""

_MINUTE: Final = 60_000
_HOUR: Final = 60 * _MINUTE
_DAY: Final = 24 * _HOUR
BUCKETS: Final = tuple(
    [n * 1000 for n in (1, 5, 15)]
    + [n * _MINUTE for n in (1, 5, 15)]
    + [n * _HOUR for n in (1, 3, 6, 12)]
    + [n * _DAY for n in (1, 2, 7, 14, 30, 91, 182, 365, 730)]
)
"""Widths of growth's buckets in milliseconds: such that a person can name them."""


@dataclass(frozen=True, slots=True)
class Period:
    """The time that the growth table covers, in unix milliseconds, `start` and `end` included."""

    start: int
    end: int
    bucket: int  # width of one bucket
    left_out: int  # commits with times outside of it


def count_branches(ordered: DataFrame) -> DataFrame:
    """One row per branch: its size, shape, people and times."""
    by_branch = (
        _with_shape(ordered)
        .groupBy("branch_id")
        .agg(
            F.min("repo_id").alias("repo_id"),
            F.max_by("branch_name", "sequence").alias("branch_name"),
            F.count("*").alias("commits"),
            F.count_distinct("author").alias("authors"),
            F.max("rank").alias("depth"),
            _count(F.col("acks_count") == 0).alias("roots"),
            _count(F.col("acked_by") == 0).alias("heads"),
            _count(F.col("acked_by") > 1).alias("forks"),
            _count(F.col("acks_count") > 1).alias("merges"),
            F.sum("size").alias("bytes"),
            F.min(_plausible_time()).alias("first_time"),
            F.max(_plausible_time()).alias("last_time"),
        )
    )
    widest = count_widths(ordered).groupBy("branch_id").agg(F.max("width").alias("width_max"))
    return by_branch.join(widest, on="branch_id", how="inner").select(
        "repo_id",
        "branch_id",
        "branch_name",
        "commits",
        "authors",
        "depth",
        "roots",
        "heads",
        "forks",
        "merges",
        "width_max",
        (F.col("commits") / (F.col("depth") + 1)).alias("width_mean"),
        "bytes",
        "first_time",
        "last_time",
    )


def count_widths(ordered: DataFrame) -> DataFrame:
    """How many commits of each branch share each rank: what was written without knowing of one another."""
    return (
        ordered.select("branch_id", "rank")
        .groupBy("branch_id", "rank")
        .agg(F.count("*").alias("width"))
        .select("branch_id", "rank", "width")
    )


def count_authors(ordered: DataFrame) -> DataFrame:
    """One row per author, over all branches."""
    return (
        ordered.select("author", "branch_id", "acks", "size", "time")
        .groupBy("author")
        .agg(
            F.count("*").alias("commits"),
            F.count_distinct("branch_id").alias("branches"),
            _count(F.size(F.array_distinct("acks")) > 1).alias("merges"),
            F.sum("size").alias("bytes"),
            F.min(_plausible_time()).alias("first_time"),
            F.max(_plausible_time()).alias("last_time"),
        )
        .select("author", "commits", "branches", "merges", "bytes", "first_time", "last_time")
    )


def find_period(ordered: DataFrame) -> Period | None:
    """The period to show growth over, or None if no commit states a plausible time."""
    times = ordered.select(_plausible_time().alias("time"))
    bulk = times.select(
        F.count("*").alias("rows"),
        F.percentile_approx("time", F.lit(0.01), F.lit(10_000)).alias("low"),
        F.percentile_approx("time", F.lit(0.99), F.lit(10_000)).alias("high"),
    ).first()
    assert bulk is not None  # an aggregate without groups has one row
    if bulk["low"] is None:
        return None
    # The bulk, and as much again on either side: wide enough for growth that is slow at first, too narrow for 1980 or 2150.
    margin = max(bulk["high"] - bulk["low"], _DAY)
    inside = (
        times.where(F.col("time").between(bulk["low"] - margin, bulk["high"] + margin))
        .select(F.count("*").alias("rows"), F.min("time").alias("start"), F.max("time").alias("end"))
        .first()
    )
    assert inside is not None
    start, end = int(inside["start"]), int(inside["end"])
    return Period(start, end, _bucket_for(start, end), int(bulk["rows"]) - int(inside["rows"]))


def count_growth(ordered: DataFrame, period: Period) -> DataFrame:
    """Commits per branch and time bucket; `bucket_start` is unix milliseconds, a multiple of the bucket's width."""
    start = F.col("time") - F.col("time") % F.lit(period.bucket)
    return (
        ordered.select("branch_id", "time")
        .where(F.col("time").between(period.start, period.end))
        .groupBy(F.col("branch_id"), start.alias("bucket_start"))
        .agg(F.count("*").alias("commits"))
        .select("branch_id", "bucket_start", "commits")
    )


def _with_shape(ordered: DataFrame) -> DataFrame:
    """Add how many causes each commit acks, and how many commits ack it."""
    acked = (
        ordered.select("branch_id", F.explode(F.array_distinct("acks")).alias("commit_id"))
        .groupBy("branch_id", "commit_id")
        .agg(F.count("*").alias("acked_by"))
    )
    return ordered.join(acked, on=["branch_id", "commit_id"], how="left").select(
        *ordered.columns,
        F.size(F.array_distinct("acks")).alias("acks_count"),
        F.coalesce(F.col("acked_by"), F.lit(0)).alias("acked_by"),
    )


def _bucket_for(start: int, end: int) -> int:
    for width in BUCKETS:
        if end // width - start // width < GROWTH_POINTS_MAX:
            return width
    return BUCKETS[-1]


def _plausible_time() -> Column:
    return F.when(F.col("time").between(TIME_MIN, TIME_END - 1), F.col("time"))


def _count(condition: Column) -> Column:
    return F.count(F.when(condition, F.lit(1)))
