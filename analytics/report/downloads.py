"""Writes tables of an analysis as CSV, from the Parquet files that an engine has written, and says how many rows they have.

In a CSV ids are texts as `ravel` takes them. A text that a spreadsheet would take for a formula has an apostrophe before it:
any member chooses names of branches.
"""

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from analytics.order import columns
from analytics.order.kernel import ID_SIZE, Bytes
from analytics.reading.limits import CSV_ROWS_MAX
from analytics.tables.definitions import TABLES

_BATCH_ROWS: Final = 65_536
_LETTERS: Final = np.frombuffer(b"abcdefghijklmnopqrstuvwxyz234567", np.uint8)
_TEXT_SIZE: Final = -(-ID_SIZE * 8 // 5)
"""Letters of an id as text, and how many these are."""


@dataclass(frozen=True, slots=True)
class Download:
    """A table beside the page."""

    name: str
    rows: int
    has_csv: bool


def write_downloads(
    out: Path, *, with_all: bool, rows_elsewhere: Mapping[str, int] = MappingProxyType({})
) -> tuple[Download, ...]:
    """Write the tables below `out` as CSV, the larger ones only `with_all`; what was there goes. Raises OSError.

    Tables of `rows_elsewhere` are not there, and get none.
    """
    folder = out / "csv"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    found = []
    for name in TABLES:
        parts = sorted((out / "tables" / name).glob("*.parquet"))
        rows = rows_elsewhere.get(name, sum(pq.read_metadata(part).num_rows for part in parts))
        has_csv = name not in rows_elsewhere and (with_all or rows <= CSV_ROWS_MAX)
        if has_csv:
            _write_csv(name, parts, folder / f"{name}.csv")
        found.append(Download(name, rows, has_csv))
    return tuple(found)


def _write_csv(name: str, parts: Sequence[Path], target: Path) -> None:
    schema = pa.schema([(column.name, _CELLS[column.kind]) for column in TABLES[name].columns])
    with pa_csv.CSVWriter(target, schema) as writer:
        for part in parts:
            with pq.ParquetFile(part) as file:
                for batch in file.iter_batches(_BATCH_ROWS):
                    cells = [
                        _plain(batch.column(column), schema.field(column).type) for column in schema.names
                    ]
                    writer.write_batch(pa.record_batch(cells, schema=schema))


_CELLS: Final[Mapping[str, pa.DataType]] = {
    "bigint": pa.int64(),
    "binary": pa.string(),
    "boolean": pa.bool_(),
    "double": pa.float64(),
    "int": pa.int32(),
    "string": pa.string(),
}
"""Types in SQL's words, and what stands for them in a CSV."""


def _plain(cells: "pa.Array[Any]", kind: pa.DataType) -> "pa.Array[Any]":
    if pa.types.is_binary(cells.type) or pa.types.is_large_binary(cells.type):
        found: Any = cells.dictionary_encode()  # most ids stand many times
        texts: Any = _text_ids(columns.ids(pa.chunked_array([found.dictionary.cast(pa.binary())])))
        return texts.take(found.indices)  # type: ignore[no-any-return]  # as above
    cells = cells.cast(kind)
    return pc.replace_substring_regex(cells, r"^([=+\-@\t\r])", r"'\1") if kind == pa.string() else cells


def _text_ids(ids: Bytes) -> Any:  # noqa: ANN401  # an array of Arrow
    """Return ids as texts, as `text_id` does: of all at once, as Python takes 20 microseconds for each."""
    bits = np.pad(np.unpackbits(ids, axis=1), ((0, 0), (0, _TEXT_SIZE * 5 - ID_SIZE * 8)))
    letters = _LETTERS[np.packbits(bits.reshape(-1, 5), axis=1)[:, 0] >> 3]
    offsets = np.arange(len(ids) + 1, dtype=np.int32) * _TEXT_SIZE
    buffers: list[Any] = [None, pa.py_buffer(offsets.tobytes()), pa.py_buffer(letters.tobytes())]
    return pa.Array.from_buffers(pa.string(), len(ids), buffers)
