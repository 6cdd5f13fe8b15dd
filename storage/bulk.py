"""Many rows into one table, as tuples straight to the driver.

SQLAlchemy makes the statement; what it is spared is to bind every row by name, which takes longer than SQLite does to
insert it. Types that convert values are therefore not for these tables.
"""

from collections.abc import Sequence
from functools import lru_cache
from operator import itemgetter
from typing import Any

from sqlalchemy import Connection, Table, insert
from sqlalchemy.engine import Dialect


def insert_rows(
    connection: Connection, table: Table, columns: tuple[str, ...], rows: Sequence[tuple[Any, ...]]
) -> None:
    """Insert rows whose values stand in the order of `columns`: two columns at least."""
    if not rows:
        return
    statement, order = _compiled(table, columns, connection.dialect)
    connection.exec_driver_sql(statement, [order(row) for row in rows])


@lru_cache(maxsize=32)
def _compiled(table: Table, columns: tuple[str, ...], dialect: Dialect) -> tuple[str, "itemgetter[Any]"]:
    """The statement, and what puts a row into its order."""
    compiled = insert(table).compile(dialect=dialect, column_keys=list(columns))
    names: list[str] | None = getattr(compiled, "positiontup", None)
    assert names is not None, "SQLite's driver takes parameters by place"
    return str(compiled), itemgetter(*(columns.index(name) for name in names))
