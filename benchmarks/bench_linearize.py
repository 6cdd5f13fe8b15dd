"""Bulk linearization: many small tangles, and one giant, against Spark's own cost of moving the same Parquet.

python benchmarks/bench_linearize.py [commits] [folder] [pieces]

200,000 commits by default; the goals are stated for 5,000,000. With a folder the tables are kept there (2 GB for
5,000,000), and what was measured too, so that pieces can run one by one: `shuffle`, `tangles`, `tangles_half`, `giant`,
`giant_half`, `giant_in_waves`, `tangles_whole`, `giant_whole`. Ratios are printed once both their figures are there. Each
piece runs in a process of its own: Java compiles what runs long, and a piece after others would be faster by a third.

Two tables are made before, and two of half their size: commits in tangles of Zipf sizes (a fiftieth of their number),
and commits in one tangle of 64 feeds. What is timed for each: read, order, write. The measure is the first table read,
shuffled by tangle and written by Spark alone. The giant is ranked once by its stated ranks and once in waves.
`tangles_whole` and `giant_whole` are what an analysis does to an order besides: ranks compared, digests. That each id stands
once is the affair of the reader before, and not timed here. Everything runs once unmeasured on a small table, so that
start-up is not in a figure. Memory is the largest sum of resident memory over this process and all that it started,
sampled. Ratios are by the clock, and by processor time, which other work on the machine disturbs less.
"""

import gc
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

import numpy as np
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from analytics.order.linearize import digest_giants, keep_order, linearize, order_branches
from analytics.reading import limits
from analytics.session import start_session
from benchmarks.common import figure, note, timed
from benchmarks.memory import peak_of_all, processor_time_of_all
from benchmarks.tangle_tables import large_tangle, write_table, zipf_tangles

_PROCESSOR = "_processor"

Piece = Callable[[DataFrame, Path], object]
"""What is done to commits, with a folder for what comes out."""


def run(spark: SparkSession, source: Path, target: Path, piece: Piece) -> tuple[float, float, float]:
    """Seconds by the clock, of processors, and MiB at most, of reading a table, and doing something with it."""
    gc.collect()
    with peak_of_all() as peak, processor_time_of_all() as processor:
        seconds = timed(lambda: piece(spark.read.parquet(str(source)), target))
    return seconds, processor[0], peak[0]


def written(order: Callable[[DataFrame], DataFrame]) -> Piece:
    """Time making a table of commits, and writing it."""
    return lambda commits, target: order(commits).write.mode("overwrite").parquet(str(target))


def order_whole(commits: DataFrame, target: Path, giant_from: int) -> None:
    """Order, write, compare with the stated ranks, and make digests, as an analysis does."""
    scratch = target.with_name("scratch")
    for folder in (scratch, target):
        shutil.rmtree(folder, ignore_errors=True)
    stated = commits.withColumn("exported_rank", F.col("rank"))
    ordered = order_branches(stated, giant_from, carried=["exported_rank"], with_digests=True, folder=scratch)
    placed = ordered.order
    assert keep_order(commits.sparkSession, ordered, target, ())
    assert placed.where("fault IS NOT NULL OR rank IS DISTINCT FROM exported_rank").isEmpty()
    digests = placed.where("digest IS NOT NULL").select("branch_id", "digest").collect()
    assert len(digests) + len(digest_giants(ordered)) > 0
    shutil.rmtree(scratch)


def shuffle(commits: DataFrame) -> DataFrame:
    """Time the bare way to the tasks, which ordering cannot save."""
    partitions = int(commits.sparkSession.conf.get("spark.sql.shuffle.partitions") or 1)
    return commits.repartition(partitions, "branch_id")


def wave(commits: DataFrame, giant_from: int) -> DataFrame:
    """Return the giant as though its export had lied, so that ranges are ranked one after another."""
    return linearize(commits.withColumn("rank", F.lit(0).cast("bigint")), giant_from)


def make_tables(folder: Path, count: int) -> None:
    """Write the tables, unless an earlier run left them."""
    if (folder / "complete").exists():
        return
    note(f"make tables of {count:,} commits")
    shutil.rmtree(folder, ignore_errors=True)  # what a run left that was cut
    generator = np.random.default_rng(7)
    for name, make in (("zipf", zipf_tangles), ("giant", large_tangle)):
        for size, part in ((count, ""), (count // 2, "-half")):
            write_table(folder / f"{name}{part}", *make(size, generator))
    write_table(folder / "small", *large_tangle(5_000, generator))
    (folder / "complete").touch()


def tell_ratios(measured: Mapping[str, float], piece: str) -> None:
    """Print the figures that this piece is in, as far as the others were measured."""
    for name, one, other, limit in (
        ("linearize_tangles_to_shuffle", "tangles", "shuffle", 3.0),
        ("linearize_giant_to_tangles", "giant", "tangles", 3.0),
        ("linearize_waves_to_tangles", "giant_in_waves", "tangles", None),
        ("linearize_tangles_doubled", "tangles", "tangles_half", 2.2),
        ("linearize_giant_doubled", "giant", "giant_half", 2.2),
        ("linearize_tangles_whole_to_shuffle", "tangles_whole", "shuffle", 1.6),
        ("linearize_giant_whole_to_shuffle", "giant_whole", "shuffle", 2.0),
    ):
        if piece in (one, other) and one in measured and other in measured:
            figure(name, measured[one] / measured[other], "ratio", **({"limit": limit} if limit else {}))
            processor = measured[one + _PROCESSOR] / measured[other + _PROCESSOR]
            figure(name + _PROCESSOR, processor, "ratio")


def main() -> None:
    """Print the figures."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 200_000
    with tempfile.TemporaryDirectory(prefix="ravel-bench-") as name:
        folder = Path(sys.argv[2]) if len(sys.argv) > 2 else Path(name)
        make_tables(folder / str(count), count)
        pieces = pieces_of(count)
        if len(sys.argv) == 4:
            measure(folder / str(count), count, sys.argv[3], pieces)
            return
        for piece in sys.argv[3:] or pieces:
            subprocess.run([sys.executable, __file__, str(count), str(folder), piece], check=True)


def pieces_of(count: int) -> dict[str, tuple[str, Piece]]:
    """Return what can be run: the table that it takes, and what is done to it."""
    in_tasks = partial(linearize, giant_from=1 << 40)  # the largest of the Zipf sizes is no giant
    giant_from = limits.LARGE_BRANCH_FROM if count // 2 >= limits.LARGE_BRANCH_FROM else count // 5
    as_large = partial(linearize, giant_from=giant_from)
    in_waves = partial(wave, giant_from=giant_from)
    return {
        "shuffle": ("zipf", written(shuffle)),
        "tangles": ("zipf", written(in_tasks)),
        "tangles_half": ("zipf-half", written(in_tasks)),
        "giant": ("giant", written(as_large)),
        "giant_half": ("giant-half", written(as_large)),
        "giant_in_waves": ("giant", written(in_waves)),
        "tangles_whole": ("zipf", partial(order_whole, giant_from=1 << 40)),
        "giant_whole": ("giant", partial(order_whole, giant_from=giant_from)),
    }


def measure(folder: Path, count: int, piece: str, pieces: Mapping[str, tuple[str, Piece]]) -> None:
    """Run a piece, and print what it took."""
    kept = folder / "measured.json"
    measured: dict[str, float] = json.loads(kept.read_text()) if kept.exists() else {}
    spark = start_session("local[2]", log_path=folder / "spark.log")
    try:
        note("warm up")
        for warming in (
            written(shuffle),
            pieces["tangles"][1],
            partial(order_whole, giant_from=1000),
            written(partial(wave, giant_from=1000)),
        ):
            run(spark, folder / "small", folder / "out", warming)
        note(piece)
        table, work = pieces[piece]
        seconds, processor, memory = run(spark, folder / table, folder / "out", work)
        measured |= {piece: seconds, piece + _PROCESSOR: processor}
        kept.write_text(json.dumps(measured))
        commits = count // (2 if "half" in piece else 1)
        figure(f"linearize_{piece}", seconds, "s", commits=commits)
        figure(f"linearize_{piece}{_PROCESSOR}", processor, "s", commits=commits)
        figure(f"linearize_{piece}_memory", memory, "MiB")
        tell_ratios(measured, piece)
    finally:
        spark.stop()
        shutil.rmtree(folder / "out", ignore_errors=True)


if __name__ == "__main__":
    main()
