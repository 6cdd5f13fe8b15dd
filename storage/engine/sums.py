"""SQL sum that returns an integer on both backends (PostgreSQL would return a decimal)."""

from typing import Any

from sqlalchemy import BigInteger, ColumnElement, cast, func


def sum_of(column: "ColumnElement[Any]") -> "ColumnElement[int]":
    """The sum of a column over the rows of a query; 0 of none."""
    return cast(func.coalesce(func.sum(column), 0), BigInteger)
