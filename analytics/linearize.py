"""Bulk linearization in Spark: (branch, commit) -> checkpoints passed, rank and position, from acks alone.

Many branches are packed into each task: rows are spread by a hash of the branch, and every task orders all its branches
in one call of `analytics.kernel`. (One call per branch, as `applyInArrow` makes, costs a hundred times as much when
branches are small and many.) The rank that an export states is no input there. A branch that would not fit a task's
memory, about 0.7 KB a commit, is a giant, and ordered by many (`analytics.giants`).
"""

import itertools
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
from blake3 import blake3
from pyspark import cloudpickle
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from analytics import columns, kernel, limits, wave_jobs, waves, witness
from analytics.giants import order_giants

VOID: Final = "void"
FAULTS: Final = {
    kernel.MISSING_CAUSE: "missing cause",
    kernel.BEHIND_MISSING: "behind a missing cause",
    kernel.CYCLE: "cycle",
    kernel.VOID: VOID,
}
"""Why a commit has no place in the order, as the `fault` column says it."""

LINEARIZATION_SCHEMA: Final = (
    "branch_id binary, commit_id binary, passed bigint, rank bigint, position bigint, fault string"
)
DIGEST_SCHEMA: Final = "branch_id binary, commits bigint, digest string"

_ROWS_PER_BATCH: Final = 50_000


def linearize(commits: DataFrame, giant_from: int | None = None) -> DataFrame:
    """The order of every branch, with null rank and position and a `fault` for what has no place in it.

    Branches of `giant_from` commits and more are giants; by default `limits.GIANT_FROM`. Branches are counted and giants
    ordered at once, the rest when Spark comes to it. Raises GiantRefused.
    """
    _ship_code()
    threshold = giant_from or limits.GIANT_FROM
    rows = commits.select("branch_id", "commit_id", "acks", "sequence", "rank", _mark().alias("mark"))
    sizes = rows.groupBy("branch_id").agg(F.count("*").alias("size")).persist()
    found = sizes.where(F.col("size") >= threshold).orderBy("branch_id").collect()
    rest = sizes.where(F.col("size") < threshold).agg(F.sum("size")).collect()[0][0] or 0
    sizes.unpersist()
    giants = {bytes(row["branch_id"]): int(row["size"]) for row in found}
    partitions = max(_shuffle_partitions(commits), -(-rest // limits.TASK_COMMITS))
    if not giants:
        return _linearize_small(rows, partitions)
    small = rows.where(~F.col("branch_id").isin([F.lit(raw) for raw in giants]))
    ordered = order_giants(rows, giants, max(1, threshold // 2)).order
    fault = F.create_map(*[F.lit(part) for pair in FAULTS.items() for part in pair])[F.col("fault_code")]
    large = ordered.select("branch_id", "commit_id", "passed", "rank", "position", fault.alias("fault"))
    return _linearize_small(small, partitions).unionByName(large)


def _linearize_small(rows: DataFrame, partitions: int) -> DataFrame:
    return (
        rows.drop("rank")
        .repartition(partitions, "branch_id")
        .mapInArrow(_linearize_task, LINEARIZATION_SCHEMA)
    )


def digest_orders(linearization: DataFrame) -> DataFrame:
    """BLAKE3 over the commit ids of each branch in order, as the node computes it for its own timeline."""
    _ship_code()
    return (
        linearization.where(F.col("fault").isNull())
        .select("branch_id", "position", "commit_id")
        .repartition(_shuffle_partitions(linearization), "branch_id")
        .sortWithinPartitions("branch_id", "position")
        .mapInArrow(_digest_task, DIGEST_SCHEMA)
    )


def _mark() -> Column:
    mark = F.when(F.col("is_void"), kernel.MARKED_VOID)
    mark = mark.when(F.col("body_kind") == "checkpoint", kernel.MARKED_CHECKPOINT)
    return mark.otherwise(kernel.UNMARKED).cast("tinyint")


def _ship_code() -> None:
    """Send these functions to the workers with each task, so that a cluster needs no copy of Ravel."""
    for module in (kernel, columns, waves, wave_jobs, witness, limits, sys.modules[__name__]):
        cloudpickle.register_pickle_by_value(module)  # type: ignore[no-untyped-call]  # Spark ships it without annotations


def _shuffle_partitions(frame: DataFrame) -> int:
    # Stated as a number, or Spark would merge small partitions into one task, and Python would run on one core.
    return int(frame.sparkSession.conf.get("spark.sql.shuffle.partitions") or 1)


def _linearize_task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    parts = list(batches)
    if not parts:
        return
    table = pa.Table.from_batches(parts)
    branches: Any = table["branch_id"].combine_chunks().dictionary_encode()
    commit_ids = columns.ids(table["commit_id"])
    acks, ack_offsets = columns.id_lists(table["acks"])
    order = kernel.linearize(
        kernel.Tangles(
            tangle=branches.indices.to_numpy().astype(np.int64),
            commit_ids=commit_ids,
            ack_offsets=ack_offsets,
            acks=acks,
            sequence=table["sequence"].to_numpy(),
            marks=table["mark"].to_numpy(),
        )
    )
    faults: Any = pa.array([None, *FAULTS.values()])
    for start in range(0, len(order.row), _ROWS_PER_BATCH):
        part = slice(start, start + _ROWS_PER_BATCH)
        rows = order.row[part]
        has_fault = order.fault[part] != kernel.NO_FAULT
        arrays = [
            branches.take(pa.array(rows)).cast(pa.binary()),
            columns.binary(commit_ids[rows]),
            pa.array(order.passed[part], mask=has_fault),
            pa.array(order.rank[part], mask=has_fault),
            pa.array(order.position[part], mask=has_fault),
            faults.take(pa.array(order.fault[part])),
        ]
        yield pa.RecordBatch.from_arrays(
            arrays, ["branch_id", "commit_id", "passed", "rank", "position", "fault"]
        )


def _digest_task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Hash branch after branch as rows stream by; memory stays flat however long a branch is."""
    branch: bytes | None = None
    count, hasher = 0, blake3()
    for batch in batches:
        for run in _runs(batch):
            if run.branch_id != branch:
                if branch is not None:
                    yield _digest_row(branch, count, hasher.hexdigest())
                branch, count, hasher = run.branch_id, 0, blake3()
            hasher.update(run.commit_ids)
            count += len(run.commit_ids) // kernel.ID_SIZE
    if branch is not None:
        yield _digest_row(branch, count, hasher.hexdigest())


@dataclass(frozen=True, slots=True)
class _Run:
    """Neighbouring rows of one branch in a batch."""

    branch_id: bytes
    commit_ids: bytes


def _runs(batch: pa.RecordBatch) -> Iterator[_Run]:
    if batch.num_rows == 0:
        return
    branch_ids = columns.ids(pa.chunked_array([batch["branch_id"]]))
    commit_ids = columns.ids(pa.chunked_array([batch["commit_id"]]))
    changes = np.flatnonzero((branch_ids[1:] != branch_ids[:-1]).any(axis=1)) + 1
    for start, stop in itertools.pairwise([0, *changes.tolist(), batch.num_rows]):
        yield _Run(branch_ids[start].tobytes(), commit_ids[start:stop].tobytes())


def _digest_row(branch_id: bytes, count: int, digest: str) -> pa.RecordBatch:
    row = {"branch_id": branch_id, "commits": count, "digest": digest}
    return pa.RecordBatch.from_pylist([row])
