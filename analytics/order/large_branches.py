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
all giants by (branch, checkpoints passed, rank, commit id) that Spark spreads over tasks.
"""

import logging
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from analytics.order import kernel
from analytics.order.branch_tasks import LargeBranchRefused
from analytics.order.range_rank_jobs import count_led, find_ranks, make_ranges, pin
from analytics.order.rank_check import RankCheckResult, judge
from analytics.reading import limits

_log: Final = logging.getLogger("ravel.analytics")

_NAMED_MAX: Final = 4
"""Giants that an error names."""

_NOT_STATED: Final = -2
"""In place of a stated rank that cannot be one: no equation holds for it."""


@dataclass(frozen=True, slots=True)
class LargeBranchOrder:
    """The order of some giants, and in how many rounds it was found: 0 for what is done at once."""

    order: (
        DataFrame  # branch_id, commit_id, passed, rank, position (these three null with a fault), fault_code
    )
    rank_rounds: int
    checkpoint_rounds: int


def order_giants(commits: DataFrame, sizes: Mapping[bytes, int], range_size: int) -> LargeBranchOrder:
    """Order these branches out of `commits` (branch_id, commit_id, acks, sequence, rank, mark); `sizes` count theirs.

    No task gets much more than `range_size` commits. `commits` are read several times: persist them if they cost much.
    Raises LargeBranchRefused, and ValueError if an id stands twice in a branch.
    """
    named = [f"branch {raw.hex()[:16]} of {size:,} commits" for raw, size in sizes.items()]
    more = f" and {len(named) - _NAMED_MAX} more" if len(named) > _NAMED_MAX else ""
    names = ", ".join(named[:_NAMED_MAX]) + more
    spark = commits.sparkSession
    numbers = spark.createDataFrame(
        [(bytearray(raw), number) for number, raw in enumerate(sizes)], "branch_id binary, tangle int"
    )
    stated = F.when(F.col("rank").between(0, kernel.NO_RANK), F.col("rank")).otherwise(F.lit(_NOT_STATED))
    rows = commits.join(F.broadcast(numbers), on="branch_id", how="inner").select(
        "tangle", "commit_id", "acks", "sequence", stated.alias("stated"), "mark"
    )
    verdicts = judge(rows, list(sizes.values()), range_size)
    if [verdicts[number].commits for number in range(len(sizes))] != list(sizes.values()):
        raise ValueError("a commit id stands twice in a tangle")
    ranked, rank_rounds = _rank(rows, verdicts, range_size, names)
    with_checkpoints = {number for number, verdict in verdicts.items() if verdict.checkpoints}
    passed, checkpoint_rounds = _pass_checkpoints(ranked, with_checkpoints, range_size, names)
    _log.info("%s: %d rounds for ranks, %d for checkpoints", names, rank_rounds, checkpoint_rounds)
    order = _place(passed, max(1, -(-sum(sizes.values()) // range_size))).join(
        F.broadcast(numbers), on="tangle"
    )
    return LargeBranchOrder(
        order.select("branch_id", "commit_id", "passed", "rank", "position", "fault_code"),
        rank_rounds,
        checkpoint_rounds,
    )


def _rank(
    rows: DataFrame, verdicts: dict[int, RankCheckResult], range_size: int, names: str
) -> tuple[DataFrame, int]:
    """`tangle`, `commit_id`, `acks`, `mark`, `rank`, `fault` of every commit."""
    witnessed = [number for number, verdict in verdicts.items() if verdict.holds]
    ranked = rows.where(F.col("tangle").isin(witnessed)).select(
        "tangle",
        "commit_id",
        "acks",
        "mark",
        F.col("stated").alias("rank"),
        F.lit(0).cast("bigint").alias("fault"),
    )
    others = [number for number, verdict in verdicts.items() if not verdict.holds]
    if not others:
        return ranked, 0
    by_rank = [n for n in others if verdicts[n].forward_by_rank <= verdicts[n].forward_by_sequence]
    hint = F.when(F.col("tangle").isin(by_rank), F.col("stated")).otherwise(F.col("sequence"))
    ranges = make_ranges(rows.where(F.col("tangle").isin(others)).withColumn("hint", hint), range_size, names)
    found, rounds = find_ranks(ranges)
    waved = ranges.numbered.join(found, on="num", how="inner")
    return ranked.unionByName(waved.select("tangle", "commit_id", "acks", "mark", "rank", "fault")), rounds


def _pass_checkpoints(
    ranked: DataFrame, with_checkpoints: Collection[int], range_size: int, names: str
) -> tuple[DataFrame, int]:
    """`tangle`, `commit_id`, `mark`, `rank`, `fault` and the number of checkpoints `passed`, of every commit."""
    wanted = ("tangle", "commit_id", "mark", "rank", "fault", "passed")
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
            f"{names}: one has {most} checkpoints; a giant may have {limits.LARGE_BRANCH_CHECKPOINT_COUNT_MAX}. "
            "Give --giant-from a number over its commits, and one task 0.7 KB of memory for each of them"
        )
    ranges = make_ranges(concerned, range_size, names)
    led, rounds = count_led(ranges)
    passed = (
        ranges.numbered.join(led, on="num", how="inner")
        .join(F.broadcast(totals), on="tangle", how="left")
        .withColumn("passed", F.coalesce("total", F.lit(0)) - F.col("led"))
    )
    return plain.unionByName(passed.select(*wanted)), rounds


def _place(ranked: DataFrame, partitions: int) -> DataFrame:
    """`tangle`, `commit_id`, `passed`, `rank`, `position`, `fault_code`: null where a fault leaves no place."""
    is_void = F.col("mark") == kernel.MARKED_VOID
    is_placed = (F.col("fault") == kernel.NO_FAULT) & ~is_void
    wanted = ("tangle", "commit_id", "passed", "rank")
    # One place after the other, in partitions that follow one another: a commit's number is its place and its partition's
    # start. Pinned, since Spark would draw other boundaries when it sorts again.
    placed = pin(
        ranked.where(is_placed)
        .select(*wanted)
        .repartitionByRange(partitions, *("tangle", "passed", "rank", "commit_id"))
        .sortWithinPartitions("tangle", "passed", "rank", "commit_id")
        .select("*", F.monotonically_increasing_id().alias("num"), F.spark_partition_id().alias("part"))
    )
    runs = placed.groupBy("part", "tangle").agg(F.min("num").alias("first"), F.count("*").alias("count"))
    shifts = []
    counted: dict[int, int] = {}
    for row in runs.orderBy("part", "tangle").collect():
        before = counted.get(row["tangle"], 0)
        shifts.append((row["part"], row["tangle"], before - row["first"]))
        counted[row["tangle"]] = before + row["count"]
    shift = ranked.sparkSession.createDataFrame(shifts, "part int, tangle int, shift bigint")
    position = (F.col("num") + F.col("shift")).alias("position")
    ordered = placed.join(F.broadcast(shift), on=["part", "tangle"], how="inner").select(
        *wanted, position, F.lit(kernel.NO_FAULT).cast("tinyint").alias("fault_code")
    )
    code = F.when(F.col("fault") == kernel.NO_FAULT, kernel.VOID).otherwise(F.col("fault")).cast("tinyint")
    nothing = [F.lit(None).cast("bigint").alias(name) for name in ("passed", "rank", "position")]
    left_out = ranked.where(~is_placed).select("tangle", "commit_id", *nothing, code.alias("fault_code"))
    return ordered.unionByName(left_out)
