"""Fast bulk inserts, updates and small repeated queries: passes tuples directly to the database driver.

SQLAlchemy makes the statement for whichever database it is; what it is spared is to bind values by name, which takes
longer than SQLite does to insert a row. Types that convert values are therefore not for these tables.

SQLite's driver is called without SQLAlchemy, which makes a context and a description of the result for each of some 25
statements of a write: three times what SQLite takes. Its errors are raised as SQLAlchemy would. Where something listens to
statements, SQLAlchemy runs them, so that it hears of all.
"""

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from operator import itemgetter
from typing import Any, Final, TypeVar

from sqlalchemy import ColumnElement, Connection, Delete, Select, Table, Update, column, insert, table
from sqlalchemy.engine import Dialect
from sqlalchemy.exc import DBAPIError

from storage.engine.errors import StorageError
from storage.engine.id_keys import chunks, id_keys
from storage.engine.queries import close_streams

Row = tuple[Any, ...]
_Id = TypeVar("_Id", bound=bytes)
WANTED: Final = table("wanted", column("one"), column("other"), column("third"))
"""Values that `select_wanted` looks for together, two or three each."""
UNREADABLE: Final = (sqlite3.Error, UnicodeError, OverflowError)
"""Errors of the driver for a damaged file: it decodes SQLite's message, with names in it that are no text any more."""


class Rows:
    """Rows that a query finds, each when it is asked for; once."""

    def __init__(self, rows: Iterator[Row]) -> None:
        self._rows = rows

    def __iter__(self) -> Iterator[Row]:
        return self._rows

    def first(self) -> Row | None:
        """Return the first row, or None. The rest is not read."""
        return next(self._rows, None)

    def scalars(self) -> list[Any]:
        """Return the first value of each row."""
        return [row[0] for row in self._rows]


def insert_rows(
    connection: Connection, table: Table, columns: tuple[str, ...], rows: Sequence[tuple[Any, ...]]
) -> None:
    """Insert rows whose values are in the order of `columns`."""
    if not rows:
        return
    statement, order = _compiled(table, columns, connection.dialect)
    _run(connection, statement, list(rows) if order is None else [order(row) for row in rows])


def change_rows(
    connection: Connection, statement: "Update | Delete", rows: Sequence[tuple[Any, ...]]
) -> None:
    """Run a constant statement for each of some tuples, which hold its parameters in order."""
    if rows:
        _run(connection, _text(statement, connection.dialect), list(rows))


def select_rows(connection: Connection, query: "Select[*tuple[Any, ...]]", **values: object) -> Rows:
    """Run a query that is a constant, with its parameters by name; return its rows.

    Args:
        connection: Of a read or write transaction.
        query: A constant, since its compiled text is remembered; 128 of them are.
        values: A value for each parameter of the query.

    Raises:
        DBAPIError: The database refused the statement.
        StorageError: A damaged file gave what is no value.
    """
    text, order = _named(query, connection.dialect)
    return _find(connection, text, order(values))


def select_in(
    connection: Connection,
    query: "Select[*tuple[Any, ...]]",
    keys: Sequence[object],
    **values: object,
) -> Rows:
    """Run a constant query that has `column IN :keys`, an expanding parameter; return its rows.

    SQLAlchemy writes such a statement anew for each execution. Here there is one text for each power of two of keys, and
    the last key fills it up.

    Args:
        connection: Of a read or write transaction.
        query: A constant, since its compiled text is remembered.
        keys: One at least, LOOKUP_COUNT_MAX at most (`chunks`).
        values: A value for each other parameter of the query.
    """
    if connection.dialect.name != "sqlite":  # others write a type beside each value
        return Rows(map(tuple, connection.execute(query, {"keys": keys, **values})))
    count = 1 << (len(keys) - 1).bit_length()
    text, order = _expanded(query, count, connection.dialect)
    before, after = order(values)
    filled = (*keys, *[keys[-1]] * (count - len(keys)))
    return _find(connection, text, (*before, *filled, *after))


def select_wanted(
    connection: Connection,
    query: "Select[*tuple[Any, ...]]",
    wanted: Sequence[tuple[object, ...]],
    **values: object,
) -> Rows:
    """Run a constant query from WANTED and tables whose indexes have the columns of these; return its rows.

    SQLite walks through the values, and finds each by the index, as it does not for `(a, b) IN (...)`.

    Args:
        connection: Of a read or write transaction.
        query: A constant, since its compiled text is remembered.
        wanted: One at least, half of LOOKUP_COUNT_MAX at most, and none twice: all of two values, or of three.
        values: A value for each parameter of the query.
    """
    count, width = 1 << (len(wanted) - 1).bit_length(), len(wanted[0])
    text, order = _wanted(query, count, width, connection.dialect)
    filled = [one for some in wanted for one in some] + [None] * (width * (count - len(wanted)))
    return _find(connection, text, (*filled, *order(values)))


def select_by_ids(
    connection: Connection, query: "Select[*tuple[Any, ...]]", ids: Iterable[_Id], **values: object
) -> Iterator[Row]:
    """Yield the rows of a constant query by `id_key IN :keys` whose first column is one of these ids.

    Costs O(ids): one statement for LOOKUP_COUNT_MAX of them.
    """
    wanted = set(ids)
    for part in chunks(id_keys(wanted)):
        for row in select_in(connection, query, part, **values):
            if row[0] in wanted:
                yield row


def unindexed(column: "ColumnElement[int]") -> "ColumnElement[int]":
    """Return an expression for a condition beside `key IN (...)`, which no index of the column serves.

    SQLite, which knows no counts of rows, would take an index of the column itself for some hundred keys, and read a whole
    branch or topic for them.
    """
    return column + 0


def run_plain(connection: Connection, statement: str) -> None:
    """Run a statement without parameters or rows: the beginning or the end of a transaction."""
    driver = _sqlite(connection)
    if driver is None:
        connection.exec_driver_sql(statement)
        return
    try:
        driver.execute(statement)
    except UNREADABLE as error:
        raise _explained(connection, statement, error) from error


def roll_back(connection: Connection) -> None:
    """Undo a transaction, if one is open. SQLAlchemy does not know of one in which it ran no statement."""
    driver = _driver(connection)
    if driver is not None:
        try:
            driver.rollback()
        except UNREADABLE as error:
            raise _explained(connection, "ROLLBACK", error) from error
    connection.rollback()
    if not connection.invalidated:
        close_streams(connection)


def _run(connection: Connection, statement: str, rows: list[Row]) -> None:
    driver = _sqlite(connection)
    if driver is None:
        connection.exec_driver_sql(statement, rows)
        return
    try:
        if len(rows) == 1:
            driver.execute(statement, rows[0])
        else:
            driver.executemany(statement, rows)
    except UNREADABLE as error:
        raise _explained(connection, statement, error) from error


def _find(connection: Connection, statement: str, values: Row) -> Rows:
    driver = _sqlite(connection)
    if driver is None:
        return Rows(map(tuple, connection.exec_driver_sql(statement, values)))
    return Rows(_read(connection, driver, statement, values))


def _read(connection: Connection, driver: sqlite3.Connection, statement: str, values: Row) -> Iterator[Row]:
    try:
        yield from driver.execute(statement, values)
    except UNREADABLE as error:
        raise _explained(connection, statement, error) from error


def _sqlite(connection: Connection) -> sqlite3.Connection | None:
    """Return SQLite's driver if it may be called directly, else None."""
    is_heard = bool(connection.dispatch.before_cursor_execute)
    return None if is_heard else _driver(connection)


def _driver(connection: Connection) -> sqlite3.Connection | None:
    """Return SQLite's driver, else None. Another database's is not asked for: where its server has gone, that raises."""
    if connection.dialect.name != "sqlite":
        return None
    driver = connection.connection.driver_connection
    return driver if isinstance(driver, sqlite3.Connection) else None


def _explained(connection: Connection, statement: str, error: Exception) -> Exception:
    """Return the error that SQLAlchemy, or the store's listener, would raise for an error of the driver."""
    if isinstance(error, sqlite3.Error):
        return DBAPIError(statement, None, error)
    return StorageError(f"{connection.engine.url.database}: it is damaged: {error}")


@lru_cache(maxsize=32)
def _compiled(
    table: Table, columns: tuple[str, ...], dialect: Dialect
) -> tuple[str, Callable[[tuple[Any, ...]], tuple[Any, ...]] | None]:
    """Compile an insert; return its text, and what puts a row into its order (None: it is in that already)."""
    compiled = insert(table).compile(dialect=dialect, column_keys=list(columns))
    names: list[str] | None = getattr(compiled, "positiontup", None)
    assert names is not None, "the drivers take parameters by place"
    places = [columns.index(name) for name in names]
    # Of one place, itemgetter would give the value alone.
    return str(compiled), None if places == sorted(places) else itemgetter(*places)


_Order = Callable[[Mapping[str, object]], tuple[object, ...]]
"""Puts parameters by name into a statement's order."""


@lru_cache(maxsize=128)
def _named(query: "Select[*tuple[Any, ...]]", dialect: Dialect) -> tuple[str, _Order]:
    text, names, constants = _parameters(query, dialect)

    def order(values: Mapping[str, object]) -> tuple[object, ...]:
        given = {**constants, **values}
        return tuple([given[name] for name in names])

    return text, order


@lru_cache(maxsize=256)
def _expanded(
    query: "Select[*tuple[Any, ...]]", count: int, dialect: Dialect
) -> tuple[str, Callable[[Mapping[str, object]], tuple[list[object], list[object]]]]:
    """Compile a query for this many keys; return its text, and makers of the parameters before and after the keys."""
    text, names, constants = _parameters(query, dialect)
    at = names.index("keys")

    def order(values: Mapping[str, object]) -> tuple[list[object], list[object]]:
        given = {**constants, **values}
        return [given[name] for name in names[:at]], [given[name] for name in names[at + 1 :]]

    return text.replace("__[POSTCOMPILE_keys]", ", ".join("?" * count)), order


@lru_cache(maxsize=64)
def _wanted(
    query: "Select[*tuple[Any, ...]]", count: int, width: int, dialect: Dialect
) -> tuple[str, _Order]:
    text, order = _named(query, dialect)
    one = ", ".join(["?" if dialect.name == "sqlite" else "%s"] * width)
    columns = ", ".join([column.name for column in WANTED.columns][:width])
    said = f"WITH wanted({columns}) AS (VALUES {', '.join([f'({one})'] * count)}) "
    columns_said, _, rest = text.partition("FROM wanted")
    tables, _, conditions = rest.partition("WHERE")  # `CROSS JOIN` has SQLite keep the order of the tables
    return f"{said}{columns_said}FROM wanted{tables.replace(', ', ' CROSS JOIN ')}WHERE{conditions}", order


def _parameters(
    query: "Select[*tuple[Any, ...]]", dialect: Dialect
) -> tuple[str, list[str], dict[str, object]]:
    """Compile a query; return its text, the names of its parameters in order, and the values of constants."""
    compiled = query.compile(dialect=dialect)
    names: list[str] | None = getattr(compiled, "positiontup", None)
    assert names is not None, "the drivers take parameters by place"
    constants = {name: value for name, value in compiled.params.items() if value is not None}
    return str(compiled), names, constants


@lru_cache(maxsize=128)
def _text(statement: "Update | Delete", dialect: Dialect) -> str:
    return str(statement.compile(dialect=dialect))
