"""Tasks of Spark that bring, check and read the parts of exports, wherever these lie.

On a cluster the driver reads manifests alone. A part in a folder must be seen by all machines under that path, and Spark
reads it itself. One at a URL is brought by the task that needs it, with fsspec, to the cache of the task's machine: Spark's
JVM has no driver for most stores. What FSSPEC_ variables the driver's environment has go with the tasks.
"""

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

import ravel.characters
from analytics.reading.shipping import drivers_environment, ship_by_value
from ravel.exports import checking, fetching, schema, tables
from ravel.exports.checking import ColumnSums, Export, ExportError, ExportPart, check_bytes, check_part
from ravel.exports.fetching import bring_part
from ravel.exports.schema import TABLES
from ravel.exports.tables import fit_rows

PARTS_SCHEMA: Final = "url string, name string, rows bigint, size bigint, blake3 string"
_ROW_SCHEMA: Final = "file_path string, row bigint"
_SLICES_PER_CORE: Final = 4
"""Slices of parts for each core: some parts take longer to check than others."""
_BATCH_ROWS: Final = 50_000


class _Checked(NamedTuple):
    """Answer of a task that checked a part."""

    number: int
    counted: Mapping[str, int]
    error: str


def check_by_tasks(spark: SparkSession, exports: Sequence[Export]) -> list[ExportError | None]:
    """Check every part of some exports; return for each of these the first error."""
    _ship_code()
    every = [
        (number, table, part)
        for number, export in enumerate(exports)
        for table, parts in export.tables.items()
        for part in parts
    ]
    errors: list[ExportError | None] = [None] * len(exports)
    if not every:
        return errors
    context = spark.sparkContext
    slices = min(len(every), _SLICES_PER_CORE * context.defaultParallelism)
    by_size = sorted(range(len(every)), key=lambda at: -every[at][2].size)
    asked = [(at, *every[at][1:]) for first in range(slices) for at in by_size[first::slices]]
    found = context.parallelize(asked, slices).map(partial(_check, drivers_environment())).collect()
    sums = [ColumnSums() for _ in exports]
    for at, counted, error in sorted(found):
        number, table, part = every[at]
        if errors[number] is not None:
            continue
        try:
            if error:
                raise ExportError(error)
            sums[number].add(table, part, counted)
        except ExportError as wrong:
            errors[number] = wrong
    return errors


def part_rows(parts: Sequence[ExportPart]) -> list[tuple[object, ...]]:
    """Return parts as rows of PARTS_SCHEMA."""
    return [(part.url, part.name, part.rows, part.size, part.blake3) for part in parts]


def read_elsewhere(parts: DataFrame, columns: str, *, with_rows: bool = False) -> DataFrame:
    """Return the rows of parts (PARTS_SCHEMA) that tasks bring; `with_rows` also `file_path`, its place, and `row`."""
    _ship_code()
    wanted = f"{columns}, {_ROW_SCHEMA}" if with_rows else columns
    kinds: Any = StructType.fromDDL(wanted)
    read = partial(_read, drivers_environment(), kinds=to_arrow_schema(kinds), with_rows=with_rows)
    return parts.mapInArrow(read, wanted)


def _ship_code() -> None:
    ship_by_value(ravel.characters, checking, fetching, schema, tables, sys.modules[__name__])


# --- what runs on the executors ---


def _check(environment: Mapping[str, str], asked: tuple[int, str, ExportPart]) -> _Checked:
    at, table, part = asked
    os.environ.update(environment)
    try:
        here = bring_part(part) if part.url else part
        return _Checked(at, dict(check_part(here, TABLES[table])), "")
    except ExportError as error:
        return _Checked(at, {}, str(error))
    except OSError as error:
        return _Checked(at, {}, f"{part.place} cannot be read: {error.strerror}")


def _read(
    environment: Mapping[str, str], batches: Iterator[pa.RecordBatch], kinds: pa.Schema, with_rows: bool
) -> Iterator[pa.RecordBatch]:
    os.environ.update(environment)
    for batch in batches:
        for told in batch.to_pylist():
            part = bring_part(ExportPart(Path(told["name"]), **told))
            check_bytes(part)
            yield from _rows(part, kinds, with_rows)


def _rows(part: ExportPart, kinds: pa.Schema, with_rows: bool) -> Iterator[pa.RecordBatch]:
    first = 0
    with pq.ParquetFile(part.path) as file:
        there = [name for name in kinds.names if name in file.schema_arrow.names]
        for batch in file.iter_batches(_BATCH_ROWS, columns=there or file.schema_arrow.names[:1]):
            rows = pa.Table.from_batches([batch])
            if with_rows:
                rows = rows.append_column("file_path", pa.repeat(pa.scalar(part.place), len(rows)))
                rows = rows.append_column("row", pa.array(range(first, first + len(rows)), pa.int64()))
            first += len(rows)
            yield from fit_rows(rows, kinds, "").to_batches()
