"""Backend of a store: all that differs between SQLite and PostgreSQL. `Database` does the rest, the same for both.

Transactions are begun and ended by statements of ours: to the driver, connections are in autocommit mode.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import Connection
from sqlalchemy.engine import Engine
from sqlalchemy.exc import DBAPIError


@dataclass(frozen=True, slots=True)
class FileUse:
    """Use of the rows' file, in bytes: of all of it, and of the pages that hold nothing."""

    size: int
    unused: int


class Backend(ABC):
    """A place for rows. Its methods raise DBAPIError, OSError, StorageError."""

    name: str
    """Name of the place in errors; without secrets."""
    begin_write: str
    """Statement that begins a write."""
    begin_read: str
    """Statement that begins a read, which sees one moment, from its first query on, and cannot write."""

    def exists(self) -> bool:
        """Return True if there may be a store, as far as can be told without asking the database."""
        return True

    @abstractmethod
    def make_engine(self, connections_max: int) -> Engine:
        """Make an engine with at most this many connections. Create the place if needed, for its owner alone."""

    @abstractmethod
    def make_reader(self, connections_max: int) -> Engine:
        """Make an engine whose connections never write."""

    @abstractmethod
    def claim(self, writer: Connection) -> None:
        """Become the only writer, as long as this connection lives."""

    def close(self) -> None:  # noqa: B027  # nothing to do for one of both
        """Release what the backend holds: nothing more is written."""

    def bind(self, writer: Connection, *, is_new: bool) -> None:  # noqa: B027  # nothing to do for one of both
        """Raise StorageError unless the rows are those of this folder; bind new rows to it. In a write transaction."""

    @abstractmethod
    def check_bound(self, connection: Connection) -> None:
        """Raise StorageError unless the rows are those of this folder."""

    def check_has_rows(self, connection: Connection) -> None:  # noqa: B027  # nothing to do for one of both
        """Raise LostStore if a database without a store is known to have had one."""

    @abstractmethod
    def copy_aside(self, engine: Engine, label: str, revision: str) -> Path:
        """Copy a store of this schema to a file of the folder, named as by `copy_beside`; return its path."""

    @abstractmethod
    def prepare_commit(self, writer: Connection) -> str:
        """Prepare the end of a write; return the transaction's id, or "". Raises StorageError if a statement failed."""

    def committed(self) -> None:  # noqa: B027  # nothing to do for one of both
        """Note that the write has committed, before another begins."""

    def acknowledge(self) -> str:
        """Note that the write is durable, while others may have begun; return what is wrong, or ""."""
        return ""

    def was_committed(self, connection: Connection, transaction_id: str) -> bool:
        """Return True if a write was kept whose COMMIT got no answer."""
        raise AssertionError("only a server may leave a COMMIT without an answer")

    def find_missing(self) -> str:
        """Return a description of the fault if the rows' file is not the one that was opened for writing; else ""."""
        return ""

    @abstractmethod
    def probe(self, connection: Connection) -> None:
        """Write something that changes nothing, inside a write transaction."""

    def size(self, connection: Connection) -> int | None:
        """Return the bytes of rows and indexes; None where they are in a file of the folder."""
        return None

    def measure_file(self, connection: Connection) -> FileUse | None:
        """Return how the rows' file is used; None where they are in no file of ours."""
        return None

    @abstractmethod
    def rewrite(
        self,
        connection: Connection,
        table: str,
        column: str,
        keys: tuple[str, ...],
        change: Callable[..., bytes],
    ) -> int:
        """Change every value of a column that is not NULL, inside a write transaction; return how many.

        `change` gets the value and those of the columns `keys`. The table is numbered by `num`. Costs O(rows).
        """

    @abstractmethod
    def sweep(self, writer: Connection, tables: Sequence[str]) -> bool:
        """Rewrite tables so that nothing replaced is left in them; outside of transactions. Costs O(rows).

        Return False where something is left, since somebody reads it.
        """

    @abstractmethod
    def explain(self, error: DBAPIError) -> str:
        """Describe an error without values of rows."""
