"""Helpers of queries: integer sums, and results read in parts.

Reading in parts bounds memory, and an early stop leaves no cursor open. PostgreSQL's driver would otherwise fetch all rows
before the first is seen.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from sqlalchemy import BigInteger, ColumnElement, Connection, Row, Select, cast, func


def stream_parts(
    connection: Connection, query: "Select[*tuple[Any, ...]]", size: int
) -> "Iterator[Sequence[Row[*tuple[Any, ...]]]]":
    """Yield the rows of a query, at most `size` at a time."""
    result = connection.execute(query.execution_options(yield_per=size))
    try:
        yield from result.partitions()
    finally:
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
