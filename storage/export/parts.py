"""Writes the Parquet part files of an export, names them by checksum, and merges small ones.

Rows become batches here, which parts are written from. Memory is bounded by a group of rows of the table, whatever a part's
size.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from blake3 import blake3

from ravel.exports.schema import BLOCK_TABLES, SORTED, TABLES, TIME_END, TIME_MIN
from storage.engine.database import StorageError
from storage.export.manifest import Part

ROWS_AT_ONCE: Final = 20_000
"""Rows that are read at once: some MB."""
ROWS_PER_GROUP: Final = 500_000
"""Rows of a group, some 40 MB of a file: who reads from an object store fetches a column of a group at once, and Spark gives
a task one group or many. A group that is written is in memory, 0.4 KB a commit."""
BODIES_PER_GROUP: Final = 64
"""Rows of `bodies` in memory at once, which have half a MiB each at most."""
SIZE_PER_GROUP: Final = 256 << 20
"""Bytes of a group in memory, whatever its rows have."""
HEAVY_SIZE_PER_GROUP: Final = 16 << 20
"""Bytes of a group in memory of HEAVY tables, whose rows have a MiB each at most and a few hundred bytes as a rule."""
HEAVY: Final = ("bodies", *BLOCK_TABLES)
"""Tables of what people wrote."""
ROWS_PER_PART: Final = 4_000_000
"""A GB or less, which is never merged again: it costs as much to read, write and upload as it had cost already."""
_HASH_CHUNK_SIZE: Final = 1 << 20
_NAME_SIZE: Final = 32
"""Hexadecimal digits of the checksum in a part's name: 128 bits, which nobody meets by chance."""
_REPEATED: Final = (
    "topic",
    "repo_id",
    "branch_id",
    "repo_name",
    "branch_name",
    "author",
    "source_author",
    "body_kind",
    "document",
    "kind",
    "operation",
    "permission",
    "root",
    "reason",
    "code",
)
"""Columns of few different values, the ones that a dictionary makes smaller."""


ExportRow = tuple[object, ...]
"""Values of one row of a table, in the order of its columns."""


@dataclass(frozen=True, slots=True)
class Written:
    """Part in the scratch folder, and what the manifest is to say of it."""

    part: Part
    path: Path


def make_batch(schema: pa.Schema, columns: Iterable[Any]) -> pa.RecordBatch:
    """Make a batch of columns, which are Arrow arrays or sequences of values; timestamps are made here."""
    source = iter(columns)
    arrays: list[Any] = []
    for field in schema:
        if pa.types.is_timestamp(field.type):
            arrays.append(_as_timestamps(arrays[-1], field.type))
            continue
        column = next(source)
        arrays.append(column if isinstance(column, pa.Array) else pa.array(column, field.type))
    assert next(source, None) is None, "a column for each field"
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _as_timestamps(times: Any, kind: pa.DataType) -> Any:  # noqa: ANN401  # arrays
    first, last = pa.scalar(TIME_MIN, pa.int64()), pa.scalar(TIME_END - 1, pa.int64())
    is_one = pc.and_(pc.greater_equal(times, first), pc.less_equal(times, last))
    return pc.if_else(is_one, times, pa.scalar(None, pa.int64())).cast(kind)


def batch_rows(schema: pa.Schema, rows: Iterable[ExportRow]) -> Iterator[pa.RecordBatch]:
    """Yield rows in batches of at most ROWS_AT_ONCE; nothing without rows."""
    source = iter(rows)
    while some := list(islice(source, ROWS_AT_ONCE)):
        yield make_batch(schema, zip(*some, strict=True))


class _OpenPart:
    """Part that is being written."""

    def __init__(self, scratch: Path, table: str) -> None:
        schema = TABLES[table]
        self._scratch, self._table = scratch, table
        self._path = scratch / f"unnamed-{table}.parquet"
        self.rows = 0
        self._group: list[pa.RecordBatch] = []
        self._group_rows = self._group_size = 0
        repeated: Any = [
            name for name in _REPEATED if name in schema.names
        ]  # the stubs know only all or none
        order: Any = [(name, "ascending") for name in SORTED.get(table, ())]
        self._writer = pq.ParquetWriter(
            self._path,
            schema,
            compression="zstd",
            use_dictionary=repeated,
            sorting_columns=pq.SortingColumn.from_ordering(schema, order) if order else None,
        )

    def write(self, batch: pa.RecordBatch) -> None:
        """Add a batch. A group has ROWS_PER_GROUP rows, or the bytes that a group may have, or little more."""
        self._group.append(batch)
        self._group_rows += batch.num_rows
        self._group_size += batch.nbytes
        self.rows += batch.num_rows
        size_max = HEAVY_SIZE_PER_GROUP if self._table in HEAVY else SIZE_PER_GROUP
        if self._group_rows >= ROWS_PER_GROUP or self._group_size >= size_max:
            self._write_group()

    def _write_group(self) -> None:
        if self._group:
            self._writer.write_table(pa.Table.from_batches(self._group).combine_chunks())
        self._group, self._group_rows, self._group_size = [], 0, 0

    def close(self) -> None:
        """Let go of the file."""
        self._writer.close()

    def finish(self) -> Written:
        """Close the part, and name it by its checksum."""
        self._write_group()
        self.close()
        size, checksum = measure(self._path)
        name = checksum[:_NAME_SIZE]
        part = Part(f"{self._table}/{name}.parquet", self.rows, size, checksum)
        return Written(part, self._path.rename(self._scratch / f"{self._table}-{name}"))


def write_parts(
    scratch: Path, batches: Iterable[tuple[str, pa.RecordBatch]]
) -> Iterator[tuple[str, Written]]:
    """Write batches, each with its table, as parts of at most ROWS_PER_PART rows or little more; none without rows.

    Tables may take turns: one pass over commits writes several of them.
    """
    parts: dict[str, _OpenPart] = {}
    try:
        for table, batch in batches:
            if not batch.num_rows:
                continue
            if table not in parts:
                parts[table] = _OpenPart(scratch, table)
            parts[table].write(batch)
            if parts[table].rows >= ROWS_PER_PART:
                yield table, parts.pop(table).finish()
        while parts:
            table, part = parts.popitem()
            yield table, part.finish()
    finally:
        for part in parts.values():
            part.close()


def read_batches(
    paths: Sequence[tuple[Part, Path]], schema: pa.Schema, rows_max: int
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of local parts that are as the manifest says, at most so many at once. Raises StorageError."""
    for part, path in paths:
        try:
            if measure(path) != (part.bytes, part.blake3):
                raise StorageError(
                    f"{part.path} was altered since it was exported; export to another destination"
                )
            with pq.ParquetFile(path) as file:
                for batch in file.iter_batches(batch_size=rows_max):
                    yield pa.RecordBatch.from_arrays(batch.columns, schema=schema)
        except (OSError, pa.ArrowException) as error:
            raise StorageError(f"{part.path} cannot be read again: {error}") from None


def choose_merge(rows: Sequence[int], parts_max: int) -> int | None:
    """Return from which part on to merge all into one, or None while they are few.

    The newest are taken, and older ones as long as these have no more rows than what is taken already: so a row is
    written again only when what it lies in doubles, as often as the logarithm of their number.
    """
    if len(rows) <= parts_max:
        return None
    start, total = len(rows) - 1, rows[-1]
    while start > 0 and total + rows[start - 1] <= ROWS_PER_PART:
        is_alone = start == len(rows) - 1
        if rows[start - 1] > total and not is_alone:
            break
        start -= 1
        total += rows[start]
    return start if start < len(rows) - 1 else None


def measure(path: Path) -> tuple[int, str]:
    """Return a file's size and BLAKE3 (hex)."""
    hasher = blake3()
    size = 0
    with path.open("rb") as file:
        while chunk := file.read(_HASH_CHUNK_SIZE):
            hasher.update(chunk)
            size += len(chunk)
    return size, hasher.hexdigest()
