"""What is Spark's alone: how it writes tables, reads copies, and how exact its percentiles are."""

import random
from math import ceil
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from analytics.engines import spark_tables
from analytics.engines.spark_tables import TableWriter
from analytics.reading import export_reader
from analytics.reading.export_reader import load_commits
from analytics.tables.definitions import TABLES
from analytics.tables.functions import SPARK
from tests.support.exports import T0_MS, Row, id_of, write_export
from tests.support.read_exports import read_export

pytestmark = [pytest.mark.slow, pytest.mark.extended]


@pytest.mark.parametrize("count", [7_407, 49_999])
def test_percentiles_are_exact_up_to_what_is_stated(spark: SparkSession, count: int) -> None:
    chance = random.Random(count)
    waits = [chance.randrange(count // 2) * 1000 for _ in range(count)]
    schema = "branch_id binary, acks_count int, time bigint, causes_from bigint, causes_until bigint"
    rows = [(b"b", 2, T0_MS + wait, T0_MS, T0_MS) for wait in waits]
    for statement in SPARK:
        spark.sql(statement)
    spark.createDataFrame(rows, schema).createOrReplaceTempView("ordered")
    named = spark.createDataFrame(
        [(b"b", "repo", "main")], "branch_id binary, repo_name string, branch_name string"
    )
    named.createOrReplaceTempView("branch_names")
    (found,) = spark.sql(TABLES["merges"].fill()).collect()
    for name in ("ordered", "branch_names"):
        spark.catalog.dropTempView(name)
    assert (found["repo_name"], found["branch_name"]) == ("repo", "main")
    nearest = [sorted(waits)[ceil(share * count) - 1] for share in (0.5, 0.9)]
    assert [found["waited_p50"], found["waited_p90"]] == nearest
    assert (found["apart_p50"], found["apart_p90"]) == (found["waited_p50"], found["waited_p90"])


def test_a_table_that_cannot_be_written_ends_the_others_and_is_told(
    spark: SparkSession, tmp_path: Path
) -> None:
    names = [f"table {number}" for number in range(6)]
    frames = {name: spark.range(1).selectExpr("assert_true(id < 0, 'broken') AS cell") for name in names[1:2]}
    frames = {name: frames.get(name, spark.range(3).toDF("cell")) for name in names}
    with pytest.raises(PySparkException, match="broken"):
        TableWriter(spark, tmp_path).write_all(frames)
    done = spark.read.parquet(str(tmp_path / "tables" / names[0]))
    assert done.count() == 3


def test_the_driver_writes_the_same_table_as_spark(spark: SparkSession, tmp_path: Path) -> None:
    table = spark.range(3).selectExpr(
        "id", "unhex('0' || id) AS raw", "array(unhex('0' || id)) AS ids", "'text' AS text", "id / 2 AS half",
        "id > 1 AS is_late",
    ).repartition(2)  # fmt: skip
    empty = table.where("id < 0")
    written = {}
    for is_small in (True, False):
        writer = TableWriter(spark, tmp_path / str(is_small), is_small=is_small)
        frames = {"table": writer.write("table", empty), "empty": writer.write("empty", empty)}
        frames["table"] = writer.write("table", table)  # in the place of what an earlier analysis left
        written[is_small] = {
            name: (frame.dtypes, sorted(map(str, frame.collect()))) for name, frame in frames.items()
        }
    assert written[True] == written[False]
    assert len(written[True]["table"][1]) == 3
    assert [path.name for path in (tmp_path / "True" / "tables" / "table").iterdir()] == [
        "part-00000.parquet"
    ]


def test_a_table_of_few_rows_goes_with_the_plans_that_read_it_and_a_larger_one_is_a_file(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spark_tables, "_ROWS_IN_PLAN_MAX", 3)
    writer = TableWriter(spark, tmp_path, is_small=True)
    few, more = (writer.write(f"of {count}", spark.range(count).toDF("id")) for count in (3, 4))
    assert ["FileScan" in _plan(frame) for frame in (few, more)] == [False, True]
    assert [frame.count() for frame in (few, more)] == [3, 4]


def test_what_is_small_is_told_by_the_manifests(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    exports = [
        read_export(write_export(tmp_path / name, [Row("a"), Row("b", ("a",))])) for name in ("one", "two")
    ]
    rows = sum(export.rows_in_all for export in exports)
    monkeypatch.setattr(export_reader, "SMALL_ROWS_MAX", rows)
    assert export_reader.are_small(exports)
    monkeypatch.setattr(export_reader, "SMALL_ROWS_MAX", rows - 1)
    assert not export_reader.are_small(exports)


def test_few_rows_are_planned_with_and_counted_without_a_shuffle(spark: SparkSession, tmp_path: Path) -> None:
    few = export_reader.local_rows(spark, "number int, ids array<binary>", [(1, [b"x"]), (2, None)])
    assert [tuple(row) for row in few.collect()] == [(1, [b"x"]), (2, None)]
    none = export_reader.local_rows(spark, "number int")
    assert _plan(none.groupBy("number").count()).startswith("LocalTableScan <empty>")
    export = read_export(write_export(tmp_path / "e", [Row("a"), Row("b", ("a",))]))
    commits = load_commits(spark, export)
    assert "Exchange" not in _plan(commits.groupBy("branch_id").agg({"time": "max"}))


def _plan(frame: DataFrame) -> str:
    plan = frame._jdf.queryExecution().executedPlan().toString()
    return str(plan)


def test_an_id_that_stands_twice_in_one_export_is_one_commit(spark: SparkSession, tmp_path: Path) -> None:
    rows = [Row("a", branch="x"), Row("b", ("a",), "x")]
    again = [Row("a", branch="x"), Row("b", ("a",), "x", rank=9)]
    commits = load_commits(spark, read_export(write_export(tmp_path / "e", rows, again)))
    assert {bytes(row["commit_id"]): (row["sequence"], row["is_disputed"]) for row in commits.collect()} == {
        id_of("a"): (1, False),
        id_of("b"): (2, True),
    }
    assert commits.count() == 2
