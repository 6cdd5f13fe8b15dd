"""Audits exported blocks: recomputes ids, compares parents with commit rows, and looks for absent children.

    rows     all rows of `blocks` and `relay_blocks` of all exports, with `node`, `file`, `row` and `is_relayed`
    stated   what the same nodes say of the commits: one row for each commit of a node, or publication of a relay
    due      after which sequence number each node whose export has blocks tells those of all commits

An id is the BLAKE3 of a block's bytes, so a commit whose own block is exported proves its id and its acks, and nobody has
to be believed. Signatures lie inside the ciphertext: they stay the node's to check. An export without blocks has no rows
here, and nothing is found in it.
"""

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce
from typing import Any, Final

import pyarrow as pa
from blake3 import blake3
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from analytics.audit.findings import LISTED_MAX, finding
from analytics.reading import block_reader, limits
from analytics.reading.shipping import ship_by_value

_PASSED_ON: Final = ("is_relayed", "node", "key", "commit_id", "block_id", "place")
_READ_SCHEMA: Final = """
    is_relayed boolean, node string, key bigint, commit_id binary, block_id binary, place string, real_id binary,
    acks array<binary>, fault string
"""
DUE_SCHEMA: Final = "is_relayed boolean, node string, after bigint"
_COMMIT: Final = ("is_relayed", "node", "key", "commit_id")
"""What tells commits of a node apart. A relay may have several publications of one, which `key` numbers; else it is 0."""


@dataclass(frozen=True, slots=True)
class BlockCounts:
    """Counts of the blocks that were examined, over all exports."""

    rows: int = 0
    recomputed: int = 0  # commits' own blocks whose ids were
    absent: int = 0  # blocks that nodes say they have not got
    ids: int = 0  # different ids of commits that exports state, of relayed ones too
    ids_recomputed: int = 0  # of these: in any export


def label_rows(rows: DataFrame, *, is_relayed: bool) -> DataFrame:
    """Rows with the columns that everything here goes by; `key` is 0 for a replica's."""
    key = F.col("sequence") if is_relayed else F.lit(0).cast("bigint")
    place = F.concat(F.col("file"), F.lit(" row "), F.col("row").cast("string"))
    return rows.select("*", F.lit(is_relayed).alias("is_relayed"), key.alias("key"), place.alias("place"))


def state_commits(by_node: DataFrame, relayed: DataFrame) -> DataFrame:
    """Return rows of accepted commits as `findings.count_copies` has them, and of `relay_commits`, with their nodes."""
    accepted = by_node.select(
        F.lit(False).alias("is_relayed"),  # a column's value
        "node",
        F.lit(0).cast("bigint").alias("key"),
        "commit_id",
        "sequence",
        F.col("least.acks").alias("least_acks"),
        F.col("most.acks").alias("most_acks"),
    )
    taken = relayed.groupBy(
        F.lit(True).alias("is_relayed"), "node", F.col("sequence").alias("key"), "commit_id"
    )
    acks = F.min("acks").alias("least_acks"), F.max("acks").alias("most_acks")
    return accepted.unionByName(taken.agg(*acks).withColumn("sequence", F.col("key")))


def read_contents(rows: DataFrame) -> DataFrame:
    """One row for each content, or own block without: `real_id` (null where nothing is hashed), its `acks`, its `fault`."""
    ship_by_value(block_reader, limits, sys.modules[__name__])
    is_short = F.length("content") <= limits.BLOCK_SIZE_MAX
    return (
        rows.where(F.col("content").isNotNull() | (F.col("block_id") == F.col("commit_id")))
        .select(
            *_PASSED_ON,
            "size",
            "child_ids",
            F.length("content").alias("content_size"),
            F.when(is_short, F.col("content")).alias("content"),
        )
        .mapInArrow(_read_task, _READ_SCHEMA)
    )


def count_rows(rows: DataFrame, read: DataFrame, stated: DataFrame) -> BlockCounts:
    """Count the rows that were examined."""
    counted = rows.agg(F.count("*"), F.count(F.when(F.col("size").isNull(), 1))).collect()[0]
    hashed = read.where(F.col("real_id").isNotNull())
    ids = stated.select("commit_id").distinct()
    proved = ids.join(hashed.select("commit_id"), on="commit_id", how="left_semi")
    return BlockCounts(counted[0], hashed.count(), counted[1], ids.count(), proved.count())


def find_all(
    rows: DataFrame, read: DataFrame, stated: DataFrame, by_node: DataFrame, due: DataFrame
) -> DataFrame:
    """Return all findings."""
    found = reduce(
        DataFrame.unionByName,
        [
            wrong_ids(read),
            find_malformed(rows, read),
            wrong_acks(read, stated),
            unmatched(rows, stated, due),
            dangling(rows),
        ],
    )
    branches = by_node.groupBy("commit_id").agg(F.min("branch_id").alias("branch_id"))
    return found.drop("branch_id").join(branches, on="commit_id", how="left")


def wrong_ids(read: DataFrame) -> DataFrame:
    """Content that has another id than the commit or the block that it is filed under."""
    is_wrong = (F.col("real_id") != F.col("commit_id")) | (F.col("real_id") != F.col("block_id"))
    detail = F.concat(F.lit("its bytes have the id "), F.lower(F.hex("real_id")), F.lit(", in "), "place")
    return _finding(read.where(is_wrong), "wrong id", detail)


def find_malformed(rows: DataFrame, read: DataFrame) -> DataFrame:
    """Find content that is no block or differs from its row, own blocks that are withheld, and impossible sizes."""
    faults = _finding(read.where(F.col("fault").isNotNull()), "malformed block", _in_place(F.col("fault")))
    size = F.concat(F.lit("size "), F.col("size").cast("string"))
    return faults.unionByName(_finding(rows.where(F.col("size") < 0), "absurd value", _in_place(size)))


def wrong_acks(read: DataFrame, stated: DataFrame) -> DataFrame:
    """Find rows of commits that state other acks than stand in its block, whose id is right."""
    sound = read.where((F.col("real_id") == F.col("commit_id")) & F.col("fault").isNull())
    differs = (F.col("acks") != F.col("least_acks")) | (F.col("acks") != F.col("most_acks"))
    found = sound.join(stated, on=[*_COMMIT], how="inner").where(differs)
    said = F.array_join(F.slice(F.transform("acks", lambda ack: F.lower(F.hex(ack))), 1, LISTED_MAX), ", ")
    count = F.size("acks").cast("string")
    return _finding(found, "wrong acks", F.concat(F.lit("its block has "), count, F.lit(": "), said))


def unmatched(rows: DataFrame, stated: DataFrame, due: DataFrame) -> DataFrame:
    """Find commits without a row for their own block, and blocks of commits that their export lacks.

    What a node forgot before blocks were asked for has no rows, and need not.
    """
    held = rows.groupBy(*_COMMIT).agg(
        F.bool_or(F.col("block_id") == F.col("commit_id")).alias("has_own"), F.min("place").alias("place")
    )
    is_later = F.coalesce(F.col("sequence") > F.col("after"), F.lit(False)).alias("is_later")
    later = stated.join(F.broadcast(due), on=["is_relayed", "node"], how="left").select(*_COMMIT, is_later)
    is_stated = F.lit(True).alias("is_stated")  # a column's value
    both = later.select("*", is_stated).join(held, on=[*_COMMIT], how="full")
    is_due = F.col("has_own").isNotNull() | F.col("is_later")
    is_missing = F.col("is_stated") & is_due & ~F.coalesce("has_own", F.lit(False))  # as above
    missing = _finding(both.where(is_missing), "missing block", F.lit("its own block has no row"))
    stray = both.where(F.col("is_stated").isNull())
    return missing.unionByName(_finding(stray, "stray block", _in_place(F.lit("no row states its commit"))))


def dangling(rows: DataFrame) -> DataFrame:
    """Find blocks that name a child without any row for this commit, not even one that marks it as absent."""
    named = rows.select("commit_id", "node", F.explode("child_ids").alias("block_id"))
    missing = F.slice(F.sort_array(F.collect_set(F.lower(F.hex("block_id")))), 1, LISTED_MAX)
    found = (
        named.join(rows.select("commit_id", "block_id"), on=["commit_id", "block_id"], how="left_anti")
        .groupBy("commit_id")
        .agg(F.sort_array(F.collect_set("node")).alias("nodes"), F.array_join(missing, ", ").alias("missing"))
    )
    return _finding(found, "dangling block", F.concat(F.lit("no export has "), F.col("missing")))


def _in_place(said: Column) -> Column:
    return F.concat(said, F.lit(", in "), F.col("place"))


def _finding(found: DataFrame, kind: str, detail: Column) -> DataFrame:
    return finding(found.withColumn("branch_id", F.lit(None).cast("binary")), kind, detail)


def _read_task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        given = [batch.column(name).to_pylist() for name in ("content", "content_size", "size", "child_ids")]
        found = [_read(*values) for values in zip(*given, strict=True)]
        columns: list[Any] = [batch.column(name) for name in _PASSED_ON]
        columns.append(pa.array([real_id for real_id, _, _ in found], pa.binary()))
        columns.append(pa.array([acks for _, acks, _ in found], pa.list_(pa.binary())))
        columns.append(pa.array([fault for _, _, fault in found], pa.string()))
        yield pa.RecordBatch.from_arrays(columns, [*_PASSED_ON, "real_id", "acks", "fault"])


def _read(
    content: bytes | None, content_size: int | None, size: int | None, child_ids: list[bytes]
) -> tuple[bytes | None, list[bytes] | None, str | None]:
    """Return the id of a block's bytes, the acks in it, and what is wrong with it."""
    if content_size is None:
        return None, None, None if size is None else "its content is not told"
    if content is None:
        return None, None, f"{content_size} bytes, at most {limits.BLOCK_SIZE_MAX}"
    real_id = blake3(content).digest()
    try:
        clear = block_reader.read_clear(content)
    except block_reader.NotABlock as error:
        return real_id, None, str(error)
    fault = None
    if size != content_size:
        stated = "none" if size is None else str(size)
        fault = f"its row states the size {stated}, it has {content_size} bytes"
    elif clear.child_ids != child_ids:
        fault = "its row states other children"
    return real_id, clear.acks, fault
