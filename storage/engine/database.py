"""Database access: one writer, many readers, all transactions, migrations at start.

`write()` admits one thread at a time; whatever leaves it by an exception is rolled back whole. A store of an older schema
is copied before it is migrated. Which database it is, and what differs with that: `backends`. Secrets in it are sealed with
the store's key (`column_encryption`), which the caller brings.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any, Final

from sqlalchemy import Connection, Table, delete, func, insert, select
from sqlalchemy.exc import DBAPIError, PendingRollbackError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from protocol.crypto.keys import StoreKey
from protocol.ids import BlockId
from storage.engine.backends import Backend, FileUse
from storage.engine.bulk import UNREADABLE, roll_back, run_plain
from storage.engine.column_encryption import BadSecret, cipher_option
from storage.engine.copies import OLDER
from storage.engine.errors import LostStore, NewerSchema, NoStore, OlderSchema, StorageError, StoreLocked
from storage.engine.postgresql import PostgresqlBackend
from storage.engine.queries import close_streams
from storage.engine.revisions import create, newest_revision, revision_of, upgrade
from storage.engine.sqlite import DATABASE_NAME, SqliteBackend, is_held
from storage.engine.store_seal import OtherStoreKey, find_cipher, seal_store
from storage.engine.writer_lock import WriterLock
from storage.schema.schema import sequences

__all__ = [
    "DATABASE_NAME",
    "FAILURES",
    "Database",
    "LostStore",
    "NewerSchema",
    "NoStore",
    "OlderSchema",
    "StorageError",
    "explain",
    "newest_revision",
    "read_store",
    "reserve_numbers_to",
    "reserve_used_numbers",
]

_CONNECTIONS_MAX: Final = 20
"""The writer, and two for each worker thread: an author reads while tables are read again."""
FAILURES: Final = (DBAPIError, PendingRollbackError, PoolTimeout)
"""Errors of SQLAlchemy when the database does not answer: the statement, what follows it, no connection."""


class Database:
    """The node's store. Thread-safe; close it when done."""

    def __init__(self, folder: Path, store_key: StoreKey | None = None, url: str = "") -> None:
        """Open or create the store of a folder, migrate it, and seal its secrets if there is a key.

        Args:
            folder: The node's folder, which exists.
            store_key: 32 bytes. Without it, a sealed store can only be used for what needs no secret.
            url: PostgreSQL database of the rows; "": a file in the folder.

        Raises:
            StorageError: The store cannot be opened, is another Ravel's or another folder's, or was sealed with another key.
                LostStore and NewerSchema are kinds of it.
        """
        self.folder: Final = folder
        self.path: Final = folder / DATABASE_NAME
        """Path of the rows' file, without a URL."""
        self.fault = ""
        """Reason why the last write failed; empty while writes succeed."""
        self.commit_count = 0
        """Transactions that this process has committed. While it stays the same, what was read is as new as can be."""
        self.reused_rows: set[int] | None = None
        """Numbers of blocks that were here and that writes have named once more, while garbage is collected; else None."""
        self.named_trees: set[BlockId] | None = None
        """Blocks that have come and that name others, while garbage is collected; else None."""
        self._lock = WriterLock()
        self._next: dict[str, int] = {}
        self._undecided = ""
        self._is_stale = False
        self._backend = choose_backend(folder, url)
        try:
            self._engine = self._backend.make_engine(_CONNECTIONS_MAX)
        except OSError as error:
            self._backend.close()
            raise StorageError(f"{self._backend.name}: {error}") from error
        except StorageError:
            self._backend.close()
            raise
        self._writer: Connection | None = None
        try:
            self._writer = self._open_writer()
            self._migrate(self._writer)
            cipher = cipher_option(seal_store(self._writer, self._backend, store_key))
            # Also of connections that are made later.
            self._engine = self._engine.execution_options(**cipher)
            self._writer = self._writer.execution_options(**cipher)
        except (*FAILURES, *UNREADABLE, OSError) as error:
            self.close()
            raise _failure(self._backend, error, f"{self._backend.name}: ") from error
        except OtherStoreKey:
            self.close()
            raise _other_key(self._backend.name) from None
        except StorageError:
            self.close()
            raise

    def close(self) -> None:
        """Close all connections."""
        if self._writer is not None:
            self._writer.close()
        self._engine.dispose()
        self._backend.close()

    @contextmanager
    def write(
        self,
        turn: AbstractContextManager[object] | None = None,
        committed: Callable[[], None] = lambda: None,
        *,
        is_patient: bool = False,
    ) -> Iterator[Connection]:
        """Run a block as the one write transaction: durable when it ends, rolled back whole when it raises.

        Args:
            turn: Held while the block runs, and neither while waiting for other writers nor for the disk.
            committed: Called after the commit and before the next writer begins. It must not fail.
            is_patient: True for a peer's work, which lets other waiting writers go first (`WriterLock`).

        Raises:
            StorageError: The transaction failed, and nothing of it was kept (but see `is_undecided`).
        """
        with self._lock.held(is_patient=is_patient):
            try:
                writer = self._begin_write()
                try:
                    with turn or nullcontext():
                        yield writer
                    transaction_id = self._backend.prepare_commit(writer)
                except BaseException:
                    self._undo(writer)
                    raise
                self._commit(writer, transaction_id)
                self._backend.committed()
                self.commit_count += 1
                self.fault = ""
                committed()
            except FAILURES as error:
                failure = _failure(self._backend, error)
                self.fault = str(failure)
                raise failure from error
            except BadSecret as error:
                raise StorageError(str(error)) from error
        # Outside of the lock: the next write goes on meanwhile, and those that wait here share one sync.
        if fault := self._backend.acknowledge():
            self.fault = fault

    def is_writer(self, connection: Connection) -> bool:
        """Return True for the connection of `write`, False for one of `read`."""
        return connection is self._writer

    def find_missing(self) -> str:
        """Return what is wrong if the rows' file was removed or replaced under this process; else nothing."""
        return self._backend.find_missing()

    def probe(self) -> None:
        """Write something that changes nothing, to see whether writes succeed. Raises StorageError."""
        with self.write() as connection:
            self._backend.probe(connection)

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """Run a block in a read transaction: one unchanging snapshot of the store. Raises StorageError."""
        try:
            with self._engine.connect() as connection:
                self._begin(connection, self._backend.begin_read)
                try:
                    yield connection
                finally:
                    roll_back(connection)
        except FAILURES as error:
            raise _failure(self._backend, error) from error
        except BadSecret as error:
            raise StorageError(str(error)) from error

    def to_storage_error(self, error: Exception) -> Exception:
        """Return the StorageError that `read` and `write` would raise for an error; any other error as it is."""
        if isinstance(error, FAILURES):
            return _failure(self._backend, error)
        return StorageError(str(error)) if isinstance(error, BadSecret) else error

    def copy_aside(self, label: str) -> Path:
        """Keep a copy of what is committed in the folder, under a name with the label. Raises StorageError.

        Costs O(rows).
        """
        try:
            return self._backend.copy_aside(self._engine, label, newest_revision())
        except (*FAILURES, *UNREADABLE, OSError) as error:
            raise StorageError(
                f"{self._backend.name} could not be copied ({explain(self._backend, error)}); it was left as it is"
            ) from error

    @property
    def is_undecided(self) -> bool:
        """Return True if a write may have been kept although this process reported that it failed."""
        return bool(self._undecided) or self._is_stale

    def size(self, connection: Connection) -> int | None:
        """Return the bytes of rows and indexes, or None where they are in a file of the folder."""
        return self._backend.size(connection)

    def measure_file(self) -> FileUse | None:
        """Return how the rows' file is used; None where they are in a database elsewhere. Raises StorageError."""
        with self.read() as connection:
            return self.measure_pages(connection)

    def measure_pages(self, connection: Connection) -> FileUse | None:
        """Return how the rows' file is used, as a transaction sees it; None where they are in a database elsewhere."""
        return self._backend.measure_file(connection)

    def rewrite_file(self) -> None:
        """Write the rows' file anew, as one transaction. Costs O(rows). Raises StorageError."""
        with self._lock.held():
            writer = self._writer or self._open_writer()
            try:
                self._backend.sweep(writer, ())
                writer.rollback()  # ends SQLAlchemy's own bookkeeping
            except FAILURES as error:
                self._undo(writer)
                raise _failure(self._backend, error) from error

    def next_nums(self, connection: Connection, table: Any, count: int) -> range:  # noqa: ANN401  # a Table
        """Reserve `count` fresh row numbers of a table; inside `write()` alone. Costs O(1)."""
        start = self._next.get(table.name)
        if start is None:
            last = int(connection.execute(select(func.coalesce(func.max(table.c.num), 0))).scalar_one())
            kept = connection.execute(select(sequences.c.last).where(sequences.c.name == table.name)).scalar()
            start = max(last, kept or 0) + 1
        self._next[table.name] = start + count
        return range(start, start + count)

    def _open_writer(self) -> Connection:
        writer = self._engine.connect()
        try:
            self._backend.claim(writer)
            writer.rollback()  # ends SQLAlchemy's own bookkeeping; nothing was begun
        except BaseException as error:
            writer.invalidate()
            writer.close()
            if isinstance(error, StorageError):  # somebody else has the store now
                self.fault = str(error)
            raise
        return writer

    def _begin(self, connection: Connection, statement: str) -> None:
        """Begin a transaction; where the server has gone since the last one, and come back, on a new connection."""
        try:
            run_plain(connection, statement)
        except DBAPIError as error:
            if not error.connection_invalidated:
                raise
            connection.rollback()
            run_plain(connection, statement)

    def _begin_write(self) -> Connection:
        """Begin on the connection that holds the claim: a new one, with a new claim, where the last one broke."""
        if self._writer is not None and not self._is_stale:
            try:
                run_plain(self._writer, self._backend.begin_write)
            except DBAPIError as error:
                if not error.connection_invalidated:
                    roll_back(self._writer)
                    raise
                self._drop_writer()
            else:
                return self._writer
        if self._writer is None:
            self._writer = self._open_writer()
        if self._undecided:
            self._is_stale = self._was_committed(self._writer, self._undecided)
            self._undecided = ""
        if self._is_stale:
            # What is kept in memory was told that this write had been undone.
            self.fault = "the server has kept a write whose end was not heard; start the daemon again"
            raise StorageError(self.fault)
        run_plain(self._writer, self._backend.begin_write)
        return self._writer

    def _was_committed(self, writer: Connection, transaction_id: str) -> bool:
        found = self._backend.was_committed(writer, transaction_id)
        writer.rollback()  # ends SQLAlchemy's own bookkeeping
        return found

    def _commit(self, writer: Connection, transaction_id: str) -> None:
        try:
            run_plain(writer, "COMMIT")
            writer.rollback()  # ends SQLAlchemy's own bookkeeping; the database has committed
            close_streams(writer)
        except DBAPIError as error:
            is_unheard = error.connection_invalidated and transaction_id
            self._undo(writer)
            if not is_unheard:
                raise
            self._undecided = transaction_id
            writer = self._writer = self._open_writer()
            was_committed = self._was_committed(writer, transaction_id)
            self._undecided = ""
            if not was_committed:
                raise

    def _undo(self, writer: Connection) -> None:
        """Undo what the transaction did. On a full disk SQLite has done so itself; its driver then says nothing."""
        self._next.clear()
        if writer.invalidated:
            self._drop_writer()
        else:
            roll_back(writer)

    def _drop_writer(self) -> None:
        """Leave a broken connection; the next write makes another, and its claim."""
        if self._writer is not None:
            self._writer.close()
            self._writer = None
        self._next.clear()

    def _migrate(self, writer: Connection) -> None:
        current = revision_of(writer, self._backend.name)
        writer.rollback()
        if current is not None and current != newest_revision():
            self._keep_older(current)
        writer.exec_driver_sql(self._backend.begin_write)
        if current is not None:
            self._backend.bind(writer, is_new=False)
        if current is None:
            create(writer, newest_revision())
            self._backend.bind(writer, is_new=True)
        elif current != newest_revision():
            upgrade(writer)
        writer.exec_driver_sql("COMMIT")
        writer.rollback()

    def _keep_older(self, revision: str) -> None:
        """Keep a copy of what is about to be migrated: the way back to the Ravel that last ran here."""
        try:
            self._backend.copy_aside(self._engine, f"{OLDER}{revision}", revision)
        except OSError as error:
            raise StorageError(
                f"{self._backend.name} has schema {revision}, and could not be copied before it is migrated ({error}); "
                "it was left as it is"
            ) from error


def choose_backend(folder: Path, url: str) -> Backend:
    """Return the backend of the store in a folder: a file of it, or the PostgreSQL database of a URL, if any.

    Raises StorageError for what is no URL, and where the folder belongs to the other kind.
    """
    return PostgresqlBackend(folder, url) if url else SqliteBackend(folder)


@contextmanager
def read_store(folder: Path, store_key: StoreKey | None = None, url: str = "") -> Iterator[Connection]:
    """Read one snapshot of a folder's store, beside its daemon or without one; make, migrate and write nothing.

    Args:
        folder: The node's folder.
        store_key: 32 bytes. Without it no secret of a sealed store can be read.
        url: PostgreSQL database of the rows; "": a file in the folder.

    Raises:
        StorageError: There is no store (NoStore), or it has another schema (OlderSchema, NewerSchema).
    """
    backend = choose_backend(folder, url)
    name = backend.name
    if not backend.exists():
        raise NoStore(f"{name} is not there")
    engine = backend.make_reader(1)
    try:
        with engine.connect() as connection:
            connection.exec_driver_sql(backend.begin_read)
            try:
                revision = revision_of(connection, name)
                if revision is None:
                    backend.check_has_rows(connection)
                    raise NoStore(f"{name} has no store yet")
                if revision != newest_revision():
                    raise OlderSchema(
                        f"{name} has schema {revision}, and this Ravel reads {newest_revision()}; "
                        "`ravel run` migrates it"
                    )
                backend.check_bound(connection)
                try:
                    cipher = find_cipher(connection, store_key)
                except OtherStoreKey:
                    raise _other_key(name) from None
                yield connection.execution_options(**cipher_option(cipher))
            finally:
                connection.rollback()
    except FAILURES as error:
        raise _failure(backend, error, f"{name}: ") from error
    except BadSecret as error:
        raise StorageError(f"{name}: {error}") from error
    finally:
        engine.dispose()


def measure_file(folder: Path, url: str = "") -> FileUse | None:
    """Return how the rows' file is used, beside its daemon or without one. Raises StorageError."""
    backend = choose_backend(folder, url)
    with read_store(folder, url=url) as connection:
        return backend.measure_file(connection)


def _other_key(name: str) -> StorageError:
    return StorageError(
        f"{name} was sealed with other keys than those of its folder: the two belong together"
    )


def _failure(backend: Backend, error: Exception, before: str = "") -> StorageError:
    text = before + explain(backend, error)
    return StoreLocked(f"{text}, by another program") if is_held(error) else StorageError(text)


def explain(backend: Backend, error: Exception) -> str:
    """Describe an error in a sentence without secrets."""
    return backend.explain(error) if isinstance(error, DBAPIError) else str(error)


def reserve_used_numbers(connection: Connection, table: Table) -> None:
    """Reserve all numbers that rows of a table have, before some are forgotten: none is given again."""
    last = connection.execute(select(func.coalesce(func.max(table.c.num), 0))).scalar_one()
    reserve_numbers_to(connection, table, last)


def reserve_numbers_to(connection: Connection, table: Table, last: int) -> None:
    """Reserve the numbers of a table up to `last`: they were given, to rows that are gone or another's."""
    connection.execute(delete(sequences).where(sequences.c.name == table.name, sequences.c.last < last))
    if connection.execute(select(sequences.c.last).where(sequences.c.name == table.name)).first() is None:
        connection.execute(insert(sequences).values(name=table.name, last=last))
