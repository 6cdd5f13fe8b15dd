"""Fast bulk inserts, updates and small repeated queries: passes tuples directly to the database driver.

SQLAlchemy makes the statement for whichever database it is; what it is spared is to bind values by name, which takes
longer than SQLite does to insert a row. Types that convert values are therefore not for these tables.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache
from operator import itemgetter
from typing import Any

from sqlalchemy import Connection, CursorResult, Select, Table, Update, insert
from sqlalchemy.engine import Dialect


def insert_rows(
    connection: Connection, table: Table, columns: tuple[str, ...], rows: Sequence[tuple[Any, ...]]
) -> None:
    """Insert rows whose values stand in the order of `columns`."""
    if not rows:
        return
    statement, order = _compiled(table, columns, connection.dialect)
    connection.exec_driver_sql(statement, [order(row) for row in rows])


def change_rows(connection: Connection, statement: Update, rows: Sequence[tuple[Any, ...]]) -> None:
    """Run a statement that stands in a constant for each of some tuples, which give its parameters in their order."""
    if rows:
        connection.exec_driver_sql(_text(statement, connection.dialect), list(rows))


def select_rows(
    connection: Connection, query: "Select[*tuple[Any, ...]]", *values: object
) -> "CursorResult[*tuple[Any, ...]]":
    """The rows of a query that stands in a constant, its parameters given in their order."""
    return connection.exec_driver_sql(_text(query, connection.dialect), values)


@lru_cache(maxsize=32)
def _compiled(
    table: Table, columns: tuple[str, ...], dialect: Dialect
) -> tuple[str, Callable[[tuple[Any, ...]], tuple[Any, ...]]]:
    """The statement, and what puts a row into its order."""
    compiled = insert(table).compile(dialect=dialect, column_keys=list(columns))
    names: list[str] | None = getattr(compiled, "positiontup", None)
    assert names is not None, "the drivers take parameters by place"
    places = [columns.index(name) for name in names]
    # Of one place, itemgetter gives the value alone.
    return str(compiled), itemgetter(*places) if len(places) > 1 else tuple


@lru_cache(maxsize=32)
def _text(query: "Select[*tuple[Any, ...]] | Update", dialect: Dialect) -> str:
    return str(query.compile(dialect=dialect))
