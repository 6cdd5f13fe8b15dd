"""Statistics on Spark, beside DuckDB doing the same SQL on the same Parquet files; results are held to be equal.

python benchmarks/bench_statistics.py [sizes, 10000,100000 by default]

Commits stand in tangles of Zipf sizes (a fiftieth of their number), written by a hundredth as many authors, as exports
have them less what statistics do not read. Timed is the way from these files to nine tables as Parquet: branches, widths,
authors, merges, feeds, kinds, activity, growth, heads (`benchmarks/statistics_sql.py`), which need all that the others
do: groups of few and of very many rows, distinct counts, joins of acks with commits, windows, percentiles. Spark writes
them as an analysis does, several at a time, and computes the order first, which has what SQL finds by joins; DuckDB takes
the ranks as they stand. Both have two threads, both ran once on a small table before. What starting them costs is given
beside it. Processor time is of all processes, and says more than time where others are at work. Memory is the largest sum
of resident memory over all processes, sampled; DuckDB goes first, with no Java there.
"""

import gc
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Final, Literal

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from analytics.engines.spark_engine import place_commits
from analytics.engines.spark_tables import TableWriter
from analytics.order import columns
from analytics.reading.times import bucket_for
from analytics.session import start_session
from analytics.tables.definitions import TABLES
from analytics.tables.functions import SPARK
from analytics.tables.periods import Period
from benchmarks import statistics_sql
from benchmarks.common import figure, note, timed
from benchmarks.memory import peak_of_all, processor_time_of_all
from benchmarks.tangle_tables import ROWS_PER_PART, Ints, find_ranks, zipf_tangles

_THREADS: Final = 2
_COMMITS_PER_AUTHOR: Final = 100
_BRANCHES_PER_REPO: Final = 10
_START_MS: Final = 1_700_000_000_000
_YEAR_MS: Final = 365 * 86_400_000
_KINDS: Final = ("post", "post", "post", "edit", "imported")
_FORK_SHARE: Final = 0.2
Graph = Callable[[int, np.random.Generator], tuple[Ints, Ints, Ints]]
"""Makes so many commits as functions of `tangle_tables` do."""
_SMALL: Final = 5_000
_RANK_ERROR: Final = 2e-4
"""Twice what Spark promises of an approximate percentile, as either end is rounded to a row."""


def zipf_graph(count: int, generator: np.random.Generator) -> tuple[Ints, Ints, Ints]:
    """Make tangles of Zipf sizes with forks."""
    return zipf_tangles(count, generator, _FORK_SHARE)


def write_commits(folder: Path, count: int, graph: Graph = zipf_graph) -> Period:
    """Write files of so many commits that hang together as a `graph` says; return the period that their times span."""
    generator = np.random.default_rng(count)
    tangle, acks, counts = graph(count, generator)
    offsets = np.concatenate([[0], np.cumsum(counts)])
    ranks = find_ranks(acks.tolist(), offsets.tolist(), count)
    tangles = int(tangle.max()) + 1
    ids, branches, authors, repos = (
        generator.integers(0, 256, (size, 32), np.uint8)
        for size in (count, tangles, count // _COMMITS_PER_AUTHOR + 1, tangles // _BRANCHES_PER_REPO + 1)
    )
    # A few people write in a branch, and some of them in very many; clocks are a minute wrong, so merges may be backdated.
    author = (tangle + (generator.pareto(1.0, count) * 2).astype(np.int64)) % len(authors)
    index = np.arange(count) - np.searchsorted(tangle, tangle)
    length = np.bincount(tangle, minlength=tangles)[tangle]
    time = _START_MS + index * (_YEAR_MS // length) + generator.integers(0, 60_000, count)
    sizes = generator.integers(300, 5_000, count)
    kinds = generator.integers(0, len(_KINDS), count)
    names = [f"branch {number}" for number in range(tangles)]
    folder.mkdir(parents=True)
    for start in range(0, count, ROWS_PER_PART):
        part = slice(start, min(start + ROWS_PER_PART, count))
        low, high = offsets[part.start], offsets[part.stop]
        listed = columns.binary(ids[acks[low:high]])
        starts = pa.array((offsets[part.start : part.stop + 1] - low).astype(np.int32))
        own = tangle[part]
        table = pa.table(
            {
                "sequence": pa.array(np.arange(part.start, part.stop)),
                "commit_id": columns.binary(ids[part]),
                "topic": columns.binary(branches[own]),
                "repo_id": columns.binary(repos[own // _BRANCHES_PER_REPO]),
                "branch_id": columns.binary(branches[own]),
                "repo_name": pa.array([f"repo {number // _BRANCHES_PER_REPO}" for number in own.tolist()]),
                "branch_name": pa.array([names[number] for number in own.tolist()]),
                "author": columns.binary(authors[author[part]]),
                "acks": pa.ListArray.from_arrays(starts, listed),
                "rank": pa.array(ranks[part]),
                "body_kind": pa.array([_KINDS[kind] for kind in kinds[part].tolist()]),
                "size": pa.array(sizes[part]),
                "time": pa.array(time[part]),
                "received_at": pa.array(time[part]),
                "shown_at": pa.array(time[part]),
            }
        )
        pq.write_table(table, folder / f"part-{start:09d}.parquet", compression="zstd")
    first, last = int(time.min()), int(time.max())
    return Period(first, last, bucket_for(first, last))


def count_with_spark(spark: SparkSession, source: Path, out: Path, period: Period) -> dict[str, float]:
    """Seconds for the order that all are counted from, and for tables, written to `out`/tables as an analysis does."""
    nothing = F.lit(False)  # a column's value
    commits = spark.read.parquet(str(source)).withColumns({"is_void": nothing, "is_disputed": nothing})
    placed = place_commits(commits).order.persist()
    seconds = {"order": timed(placed.count)}
    writer = TableWriter(spark, out)
    placed.where(F.col("fault").isNull()).createOrReplaceTempView("ordered")
    commits.createOrReplaceTempView("commits")
    for statement in SPARK:
        spark.sql(statement)

    def write(names: Sequence[str]) -> None:
        queries = {name: spark.sql(TABLES[name].fill(period.values())) for name in names}
        for name, frame in writer.write_all(queries).items():
            frame.createOrReplaceTempView(name)

    seconds["of names"] = timed(lambda: write(["branch_names"]))
    seconds["of commits"] = timed(
        lambda: write(["widths", "merges", "feeds", "kinds", "activity", "growth", "heads"])
    )
    seconds["of tables"] = timed(lambda: write(["branches", "authors"]))
    placed.unpersist()
    return seconds


def open_duckdb(source: Path, period: Period) -> duckdb.DuckDBPyConnection:
    """Return a database in memory, with the files as `commits` and all that the queries stand on."""
    database = duckdb.connect()
    database.execute(f"SET threads = {_THREADS}")
    database.execute(f"CREATE VIEW commits AS FROM read_parquet('{source}/*.parquet')")
    database.execute(f"CREATE MACRO in_period(t) AS t BETWEEN {period.start} AND {period.end}")
    database.execute(f"CREATE MACRO bucket_of(t) AS t - t % {period.bucket}")
    for statement in statistics_sql.SETUP:
        database.execute(statement)
    return database


def count_with_duckdb(source: Path, out: Path, period: Period) -> dict[str, float]:
    """Write the tables, a file for each."""
    out.mkdir(parents=True)
    seconds = {}
    with open_duckdb(source, period) as database:
        for name, query in statistics_sql.TABLES.items():
            target = out / f"{name}.parquet"
            copy = f"COPY ({query}) TO '{target}' (FORMAT parquet, COMPRESSION snappy)"
            seconds[name] = timed(partial(database.execute, copy))
    return seconds


def compare(source: Path, period: Period, spark_out: Path, duckdb_out: Path) -> None:
    """Fail unless both say the same in every row of every table."""
    for name, keys in statistics_sql.KEYS.items():
        order: list[tuple[str, Literal["ascending", "descending"]]] = [(key, "ascending") for key in keys]
        theirs = pq.read_table(duckdb_out / f"{name}.parquet").sort_by(order)
        ours = pq.read_table(spark_out / "tables" / name).sort_by(order)
        assert ours.column_names == theirs.column_names, name
        approximate = [column for column in statistics_sql.PERCENTILES if column in ours.column_names]
        exact = ours.drop_columns(approximate)
        assert exact.equals(theirs.drop_columns(approximate).cast(exact.schema)), f"{name} differs"
        if approximate:
            with open_duckdb(source, period) as database:
                _compare_percentiles(database, ours)


def _compare_percentiles(database: duckdb.DuckDBPyConnection, ours: pa.Table) -> None:
    """Check that each lies between the exact ones of a slightly smaller and a slightly larger share."""
    for name, share in statistics_sql.PERCENTILES.items():
        value = database.table("each_merge").aggregate(
            f"branch_id, quantile_disc({name.partition('_')[0]}, {share - _RANK_ERROR}) AS low, "
            f"quantile_disc({name.partition('_')[0]}, {share + _RANK_ERROR}) AS high"
        )
        bounds = pa.table(value.to_arrow_table()).sort_by("branch_id")
        found = ours[name].to_numpy()
        low, high = bounds["low"].to_numpy(), bounds["high"].to_numpy()
        none = np.isnan(found) & np.isnan(low)
        assert bool((none | ((low <= found) & (found <= high))).all()), f"{name} differs"


def main() -> None:
    """Print the figures."""
    sizes = [int(text) for text in sys.argv[1].split(",")] if len(sys.argv) > 1 else [10_000, 100_000]
    with tempfile.TemporaryDirectory(prefix="ravel-bench-") as name:
        folder = Path(name)
        periods = {}
        for size in (_SMALL, *sizes):
            note(f"write {size:,} commits")
            periods[size] = write_commits(folder / str(size), size)
        duckdb_seconds = {}
        for size, period in periods.items():
            note(f"DuckDB, {size:,} commits")
            gc.collect()
            with peak_of_all() as peak, processor_time_of_all() as processor:
                duckdb_seconds[size] = count_with_duckdb(
                    folder / str(size), folder / f"duckdb-{size}", period
                )
            tell("duckdb", size, duckdb_seconds[size], peak[0], processor[0])
        sessions: list[SparkSession] = []
        started = timed(
            lambda: sessions.append(start_session(f"local[{_THREADS}]", log_path=folder / "spark.log"))
        )
        spark = sessions[0]
        try:
            for size, period in periods.items():
                note(f"Spark, {size:,} commits")
                with peak_of_all() as peak, processor_time_of_all() as processor:
                    seconds = count_with_spark(spark, folder / str(size), folder / f"spark-{size}", period)
                if size == _SMALL:
                    figure("statistics_spark_start", started, "s", first_run=round(sum(seconds.values()), 2))
                    continue
                tell("spark", size, seconds, peak[0], processor[0])
                compare(folder / str(size), period, folder / f"spark-{size}", folder / f"duckdb-{size}")
                ratio = sum(seconds.values()) / sum(duckdb_seconds[size].values())
                figure("statistics_spark_to_duckdb", ratio, "ratio", commits=size)
        finally:
            spark.stop()


def tell(name: str, size: int, seconds: Mapping[str, float], memory: float, processor: float) -> None:
    """Print what one run took."""
    if size != _SMALL:
        each = {table: round(value, 2) for table, value in seconds.items()}
        figure(f"statistics_{name}", sum(seconds.values()), "s", commits=size, tables=each)
        figure(f"statistics_{name}_processor", processor, "s", commits=size)
        figure(f"statistics_{name}_memory", memory, "MiB", commits=size)


if __name__ == "__main__":
    main()
