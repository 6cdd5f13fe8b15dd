"""Spark job that computes checkpoints passed, rank and position of every commit, from parent links alone.

Many branches are packed into each task: rows are spread by a hash of the branch, and every task orders all its branches
in one call of `analytics.order.kernel`. (One call per branch, as `applyInArrow` makes, costs a hundred times as much when
branches are small and many.) Ranks that an export states are taken where they solve the equations of ranks. A branch that
would not fit a task's memory, about 0.7 KB a commit, is a giant, and ordered by many (`analytics.order.large_branches`).
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
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.utils import is_remote

from analytics.order import (
    branch_tasks,
    columns,
    kept_rows,
    kernel,
    order_files,
    range_order,
    range_shapes,
    shapes,
)
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
from analytics.order.large_branches import SHAPES, SHAPES_SCHEMA, RangeFiles, order_giants
from analytics.order.packing import Packing, pack
from analytics.reading import limits
from analytics.reading.export_reader import local_rows
from analytics.reading.shipping import ship_by_value

LINEARIZATION_SCHEMA: Final = (
    "branch_id binary, commit_id binary, passed bigint, rank bigint, position bigint, fault string"
)
LINEARIZATION_COLUMNS: Final = tuple(column.split()[0] for column in LINEARIZATION_SCHEMA.split(", "))
DIGEST_SCHEMA: Final = "branch_id binary, commits bigint, digest string"


@dataclass(frozen=True, slots=True)
class OrderedBranches:
    """The order of every branch, and which of them many tasks ordered."""

    order: DataFrame
    giants: Mapping[bytes, tuple[Path, ...]]  # branch -> files as `LargeBranchOrder` has them
    files: tuple[Path, ...] = ()
    """The order of all other branches, if tasks wrote it."""
    ranges: tuple[RangeFiles, ...] = ()
    """The order of the giants, likewise, with their numbers in the order of `giants`."""


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
    TIMES. Raises LargeBranchRefused.
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
        [
            "branch_id",
            "commit_id",
            "acks",
            "sequence",
            "rank",
            *(shapes.TIMES if with_shapes else []),
            *carried,
        ]
    )
    rows = commits.select(*read, _mark().alias("mark"))
    at_once = _tasks_at_once(commits)
    if commits_max is not None and commits_max < min(threshold, limits.TASK_COMMITS):
        small = _linearize_small(rows, Packing({}, 0, at_once), carried, with_shapes, with_digests, folder)
        return OrderedBranches(small.frame, {}, small.files)
    is_large = F.col("size") >= min(threshold, limits.PACKED_FROM)
    found = (
        rows.groupBy("branch_id")
        .agg(F.count("*").alias("size"))
        .agg(
            F.sum(F.when(~is_large, F.col("size"))).alias("rest"),
            F.sort_array(F.collect_list(F.when(is_large, F.struct("branch_id", "size")))).alias("large"),
        )
        .collect()[0]
    )
    sizes = {bytes(row["branch_id"]): int(row["size"]) for row in found["large"]}
    giants = {raw: size for raw, size in sizes.items() if size >= threshold}
    if giants and is_remote():
        raise LargeBranchRefused(
            f"branch {next(iter(giants)).hex()[:16]} has {max(giants.values()):,} commits, and by Spark Connect branches "
            f"have less than {threshold:,}. Use a session of the cluster itself, or a larger giant_from and 0.7 KB of a "
            "task's memory for each commit"
        )
    others = {raw: size for raw, size in sizes.items() if raw not in giants}
    packing = pack(others, found["rest"] or 0, at_once, limits.TASK_COMMITS)
    if not giants:
        small = _linearize_small(rows, packing, carried, with_shapes, with_digests, folder)
        return OrderedBranches(small.frame, {}, small.files)
    is_large = F.col("branch_id").isin([F.lit(raw) for raw in giants])
    range_size = max(1, threshold // 2)
    ordered = order_giants(rows, giants, range_size, carried, folder, with_shapes=with_shapes)
    fault = F.create_map(*[F.lit(part) for pair in FAULTS.items() for part in pair])[F.col("fault_code")]
    added = SHAPES if with_shapes else ()
    large = ordered.order.withColumn("fault", fault).select(*LINEARIZATION_COLUMNS, *added, *carried)
    if with_digests:
        large = large.withColumn("digest", F.lit(None).cast("string"))
    small = _linearize_small(rows.where(~is_large), packing, carried, with_shapes, with_digests, folder)
    return OrderedBranches(small.frame.unionByName(large), ordered.files, small.files, ordered.ranges)


def keep_order(
    spark: SparkSession, ordered: OrderedBranches, folder: Path, names: Sequence[Path]
) -> KeptRows | None:
    """Have tasks write the table `linearization` into a new folder there. Raises OSError, errors of Spark.

    They take them from the files of the tasks that ordered, by columns: Spark would take each row apart and put it together
    again, which costs as much as the order. `names` are the files of `branch_names`. Return None where no task wrote any.
    """
    named: list[tuple[int, str, int]] = [
        (number, str(file), at)
        for number, (file, at) in enumerate(
            [(file, -1) for file in ordered.files]
            + [(file, at) for at, ranges in enumerate(ordered.ranges) for file in ranges.files]
        )
    ]
    if not named:
        return None
    files = local_rows(spark, "number int, file string, ranges int", named)
    starts = tuple(ranges.starts for ranges in ordered.ranges)
    task = partial(
        order_files.read_orders, starts=starts, branch_ids=tuple(ordered.giants), names=[*map(str, names)]
    )
    spread = files.repartitionById(len(named), "number")
    return keep_rows(spread, task, order_files.ORDER_SCHEMA, folder)


def _linearize_small(
    rows: DataFrame,
    packing: Packing,
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
    spread = _spread(rows.select(*needed), packing)
    if folder is None:
        return KeptRows(spread.mapInArrow(task, ", ".join(schema)))  # computed when Spark comes to it
    return keep_rows(spread, task, ", ".join(schema), folder)


def _spread(rows: DataFrame, packing: Packing) -> DataFrame:
    """Put each branch into its task."""
    if packing.tasks == 1:
        return rows.coalesce(1)  # one partition that is there already is not shuffled
    if not packing.large:
        return rows.repartition(packing.tasks, "branch_id")
    tasks = local_rows(rows.sparkSession, "branch_id binary, task int", [*packing.large.items()])
    of_small = F.lit(0)
    if packing.tasks > packing.first_small:
        count = F.lit(packing.tasks - packing.first_small)
        of_small = F.lit(packing.first_small) + F.pmod(F.xxhash64("branch_id"), count).cast("int")
    placed = rows.join(F.broadcast(tasks), on="branch_id", how="left")
    return placed.repartitionById(packing.tasks, F.coalesce("task", of_small)).drop("task")


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


def with_digests_of_giants(placed: DataFrame, ordered: OrderedBranches) -> DataFrame:
    """Add the `digest` of each branch that many tasks ordered, at its last place. Raises OSError, pyarrow's errors.

    A digest is one hash over all ids in order: the driver reads them from files that tasks wrote, a batch at a time, 32
    bytes a commit; or where there are none, a task for each branch gets them sorted.
    """
    if any(ordered.giants.values()):
        found = [(one.branch_id, one.commits - 1, one.digest) for one in digest_giants(ordered)]
    else:
        is_giant = F.col("branch_id").isin([F.lit(raw) for raw in ordered.giants])
        rows = digest_orders(placed.where(is_giant)).collect()
        found = [(bytes(row["branch_id"]), row["commits"] - 1, row["digest"]) for row in rows]
    ends = local_rows(placed.sparkSession, "branch_id binary, position bigint, found string", found)
    return (
        placed.join(F.broadcast(ends), on=["branch_id", "position"], how="left")
        .withColumn("digest", F.coalesce("digest", "found"))
        .drop("found")
    )


def digest_giants(ordered: OrderedBranches) -> list[BranchDigest]:
    """Return the digests of branches that many tasks ordered, from the files that these wrote. Raises OSError, pyarrow's
    errors."""
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
        order_files,
        range_order,
        range_shapes,
        waves,
        wave_jobs,
        witness,
        limits,
        sys.modules[__name__],
    )


def _tasks_at_once(frame: DataFrame) -> int:
    """Return how many tasks run at once, as far as that is known; one in a session for few rows."""
    partitions = _shuffle_partitions(frame)
    if partitions == 1 or is_remote():
        return partitions
    return max(1, frame.sparkSession.sparkContext.defaultParallelism)


def _shuffle_partitions(frame: DataFrame) -> int:
    # Stated as a number, or Spark would merge small partitions into one task, and Python would run on one core.
    return int(frame.sparkSession.conf.get("spark.sql.shuffle.partitions") or 1)
