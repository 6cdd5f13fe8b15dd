"""Reads query results in parts, so that memory stays bounded and an early stop leaves no cursor open.

Without this, PostgreSQL's driver has all rows in memory before the first is seen.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from sqlalchemy import Connection, Row, Select


def stream_parts(
    connection: Connection, query: "Select[*tuple[Any, ...]]", size: int
) -> "Iterator[Sequence[Row[*tuple[Any, ...]]]]":
    """The rows of a query, at most `size` at a time."""
    result = connection.execute(query.execution_options(yield_per=size))
    try:
        yield from result.partitions()
    finally:
        result.close()


def stream_rows(
    connection: Connection, query: "Select[*tuple[Any, ...]]", size: int
) -> "Iterator[Row[*tuple[Any, ...]]]":
    """The rows of a query, one by one; `size` of them are in memory."""
    for part in stream_parts(connection, query, size):
        yield from part
