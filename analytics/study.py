"""Replay studies: how many edits keep a timeline in order, by model, delivery, height and width; each run a Spark task.

    OUT/study.html            for a person: figures beside those of the paper on ScuttleSort
    OUT/tables/runs           one row per run
    OUT/tables/percentiles    one row per scenario, over its seeds
    OUT/spark.log             what Spark's JVM printed

The work of a run is in `analytics.edit_streams`; a run is one task, and tasks share nothing, so any number of machines
helps. Runs are written as their scenario is done.
"""

import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pyspark import cloudpickle
from pyspark.core.broadcast import Broadcast
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from analytics import edit_streams, tangle_models
from analytics.edit_streams import replay
from analytics.tangle_models import DELIVERIES, MODELS, Graph

PAPER_WIDTHS: Final = (4, 8, 16, 32, 64, 128, 256, 512, 1024)
PAPER_EDITS: Final[Mapping[int, tuple[float, ...]]] = {
    32 * 1024: (2.5, 3.0, 3.6, 4.7, 7.1, 10.4, 13.1, 16.8, 21.5),
    64 * 1024: (3.8, 2.9, 5.7, 4.4, 7.0, 10.1, 13.2, 17.0, 22.0),
    128 * 1024: (1.7, 2.7, 3.7, 5.3, 6.6, 9.2, 13.9, 18.1, 24.8),
    256 * 1024: (2.6, 2.4, 3.5, 5.8, 6.9, 10.6, 14.6, 19.7, 24.5),
    512 * 1024: (1.6, 3.3, 2.9, 6.2, 7.3, 10.7, 15.0, 19.3, 26.0),
}
"""Edits per commit by height and width, one run each: github.com/tschudin/scuttlesort, doc/README.md, section 4."""

REAL_COMMITS_MAX: Final = 512 * 1024
"""Commits of a real branch to replay: the paper's largest. About 0.5 KB each in the driver and in every task."""
REAL_BRANCHES_MAX: Final = 4

_PAPERS_MODEL: Final = ("two feeds", "random feed")
_LURKER_ACTIVE: Final = 32

AS_RECEIVED: Final = "as received"
"""The delivery of a real branch by its time of receipt."""

STREAMS: Final = ("reference", "net", "waiting_room")
"""Columns of edits per commit."""
RUNS_SCHEMA: Final = """
    model string, delivery string, height bigint, width bigint, seed bigint, reference double, net double,
    waiting_room double, most_waiting bigint, ranks_changed double, seconds double
"""

Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Scenario:
    """What is replayed once per seed and width."""

    model: str  # of MODELS, or the label of a real branch
    delivery: str
    height: int  # commits
    widths: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Plan:
    """What a study runs."""

    heights: tuple[int, ...]
    widths: tuple[int, ...]
    seeds: int

    def scenarios(self) -> list[Scenario]:
        """The paper's model at every height, the others at the smallest; lurkers at about the height the paper asks for."""
        low = min(self.heights)
        lurker_height = 256_000 if max(self.heights) >= 256_000 else low
        active = (min(_LURKER_ACTIVE, max(self.widths)),)
        return [
            Scenario("two feeds", "in order", low, self.widths),
            *(Scenario(*_PAPERS_MODEL, height, self.widths) for height in self.heights),
            Scenario("bursts", "random feed", low, self.widths),
            Scenario("partitions", "random feed", low, self.widths),
            Scenario("lurkers", "random feed", lurker_height, active),
        ]


FULL: Final = Plan(tuple(PAPER_EDITS), PAPER_WIDTHS, 10)
QUICK: Final = Plan((2048, 4096), (4, 8, 16, 32, 64), 3)
"""Ends within minutes on two cores."""


@dataclass(frozen=True, slots=True)
class RealBranch:
    """A branch of an export, to be replayed like a model."""

    label: str  # not a name that somebody chose
    graph: Graph
    received: Sequence[int]  # its commits by the time at which the exporting node accepted them


@dataclass(frozen=True, slots=True)
class StudyTables:
    """What a study gives."""

    runs: int
    percentiles: list[Row]


def run_study(
    spark: SparkSession, plan: Plan, out: Path, progress: Progress, real: Sequence[RealBranch] = ()
) -> StudyTables:
    """Run a plan and real branches; write the tables. Raises OSError."""
    path = str((out / "tables" / "runs").absolute())
    scenarios = plan.scenarios()
    scenarios += [
        Scenario(branch.label, delivery, len(branch.graph), (len(set(branch.graph.feeds)),))
        for branch in real
        for delivery in (AS_RECEIVED, *DELIVERIES)
    ]
    shipped = {
        branch.label: spark.sparkContext.broadcast(
            (branch.graph.causes, branch.graph.feeds, branch.graph.names, branch.received)
        )
        for branch in real
    }
    began = time.monotonic()
    runs = 0
    for number, scenario in enumerate(scenarios):
        cases = _cases(scenario, plan.seeds)
        progress(
            f"{number + 1}/{len(scenarios)} {scenario.model}, {scenario.delivery}, {scenario.height:,} commits: "
            f"{len(cases)} runs ({time.monotonic() - began:.0f} s)"
        )
        rows = _replay_all(spark, cases, shipped.get(scenario.model))
        table = spark.createDataFrame(rows, RUNS_SCHEMA).coalesce(1)
        table.write.mode("append" if number else "overwrite").parquet(path)
        runs += len(rows)
    written = spark.read.schema(RUNS_SCHEMA).parquet(path)
    percentiles = summarize(written)
    target = str((out / "tables" / "percentiles").absolute())
    percentiles.write.mode("overwrite").parquet(target)
    read = spark.read.schema(percentiles.schema).parquet(target)
    return StudyTables(runs, read.orderBy("model", "delivery", "height", "width").collect())


def summarize(runs: DataFrame) -> DataFrame:
    """Mean and percentiles of edits per commit, over the seeds of each scenario, beside the paper's figure if it has one."""
    figures = [
        F.when(
            (F.col("model") == _PAPERS_MODEL[0])
            & (F.col("delivery") == _PAPERS_MODEL[1])
            & (F.col("height") == height)
            & (F.col("width") == width),
            edits,
        )
        for height, row in PAPER_EDITS.items()
        for width, edits in zip(PAPER_WIDTHS, row, strict=True)
    ]
    by_stream = [
        column
        for stream in STREAMS
        for column in (
            F.mean(stream).alias(f"{stream}_mean"),
            *(F.percentile(stream, F.lit(share / 100)).alias(f"{stream}_p{share}") for share in (10, 50, 90)),
        )
    ]
    keys = ("model", "delivery", "height", "width")
    return (
        runs.groupBy(*keys)
        .agg(
            F.count("*").alias("seeds"),
            *by_stream,
            F.max("most_waiting").alias("most_waiting"),
            F.mean("ranks_changed").alias("ranks_changed_mean"),
            F.mean("seconds").alias("seconds_mean"),
        )
        .withColumn("paper", F.coalesce(*figures))
    )


# Plain tuples, since data of a task is pickled by the name of its class, which a cluster does not know.
_Case = tuple[str, str, int, int, int]
"""Model, delivery, height, width, seed."""
_Run = tuple[str, str, int, int, int, float, float, float, int, float, float]
"""A row of runs."""
_Real = tuple[Sequence[tuple[int, ...]], Sequence[int], Sequence[int], Sequence[int]]
"""Causes, feeds, names, and the delivery as received."""


def _cases(scenario: Scenario, seeds: int) -> list[_Case]:
    """The longest first, so that no core is left with one alone at the end. Without chance one seed will do."""
    is_chance = scenario.model in MODELS or scenario.delivery == "random feed"
    return [
        (scenario.model, scenario.delivery, scenario.height, width, seed)
        for width in sorted(scenario.widths, reverse=True)
        for seed in range(seeds if is_chance else 1)
    ]


def _replay_all(spark: SparkSession, cases: Sequence[_Case], real: Broadcast[_Real] | None) -> list[_Run]:
    # These functions travel with the tasks, so that a cluster needs no copy of Ravel.
    for module in (tangle_models, edit_streams, sys.modules[__name__]):
        cloudpickle.register_pickle_by_value(module)  # type: ignore[no-untyped-call]  # Spark ships it without annotations

    def replay_cases(part: Iterable[_Case]) -> Iterator[_Run]:
        for case in part:
            yield _replay_case(case, real.value if real else None)

    return spark.sparkContext.parallelize(cases, len(cases)).mapPartitions(replay_cases).collect()


def _replay_case(case: _Case, real: _Real | None) -> _Run:
    began = time.perf_counter()
    model, delivery, height, width, seed = case
    graph = MODELS[model](height, width, seed) if real is None else Graph(*real[:3])
    is_log = real is not None and delivery == AS_RECEIVED
    order = real[3] if real is not None and is_log else DELIVERIES[delivery](graph, seed)
    counts = replay(graph, order)
    total = counts.commits
    return (
        *case,
        counts.reference / total,
        counts.net / total,
        counts.waiting_room / total,
        counts.most_waiting,
        counts.ranks_changed / total,
        time.perf_counter() - began,
    )
