"""An analysis that is built on an earlier one is row by row the one that is not, or says why it was made in full."""

import json
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from pyspark.sql import SparkSession

from analytics import analyze
from analytics.engines import local_queries
from analytics.engines.engine import NARROWED
from analytics.incremental import increment, state
from analytics.incremental.increment import Increment
from analytics.order import branch_tasks
from analytics.report import report
from analytics.tables.definitions import TABLES, VIEWS
from ravel.exports.checking import read_export
from ravel.exports.schema import MANIFEST_NAME
from tests.support.drawn_exports import growing, growing_together
from tests.support.exports import DAY_MS, T0_MS, Row, change_manifest, listing, write_export

pytestmark = pytest.mark.slow

BRANCHES = [
    Row(f"{branch}{n}", (f"{branch}{n - 1}",) if n else (), branch, time=T0_MS + n * DAY_MS)
    for branch in "abc"
    for n in range(3)
]
MORE = [Row("b3", ("b1",), "b", author="bob", time=T0_MS + 9 * DAY_MS)]


def _analyze(export: Path, out: Path, **options: Any) -> analyze.AnalysisResult:  # noqa: ANN401  # those of `run`
    return analyze.run(export, out, progress=lambda _: None, **{"engine": "local", **options})


def _rows(out: Path, name: str) -> tuple[list[str], list[tuple[str, str]]]:
    table = pq.read_table(out / "tables" / name)
    return sorted(map(repr, table.to_pylist())), [(field.name, str(field.type)) for field in table.schema]


def _assert_same(out: Path, fresh: Path) -> None:
    for table in TABLES:
        assert _rows(out, table) == _rows(fresh, table), table
    for file in ("digests.json", "report.html"):
        assert (out / file).read_bytes() == (fresh / file).read_bytes(), file
    assert {path.name for path in out.iterdir()} == {path.name for path in fresh.iterdir()}


def _analyze_twice(export: Path, out: Path, fresh: Path, **options: Any) -> analyze.AnalysisResult:  # noqa: ANN401  # those of `run`
    """Built on what lies in `out`, and from nothing in `fresh`: both are the same."""
    fresh.mkdir()
    if (out / "summary.json").exists():  # the page says what changed
        shutil.copy(out / "summary.json", fresh)
    built, full = _analyze(export, out, **options), _analyze(export, fresh, **options)
    _assert_same(out, fresh)
    found = [(one.commits, one.branches, one.mismatches, one.quarantined) for one in (built, full)]
    assert found[0] == found[1]
    assert (full.kept_branches, full.full_because) == (0, "")
    return built


@pytest.mark.extended
@settings(max_examples=5)
@given(growing())
def test_whatever_came_an_analysis_built_on_another_is_the_one_in_full(told: list[dict[str, Any]]) -> None:
    with tempfile.TemporaryDirectory() as name, pytest.MonkeyPatch.context() as patch:
        patch.setattr(report, "render", repr)  # what a page says; to draw it takes as long as all else
        folder = Path(name)
        for number, one in enumerate(told):
            export = write_export(
                folder / f"export {number}", *one["parts"], voids=one["voids"], tables=one["tables"]
            )
            _analyze_twice(export, folder / "out", folder / f"fresh {number}")


@pytest.mark.extended
@settings(max_examples=8)
@given(growing_together())
def test_whatever_came_to_several_nodes_an_analysis_built_on_another_is_the_one_in_full(
    told: list[list[dict[str, Any]]],
) -> None:
    with tempfile.TemporaryDirectory() as name, pytest.MonkeyPatch.context() as patch:
        patch.setattr(report, "render", repr)  # as above
        folder = Path(name)
        for number, step in enumerate(told):
            first, *merge = (
                write_export(
                    folder / f"{node} {number}",
                    *one["parts"],
                    node=node,
                    voids=one["voids"],
                    tables=one["tables"],
                )
                for node, one in zip(("one", "two"), step, strict=True)
            )
            _analyze_twice(first, folder / "out", folder / f"fresh {number}", merge=merge)


@pytest.mark.extended
@pytest.mark.parametrize("nodes", [1, 2])
def test_spark_builds_on_an_analysis_and_leaves_one_to_build_on(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, nodes: int
) -> None:
    # Both engines then take the other's files, whose rows are the same: one run of Spark in place of three.
    monkeypatch.setattr(increment, "_LIBRARIES", {"spark": "duckdb", "local": "duckdb"})
    out, fresh = tmp_path / "out", tmp_path / "fresh"
    merge = [write_export(tmp_path / "other", BRANCHES[3:], node="other")] * (nodes - 1)
    _analyze(write_export(tmp_path / "one", BRANCHES), out, merge=merge)
    fresh.mkdir()
    shutil.copy(out / "summary.json", fresh)
    two = write_export(tmp_path / "two", BRANCHES, MORE, voids=["c2"])
    before = _jobs(spark)
    built = _analyze(two, out, engine="spark", spark=spark, merge=merge)
    assert (built.kept_branches, built.full_because) == (1, "")
    assert _jobs(spark) - before <= 30
    _analyze(two, fresh, merge=merge)
    _assert_same(out, fresh)
    three = write_export(tmp_path / "three", BRANCHES, MORE, [Row("d0", branch="d")], voids=["c2"])
    assert _analyze_twice(three, out, tmp_path / "fresh 3", merge=merge).kept_branches == 3


def _jobs(spark: SparkSession) -> int:
    """How many jobs a session has run."""
    spark.range(1).collect()  # so that there is one
    return max(spark.sparkContext.statusTracker().getJobIdsForGroup())


def test_only_branches_with_news_are_ordered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ordered: list[int] = []
    order = branch_tasks.linearize_batches

    def count(batches: Any, *options: Any, **more: Any) -> Any:  # noqa: ANN401  # those of `linearize_batches`
        held = [*batches]
        ordered.append(sum(batch.num_rows for batch in held))
        return order(iter(held), *options, **more)

    monkeypatch.setattr(local_queries, "linearize_batches", count)
    out = tmp_path / "out"
    assert _analyze(write_export(tmp_path / "one", BRANCHES), out).full_because == ""
    one_more = _analyze(write_export(tmp_path / "two", BRANCHES, MORE), out)
    assert (one_more.kept_branches, one_more.commits, one_more.branches) == (2, 10, 3)
    again = _analyze(tmp_path / "two", out)
    assert (again.kept_branches, again.commits, again.full_because) == (3, 10, "")
    assert ordered == [9, 4, 0]


@pytest.mark.extended
def test_of_several_nodes_only_branches_with_news_of_any_are_ordered(tmp_path: Path) -> None:
    out = tmp_path / "out"
    one = write_export(tmp_path / "one", BRANCHES, node="one")
    two = write_export(tmp_path / "two", BRANCHES[3:], node="two")
    _analyze(one, out, merge=[two])
    more = write_export(tmp_path / "two more", BRANCHES[3:], MORE, node="two", voids=["c2"])
    found = _analyze_twice(one, out, tmp_path / "fresh", merge=[more])
    assert (found.kept_branches, found.full_because) == (1, ""), "b has a commit more, and of c one is void"
    again = _analyze_twice(one, out, tmp_path / "fresh 2", merge=[more])
    assert again.kept_branches == 3
    other = _analyze(more, out, merge=[one])
    assert other.full_because == "the earlier analysis has another node"


@pytest.mark.extended
def test_copies_that_say_several_branches_are_told_apart_in_full(tmp_path: Path) -> None:
    out = tmp_path / "out"
    one = write_export(tmp_path / "one", BRANCHES, node="one")
    two = write_export(tmp_path / "two", BRANCHES[3:], node="two")
    _analyze(one, out, merge=[two], verify="no")
    elsewhere = replace(BRANCHES[1], branch="b")
    more = write_export(tmp_path / "two more", BRANCHES[3:], [elsewhere], node="two")
    mixed = _analyze_twice(one, out, tmp_path / "fresh", merge=[more], verify="no")
    assert mixed.full_because == "a commit stands in a branch with news and in one without"
    again = _analyze_twice(one, out, tmp_path / "fresh 2", merge=[more], verify="no")
    assert again.full_because == "the earlier analysis found copies of a commit that contradict each other"


@pytest.mark.extended
def test_an_export_without_a_common_part_is_read_in_full(tmp_path: Path) -> None:
    out = tmp_path / "out"
    _analyze(write_export(tmp_path / "one", BRANCHES), out)
    merged = _analyze(write_export(tmp_path / "merged", [*BRANCHES, *MORE]), out)
    reason = "the export was begun anew: it has no part that the earlier analysis has read"
    assert merged.full_because == reason


@pytest.mark.extended
def test_a_branch_whose_parts_or_voids_are_others_is_ordered_anew(tmp_path: Path) -> None:
    a, b, c = (BRANCHES[at : at + 3] for at in (0, 3, 6))
    out = tmp_path / "out"
    _analyze(write_export(tmp_path / "one", a, b, c, voids=["a2"]), out)
    without = _analyze_twice(write_export(tmp_path / "two", a, b, voids=["b2"]), out, tmp_path / "fresh")
    assert (without.kept_branches, without.branches, without.full_because) == (0, 2, "")
    merged = _analyze_twice(
        write_export(tmp_path / "three", a, [*b, *c], voids=["b2"]), out, tmp_path / "fresh 3"
    )
    assert (merged.kept_branches, merged.branches) == (1, 3)


@pytest.fixture(scope="module")
def analysed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an export and its analysis, for tests to copy."""
    folder = tmp_path_factory.mktemp("analysed")
    _analyze(write_export(folder / "export", BRANCHES), folder / "out")
    return folder


@pytest.fixture
def here(analysed: Path, tmp_path: Path) -> Path:
    """A copy of it."""
    return Path(shutil.copytree(analysed, tmp_path / "here"))


def _reason(
    here: Path, engine: str = "local", verify: str = "ranks", *, exports: int = 1, full: bool = False
) -> str:
    """Why the next analysis is in full; "" where it is not."""
    read = [read_export(here / "export")] * exports
    return Increment(here / "out", read, engine, verify, is_full=full).reason


def _damage(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize(
    "path",
    [
        "tables/feeds/part-00000.parquet",
        "tables/linearization/part-00000.parquet",
        "state/ordered_commits/part-00000.parquet",
        "state/branches.parquet",
        "state/voids.parquet",
        "digests.json",
    ],
)
@pytest.mark.parametrize("change", [_damage, Path.unlink])
def test_a_file_that_is_not_as_it_was_left_is_not_built_on(
    here: Path, path: str, change: Callable[[Path], object]
) -> None:
    assert _reason(here) == ""
    change(here / "out" / path)
    assert _reason(here) == f"{here / 'out' / path} is missing, or is not as the earlier analysis left it"


def test_a_state_that_is_none_is_not_built_on(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = here / "out" / "state" / "state.json"
    stated = json.loads(path.read_bytes())
    path.write_text(json.dumps(stated | {"version": 0}))
    assert _reason(here) == "the earlier analysis left its state in version 0, this is version 3"
    path.write_text(json.dumps(stated | {"verify": "deep"}))
    assert _reason(here) == f"{path} is damaged: its checksum is wrong"
    for content in ("", "[]", "[" * 10_000, "{}", '{"version": 3, "checksum": ""}'):
        path.write_text(content)
        assert _reason(here).startswith(f"{path} is damaged: "), content
    monkeypatch.setattr(state, "STATE_SIZE_MAX", 10)
    path.write_text(" " * 11)
    assert _reason(here) == f"{path} has over 10 bytes"
    path.unlink()
    assert _reason(here) == "", "there was none, or one that was cut off"


def test_an_analysis_of_something_else_is_not_built_on(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert _reason(here, verify="no") == ""
    assert _reason(here, full=True) == "--full was given"
    assert _reason(here, exports=2) == "the earlier analysis has another number of exports"
    assert _reason(here, verify="deep") == "the earlier analysis compared less with the node's ranks"
    assert _reason(here, engine="spark") == "the earlier analysis has another engine"
    change_manifest(here / "export", pseudonyms="11")
    assert _reason(here) == "the earlier analysis has another key of pseudonyms"
    change_manifest(here / "export", node="other")
    assert _reason(here) == "the earlier analysis has another node"
    change_manifest(here / "export", node="node", pseudonyms="")
    monkeypatch.setattr(increment, "_code", lambda: "another")
    assert _reason(here) == "the earlier analysis has another version of Ravel"


@pytest.mark.extended
def test_what_could_not_be_built_on_is_told_to_the_next(tmp_path: Path) -> None:
    export = write_export(tmp_path / "export", [*BRANCHES, Row("late", rank=7)])
    other = write_export(tmp_path / "other", BRANCHES[:3], node="other")
    twice = write_export(tmp_path / "twice", BRANCHES, BRANCHES[:1])
    out = tmp_path / "out"
    reasons = [
        _analyze(export, out).full_because,
        _analyze(export, out).full_because,
        _analyze(twice, out, merge=[other]).full_because,
        _analyze(twice, out).full_because,
        _analyze(twice, out).full_because,
    ]
    assert reasons == [
        "",
        "the earlier analysis found commits elsewhere than the node says",
        "the earlier analysis found commits elsewhere than the node says",
        "the earlier analysis has another number of exports",
        "the earlier analysis found a commit twice in the export",
    ]


@pytest.mark.extended
def test_a_commit_that_stands_twice_since_then_is_not_overlooked(tmp_path: Path) -> None:
    out = tmp_path / "out"
    _analyze(write_export(tmp_path / "one", BRANCHES), out)
    told = write_export(tmp_path / "two", BRANCHES, [replace(BRANCHES[1], branch="b")])
    found = _analyze_twice(told, out, tmp_path / "fresh")
    assert (found.mismatches, found.full_because) == (1, "a commit stands in the export twice")


@pytest.mark.extended
def test_a_part_that_is_listed_twice_is_not_taken_for_one(here: Path) -> None:
    part = here / "export" / "commits" / "part-00000001.parquet"
    copy = Path(shutil.copy(part, part.with_name("copy.parquet")))
    tables = json.loads((here / "export" / MANIFEST_NAME).read_bytes())["tables"]
    tables["commits"].append(listing(copy, len(BRANCHES)))
    change_manifest(here / "export", tables=tables)
    found = _analyze_twice(here / "export", here / "out", here / "fresh")
    assert (found.commits, found.full_because) == (9, "a commit stands in the export twice")


@pytest.mark.extended
def test_an_analysis_that_fails_before_it_writes_leaves_the_one_before(tmp_path: Path) -> None:
    out, export = tmp_path / "out", write_export(tmp_path / "one", BRANCHES)
    _analyze(export, out)
    before = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    with pytest.raises(analyze.NoSuchBranch):
        _analyze(export, out, draw="nothing")
    assert {path: path.read_bytes() for path in out.rglob("*") if path.is_file()} == before
    assert _analyze(export, out).kept_branches == 3


def test_tables_of_branches_are_made_of_nothing_else() -> None:
    def stands_on(name: str) -> set[str]:
        variants = (f"{name}_of_one", f"{name}_of_distinct", f"{name}_of_complete", name)
        views = [VIEWS[one] for one in variants if one in VIEWS]
        return (
            {below for view in views for read in view.reads for below in stands_on(read)} if views else {name}
        )

    by_branch = {name: table for name, table in TABLES.items() if table.is_by_branch}
    assert len(by_branch) == 12
    for name, table in by_branch.items():
        assert "branch_id" in [column.name for column in table.columns], name
        assert not table.of, name
        assert table.period is None, name
        # What is void in receipts is counted by tables over all branches alone.
        found = {below for read in table.reads for below in stands_on(read)} - {"voids_by_node"}
        assert found <= {*by_branch, *NARROWED}, name
