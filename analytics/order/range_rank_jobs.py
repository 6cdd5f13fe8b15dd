"""Spark rounds that compute ranks and checkpoints of a large branch, range by range.

A round is one Spark job over the ranges that can go on. The driver holds what ranges must know of each other and nothing
else: a number and a value for each commit that is acked from another range. Where ranges follow an order in which causes
stand before effects, each runs once, and there are at most as many rounds as ranges. Where they do not (a forged export),
they run again as more becomes known, which is exact for any graph, and can take more rounds.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, Row, Window
from pyspark.sql import functions as F

from analytics.order import range_ranks as waves
from analytics.order.branch_tasks import LargeBranchRefused
from analytics.order.kept_rows import pin
from analytics.order.kernel import BEHIND_MISSING, CYCLE, MISSING_CAUSE, NO_FAULT, NO_RANK, Ints
from analytics.order.range_ranks import MISSING, NO_ACK, RANGE_SHIFT, UNKNOWN, CommitRange
from analytics.reading import limits

_INT_COLUMNS: Final = ("nums", "hints", "offsets", "causes", "externals")
_BLOCK_COLUMNS: Final = (*_INT_COLUMNS, "is_missing")
_BLOCK_SCHEMA: Final = ", ".join(f"{name} binary" for name in _BLOCK_COLUMNS)
_RANK_SCHEMA: Final = "num bigint, rank bigint, fault bigint"
_LED_SCHEMA: Final = "num bigint, led bigint"
_ROWS_PER_BATCH: Final = 50_000
_EXTERNAL_SIZE: Final = 24
"""Bytes that the driver holds for a commit that a range must know of another: its number twice, and its rank."""
_CHECKPOINTS_SIZE: Final = 100
"""Bytes of a number with bits, and of its place in a dict, before the first bit."""
_Told = TypeVar("_Told")
_Answer = TypeVar("_Answer")


@dataclass(frozen=True, slots=True)
class Ranges:
    """Commits of giants with a number each, and their graph: a packed row for each range, in the partition of its number.

    Both are pinned: were either computed again after a machine was lost, numbers could differ.
    """

    numbered: DataFrame  # what was given, with `num`
    blocks: DataFrame
    externals: Mapping[int, Ints]  # range -> numbers of what it acks elsewhere
    names: str  # of the branches, for errors


def make_ranges(commits: DataFrame, range_size: int, names: str) -> Ranges:
    """Cut commits (`tangle`, `commit_id`, `acks`, `hint`) into ranges of about `range_size` by tangle and hint."""
    count = max(1, -(-commits.count() // range_size))
    numbered = pin(
        commits.repartitionByRange(count, "tangle", "hint", "commit_id").withColumn(
            "num", F.monotonically_increasing_id()
        )
    )
    asked = numbered.select("tangle", "num", "hint", F.explode_outer("acks").alias("ack"))
    there = numbered.select("tangle", F.col("commit_id").alias("ack"), F.col("num").alias("cause"))
    cause = F.when(F.col("ack").isNull(), NO_ACK).otherwise(F.coalesce("cause", F.lit(MISSING)))
    edges = asked.join(there, on=["tangle", "ack"], how="left").select("num", "hint", cause.alias("cause"))
    placed = edges.repartitionById(count, F.shiftright("num", RANGE_SHIFT).cast("int"))
    blocks = pin(placed.mapInArrow(_pack_task, _BLOCK_SCHEMA))
    _check_boundary(sum(_run(blocks, range(count), _count_externals, {})) * _EXTERNAL_SIZE, names)
    return Ranges(numbered, blocks, dict(_run(blocks, range(count), _list_externals, {})), names)


def find_ranks(ranges: Ranges) -> tuple[DataFrame, int]:
    """Rank and fault of every commit (`num`, `rank`, `fault`) whatever the graph, and the rounds it took."""
    exits = _exits(ranges)
    values = np.full(len(exits), UNKNOWN)
    owner = exits >> RANGE_SHIFT
    spans = {number: _span(owner, number) for number in np.unique(owner).tolist()}
    at = {number: np.searchsorted(exits, nums) for number, nums in ranges.externals.items()}
    heard = dict.fromkeys(spans, -1)
    rounds = 0
    while heard:
        known = {number: int((values[at[number]] != UNKNOWN).sum()) for number in heard}
        complete = [number for number in heard if known[number] == len(at[number])]
        active = complete or [number for number in heard if known[number] > heard[number]]
        if not active:
            break  # what is unknown now waits for itself
        rounds += 1
        _check_rounds(rounds, ranges.names)
        told = {number: (values[at[number]], exits[spans[number]]) for number in active}
        for number, found in _run(ranges.blocks, active, _rank_exits, told):
            values[spans[number]] = found
        heard.update((number, known[number]) for number in active)
        for number in complete:
            del heard[number]
    told_all = {number: values[places] for number, places in at.items()}
    return _map_blocks(ranges.blocks, _rank_rows, told_all, _RANK_SCHEMA), rounds


def count_led(ranges: Ranges) -> tuple[DataFrame, int]:
    """Return how many checkpoints of its tangle each commit leads to (`num`, `led`), itself included, and the rounds taken.

    Checkpoints that merge the same heads count as one. The hints must be ranks, and `numbered` have `is_checkpoint`.
    """
    heads = F.dense_rank().over(Window.partitionBy("tangle").orderBy(F.sort_array("acks"))) - 1
    marked = ranges.numbered.where("is_checkpoint").select("num", heads.alias("heads")).collect()
    bits: dict[int, dict[int, int]] = {number: {} for number in ranges.externals}
    for row in marked:
        bits[row["num"] >> RANGE_SHIFT][row["num"]] = 1 << row["heads"]
    most = max((row["heads"] + 1 for row in marked), default=0)
    _check_boundary(len(_exits(ranges)) * (_CHECKPOINTS_SIZE + most // 8), ranges.names)

    # A range tells its causes' ranges once all that ack into it have told it.
    causes = {
        number: set((nums >> RANGE_SHIFT).tolist()) for number, nums in ranges.externals.items() if len(nums)
    }
    rounds = 0
    while causes:
        waiting = set[int]().union(*causes.values())
        active = [number for number in causes if number not in waiting]
        assert active, "ranks put causes into the same or an earlier range"
        rounds += 1
        _check_rounds(rounds, ranges.names)
        told = {number: bits[number] for number in active}
        for _, handed in _run(ranges.blocks, active, _lead_externals, told):
            for num, checkpoints in handed:
                of_range = bits[num >> RANGE_SHIFT]
                of_range[num] = of_range.get(num, 0) | checkpoints
        for number in active:
            del causes[number]
    return _map_blocks(ranges.blocks, _led_rows, bits, _LED_SCHEMA), rounds


def _exits(ranges: Ranges) -> Ints:
    """Numbers of commits that another range acks."""
    return np.unique(np.concatenate([np.empty(0, np.int64), *ranges.externals.values()]))


def _span(owner: Ints, number: int) -> slice:
    return slice(int(np.searchsorted(owner, number)), int(np.searchsorted(owner, number + 1)))


def _check_boundary(size: int, names: str) -> None:
    if size > limits.BOUNDARY_SIZE_MAX:
        raise LargeBranchRefused(
            f"{names}: ranges would have to tell each other {size >> 20} MiB, over {limits.BOUNDARY_SIZE_MAX >> 20}; "
            "give --giant-from a number over the branch's commits, and one task 0.7 KB of memory for each of them"
        )


def _check_rounds(rounds: int, names: str) -> None:
    if rounds > limits.WAVE_COUNT_MAX:
        raise LargeBranchRefused(
            f"{names}: not ranked after {limits.WAVE_COUNT_MAX} rounds: neither the stated ranks nor the order of "
            "acceptance put causes before effects; `ravel audit` tells more"
        )


# --- what runs on the executors ---


def _run(
    blocks: DataFrame,
    numbers: Iterable[int],
    task: Callable[[CommitRange, Mapping[int, _Told]], _Answer],
    told: Mapping[int, _Told],
) -> list[_Answer]:
    """Run a task on some ranges, each with its part of the messages, and return the results."""
    context = blocks.sparkSession.sparkContext
    shared = context.broadcast(dict(told))
    try:
        return context.runJob(
            blocks.rdd, lambda rows: [task(_block(row), shared.value) for row in rows], list(numbers)
        )
    finally:
        shared.destroy()


def _map_blocks(
    blocks: DataFrame,
    task: Callable[[CommitRange, Mapping[int, _Told]], Mapping[str, Ints]],
    told: Mapping[int, _Told],
    schema: str,
) -> DataFrame:
    """Return a table of what a task says of every range."""
    shared = blocks.sparkSession.sparkContext.broadcast(dict(told))

    def rows(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for row in batch.to_pylist():
                columns = task(_block(row), shared.value)
                for start in range(0, len(columns["num"]), _ROWS_PER_BATCH):
                    part = slice(start, start + _ROWS_PER_BATCH)
                    yield pa.RecordBatch.from_pydict(
                        {name: pa.array(values[part]) for name, values in columns.items()}
                    )

    try:
        return pin(blocks.mapInArrow(rows, schema))
    finally:
        shared.destroy()


def _pack_task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    parts = [batch for batch in batches if batch.num_rows]
    if not parts:
        return
    edges = pa.Table.from_batches(parts)
    block = waves.build_block(*(edges[name].to_numpy() for name in ("num", "cause", "hint")))
    packed = {name: [getattr(block, name).tobytes()] for name in _BLOCK_COLUMNS}
    yield pa.RecordBatch.from_pydict({name: pa.array(value, pa.binary()) for name, value in packed.items()})


def _block(row: Row | Mapping[str, Any]) -> CommitRange:
    ints = {name: np.frombuffer(row[name], np.int64) for name in _INT_COLUMNS}
    return CommitRange(is_missing=np.frombuffer(row["is_missing"], np.bool_), **ints)


def _count_externals(block: CommitRange, _: Mapping[int, None]) -> int:
    return len(block.externals)


def _list_externals(block: CommitRange, _: Mapping[int, None]) -> tuple[int, Ints]:
    return block.range, block.externals


def _rank_exits(block: CommitRange, told: Mapping[int, tuple[Ints, Ints]]) -> tuple[int, Ints]:
    known, exits = told[block.range]
    return block.range, waves.rank_block(block, known)[np.searchsorted(block.nums, exits)]


def _rank_rows(block: CommitRange, told: Mapping[int, Ints]) -> Mapping[str, Ints]:
    ranks = waves.rank_block(block, told[block.range])
    faults = np.where(ranks < NO_RANK, NO_FAULT, BEHIND_MISSING)
    faults[ranks == UNKNOWN] = CYCLE
    faults[block.is_missing] = MISSING_CAUSE
    return {"num": block.nums, "rank": ranks, "fault": faults}


def _lead_externals(
    block: CommitRange, told: Mapping[int, dict[int, int]]
) -> tuple[int, Sequence[tuple[int, int]]]:
    _, handed = waves.lead_block(block, told[block.range])
    return block.range, [
        (num, bits) for num, bits in zip(block.externals.tolist(), handed, strict=True) if bits
    ]


def _led_rows(block: CommitRange, told: Mapping[int, dict[int, int]]) -> Mapping[str, Ints]:
    bits, _ = waves.lead_block(block, told[block.range])
    return {"num": block.nums, "led": np.array([own.bit_count() for own in bits], np.int64)}
