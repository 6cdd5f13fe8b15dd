"""Rows of tasks in files: as Spark would have them, and of each task once."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from analytics.order.kept_rows import keep_rows, write_to_url

pytestmark = [pytest.mark.slow, pytest.mark.extended]

SCHEMA = "number int, ids array<binary>, told struct<text string>"

KINDS = pa.schema(
    {"number": pa.int32(), "ids": pa.list_(pa.binary()), "told": pa.struct([("text", pa.string())])}.items()
)


def _double(batches: Iterator[pa.RecordBatch], folder: str) -> Iterator[pa.RecordBatch]:
    """Rows of which the first partition has none; another attempt at the work leaves a file with its own."""
    for batch in batches:
        for number in batch["id"].to_numpy().tolist():
            told = {"text": None} if number % 2 else None
            yield pa.RecordBatch.from_pylist(
                [{"number": 2 * number, "ids": [b"x"], "told": told}], schema=KINDS
            )
    for attempts in Path(folder).glob("attempts-*"):
        pq.write_table(pa.table({"number": [-1]}), attempts / "000000-99.parquet")


def test_tasks_write_what_they_give_and_no_other_attempt_is_read(spark: SparkSession, tmp_path: Path) -> None:
    folder = tmp_path / "a folder [*]"
    rows = spark.range(0, 10, 1, 4).where("id >= 3")
    task = partial(_double, folder=str(folder))
    kept = keep_rows(rows, task, SCHEMA, folder)
    expected = rows.mapInArrow(task, SCHEMA)
    assert kept.frame.dtypes == expected.dtypes
    assert sorted(map(str, kept.frame.collect())) == sorted(map(str, expected.collect()))
    in_order = [pq.read_table(file)["number"].to_pylist() for file in kept.files]
    assert [number for numbers in in_order for number in numbers] == [6, 8, 10, 12, 14, 16, 18]


def test_no_rows_make_a_table_without_files(spark: SparkSession, tmp_path: Path) -> None:
    kept = keep_rows(spark.range(3).where("id > 7"), partial(_double, folder=str(tmp_path)), SCHEMA, tmp_path)
    assert (kept.frame.count(), kept.files) == (0, ())


def test_a_table_without_rows_has_its_columns_at_a_url_too(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "some").mkdir()
    (tmp_path / "none").mkdir()
    for name, where in (("some", "id > 1"), ("none", "id > 7")):
        url = (tmp_path / name).as_uri()
        written = write_to_url(spark.range(3).where(where), url)
        assert [*written.values()] == [1 if name == "some" else 0]
        assert pq.read_table(tmp_path / name).to_pydict() == {"id": [2] if name == "some" else []}
