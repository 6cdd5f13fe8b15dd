"""Finds forked feeds: an author used one sequence number for several commits.

An author who keeps one key in one place never does.

All commits are looked at, void ones and those without a place in an order too: a fork is evidence. Exports before schema 3
do not tell places.
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

_PLACE = ("branch_id", "author", "feed_sequence")


def count_feed_forks(commits: DataFrame) -> DataFrame:
    """One row per branch and author with forks: `places` that several commits claim, these, and the first such place."""
    told = commits.where(F.col("feed_sequence") >= 1).select(*_PLACE, F.xxhash64(*_PLACE).alias("hash"))
    # Nearly no place is used twice: they are sorted out by eight bytes each, and what is left is looked at whole.
    suspects = told.groupBy("hash").agg(F.count("*").alias("commits")).where(F.col("commits") > 1)
    return (
        told.join(suspects.select("hash"), on="hash", how="left_semi")
        .groupBy(*_PLACE)
        .agg(F.count("*").alias("commits"))
        .where(F.col("commits") > 1)
        .groupBy("branch_id", "author")
        .agg(
            F.count("*").alias("places"),
            F.sum("commits").alias("commits"),
            F.min("feed_sequence").alias("first_place"),
        )
        .select("branch_id", "author", "places", "commits", "first_place")
    )
