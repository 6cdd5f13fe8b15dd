"""Spark's source of exports, called as Spark calls it, but in this process: without a JVM."""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import datasource
from pyspark.sql.datasource import InputPartition
from pyspark.sql.types import StringType, StructField, StructType

from ravel.exports import spark_source
from ravel.exports.checking import ExportError
from ravel.exports.schema import SCHEMA_VERSION, TABLES
from ravel.exports.spark_source import RavelSource
from tests.support.exports import Row, change_manifest, id_of, listing, write_export
from tests.support.read_exports import read_export

ROWS = [Row("a"), Row("b", ("a",)), Row("c", ("b",)), Row("d", ("c",)), Row("e", ("d",))]


@pytest.fixture
def growing(tmp_path: Path) -> Path:
    return write_export(tmp_path / "growing", ROWS[:2], ROWS[2:3], ROWS[3:])


def _parts(folder: Path) -> list[dict[str, Any]]:
    return [
        {"path": one.name, "rows": one.rows, "bytes": one.size, "blake3": one.blake3}
        for one in read_export(folder).parts
    ]


def _ids(reader: Any, partitions: Iterable[InputPartition]) -> list[bytes]:  # noqa: ANN401  # of a stream or not
    rows = [row for one in partitions for batch in reader.read(one) for row in batch.to_pylist()]
    assert all(row["node"] == "node" for row in rows)
    return sorted(row["commit_id"] for row in rows)


def _schema(source: RavelSource) -> StructType:
    """What Spark makes of it, as far as it matters: the names."""
    return _named(*re.findall("`(.*?)`", source.schema()))


def _named(*names: str) -> StructType:
    return StructType([StructField(name, StringType()) for name in names])


def _stream(options: dict[str, str]) -> Any:  # noqa: ANN401  # a reader, in the form of Spark 4.0
    source = RavelSource(options)
    return source.streamReader(_schema(source))


def _names(*names: str) -> list[bytes]:
    return sorted(id_of(name) for name in names)


def test_a_part_is_one_task_and_columns_are_those_of_the_schema(growing: Path) -> None:
    source = RavelSource({"path": growing.as_uri()})
    assert source.name() == "ravel"
    assert source.schema().startswith("`sequence` bigint, `commit_id` binary, `topic` binary")
    assert "`acks` array<binary>" in source.schema()
    assert source.schema().endswith("`node` string")
    reader = source.reader(_schema(source))
    assert len(reader.partitions()) == 3
    assert _ids(reader, reader.partitions()) == _names(*"abcde")
    for table in TABLES.keys() - {"bodies", "commits"}:
        empty = RavelSource({"path": str(growing), "table": table})
        assert empty.schema().endswith("`node` string")
        assert empty.reader(_schema(empty)).partitions() == []


def test_columns_that_are_named_are_read_alone(growing: Path) -> None:
    source = RavelSource({"path": str(growing), "columns": "rank, node"})
    assert source.schema() == "`rank` bigint, `node` string"
    # As Spark calls it where the user gives a schema of some columns.
    for schema, names in ((_schema(source), ["rank", "node"]), (_named("node", "acks"), ["node", "acks"])):
        reader = source.reader(schema)
        batches: Any = [batch for one in reader.partitions() for batch in reader.read(one)]
        assert [batch.schema.names for batch in batches] == [names] * 3


def test_a_task_reads_some_row_groups_of_a_part(growing: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    export = read_export(growing)
    (path,) = (part.path for part in export.parts[:1])
    rows = pq.read_table(path)
    pq.write_table(pa.concat_tables([rows] * 5), path, row_group_size=4)  # 10 rows in three groups
    tables = {"commits": [listing(path, 10)]}
    change_manifest(growing, tables=tables)
    monkeypatch.setattr(spark_source, "_TASK_ROWS", 5)
    source = RavelSource({"path": str(growing)})
    reader = source.reader(_schema(source))
    read = [sum(batch.num_rows for batch in cast("Any", reader.read(one))) for one in reader.partitions()]
    assert read == [4, 6], "whole groups, each once"


def test_filters_of_single_columns_are_the_sources_own(
    growing: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def found(*filters: datasource.Filter) -> tuple[list[bytes], list[datasource.Filter]]:
        source = spark_source._FilteringSource({"path": str(growing)})
        reader = source.reader(_schema(source))
        left = [*reader.pushFilters([*filters])]
        return _ids(reader, reader.partitions()), left

    every, a = _names(*"abcde"), id_of("a")
    assert found(datasource.EqualTo(("commit_id",), a)) == ([a], [])
    assert found(datasource.In(("commit_id",), (a, id_of("z")))) == ([a], [])
    assert found(datasource.GreaterThan(("sequence",), 1), datasource.LessThanOrEqual(("sequence",), 3)) == (
        _names("b", "c"),
        [],
    )
    assert found(datasource.EqualTo(("node",), "node")) == (every, [])
    assert found(datasource.EqualTo(("node",), "other")) == ([], [])
    assert found(datasource.IsNull(("arrived_at",))) == (every, [])
    assert found(datasource.IsNotNull(("branch_name",)), datasource.EqualTo(("body_kind",), "none")) == (
        [],
        [],
    )
    left_to_spark = [
        datasource.EqualTo(("commit_id",), b"short"),
        datasource.In(("sequence",), (1, None)),
        datasource.Not(datasource.EqualTo(("sequence",), 1)),
        datasource.EqualTo(("acks",), [a]),
        datasource.EqualTo(("rank", "deeper"), 1),
        datasource.StringContains(("branch_name",), "a"),
    ]
    assert found(*left_to_spark) == (every, left_to_spark)


def test_of_what_an_older_export_lacks_no_comparison_holds(growing: Path) -> None:
    for function, rows in ((datasource.IsNull, 5), (datasource.IsNotNull, 0)):
        read = spark_source._Read("", "commits", ("rank",)).with_filter(function(("files",)))
        assert read is not None
        held = read.condition(["rank"])
        assert pa.table({"rank": range(5)}).filter(held).num_rows == rows


def test_a_stream_has_the_rows_between_two_watermarks(growing: Path) -> None:
    parts = _parts(growing)
    stream = _stream({"path": str(growing), "from": "1"})
    start = stream.initialOffset()
    change_manifest(growing, tables={"commits": parts[:1]}, watermark=2)
    first = stream.latestOffset()
    assert _ids(stream, stream.partitions(start, first)) == _names("b")
    change_manifest(growing, tables={"commits": parts}, watermark=5)
    second = stream.latestOffset()
    found = stream.partitions(first, second)
    assert len(found) == 2, "the part that was read is not opened by a task again"
    assert _ids(stream, found) == _names(*"cde")
    assert _ids(stream, stream.partitions(first, {"watermark": 4})) == _names("c", "d"), "as it is done again"
    assert stream.partitions(second, second) == []
    change_manifest(growing, tables={"commits": parts[:1]}, watermark=2)
    with pytest.raises(ExportError, match="was begun anew: it ends at 2, and was read up to 5"):
        stream.partitions(first, second)


def test_a_stream_of_an_export_that_was_begun_anew_fails(growing: Path) -> None:
    parts = _parts(growing)
    stream = _stream({"path": str(growing)})
    before = stream.latestOffset()
    change_manifest(growing, tables={"commits": parts[:1]}, watermark=2)
    after = stream.latestOffset()
    assert (before, after) == ({"watermark": 5}, {"watermark": 2})
    with pytest.raises(ExportError, match="was begun anew: it ends at 2, and was read up to 5"):
        stream.partitions(before, after)
    # Spark keeps the two numbers, and asks for the batch once more when the query is started again.
    change_manifest(growing, tables={"commits": parts}, watermark=5)
    with pytest.raises(ExportError, match="was begun anew: it ends at 2, and was read up to 5"):
        stream.partitions(before, after)


def test_a_stream_does_not_begin_behind_the_end_of_its_export(growing: Path) -> None:
    stream = _stream({"path": str(growing), "from": "1000"})
    latest = stream.latestOffset()
    assert latest == stream.initialOffset() == {"watermark": 1000}
    with pytest.raises(ExportError, match="ends at 5, and the stream begins after 1000"):
        stream.partitions(stream.initialOffset(), latest)
    at_end = _stream({"path": str(growing), "from": "5"})
    assert at_end.partitions(at_end.initialOffset(), at_end.latestOffset()) == []


def test_a_stream_of_all_rows_leaves_every_part_to_tasks(
    growing: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = _stream({"path": str(growing)})
    with monkeypatch.context() as driver:
        driver.setattr(spark_source, "_bring", lambda *_: pytest.fail("the driver brought a part"))
        latest = stream.latestOffset()
        found = stream.partitions(stream.initialOffset(), latest)
        assert stream.partitions(latest, latest) == []
    assert len(found) == 3
    assert _ids(stream, found) == _names(*"abcde")


def test_what_cannot_be_read_is_said(growing: Path, tmp_path: Path) -> None:
    for options, message in (
        ({}, "no export is named"),
        ({"path": "x", "table": "people"}, "no table 'people'; there are commits, voids"),
        ({"path": "x", "from": "-1"}, "it is a sequence, from 0"),
        ({"path": "x", "from": "\N{SUPERSCRIPT TWO}"}, "it is a sequence, from 0"),
        ({"path": "x", "from": "1" * 19}, "it is a sequence, from 0"),
        ({"path": "x", "columns": "rank, names"}, "no column names; commits has sequence, commit_id"),
    ):
        with pytest.raises(ExportError, match=message):
            RavelSource(dict(options))
    with pytest.raises(ExportError, match="members is stated anew by each export"):
        _stream({"path": str(growing), "table": "members"})
    with pytest.raises(ExportError, match=r"manifest\.json is not there"):
        source = RavelSource({"path": str(tmp_path)})
        source.reader(_schema(source)).partitions()
    source = RavelSource({"path": str(growing)})
    reader = source.reader(_schema(source))
    partitions = reader.partitions()
    part = read_export(growing).parts[0].path
    content = part.read_bytes()
    part.write_bytes(content[:-9] + b"otherwise")
    with pytest.raises(ExportError, match="was altered"):
        _ids(reader, partitions)
    change_manifest(growing, schema_version=SCHEMA_VERSION + 1)
    with pytest.raises(ExportError, match="update Ravel"):
        reader.partitions()
