"""The whole analysis on a real Spark: orders, counts, verification, and the page, against exports made by hand."""

import base64
import csv
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from blake3 import blake3
from pyspark.sql import SparkSession

from analytics import statistics, times
from analytics.analyze import AnalysisResult, NoSuchBranch, run
from analytics.export_reader import load_commits, read_export
from storage.export_schema import MANIFEST_NAME
from tests.builders import World, timeline
from tests.exports import DAY_MS, T0_MS, Row, export_node, id_of, naive_order, write_export

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
) -> AnalysisResult:
    return run(
        export,
        export.parent / "out",
        verify=verify,
        progress=lambda _: None,
        expected=expected,
        merge=merge,
        draw=draw,
        with_csv=with_csv,
        spark=spark,
    )


def _table(spark: SparkSession, result: AnalysisResult, name: str, key: str) -> dict[Any, dict[str, Any]]:
    rows = spark.read.parquet(str(result.tables / name)).collect()
    return {row[key] if isinstance(row[key], int) else bytes(row[key]): row.asDict() for row in rows}


def _digest(names: Iterable[str]) -> str:
    return blake3(b"".join(id_of(name) for name in names)).hexdigest()


def _text_id(raw: bytes) -> str:
    return base64.b32encode(raw).decode().rstrip("=").lower()


@pytest.mark.extended
def test_a_small_branch_is_counted_as_by_hand(spark: SparkSession, tmp_path: Path) -> None:
    result = _analyze(spark, write_export(tmp_path / "export", DIAMOND[:2], DIAMOND[2:]))
    assert result.is_right
    assert (result.commits, result.branches) == (5, 1)
    branch = _table(spark, result, "branches", "branch_id")[id_of("main")]
    del branch["repo_id"], branch["branch_id"]
    assert branch == {
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
    widths = _table(spark, result, "widths", "rank")
    assert {rank: row["width"] for rank, row in widths.items()} == {0: 1, 1: 2, 2: 2}
    ada = _table(spark, result, "authors", "author")[id_of("ada")]
    assert (ada["commits"], ada["branches"], ada["merges"], ada["bytes"]) == (3, 1, 1, 400)
    growth = _table(spark, result, "growth", "bucket_start")
    assert sum(row["commits"] for row in growth.values()) == 5


@pytest.mark.extended
def test_the_order_is_the_definition_for_many_branches_and_for_one_that_is_deep(
    spark: SparkSession, tmp_path: Path
) -> None:
    rows = [Row(f"{branch}/root", branch=branch) for branch in ("a", "b", "c", "deep")]
    for branch in ("a", "b", "c"):
        rows += [Row(f"{branch}/{n}", (f"{branch}/root",), branch) for n in range(7)]
        rows += [Row(f"{branch}/m{n}", (f"{branch}/{n}", f"{branch}/{n + 1}"), branch) for n in range(6)]
    rows += [Row(f"deep/{n}", (f"deep/{n - 1}" if n else "deep/root",), "deep") for n in range(300)]
    result = _analyze(spark, write_export(tmp_path / "export", rows))
    assert result.is_right
    digests = json.loads(result.digests.read_bytes())
    assert digests == {
        _text_id(id_of(branch)): {"digest": _digest(names), "commits": len(names)}
        for branch, names in naive_order(rows).items()
    }


@pytest.mark.extended
def test_a_nodes_own_export_gives_the_nodes_own_timeline(spark: SparkSession, tmp_path: Path) -> None:
    world = World(tmp_path / "world")
    world.write("a, a <- b, a <- c, b c <- d, c <- e, d e <- f, a <- g")
    export_node(world.replica.database, tmp_path / "export", "node", 1_700_000_000)
    expected = {
        branch.branch_id.hex(): blake3(b"".join(timeline(world.replica, branch))).hexdigest()
        for branch in (world.branch, world.replica.root_branch(world.repo))
    }
    world.close()
    result = _analyze(spark, tmp_path / "export", expected=expected)
    assert result.is_right
    assert result.branches == 2
    wrong = _analyze(
        spark, tmp_path / "export", expected={**expected, world.branch.branch_id.hex(): "00" * 32}
    )
    assert not wrong.is_right
    assert wrong.wrong_digests == (world.branch.branch_id.hex(),)


@pytest.mark.extended
def test_checkpoints_and_voids_give_the_nodes_own_timeline_too(spark: SparkSession, tmp_path: Path) -> None:
    world = World(tmp_path / "world")
    world.tell_story()
    export_node(world.replica.database, tmp_path / "export", "node", 1_700_000_000)
    branch = world.branch.branch_id
    ordered = timeline(world.replica, world.branch)
    named = {written.commit_id: name for name, written in world.commits.items()}
    names = [named.get(raw, "root") for raw in ordered]
    assert (names[:3], names[-1]) == (["root", "a", "b"], "i"), "f is void, and i has passed both checkpoints"
    assert names[3:5] == ["d", "e"], "c is of rank 2, and has passed the first"
    world.close()
    expected = {branch.hex(): blake3(b"".join(ordered)).hexdigest()}
    result = _analyze(spark, tmp_path / "export", expected=expected)
    assert result.is_right
    assert result.quarantined == {}
    altered = json.loads((tmp_path / "export" / MANIFEST_NAME).read_bytes())
    altered["tables"]["voids"] = []
    (tmp_path / "export" / MANIFEST_NAME).write_text(json.dumps(altered))
    assert _analyze(spark, tmp_path / "export", expected=expected).wrong_digests == (branch.hex(),)


@pytest.mark.extended
def test_a_rank_that_the_acks_do_not_give_is_a_mismatch(spark: SparkSession, tmp_path: Path) -> None:
    forged = [*DIAMOND[:4], Row("tip", ("right",), rank=7)]
    result = _analyze(spark, write_export(tmp_path / "export", forged))
    assert result.mismatches == 1
    assert not result.is_right
    assert "stand elsewhere" in result.report.read_text(encoding="utf-8")
    unverified = _analyze(spark, tmp_path / "export", verify=False)
    assert unverified.mismatches == 0
    assert "not compared" in unverified.report.read_text(encoding="utf-8")


@pytest.mark.extended
def test_what_has_no_place_in_the_order_is_left_out_and_counted(spark: SparkSession, tmp_path: Path) -> None:
    rows = [*DIAMOND, Row("orphan", ("nowhere",)), Row("child", ("orphan",)), Row("self", ("self",))]
    result = _analyze(spark, write_export(tmp_path / "export", rows))
    assert result.quarantined == {"missing cause": 1, "behind a missing cause": 1, "cycle": 1}
    assert result.commits == 5
    assert not result.is_right
    assert "left out" in result.report.read_text(encoding="utf-8")


@pytest.mark.extended
def test_exports_of_two_nodes_are_one_and_a_contradiction_is_found(
    spark: SparkSession, tmp_path: Path
) -> None:
    one = write_export(tmp_path / "one", DIAMOND[:4], node="one")
    two = write_export(tmp_path / "two", [DIAMOND[0], DIAMOND[2], DIAMOND[4]], node="two")
    both = _analyze(spark, one, merge=[two])
    assert both.is_right
    assert both.commits == 5
    liar = write_export(tmp_path / "liar", [DIAMOND[0], Row("right", ("root",), author="mallory")])
    found = _analyze(spark, one, merge=[liar])
    assert found.mismatches == 1


@pytest.mark.extended
def test_an_empty_export_has_a_report_too(spark: SparkSession, tmp_path: Path) -> None:
    result = _analyze(spark, write_export(tmp_path / "export"))
    assert result.is_right
    assert (result.commits, result.branches) == (0, 0)
    assert json.loads(result.digests.read_bytes()) == {}
    assert "No commit states a time" in result.report.read_text(encoding="utf-8")


@pytest.mark.extended
def test_one_absurd_clock_does_not_flatten_the_growth(spark: SparkSession, tmp_path: Path) -> None:
    rows = [Row(f"c{n}", (f"c{n - 1}",) if n else (), time=T0_MS + n * DAY_MS) for n in range(100)]
    rows += [Row("far", ("c99",), time=times.TIME_END - 1), Row("none", ("far",), time=0)]
    commits = load_commits(spark, read_export(write_export(tmp_path / "export", rows)))
    period = statistics.find_period(commits)
    assert period is not None
    assert (period.start, period.end, period.left_out) == (T0_MS, T0_MS + 99 * DAY_MS, 2)


@pytest.mark.extended
def test_the_report_stands_alone_with_its_pictures_and_escapes_what_others_wrote(
    spark: SparkSession, tmp_path: Path
) -> None:
    name = "<script>alert(1)</script>&amp;"
    rows = [Row(row.name, row.acks, name, row.author, row.time) for row in DIAMOND]
    result = _analyze(spark, write_export(tmp_path / "export", rows))
    page = result.report.read_text(encoding="utf-8")
    pictures = set(re.findall(r'<svg[^>]* role="img" aria-label="([^":]*)', page))
    assert pictures == {"Commits over time", "Width per rank", "Heads over time", "Drawing of a tangle"}
    assert "<script" not in page
    assert "&lt;script&gt;" in page
    assert "default-src 'none'" in page
    fetched = re.findall(r"""(?:src|href)=["']?([^"'\s>]+)""", page)
    assert [link for link in fetched if not link.startswith("#")] == []
    assert _analyze(spark, tmp_path / "export").report.read_text(encoding="utf-8") == page


@pytest.mark.extended
def test_the_branch_that_was_asked_for_is_drawn(spark: SparkSession, tmp_path: Path) -> None:
    rows = [*DIAMOND, *(Row(f"d{n}", (f"d{n - 1}",) if n else (), "draft") for n in range(70))]
    export = write_export(tmp_path / "export", rows)
    page = _analyze(spark, export).report.read_text(encoding="utf-8")
    assert "All 5 commits, from left" in page, "the most branched of those that fit"
    page = _analyze(spark, export, draw=_text_id(id_of("draft"))[:8]).report.read_text(encoding="utf-8")
    assert "The last 60 of 70 commits, from left" in page
    with pytest.raises(NoSuchBranch, match="holds no branch that is called 'nothing'"):
        _analyze(spark, export, draw="nothing")


@pytest.mark.extended
def test_tables_are_csv_too_if_asked_for_and_hold_no_formula(spark: SparkSession, tmp_path: Path) -> None:
    rows = [Row(row.name, row.acks, '=HYPERLINK("x"),y', row.author, 0) for row in DIAMOND]
    result = _analyze(spark, write_export(tmp_path / "export", rows), with_csv=True)
    folder = tmp_path / "out" / "csv"
    assert {path.stem for path in folder.iterdir()} == {path.name for path in result.tables.iterdir()}
    with (folder / "branches.csv").open(newline="", encoding="utf-8") as file:
        (branch,) = csv.DictReader(file)
    assert branch["branch_name"] == '\'=HYPERLINK("x"),y'
    assert branch["branch_id"] == id_of('=HYPERLINK("x"),y').hex()
    assert (folder / "growth.csv").read_text(encoding="utf-8") == "branch_id,bucket_start,commits\n"
