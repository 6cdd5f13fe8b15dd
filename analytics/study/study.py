"""Simulation study of timeline edits over models, delivery orders, heights and widths.

    OUT/study.html            for a person: figures beside those of the paper on ScuttleSort
    OUT/figures/<name>.svg    its pictures, each by itself
    OUT/tables/runs           one row per run
    OUT/tables/percentiles    one row per scenario, over its seeds
    OUT/runs.jsonl            the runs, as they are done
    OUT/spark.log             what Spark's JVM printed

The work of a run is in `analytics.study.edit_streams`; a run is one task (`analytics.study.runs`), and tasks share nothing,
so any number of machines helps.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pyarrow as pa
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_schema

from analytics.results import JOURNAL_NAME, write_table
from analytics.study.runs import Case, Progress, Run, Shipped, digest_of, replay_all
from analytics.study.tangle_models import DELIVERIES, MODELS, Graph

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
REAL_BRANCHES_SHARE: Final = 0.05
"""Of the commits of the largest, that a branch has at least. One commit of a small root branch would count for many."""

PAPERS_DELIVERY: Final = "random feed"
PAPERS_MODEL: Final = "two feeds"
FIRST_OF_TIES: Final = "two feeds, first of ties"
TIE_MODELS: Final = (PAPERS_MODEL, FIRST_OF_TIES)
"""The paper's model by either rule for feeds that are equally long: one is drawn, or the first is meant."""
TIE_WIDTH_MAX: Final = 32
"""Feeds up to which both rules are run at each height: with more they hardly differ, and runs take long."""
_LURKER_ACTIVE: Final = 32

STREAMS: Final = ("reference", "net", "waiting_room")
"""Columns of edits per commit."""
RUNS_SCHEMA: Final = """
    model string, delivery string, height bigint, width bigint, seed bigint, reference double, net double,
    waiting_room double, most_waiting bigint, ranks_changed double, seconds double
"""


@dataclass(frozen=True, slots=True)
class Scenario:
    """Model that is replayed once per seed and width."""

    model: str  # of MODELS, or the label of a real branch
    delivery: str
    height: int  # commits
    widths: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Plan:
    """Plan of a study."""

    heights: tuple[int, ...]
    widths: tuple[int, ...]
    seeds: int

    def scenarios(self) -> list[Scenario]:
        """Return the paper's model at every height, with few feeds by either rule for ties; the others at the smallest.

        Lurkers have about the height that the paper asks for.
        """
        low = min(self.heights)
        lurker_height = 256_000 if max(self.heights) >= 256_000 else low
        active = (min(_LURKER_ACTIVE, max(self.widths)),)
        few = tuple(width for width in self.widths if width <= TIE_WIDTH_MAX)
        return [
            Scenario(PAPERS_MODEL, "in order", low, self.widths),
            *(Scenario(PAPERS_MODEL, PAPERS_DELIVERY, height, self.widths) for height in self.heights),
            *(Scenario(FIRST_OF_TIES, PAPERS_DELIVERY, height, few) for height in self.heights if few),
            Scenario("two feeds, 4 references", PAPERS_DELIVERY, low, self.widths),
            Scenario("bursts", PAPERS_DELIVERY, low, self.widths),
            Scenario("partitions", PAPERS_DELIVERY, low, self.widths),
            Scenario("lurkers", PAPERS_DELIVERY, lurker_height, active),
        ]


FULL: Final = Plan(tuple(PAPER_EDITS), PAPER_WIDTHS, 10)
QUICK: Final = Plan((2048, 4096), (4, 8, 16, 32, 64), 3)
"""Ends within minutes on two cores."""


@dataclass(frozen=True, slots=True)
class RealBranch:
    """A branch of an export, to be replayed like a model."""

    label: str  # not a name that somebody chose
    graph: Graph
    received: Mapping[
        str, Sequence[int]
    ]  # delivery as a node saw it -> its commits in the order of their arrival there


@dataclass(frozen=True, slots=True)
class StudyTables:
    """Result of a study."""

    runs: list[Run]
    percentiles: list[Row]  # the paper's scenario first, real branches last
    real: tuple[str, ...]  # labels of the branches that are no model's


def run_study(
    spark: SparkSession,
    plan: Plan,
    out: Path,
    progress: Progress,
    real: Sequence[RealBranch] = (),
    *,
    resume: bool = False,
) -> StudyTables:
    """Run a plan and real branches, but for the runs that `resume` finds done; write the tables. Raises OSError."""
    scenarios = plan.scenarios()
    scenarios += [
        Scenario(branch.label, delivery, len(branch.graph), (len(set(branch.graph.feeds)),))
        for branch in real
        for delivery in (*branch.received, *DELIVERIES)
    ]
    shipped = {branch.label: _ship(spark, branch) for branch in real}
    cases = [case for scenario in scenarios for case in _cases(scenario, plan.seeds)]
    cases.sort(key=_turn)
    runs = replay_all(spark, cases, shipped, out / JOURNAL_NAME, resume=resume, progress=progress)
    of_runs = spark.createDataFrame(runs, RUNS_SCHEMA)
    percentiles = summarize(of_runs)
    is_other = ~(F.col("model").isin(*TIE_MODELS) & (F.col("delivery") == PAPERS_DELIVERY))
    is_real = F.col("model").isin([branch.label for branch in real])
    rows = percentiles.orderBy(is_other, is_real, "model", "delivery", "height", "width").collect()
    told = [dict(zip(of_runs.columns, run, strict=True)) for run in runs]
    write_table(out, "runs", pa.Table.from_pylist(told, to_arrow_schema(of_runs.schema)))
    told = [row.asDict() for row in rows]
    write_table(out, "percentiles", pa.Table.from_pylist(told, to_arrow_schema(percentiles.schema)))
    return StudyTables(runs, rows, tuple(branch.label for branch in real))


def summarize(runs: DataFrame) -> DataFrame:
    """Mean and percentiles of edits per commit, over the seeds of each scenario, beside the paper's figure if it has one."""
    figures = [
        F.when(
            F.col("model").isin(*TIE_MODELS)
            & (F.col("delivery") == PAPERS_DELIVERY)
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


def _ship(spark: SparkSession, branch: RealBranch) -> Shipped:
    real = (branch.graph.causes, branch.graph.feeds, branch.graph.names, branch.received)
    return Shipped(spark.sparkContext.broadcast(real), digest_of(real))


def _cases(scenario: Scenario, seeds: int) -> list[Case]:
    """Return the seeds of a model: one where nothing is random."""
    is_chance = scenario.model in MODELS or scenario.delivery == PAPERS_DELIVERY
    return [
        (scenario.model, scenario.delivery, scenario.height, width, seed)
        for width in scenario.widths
        for seed in range(seeds if is_chance else 1)
    ]


def _turn(case: Case) -> tuple[int, int, int]:
    """Small tangles first, then one seed of every width: what is done when a study stops says something of all widths.

    Wide ones before narrow ones: at the end a core waits for a short run.
    """
    _, _, height, width, seed = case
    return height, seed, -width
