"""Helpers of queries: integer sums, and results read in parts.

Reading in parts bounds memory, and an early stop leaves no cursor open. PostgreSQL's driver would otherwise fetch all rows
before the first is seen.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Final

from sqlalchemy import BigInteger, ColumnElement, Connection, Row, Select, cast, func

_OPEN: Final = "ravel.open_results"


def stream_parts(
    connection: Connection, query: "Select[*tuple[Any, ...]]", size: int
) -> "Iterator[Sequence[Row[*tuple[Any, ...]]]]":
    """Yield the rows of a query, at most `size` at a time."""
    result = connection.execute(query.execution_options(yield_per=size))
    opened = connection.info.setdefault(_OPEN, set())
    opened.add(result)
    try:
        yield from result.partitions()
    finally:
        opened.discard(result)
        result.close()


def close_streams(connection: Connection) -> None:
    """Close what was streamed in the transaction that has just ended, and with it the server's cursors.

    A generator that a traceback holds is closed late, maybe within the next transaction, which its CLOSE would break.
    """
    for result in connection.info.pop(_OPEN, ()):
        result.close()


def stream_rows(
    connection: Connection, query: "Select[*tuple[Any, ...]]", size: int
) -> "Iterator[Row[*tuple[Any, ...]]]":
    """Yield the rows of a query one by one, with `size` of them in memory."""
    for part in stream_parts(connection, query, size):
        yield from part


def sum_of(column: "ColumnElement[Any]") -> "ColumnElement[int]":
    """Return the sum of a column over the rows of a query; 0 without rows. PostgreSQL's own would be a decimal."""
    return cast(func.coalesce(func.sum(column), 0), BigInteger)
