"""Spark job that computes checkpoints passed, rank and position of every commit, from parent links alone.

Many branches are packed into each task: rows are spread by a hash of the branch, and every task orders all its branches
in one call of `analytics.order.kernel`. (One call per branch, as `applyInArrow` makes, costs a hundred times as much when
branches are small and many.) The rank that an export states is no input there. A branch that would not fit a task's
memory, about 0.7 KB a commit, is a giant, and ordered by many (`analytics.order.large_branches`).
What tasks do is in `analytics.order.branch_tasks`.
"""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.utils import is_remote

from analytics.order import branch_tasks, columns, kept_rows, kernel, range_order, shapes
from analytics.order import range_rank_jobs as wave_jobs
from analytics.order import range_ranks as waves
from analytics.order import rank_check as witness
from analytics.order.branch_tasks import (
    FAULTS,
    BranchDigest,
    LargeBranchRefused,
    OrderDigester,
    digest_batches,
    linearize_batches,
)
from analytics.order.kept_rows import KeptRows, keep_rows
from analytics.order.large_branches import order_giants
from analytics.reading import limits
from analytics.reading.shipping import ship_by_value

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


@dataclass(frozen=True, slots=True)
class OrderedBranches:
    """The order of every branch, and which of them many tasks ordered."""

    order: DataFrame
    giants: Mapping[bytes, tuple[Path, ...]]  # branch -> files as `LargeBranchOrder` has them
    files: tuple[Path, ...] = ()
    """All of the order, if tasks wrote it and there is no giant."""


def linearize(
    commits: DataFrame,
    giant_from: int | None = None,
    *,
    carried: Sequence[str] = (),
    with_shapes: bool = False,
) -> DataFrame:
    """Return the order of every branch, with null rank and position and a `fault` for what has no place in it.

    Branches of `giant_from` commits and more are giants; by default `limits.LARGE_BRANCH_FROM`. Branches are counted and
    giants ordered at once, the rest when Spark comes to it. `carried` are more columns of `commits` to go with the rows,
    which saves anyone who needs them a join. `with_shapes` adds the columns of SHAPES_SCHEMA, which need the commits'
    `time`. Raises LargeBranchRefused.
    """
    return order_branches(commits, giant_from, carried=carried, with_shapes=with_shapes).order


def order_branches(
    commits: DataFrame,
    giant_from: int | None = None,
    *,
    carried: Sequence[str] = (),
    with_shapes: bool = False,
    with_digests: bool = False,
    commits_max: int | None = None,
    folder: Path | None = None,
) -> OrderedBranches:
    """Order every branch like `linearize`, with digests and shapes on request.

    `with_digests` adds `digest` after the shapes: at the last place of each branch that one task ordered, null elsewhere.
    `commits_max` is how many commits there are at most, if that is known: too few for a giant need not be counted. In a
    `folder` that the driver and all executors see, tasks write all that they order, at once. Raises OSError then, too.
    """
    _ship_code()
    threshold = giant_from or limits.LARGE_BRANCH_FROM
    read = dict.fromkeys(
        ["branch_id", "commit_id", "acks", "sequence", "rank", *(["time"] if with_shapes else []), *carried]
    )
    rows = commits.select(*read, _mark().alias("mark"))
    at_once = _shuffle_partitions(commits)
    if commits_max is not None and commits_max < min(threshold, limits.TASK_COMMITS):
        small = _linearize_small(rows, at_once, carried, with_shapes, with_digests, folder)
        return OrderedBranches(small.frame, {}, small.files)
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
    if giants and is_remote():
        raise LargeBranchRefused(
            f"branch {next(iter(giants)).hex()[:16]} has {max(giants.values()):,} commits, and by Spark Connect branches "
            f"have less than {threshold:,}. Use a session of the cluster itself, or a larger giant_from and 0.7 KB of a "
            "task's memory for each commit"
        )
    rest = found["rest"] or 0
    # A multiple of what runs in one go: one task more than that would leave the other cores without any.
    partitions = at_once * max(1, -(-rest // (at_once * limits.TASK_COMMITS)))
    if not giants:
        small = _linearize_small(rows, partitions, carried, with_shapes, with_digests, folder)
        return OrderedBranches(small.frame, {}, small.files)
    is_large = F.col("branch_id").isin([F.lit(raw) for raw in giants])
    range_size = max(1, threshold // 2)
    ordered = order_giants(rows, giants, range_size, carried, folder)
    fault = F.create_map(*[F.lit(part) for pair in FAULTS.items() for part in pair])[F.col("fault_code")]
    places = ordered.order.withColumn("fault", fault).select(*LINEARIZATION_COLUMNS, *carried)
    large = _add_shapes(places, rows.where(is_large), giants) if with_shapes else places
    if with_digests:
        large = large.withColumn("digest", F.lit(None).cast("string"))
    small = _linearize_small(rows.where(~is_large), partitions, carried, with_shapes, with_digests, folder)
    return OrderedBranches(small.frame.unionByName(large), ordered.files)


def _linearize_small(
    rows: DataFrame,
    partitions: int,
    carried: Sequence[str],
    with_shapes: bool,
    with_digests: bool,
    folder: Path | None,
) -> KeptRows:
    schema = [LINEARIZATION_SCHEMA, *([SHAPES_SCHEMA] if with_shapes else [])]
    schema += ["digest string"] if with_digests else []
    schema += [f"{name} {rows.schema[name].dataType.simpleString()}" for name in carried]
    task = partial(
        linearize_batches, carried=tuple(carried), with_shapes=with_shapes, with_digests=with_digests
    )
    needed = [name for name in rows.columns if name != "rank"]
    needed_rows = rows.select(*needed)
    # One partition that is there already is not shuffled.
    spread = needed_rows.coalesce(1) if partitions == 1 else needed_rows.repartition(partitions, "branch_id")
    if folder is None:
        return KeptRows(spread.mapInArrow(task, ", ".join(schema)))  # computed when Spark comes to it
    return keep_rows(spread, task, ", ".join(schema), folder)


def _add_shapes(order: DataFrame, rows: DataFrame, sizes: Mapping[bytes, int]) -> DataFrame:
    """Return what `analytics.order.shapes` finds in a task, of branches too large for one: what has a place acks nothing
    elsewhere.

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
    """Raise if the times of all acks of one commit would not fit a row. Counted only where a branch is that large."""
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
        .mapInArrow(digest_batches, DIGEST_SCHEMA)
    )


def digest_giants(ordered: OrderedBranches) -> list[BranchDigest]:
    """Return the digests of branches that many tasks ordered, from the files that these wrote. Raises OSError, pyarrow's
    errors.

    A digest is one hash over all ids in order: the driver reads them, a batch at a time, 32 bytes a commit.
    """
    digester = OrderDigester()
    found: list[BranchDigest] = []
    names = [*ordered.giants]
    for files in dict.fromkeys(ordered.giants.values()):
        numbers = pa.array(
            [number for number, name in enumerate(names) if ordered.giants[name] == files], pa.int32()
        )
        for file in files:
            for batch in pq.ParquetFile(file).iter_batches(columns=["tangle", "commit_id", "place"]):
                is_there = pc.and_(pc.is_in(batch["tangle"], numbers), pc.is_valid(batch["place"]))
                rows = batch.filter(is_there)
                tangle, commit_ids = (
                    rows["tangle"].to_numpy(),
                    columns.ids(pa.chunked_array([rows["commit_id"]])),
                )
                ends = np.flatnonzero(np.diff(tangle, append=-1))
                for start, end in zip((0, *(ends[:-1] + 1)), ends + 1, strict=False):
                    found += digester.add(names[tangle[start]], commit_ids[start:end].tobytes())
        found += digester.finish()
    return found


def _mark() -> Column:
    mark = F.when(F.col("is_void"), kernel.MARKED_VOID)
    mark = mark.when(F.col("body_kind") == "checkpoint", kernel.MARKED_CHECKPOINT)
    return mark.otherwise(kernel.UNMARKED).cast("tinyint")


def _ship_code() -> None:
    """Send these functions to the workers with each task, so that a cluster needs no copy of Ravel."""
    ship_by_value(
        kernel,
        columns,
        shapes,
        branch_tasks,
        kept_rows,
        range_order,
        waves,
        wave_jobs,
        witness,
        limits,
        sys.modules[__name__],
    )


def _shuffle_partitions(frame: DataFrame) -> int:
    # Stated as a number, or Spark would merge small partitions into one task, and Python would run on one core.
    return int(frame.sparkSession.conf.get("spark.sql.shuffle.partitions") or 1)
