"""Spark's source of exports, called as Spark calls it, but in this process: without a JVM."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.datasource import InputPartition
from pyspark.sql.types import StructType

from ravel.exports import spark_source
from ravel.exports.checking import ExportError, read_export
from ravel.exports.schema import SCHEMA_VERSION, TABLES
from ravel.exports.spark_source import RavelSource
from tests.support.exports import Row, change_manifest, id_of, write_export

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


def _names(*names: str) -> list[bytes]:
    return sorted(id_of(name) for name in names)


def test_a_part_is_one_task_and_columns_are_those_of_the_schema(growing: Path) -> None:
    source = RavelSource({"path": growing.as_uri()})
    assert source.name() == "ravel"
    assert source.schema().startswith("`sequence` bigint, `commit_id` binary, `topic` binary")
    assert "`acks` array<binary>" in source.schema()
    assert source.schema().endswith("`node` string")
    reader = source.reader(StructType())
    assert len(reader.partitions()) == 3
    assert _ids(reader, reader.partitions()) == _names(*"abcde")
    for table in TABLES.keys() - {"bodies", "commits"}:
        empty = RavelSource({"path": str(growing), "table": table})
        assert empty.schema().endswith("`node` string")
        assert empty.reader(StructType()).partitions() == []


def test_a_stream_has_the_rows_between_two_watermarks(growing: Path) -> None:
    parts = _parts(growing)
    stream = RavelSource({"path": str(growing), "from": "1"}).streamReader(StructType())
    start = stream.initialOffset()
    change_manifest(growing, tables={"commits": parts[:1]}, watermark=2)
    first = stream.latestOffset()  # type: ignore[call-arg]  # in the form of Spark 4.0
    assert _ids(stream, stream.partitions(start, first)) == _names("b")
    change_manifest(growing, tables={"commits": parts}, watermark=5)
    second = stream.latestOffset()  # type: ignore[call-arg]  # as above
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
    stream = RavelSource({"path": str(growing)}).streamReader(StructType())
    before = stream.latestOffset()  # type: ignore[call-arg]  # in the form of Spark 4.0
    change_manifest(growing, tables={"commits": parts[:1]}, watermark=2)
    after = stream.latestOffset()  # type: ignore[call-arg]  # as above
    assert (before, after) == ({"watermark": 5}, {"watermark": 2})
    with pytest.raises(ExportError, match="was begun anew: it ends at 2, and was read up to 5"):
        stream.partitions(before, after)
    # Spark keeps the two numbers, and asks for the batch once more when the query is started again.
    change_manifest(growing, tables={"commits": parts}, watermark=5)
    with pytest.raises(ExportError, match="was begun anew: it ends at 2, and was read up to 5"):
        stream.partitions(before, after)


def test_a_stream_does_not_begin_behind_the_end_of_its_export(growing: Path) -> None:
    stream = RavelSource({"path": str(growing), "from": "1000"}).streamReader(StructType())
    latest = stream.latestOffset()  # type: ignore[call-arg]  # in the form of Spark 4.0
    assert latest == stream.initialOffset() == {"watermark": 1000}
    with pytest.raises(ExportError, match="ends at 5, and the stream begins after 1000"):
        stream.partitions(stream.initialOffset(), latest)
    at_end = RavelSource({"path": str(growing), "from": "5"}).streamReader(StructType())
    assert at_end.partitions(at_end.initialOffset(), at_end.latestOffset()) == []  # type: ignore[call-arg]  # as above


def test_a_stream_of_all_rows_leaves_every_part_to_tasks(
    growing: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = RavelSource({"path": str(growing)}).streamReader(StructType())
    with monkeypatch.context() as driver:
        driver.setattr(spark_source, "_bring", lambda *_: pytest.fail("the driver brought a part"))
        latest = stream.latestOffset()  # type: ignore[call-arg]  # as above
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
    ):
        with pytest.raises(ExportError, match=message):
            RavelSource(dict(options))
    with pytest.raises(ExportError, match="members is stated anew by each export"):
        RavelSource({"path": str(growing), "table": "members"}).streamReader(StructType())
    with pytest.raises(ExportError, match=r"manifest\.json is not there"):
        RavelSource({"path": str(tmp_path)}).reader(StructType()).partitions()
    reader = RavelSource({"path": str(growing)}).reader(StructType())
    partitions = reader.partitions()
    part = read_export(growing).parts[0].path
    content = part.read_bytes()
    part.write_bytes(content[:-9] + b"otherwise")
    with pytest.raises(ExportError, match="was altered"):
        _ids(reader, partitions)
    change_manifest(growing, schema_version=SCHEMA_VERSION + 1)
    with pytest.raises(ExportError, match="update Ravel"):
        reader.partitions()
