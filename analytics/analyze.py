"""The whole job: check an export, order it anew, compare, count, draw. Reads exports, writes one folder.

    OUT/report.html        for a person
    OUT/digests.json       {branch: {"digest", "commits"}}, to compare with `GET /branches/{branch}/digest` of any node
    OUT/tables/<name>/     Parquet: linearization, branches, widths, growth, authors
    OUT/spark.log          what Spark's JVM printed

The order is computed from acks alone. Verification then compares it with the ranks that the node exported, and with
Spark's own sort by those ranks, row by row.
"""

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pyspark.sql import DataFrame, Row, SparkSession, Window
from pyspark.sql import functions as F

from analytics import statistics
from analytics.export_reader import Export, load_commits, read_export
from analytics.linearize import VOID, digest_orders, linearize
from analytics.pictures import WidthBin
from analytics.report import AuthorLine, BranchLine, BranchWidths, Growth, Report, render, text_id
from analytics.session import start_session

_STEPS: Final = 6
_BRANCH_LINES_MAX: Final = 100
_AUTHOR_LINES_MAX: Final = 20
_WIDTH_PICTURES_MAX: Final = 4
"""What a page can show and a person take in; the tables hold all."""
_WIDTH_BINS_MAX: Final = 240

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
    spark: SparkSession | None = None,
) -> AnalysisResult:
    """Analyze an export into `out_dir`. Raises ExportError, JavaMissing, MasterRefused, OSError.

    `expected` maps branch ids to timeline digests, both hex. `merge` names more exports, of other nodes, to read as one with
    this. A session given as `spark` is used instead of a new one, and left running.
    """
    started = time.monotonic()
    step = _Steps(progress)
    with step("check the export"):
        exports = [read_export(folder) for folder in (export_dir, *merge)]
        out_dir.mkdir(parents=True, exist_ok=True)
    with step("start Spark"):
        session = spark or start_session(master, log_path=out_dir / "spark.log")
    try:
        return _Analysis(session, exports, out_dir, step).run(started, verify, expected or {})
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

    def __init__(self, spark: SparkSession, exports: Sequence[Export], out: Path, step: _Steps) -> None:
        self._spark = spark
        self._exports = exports
        self._out = out
        self._step = step

    def run(self, started: float, verify: bool, expected: Mapping[str, str]) -> AnalysisResult:
        commits = load_commits(self._spark, *self._exports).persist()
        try:
            with self._step("linearize"):
                order = self._write("linearization", linearize(commits))
                digests = _collect_digests(order)
                faults = _count_faults(order)
                voids = faults.pop(VOID, 0)
                if voids:
                    self._step.note(f"{voids:,} commits are void: they stand in the graph and in no timeline")
            ordered = _join(commits, order).persist()
            try:
                with self._step("verify" if verify else "verify (left out)"):
                    mismatches = count_mismatches(ordered) if verify else 0
                    wrong = tuple(
                        branch
                        for branch, digest in expected.items()
                        if digests.get(branch, ("", 0))[0] != digest
                    )
                report = self._count(ordered, verify, mismatches, faults)
            finally:
                ordered.unpersist()
        finally:
            commits.unpersist()

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

    def _count(self, ordered: DataFrame, verify: bool, mismatches: int, faults: dict[str, int]) -> Report:
        with self._step("count"):
            branches = self._write("branches", statistics.count_branches(ordered))
            widths = self._write("widths", statistics.count_widths(ordered))
            authors = self._write("authors", statistics.count_authors(ordered))
            growth = self._grow(ordered)
            total = branches.agg(
                F.sum("commits").alias("commits"),
                F.count("*").alias("branches"),
                F.count_distinct("repo_id").alias("repos"),
                F.sum("bytes").alias("bytes"),
            ).collect()[0]
            largest = branches.orderBy(F.desc("commits"), "branch_id").limit(_BRANCH_LINES_MAX).collect()
            busiest = authors.orderBy(F.desc("commits"), "author").limit(_AUTHOR_LINES_MAX).collect()
            return Report(
                nodes=tuple(export.node for export in self._exports),
                exported_at=max(export.created_at for export in self._exports),
                commits=total["commits"] or 0,
                branches=total["branches"],
                repos=total["repos"],
                authors=authors.count(),
                size=total["bytes"] or 0,
                is_verified=verify,
                mismatches=mismatches,
                faults=faults,
                branch_lines=tuple(_branch_line(row) for row in largest),
                author_lines=tuple(
                    AuthorLine(bytes(row["author"]), row["commits"], row["branches"], row["last_time"])
                    for row in busiest
                ),
                growth=growth,
                widths=tuple(_collect_widths(widths, row) for row in largest[:_WIDTH_PICTURES_MAX]),
            )

    def _grow(self, ordered: DataFrame) -> Growth | None:
        period = statistics.find_period(ordered)
        if period is None:
            nothing = "branch_id binary, bucket_start bigint, commits bigint"
            self._write("growth", self._spark.createDataFrame([], nothing))
            return None
        table = self._write("growth", statistics.count_growth(ordered, period))
        points = table.groupBy("bucket_start").agg(F.sum("commits").alias("commits")).orderBy("bucket_start")
        rows = tuple((row["bucket_start"], row["commits"]) for row in points.collect())
        return Growth(rows, period.bucket, period.left_out)

    def _write(self, name: str, table: DataFrame) -> DataFrame:
        """Write a table and read it back, so that what follows says what the table says, and nothing is computed twice."""
        path = str((self._out / "tables" / name).absolute())
        table.write.mode("overwrite").parquet(path)
        return self._spark.read.schema(table.schema).parquet(path)


def count_mismatches(ordered: DataFrame) -> int:
    """How many commits of an order (as `_join` makes it) disagree with what was exported."""
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


def _join(commits: DataFrame, order: DataFrame) -> DataFrame:
    """Commits with a place in the order, with rank and position as computed here and the node's as `exported_rank`."""
    placed = order.where(F.col("fault").isNull()).select(
        "branch_id", "commit_id", "passed", "rank", "position"
    )
    exported = commits.withColumnRenamed("rank", "exported_rank").drop("position")
    return exported.join(placed, on=["branch_id", "commit_id"], how="inner")


def _collect_digests(order: DataFrame) -> dict[str, tuple[str, int]]:
    rows = digest_orders(order).collect()
    return {bytes(row["branch_id"]).hex(): (row["digest"], row["commits"]) for row in rows}


def _count_faults(order: DataFrame) -> dict[str, int]:
    rows = order.where(F.col("fault").isNotNull()).groupBy("fault").agg(F.count("*").alias("commits"))
    return {row["fault"]: row["commits"] for row in rows.collect()}


def _branch_line(row: Row) -> BranchLine:
    return BranchLine(
        branch_id=bytes(row["branch_id"]),
        name=row["branch_name"],
        commits=row["commits"],
        authors=row["authors"],
        depth=row["depth"],
        heads=row["heads"],
        forks=row["forks"],
        merges=row["merges"],
        width_max=row["width_max"],
        width_mean=row["width_mean"],
        size=row["bytes"],
        first_time=row["first_time"],
        last_time=row["last_time"],
    )


def _collect_widths(widths: DataFrame, branch: Row) -> BranchWidths:
    ranks = branch["depth"] + 1
    step = -(-ranks // _WIDTH_BINS_MAX)
    rows = (
        widths.where(F.col("branch_id") == F.lit(bytes(branch["branch_id"])))
        .groupBy((F.col("rank") - F.col("rank") % step).alias("rank"))
        .agg(F.max("width").alias("widest"), F.avg("width").alias("mean"))
        .orderBy("rank")
    )
    bins = tuple(WidthBin(row["rank"], row["widest"], row["mean"]) for row in rows.collect())
    return BranchWidths(branch["branch_name"], ranks, bins)
