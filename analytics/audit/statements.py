"""Checks of the tables beside commits: members, memberships, topics, tangles, dependencies, files, and what waits.

Each returns findings as `analytics.audit.findings` does. Rows have `node`, as `analytics.audit.audit` labels exports.
"""

from collections.abc import Mapping
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from analytics.audit.findings import finding
from ravel.exports.schema import PERMISSIONS, REASONS

TABLES: Final = (
    "memberships",
    "members",
    "topics",
    "tangles",
    "dependencies",
    "files",
    "pending",
    "rejections",
)
"""Tables that are looked at here."""
_OF_COMMITS: Final = ("memberships", "tangles", "dependencies", "files")
"""Tables whose rows are of commits, by `sequence` and `commit_id`."""
_STATED: Final = {
    "tangles": (("commit_id", "kind"), ("root", "previous")),
    "dependencies": (("commit_id",), ("deps", "negative_deps")),
}
"""Tables of what commits state: the columns that name a row, and those that must be the same in all copies."""
_TOPIC_KINDS: Final = ("epoch", "writers", "branch")


def find_all(rows: Mapping[str, DataFrame], commits: DataFrame) -> DataFrame:
    """Return all findings. `rows` has each of TABLES, `commits` every row of commits."""
    own = commits.select(
        "node", "commit_id", "branch_id", "sequence", "repo_id", "body_kind", "files", "file_bytes"
    )
    found = [_stray(rows[table], own, table) for table in _OF_COMMITS]
    found += [
        _wrong_operations(rows["memberships"], own),
        _unknown_words(rows),
        _wrong_files(rows["files"], own),
        *(_disagreements(rows[table], own, table) for table in _STATED),
    ]
    found += [_members_twice(rows["members"]), _members_of_nothing(rows["members"], rows["memberships"])]
    found += [_unknown_epochs(rows["topics"], rows["memberships"])]
    found += [_accepted_too(rows[table], own, table) for table in ("pending", "rejections")]
    every = found[0]
    for one in found[1:]:
        every = every.unionByName(one)
    return every


def _of_no_branch(rows: DataFrame, *, has_commit: bool = False) -> DataFrame:
    without = rows.withColumn("branch_id", F.lit(None).cast("binary"))
    return without if has_commit else without.withColumn("commit_id", F.lit(None).cast("binary"))


def _stray(rows: DataFrame, own: DataFrame, table: str) -> DataFrame:
    """Find rows of commits that the export has not by this id and sequence."""
    keys = ["node", "commit_id", "sequence"]
    found = rows.join(own.select(*keys), on=keys, how="left_anti")
    return finding(
        _of_no_branch(found, has_commit=True), "stray row", F.lit(f"{table}: commits has no such row")
    )


def _wrong_operations(memberships: DataFrame, own: DataFrame) -> DataFrame:
    """Find memberships that say another repo or operation than their commit."""
    stated = memberships.select("node", "commit_id", "operation", F.col("repo_id").alias("of_repo"))
    found = stated.join(own, on=["node", "commit_id"]).where(
        (F.col("operation") != F.col("body_kind")) | (F.col("of_repo") != F.col("repo_id"))
    )
    detail = F.concat(F.lit("memberships say "), "operation", F.lit(", commits say "), "body_kind")
    return finding(found, "wrong membership", detail)


def _unknown_words(rows: Mapping[str, DataFrame]) -> DataFrame:
    """Find unknown permissions, reasons and kinds, and negative counts of seals."""

    def of(table: str, column: str, known: tuple[str, ...]) -> DataFrame:
        found = rows[table].where(~F.col(column).isin(*known))
        detail = F.concat(F.lit(f"{table}: {column} "), F.substring(column, 1, 40))
        return finding(_of_no_branch(found), "absurd value", detail)

    negative = rows["memberships"].where("sealed_to < 0")
    detail = F.concat(F.lit("memberships: sealed_to "), F.col("sealed_to").cast("string"))
    return (
        of("memberships", "permission", PERMISSIONS)
        .unionByName(of("memberships", "reason", REASONS))
        .unionByName(of("members", "permission", PERMISSIONS))
        .unionByName(of("topics", "kind", _TOPIC_KINDS))
        .unionByName(finding(_of_no_branch(negative), "absurd value", detail))
    )


def _wrong_files(files: DataFrame, own: DataFrame) -> DataFrame:
    """Find commits that count other files than their export lists."""
    listed = files.groupBy("node", "commit_id").agg(
        F.count("*").alias("listed"), F.coalesce(F.sum("size"), F.lit(0)).alias("listed_bytes")
    )
    counted = own.where(F.col("files").isNotNull()).join(listed, on=["node", "commit_id"], how="left")
    found = counted.fillna(0, ["listed", "listed_bytes"]).where(
        (F.col("files") != F.col("listed")) | (F.col("file_bytes") != F.col("listed_bytes"))
    )
    detail = F.concat(
        F.lit("counts "),
        F.col("files").cast("string"),
        F.lit(", files list "),
        F.col("listed").cast("string"),
    )
    return finding(found, "wrong files", detail)


def _disagreements(rows: DataFrame, own: DataFrame, table: str) -> DataFrame:
    """Find rows of one statement that say different things, in one export or in several."""
    keys, said = _STATED[table]
    statement = F.struct(*said)
    branches = own.groupBy("commit_id").agg(F.min("branch_id").alias("branch_id"))
    found = (
        rows.groupBy(*keys)
        .agg(
            F.sort_array(F.collect_set("node")).alias("nodes"),
            F.min(statement).alias("least"),
            F.max(statement).alias("most"),
        )
        .where(~F.col("least").eqNullSafe(F.col("most")))
        .join(branches, on="commit_id", how="left")
    )
    return finding(found, "disagreement", F.lit(f"rows of {table} differ"))


def _members_twice(members: DataFrame) -> DataFrame:
    found = members.groupBy("node", "repo_id", "member").count().where("count > 1")
    return finding(_of_no_branch(found), "duplicate", _member("members: twice "))


def _members_of_nothing(members: DataFrame, memberships: DataFrame) -> DataFrame:
    """Find members that no operation which counts has named."""
    named = memberships.where("counts").select("node", "repo_id", "member")
    found = members.join(named, on=["node", "repo_id", "member"], how="left_anti")
    return finding(_of_no_branch(found), "member of no operation", _member("members: "))


def _member(what: str) -> Column:
    return F.concat(F.lit(what), F.lower(F.hex("member")), F.lit(" of repo "), F.lower(F.hex("repo_id")))


def _unknown_epochs(topics: DataFrame, memberships: DataFrame) -> DataFrame:
    """Find topics of epochs that no operation has started, of repos whose operations are told."""
    told = memberships.select("node", "repo_id").distinct()
    started = memberships.select("node", "repo_id", "epoch").distinct()
    found = (
        topics.where(F.col("epoch").isNotNull())
        .join(told, on=["node", "repo_id"], how="left_semi")
        .join(started, on=["node", "repo_id", "epoch"], how="left_anti")
    )
    detail = F.concat(F.lit("topics: no operation starts epoch "), F.lower(F.hex("epoch")))
    return finding(_of_no_branch(found), "unknown epoch", detail)


def _accepted_too(rows: DataFrame, own: DataFrame, table: str) -> DataFrame:
    """Find commits that wait, or were refused, and stand among the accepted ones."""
    found = rows.select("node", "commit_id").join(own, on=["node", "commit_id"])
    return finding(found, "accepted too", F.lit(f"it stands in {table}"))
