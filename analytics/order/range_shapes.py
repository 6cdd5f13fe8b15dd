"""Finds how the commits of a large branch hang together: each range for what it has, and a join for the few other acks.

Ranges follow ranks, and people ack what is new. So a task that has a range finds nearly all causes in it
(`analytics.order.shapes`), and says which acks lead elsewhere: these are rows of the same table, with `outside` alone.
"""

from collections.abc import Iterator
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from analytics.order import columns, kernel, shapes
from analytics.order.branch_tasks import shape_columns
from analytics.order.kept_rows import pin
from analytics.order.kernel import Bytes, Ints
from analytics.order.rank_check import BROADCAST_COUNT_MAX, find_rows

OUTSIDE_SCHEMA: Final = "tangle int, ack binary, by binary, at bigint, is_merge boolean"
"""An ack of a commit that is in another range, or in none: what is acked, by which commit, where that is shown in time, and
whether that acks more."""
OUTSIDE_KIND: Final = pa.struct(
    [
        ("tangle", pa.int32()),
        ("ack", pa.binary()),
        ("by", pa.binary()),
        ("at", pa.int64()),
        ("is_merge", pa.bool_()),
    ]
)
"""Arrow type of a column of these fields."""
_ROWS_PER_BATCH: Final = 50_000
_KEY: Final = ["tangle", "commit_id"]


def add_outside(placed: DataFrame, outside: DataFrame) -> DataFrame:
    """Add to shapes that ranges found what follows of acks between ranges (OUTSIDE_SCHEMA).

    `placed` have `tangle`, `commit_id`, `time`, `fault_code` and the shapes.
    """
    count = outside.count()
    if count == 0:
        return placed
    few = F.broadcast if count <= BROADCAST_COUNT_MAX else (lambda frame: frame)
    causes = placed.where(F.col("fault_code") == kernel.NO_FAULT).select(
        "tangle", F.col("commit_id").alias("ack"), F.col("time").alias("written")
    )
    found = causes.join(few(outside), on=["tangle", "ack"], how="inner")
    of_causes = found.groupBy("tangle", F.col("ack").alias("commit_id")).agg(
        F.count("*").alias("more_count"), F.min("at").alias("more_at"), *_nothing("more_from", "more_until")
    )
    of_effects = (
        found.where("is_merge")
        .groupBy("tangle", F.col("by").alias("commit_id"))
        .agg(
            *_nothing("more_count", "more_at"),
            F.min("written").alias("more_from"),
            F.max("written").alias("more_until"),
        )
    )
    names_of_more = ("more_count", "more_at", "more_from", "more_until")
    more = pin(  # else each reader of the order would join anew
        of_causes.unionByName(of_effects)
        .groupBy(*_KEY)
        .agg(*[F.first(name, ignorenulls=True).alias(name) for name in names_of_more])
    )
    whole = (
        placed.join(few(more), on=_KEY, how="left")
        .withColumns(
            {
                "acked_count": F.col("acked_count") + F.coalesce("more_count", F.lit(0)),
                "acked_from": F.least("acked_from", "more_at"),
                "causes_from": F.least("causes_from", "more_from"),
                "causes_until": F.greatest("causes_until", "more_until"),
            }
        )
        .drop(*names_of_more)
    )
    return whole if count <= BROADCAST_COUNT_MAX else pin(whole)


def _nothing(*names: str) -> list[Any]:
    return [F.lit(None).cast("bigint").alias(name) for name in names]


# --- what runs on the executors ---


def find_range_shapes(
    table: pa.Table, commit_ids: Bytes, is_placed: NDArray[np.bool_]
) -> tuple[dict[str, Any], "Iterator[pa.StructArray]"]:
    """Return the shapes of a range's commits, in the order of its rows, and acks that lead elsewhere, in batches."""
    for name in shapes.TIMES:
        if table[name].null_count:
            raise ValueError(f"{name} is null in {table[name].null_count:,} commits, which no export has")
    acks, ack_offsets = columns.flatten_id_lists(table["acks"])
    tangle, times, shown = (table[name].to_numpy() for name in ("tangle", *shapes.TIMES))
    effects = np.repeat(np.arange(len(tangle)), np.diff(ack_offsets))
    causes = find_rows(tangle, commit_ids, effects, acks)
    is_here = causes >= 0
    by, ack = _distinct(effects[~is_here & is_placed[effects]], acks[~is_here & is_placed[effects]])
    offsets = np.concatenate([[0], np.cumsum(np.bincount(effects[is_here], minlength=len(tangle)))])
    elsewhere = np.bincount(by, minlength=len(tangle))
    found = shapes.find_shapes(causes[is_here], offsets, times, shown, is_placed, elsewhere)
    return shape_columns(found, is_placed), _list_outside(
        tangle, commit_ids, shown, found.acks_count, by, ack
    )


def _distinct(effects: Ints, acks: Bytes) -> tuple[Ints, Bytes]:
    """Return each pair of a row and an id once."""
    if len(effects) == 0:
        return effects, acks
    pairs = np.concatenate([effects.astype(">i8").view(np.uint8).reshape(-1, 8), acks], axis=1)
    _, first = np.unique(
        np.ascontiguousarray(pairs).view(f"V{pairs.shape[1]}").reshape(-1), return_index=True
    )
    return effects[first], acks[first]


def _list_outside(
    tangle: Ints, commit_ids: Bytes, shown: Ints, acks_count: Ints, by: Ints, ack: Bytes
) -> "Iterator[pa.StructArray]":
    for start in range(0, len(by), _ROWS_PER_BATCH):
        some = by[start : start + _ROWS_PER_BATCH]
        arrays = [
            pa.array(tangle[some].astype(np.int32)),
            columns.binary(ack[start : start + _ROWS_PER_BATCH]),
            columns.binary(commit_ids[some]),
            pa.array(shown[some]),
            pa.array(acks_count[some] > 1),
        ]
        yield pa.StructArray.from_arrays(arrays, fields=list(OUTSIDE_KIND))
