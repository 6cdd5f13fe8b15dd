"""Interface that hides the difference between SQLite and PostgreSQL, and the choice between them.

`Database` does the rest, the same for all.

Transactions are begun and ended by statements of ours: to the driver, connections are in autocommit mode.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

from sqlalchemy import Connection
from sqlalchemy.engine import Engine
from sqlalchemy.exc import DBAPIError

from storage.engine.postgresql import PostgresqlBackend
from storage.engine.sqlite import FileUse, SqliteBackend


class Backend(Protocol):
    """A place for rows. Its methods raise DBAPIError, OSError, StorageError."""

    name: str
    """What errors call it; no secret is in it."""
    begin_write: str
    begin_read: str
    """Statements. A read sees one moment, from its first query on, and cannot write."""

    def exists(self) -> bool:
        """Whether there is a store, as far as can be told without asking the database."""
        ...

    def make_engine(self, connections_max: int) -> Engine:
        """Connections to it; made, if need be, as what nobody else may read."""
        ...

    def make_reader(self, connections_max: int) -> Engine:
        """Connections that never write."""
        ...

    def claim(self, writer: Connection) -> None:
        """Be the only one that writes, as long as this connection lives."""
        ...

    def close(self) -> None:
        """Nothing more is written."""
        ...

    def bind(self, writer: Connection, *, is_new: bool) -> None:
        """See that the rows are those of this folder, inside a write transaction; one that is new becomes that."""
        ...

    def check_bound(self, connection: Connection) -> None:
        """See that the rows are those of this folder."""
        ...

    def check_has_rows(self, connection: Connection) -> None:
        """Raise LostStore if a database without a store is known to have had one."""
        ...

    def copy_aside(self, engine: Engine, label: str, revision: str) -> Path:
        """Keep a copy of a store of this schema in the folder, as `copy_beside` names it."""
        ...

    def prepare_commit(self, writer: Connection) -> str:
        """Before the end of a write: see that nothing in it failed. Gives what it is known by afterwards, or ""."""
        ...

    def committed(self) -> None:
        """The write has committed, and no other has begun."""
        ...

    def acknowledge(self) -> str:
        """Before it is said that a write is durable; others may have begun. Gives what is wrong, or ""."""
        ...

    def was_committed(self, connection: Connection, known_by: str) -> bool:
        """Whether a write was kept whose end was not heard."""
        ...

    def find_missing(self) -> str:
        """Return what is wrong if the rows' file is no longer the one that was opened to write; else nothing."""
        ...

    def probe(self, connection: Connection) -> None:
        """Write something that changes nothing, inside a write transaction."""
        ...

    def size(self, connection: Connection) -> int | None:
        """Bytes of the rows and their indexes where they are not files of the folder."""
        ...

    def measure_file(self, connection: Connection) -> FileUse | None:
        """How the rows' file is used; None where they are in none of ours."""
        ...

    def rewrite(
        self,
        connection: Connection,
        table: str,
        column: str,
        keys: tuple[str, ...],
        change: Callable[..., bytes],
    ) -> int:
        """Change every value of a column that is not NULL, inside a write transaction; gives how many.

        `change` gets the value and those of the columns `keys`. The table is numbered by `num`.
        """
        ...

    def sweep(self, writer: Connection, tables: Sequence[str]) -> bool:
        """Write tables anew, so that nothing of what was replaced in them is left; in no transaction.

        False where something is left, since somebody reads it.
        """
        ...

    def explain(self, error: DBAPIError) -> str:
        """What went wrong, without values of rows."""
        ...


def choose_backend(folder: Path, url: str) -> Backend:
    """Where the rows of the store in a folder are: in a file of it, or in the PostgreSQL database of a URL.

    Raises StorageError for a URL that is none, and where the folder belongs to the other kind.
    """
    return PostgresqlBackend(folder, url) if url else SqliteBackend(folder)
