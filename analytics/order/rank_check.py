"""Verifies exported ranks: each must be 0 for a root, else 1 + the largest rank of its parents.

The equation of a commit is *rank = 0 without acks, else 1 + the largest rank of the acked*; why it is enough, `analytics.
giants` says. Where ranks are true, what a commit acks has a rank that is little smaller, since people ack what is new. So
rows are cut into ranges by stated rank, each looked through by one task, where nearly all causes are found; a join with all
commits is left for the few that are not. Where ranks are false that join has much to do, and is as exact.

Where ranks are true and nothing but ranks orders a branch, these ranges stand in its order already. So they are kept.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from analytics.order import columns, kernel
from analytics.order.kernel import Bytes, Ints
from analytics.order.range_rank_jobs import pin

_CHECKED_SCHEMA: Final = """
    tangle int, holds boolean, forward_by_rank bigint, forward_by_sequence bigint, checkpoints bigint,
    stated bigint, sequence bigint, highest bigint, elsewhere array<binary>
"""
"""A row for each tangle of a range, where the last four are null; and one for each commit that acks something elsewhere,
where `holds` says whether what is here allows its rank, and `highest` is the largest rank of its causes here."""
_ROWS_PER_BATCH: Final = 50_000
_BROADCAST_COUNT_MAX: Final = 500_000
"""Different acks from elsewhere that every task gets: some 50 MB. If there are more, commits go to them instead."""


@dataclass(frozen=True, slots=True)
class RankCheckResult:
    """What the equations say of one tangle."""

    commits: int  # ids
    holds: bool
    forward_by_rank: int  # acks of what does not stand before by the stated rank
    forward_by_sequence: int
    checkpoints: int


@dataclass(frozen=True, slots=True)
class Range:
    """Rows of one task; commit i acks `acks[ack_offsets[i]:ack_offsets[i + 1]]`."""

    tangle: Ints
    commit_ids: Bytes
    ack_offsets: Ints
    acks: Bytes
    sequence: Ints
    stated: Ints  # rank; a negative one solves nothing


@dataclass(frozen=True, slots=True)
class Checked:
    """What a range says of its commits."""

    holds: NDArray[
        np.bool_
    ]  # the equation; of a commit that acks something elsewhere, that nothing here contradicts it
    highest: Ints  # rank of the causes here, -1 if there are none
    is_elsewhere: NDArray[np.bool_]  # of each ack
    forward_by_rank: Ints
    forward_by_sequence: Ints  # acks of each commit, as in Verdict


def sort_by_stated_rank(rows: DataFrame, sizes: Sequence[int], range_size: int) -> DataFrame:
    """All rows in the order of tangle, stated rank and id, cut into ranges of about `range_size`, and pinned."""
    by = ("tangle", "stated", "commit_id")
    return pin(rows.repartitionByRange(-(-sum(sizes) // range_size), *by).sortWithinPartitions(*by))


def judge(ranges: DataFrame, rows: DataFrame, sizes: Sequence[int]) -> dict[int, RankCheckResult]:
    """Put the stated ranks of tangles 0, 1, ... of these sizes into the equations.

    `rows` have `tangle`, `commit_id`, `acks`, `sequence`, `stated`, `mark`; `ranges` are the same as
    `sort_by_stated_rank` leaves them.
    """
    needed = ranges.select("tangle", "commit_id", "acks", "sequence", "stated", "mark")
    checked = pin(needed.mapInArrow(_check_task, _CHECKED_SCHEMA))
    found = (
        checked.unionByName(_look_elsewhere(checked, rows))
        .where(F.col("elsewhere").isNull())
        .groupBy("tangle")
        .agg(
            F.bool_and("holds").alias("holds"),
            F.sum("forward_by_rank").alias("forward_by_rank"),
            F.sum("forward_by_sequence").alias("forward_by_sequence"),
            F.sum("checkpoints").alias("checkpoints"),
        )
    )
    ids = _count_ids(rows, sizes)
    return {
        row["tangle"]: RankCheckResult(
            ids[row["tangle"]],
            row["holds"],
            row["forward_by_rank"],
            row["forward_by_sequence"],
            row["checkpoints"],
        )
        for row in found.collect()
    }


def _look_elsewhere(checked: DataFrame, rows: DataFrame) -> DataFrame:
    """A row of CHECKED_SCHEMA, without `elsewhere`, for each commit that acks something which is not in its range."""
    # Numbered before, for next to a generator Spark would number what it generates.
    asking = checked.where(F.col("elsewhere").isNotNull()).withColumn("num", F.monotonically_increasing_id())
    asked = asking.select("*", F.explode("elsewhere").alias("ack"))
    wanted = asked.select("tangle", "ack").distinct().persist()
    causes = rows.select(
        "tangle",
        F.col("commit_id").alias("ack"),
        F.col("stated").alias("cause_stated"),
        F.col("sequence").alias("cause_sequence"),
    )
    if wanted.count() <= _BROADCAST_COUNT_MAX:
        causes = pin(causes.join(F.broadcast(wanted), on=["tangle", "ack"], how="inner"))
    wanted.unpersist()
    commits = (
        asked.join(causes, on=["tangle", "ack"], how="left")
        .groupBy("num")
        .agg(
            *[F.first(name).alias(name) for name in ("tangle", "holds", "stated", "highest")],
            (F.count("ack") == F.count("cause_stated")).alias("has_all"),
            F.max("cause_stated").alias("cause_highest"),
            F.min("cause_stated").alias("cause_lowest"),
            F.count_if(F.col("cause_stated") >= F.col("stated")).alias("forward_by_rank"),
            F.count_if(F.col("cause_sequence") >= F.col("sequence")).alias("forward_by_sequence"),
        )
    )
    is_solved = F.col("stated") == F.greatest("highest", "cause_highest") + 1
    is_sound = F.col("has_all") & (F.col("cause_lowest") >= 0)
    nothing = F.lit(None).cast("bigint")
    return commits.select(
        "tangle",
        (F.col("holds") & F.coalesce(is_sound & is_solved, F.lit(False))).alias("holds"),
        "forward_by_rank",
        "forward_by_sequence",
        F.lit(0).cast("bigint").alias("checkpoints"),
        *[nothing.alias(name) for name in ("stated", "sequence", "highest")],
        F.lit(None).cast("array<binary>").alias("elsewhere"),
    )


def _count_ids(rows: DataFrame, sizes: Sequence[int]) -> dict[int, int]:
    """Different ids of each tangle. As many different hashes as rows prove as many ids, and are cheaper to count."""
    counts = _count_distinct(rows.select("tangle", F.xxhash64("commit_id").alias("of")))
    if [counts[number] for number in range(len(sizes))] == list(sizes):
        return counts
    return _count_distinct(rows.select("tangle", F.col("commit_id").alias("of")))


def _count_distinct(values: DataFrame) -> dict[int, int]:
    return {
        row["tangle"]: row["count"]
        for row in values.groupBy("tangle").agg(F.count_distinct("of").alias("count")).collect()
    }


# --- what runs on the executors ---


def check_range(part: Range) -> Checked:
    """Put the ranks of one range into its equations."""
    count = len(part.tangle)
    effects = np.repeat(np.arange(count), np.diff(part.ack_offsets))
    causes = _find(part, effects)
    is_here = causes >= 0
    cause, effect = causes[is_here], effects[is_here]
    cause_stated, effect_stated = part.stated[cause], part.stated[effect]
    highest = np.full(count, -1, np.int64)
    np.maximum.at(highest, effect, cause_stated)
    is_forward = cause_stated >= effect_stated
    holds = part.stated >= 0
    holds[effect[is_forward | (cause_stated < 0)]] = False
    is_complete = np.ones(count, np.bool_)
    is_complete[effects[~is_here]] = False
    holds &= ~is_complete | (part.stated == highest + 1)
    is_later = part.sequence[cause] >= part.sequence[effect]
    return Checked(
        holds,
        highest,
        ~is_here,
        np.bincount(effect[is_forward], minlength=count),
        np.bincount(effect[is_later], minlength=count),
    )


def _find(part: Range, effects: Ints) -> Ints:
    """The row of every ack, -1 for what is elsewhere. What is here may be overlooked where ids begin with the same bytes."""
    if len(part.acks) == 0:
        return np.empty(0, np.int64)
    starts = kernel.prefixes(part.commit_ids)
    by_prefix = np.argsort(starts)
    at = np.searchsorted(starts[by_prefix], kernel.prefixes(part.acks))
    found = by_prefix[np.minimum(at, len(starts) - 1)]
    is_it = (part.commit_ids[found] == part.acks).all(axis=1) & (part.tangle[found] == part.tangle[effects])
    return np.where(is_it, found, -1)


def _check_task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    parts = [batch for batch in batches if batch.num_rows]
    if not parts:
        return
    table = pa.Table.from_batches(parts)
    acks, ack_offsets = columns.id_lists(table["acks"])
    tangle, sequence, stated = (table[name].to_numpy() for name in ("tangle", "sequence", "stated"))
    part = Range(tangle, columns.ids(table["commit_id"]), ack_offsets, acks, sequence, stated)
    checked = check_range(part)
    is_checkpoint = table["mark"].to_numpy() == kernel.MARKED_CHECKPOINT
    elsewhere = np.bincount(
        np.repeat(np.arange(len(tangle)), np.diff(ack_offsets))[checked.is_elsewhere], minlength=len(tangle)
    )
    yield _sums(tangle, checked, is_checkpoint, elsewhere == 0)
    rows = np.flatnonzero(elsewhere)
    asked = acks[checked.is_elsewhere]
    starts = np.concatenate([[0], np.cumsum(elsewhere[rows])])
    for first in range(0, len(rows), _ROWS_PER_BATCH):
        some = rows[first : first + _ROWS_PER_BATCH]
        ends = starts[first : first + len(some) + 1]
        zeros = np.zeros(len(some), np.int64)
        listed = columns.binary(asked[ends[0] : ends[-1]])
        yield _batch(
            tangle[some].astype(np.int32),
            checked.holds[some],
            zeros,
            zeros,
            zeros,
            stated[some],
            sequence[some],
            checked.highest[some],
            pa.ListArray.from_arrays(pa.array((ends - ends[0]).astype(np.int32)), listed),
        )


def _sums(
    tangle: Ints, checked: Checked, is_checkpoint: NDArray[np.bool_], is_complete: NDArray[np.bool_]
) -> pa.RecordBatch:
    """A row for each tangle."""
    numbers, index = np.unique(tangle, return_inverse=True)
    failed = np.bincount(index[is_complete & ~checked.holds], minlength=len(numbers))
    by_tangle = [
        np.bincount(index, weights, len(numbers)).astype(np.int64)
        for weights in (checked.forward_by_rank, checked.forward_by_sequence, is_checkpoint)
    ]
    nothing = [pa.nulls(len(numbers), pa.int64()) for _ in range(3)]
    lists = pa.nulls(len(numbers), pa.list_(pa.binary()))
    return _batch(numbers.astype(np.int32), failed == 0, *by_tangle, *nothing, lists)


def _batch(*values: Any) -> pa.RecordBatch:  # noqa: ANN401  # arrays of numpy and Arrow, whose stubs have no common type
    names = ["tangle", "holds", "forward_by_rank", "forward_by_sequence", "checkpoints"]
    names += ["stated", "sequence", "highest", "elsewhere"]
    return pa.RecordBatch.from_arrays([pa.array(value) for value in values], names)
