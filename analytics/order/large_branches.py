"""Orders branches too large for one Spark task; same result as `kernel`.

**Ranks by witness.** Ranks are the one solution of *rank = 1 + the largest rank of the causes* (0 without causes): by
induction along acks on a graph without cycles, and on a cycle nothing solves it. So the ranks that an export states need
not be believed and need not be computed again either: they are put into these equations, all at once and in any order,
and where all hold (and every cause is there), they are the ranks. That is one pass and a small join
(`analytics.order.rank_check`), however deep the branch.

**Ranks by waves.** Where an equation fails (a forged rank, a missing cause, a cycle), the stated ranks serve for nothing,
or for an order at best: the branch is cut into ranges by them or by order of acceptance, whichever has fewer acks that
point forward, and ranked range by range (`analytics.order.range_rank_jobs`).

**Checkpoints** are handed from effects to causes over ranges of ranks, a bit each. **Positions** are places in one sort of
all giants by (branch, checkpoints passed, rank, commit id) that Spark spreads over tasks. The ranges of the first check are
that sort already for a branch whose stated ranks are true and that has no checkpoint: it is shuffled once in all.
"""

import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from analytics.order import kernel
from analytics.order.branch_tasks import LargeBranchRefused
from analytics.order.range_rank_jobs import count_led, find_ranks, make_ranges, pin
from analytics.order.rank_check import RankCheckResult, judge, sort_by_stated_rank
from analytics.reading import limits

_log: Final = logging.getLogger("ravel.analytics")

_NAMED_MAX: Final = 4
"""Giants that an error names."""

_NOT_STATED: Final = -2
"""In place of a stated rank that cannot be one: no equation holds for it."""


@dataclass(frozen=True, slots=True)
class LargeBranchOrder:
    """The order of some giants, and in how many rounds it was found: 0 for what is done at once."""

    order: DataFrame
    """`branch_id`, `commit_id`, `passed`, `rank`, `position` (these three null with a fault), `fault_code`, what is carried.

    Partitions follow one another, and so do rows in them: a branch's places stand in their order."""
    rank_rounds: int
    checkpoint_rounds: int


@dataclass(frozen=True, slots=True)
class _Giants:
    """The commits of all giants, as these are cut and named."""

    range_size: int
    names: str
    carried: tuple[str, ...]

    def columns(self, *needed: str) -> list[str]:
        """These columns, and what is carried besides."""
        return list(dict.fromkeys([*needed, *self.carried]))


def order_giants(
    commits: DataFrame, sizes: Mapping[bytes, int], range_size: int, carried: Sequence[str] = ()
) -> LargeBranchOrder:
    """Order these branches out of `commits` (branch_id, commit_id, acks, sequence, rank, mark); `sizes` count theirs.

    No task gets much more than `range_size` commits. `commits` are read several times: persist them if they cost much.
    `carried` are more columns of them to go with the rows.
    Raises LargeBranchRefused, and ValueError if an id stands twice in a branch.
    """
    named = [f"branch {raw.hex()[:16]} of {size:,} commits" for raw, size in sizes.items()]
    more = f" and {len(named) - _NAMED_MAX} more" if len(named) > _NAMED_MAX else ""
    giants = _Giants(range_size, ", ".join(named[:_NAMED_MAX]) + more, tuple(carried))
    spark = commits.sparkSession
    numbers = spark.createDataFrame(
        [(bytearray(raw), number) for number, raw in enumerate(sizes)], "branch_id binary, tangle int"
    )
    stated = F.when(F.col("rank").between(0, kernel.NO_RANK), F.col("rank")).otherwise(F.lit(_NOT_STATED))
    rows = (
        commits.join(F.broadcast(numbers), on="branch_id", how="inner")
        .withColumn("stated", stated)
        .select(*giants.columns("tangle", "commit_id", "acks", "sequence", "stated", "mark"))
    )
    counts = list(sizes.values())
    ranges = sort_by_stated_rank(rows, counts, range_size)
    verdicts = judge(ranges, rows, counts)
    if [verdicts[number].commits for number in range(len(sizes))] != counts:
        raise ValueError("a commit id stands twice in a tangle")
    settled = [number for number, verdict in verdicts.items() if verdict.holds and not verdict.checkpoints]
    others = {number: verdict for number, verdict in verdicts.items() if number not in settled}
    placed, left_out = _place_settled(ranges.where(F.col("tangle").isin(settled)), giants)
    rank_rounds = checkpoint_rounds = 0
    if others:
        ranked, rank_rounds = _rank(ranges.where(F.col("tangle").isin([*others])), others, giants)
        with_checkpoints = {number for number, verdict in others.items() if verdict.checkpoints}
        passed, checkpoint_rounds = _pass_checkpoints(ranked, with_checkpoints, giants)
        partitions = max(1, -(-sum(counts[number] for number in others) // range_size))
        more_placed, more_left_out = _place(passed, partitions, giants)
        placed, left_out = placed.unionByName(more_placed), left_out.unionByName(more_left_out)
    _log.info("%s: %d rounds for ranks, %d for checkpoints", giants.names, rank_rounds, checkpoint_rounds)
    order = placed.unionByName(left_out).join(F.broadcast(numbers), on="tangle")
    wanted = giants.columns("branch_id", "commit_id", "passed", "rank", "position", "fault_code")
    return LargeBranchOrder(order.select(*wanted), rank_rounds, checkpoint_rounds)


def _rank(
    ranges: DataFrame, verdicts: Mapping[int, RankCheckResult], giants: _Giants
) -> tuple[DataFrame, int]:
    """`tangle`, `commit_id`, `acks`, `mark`, `rank`, `fault` of every commit, and what is carried."""
    wanted = giants.columns("tangle", "commit_id", "acks", "mark", "rank", "fault")
    witnessed = [number for number, verdict in verdicts.items() if verdict.holds]
    ranked = (
        ranges.where(F.col("tangle").isin(witnessed))
        .withColumn("rank", F.col("stated"))
        .withColumn("fault", F.lit(kernel.NO_FAULT).cast("bigint"))
        .select(*wanted)
    )
    others = [number for number, verdict in verdicts.items() if not verdict.holds]
    if not others:
        return ranked, 0
    by_rank = [n for n in others if verdicts[n].forward_by_rank <= verdicts[n].forward_by_sequence]
    hint = F.when(F.col("tangle").isin(by_rank), F.col("stated")).otherwise(F.col("sequence"))
    hinted = ranges.where(F.col("tangle").isin(others)).withColumn("hint", hint)
    waves = make_ranges(hinted, giants.range_size, giants.names)
    found, rounds = find_ranks(waves)
    waved = waves.numbered.join(found, on="num", how="inner")
    return ranked.unionByName(waved.select(*wanted)), rounds


def _pass_checkpoints(
    ranked: DataFrame, with_checkpoints: Collection[int], giants: _Giants
) -> tuple[DataFrame, int]:
    """What `_rank` gives, without acks and with the number of checkpoints `passed`, of every commit."""
    wanted = giants.columns("tangle", "commit_id", "mark", "rank", "fault", "passed")
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


def _place(ranked: DataFrame, partitions: int, giants: _Giants) -> tuple[DataFrame, DataFrame]:
    """Sort what has a place, and number it. Gives `tangle`, `commit_id`, `passed`, `rank`, `position`, `fault_code`, what is
    carried; and the same of what a fault leaves no place, in which three are null."""
    by = ("tangle", "passed", "rank", "commit_id")
    is_placed = (F.col("fault") == kernel.NO_FAULT) & (F.col("mark") != kernel.MARKED_VOID)
    wanted = giants.columns("tangle", "commit_id", "passed", "rank")
    # Pinned, since Spark would draw other boundaries when it sorts again.
    in_order = pin(
        ranked.where(is_placed).select(*wanted).repartitionByRange(partitions, *by).sortWithinPartitions(*by)
    )
    code = F.when(F.col("fault") == kernel.NO_FAULT, kernel.VOID).otherwise(F.col("fault"))
    return _number(in_order, giants), _leave_out(ranked.where(~is_placed), code, giants)


def _place_settled(ranges: DataFrame, giants: _Giants) -> tuple[DataFrame, DataFrame]:
    """As `_place`, of tangles whose stated ranks are true and which have no checkpoints: they stand in order already."""
    ranked = ranges.withColumn("rank", F.col("stated")).withColumn("passed", F.lit(0).cast("bigint"))
    is_void = F.col("mark") == kernel.MARKED_VOID
    in_order = ranked.where(~is_void).select(*giants.columns("tangle", "commit_id", "passed", "rank"))
    return _number(in_order, giants), _leave_out(ranked.where(is_void), F.lit(kernel.VOID), giants)


def _number(in_order: DataFrame, giants: _Giants) -> DataFrame:
    """Give rows their positions. They stand in order in pinned partitions that follow one another.

    So a commit's number is its place and its partition's start.
    """
    numbered = in_order.withColumn("num", F.monotonically_increasing_id()).withColumn(
        "part", F.spark_partition_id()
    )
    runs = numbered.groupBy("part", "tangle").agg(F.min("num").alias("first"), F.count("*").alias("count"))
    shifts = []
    counted: dict[int, int] = {}
    for row in runs.orderBy("part", "tangle").collect():
        before = counted.get(row["tangle"], 0)
        shifts.append((row["part"], row["tangle"], before - row["first"]))
        counted[row["tangle"]] = before + row["count"]
    shift = in_order.sparkSession.createDataFrame(shifts, "part int, tangle int, shift bigint")
    return (
        numbered.join(F.broadcast(shift), on=["part", "tangle"], how="inner")
        .withColumn("position", F.col("num") + F.col("shift"))
        .withColumn("fault_code", F.lit(kernel.NO_FAULT).cast("tinyint"))
        .select(*giants.columns("tangle", "commit_id", "passed", "rank", "position", "fault_code"))
    )


def _leave_out(rows: DataFrame, code: Column, giants: _Giants) -> DataFrame:
    nothing = {name: F.lit(None).cast("bigint") for name in ("passed", "rank", "position")}
    return rows.withColumns({**nothing, "fault_code": code.cast("tinyint")}).select(
        *giants.columns("tangle", "commit_id", "passed", "rank", "position", "fault_code")
    )
