"""The findings of an audit, each a DataFrame of `kind`, `branch_id`, `commit_id`, `nodes` and `detail`.

`rows` are all rows of all exports with `node`, `file` and `row`; `commits` are these by id, each once; `order` is what
`linearize` makes of them.
"""

from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

_AGREED: Final = ("repo_id", "branch_id", "author", "acks", "rank", "body_kind", "time")
"""What every node that has a commit must state alike. Names are changed; sequence, position and arrival are a node's own."""

_LISTED_MAX: Final = 8
"""Places that one finding names."""

_KEY: Final = ("branch_id", "commit_id")


def duplicates(rows: DataFrame) -> DataFrame:
    """An id that stands more than once in one node's export."""
    place = F.concat_ws(" row ", "file", F.col("row").cast("string"))
    places = F.array_join(F.slice(F.sort_array(F.collect_list(place)), 1, _LISTED_MAX), ", ")
    found = (
        rows.groupBy("commit_id", "node")
        .agg(F.min("branch_id").alias("branch_id"), F.count("*").alias("copies"), places.alias("detail"))
        .where("copies > 1")
    )
    return _finding(found, "duplicate", F.col("detail"))


def disagreements(rows: DataFrame) -> DataFrame:
    """An id of which copies state different things."""
    # Null is a statement, too: min and max pass over it.
    differ = [
        F.when(
            (F.min(name) != F.max(name)) | (F.count_if(F.col(name).isNull()).between(1, F.count("*") - 1)),
            F.lit(name),
        )
        for name in _AGREED
    ]
    found = (
        rows.groupBy("commit_id")
        .agg(
            F.min("branch_id").alias("branch_id"),
            F.sort_array(F.collect_set("node")).alias("nodes"),
            F.concat_ws(", ", *differ).alias("columns"),
        )
        .where(F.col("columns") != "")
    )
    return _finding(found, "disagreement", F.concat(F.lit("copies differ in "), "columns"))


def absurd_values(rows: DataFrame) -> DataFrame:
    """A row with a number that cannot be."""
    wrong = F.concat_ws(
        ", ",
        *[
            F.when(F.col(name) < least, F.concat(F.lit(f"{name} "), F.col(name).cast("string")))
            for name, least in (("sequence", 1), ("rank", 0), ("position", -1), ("size", 0))
        ],
    )
    found = rows.withColumn("wrong", wrong).where(F.col("wrong") != "")
    return _finding(
        found, "absurd value", F.concat_ws(" ", "wrong", F.lit("in"), "file", F.lit("row"), "row")
    )


def wrong_ranks(rows: DataFrame, order: DataFrame) -> DataFrame:
    """A commit whose stated rank is not the one that the acks give."""
    placed = order.where(F.col("rank").isNotNull()).select(*_KEY, F.col("rank").alias("given"))
    found = (
        rows.join(placed, on=list(_KEY), how="inner")
        .where(~F.col("rank").eqNullSafe(F.col("given")))
        .groupBy(*_KEY, "rank", "given")
        .agg(F.sort_array(F.collect_set("node")).alias("nodes"))
    )
    stated = F.coalesce(F.col("rank").cast("string"), F.lit("nothing"))
    detail = F.concat(F.lit("states "), stated, F.lit(", the acks give "), F.col("given").cast("string"))
    return _finding(found, "wrong rank", detail)


def wrong_positions(rows: DataFrame, order: DataFrame) -> DataFrame:
    """A commit that a part puts before one which stands before it in the canonical order.

    Positions of one part are of one moment, and arrivals and voids change no two commits' order. Checkpoints do: branches
    that have any are left out.
    """
    moved = rows.where(F.col("body_kind") == "checkpoint").select("branch_id").distinct()
    placed = order.where(F.col("fault").isNull()).select(*_KEY, F.col("position").alias("given"))
    stated = (
        rows.where(F.col("position") >= 0)
        .select(*_KEY, "node", "file", "position")
        .join(moved, on="branch_id", how="left_anti")
        .join(placed, on=list(_KEY), how="inner")
    )
    before = Window.partitionBy("file", "branch_id").orderBy("given")
    compared = stated.withColumn("previous", F.lag("position").over(before))
    found = compared.where(F.col("previous") >= F.col("position"))
    detail = F.concat(
        F.lit("position "),
        F.col("position").cast("string"),
        F.lit(", though what stands before it has "),
        F.col("previous").cast("string"),
        F.concat(F.lit(", in "), "file"),
    )
    return _finding(found, "wrong position", detail)


def without_place(rows: DataFrame, commits: DataFrame, order: DataFrame) -> DataFrame:
    """A commit that has no rank: a cause is in no export, or it lies on a cycle, or depends on such a one."""
    lost = order.where(F.col("fault").isNotNull() & (F.col("fault") != "void")).select(*_KEY, "fault")
    acks = commits.join(lost.where(F.col("fault") == "missing cause"), on=list(_KEY), how="inner").select(
        *_KEY, F.explode("acks").alias("ack")
    )
    there = commits.select("branch_id", F.col("commit_id").alias("ack"))
    missing = F.array_join(F.slice(F.sort_array(F.collect_list(F.hex("ack"))), 1, _LISTED_MAX), ", ")
    causes = (
        acks.join(there, on=["branch_id", "ack"], how="left_anti")
        .groupBy(*_KEY)
        .agg(F.lower(missing).alias("missing"))
    )
    holders = rows.groupBy(*_KEY).agg(F.sort_array(F.collect_set("node")).alias("nodes"))
    found = lost.join(causes, on=list(_KEY), how="left").join(holders, on=list(_KEY), how="left")
    detail = F.coalesce(F.concat(F.lit("no export has "), "missing"), F.lit(""))
    return _finding(found, F.col("fault"), detail)


def strange_roots(rows: DataFrame, commits: DataFrame) -> DataFrame:
    """A branch that has no root, or more than one."""
    roots = (
        commits.groupBy("branch_id")
        .agg(F.count_if(F.size("acks") == 0).alias("roots"))
        .where(F.col("roots") != 1)
    )
    holders = rows.groupBy("branch_id").agg(F.sort_array(F.collect_set("node")).alias("nodes"))
    found = roots.join(holders, on="branch_id", how="inner").withColumn(
        "commit_id", F.lit(None).cast("binary")
    )
    kind = F.when(F.col("roots") == 0, "no root").otherwise("several roots")
    return _finding(found, kind, F.concat(F.col("roots").cast("string"), F.lit(" commits without acks")))


def dangling_voids(voids: DataFrame, commits: DataFrame) -> DataFrame:
    """A commit that is called void and is in no export."""
    found = (
        voids.join(commits.select("commit_id"), on="commit_id", how="left_anti")
        .groupBy("commit_id")
        .agg(F.sort_array(F.collect_set("node")).alias("nodes"))
        .withColumn("branch_id", F.lit(None).cast("binary"))
    )
    return _finding(found, "dangling void", F.lit("no export has it"))


def divergences(digests: DataFrame) -> DataFrame:
    """A branch of which nodes order the commits that they have in common differently."""
    said = F.concat_ws(" ", "node", F.substring("digest", 1, 16))
    found = (
        digests.groupBy("branch_id")
        .agg(
            F.count_distinct("digest").alias("orders"),
            F.sort_array(F.collect_set("node")).alias("nodes"),
            F.array_join(F.slice(F.sort_array(F.collect_list(said)), 1, _LISTED_MAX), ", ").alias("detail"),
        )
        .where("orders > 1")
        .withColumn("commit_id", F.lit(None).cast("binary"))
    )
    return _finding(found, "divergence", F.col("detail"))


def _finding(found: DataFrame, kind: str | Column, detail: Column) -> DataFrame:
    nodes = F.col("nodes") if "nodes" in found.columns else F.array("node")
    named = F.lit(kind) if isinstance(kind, str) else kind
    return found.select(
        named.alias("kind"), "branch_id", "commit_id", nodes.alias("nodes"), detail.alias("detail")
    )
