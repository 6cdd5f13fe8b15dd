"""Bulk linearization: many small tangles, and one giant, against Spark's own cost of moving the same Parquet.

python benchmarks/bench_linearize.py [commits]        200,000 by default; the goals are stated for 5,000,000

Two tables are made before, and two of half their size: commits in tangles of Zipf sizes (a fiftieth of their number),
and commits in one tangle of 64 feeds. What is timed for each: read, order, write. The measure is the first table read,
shuffled by tangle and written by Spark alone. The giant is ranked once by its stated ranks and once in waves. Everything
runs once unmeasured on a small table, so that start-up is not in a figure. Memory is the largest sum of resident memory
over this process and all that it started, sampled.
"""

import gc
import shutil
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from analytics import columns
from analytics.linearize import linearize
from analytics.session import start_session
from benchmarks.common import figure, note, timed

_FEEDS: Final = 64
_COMMITS_PER_TANGLE: Final = 50
_MERGE_SHARE: Final = 0.25
_SAMPLE_SECONDS: Final = 0.2
_ROWS_PER_PART: Final = 500_000
Ints = NDArray[np.int64]


def zipf_tangles(count: int, generator: np.random.Generator) -> tuple[Ints, Ints, Ints]:
    """Tangle of every commit, and its acks as numbers of commits with their counts: a chain each, with some merges."""
    tangles = max(1, count // _COMMITS_PER_TANGLE)
    weights = 1 / np.arange(1, tangles + 1)
    tangle = np.sort(generator.choice(tangles, count, p=weights / weights.sum()))
    first = np.searchsorted(tangle, tangle)
    number = np.arange(count)
    back = number - first
    one = np.where(back > 0, number - 1, -1)
    merges = (back > 2) & (generator.random(count) < _MERGE_SHARE)
    other = np.where(
        merges, number - 2 - (generator.random(count) * np.minimum(back - 1, 8)).astype(np.int64), -1
    )
    pairs = np.stack([one, np.maximum(other, np.where(merges, first, -1))], axis=1)
    return tangle, pairs[pairs >= 0], (pairs >= 0).sum(axis=1)


def giant_tangle(count: int, generator: np.random.Generator) -> tuple[Ints, Ints, Ints]:
    """One tangle of feeds that follow themselves, and now and then another's end."""
    feed = generator.integers(0, _FEEDS, count)
    other = generator.integers(0, _FEEDS, count)
    merges = generator.random(count) < _MERGE_SHARE
    ends = [0] * _FEEDS
    acks: list[int] = []
    counts = [0] * count
    for number, (own, seen, merge) in enumerate(
        zip(feed.tolist(), other.tolist(), merges.tolist(), strict=True)
    ):
        if number:
            acks.append(ends[own])
            counts[number] = 1
            if merge and ends[seen] != ends[own]:
                acks.append(ends[seen])
                counts[number] = 2
        ends[own] = number
    return np.zeros(count, np.int64), np.array(acks, np.int64), np.array(counts, np.int64)


def write_table(folder: Path, tangle: Ints, acks: Ints, counts: Ints) -> None:
    """As an export has it, less what ordering does not read; ranks are the right ones, as in every honest export."""
    generator = np.random.default_rng(1)
    count = len(tangle)
    ids = generator.integers(0, 256, (count, 32), np.uint8)
    branch_ids = generator.integers(0, 256, (int(tangle.max()) + 1, 32), np.uint8)
    offsets = np.concatenate([[0], np.cumsum(counts)])
    ranks = _ranks(acks.tolist(), offsets.tolist(), count)
    folder.mkdir(parents=True)
    for start in range(0, count, _ROWS_PER_PART):
        stop = min(start + _ROWS_PER_PART, count)
        listed = columns.binary(ids[acks[offsets[start] : offsets[stop]]])
        starts = pa.array((offsets[start : stop + 1] - offsets[start]).astype(np.int32))
        table = pa.table(
            {
                "branch_id": columns.binary(branch_ids[tangle[start:stop]]),
                "commit_id": columns.binary(ids[start:stop]),
                "acks": pa.ListArray.from_arrays(starts, listed),
                "sequence": pa.array(np.arange(start, stop)),
                "rank": pa.array(ranks[start:stop]),
                "body_kind": pa.array(["post"] * (stop - start)),
                "is_void": pa.array(np.zeros(stop - start, np.bool_)),
            }
        )
        pq.write_table(table, folder / f"part-{start:09d}.parquet", compression="zstd")


def _ranks(acks: list[int], offsets: list[int], count: int) -> Ints:
    ranks = [0] * count
    for number in range(count):
        low, high = offsets[number], offsets[number + 1]
        if high > low:
            ranks[number] = 1 + max([ranks[cause] for cause in acks[low:high]])
    return np.array(ranks, np.int64)


@contextmanager
def peak_memory() -> Iterator[list[float]]:
    """Gives a list that has, in the end, the most MiB that this process and its descendants had resident together."""
    done = threading.Event()
    peak = [0.0]

    def sample() -> None:
        while not done.wait(_SAMPLE_SECONDS):
            peak[0] = max(peak[0], _resident())

    sampler = threading.Thread(target=sample)
    sampler.start()
    try:
        yield peak
    finally:
        done.set()
        sampler.join()


def _resident() -> float:
    above: dict[int, int] = {}
    sizes: dict[int, float] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            status = dict(
                line.split(":", 1) for line in (folder / "status").read_text().splitlines() if ":" in line
            )
        except OSError:
            continue  # it has ended meanwhile
        above[int(folder.name)] = int(status["PPid"])
        sizes[int(folder.name)] = int(status.get("VmRSS", "0 kB").split()[0]) / 1024
    ours = {int(Path("/proc/self").resolve().name)}
    while more := {pid for pid, parent in above.items() if parent in ours} - ours:
        ours |= more
    return sum(sizes.get(pid, 0.0) for pid in ours)


def run(
    spark: SparkSession, source: Path, target: Path, order: Callable[[DataFrame], DataFrame]
) -> tuple[float, float]:
    """Seconds, and MiB at most, of reading a table, doing something with it, and writing what comes out."""
    gc.collect()
    with peak_memory() as peak:
        seconds = timed(
            lambda: order(spark.read.parquet(str(source))).write.mode("overwrite").parquet(str(target))
        )
    return seconds, peak[0]


def shuffle(commits: DataFrame) -> DataFrame:
    """Nothing but the way to the tasks, which ordering cannot save."""
    partitions = int(commits.sparkSession.conf.get("spark.sql.shuffle.partitions") or 1)
    return commits.repartition(partitions, "branch_id")


def wave(commits: DataFrame, giant_from: int) -> DataFrame:
    """The giant as though its export had lied, so that ranges are ranked one after another."""
    return linearize(commits.withColumn("rank", F.lit(0).cast("bigint")), giant_from)


def main() -> None:
    """Print the figures."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 200_000
    in_tasks = partial(linearize, giant_from=1 << 40)  # the largest of the Zipf sizes is no giant
    as_giant = partial(linearize, giant_from=count // 5)
    in_waves = partial(wave, giant_from=count // 5)
    folder = Path(tempfile.mkdtemp(prefix="ravel-bench-"))
    spark = start_session("local[2]", log_path=folder / "spark.log")
    try:
        note(f"make tables of {count:,} commits")
        generator = np.random.default_rng(7)
        for name, make in (("zipf", zipf_tangles), ("giant", giant_tangle)):
            for size, part in ((count, ""), (count // 2, "-half")):
                write_table(folder / f"{name}{part}", *make(size, generator))
        write_table(folder / "small", *giant_tangle(5_000, generator))
        note("warm up")
        for order in (shuffle, in_tasks, partial(linearize, giant_from=1000), partial(wave, giant_from=1000)):
            run(spark, folder / "small", folder / "out", order)
        measured = {}
        for name, table, order in (
            ("shuffle", "zipf", shuffle),
            ("tangles", "zipf", in_tasks),
            ("tangles_half", "zipf-half", in_tasks),
            ("giant", "giant", as_giant),
            ("giant_half", "giant-half", as_giant),
            ("giant_in_waves", "giant", in_waves),
        ):
            note(name)
            measured[name], memory = run(spark, folder / table, folder / "out", order)
            figure(f"linearize_{name}", measured[name], "s", commits=count // (2 if "half" in name else 1))
            figure(f"linearize_{name}_memory", memory, "MiB")
        figure("linearize_tangles_to_shuffle", measured["tangles"] / measured["shuffle"], "ratio", limit=3)
        figure("linearize_giant_to_tangles", measured["giant"] / measured["tangles"], "ratio", limit=3)
        figure("linearize_waves_to_tangles", measured["giant_in_waves"] / measured["tangles"], "ratio")
        for name in ("tangles", "giant"):
            ratio = measured[name] / measured[f"{name}_half"]
            figure(f"linearize_{name}_doubled", ratio, "ratio", limit=2.2)
    finally:
        spark.stop()
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
