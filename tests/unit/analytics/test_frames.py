"""Figures as functions of DataFrames give what `ravel analyze` writes, on whatever way the DataFrame came."""

import runpy
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

import analytics.frames as figures
import ravel
from analytics.engines.engine import FIRST
from analytics.engines.spark_tables import collect_together
from analytics.tables.definitions import TABLES
from ravel.exports.checking import read_export
from ravel.exports.spark_source import RavelSource
from tests.support.analyses import Counted
from tests.support.builders import World
from tests.support.exports import (
    DAY_MS,
    T0_MS,
    RelayedCommit,
    Row,
    export_node,
    id_of,
    relayed,
    write_export,
)

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
         "generation": 0}
    ],
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


def _rows(table: pa.Table) -> list[str]:
    return sorted(map(repr, table.to_pylist()))


def test_each_table_has_a_function_that_says_what_it_gives() -> None:
    assert set(TABLES) < set(dir(figures))
    assert figures.merges.__doc__ == TABLES["merges"].meaning
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        figures.nothing  # noqa: B018  # that it is not there


@pytest.mark.slow
@pytest.mark.extended
def test_figures_are_those_of_an_analysis(spark: SparkSession, export: Path, tmp_path: Path) -> None:
    read = ravel.open_export(export)
    given = {name: read.table(name).spark(spark) for name in figures.FURTHER}
    commits = read.table("commits").spark(spark)
    order = figures.order(commits, given["voids"]).persist()
    order.count()
    # Some of each kind: what is counted of the order, of further tables, and of what each node has.
    tables = {name: figures.table(name, order, **given) for name in ("merges", "faults", "epochs", "relays")}
    tables["stores"] = figures.stores(commits, **given)
    found = collect_together(spark, tables)
    order.unpersist()
    with Counted([read_export(export)], tmp_path / "out") as counted:
        counted.catalog.write(name for name in TABLES if name not in FIRST)
        for name in tables:
            rows = counted.engine.rows(f"SELECT * FROM {name}")  # noqa: S608  # a name of ours
            assert _rows(found[name]) == sorted(map(repr, rows)), name
    assert found["merges"].num_rows == 1
    with pytest.raises(ValueError, match="give commits as exported"):
        figures.stores(order)
    with pytest.raises(TypeError, match="takes no table people"):
        figures.widths(order, people=commits)


@pytest.mark.slow
@pytest.mark.extended
def test_spark_reads_an_export_by_its_format(spark: SparkSession, export: Path) -> None:
    spark.dataSource.register(RavelSource)
    for name in ("commits", "edits", "members"):
        rows: Any = spark.read.format("ravel").option("table", name).load(str(export)).toArrow()
        expected = ravel.open_export(export).table(name).arrow()
        assert rows.schema.names == expected.schema.names
        assert _rows(rows) == _rows(expected.cast(rows.schema))


@pytest.mark.slow
@pytest.mark.extended
def test_spark_follows_an_export_by_its_format(spark: SparkSession, world: World, tmp_path: Path) -> None:
    spark.dataSource.register(RavelSource)
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
    fresh = World(tmp_path / "another")
    try:
        export_node(fresh.replica.database, folder, "node", 9)
    finally:
        fresh.close()
    with pytest.raises(StreamingQueryException, match="was begun anew: it ends at"):
        follow()


@pytest.mark.slow
@pytest.mark.extended
def test_the_notebook_answers_its_questions(
    spark: SparkSession, export: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAVEL_EXPORT", str(export))
    names = runpy.run_path(str(ROOT / "examples" / "figures_notebook.py"))
    assert names["spark"] is spark or names["spark"].version == spark.version
    assert names["timeline"]["rank"].tolist() == [0, 0, 1, 1, 2]
    assert names["widest"]["width"].tolist() == [2]
    assert names["waits"]["waited_p50"].tolist() == [2 * DAY_MS]
