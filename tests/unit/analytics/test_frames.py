"""Figures as functions of DataFrames give what `ravel analyze` writes, whatever the kind of the DataFrame."""

import os
import runpy
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

import analytics.frames as figures
import ravel
from analytics.engines import local_queries
from analytics.engines.engine import FIRST
from analytics.engines.given_tables import FURTHER, closure_of
from analytics.engines.spark_tables import collect_together
from analytics.order.branch_tasks import LargeBranchRefused, placed_schema
from analytics.tables.definitions import TABLES
from ravel.exports.spark_source import register
from ravel.exports.tables import OpenExport, Table
from tests.support.analyses import Counted
from tests.support.builders import World
from tests.support.connect_figures import FIGURES
from tests.support.drawn_exports import exports, write
from tests.support.exports import (
    DAY_MS,
    T0_MS,
    RelayedCommit,
    Row,
    export_node,
    id_of,
    relayed,
    stated_places,
    write_export,
)
from tests.support.read_exports import read_export

ROOT = Path(__file__).parents[3]
_ATTEMPTS = 10
ROWS = [
    Row("root", author="ada", time=T0_MS, branch="repo", kind="init"),
    Row("a", author="ada", time=T0_MS, feed=2),
    Row("b", ("a",), author="bob", time=T0_MS + DAY_MS),
    Row("c", ("a",), author="cleo", time=T0_MS + DAY_MS, size=7),
    Row("m", ("b", "c"), author="bob", time=T0_MS + 3 * DAY_MS, feed=1),
    Row("lost", ("nowhere",), author="bob"),
    Row("v", ("m",), author="ada"),
]
MORE: Mapping[str, Sequence[Mapping[str, object]]] = {
    "memberships": [
        {
            "sequence": 1, "commit_id": id_of("root"), "repo_id": id_of("repo"), "operation": "init",
            "member": id_of("ada"), "permission": "owner", "epoch": id_of("root"), "reason": "founding",
            "sealed_to": 1, "counts": True,
        }
    ],
    "members": [{"repo_id": id_of("repo"), "member": id_of("ada"), "permission": "owner", "person": None}],
    "topics": [
        {"topic": id_of("repo"), "repo_id": id_of("repo"), "branch_id": id_of("repo"), "epoch": id_of("root"),
         "kind": "epoch"}
    ],
    "names": [{"repo_id": id_of("repo"), "branch_id": id_of("main"), "repo_name": "now", "branch_name": "hall"}],
    "tangles": stated_places(
        ("reply", "root", "a", ("root",)), ("reply", "root", "b", ("root",)), ("reply", "root", "m", ("a", "b")),
        ("group", "root", "a", ("root",)), ("vote", "a", "m", ("gone",)), ("edit", "a", "c", ("a",)),
    ),
    "edits": [
        {"sequence": 9, "branch_id": id_of("main"), "commit_id": id_of("c"), "kind": "move", "passed_before": 0,
         "passed_after": 1}
    ],
    "relay_commits": relayed(RelayedCommit("r"), RelayedCommit("s", ("r",), received=T0_MS + 5)),
    "relay_topics": [{"topic": id_of("t"), "is_pinned": True, "commits": 2, "size": 600, "touched_at": T0_MS}],
}  # fmt: skip


@pytest.fixture(scope="module")
def export(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("frames") / "an export"
    return write_export(folder, ROWS[:3], ROWS[3:], voids=["v"], tables=MORE)


KINDS: Final[Mapping[str, Callable[[Table], Any]]] = MappingProxyType(
    {
        "pyarrow": lambda table: table.arrow(),
        "pandas": lambda table: table.pandas(),
        "polars": lambda table: pl.from_arrow(table.arrow()),
        "duckdb": lambda table: table.duckdb(),
    }
)
"""Kinds that are counted in this process."""
OF_NODES: Final = ("clocks", "edits", "lags", "node_pairs", "replication", "store_growth", "stores")
"""Figures of what each node has."""
TOLD_BY_MANIFESTS: Final = ("relay_topics", "relays", "stores")
"""Figures with quotas and holdings, which are in no table."""


def _rows(table: pa.Table) -> list[str]:
    return sorted(map(repr, table.to_pylist()))


def _types(table: pa.Table) -> list[tuple[str, pa.DataType]]:
    return [(field.name, field.type) for field in table.schema]


def _further(read: OpenExport, kind: str) -> dict[str, Any]:
    return {name: KINDS[kind](read.table(name)) for name in FURTHER}


def test_each_table_has_a_function_that_says_what_it_gives() -> None:
    assert set(TABLES) - {"digests"} < set(dir(figures)), "digests are of branches as one task ordered them"
    assert figures.merges.__doc__ == TABLES["merges"].meaning
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        figures.nothing  # noqa: B018  # that it is not there


@pytest.mark.extended
@pytest.mark.parametrize("kind", KINDS)
def test_every_figure_of_every_kind_is_that_of_an_analysis(kind: str, export: Path, tmp_path: Path) -> None:
    read = ravel.open_export(export)
    commits, further = KINDS[kind](read.table("commits")), _further(read, kind)
    order = figures.order(commits, further["voids"])
    with Counted([read_export(export)], tmp_path / "out") as counted:
        counted.catalog.write(name for name in TABLES if name not in FIRST)
        for number, name in enumerate(figures.FIGURES):
            written = pq.read_table(tmp_path / "out" / "tables" / name)
            # Commits as exported are ordered first, which takes time: a few figures will do.
            found = figures.table(name, commits if name in OF_NODES or number % 5 == 0 else order, **further)
            assert _rows(found) == _rows(written), name
            assert _types(found) == _types(written), name
        placed = counted.engine.rows("SELECT * EXCLUDE digest FROM placed")
    told = pa.Table.from_pylist(placed, schema=placed_schema(with_digests=False))
    assert _rows(order.select(told.column_names)) == _rows(told)


@pytest.mark.extended
@pytest.mark.slow
@settings(max_examples=3, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(exports(), st.data())
def test_kinds_agree_row_by_row_on_whatever_is_exported(
    told: list[dict[str, Any]], data: st.DataObject
) -> None:
    told = [*{one["node"]: one for one in told}.values()]  # two exports of one node are refused
    with tempfile.TemporaryDirectory() as name:
        folders = write(Path(name), told)
        read = ravel.open_export(folders)
        given_as = {kind: (KINDS[kind](read.table("commits")), _further(read, kind)) for kind in KINDS}
        orders = {kind: figures.order(commits, more["voids"]) for kind, (commits, more) in given_as.items()}
        for order in orders.values():
            assert _rows(order) == _rows(orders["pyarrow"])
        commits, further = given_as["pyarrow"]
        for table in data.draw(
            st.lists(st.sampled_from(figures.FIGURES), unique=True, min_size=4, max_size=6)
        ):
            expected = _rows(figures.table(table, commits, **further))
            kind = data.draw(st.sampled_from([*KINDS]))
            is_ordered = table not in OF_NODES and data.draw(st.booleans())
            frame = orders[kind] if is_ordered else given_as[kind][0]
            assert _rows(figures.table(table, frame, **given_as[kind][1])) == expected, table
            # Of several exports of one node, or that speak of one repo, an analysis knows more than their rows.
            if len(told) == 1 and table not in TOLD_BY_MANIFESTS:
                with Counted([read_export(folders[0])], Path(name, "out")) as counted:
                    counted.catalog.write({*closure_of(table)}.difference(FIRST))
                    assert _rows(pq.read_table(Path(name, "out", "tables", table))) == expected, table


@pytest.mark.slow
@pytest.mark.extended
def test_every_figure_is_the_same_by_spark(spark: SparkSession, export: Path, tmp_path: Path) -> None:
    # Another node has some of the commits, contradicts one, and tells of the same repo.
    other = [*ROWS[:4], replace(ROWS[4], rank=9), Row("later", ("m",), author="cleo", received=T0_MS + 9)]
    write_export(tmp_path / "other", other, node="other", tables=MORE)
    read = ravel.open_export([export, tmp_path / "other"])
    further = {name: read.table(name).spark(spark).coalesce(1) for name in FURTHER}
    commits = read.table("commits").spark(spark).coalesce(1)
    order = figures.order(commits, further["voids"]).persist()
    order.count()
    given: dict[str, Any] = {**further}
    found = collect_together(
        spark,
        {
            name: figures.table(name, commits if name in {*OF_NODES, "heads"} else order, **given)
            for name in figures.FIGURES
        },
    )
    placed: Any = order.toArrow()
    order.unpersist()
    ours, more = read.table("commits").arrow(), _further(read, "pyarrow")
    assert _rows(placed) == _rows(figures.order(ours, more["voids"]))
    for name in figures.FIGURES:
        expected = figures.table(name, ours, **more)
        assert _rows(found[name]) == _rows(expected), name
        assert _types(found[name]) == _types(expected), name
    assert found["replication"].num_rows > 1


@pytest.mark.slow
@pytest.mark.extended
def test_spark_connect_counts_the_same_and_refuses_giants(export: Path, tmp_path: Path) -> None:
    asked = subprocess.run(
        [sys.executable, "-m", "tests.support.connect_figures", export, tmp_path],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    session, refused = asked.stdout.splitlines()
    assert session == "pyspark.sql.connect.session"
    assert "has 6 commits, and by Spark Connect branches have less than 2" in refused
    read = ravel.open_export(export)
    order = figures.order(read.table("commits").arrow(), read.table("voids").arrow())
    for name, expected in {"order": order, **{name: figures.table(name, order) for name in FIGURES}}.items():
        found = pq.read_table(tmp_path / f"{name}.parquet")
        assert _rows(found) == _rows(expected), name
        assert _types(found) == _types(expected), name


@pytest.mark.slow
@pytest.mark.extended
def test_spark_says_what_frames_lack(spark: SparkSession, export: Path) -> None:
    read = ravel.open_export(export)
    commits: Any = read.table("commits").spark(spark)
    with pytest.raises(ValueError, match=r"commits lacks the columns acks: give ravel\.open_export"):
        figures.order(commits.drop("acks"))
    with pytest.raises(TypeError, match="voids: column commit_id is of type string, and must be binary"):
        figures.order(commits, spark.createDataFrame([("a",)], "commit_id string"))
    with pytest.raises(TypeError, match="commits: of Spark, and the other tables are not"):
        figures.table("widths", commits, voids=read.table("voids").arrow())
    order = figures.order(commits)
    with pytest.raises(ValueError, match="give commits as exported"):
        figures.stores(order)
    with pytest.raises(ValueError, match="ordered already"):
        figures.order(order)


@pytest.mark.slow
def test_frames_are_counted_without_spark_java_pandas_and_polars(export: Path) -> None:
    code = """
import os, sys
class Absent:
    def find_spec(name, path, target=None):
        if name in ("pandas", "polars", "pyspark"):
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Absent)
import analytics.frames as figures
import ravel
read = ravel.open_export(os.environ["RAVEL_EXPORT"])
order = figures.order(read.table("commits").arrow(), read.table("voids").arrow())
print(figures.widths(order).num_rows, figures.stores(read.table("commits").duckdb())["node"][0].as_py())
"""
    found = subprocess.run(
        [sys.executable, "-c", code],
        env={"RAVEL_EXPORT": str(export), "PYTHONPATH": os.pathsep.join(sys.path), "PATH": ""},
        check=True,
        capture_output=True,
        text=True,
    )
    assert found.stdout == "4 node\n"


def _drop(name: str) -> Callable[[pa.Table], object]:
    return lambda commits: commits.drop_columns([name])


def _with(name: str, cell: object, kind: pa.DataType | None = None) -> Callable[[pa.Table], object]:
    """Commits with this in one column."""
    return lambda commits: commits.set_column(
        commits.column_names.index(name), name, pa.array([cell] * len(commits), kind)
    )


def _pandas_with(name: str, cell: Any) -> Callable[[pa.Table], object]:  # noqa: ANN401  # as in _with
    return lambda commits: commits.to_pandas().assign(**{name: cell})


@pytest.mark.parametrize(
    "change, error, says",
    [
        (
            lambda _: "export",
            TypeError,
            "commits is a builtins.str, which has no __arrow_c_stream__: give ravel",
        ),
        (lambda commits: pl.DataFrame(commits).lazy(), TypeError, r"call its collect\(\)"),
        (_drop("acks"), ValueError, "commits lacks the columns acks: give ravel.open_export"),
        (_with("rank", "1"), TypeError, "commits: column rank is of type string, and must be bigint"),
        (_with("commit_id", "aa"), TypeError, "column commit_id is of type string.*without text_ids"),
        (_with("acks", ["aa"]), TypeError, "column acks is of type array<string>.*without text_ids"),
        (_with("time", None), ValueError, "commits: column time is null in 7 rows"),
        (_with("branch_id", None), ValueError, "commits: column branch_id is null in 7 rows"),
        (
            _with("commit_id", b"short"),
            ValueError,
            "commits: column commit_id holds ids that are not 32 bytes",
        ),
        (
            _with("acks", [None], pa.list_(pa.binary())),
            ValueError,
            "commits: column acks holds ids that are not 32 bytes",
        ),
        (
            _with("sequence", 2**64 - 1, pa.uint64()),
            ValueError,
            "commits: column sequence holds a value that does not fit",
        ),
        (
            _pandas_with("time", 1.5),
            ValueError,
            "commits: column time holds floats that are no whole numbers",
        ),
        (_pandas_with("size", [1, "2", b"3", 4, 5, 6, 7]), TypeError, "commits: .* several types.*size"),
        (lambda commits: commits.append_column("acks", commits["acks"]), ValueError, "columns acks twice"),
    ],
)
def test_frames_that_are_no_tables_of_exports_are_refused(
    export: Path, change: Callable[[pa.Table], Any], error: type[Exception], says: str
) -> None:
    frame = change(ravel.open_export(export).table("commits").arrow())
    with pytest.raises(error, match=says):
        figures.order(frame)


def test_arguments_that_do_not_fit_each_other_are_refused(export: Path) -> None:
    read = ravel.open_export(export)
    commits: Any = read.table("commits").arrow()
    with pytest.raises(ValueError, match=r"members lacks the columns repo_id.*table\('members'\)"):
        figures.repos(commits, members=read.table("voids").arrow())
    with pytest.raises(TypeError, match="widths\\(\\) takes no table people"):
        figures.widths(commits, people=commits)
    with pytest.raises(KeyError, match="nothing"):
        figures.table("nothing", commits)
    order = figures.order(commits)
    with pytest.raises(ValueError, match="give commits as exported, and not as ordered"):
        figures.stores(order)
    with pytest.raises(ValueError, match="commits are ordered already"):
        figures.order(order)
    with pytest.raises(ValueError, match="lacks the columns author: give what `order` gave"):
        figures.widths(order.drop_columns(["author"]))


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_frames_without_rows_give_none(kind: str, tmp_path: Path) -> None:
    commits = KINDS[kind](ravel.open_export(write_export(tmp_path / "empty", [])).table("commits"))
    order = figures.order(commits)
    assert order.num_rows == figures.branches(order).num_rows == 0
    assert figures.stores(commits).num_rows == 0


@pytest.mark.slow
def test_columns_that_older_exports_lack_may_be_absent(export: Path) -> None:
    commits = ravel.open_export(export).table("commits").arrow()
    older = commits.drop_columns(
        ["feed_sequence", "source_author", "arrived_at", "blocks", "position", "node"]
    )
    told = figures.order(older)
    assert told["feed_sequence"].null_count == len(told) == 7
    expected = figures.order(commits).drop_columns(["feed_sequence"])
    assert _rows(told.drop_columns(["feed_sequence"])) == _rows(expected)
    assert figures.stores(older).to_pylist()[0]["node"] == ""


@pytest.mark.slow
def test_a_branch_too_large_for_this_process_is_refused(
    export: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local_queries, "LOCAL_BRANCH_COMMITS_MAX", 5)
    commits = ravel.open_export(export).table("commits").arrow()
    with pytest.raises(LargeBranchRefused, match=r"6 commits.*give analytics\.frames a DataFrame of Spark"):
        figures.order(commits, giant_from=2)
    assert figures.stores(commits).num_rows == 1  # which needs no order


@pytest.mark.slow
@pytest.mark.extended
def test_spark_reads_an_export_by_its_format(spark: SparkSession, export: Path) -> None:
    register(spark)
    for name in ("commits", "edits", "members"):
        rows: Any = spark.read.format("ravel").option("table", name).load(str(export)).toArrow()
        expected = ravel.open_export(export).table(name).arrow()
        assert rows.schema.names == expected.schema.names
        assert _rows(rows) == _rows(expected.cast(rows.schema))


@pytest.mark.slow
@pytest.mark.extended
def test_spark_follows_an_export_by_its_format(spark: SparkSession, world: World, tmp_path: Path) -> None:
    register(spark)
    folder, found = tmp_path / "export", tmp_path / "found"

    def follow() -> None:
        """Have a query go on from its checkpoint until it has all."""
        rows = spark.readStream.format("ravel").load(folder.as_uri()).select("sequence", "commit_id", "acks")
        writer = rows.writeStream.trigger(availableNow=True)
        for _ in range(_ATTEMPTS):
            try:
                writer.option("checkpointLocation", str(tmp_path / "checkpoint")).start(
                    str(found)
                ).awaitTermination()
            except StreamingQueryException as error:
                # Spark gives a process of Python ten seconds to start, whatever else the machine does.
                if "failed to connect back" not in str(error):
                    raise
            else:
                return

    for at, names in enumerate((("a",), ("a <- b", "b <- c"), ()), 1):
        for name in names:
            world.write(name)
        export_node(world.replica.database, folder, "node", at, parts_max=1)  # each merges all parts
        follow()
        expected = ravel.open_export(folder).table("commits").arrow()["commit_id"].to_pylist()
        rows = pq.read_table(found)["commit_id"].to_pylist()
        assert sorted(map(repr, rows)) == sorted(map(repr, expected)), "each once, however parts were merged"
    shutil.rmtree(folder)
    fresh = World(tmp_path / "another", is_another=True)
    try:
        export_node(fresh.replica.database, folder, "node", 9)
    finally:
        fresh.close()
    with pytest.raises(StreamingQueryException, match="was begun anew: it ends at"):
        follow()


@pytest.mark.slow
def test_the_notebook_answers_its_questions(export: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAVEL_EXPORT", str(export))
    names = runpy.run_path(str(ROOT / "examples" / "figures_notebook.py"))
    assert names["timeline"]["rank"].tolist() == [0, 0, 1, 1, 2]
    assert names["widest"]["width_max"].tolist() == [2]
    assert names["waits"]["waited_p50"].tolist() == [2 * DAY_MS]
    assert names["members"]["members"].tolist() == [1]
    assert names["stores"]["commits"].tolist() == [len(ROWS)]


@pytest.mark.slow
@pytest.mark.extended
def test_the_notebook_with_spark_answers_its_questions(
    spark: SparkSession, export: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAVEL_EXPORT", str(export))
    names = runpy.run_path(str(ROOT / "examples" / "spark_notebook.py"))
    assert names["spark"] is spark or names["spark"].version == spark.version
    assert names["timeline"]["rank"].tolist() == [0, 0, 1, 1, 2]
    assert names["widest"]["width"].tolist() == [2]
    assert names["waits"]["waited_p50"].tolist() == [2 * DAY_MS]
