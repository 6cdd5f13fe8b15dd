"""Converts Arrow columns of ids to numpy matrices and back, without Python objects.

Arrow's arrays are `Any` here: these functions work on their buffers, which the stubs of pyarrow do not describe.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from analytics.order.kernel import ID_SIZE, Bytes, Ints


def ids(column: Any) -> Bytes:  # noqa: ANN401  # pyarrow's stubs type no column of unknown kind
    """Return a chunked binary column as rows of 32 bytes. Raises ValueError if a value is null or of another length."""
    parts = [np.empty((0, ID_SIZE), np.uint8)]
    for chunk in column.chunks:
        if len(chunk) == 0:
            continue
        _, offsets_buffer, data = chunk.buffers()
        offsets = np.frombuffer(offsets_buffer, np.int32)[chunk.offset : chunk.offset + len(chunk) + 1]
        if chunk.null_count or (np.diff(offsets) != ID_SIZE).any():
            raise ValueError(f"a column of ids holds one that is not {ID_SIZE} bytes")
        parts.append(np.frombuffer(data, np.uint8)[offsets[0] : offsets[-1]].reshape(-1, ID_SIZE))
    return np.concatenate(parts)


def flatten_id_lists(column: Any) -> tuple[Bytes, Ints]:  # noqa: ANN401  # pyarrow's stubs type no column of unknown kind
    """Return all ids of a column of lists in one array, and the offset of each list, as Arrow lays lists out."""
    flat = [ids(pa.chunked_array([chunk.flatten()], pa.binary())) for chunk in column.chunks]
    lengths = [chunk.value_lengths().to_numpy(zero_copy_only=False) for chunk in column.chunks]
    offsets = np.cumsum(np.concatenate([np.zeros(1, np.int64), *lengths]), dtype=np.int64)
    return np.concatenate([np.empty((0, ID_SIZE), np.uint8), *flat]), offsets


def binary(rows: Bytes) -> Any:  # noqa: ANN401  # pyarrow's stubs type no column of unknown kind
    """Rows of 32 bytes as a binary array, which is of variable length: the only one Spark has."""
    offsets = np.arange(len(rows) + 1, dtype=np.int32) * ID_SIZE
    buffers: list[Any] = [None, pa.py_buffer(offsets.tobytes()), pa.py_buffer(rows.tobytes())]
    return pa.Array.from_buffers(pa.binary(), len(rows), buffers)


def gather(batches: Iterator[pa.RecordBatch], names: Sequence[str]) -> pa.Table | None:
    """Return all rows of some batches, None where there are none. Bytes and texts of these columns are held once, and as
    numbers.

    The same few branches, authors and kinds are named again and again. `plain` turns such a column back.
    """
    parts = [_shorten(batch, names) for batch in batches]
    return pa.Table.from_batches(parts).unify_dictionaries() if parts else None


def plain(column: Any) -> Any:  # noqa: ANN401  # arrays of Arrow: its stubs have no common type
    """Return a column of `gather`, or a part of one, as it was."""
    return column.dictionary_decode() if pa.types.is_dictionary(column.type) else column


def _shorten(batch: pa.RecordBatch, names: Sequence[str]) -> pa.RecordBatch:
    for at, name in enumerate(batch.schema.names):
        column: Any = batch.column(at)
        if name in names and (pa.types.is_binary(column.type) or pa.types.is_string(column.type)):
            batch = batch.set_column(at, name, column.dictionary_encode())
    return batch
