"""Orders branches too large for one Spark task; same result as `kernel`.

**Ranks by witness.** Ranks are the one solution of *rank = 1 + the largest rank of the causes* (0 without causes): by
induction along acks on a graph without cycles, and on a cycle nothing solves it. So the ranks that an export states need
not be believed and need not be computed again either: they are put into these equations, all at once and in any order,
and where all hold (and every cause is there), they are the ranks. That is one pass and a small join
(`analytics.order.rank_check`), however deep the branch.

**Ranks by waves.** Where an equation fails (a forged rank, a missing cause, a cycle), the stated ranks serve for nothing,
or for an order at best: the branch is cut into ranges by them or by order of acceptance, whichever has fewer acks that
point forward, and ranked range by range (`analytics.order.range_rank_jobs`).

**Checkpoints** are handed from effects to causes over ranges of ranks, a bit each. **Positions** are places in ranges by
(branch, checkpoints passed, rank, commit id), of which a task sorts one (`analytics.order.range_order`). The ranges of the
first check are these already for a branch whose stated ranks are true and that has no checkpoint: it is shuffled once in
all, and goes to Python once.
"""

import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from analytics.order import kernel
from analytics.order.branch_tasks import LargeBranchRefused
from analytics.order.kept_rows import KeptRows, keep_rows
from analytics.order.range_order import PLACED_SCHEMA, place_range
from analytics.order.range_rank_jobs import count_led, find_ranks, make_ranges
from analytics.order.range_shapes import OUTSIDE_SCHEMA, add_outside
from analytics.order.rank_check import CHECKED_SCHEMA, RankCheckResult, judge
from analytics.order.shapes import TIMES
from analytics.reading import limits
from analytics.reading.export_reader import local_rows

_log: Final = logging.getLogger("ravel.analytics")

SHAPES_SCHEMA: Final = (
    "acks_count bigint, acked_count bigint, acked_from bigint, causes_from bigint, causes_until bigint"
)
"""Shape of a commit with a place: how many commits it acks; how many ack it, and where the first of these is shown in time;
and of merges, from when until when what they ack was written, null if nothing of it has a place."""
SHAPES: Final = tuple(column.split()[0] for column in SHAPES_SCHEMA.split(", "))
_NAMED_MAX: Final = 4
"""Giants that an error names."""

_SAMPLED_PER_RANGE: Final = 300
"""Keys of which the bounds of ranges are chosen: few ranges then have a fifth more than others."""

_NOT_STATED: Final = -2
"""In place of a stated rank that cannot be one: no equation holds for it."""


@dataclass(frozen=True, slots=True)
class RangeFiles:
    """Files of ranges, and (tangle, part, start): commits of the tangle with a place before those in this part of it.

    What else is in the files is of no order.
    """

    files: tuple[Path, ...]
    starts: tuple[tuple[int, int, int], ...]


@dataclass(frozen=True, slots=True)
class LargeBranchOrder:
    """The order of some giants, and in how many rounds it was found: 0 for what is done at once."""

    order: DataFrame
    """`branch_id`, `commit_id`, `passed`, `rank`, `position`, `fault_code`, what is carried. With a fault the three before
    it are null."""
    rank_rounds: int
    checkpoint_rounds: int
    files: Mapping[bytes, tuple[Path, ...]]
    """The files that have a branch's commits, with `tangle`, `commit_id` and `place`. They follow one another, and so do
    rows in them. None where no folder was given."""
    ranges: tuple[RangeFiles, ...]
    """All of these files, each once."""


@dataclass(frozen=True, slots=True)
class _Giants:
    """The commits of all giants, as these are cut and named."""

    range_size: int
    names: str
    carried: tuple[str, ...]
    folder: Path | None
    with_shapes: bool

    def columns(self, *needed: str) -> list[str]:
        """Return these columns and the carried ones."""
        return list(dict.fromkeys([*needed, *self.carried, *(TIMES if self.with_shapes else [])]))

    def placed(self, *needed: str) -> list[str]:
        """Return the columns of placed commits, with their shapes where these are asked for."""
        return [*self.columns(*needed), *(SHAPES if self.with_shapes else [])]


def order_giants(
    commits: DataFrame,
    sizes: Mapping[bytes, int],
    range_size: int,
    carried: Sequence[str] = (),
    folder: Path | None = None,
    *,
    with_shapes: bool = False,
) -> LargeBranchOrder:
    """Order these branches out of `commits` (branch_id, commit_id, acks, sequence, rank, mark); `sizes` count theirs.

    An id stands once in a branch. No task gets much more than `range_size` commits. `commits` are read several times:
    persist them if they cost much. `carried` are more columns of them to go with the rows. In a `folder` that the driver and
    all executors see, tasks keep their rows as files. `with_shapes` adds SHAPES. Raises LargeBranchRefused, OSError.
    """
    named = [f"branch {raw.hex()[:16]} of {size:,} commits" for raw, size in sizes.items()]
    more = f" and {len(named) - _NAMED_MAX} more" if len(named) > _NAMED_MAX else ""
    giants = _Giants(range_size, ", ".join(named[:_NAMED_MAX]) + more, tuple(carried), folder, with_shapes)
    numbers = local_rows(
        commits.sparkSession,
        "branch_id binary, tangle int",
        [(raw, number) for number, raw in enumerate(sizes)],
    )
    stated = F.when(F.col("rank").between(0, kernel.NO_RANK), F.col("rank")).otherwise(F.lit(_NOT_STATED))
    rows = (
        commits.join(F.broadcast(numbers), on="branch_id", how="inner")
        .withColumn("rank", stated)
        .select(*giants.columns("tangle", "commit_id", "acks", "sequence", "rank", "mark"))
    )
    first = _place(rows, sum(sizes.values()), giants, has_checks=True)
    verdicts, counts = judge(first.frame)
    settled = {number for number, verdict in verdicts.items() if verdict.holds and not verdict.checkpoints}
    starts = _find_starts(counts, settled)
    order = _number(_with_shapes(first.frame, settled, giants), starts, giants)
    ranges = [RangeFiles(first.files, starts)]
    files = dict.fromkeys(settled, first.files)
    rank_rounds = checkpoint_rounds = 0
    if others := {number: verdict for number, verdict in verdicts.items() if number not in settled}:
        ranked, rank_rounds = _rank(rows.where(F.col("tangle").isin([*others])), others, giants)
        with_checkpoints = {number for number, verdict in others.items() if verdict.checkpoints}
        passed, checkpoint_rounds = _pass_checkpoints(ranked, with_checkpoints, giants)
        second = _place(passed, sum(sizes.values()), giants, has_checks=False)
        starts = _find_starts(_count(second.frame), others.keys())
        order = order.unionByName(_number(_with_shapes(second.frame, others.keys(), giants), starts, giants))
        ranges.append(RangeFiles(second.files, starts))
        files |= dict.fromkeys(others, second.files)
    _log.info("%s: %d rounds for ranks, %d for checkpoints", giants.names, rank_rounds, checkpoint_rounds)
    wanted = giants.placed("branch_id", "commit_id", "passed", "rank", "position", "fault_code")
    return LargeBranchOrder(
        order.join(F.broadcast(numbers), on="tangle").select(*wanted),
        rank_rounds,
        checkpoint_rounds,
        {raw: files[number] for number, raw in enumerate(sizes)},
        tuple(ranges),
    )


def _rank(rows: DataFrame, verdicts: Mapping[int, RankCheckResult], giants: _Giants) -> tuple[DataFrame, int]:
    """`tangle`, `commit_id`, `acks`, `mark`, `rank`, `fault` of every commit, and what is carried."""
    wanted = giants.columns("tangle", "commit_id", "acks", "mark", "rank", "fault")
    witnessed = [number for number, verdict in verdicts.items() if verdict.holds]
    ranked = (
        rows.where(F.col("tangle").isin(witnessed))
        .withColumn("fault", F.lit(kernel.NO_FAULT).cast("bigint"))
        .select(*wanted)
    )
    others = [number for number, verdict in verdicts.items() if not verdict.holds]
    if not others:
        return ranked, 0
    by_rank = [n for n in others if verdicts[n].forward_by_rank <= verdicts[n].forward_by_sequence]
    hint = F.when(F.col("tangle").isin(by_rank), F.col("rank")).otherwise(F.col("sequence"))
    hinted = rows.where(F.col("tangle").isin(others)).withColumn("hint", hint).drop("rank")
    waves = make_ranges(hinted, giants.range_size, giants.names)
    found, rounds = find_ranks(waves)
    waved = waves.numbered.join(found, on="num", how="inner")
    return ranked.unionByName(waved.select(*wanted)), rounds


def _pass_checkpoints(
    ranked: DataFrame, with_checkpoints: Collection[int], giants: _Giants
) -> tuple[DataFrame, int]:
    """`tangle`, `commit_id`, `passed` (checkpoints), `rank`, `fault_code` of every commit, and what is carried."""
    is_void = (F.col("fault") == kernel.NO_FAULT) & (F.col("mark") == kernel.MARKED_VOID)
    fault = F.when(is_void, kernel.VOID).otherwise(F.col("fault")).cast("tinyint").alias("fault_code")
    names = giants.columns("tangle", "commit_id", "passed", "rank", *(["acks"] if giants.with_shapes else []))
    wanted = [*map(F.col, names), fault]
    has_checkpoints = F.col("tangle").isin(list(with_checkpoints))
    without = ranked.where(~has_checkpoints | (F.col("fault") != kernel.NO_FAULT))
    plain = without.withColumn("passed", F.lit(0).cast("bigint")).select(*wanted)
    if not with_checkpoints:
        return plain, 0
    is_checkpoint = F.col("mark") == kernel.MARKED_CHECKPOINT
    concerned = ranked.where(has_checkpoints & (F.col("fault") == kernel.NO_FAULT)).select(
        "*", F.col("rank").alias("hint"), is_checkpoint.alias("is_checkpoint")
    )
    totals = (
        concerned.where("is_checkpoint")
        .groupBy("tangle")
        .agg(F.count("*").alias("checkpoints"), F.count_distinct(F.sort_array("acks")).alias("total"))
    )
    most = totals.agg(F.max("checkpoints")).collect()[0][0] or 0
    if most > limits.LARGE_BRANCH_CHECKPOINT_COUNT_MAX:
        raise LargeBranchRefused(
            f"{giants.names}: one has {most} checkpoints; a giant may have {limits.LARGE_BRANCH_CHECKPOINT_COUNT_MAX}. "
            "Give --giant-from a number over its commits, and one task 0.7 KB of memory for each of them"
        )
    waves = make_ranges(concerned, giants.range_size, giants.names)
    led, rounds = count_led(waves)
    passed = (
        waves.numbered.join(led, on="num", how="inner")
        .join(F.broadcast(totals), on="tangle", how="left")
        .withColumn("passed", F.coalesce("total", F.lit(0)) - F.col("led"))
    )
    return plain.unionByName(passed.select(*wanted)), rounds


def _place(rows: DataFrame, count: int, giants: _Giants, *, has_checks: bool) -> KeptRows:
    """Cut rows into ranges, and have tasks sort them, and put stated ranks into their equations `has_checks`."""
    at_once = rows.sparkSession.sparkContext.defaultParallelism
    # A multiple of what runs in one go, as one task more than that would leave the other cores without any.
    partitions = at_once * max(1, -(-count // (at_once * giants.range_size)))
    carried = tuple(giants.columns(*(["sequence"] if has_checks else [])))
    schema = [PLACED_SCHEMA, *(f"{name} {rows.schema[name].dataType.simpleString()}" for name in carried)]
    schema += [SHAPES_SCHEMA] if giants.with_shapes else []
    schema += [f"checked struct<{CHECKED_SCHEMA}>"] if has_checks else []
    schema += [f"outside struct<{OUTSIDE_SCHEMA}>"] if giants.with_shapes else []
    by = [name for name in ("tangle", "passed", "rank", "commit_id") if name in rows.columns]
    task = partial(place_range, carried=carried, has_checks=has_checks, with_shapes=giants.with_shapes)
    bounds = _find_bounds(rows.select(*by), partitions, count)
    placed = rows.repartitionById(partitions, range_of(by, bounds))
    return keep_rows(placed, task, ", ".join(schema), giants.folder)


def _find_bounds(keys: DataFrame, ranges: int, count: int) -> Sequence[Sequence[object]]:
    """Return the first key of each range but the first, by a sample of keys. Spark would read whole rows for it."""
    share = min(1.0, _SAMPLED_PER_RANGE * ranges / max(count, 1))
    sample = sorted(map(tuple, keys.sample(fraction=share, seed=1).collect()))
    return [sample[len(sample) * number // ranges] for number in range(1, ranges)] if sample else []


def range_of(names: Sequence[str], bounds: Sequence[Sequence[object]], first: int = 0) -> Column:
    """Return the range of a row, counted from `first`: that of the last bound which is not above its key."""
    if not bounds:
        return F.lit(first)
    at = len(bounds) // 2
    is_above = F.col(names[-1]) >= F.lit(bounds[at][-1])
    for name, cell in zip(names[-2::-1], bounds[at][-2::-1], strict=True):
        is_above = (F.col(name) > F.lit(cell)) | ((F.col(name) == F.lit(cell)) & is_above)
    above = range_of(names, bounds[at + 1 :], first + at + 1)
    return F.when(is_above, above).otherwise(range_of(names, bounds[:at], first))


def _count(placed: DataFrame) -> list[tuple[int, int, int]]:
    """Return how many commits have a place in which part: (tangle, part, count)."""
    rows = placed.where(F.col("tangle").isNotNull()).groupBy("tangle", "part").agg(F.count("place")).collect()
    return [tuple(row) for row in rows]


def _with_shapes(ranges: DataFrame, tangles: Collection[int], giants: _Giants) -> DataFrame:
    """Return the rows of some tangles in the answer of `place_range`, with the shapes that reach beyond one range."""
    placed = ranges.where(F.col("tangle").isin([*tangles]))  # null of what ranges say beside commits
    if not giants.with_shapes or not tangles:
        return placed
    outside = ranges.where(F.col("outside.tangle").isin([*tangles])).select("outside.*")
    return add_outside(placed, outside)


def _find_starts(
    counts: Sequence[tuple[int, int, int]], tangles: Collection[int]
) -> tuple[tuple[int, int, int], ...]:
    """Return the starts of RangeFiles from counts of commits with a place: parts of a tangle follow one another."""
    before: dict[int, int] = {}
    starts = []
    for tangle, part, count in sorted(counts):
        if tangle in tangles:
            starts.append((tangle, part, before.get(tangle, 0)))
            before[tangle] = before.get(tangle, 0) + count
    return tuple(starts)


def _number(placed: DataFrame, starts: Sequence[tuple[int, int, int]], giants: _Giants) -> DataFrame:
    """Give rows of `place_range` their positions: a place counts in its part."""
    start = local_rows(placed.sparkSession, "tangle int, part int, start bigint", starts)
    nothing = F.lit(None).cast("bigint")
    is_placed = F.col("fault_code") == kernel.NO_FAULT
    return (
        placed.join(F.broadcast(start), on=["tangle", "part"], how="inner")
        .withColumns({name: F.when(is_placed, F.col(name)).otherwise(nothing) for name in ("passed", "rank")})
        .withColumn("position", F.col("place") + F.col("start"))
        .select(*giants.placed("tangle", "commit_id", "passed", "rank", "position", "fault_code"))
    )
