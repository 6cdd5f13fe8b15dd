"""Main analysis job: reads exports, recomputes the order, compares, counts, and writes report and tables.

    OUT/report.html        for a person
    OUT/digests.json       {branch: {"digest", "commits"}}, to compare with `GET /branches/{branch}/digest` of any node
    OUT/tables/<name>/     Parquet; docs/reference/analysis-tables.md lists the tables and their columns
    OUT/csv/<name>.csv     the same on request
    OUT/spark.log          what Spark's JVM printed

The order is computed from acks alone. Verification then compares it with the ranks that the node exported, and with
Spark's own sort by those ranks, row by row.
"""

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from analytics.order.linearize import LINEARIZATION_COLUMNS, VOID, digest_orders, linearize
from analytics.reading.export_reader import Export, are_small, load_commits, read_export
from analytics.report.findings import Findings, NoSuchBranch, find_branch
from analytics.report.page import text_id
from analytics.report.report import OrderVerdict, render
from analytics.session import start_session
from analytics.tables.stores import load_receipts
from analytics.tables.tables import TableWriter

__all__ = ["AnalysisResult", "NoSuchBranch", "run"]

_STEPS: Final = 6
_CARRIED: Final = (
    "repo_id",
    "branch_name",
    "topic",
    "author",
    "body_kind",
    "sequence",
    "size",
    "time",
    "exported_rank",
    "is_disputed",
)

Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class AnalysisResult:
    """What came out. Unless `is_right`, the export is bad or something has a defect."""

    commits: int  # with a place in the order
    branches: int
    mismatches: int  # commits whose rank, position or copies disagree with the export; 0 if not verified
    wrong_digests: tuple[str, ...]  # branches (hex) whose digest is not the expected one
    quarantined: dict[str, int]  # fault -> commits without a place in the order
    report: Path
    tables: Path
    digests: Path
    seconds: float

    @property
    def is_right(self) -> bool:
        """Whether every commit has a place, and it is the expected one."""
        return not (self.mismatches or self.wrong_digests or self.quarantined)


def run(
    export_dir: Path,
    out_dir: Path,
    *,
    master: str = "local[*]",
    verify: bool = True,
    progress: Progress,
    expected: Mapping[str, str] | None = None,
    merge: Sequence[Path] = (),
    draw: str | None = None,
    with_csv: bool = False,
    giant_from: int | None = None,
    spark: SparkSession | None = None,
) -> AnalysisResult:
    """Analyze an export into `out_dir`. Raises ExportError, JavaMissing, MasterRefused, NoSuchBranch, LargeBranchRefused,
    OSError.

    `expected` maps branch ids to timeline digests, both hex. `merge` names more exports, of other nodes, to read as one with
    this. `draw` names the branch to draw, by its name or the start of its id. Branches of `giant_from` commits and more
    are ordered by many tasks. A session given as `spark` is used instead of a new one, and left running.
    """
    started = time.monotonic()
    step = _Steps(progress)
    with step("check the export"):
        exports = [read_export(folder, progress=progress) for folder in (export_dir, *merge)]
        out_dir.mkdir(parents=True, exist_ok=True)
    with step("start Spark"):
        is_small = are_small(exports)
        session = spark or start_session(master, is_small=is_small, log_path=out_dir / "spark.log")
    try:
        tables = TableWriter(session, out_dir, with_csv=with_csv, is_small=is_small)
        analysis = _Analysis(session, exports, out_dir, step, tables)
        return analysis.run(started, verify, expected or {}, draw, giant_from)
    finally:
        if spark is None:
            session.stop()


class _Steps:
    """Tells how far a run is: one line as a step begins, with the seconds since the start."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._started = time.monotonic()
        self._count = 0

    @contextmanager
    def __call__(self, name: str) -> Iterator[None]:
        self._count += 1
        self._progress(f"{self._count}/{_STEPS} {name} ({time.monotonic() - self._started:.1f} s)")
        yield

    def note(self, text: str) -> None:
        self._progress(f"    {text}")


class _Analysis:
    """One run over checked exports, in a session that is there."""

    def __init__(
        self, spark: SparkSession, exports: Sequence[Export], out: Path, step: _Steps, tables: TableWriter
    ) -> None:
        self._spark = spark
        self._exports = exports
        self._out = out
        self._step = step
        self._tables = tables

    def run(
        self,
        started: float,
        verify: bool,
        expected: Mapping[str, str],
        draw: str | None,
        giant_from: int | None,
    ) -> AnalysisResult:
        is_alone = len(self._exports) == 1
        with ExitStack() as kept:
            with self._step("linearize"):
                commits = load_commits(self._spark, *self._exports)
                if not is_alone:  # else rows are the files', which are read as fast as what is kept of them
                    kept.callback(commits.persist().unpersist)
                drawn = find_branch(commits, draw) if draw is not None else None
                placed = place_commits(commits, giant_from).persist()
                kept.callback(placed.unpersist)
                order = self._tables.write("linearization", placed.select(*LINEARIZATION_COLUMNS))
                digests = _collect_digests(order)
                faults = _count_faults(order)
                voids = faults.pop(VOID, 0)
                if voids:
                    self._step.note(f"{voids:,} commits are void: they stand in the graph and in no timeline")
            ordered = placed.where(F.col("fault").isNull())
            with self._step("verify" if verify else "verify (left out)"):
                mismatches = count_mismatches(ordered) if verify else 0
                wrong = tuple(
                    branch for branch, digest in expected.items() if digests.get(branch, ("", 0))[0] != digest
                )
            with self._step("count"):
                verdict = OrderVerdict(verify, mismatches, faults)
                findings = Findings(self._tables, self._exports, commits, order, ordered)
                receipts = load_receipts(self._exports, commits, is_alone=is_alone)
                if not is_alone:
                    kept.callback(receipts.persist().unpersist)
                report = findings.report(receipts, verdict, drawn, is_alone=is_alone)

        with self._step("write the report"):
            digests_path, report_path = self._out / "digests.json", self._out / "report.html"
            written = {
                text_id(bytes.fromhex(branch)): {"digest": digest, "commits": count}
                for branch, (digest, count) in sorted(digests.items())
            }
            digests_path.write_text(json.dumps(written, indent=1) + "\n", encoding="utf-8")
            report_path.write_text(render(report), encoding="utf-8")
        for fault, count in sorted(faults.items()):
            self._step.note(f"{count:,} commits have no place in the order: {fault}")
        return AnalysisResult(
            commits=report.commits,
            branches=report.branches,
            mismatches=mismatches,
            wrong_digests=wrong,
            quarantined=faults,
            report=report_path,
            tables=self._out / "tables",
            digests=digests_path,
            seconds=time.monotonic() - started,
        )


def count_mismatches(ordered: DataFrame) -> int:
    """How many commits of an order (as `place_commits` makes it) disagree with what was exported."""
    theirs = Window.partitionBy("branch_id").orderBy("passed", "exported_rank", "commit_id")
    return (
        (
            ordered.select(
                "branch_id", "commit_id", "passed", "rank", "position", "exported_rank", "is_disputed"
            ).withColumn("exported_order", F.row_number().over(theirs) - 1)
        )
        .where(
            # An altered export may state no rank at all, which no comparison but this one tells from an equal one.
            ~F.col("rank").eqNullSafe(F.col("exported_rank"))
            | (F.col("position") != F.col("exported_order"))
            | F.col("is_disputed")
        )
        .count()
    )


def place_commits(commits: DataFrame, giant_from: int | None = None) -> DataFrame:
    """All commits with what `linearize` says of them, and what else is compared and counted: all but ids and acks.

    The rank that the export states is `exported_rank`. Raises LargeBranchRefused.
    """
    stated = commits.withColumn("exported_rank", F.col("rank"))
    return linearize(stated, giant_from, carried=_CARRIED, with_shapes=True)


def _collect_digests(order: DataFrame) -> dict[str, tuple[str, int]]:
    rows = digest_orders(order).collect()
    return {bytes(row["branch_id"]).hex(): (row["digest"], row["commits"]) for row in rows}


def _count_faults(order: DataFrame) -> dict[str, int]:
    rows = order.where(F.col("fault").isNotNull()).groupBy("fault").agg(F.count("*").alias("commits"))
    return {row["fault"]: row["commits"] for row in rows.collect()}
