"""The whole analysis on a real Spark: orders, counts, verification, and the page, against exports made by hand."""

import csv
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from blake3 import blake3
from pyspark.sql import DataFrame, SparkSession

from analytics.analyze import AnalysisResult, NoSuchBranch, run
from analytics.engines.spark_engine import place_commits
from analytics.order.linearize import digest_orders
from analytics.reading.export_reader import load_commits
from analytics.tables.definitions import TABLES
from analytics.tables.periods import SHOWN
from ravel.exports.schema import MANIFEST_NAME, TIME_END, text_id
from tests.support.analyses import Counted
from tests.support.builders import World, timeline
from tests.support.exports import (
    DAY_MS,
    T0_MS,
    Row,
    change_manifest,
    export_node,
    id_of,
    naive_order,
    write_export,
)
from tests.support.read_exports import read_export

pytestmark = pytest.mark.slow

DIAMOND = [
    Row("root", author="ada", time=T0_MS),
    Row("left", ("root",), author="ada", time=T0_MS + DAY_MS),
    Row("right", ("root",), author="bob", time=T0_MS + 2 * DAY_MS),
    Row("merge", ("left", "right"), author="ada", time=T0_MS + 3 * DAY_MS, size=200),
    Row("tip", ("right",), author="cleo", time=T0_MS + 3 * DAY_MS),
]


def _analyze(
    spark: SparkSession,
    export: Path,
    *,
    verify: bool = True,
    expected: Mapping[str, str] | None = None,
    merge: Sequence[Path] = (),
    draw: str | None = None,
    with_csv: bool = False,
    out: Path | None = None,
) -> AnalysisResult:
    return run(
        export,
        out or export.parent / "out",
        verify=verify,
        progress=lambda _: None,
        expected=expected,
        merge=merge,
        draw=draw,
        with_csv=with_csv,
        spark=spark,
    )


def _placed(spark: SparkSession, *exports: Path) -> DataFrame:
    """The order of some exports, without the tables and the page."""
    return place_commits(load_commits(spark, *map(read_export, exports))).order


def _table(spark: SparkSession, result: AnalysisResult, name: str, key: str) -> dict[Any, dict[str, Any]]:
    rows = spark.read.parquet(str(result.tables / name)).collect()
    return {row[key] if isinstance(row[key], int) else bytes(row[key]): row.asDict() for row in rows}


def _rows_of(
    spark: SparkSession, result: AnalysisResult, name: str, branch_id: bytes
) -> list[dict[str, Any]]:
    rows = spark.read.parquet(str(result.tables / name)).collect()
    return [row.asDict() for row in rows if bytes(row["branch_id"]) == branch_id]


def _digest(names: Iterable[str]) -> str:
    return blake3(b"".join(id_of(name) for name in names)).hexdigest()


SCRIPT = "<script>alert(1)</script>&amp;"
FORMULA = '=HYPERLINK("x"),y'
MANY = [
    *DIAMOND,
    *(Row(f"{branch}/root", branch=branch) for branch in ("a", "b", "c", "deep")),
    *(
        Row(f"{branch}/{n}", (f"{branch}/root",), branch, time=T0_MS + n * DAY_MS)
        for branch in ("a", "b", "c")
        for n in range(7)
    ),
    *(
        Row(
            f"{branch}/m{n}",
            (f"{branch}/{n}", f"{branch}/{n + 1}"),
            branch,
            time=T0_MS + (2 * n + 2) * DAY_MS,
        )
        for branch in ("a", "b", "c")
        for n in range(6)
    ),
    *(
        Row(f"deep/{n}", (f"deep/{n - 1}" if n else "deep/root",), "deep", time=T0_MS + n % 4 * DAY_MS)
        for n in range(300)
    ),
    Row("script", branch=SCRIPT, time=T0_MS),
    *(
        Row(f"script{n}", ("script",), SCRIPT, time=T0_MS) for n in range(3)
    ),  # smaller ones are not on the page
    Row("formula", branch=FORMULA, time=0),
]
"""Branches of several shapes and names: one analysis of them is looked at by several tests."""


@pytest.fixture(scope="module")
def analysed(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> AnalysisResult:
    folder = tmp_path_factory.mktemp("analysed")
    return _analyze(spark, write_export(folder / "export", MANY[:2], MANY[2:]), with_csv=True)


@pytest.mark.extended
def test_a_small_branch_is_counted_as_by_hand(spark: SparkSession, analysed: AnalysisResult) -> None:
    assert analysed.is_right
    assert (analysed.commits, analysed.branches) == (len(MANY), 7)
    branch = _table(spark, analysed, "branches", "branch_id")[id_of("main")]
    del branch["repo_id"], branch["branch_id"]
    assert branch == {
        "repo_name": "repo",
        "branch_name": "main",
        "commits": 5,
        "authors": 3,
        "topics": 1,
        "depth": 2,
        "roots": 1,
        "heads": 2,  # merge and tip
        "forks": 2,  # root and right
        "merges": 1,
        "width_max": 2,
        "width_mean": 5 / 3,
        "concurrency": 4 / 5,
        "bytes": 600,
        "first_time": T0_MS,
        "last_time": T0_MS + 3 * DAY_MS,
    }
    widths = _rows_of(spark, analysed, "widths", id_of("main"))
    assert {row["rank"]: row["width"] for row in widths} == {0: 1, 1: 2, 2: 2}
    ada = _table(spark, analysed, "authors", "author")[id_of("ada")]
    assert (ada["branches"], ada["merges"]) == (7, 1 + 3 * 6)
    growth = _rows_of(spark, analysed, "growth", id_of("main"))
    assert sum(row["commits"] for row in growth) == 5


@pytest.mark.extended
def test_the_order_is_the_definition_for_many_branches_and_for_one_that_is_deep(
    analysed: AnalysisResult,
) -> None:
    digests = json.loads(analysed.digests.read_bytes())
    assert digests == {
        text_id(id_of(branch)): {"digest": _digest(names), "commits": len(names)}
        for branch, names in naive_order(MANY).items()
    }


@pytest.mark.extended
def test_checkpoints_and_voids_give_the_nodes_own_timeline_too(spark: SparkSession, tmp_path: Path) -> None:
    world = World(tmp_path / "world")
    world.tell_story()
    export_node(world.replica.database, tmp_path / "export", "node", 1_700_000_000)
    branch, root = world.branch.branch_id, world.replica.root_branch(world.repo)
    ordered = timeline(world.replica, world.branch)
    named = {written.commit_id: name for name, written in world.commits.items()}
    names = [named.get(raw, "root") for raw in ordered]
    assert (names[:3], names[-1]) == (["root", "a", "b"], "i"), "f is void, and i has passed both checkpoints"
    assert names[3:5] == ["d", "e"], "c is of rank 2, and has passed the first"
    world.close()
    digest = blake3(b"".join(ordered)).hexdigest()
    expected = {branch.hex(): digest, root.branch_id.hex(): "00" * 32}
    result = _analyze(spark, tmp_path / "export", expected=expected)
    assert result.branches == 2
    assert result.quarantined == {}
    assert not result.is_right
    assert result.wrong_digests == (root.branch_id.hex(),), "and of the other branch it is right"
    tables = json.loads((tmp_path / "export" / MANIFEST_NAME).read_bytes())["tables"]
    change_manifest(tmp_path / "export", tables=tables | {"voids": []})
    digests = digest_orders(_placed(spark, tmp_path / "export")).collect()
    assert digest not in {row["digest"] for row in digests}


@pytest.mark.extended
def test_a_rank_that_the_acks_do_not_give_is_a_mismatch(spark: SparkSession, tmp_path: Path) -> None:
    forged = [*DIAMOND[:4], Row("tip", ("right",), rank=7)]
    export = write_export(tmp_path / "export", forged)
    assert _analyze(spark, export).mismatches == 1


@pytest.mark.extended
def test_of_two_nodes_what_contradicts_and_what_has_no_place_is_counted(
    spark: SparkSession, tmp_path: Path
) -> None:
    one = write_export(tmp_path / "one", DIAMOND[:4], node="one")
    two = write_export(tmp_path / "two", [DIAMOND[0], DIAMOND[2], DIAMOND[4]], node="two")
    both = _analyze(spark, one, merge=[two], out=tmp_path / "both")
    assert (both.commits, both.mismatches) == (5, 0)
    lies = [DIAMOND[0], Row("right", ("root",), author="mallory")]
    lies += [Row("orphan", ("nowhere",)), Row("child", ("orphan",)), Row("self", ("self",))]
    found = _analyze(spark, one, merge=[write_export(tmp_path / "liar", lies)])
    assert found.mismatches == 1
    assert found.quarantined == {"missing cause": 1, "behind a missing cause": 1, "cycle": 1}
    assert found.commits == 4
    assert not found.is_right
    page = found.report.read_text(encoding="utf-8")
    assert "stand elsewhere" in page
    assert "left out" in page


@pytest.mark.extended
def test_an_empty_export_has_a_report_too_and_it_says_that_nothing_was_compared(
    spark: SparkSession, tmp_path: Path
) -> None:
    result = _analyze(spark, write_export(tmp_path / "export"), verify=False)
    assert result.is_right
    assert (result.commits, result.branches) == (0, 0)
    assert json.loads(result.digests.read_bytes()) == {}
    page = result.report.read_text(encoding="utf-8")
    assert "No commit states a time" in page
    assert "not compared" in page


def test_one_absurd_clock_does_not_flatten_the_growth(tmp_path: Path) -> None:
    rows = [Row(f"c{n}", (f"c{n - 1}",) if n else (), time=T0_MS + n * DAY_MS) for n in range(100)]
    last = T0_MS + 99 * DAY_MS
    rows += [
        Row("far", ("c99",), time=TIME_END - 1, received=last),
        Row("none", ("far",), time=0, received=last),
    ]
    rows += [Row("ahead", ("none",), time=last + 30 * DAY_MS, received=last)]
    rows += [Row("odd", time=5, received=TIME_END - 1)]
    with Counted([read_export(write_export(tmp_path / "export", rows))], tmp_path / "out") as counted:
        counted.catalog.write(["growth"])
        period = counted.catalog.period("ordered", SHOWN)
        growth = counted.table("growth", "bucket_start")
    assert period is not None
    assert (period.start, period.end) == (T0_MS, last)
    assert growth[last - last % period.bucket]["commits"] >= 4, "dated after their receipt, or not at all"
    assert growth[None]["commits"] == 1, "dated and received far off"
    assert sum(cells["commits"] for cells in growth.values()) == len(rows)


@pytest.mark.extended
def test_the_report_stands_alone_with_its_pictures_and_escapes_what_others_wrote(
    analysed: AnalysisResult,
) -> None:
    page = analysed.report.read_text(encoding="utf-8")
    pictures = set(re.findall(r'<svg[^>]* role="img" aria-label="([^":]*)', page))
    assert pictures == {
        "Commits over time",
        "Distribution of merge latency",
        "Distribution of widths",
        "Distribution of concurrency",
        "Width per rank",
        "Heads over time",
        "Drawing of a tangle",
    }
    assert "<script" not in page
    assert "&lt;script&gt;" in page
    assert "default-src 'none'" in page
    fetched = re.findall(r"""(?:src|href)=["']?([^"'\s>]+)""", page)
    anchors = {link[1:] for link in fetched if link.startswith("#")}
    assert anchors <= set(re.findall(r'id="([^"]*)"', page))
    beside = [link for link in fetched if not link.startswith("#")]
    assert len(beside) == 2 * len(TABLES)
    assert all((analysed.report.parent / link).exists() for link in beside)


@pytest.mark.extended
def test_the_branch_that_was_asked_for_is_drawn_and_else_all_is_as_before(
    spark: SparkSession, analysed: AnalysisResult, tmp_path: Path
) -> None:
    export = analysed.report.parent.parent / "export"
    page = analysed.report.read_text(encoding="utf-8")
    assert "All 14 commits, from left" in page, "the most branched of those that fit"
    drawn = _analyze(spark, export, draw=text_id(id_of("deep"))[:8], out=tmp_path / "out")
    drawn_page = drawn.report.read_text(encoding="utf-8")
    assert "The last 60 of 301 commits, from left" in drawn_page
    assert drawn_page != page
    assert _without_drawing(drawn_page) == _without_drawing(page)
    with pytest.raises(NoSuchBranch, match="holds no branch that is called 'nothing'"):
        _analyze(spark, export, draw="nothing", out=tmp_path / "nothing")


def _without_drawing(page: str) -> list[str]:
    head, _, rest = page.partition('aria-label="Drawing of a tangle')
    assert rest
    return [head.rpartition("<h2")[0], *rest.split("<h2")[1:]]


@pytest.mark.extended
def test_tables_are_csv_too_and_hold_no_formula(analysed: AnalysisResult) -> None:
    folder = analysed.report.parent / "csv"
    assert {path.stem for path in folder.iterdir()} == {path.name for path in analysed.tables.iterdir()}
    with (folder / "branches.csv").open(newline="", encoding="utf-8") as file:
        (branch,) = (row for row in csv.DictReader(file) if "HYPERLINK" in row["branch_name"])
    assert branch["branch_name"] == "'" + FORMULA
    assert branch["branch_id"] == text_id(id_of(FORMULA))
    with (folder / "growth.csv").open(newline="", encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["branch_id"] == text_id(id_of(FORMULA))]
    assert [row["commits"] for row in rows] == [branch["commits"]], "an absurd date counts from its receipt"
    assert all(row["bucket_start"] for row in rows)


@pytest.mark.extended
def test_an_analysis_of_few_commits_takes_few_jobs(spark: SparkSession, tmp_path: Path) -> None:
    export = write_export(tmp_path / "export", MANY)
    before = _jobs(spark)
    assert _analyze(spark, export).is_right
    assert _jobs(spark) - before <= 30


def _jobs(spark: SparkSession) -> int:
    """How many jobs a session has run."""
    spark.range(1).collect()  # so that there is one
    return max(spark.sparkContext.statusTracker().getJobIdsForGroup())
