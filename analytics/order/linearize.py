"""Spark job that computes checkpoints passed, rank and position of every commit, from parent links alone.

Many branches are packed into each task: rows are spread by a hash of the branch, and every task orders all its branches
in one call of `analytics.order.kernel`. (One call per branch, as `applyInArrow` makes, costs a hundred times as much when
branches are small and many.) The rank that an export states is no input there. A branch that would not fit a task's
memory, about 0.7 KB a commit, is a giant, and ordered by many (`analytics.order.large_branches`).

A task that orders a branch has all of it before it: so it also says how commits hang together (`analytics.order.shapes`),
and hands on what else is counted of them, which a join would find again at several times the cost of the order.
"""

import itertools
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import numpy as np
import pyarrow as pa
from blake3 import blake3
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from analytics.order import columns, kernel, shapes
from analytics.order import range_rank_jobs as wave_jobs
from analytics.order import range_ranks as waves
from analytics.order import rank_check as witness
from analytics.order.large_branches import order_giants
from analytics.order.range_rank_jobs import LargeBranchRefused
from analytics.reading import limits
from analytics.reading.shipping import ship_by_value

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
LINEARIZATION_COLUMNS: Final = tuple(column.split()[0] for column in LINEARIZATION_SCHEMA.split(", "))
SHAPES_SCHEMA: Final = "acks_count bigint, acked_at array<bigint>, causes_from bigint, causes_until bigint"
"""Added by `with_shapes`, of what has a place: how many commits it acks; the times of those that ack it; and of merges, from
when until when what they ack was written, null if nothing of it has a place."""
DIGEST_SCHEMA: Final = "branch_id binary, commits bigint, digest string"

_KEY: Final = ["commit_id", "branch_id"]
"""The id first: where rows are sorted to be joined, branches would leave whole ids to be compared."""
_ROWS_PER_BATCH: Final = 50_000


def linearize(
    commits: DataFrame,
    giant_from: int | None = None,
    *,
    carried: Sequence[str] = (),
    with_shapes: bool = False,
) -> DataFrame:
    """The order of every branch, with null rank and position and a `fault` for what has no place in it.

    Branches of `giant_from` commits and more are giants; by default `limits.LARGE_BRANCH_FROM`. Branches are counted and
    giants ordered at once, the rest when Spark comes to it. `carried` are more columns of `commits` to go with the rows,
    which saves anyone who needs them a join. `with_shapes` adds the columns of SHAPES_SCHEMA, which need the commits'
    `time`. Raises LargeBranchRefused.
    """
    _ship_code()
    threshold = giant_from or limits.LARGE_BRANCH_FROM
    read = dict.fromkeys(
        ["branch_id", "commit_id", "acks", "sequence", "rank", *(["time"] if with_shapes else []), *carried]
    )
    rows = commits.select(*read, _mark().alias("mark"))
    is_large = F.col("size") >= threshold
    found = (
        rows.groupBy("branch_id")
        .agg(F.count("*").alias("size"))
        .agg(
            F.sum(F.when(~is_large, F.col("size"))).alias("rest"),
            F.sort_array(F.collect_list(F.when(is_large, F.struct("branch_id", "size")))).alias("giants"),
        )
        .collect()[0]
    )
    giants = {bytes(row["branch_id"]): int(row["size"]) for row in found["giants"]}
    rest = found["rest"] or 0
    # A multiple of what runs in one go: one task more than that would leave the other cores without any.
    at_once = _shuffle_partitions(commits)
    partitions = at_once * max(1, -(-rest // (at_once * limits.TASK_COMMITS)))
    if not giants:
        return _linearize_small(rows, partitions, carried, with_shapes)
    is_large = F.col("branch_id").isin([F.lit(raw) for raw in giants])
    ordered = order_giants(rows, giants, max(1, threshold // 2)).order
    fault = F.create_map(*[F.lit(part) for pair in FAULTS.items() for part in pair])[F.col("fault_code")]
    large = ordered.select("branch_id", "commit_id", "passed", "rank", "position", fault.alias("fault"))
    if with_shapes:
        large = _add_shapes(large, rows.where(is_large), giants)
    if carried:
        large = large.join(rows.where(is_large).select(*_KEY, *carried), on=_KEY)
    small = _linearize_small(rows.where(~is_large), partitions, carried, with_shapes)
    return small.unionByName(large)


def _linearize_small(
    rows: DataFrame, partitions: int, carried: Sequence[str], with_shapes: bool
) -> DataFrame:
    schema = [LINEARIZATION_SCHEMA, *([SHAPES_SCHEMA] if with_shapes else [])]
    schema += [f"{name} {rows.schema[name].dataType.simpleString()}" for name in carried]
    task = partial(_linearize_task, carried=tuple(carried), with_shapes=with_shapes)
    needed = [name for name in rows.columns if name != "rank"]
    return rows.select(*needed).repartition(partitions, "branch_id").mapInArrow(task, ", ".join(schema))


def _add_shapes(order: DataFrame, rows: DataFrame, sizes: Mapping[bytes, int]) -> DataFrame:
    """What `analytics.order.shapes` finds in a task, of branches too large for one: what has a place acks nothing elsewhere.

    `sizes` count the commits of these branches. Raises LargeBranchRefused.
    """
    placed = (
        order.where(F.col("fault").isNull())
        .select(*_KEY)
        .join(rows.select(*_KEY, "time", "acks"), on=_KEY)
        .select(*_KEY, "time", F.array_distinct("acks").alias("acks"))
    )
    acks_count = F.size("acks").cast("bigint").alias("acks_count")
    acks = placed.select(
        "branch_id",
        F.col("commit_id").alias("by"),
        F.col("time").alias("at"),
        acks_count,
        F.explode("acks").alias("commit_id"),
    )
    _check_stars(acks, sizes)
    acked = acks.groupBy(*_KEY).agg(F.collect_list("at").alias("acked_at"))
    merged = (
        acks.where(F.col("acks_count") > 1)
        .join(placed.select(*_KEY, "time"), on=_KEY)
        .groupBy(F.col("by").alias("commit_id"), "branch_id")
        .agg(F.min("time").alias("causes_from"), F.max("time").alias("causes_until"))
    )
    nobody = F.array().cast("array<bigint>")
    return (
        order.join(placed.select(*_KEY, acks_count), on=_KEY, how="left")
        .join(acked, on=_KEY, how="left")
        .join(merged, on=_KEY, how="left")
        .withColumn(
            "acked_at",
            F.when(F.col("fault").isNull() & F.col("acked_at").isNotNull(), F.col("acked_at")).otherwise(
                nobody
            ),
        )
    )


def _check_stars(acks: DataFrame, sizes: Mapping[bytes, int]) -> None:
    """No commit is acked by so many that their times would not fit a row: counted only where a branch has as many."""
    if max(sizes.values()) <= limits.LARGE_BRANCH_ACKED_BY_COUNT_MAX:
        return
    most = acks.groupBy(*_KEY).agg(F.count("*").alias("by")).orderBy(F.desc("by")).first()
    if most is not None and most["by"] > limits.LARGE_BRANCH_ACKED_BY_COUNT_MAX:
        branch = bytes(most["branch_id"])
        raise LargeBranchRefused(
            f"branch {branch.hex()[:16]} of {sizes[branch]:,} commits: {most['by']:,} of them ack one and the same; "
            f"in a giant at most {limits.LARGE_BRANCH_ACKED_BY_COUNT_MAX:,} may. "
            "Give --giant-from a number over its commits, and one task 0.7 KB of memory for each of them"
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
    ship_by_value(kernel, columns, shapes, waves, wave_jobs, witness, limits, sys.modules[__name__])


def _shuffle_partitions(frame: DataFrame) -> int:
    # Stated as a number, or Spark would merge small partitions into one task, and Python would run on one core.
    return int(frame.sparkSession.conf.get("spark.sql.shuffle.partitions") or 1)


def _linearize_task(
    batches: Iterator[pa.RecordBatch], carried: Sequence[str], with_shapes: bool
) -> Iterator[pa.RecordBatch]:
    # The same few branches, authors and kinds are named again and again: held once, and as numbers until they leave.
    parts = [_shorten(batch, ("branch_id", *carried)) for batch in batches]
    if not parts:
        return
    table = pa.Table.from_batches(parts).unify_dictionaries()
    branches: Any = table["branch_id"].combine_chunks()
    commit_ids = columns.ids(table["commit_id"])
    acks, ack_offsets = columns.id_lists(table["acks"])
    order = kernel.linearize_tangles(
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
    names = ["branch_id", "commit_id", "passed", "rank", "position", "fault"]
    more: dict[str, Any] = _shapes(order, ack_offsets, table["time"].to_numpy()) if with_shapes else {}
    more |= {name: table[name].combine_chunks() for name in carried}
    for start in range(0, len(order.row), _ROWS_PER_BATCH):
        part = slice(start, start + _ROWS_PER_BATCH)
        rows = order.row[part]
        has_fault = order.fault[part] != kernel.NO_FAULT
        arrays = [
            _lengthen(branches.take(pa.array(rows))),
            columns.binary(commit_ids[rows]),
            pa.array(order.passed[part], mask=has_fault),
            pa.array(order.rank[part], mask=has_fault),
            pa.array(order.position[part], mask=has_fault),
            faults.take(pa.array(order.fault[part])),
            *(_lengthen(column.take(pa.array(rows))) for column in more.values()),
        ]
        yield pa.RecordBatch.from_arrays(arrays, [*names, *more])


def _shorten(batch: pa.RecordBatch, names: Sequence[str]) -> pa.RecordBatch:
    for at, name in enumerate(batch.schema.names):
        column: Any = batch.column(at)
        if name in names and (pa.types.is_binary(column.type) or pa.types.is_string(column.type)):
            batch = batch.set_column(at, name, column.dictionary_encode())
    return batch


def _lengthen(column: Any) -> Any:  # noqa: ANN401  # as in `analytics.order.columns`
    return column.dictionary_decode() if pa.types.is_dictionary(column.type) else column


def _shapes(order: kernel.Linearization, ack_offsets: kernel.Ints, times: kernel.Ints) -> dict[str, Any]:
    """The columns of SHAPES_SCHEMA, in the order of the input."""
    is_placed = np.zeros(len(times), np.bool_)
    is_placed[order.row] = order.fault == kernel.NO_FAULT
    found = shapes.find_shapes(order.causes, ack_offsets, times, is_placed)
    offsets: Any = pa.array(found.acked_offsets.astype(np.int32))
    return {
        "acks_count": pa.array(found.acks_count, mask=~is_placed),
        "acked_at": pa.ListArray.from_arrays(offsets, pa.array(found.acked_at)),
        "causes_from": pa.array(found.causes_from, mask=~found.has_causes),
        "causes_until": pa.array(found.causes_until, mask=~found.has_causes),
    }


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
