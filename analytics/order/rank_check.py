"""Verifies exported ranks: each must be 0 for a root, else 1 + the largest rank of its parents.

The equation of a commit is *rank = 0 without acks, else 1 + the largest rank of the acked*; why it is enough,
`analytics.order.large_branches` says. Where ranks are true, what a commit acks has a rank that is little smaller, since
people ack what is new. So rows are cut into ranges by stated rank, each looked through by one task, where nearly all causes
are found; a join with all commits is left for the few that are not. Where ranks are false that join has much to do, and is
as exact.

Where ranks are true and nothing but ranks orders a branch, these ranges are its order already: `analytics.order.range_order`
has the task that sorts them, and calls what is here.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from analytics.order import columns, kernel
from analytics.order.kernel import Bytes, Ints

CHECKED_SCHEMA: Final = """
    tangle int, part int, holds boolean, placed bigint, forward_by_rank bigint, forward_by_sequence bigint,
    checkpoints bigint, stated bigint, sequence bigint, highest bigint, elsewhere array<binary>
"""
"""A row for each tangle of a range, where the last four are null: `placed` counts its commits that are not void. And one for
each commit that acks something elsewhere, where `holds` says whether what is here allows its rank, `highest` is the largest
rank of its causes here, and `placed` is null."""
_INTS: Final = (
    "placed",
    "forward_by_rank",
    "forward_by_sequence",
    "checkpoints",
    "stated",
    "sequence",
    "highest",
)
_FIELDS: Final[Mapping[str, pa.DataType]] = {
    "tangle": pa.int32(),
    "part": pa.int32(),
    "holds": pa.bool_(),
    **dict.fromkeys(_INTS, pa.int64()),
    "elsewhere": pa.list_(pa.binary()),
}
CHECKED_KIND: Final = pa.struct([*_FIELDS.items()])
"""Arrow type of a column of these fields."""
_ROWS_PER_BATCH: Final = 50_000
BROADCAST_COUNT_MAX: Final = 500_000
"""Acks from elsewhere that every task gets: some 50 MB. If there are more, commits go to them instead."""


@dataclass(frozen=True, slots=True)
class RankCheckResult:
    """Verdict of the equations on one tangle."""

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
    """Sums of one range over its commits."""

    holds: NDArray[
        np.bool_
    ]  # the equation; of a commit that acks something elsewhere, that nothing here contradicts it
    highest: Ints  # rank of the causes here, -1 if there are none
    is_elsewhere: NDArray[np.bool_]  # of each ack
    forward_by_rank: Ints
    forward_by_sequence: Ints  # acks of each commit, as in Verdict


def judge(ranges: DataFrame) -> tuple[dict[int, RankCheckResult], list[tuple[int, int, int]]]:
    """Return what ranges say of the equations of each tangle, and of how many commits have a place in which: (tangle, part,
    count).

    `ranges` are as `place_range` leaves them, with checks.
    """
    checked = ranges.where(F.col("checked").isNotNull()).select("checked.*")
    sums = (
        checked.where(F.col("elsewhere").isNull())
        .drop("stated", "sequence", "highest", "elsewhere")
        .collect()
    )
    found: dict[int, RankCheckResult] = {}
    for row in (*sums, *_look_elsewhere(checked, ranges)):
        before = found.get(row["tangle"], RankCheckResult(True, 0, 0, 0))
        found[row["tangle"]] = RankCheckResult(
            before.holds and row["holds"],
            before.forward_by_rank + row["forward_by_rank"],
            before.forward_by_sequence + row["forward_by_sequence"],
            before.checkpoints + row["checkpoints"],
        )
    return found, [(row["tangle"], row["part"], row["placed"]) for row in sums]


def _look_elsewhere(checked: DataFrame, ranges: DataFrame) -> list[Row]:
    """Return what the equations say of commits that ack something which is not in their range: a row for each tangle."""
    # Numbered before, for next to a generator Spark would number what it generates.
    asking = checked.where(F.col("elsewhere").isNotNull()).withColumn("num", F.monotonically_increasing_id())
    asked = asking.select("*", F.explode("elsewhere").alias("ack"))
    wanted = asked.select("tangle", "ack").distinct().persist()
    causes = ranges.where(F.col("checked").isNull()).select(
        "tangle",
        F.col("commit_id").alias("ack"),
        F.col("rank").alias("cause_stated"),
        F.col("sequence").alias("cause_sequence"),
    )
    if wanted.count() <= BROADCAST_COUNT_MAX:
        causes = causes.join(F.broadcast(wanted), on=["tangle", "ack"], how="inner")
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
    found = (
        commits.groupBy("tangle")
        .agg(
            F.bool_and(F.col("holds") & F.coalesce(is_sound & is_solved, F.lit(False))).alias("holds"),
            F.sum("forward_by_rank").alias("forward_by_rank"),
            F.sum("forward_by_sequence").alias("forward_by_sequence"),
            F.lit(0).alias("checkpoints"),
        )
        .collect()
    )
    wanted.unpersist()
    return found


# --- what runs on the executors ---


def check_range(part: Range) -> Checked:
    """Put the ranks of one range into its equations."""
    count = len(part.tangle)
    effects = np.repeat(np.arange(count), np.diff(part.ack_offsets))
    causes = find_rows(part.tangle, part.commit_ids, effects, part.acks)
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


def find_rows(tangle: Ints, commit_ids: Bytes, effects: Ints, acks: Bytes) -> Ints:
    """Return the row of every ack, which `effects` make, -1 for what is elsewhere.

    What is here may be overlooked where ids begin with the same bytes.
    """
    if len(acks) == 0:
        return np.empty(0, np.int64)
    starts = kernel.prefixes(commit_ids)
    by_prefix = np.argsort(starts)
    found = by_prefix[kernel.search_near(starts[by_prefix], kernel.prefixes(acks))]
    is_it = kernel.are_same(commit_ids[found], acks) & (tangle[found] == tangle[effects])
    return np.where(is_it, found, -1)


def check_rows(
    table: pa.Table, commit_ids: Bytes, is_placed: NDArray[np.bool_], part: int
) -> Iterator["pa.StructArray"]:
    """Yield the sums of range `part` as CHECKED_KIND. `rank` is the stated one; `is_placed` marks rows that are not void."""
    acks, ack_offsets = columns.flatten_id_lists(table["acks"])
    tangle, sequence, stated = (table[name].to_numpy() for name in ("tangle", "sequence", "rank"))
    checked = check_range(Range(tangle, commit_ids, ack_offsets, acks, sequence, stated))
    is_checkpoint = table["mark"].to_numpy() == kernel.MARKED_CHECKPOINT
    elsewhere = np.bincount(
        np.repeat(np.arange(len(tangle)), np.diff(ack_offsets))[checked.is_elsewhere], minlength=len(tangle)
    )
    yield _sums(tangle, checked, (is_placed, is_checkpoint), elsewhere == 0, part)
    rows = np.flatnonzero(elsewhere)
    asked = acks[checked.is_elsewhere]
    starts = np.concatenate([[0], np.cumsum(elsewhere[rows])])
    for first in range(0, len(rows), _ROWS_PER_BATCH):
        some = rows[first : first + _ROWS_PER_BATCH]
        ends = starts[first : first + len(some) + 1]
        listed = columns.binary(asked[ends[0] : ends[-1]])
        yield _struct(
            len(some),
            tangle=tangle[some].astype(np.int32),
            holds=checked.holds[some],
            stated=stated[some],
            sequence=sequence[some],
            highest=checked.highest[some],
            elsewhere=pa.ListArray.from_arrays(pa.array((ends - ends[0]).astype(np.int32)), listed),
        )


def _sums(
    tangle: Ints,
    checked: Checked,
    flags: tuple[NDArray[np.bool_], NDArray[np.bool_]],
    is_complete: NDArray[np.bool_],
    part: int,
) -> "pa.StructArray":
    """Return a row for each tangle. `flags`: which commits have a place, and which are checkpoints."""
    numbers, index = np.unique(tangle, return_inverse=True)
    failed = np.bincount(index[is_complete & ~checked.holds], minlength=len(numbers))
    placed, checkpoints, by_rank, by_sequence = (
        np.bincount(index, weights, len(numbers)).astype(np.int64)
        for weights in (*flags, checked.forward_by_rank, checked.forward_by_sequence)
    )
    return _struct(
        len(numbers),
        tangle=numbers.astype(np.int32),
        part=np.full(len(numbers), part, np.int32),
        placed=placed,
        holds=failed == 0,
        forward_by_rank=by_rank,
        forward_by_sequence=by_sequence,
        checkpoints=checkpoints,
    )


def _struct(count: int, **values: Any) -> "pa.StructArray":  # noqa: ANN401  # arrays of numpy and Arrow, whose stubs have no common type
    """Return so many rows of CHECKED_KIND. Columns that are not given are null."""
    arrays = [
        pa.array(values[field.name]) if field.name in values else pa.nulls(count, field.type)
        for field in CHECKED_KIND
    ]
    return pa.StructArray.from_arrays(arrays, fields=list(CHECKED_KIND))
