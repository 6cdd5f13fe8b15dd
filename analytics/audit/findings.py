"""Checks of the audit; each returns a DataFrame of findings (kind, branch, commit, nodes, detail).

`judged` are all rows of all exports with `node`, `file` and `row`, and beside them what the acks of all give: `given_rank`,
`given_position`, `passed` and `fault`. `by_node` says of each id and each node what its copies state (`count_copies`).
"""

from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from analytics.reading.limits import STATED_NUMBER_MAX

_AGREED: Final = ("repo_id", "branch_id", "author", "acks", "rank", "body_kind", "time")
"""Columns that every node states alike of a commit. Names are changed; sequence, position and arrival are a node's own.
So are topic and size: who follows a branch by its link gets commits by another topic, and a body may be absent."""
_AGREED_IF_TOLD: Final = ("feed_sequence", "source_author")
"""Columns that nodes state alike where they could open the commit: null contradicts nothing."""

_RANGES: Final = (
    ("sequence", 1, None),
    ("rank", 0, None),
    ("position", -1, None),
    ("size", 0, None),
    ("blocks", 0, None),
    ("feed_sequence", 1, STATED_NUMBER_MAX),
    ("time", 0, STATED_NUMBER_MAX),
    ("received_at", 0, STATED_NUMBER_MAX),
    ("shown_at", 0, STATED_NUMBER_MAX),
    ("arrived_at", 0, STATED_NUMBER_MAX),
)
"""Columns of `commits` with the least and the largest number that can be."""
TIMESTAMPS: Final = {
    "time_utc": "time",
    "received_utc": "received_at",
    "shown_utc": "shown_at",
    "arrived_utc": "arrived_at",
}
"""Columns of timestamps, and the numbers that they say again."""
FINDINGS_SCHEMA: Final = "kind string, branch_id binary, commit_id binary, nodes array<string>, detail string"
LISTED_MAX: Final = 8
"""Places that one finding names."""


def count_copies(judged: DataFrame) -> DataFrame:
    """One row for each id and node: how many copies, the first and last, and whether they have a place in the order."""
    place = F.concat_ws(" row ", "file", F.col("row").cast("string"))
    stated = F.struct(*_AGREED)
    return judged.groupBy("commit_id", "node").agg(
        F.min("branch_id").alias("branch_id"),
        F.count("*").alias("copies"),
        F.min(place).alias("first"),
        F.max(place).alias("last"),
        F.min(stated).alias("least"),
        F.max(stated).alias("most"),
        F.min("rank").alias("rank"),
        F.max("sequence").alias("sequence"),
        *(F.min(name).alias(f"least_{name}") for name in _AGREED_IF_TOLD),
        *(F.max(name).alias(f"most_{name}") for name in _AGREED_IF_TOLD),
        F.min("passed").alias("passed"),
        F.bool_and(F.col("fault").isNull()).alias("is_placed"),
    )


def duplicates(by_node: DataFrame) -> DataFrame:
    """Find ids that stand more than once in one node's export."""
    found = by_node.where("copies > 1")
    return finding(found, "duplicate", F.concat_ws(", ", "first", "last"))


def disagreements(by_node: DataFrame) -> DataFrame:
    """Find ids whose copies differ."""
    least, most = F.min("least").alias("least"), F.max("most").alias("most")
    told = [F.min(f"least_{name}").alias(f"least_{name}") for name in _AGREED_IF_TOLD]
    told += [F.max(f"most_{name}").alias(f"most_{name}") for name in _AGREED_IF_TOLD]
    found = by_node.groupBy("commit_id").agg(
        F.min("branch_id").alias("branch_id"),
        F.sort_array(F.collect_set("node")).alias("nodes"),
        least,
        most,
        *told,
    )
    # The least and the most statement are the same where all are, and differ first in a column that is not.
    differ = [
        F.when(~F.col(f"least.{name}").eqNullSafe(F.col(f"most.{name}")), F.lit(name)) for name in _AGREED
    ]
    is_other = ~F.col("least").eqNullSafe(F.col("most"))
    for name in _AGREED_IF_TOLD:
        is_told_otherwise = F.coalesce(F.col(f"least_{name}") != F.col(f"most_{name}"), F.lit(False))
        differ.append(F.when(is_told_otherwise, F.lit(name)))
        is_other |= is_told_otherwise
    detail = F.concat(F.lit("copies differ in "), F.concat_ws(", ", *differ))
    return finding(found.where(is_other), "disagreement", detail)


def row_findings(judged: DataFrame) -> DataFrame:
    """Find rows that are wrong by themselves: an impossible number, another rank than the acks give, or no rank."""
    place = F.concat(F.col("file"), F.lit(" row "), F.col("row").cast("string"))
    absurd = F.concat_ws(
        ", ",
        *[
            F.when(_is_outside(name, least, most), F.concat(F.lit(f"{name} "), F.col(name).cast("string")))
            for name, least, most in _RANGES
        ],
    )
    stated = F.coalesce(F.col("rank").cast("string"), F.lit("nothing"))
    given = F.col("given_rank").cast("string")
    is_wrong = F.col("given_rank").isNotNull() & ~F.col("rank").eqNullSafe(F.col("given_rank"))
    is_lost = F.col("fault").isin("behind a missing cause", "cycle")
    found = F.array_compact(
        F.array(
            F.when(absurd != "", _said("absurd value", F.concat(absurd, F.lit(" in "), place))),
            F.when(
                is_wrong,
                _said("wrong rank", F.concat(F.lit("states "), stated, F.lit(", the acks give "), given)),
            ),
            F.when(is_lost, _said(F.col("fault"), F.concat(F.lit("in "), place))),
            F.when(
                F.size(F.array_distinct("acks")) < F.size("acks"),
                _said("ack twice", F.concat(F.lit("in "), place)),
            ),
            *(_wrong_timestamp(name, place) for name in TIMESTAMPS),
        )
    )
    return judged.select("branch_id", "commit_id", "node", F.explode(found).alias("found")).select(
        "found.kind", "branch_id", "commit_id", F.array("node").alias("nodes"), "found.detail"
    )


def _wrong_timestamp(name: str, place: Column) -> Column:
    """Find a timestamp that is not the number before it."""
    number = F.col(TIMESTAMPS[name])
    is_wrong = F.unix_millis(name) != number
    stated = F.concat(F.lit(f"{name} is not "), number.cast("string"), F.lit(", in "), place)
    return F.when(is_wrong, _said("wrong timestamp", stated))


def wrong_sequences(judged: DataFrame) -> DataFrame:
    """Find numbers that one export gives twice, and commits that it places or shows before a parent."""
    numbered = judged.select("node", "branch_id", "commit_id", "sequence", "shown_at", "acks")
    twice = (
        numbered.groupBy("node", "sequence")
        .agg(F.count_distinct("commit_id").alias("commits"), F.min("commit_id").alias("commit_id"))
        .where("commits > 1")
        .withColumn("branch_id", F.lit(None).cast("binary"))
    )
    number = F.col("sequence").cast("string")
    is_early = F.col("sequence") <= F.col("of_cause.sequence")
    is_shown_early = F.col("shown_at") < F.col("of_cause.shown_at")
    said = [
        F.when(
            is_wrong,
            F.concat(
                F.lit(f"{name} "),
                F.col(name).cast("string"),
                F.lit(", and a parent "),
                F.col(f"of_cause.{name}").cast("string"),
            ),
        )
        for name, is_wrong in (("sequence", is_early), ("shown_at", is_shown_early))
    ]
    causes = numbered.select(
        "node", F.col("commit_id").alias("ack"), F.struct("sequence", "shown_at").alias("of_cause")
    )
    early = (
        numbered.withColumn("ack", F.explode("acks"))
        .join(causes, on=["node", "ack"])
        .where((is_early | is_shown_early) & (F.col("ack") != F.col("commit_id")))
        .withColumn("said", F.concat_ws("; ", *said))
        .groupBy("node", "branch_id", "commit_id")
        .agg(F.max("said").alias("said"))
    )
    return finding(twice, "duplicate", F.concat(F.lit("sequence "), number)).unionByName(
        finding(early, "effect before its cause", F.col("said"))
    )


def strange_repos(judged: DataFrame) -> DataFrame:
    """Find branches whose commits are of several repos."""
    found = (
        judged.groupBy("branch_id")
        .agg(F.count_distinct("repo_id").alias("repos"), F.sort_array(F.collect_set("node")).alias("nodes"))
        .where("repos > 1")
        .withColumn("commit_id", F.lit(None).cast("binary"))
    )
    return finding(found, "several repos", F.concat(F.col("repos").cast("string"), F.lit(" repos")))


def _is_outside(name: str, least: int, most: int | None) -> Column:
    value = F.col(name)
    return value < least if most is None else ~value.between(least, most)


def missing_causes(judged: DataFrame, commits: DataFrame) -> DataFrame:
    """Find acks of commits that no export has in the same branch: absent ones, and those of another branch."""
    lost = judged.where(F.col("fault") == "missing cause")
    acks = lost.select("branch_id", "commit_id", "node", F.explode("acks").alias("ack"))
    there = commits.select("branch_id", F.col("commit_id").alias("ack"))
    # An id stands once in `commits`: of the copies of one the same branch is taken for all.
    elsewhere = commits.select(F.col("commit_id").alias("ack"), F.col("branch_id").alias("of_branch"))
    missing = F.slice(F.sort_array(F.collect_set(F.lower(F.hex("ack")))), 1, LISTED_MAX)
    others = F.slice(F.sort_array(F.collect_set(F.lower(F.hex("of_branch")))), 1, LISTED_MAX)
    found = (
        acks.join(there, on=["branch_id", "ack"], how="left_anti")
        .join(elsewhere, on="ack", how="left")
        .groupBy("branch_id", "commit_id", F.col("of_branch").isNotNull().alias("is_elsewhere"))
        .agg(
            F.sort_array(F.collect_set("node")).alias("nodes"),
            missing.alias("missing"),
            others.alias("others"),
        )
    )
    named = F.array_join("missing", ", ")
    return finding(
        found,
        F.when(F.col("is_elsewhere"), "ack of another branch").otherwise("missing cause"),
        F.when(
            F.col("is_elsewhere"),
            F.concat(F.lit("acks "), named, F.lit(", of branch "), F.array_join("others", ", ")),
        ).otherwise(F.concat(F.lit("no export has "), named)),
    )


def wrong_positions(judged: DataFrame) -> DataFrame:
    """Find commits that a part puts before one which precedes them in the canonical order.

    Positions of one watermark are of one moment, and arrivals and voids change no two
    commits' order. Checkpoints do: branches that have any are left out.
    """
    moved = judged.where(F.col("body_kind") == "checkpoint").select("branch_id").distinct()
    stated = judged.where((F.col("position") >= 0) & F.col("fault").isNull()).join(
        moved, on="branch_id", how="left_anti"
    )
    before = Window.partitionBy("file", "position_at", "branch_id").orderBy("given_position")
    compared = stated.withColumn("previous", F.lag("position").over(before))
    detail = F.concat(
        F.lit("position "),
        F.col("position").cast("string"),
        F.lit(", though what stands before it has "),
        F.col("previous").cast("string"),
        F.concat(F.lit(", in "), "file"),
    )
    return finding(compared.where(F.col("previous") >= F.col("position")), "wrong position", detail)


def strange_roots(judged: DataFrame) -> DataFrame:
    """Find branches that have no root, or more than one."""
    root = F.when(F.size("acks") == 0, F.col("commit_id"))
    found = (
        judged.groupBy("branch_id")
        .agg(F.count_distinct(root).alias("roots"), F.sort_array(F.collect_set("node")).alias("nodes"))
        .where("roots <> 1")
        .withColumn("commit_id", F.lit(None).cast("binary"))
    )
    kind = F.when(F.col("roots") == 0, "no root").otherwise("several roots")
    return finding(found, kind, F.concat(F.col("roots").cast("string"), F.lit(" commits without acks")))


def dangling_voids(voids: DataFrame, commits: DataFrame) -> DataFrame:
    """Find commits that are called void and are in no export."""
    found = voids.join(commits.select("commit_id"), on="commit_id", how="left_anti")
    nowhere = found.withColumn("branch_id", F.lit(None).cast("binary"))
    return finding(nowhere, "dangling void", F.lit("no export has it"))


def divergences(digests: DataFrame) -> DataFrame:
    """Find branches whose common commits nodes order differently."""
    said = F.concat_ws(" ", "node", F.substring("digest", 1, 16))
    found = (
        digests.groupBy("branch_id")
        .agg(
            F.count_distinct("digest").alias("orders"),
            F.sort_array(F.collect_set("node")).alias("nodes"),
            F.array_join(F.slice(F.sort_array(F.collect_list(said)), 1, LISTED_MAX), ", ").alias("detail"),
        )
        .where("orders > 1")
        .withColumn("commit_id", F.lit(None).cast("binary"))
    )
    return finding(found, "divergence", F.col("detail"))


def _said(kind: str | Column, detail: Column) -> Column:
    named = F.lit(kind) if isinstance(kind, str) else kind
    return F.struct(named.alias("kind"), detail.alias("detail"))


def finding(found: DataFrame, kind: str | Column, detail: Column) -> DataFrame:
    """Rows as findings: of their `nodes`, or of the one `node`."""
    nodes = F.col("nodes") if "nodes" in found.columns else F.array("node")
    named = F.lit(kind) if isinstance(kind, str) else kind
    return found.select(
        named.alias("kind"), "branch_id", "commit_id", nodes.alias("nodes"), detail.alias("detail")
    )
