"""Statistics of members and epochs: effects of each operation, and commits per epoch.

Which operations count is the node's to say (`counts`), and who is a member now, too. Between the two, `count_membership`
replays what counts in the canonical order of the root branch. That is what a person expects of a curve, and not a second
resolution: of operations that were made at the same time, the one that stands later in the order is taken for the later.

Several exports may tell of one repo. The one that has most of its operations speaks for it, and the others are not mixed in.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Final

from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from analytics.reading.export_reader import Export, read_table
from analytics.reading.times import count_where, plausible_time
from storage.export.schema import MEMBERSHIPS, PERMISSIONS, REASONS

NOTHING: Final[Mapping[str, str]] = {
    "membership": """
        repo_id binary, position bigint, commit_id binary, time bigint, author binary, operation string, member binary,
        permission string, step int, members bigint
    """,
    "epochs": """
        repo_id binary, epoch binary, number int, started_at bigint, author binary, reason string, sealed_to bigint,
        counts boolean, topics bigint, commits bigint, authors bigint, first_time bigint, last_time bigint
    """,
    "repos": """
        repo_id binary, members bigint, persons bigint, admins bigint, operations bigint, uncounted bigint, left_out bigint,
        joins bigint, removals bigint, replayed bigint, epochs bigint
    """,
}
"""The tables of exports that tell nothing of members."""

_GIVING: Final = ("init", "grant", "join")
_TAKING: Final = "remove"
_STARTING: Final = ("init", "epoch-init")


@dataclass(frozen=True, slots=True)
class Told:
    """What exports tell of repos: each repo by one of them. `operations` have a row for each commit and member."""

    operations: DataFrame
    members: DataFrame
    topics: DataFrame


def load_told(spark: SparkSession, exports: Sequence[Export], ordered: DataFrame) -> Told:
    """What exports tell. `operations` get the place of their commits: null where these have none, or are of other kinds."""
    places = ordered.where(F.col("branch_id") == F.col("repo_id")).select(
        "repo_id", "commit_id", F.col("body_kind").alias("operation"), "position", "time", "author"
    )
    stated = _of_exports(spark, exports, "memberships")
    operations = stated.join(places, on=["repo_id", "commit_id", "operation"], how="left")
    members = _of_exports(spark, exports, "members")
    is_placed = F.when(
        F.col("position").isNotNull(), F.col("commit_id")
    )  # what is invented lets nobody speak
    counted = operations.groupBy("repo_id", "created_at", "source").agg(
        F.count_distinct(is_placed).alias("operations")
    )
    alone = members.select("repo_id", "created_at", "source", F.lit(0).alias("operations")).distinct()
    best = F.max(F.struct("operations", "created_at", "source")).alias("best")
    speakers = counted.unionByName(alone).groupBy("repo_id").agg(best).select("repo_id", F.col("best.source"))
    keys = ("repo_id", "commit_id", "member")
    others = [name for name in (*MEMBERSHIPS.names, "position", "time", "author") if name not in keys]
    return Told(
        operations=operations.join(speakers, on=["repo_id", "source"], how="left_semi")
        .groupBy(*keys)
        .agg(F.min(F.struct(*others)).alias("row"))  # the first, of rows that contradict each other
        .select(*keys, *[F.col(f"row.{name}").alias(name) for name in others]),
        members=members.join(speakers, on=["repo_id", "source"], how="left_semi")
        .where(F.col("permission").isin(*PERMISSIONS))
        .groupBy("repo_id", "member")
        .agg(F.min(F.struct("permission", "person")).alias("row"))
        .select("repo_id", "member", "row.permission", "row.person"),
        topics=_of_exports(spark, exports, "topics")
        .join(speakers, on=["repo_id", "source"], how="left_semi")
        .where(F.col("epoch").isNotNull())
        .groupBy("repo_id", "topic")
        .agg(F.min("epoch").alias("epoch")),
    )


def count_membership(told: Told) -> DataFrame:
    """One row per operation on a member that counts: who came or went, and how many members there are after it."""
    rows = told.operations.where(_is_read() & F.col("counts") & F.col("operation").isin(*_GIVING, _TAKING))
    is_giving = F.col("operation").isin(*_GIVING)
    # A removal that leaves something lets a member stay, and makes nobody one.
    said = F.when(is_giving, F.lit(1)).when(F.col("permission").isNull(), F.lit(0))
    before = (
        Window.partitionBy("repo_id", "member").orderBy("position").rowsBetween(Window.unboundedPreceding, -1)
    )
    so_far = (
        Window.partitionBy("repo_id").orderBy("position", "member").rowsBetween(Window.unboundedPreceding, 0)
    )
    was = F.coalesce(F.last("said", ignorenulls=True).over(before), F.lit(0))
    stepped = rows.withColumn("said", said).withColumn("step", F.coalesce("said", was) - was)
    return stepped.withColumn("members", F.sum("step").over(so_far)).select(
        "repo_id",
        "position",
        "commit_id",
        plausible_time().alias("time"),
        "author",
        "operation",
        "member",
        "permission",
        "step",
        "members",
    )


def count_epochs(told: Told, ordered: DataFrame) -> DataFrame:
    """One row per repo and epoch: how it began, and what was written on its topics."""
    written = (
        ordered.groupBy("repo_id", "topic", "author")
        .agg(
            F.count("*").alias("commits"),
            F.min(plausible_time()).alias("first_time"),
            F.max(plausible_time()).alias("last_time"),
        )
        .join(told.topics, on=["repo_id", "topic"], how="inner")
        .groupBy("repo_id", "epoch")
        .agg(
            F.count_distinct("topic").alias("topics"),
            F.sum("commits").alias("commits"),
            F.count_distinct("author").alias("authors"),
            F.min("first_time").alias("first_time"),
            F.max("last_time").alias("last_time"),
        )
    )
    known = F.when(F.col("reason").isin(*REASONS), F.col("reason"))
    said = F.struct("position", "time", "author", known.alias("reason"), "sealed_to", "counts")
    begun = (
        told.operations.where(_is_read() & F.col("operation").isin(*_STARTING))
        .groupBy("repo_id", F.col("commit_id").alias("epoch"))  # an init has a row for each founder
        .agg(F.min(said).alias("row"))
        .select(
            "repo_id",
            "epoch",
            F.row_number().over(Window.partitionBy("repo_id").orderBy("row.position")).alias("number"),
            plausible_time("row.time").alias("started_at"),
            *[f"row.{name}" for name in ("author", "reason", "sealed_to", "counts")],
        )
    )
    return begun.join(written, on=["repo_id", "epoch"], how="left").select(
        *begun.columns,
        *[F.coalesce(F.col(name), F.lit(0)).alias(name) for name in ("topics", "commits", "authors")],
        "first_time",
        "last_time",
    )


def count_repos(told: Told, membership: DataFrame, epochs: DataFrame) -> DataFrame:
    """One row per repo of which anything is told: its members as the node says, and what became of its operations."""
    members = told.members.groupBy("repo_id").agg(
        F.count("*").alias("members"),
        F.count_distinct(F.coalesce("person", "member")).alias("persons"),
        count_where(F.col("permission").isin(*PERMISSIONS[-2:])).alias("admins"),
    )
    operations = (
        told.operations.groupBy("repo_id", "commit_id")
        .agg(F.min(_is_read()).alias("is_read"), F.min("counts").alias("counts"))
        .groupBy("repo_id")
        .agg(
            F.count("*").alias("operations"),
            count_where(~F.col("counts")).alias("uncounted"),
            count_where(~F.col("is_read")).alias("left_out"),
        )
    )
    steps = membership.groupBy("repo_id").agg(
        count_where(F.col("step") == 1).alias("joins"),
        count_where(F.col("step") == -1).alias("removals"),
        F.sum("step").alias("replayed"),
    )
    begun = epochs.groupBy("repo_id").agg(F.count("*").alias("epochs"))
    joined = reduce(
        lambda left, right: left.join(right, on="repo_id", how="full"), [members, operations, steps, begun]
    )
    return joined.select(
        "repo_id",
        *[F.coalesce(F.col(name), F.lit(0)).alias(name) for name in joined.columns if name != "repo_id"],
    ).select(
        "repo_id",
        "members",
        "persons",
        "admins",
        "operations",
        "uncounted",
        "left_out",
        "joins",
        "removals",
        "replayed",
        "epochs",
    )


def _is_read() -> Column:
    """Whether a row of operations can be: its commit has a place, and of members it says what such a commit does."""
    is_known = F.col("permission").isin(*PERMISSIONS)
    on_member = F.col("member").isNotNull() & (
        is_known | (F.col("permission").isNull() & (F.col("operation") == _TAKING))
    )
    is_of_member = F.col("operation").isin(*_GIVING, _TAKING)
    return F.col("position").isNotNull() & F.when(
        is_of_member, F.coalesce(on_member, F.lit(False))
    ).otherwise(F.lit(True))


def _of_exports(spark: SparkSession, exports: Sequence[Export], table: str) -> DataFrame:
    """A table of all exports that have it, each with its number among them as `source`."""
    having = [(number, one) for number, one in enumerate(exports) if one.tables[table]]
    return reduce(
        DataFrame.unionByName,
        [
            read_table(spark, [export], table)
            .withColumn("source", F.lit(number))
            .withColumn("created_at", F.lit(export.created_at))
            for number, export in having or [(0, exports[0])]
        ],
    )
