"""SQLite backend, the default: rows in one file of the node's folder.

SQLite runs in WAL with `synchronous=FULL`: a commit that was acknowledged survives a power cut (NORMAL loses them). A
write begins with BEGIN IMMEDIATE, so that it never fails half-way for a lock. Each write that changes rows is counted in
the database (`user_version`) and, once it is durable, beside it (`last_write`): SQLite itself does not notice when its log
lost some.
"""

import os
import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from sqlalchemy import URL, Connection, create_engine, event
from sqlalchemy.engine import Engine, ExceptionContext
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import QueuePool

from storage.engine.backends import Backend, FileUse
from storage.engine.bulk import UNREADABLE, run_plain
from storage.engine.copies import copy_beside, copy_database
from storage.engine.errors import StorageError
from storage.engine.folders import open_or_create
from storage.engine.last_write import LastWrite, next_count, read_last_write
from storage.engine.losses import check_count, check_has_rows, check_log, check_not_lost, check_unused_log
from storage.engine.store_identity import STORE_ID_NAME, check_unbound

DATABASE_NAME: Final = "ravel.sqlite"
_BUSY_TIMEOUT_SECONDS: Final = 30.0
_COUNT_MASK: Final = 0xFFFFFFFF
_PRIMARY_CODE: Final = 0xFF
"""Bits of an error's code that say its kind."""
_WAL_PAGES: Final = 8192
"""Pages between checkpoints (32 MiB): random index pages are then written once, not once per transaction."""
_WRITER_CACHE_KIB: Final = 16 * 1024
"""KiB of pages that the writing connection keeps. Twice as many made 40,000 commits no cheaper to take in: what is not here
is in the system's cache of files."""
_READER_CACHE_KIB: Final = 4 * 1024
"""KiB of pages that each of up to 20 others keeps. After each write they begin anew, so they keep one question's."""


class SqliteBackend(Backend):
    """Backend whose rows are in one file of the folder."""

    begin_write = "BEGIN IMMEDIATE"
    begin_read = "BEGIN"

    def __init__(self, folder: Path) -> None:
        """Touch nothing yet."""
        self._folder = folder
        self._path = folder / DATABASE_NAME
        self.name = str(self._path)
        self._last: LastWrite | None = None
        self._acknowledged: int | None = None  # when a reader was made
        self._opened = 0  # the file's inode
        self._changes = 0  # rows that the writer's connection had changed when it last counted
        self._prepared = 0
        self._committed = 0

    def exists(self) -> bool:
        """Return True if the file is there. Raises LostStore where it was."""
        self._check_not_lost()
        return self._path.exists()

    def _check_not_lost(self) -> None:
        if not (self._folder / STORE_ID_NAME).exists():  # else the rows are elsewhere, since they moved
            check_not_lost(self._folder, self._path, read_last_write(self._folder))

    def make_engine(self, connections_max: int) -> Engine:
        """Create the file, readable by its owner alone, and an engine with at most this many connections to it."""
        check_unbound(self._path.parent)
        self._check_not_lost()
        if not self._path.exists():
            os.close(open_or_create(self._path, os.O_WRONLY))
        self._last = LastWrite(self._folder)
        if self._last.is_alone:
            check_log(self._folder, self._path, self._last.count)
        engine = create_engine(
            # Not as text, in which a ? or % of the path would mean something else.
            URL.create("sqlite", database=str(self._path)),
            poolclass=QueuePool,
            pool_size=connections_max,
            max_overflow=0,
            pool_use_lifo=True,  # or each keeps its pages, where the one that was used last would do
            connect_args={"timeout": _BUSY_TIMEOUT_SECONDS, "check_same_thread": False},
        )
        event.listen(engine, "connect", _prepare)
        event.listen(engine, "handle_error", self._say_damage)
        return engine

    def make_reader(self, connections_max: int) -> Engine:
        """Make an engine whose connections neither write nor make anything."""
        try:
            check_unused_log(self._folder, self._path)
            # Before anything is read, which is then no older.
            self._acknowledged = read_last_write(self._folder)
        except OSError as error:
            raise StorageError(f"{self.name}: {error}") from error
        engine = create_engine(
            URL.create("sqlite", database=str(self._path)),
            pool_size=connections_max,
            connect_args={"timeout": _BUSY_TIMEOUT_SECONDS, "check_same_thread": False},
        )
        event.listen(engine, "connect", _prepare_reader)
        event.listen(engine, "handle_error", self._say_damage)
        return engine

    def _say_damage(self, context: ExceptionContext) -> None:
        """Raise StorageError for errors of a damaged file that SQLAlchemy passes on unchanged."""
        error = context.original_exception
        if context.sqlalchemy_exception is None and isinstance(error, UNREADABLE):
            raise StorageError(f"{self.name}: it is damaged: {error}") from error

    def claim(self, writer: Connection) -> None:
        """Count what this writer changes from here on, and write down what was lost.

        SQLite's own lock keeps writers apart, and the folder's lock daemons.
        """
        assert self._last is not None, "a writer's"
        _driver_of(writer).execute(f"PRAGMA cache_size=-{_WRITER_CACHE_KIB}")
        _driver_of(writer).execute("PRAGMA query_only=OFF")
        check_has_rows(_driver_of(writer), self._path, self._last.count)
        self._opened = self._path.stat().st_ino
        count = _read_count(writer)
        if self._last.count is None or check_count(self._folder, count, self._last.count) is not None:
            self._last.replace(count)
        self._prepared = self._committed = count
        self._changes = _driver_of(writer).total_changes

    def close(self) -> None:
        """Release the file that tells others that somebody writes."""
        if self._last is not None:
            self._last.close()
            self._last = None

    def check_bound(self, connection: Connection) -> None:
        """Raise StorageError if the folder belongs to another database; write down what was lost."""
        check_unbound(self._path.parent)
        try:
            check_count(self._folder, _read_count(connection), self._acknowledged)
        except OSError as error:
            raise StorageError(f"{self.name}: {error}") from error

    def check_has_rows(self, connection: Connection) -> None:
        """Raise LostStore for a database without tables in which writes were acknowledged."""
        check_has_rows(_driver_of(connection), self._path, self._acknowledged)

    def copy_aside(self, engine: Engine, label: str, revision: str) -> Path:
        """Copy the database file beside itself; return the copy's path."""
        return copy_beside(self._path, label, lambda begun: copy_database(self._path, begun))

    def prepare_commit(self, writer: Connection) -> str:
        """Count a write that changed something; return "". SQLite itself undoes a failed transaction, or COMMIT raises."""
        driver = _driver_of(writer)
        self._prepared = self._committed
        if driver.total_changes != self._changes:
            self._changes = driver.total_changes
            # Without SQLAlchemy, which would take longer than SQLite does: this is read in each write.
            (count,) = driver.execute("PRAGMA user_version").fetchone()
            self._prepared = next_count(count & _COUNT_MASK)
            run_plain(writer, f"PRAGMA user_version = {_signed(self._prepared)}")
        return ""

    def committed(self) -> None:
        """Note the count that others are to find."""
        self._committed = self._prepared

    def acknowledge(self) -> str:
        """Keep the count beside the database; return what is wrong, or "". The write itself is durable in any case."""
        assert self._last is not None, "a writer's"
        try:
            self._last.acknowledge(lambda: self._committed)
        except OSError as error:
            return f"{self.name}: {error}"
        return ""

    def find_missing(self) -> str:
        """Return what is wrong if the file's name is gone: then what is written is lost when the process ends."""
        try:
            found = self._path.stat().st_ino
        except OSError as error:
            return (
                f"{self.name} is gone while it is open ({error.strerror}): all is lost when the daemon stops"
            )
        if found == self._opened:
            return ""
        return (
            f"{self.name} was replaced while it was open: what is written now is lost when the daemon stops"
        )

    def probe(self, connection: Connection) -> None:
        """Write the file's version again."""
        version = connection.exec_driver_sql("PRAGMA user_version").scalar_one()
        connection.exec_driver_sql(f"PRAGMA user_version={int(version)}")

    def measure_file(self, connection: Connection) -> FileUse:
        """Return how the file is used, by its pages. Costs O(1)."""
        page, count, free = (
            connection.exec_driver_sql(f"PRAGMA {name}").scalar_one()
            for name in ("page_size", "page_count", "freelist_count")
        )
        return FileUse(page * count, page * free)

    def rewrite(
        self,
        connection: Connection,
        table: str,
        column: str,
        keys: tuple[str, ...],
        change: Callable[..., bytes],
    ) -> int:
        """Change every value of a column inside SQLite, so that no row is brought here; return how many. Costs O(rows)."""
        _driver_of(connection).create_function("ravel_change", -1, change)
        statement = (
            f"UPDATE {table} SET {column} = ravel_change({column}, {', '.join(keys)})"  # noqa: S608  # names of ours
            f" WHERE {column} IS NOT NULL"
        )
        return connection.exec_driver_sql(statement).rowcount

    def sweep(self, writer: Connection, _tables: Sequence[str]) -> bool:
        """Write the whole file anew, and empty its log; return False if somebody reads it. Costs O(file)."""
        writer.exec_driver_sql("VACUUM")
        is_busy, *_ = writer.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)").one()
        return not is_busy

    def explain(self, error: DBAPIError) -> str:
        """Return SQLite's message, which holds no values."""
        return str(error.orig)


def is_held(error: Exception) -> bool:
    """Return True if a statement waited in vain for another program that holds the file."""
    code = getattr(getattr(error, "orig", None), "sqlite_errorcode", None)
    return isinstance(code, int) and code & _PRIMARY_CODE == sqlite3.SQLITE_BUSY


def _driver_of(connection: Connection) -> sqlite3.Connection:
    driver = connection.connection.driver_connection
    assert isinstance(driver, sqlite3.Connection)
    return driver


def _read_count(connection: Connection) -> int:
    return int(connection.exec_driver_sql("PRAGMA user_version").scalar_one()) & _COUNT_MASK


def _signed(count: int) -> int:
    return count - (_COUNT_MASK + 1) if count > _COUNT_MASK >> 1 else count


def _prepare(connection: sqlite3.Connection, _record: object) -> None:
    connection.isolation_level = None  # BEGIN and COMMIT are ours, not the driver's
    for pragma in (
        "journal_mode=WAL",
        "synchronous=FULL",
        f"wal_autocheckpoint={_WAL_PAGES}",
        "foreign_keys=ON",
        f"cache_size=-{_READER_CACHE_KIB}",
        "query_only=ON",  # until `claim`: only the writer's lock keeps writes apart
    ):
        connection.execute(f"PRAGMA {pragma}")


def _prepare_reader(connection: sqlite3.Connection, _record: object) -> None:
    connection.isolation_level = None
    connection.execute("PRAGMA query_only=ON")
