"""Spark's source of exports: `spark.read.format("ravel").load(url)` and `spark.readStream.format("ravel").load(url)`.

`register(spark)` comes before, once for each session.

Options: `table` (by default `commits`); `columns`, names with commas between (by default all); of streams `from`, the
sequence after which they begin (by default 0: with the first row). Rows have the columns of this version's schema, null
where an older export lacks one, and `node`. One export is read; unite several.

The driver reads the manifest. A task brings a part from where the export lies, checks it, and reads some of its row groups:
so executors need this package, and credentials where fsspec finds them, and no folder in common. From Spark 4.1 on filters
of single columns are the source's: row groups that hold nothing wanted are passed over. Spark has no way to tell a source in
Python which columns a query reads (SPARK-51713 was closed without one): name them in `columns`, or by `.schema(...)`.

A stream follows the export: each batch has the rows between two watermarks. Tables that exports state anew each time cannot
be followed.
"""

import re
from collections.abc import Iterable, Iterator, MutableMapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import and_
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from pyarrow.fs import LocalFileSystem
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

from ravel.exports.checking import BODY_TABLES, WATERMARKS, Export, ExportError, ExportPart, check_part
from ravel.exports.fetching import bring_part, list_source
from ravel.exports.schema import BLOCK_TABLES, TABLES
from ravel.exports.tables import NODE, fit_rows, plain_schema

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_PUSHDOWN: Final = "spark.sql.python.filterPushdown.enabled"
_BATCH_ROWS: Final = 10_000
_TASK_ROWS: Final = 500_000
"""Rows of a task, as far as row groups allow: some 40 MB of a file."""
_checked: Final[set[tuple[str, str, int]]] = set()
"""Parts that this process has found to be sound, with the time of the file: tasks that share a part check it once."""


def register(spark: "SparkSession") -> None:
    """Have a session know the format `ravel`. Where Spark can push filters down, the session is set to do so."""
    if hasattr(DataSourceReader, "pushFilters"):
        spark.conf.set(_PUSHDOWN, "true")
        spark.dataSource.register(_FilteringSource)
    else:
        spark.dataSource.register(RavelSource)


class RavelSource(DataSource):
    """One table of one export. Filters are left to Spark."""

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
        whole = plain_schema(self._table).names
        self._columns = [
            name.strip() for name in options.get("columns", "").split(",") if name.strip()
        ] or whole
        if unknown := {*self._columns} - {*whole}:
            raise ExportError(f"no column {', '.join(sorted(unknown))}; {self._table} has {', '.join(whole)}")

    @classmethod
    def name(cls) -> str:
        """Return what `format` takes."""
        return "ravel"

    def schema(self) -> str:
        """Return the columns in Spark's words."""
        whole = plain_schema(self._table)
        return ", ".join(f"`{name}` {_kind(whole.field(name).type)}" for name in self._columns)

    def reader(self, schema: StructType) -> DataSourceReader:
        """Called by Spark to read what is there. `schema` may be the user's, with some of the columns."""
        return _Reader(_Read(self._url, self._table, tuple(schema.names)))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # Spark calls it so
        """Called by Spark to follow."""
        if self._table not in WATERMARKS:
            raise ExportError(
                f"{self._table} is stated anew by each export, and cannot be followed; {', '.join(WATERMARKS)} can"
            )
        return _StreamReader(_Read(self._url, self._table, tuple(schema.names)), int(self._from))


class _FilteringSource(RavelSource):
    """Source that also takes filters, which Spark pushes down from 4.1 on."""

    def reader(self, schema: StructType) -> DataSourceReader:
        return _FilteringReader(_Read(self._url, self._table, tuple(schema.names)))


@dataclass(frozen=True, slots=True)
class _Read:
    """Table and columns of an export that are read."""

    url: str
    table: str
    columns: tuple[str, ...]
    filters: tuple[tuple[str, str, Any], ...] = ()
    """Columns, functions of pyarrow.compute, and what they compare with: rows where all hold."""

    def list_export(self) -> Export:
        """Return the export as its manifest has it now. Raises ExportError."""
        return list_source(
            self.url, with_blocks=self.table in BLOCK_TABLES, with_bodies=self.table in BODY_TABLES
        )

    def with_filter(self, one: Any) -> "_Read | None":  # noqa: ANN401  # a filter of Spark's
        """Return the same with a filter more, None for one that is left to Spark."""
        function = _FUNCTIONS.get(type(one).__name__)
        if function is None or len(one.attribute) > 1:
            return None
        (column,) = one.attribute
        kind = pa.string() if column == NODE else TABLES[self.table].field(column).type
        if not (pa.types.is_int64(kind) or pa.types.is_string(kind) or _is_bytes(kind)):
            return None
        value: Any = getattr(one, "value", None)
        taken = column, function, value
        if function == "is_in" and None in value:
            return None  # of which SQL says neither yes nor no
        try:
            _condition(taken, kind)
        except (pa.ArrowException, TypeError):  # such as an id of another length, which Spark can compare
            return None
        return replace(self, filters=(*self.filters, taken))

    def condition(self, there: Sequence[str]) -> Any:  # noqa: ANN401  # an expression, or None
        """Return the filters as Arrow has them, for a file that has these columns."""
        found = [
            _condition(one, TABLES[self.table].field(one[0]).type)
            # What an older export lacks is null, which no comparison holds of.
            if one[0] in there
            else pc.scalar(one[1] == "is_null")
            for one in self.filters
            if one[0] != NODE
        ]
        return reduce(and_, found) if found else None

    def holds_of(self, node: str) -> bool:
        """Return True unless a filter of `node`, which all rows of an export share, leaves none."""
        row = pa.table({NODE: [node]})
        return all(
            row.filter(_condition(one, pa.string())).num_rows for one in self.filters if one[0] == NODE
        )


def _condition(one: tuple[str, str, Any], kind: pa.DataType) -> Any:  # noqa: ANN401  # an expression of Arrow's
    column, function, value = one
    field = pc.field(column)
    if function == "is_in":
        return field.isin(pa.array(list(value), kind))
    if function in ("is_null", "is_valid"):
        return getattr(field, function)()
    return getattr(pc, function)(field, pa.scalar(value, kind))


class _Slice(InputPartition):
    """Some row groups of a part, for one task; and which of its rows."""

    def __init__(self, export: Export, part: ExportPart, number: int = 0, of: int = 1) -> None:
        self.node, self.part = export.node, part
        self.number, self.of = number, of
        self.after, self.until = -1, -1  # sequences; -1: all rows


class _Reader(DataSourceReader):
    def __init__(self, read: _Read) -> None:
        self._read = read

    def partitions(self) -> list[InputPartition]:
        export = self._read.list_export()
        if not self._read.holds_of(export.node):
            return []
        return [
            _Slice(export, part, number, of)
            for part in export.tables[self._read.table]
            for of in [max(1, -(-part.rows // _TASK_ROWS))]
            for number in range(of)
        ]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return _read(self._read, partition)


class _FilteringReader(_Reader):
    def pushFilters(self, filters: list[Any]) -> Iterable[Any]:  # as Spark calls it; its types come with 4.1
        for one in filters:
            taken = self._read.with_filter(one)
            if taken is None:
                yield one
            else:
                self._read = taken


class _StreamReader(DataSourceStreamReader):
    def __init__(self, read: _Read, first: int) -> None:
        self._read, self._first = read, first

    def initialOffset(self) -> dict[str, int]:  # as Spark calls it, also below
        return {"watermark": self._first}

    def latestOffset(self) -> dict[str, int]:  # type: ignore[override]  # the form of Spark 4.0, which later ones call too
        # Below `first`, the next batch would begin with rows that are not wanted.
        return {"watermark": max(self._first, self._read.list_export().watermarks[self._read.table])}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[InputPartition]:
        export = self._read.list_export()
        watermark, url = export.watermarks[self._read.table], self._read.url
        after, until = start["watermark"], end["watermark"]
        if watermark < after == until == self._first:
            raise ExportError(
                f"{url} ends at {watermark}, and the stream begins after {after}. "
                "Set `from` to a sequence that it has, and start the query with a new checkpoint"
            )
        # An end before the start is what `latestOffset` found after the export was begun anew: without rows the batch would
        # pass, and all rows up to that end would never come.
        if watermark < until or until < after:
            raise ExportError(
                f"{url} was begun anew: it ends at {min(watermark, until)}, and was read up to {max(after, until)}. "
                "Start the query with a new checkpoint"
            )
        # What a part spans is asked only where that decides, as it brings the part to the driver.
        if after == until:  # as Spark asks when a query is started again
            return []
        parts = [_Slice(export, part) for part in export.tables[self._read.table]]
        for one in parts:
            one.after, one.until = after, until
        if after == 0 and until == watermark:
            return [*parts]
        found: list[InputPartition] = []
        for one in reversed(parts):  # rows ascend from part to part
            first, last = _span(self._read.table, one)
            if first <= one.until and last > one.after:
                found.append(one)
            if first <= one.after:
                break
        return found

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return _read(self._read, partition)


def _is_bytes(kind: pa.DataType) -> bool:
    return pa.types.is_binary(kind) or pa.types.is_fixed_size_binary(kind)


_FUNCTIONS: Final = {
    "EqualTo": "equal",
    "GreaterThan": "greater",
    "GreaterThanOrEqual": "greater_equal",
    "LessThan": "less",
    "LessThanOrEqual": "less_equal",
    "In": "is_in",
    "IsNull": "is_null",
    "IsNotNull": "is_valid",
}
"""Filters of Spark's that are taken, and the functions of pyarrow.compute that say the same."""


def _bring(table: str, one: _Slice) -> ExportPart:
    """Return the part as a file of this machine, checked."""
    part = bring_part(one.part) if one.part.url else one.part
    written_at = part.path.stat().st_mtime_ns if part.path.exists() else 0
    known = str(part.path), part.blake3, written_at
    if known not in _checked:
        check_part(part, TABLES[table])
        _checked.add(known)
    return part


def _span(table: str, one: _Slice) -> tuple[int, int]:
    """Return the first and last sequence of a part, as its rows ascend."""
    sequences: Any = pq.read_table(_bring(table, one).path, columns=["sequence"])["sequence"]
    found: Any = pc.min_max(sequences).as_py()
    return (found["min"], found["max"]) if len(sequences) else (0, -1)


def _read(read: _Read, one: InputPartition) -> Iterator[pa.RecordBatch]:
    if not isinstance(one, _Slice):  # Spark's, where there is none
        return
    whole = plain_schema(read.table)
    schema = pa.schema([pa.field(name, _spark_type(whole.field(name).type)) for name in read.columns])
    path = str(_bring(read.table, one).path)
    count = pq.read_metadata(path).num_row_groups
    groups = range(one.number * count // one.of, (one.number + 1) * count // one.of)
    fragment = ds.ParquetFileFormat().make_fragment(path, LocalFileSystem(), row_groups=[*groups])
    there = fragment.physical_schema.names
    wanted = [name for name in read.columns if name in there] or there[:1]
    held = read.condition(there)
    if one.until >= 0:
        sequence = pc.field("sequence")
        between = (sequence > one.after) & (sequence <= one.until)
        held = between if held is None else held & between
    for batch in fragment.scanner(
        columns=wanted, filter=held, batch_size=_BATCH_ROWS, use_threads=False
    ).to_batches():
        if batch.num_rows:
            yield from fit_rows(pa.Table.from_batches([batch]), schema, one.node).to_batches()


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
