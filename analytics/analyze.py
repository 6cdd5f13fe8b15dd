"""Main analysis job: reads exports, recomputes the order, compares, counts, and writes report and tables.

    OUT/report.html        for a person
    OUT/summary.json       what the next analysis into OUT compares itself with
    OUT/digests.json       {branch: {"digest", "commits"}} of the largest branches (the table has all), to compare with
                           `GET /branches/{branch}/digest` of any node
    OUT/tables/<name>/     Parquet; docs/research/tables.md lists the tables and their columns
    OUT/csv/<name>.csv     the same, of small tables, and on request of all
    OUT/spark.log          what Spark's JVM printed

The order is computed from acks alone. Verification then compares it with the ranks that the node exported, row by row, and
on request with the engine's own sort by those ranks. What is said here holds for every engine.
"""

import json
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from analytics.command import ENGINES
from analytics.engines.engine import FIRST, Catalog, Engine
from analytics.order.branch_tasks import FAULTS, VOID
from analytics.order.kernel import MISSING_CAUSE
from analytics.reading.branch_lookup import NoSuchBranch, find_branch
from analytics.reading.given_exports import GivenExports, SetAside
from analytics.reading.limits import DIGESTS_LISTED_MAX
from analytics.report.downloads import write_downloads
from analytics.report.findings import Findings
from analytics.report.page import NO_NAMES, Names
from analytics.report.report import OrderVerdict, render
from analytics.report.standing import load_summary, save_summary
from ravel.exports.checking import Export
from ravel.exports.schema import text_id

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["AnalysisResult", "NoSuchBranch", "run"]

_STEPS: Final = 6
_STARTS: Final = {"spark": "start Spark", "local": "open DuckDB"}

_COUNTED: Final = """
SELECT
    fault,
    count(*) AS commits,
    count(*) FILTER (WHERE rank IS DISTINCT FROM exported_rank OR is_disputed) AS mismatches,
    count(*) FILTER (WHERE is_disputed) AS disputed
FROM placed
GROUP BY fault
"""
"""The order is that of (checkpoints passed, rank, id): where ranks are those that are stated, so is the order. An altered
export may state no rank at all, which IS DISTINCT FROM alone tells from an equal one."""

_LARGEST: Final = f"""
SELECT branch_id, commits, digest FROM digests ORDER BY commits DESC, branch_id LIMIT {DIGESTS_LISTED_MAX}
"""

_NOTHING_MORE: Final[Mapping[str, str]] = MappingProxyType({})

Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class AnalysisResult:
    """Result of one analysis. Unless `is_right`, the export is bad or something has a defect."""

    commits: int  # with a place in the order
    branches: int
    mismatches: int  # commits whose rank, position or copies disagree with the export; 0 if not verified
    wrong_digests: tuple[str, ...]  # branches (hex) whose digest is not the expected one
    quarantined: dict[str, int]  # fault -> commits without a place in the order
    report: Path
    tables: Path
    digests: Path
    set_aside: tuple[SetAside, ...]  # exports that were not read
    seconds: float

    @property
    def is_right(self) -> bool:
        """True if every commit has a place, and it is the expected one."""
        return not (self.mismatches or self.wrong_digests or self.quarantined)


def run(
    export_dir: str | Path,
    out_dir: Path,
    *,
    master: str | None = None,
    verify: bool = True,
    progress: Progress,
    expected: Mapping[str, str] | None = None,
    merge: Sequence[str | Path] = (),
    draw: str | None = None,
    with_csv: bool = False,
    giant_from: int | None = None,
    engine: str = ENGINES[0],
    spark: "SparkSession | None" = None,
    names: Mapping[str, str] = _NOTHING_MORE,
    given: GivenExports | None = None,
    conf: Mapping[str, str] = _NOTHING_MORE,
    out_url: str = "",
    with_every_tangle: bool = False,
) -> AnalysisResult:
    """Analyze an export, a folder or URL, into `out_dir`. Raises ExportError, JavaMissing, MasterRefused, NoSuchBranch,
    LargeBranchRefused, OSError, and the engine's own errors.

    `verify` compares the ranks that were found with those that the export states. `expected` maps branch ids to timeline
    digests, both hex. `merge` names more exports, of other nodes, to read as one with this. `draw` names the branch to
    draw: its name, REPO:NAME, or the start of its id. Branches of `giant_from` commits and more are ordered by many
    tasks. `engine` is one of ENGINES. A session given as `spark` is used instead of a new one, and left running. `given`
    says whether a bad export stops the analysis, as it does by default, and has those set aside. `conf` are settings of a
    new session. Tables of tangles have feeds and groups `with_every_tangle`. `names` says what the page calls users, nodes
    and repos, by their ids as text; where an export has pseudonyms it calls none by a name. On a cluster parts are checked
    and read by tasks, and large tables are written by them: below `out_url` where that is given, else in `out_dir`, which
    all machines must see then.
    """
    started = time.monotonic()
    step = _Steps(progress)
    given = given or GivenExports(progress, strict=True)
    is_here = engine == "local" or _runs_here(master, spark, conf)
    with step("check the export" if is_here else "read the manifests"):
        exports = given.read([export_dir, *merge], is_here=is_here)
        drawn = None if draw is None else find_branch(exports, draw, names)
        out_dir.mkdir(parents=True, exist_ok=True)
    with step("start Spark, and check the parts" if not is_here else _STARTS[engine]):
        if engine == "local":
            runner = _start_local(exports, out_dir)
        else:
            check = None if is_here else given.check
            runner, exports = _start_spark(exports, out_dir, master, spark, conf, check, out_url)
        runner.with_every_tangle = with_every_tangle
    try:
        called = NO_NAMES if any(export.pseudonyms for export in exports) else Names(names)
        return _Analysis(
            runner, exports, out_dir, step, called, with_csv=with_csv, set_aside=tuple(given.set_aside)
        ).run(started, verify, expected or {}, drawn, giant_from)
    finally:
        runner.close()


# Imported below: neither engine needs what the other one is made of.


def _runs_here(master: str | None, spark: "SparkSession | None", conf: Mapping[str, str]) -> bool:
    from analytics.session import runs_here

    return runs_here(master, spark, conf)


def _start_local(exports: Sequence[Export], out: Path) -> Engine:
    from analytics.engines.local_engine import LocalEngine

    return LocalEngine(exports, out)


def _start_spark(
    exports: list[Export],
    out: Path,
    master: str | None,
    spark: "SparkSession | None",
    conf: Mapping[str, str],
    check: "Callable[[SparkSession, Sequence[Export]], list[Export]] | None",
    out_url: str,
) -> tuple[Engine, list[Export]]:
    from analytics.engines.spark_engine import SparkEngine

    engine = SparkEngine(exports, out, master=master, spark=spark, conf=conf, out_url=out_url)
    if check is not None:
        try:
            exports = engine.check(check)
        except BaseException:  # an interrupt too: else the session that was started stays
            engine.close()
            raise
    return engine, exports


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
    """One run over checked exports, by an engine that is there."""

    def __init__(
        self,
        engine: Engine,
        exports: Sequence[Export],
        out: Path,
        step: _Steps,
        names: Names,
        *,
        with_csv: bool,
        set_aside: tuple[SetAside, ...],
    ) -> None:
        self._names = names
        self._set_aside = set_aside
        self._with_csv = with_csv
        self._engine = engine
        self._exports = exports
        self._out = out
        self._step = step
        self._catalog = Catalog(engine, exports)

    def run(
        self,
        started: float,
        verify: bool,
        expected: Mapping[str, str],
        drawn: bytes | None,
        giant_from: int | None,
    ) -> AnalysisResult:
        with self._step("linearize"):
            catalog = self._catalog
            catalog.need("commits")
            self._engine.order(giant_from)
            catalog.write(FIRST)
            digests = self._engine.rows(_LARGEST)
            counted = self._engine.rows(_COUNTED)
            faults = Counter({row["fault"]: row["commits"] for row in counted if row["fault"] is not None})
            catalog.is_complete = FAULTS[MISSING_CAUSE] not in faults
            voids = faults.pop(VOID, 0)
            if voids:
                self._step.note(f"{voids:,} commits are void: they stand in the graph and in no timeline")
        with self._step("verify" if verify else "verify (left out)"):
            mismatches = sum(row["mismatches"] for row in counted if verify and row["fault"] is None)
            wrong = self._wrong_digests(expected)
        with self._step("count"):
            verdict = OrderVerdict(
                verify, mismatches, faults, tuple((one.source, one.reason) for one in self._set_aside)
            )
            before = load_summary(self._out)
            findings = Findings(self._engine, self._catalog, self._exports, before, self._names)
            report = findings.report(
                verdict,
                drawn,
                lambda: write_downloads(
                    self._out, with_all=self._with_csv, rows_elsewhere=self._engine.rows_elsewhere
                ),
            )

        with self._step("write the report"):
            digests_path, report_path = self._out / "digests.json", self._out / "report.html"
            written = {
                text_id(row["branch_id"]): {"digest": row["digest"], "commits": row["commits"]}
                for row in sorted(digests, key=itemgetter("branch_id"))
            }
            digests_path.write_text(json.dumps(written, indent=1) + "\n", encoding="utf-8")
            report_path.write_text(render(report), encoding="utf-8")
            save_summary(self._out, report.standing.now)
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
            set_aside=self._set_aside,
            seconds=time.monotonic() - started,
        )

    def _wrong_digests(self, expected: Mapping[str, str]) -> tuple[str, ...]:
        if not expected:
            return ()
        wanted = ", ".join(f"'{bytes.fromhex(branch).hex().upper()}'" for branch in expected)
        rows = self._engine.rows(f"SELECT branch_id, digest FROM digests WHERE hex(branch_id) IN ({wanted})")
        found = {row["branch_id"].hex(): row["digest"] for row in rows}
        return tuple(branch for branch, digest in expected.items() if found.get(branch) != digest)
