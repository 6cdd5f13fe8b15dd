"""Spark's source of exports: `spark.read.format("ravel").load(url)` and `spark.readStream.format("ravel").load(url)`.

`spark.dataSource.register(RavelSource)` comes before, once for each session.

Options: `table` (by default `commits`); of streams `from`, the sequence after which they begin (by default 0: with the first
row). Rows have the columns of this version's schema, null where an older export lacks one, and `node`. One export is read;
unite several.

The driver reads the manifest. Each part is one task's, which brings it from where the export lies and checks it before it
reads: so executors need this package, and credentials where fsspec finds them, and no folder in common. A stream follows the
export: each batch has the rows between two watermarks. Tables that exports state anew each time cannot be followed.
"""

import re
from collections.abc import Iterator, MutableMapping
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

from ravel.exports.checking import (
    BODY_TABLES,
    ExportError,
    ExportPart,
    check_part,
    find_part,
    list_tables,
    load_manifest,
)
from ravel.exports.fetching import bring_part, fetch_manifest, local_folder
from ravel.exports.schema import BLOCK_TABLES, MANIFEST_NAME, TABLES, columns_of
from ravel.exports.tables import fit_rows, plain_schema

_WATERMARKS: Final = {
    "commits": "watermark",
    "edits": "watermark",
    "bodies": "watermark",
    "relay_commits": "relay_watermark",
    "blocks": "blocks_watermark",
    "relay_blocks": "relay_blocks_watermark",
}
"""Tables that can be followed, and what the manifest calls the sequence up to which they are exported."""
_BATCH_ROWS: Final = 10_000


class RavelSource(DataSource):
    """One table of one export."""

    def __init__(self, options: MutableMapping[str, str]) -> None:
        super().__init__(options)
        self._url = options.get("path", "")
        self._table = options.get("table", "commits")
        self._from = options.get("from", "0")
        if not self._url:
            raise ExportError('no export is named: load("/path/or/url")')
        if self._table not in TABLES:
            raise ExportError(f"no table {self._table!r}; there are {', '.join(TABLES)}")
        # Not `isdigit`, which takes digits that `int` does not. More than 18 would not fit a sequence.
        if not re.fullmatch(r"[0-9]{1,18}", self._from):
            raise ExportError(f"`from` is {self._from[:40]!r}: it is a sequence, from 0")

    @classmethod
    def name(cls) -> str:
        """Return what `format` takes."""
        return "ravel"

    def schema(self) -> str:
        """Return the columns in Spark's words."""
        return ", ".join(f"`{field.name}` {_kind(field.type)}" for field in plain_schema(self._table))

    def reader(self, schema: StructType) -> DataSourceReader:
        """Called by Spark to read what is there."""
        return _Reader(self._url, self._table)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # Spark calls it so
        """Called by Spark to follow."""
        if self._table not in _WATERMARKS:
            raise ExportError(
                f"{self._table} is stated anew by each export, and cannot be followed; {', '.join(_WATERMARKS)} can"
            )
        return _StreamReader(self._url, self._table, int(self._from))


class _Part(InputPartition):
    """A part, for one task; and which of its rows."""

    def __init__(self, url: str, table: str, version: int, node: str, part: ExportPart) -> None:
        self.url, self.table, self.version, self.node, self.part = url, table, version, node, part
        self.after, self.until = -1, -1  # sequences; -1: all rows


class _Reader(DataSourceReader):
    def __init__(self, url: str, table: str) -> None:
        self._url, self._table = url, table

    def partitions(self) -> list[InputPartition]:
        return [*_list_parts(self._url, self._table)[1]]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return _read(partition)


class _StreamReader(DataSourceStreamReader):
    def __init__(self, url: str, table: str, first: int) -> None:
        self._url, self._table, self._first = url, table, first

    def initialOffset(self) -> dict[str, int]:  # as Spark calls it, also below
        return {"watermark": self._first}

    def latestOffset(self) -> dict[str, int]:  # type: ignore[override]  # the form of Spark 4.0, which later ones call too
        # Below `first`, the next batch would begin with rows that are not wanted.
        return {"watermark": max(self._first, _list_parts(self._url, self._table)[0])}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[InputPartition]:
        watermark, parts = _list_parts(self._url, self._table)
        after, until = start["watermark"], end["watermark"]
        if watermark < after == until == self._first:
            raise ExportError(
                f"{self._url} ends at {watermark}, and the stream begins after {after}. "
                "Set `from` to a sequence that it has, and start the query with a new checkpoint"
            )
        # An end before the start is what `latestOffset` found after the export was begun anew: without rows the batch would
        # pass, and all rows up to that end would never come.
        if watermark < until or until < after:
            raise ExportError(
                f"{self._url} was begun anew: it ends at {min(watermark, until)}, and was read up to {max(after, until)}. "
                "Start the query with a new checkpoint"
            )
        # What a part spans is asked only where that decides, as it brings the part to the driver.
        if after == until:  # as Spark asks when a query is started again
            return []
        for one in parts:
            one.after, one.until = after, until
        if after == 0 and until == watermark:
            return [*parts]
        found: list[InputPartition] = []
        for one in reversed(parts):  # rows ascend from part to part
            first, last = _span(one)
            if first <= one.until and last > one.after:
                found.append(one)
            if first <= one.after:
                break
        return found

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return _read(partition)


def _list_parts(url: str, table: str) -> tuple[int, list[_Part]]:
    """Return up to where a table is exported, and its parts."""
    with TemporaryDirectory(prefix="ravel-export-") as scratch:
        folder = local_folder(url)
        if folder is None:
            folder = Path(scratch)
            fetch_manifest(url, folder)
        path = folder / MANIFEST_NAME
        manifest = load_manifest(path)
        try:
            parts = list_tables(
                manifest, folder, path, with_blocks=table in BLOCK_TABLES, with_bodies=table in BODY_TABLES
            )[table]
            watermark = int(manifest.get(_WATERMARKS.get(table, "watermark"), 0))
            version, node = int(manifest["schema_version"]), str(manifest["node"])
        except (KeyError, TypeError, ValueError) as error:
            raise ExportError(f"{url} has no good manifest: {type(error).__name__} {error}") from None
        return watermark, [_Part(url, table, version, node, part) for part in parts]


def _bring(one: _Part, scratch: str) -> ExportPart:
    """Return the part as a file of this machine, checked."""
    folder = local_folder(one.url)
    if folder is not None:
        part = find_part(one.part, folder)
    else:
        part = replace(one.part, path=Path(scratch) / "part.parquet")
        bring_part(one.url, part)
    check_part(part, columns_of(one.table, one.version))
    return part


def _span(one: _Part) -> tuple[int, int]:
    """Return the first and last sequence of a part, as its rows ascend."""
    with TemporaryDirectory(prefix="ravel-export-") as scratch:
        sequences: Any = pq.read_table(_bring(one, scratch).path, columns=["sequence"])["sequence"]
        found: Any = pc.min_max(sequences).as_py()
        return (found["min"], found["max"]) if len(sequences) else (0, -1)


def _read(partition: InputPartition) -> Iterator[pa.RecordBatch]:
    if not isinstance(partition, _Part):  # Spark's, where there is none
        return
    schema = pa.schema([field.with_type(_spark_type(field.type)) for field in plain_schema(partition.table)])
    with (
        TemporaryDirectory(prefix="ravel-export-") as scratch,
        pq.ParquetFile(_bring(partition, scratch).path) as file,
    ):
        for batch in file.iter_batches(_BATCH_ROWS):
            rows = pa.Table.from_batches([batch])
            if partition.until >= 0:
                sequence = pc.field("sequence")
                rows = rows.filter((sequence > partition.after) & (sequence <= partition.until))
            yield from fit_rows(rows, schema, partition.node).to_batches()


def _kind(kind: pa.DataType) -> str:
    """Return a type of Arrow in Spark's words."""
    if pa.types.is_list(kind):
        return f"array<{_kind(kind.value_type)}>"
    if pa.types.is_timestamp(kind):
        return "timestamp"
    return {"int64": "bigint", "binary": "binary", "string": "string", "bool": "boolean"}[str(kind)]


def _spark_type(kind: pa.DataType) -> pa.DataType:
    """Return a type as Spark demands it of batches: microseconds, and elements of this name."""
    if pa.types.is_list(kind):
        return pa.list_(pa.field("element", kind.value_type))
    return pa.timestamp("us", "UTC") if pa.types.is_timestamp(kind) else kind
