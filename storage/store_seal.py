"""Sealing a store: at its first opening with a key, all secrets in it are sealed in one transaction, and a mark is left.

After that it is opened with the same key, or without one for what takes no secrets. Where secrets lay in the clear, the
database is written anew (VACUUM), since SQLite leaves what was replaced on its pages; if that fails for want of room, it
is tried again at the next opening.
"""

import sqlite3
from collections.abc import Callable
from contextlib import suppress
from hmac import compare_digest
from typing import Final

from sqlalchemy import Connection, insert, select, update
from sqlalchemy.engine import Engine
from sqlalchemy.exc import DBAPIError

from protocol.hashing import store_mark
from storage.schema import store_seal
from storage.secrecy import (
    Locked,
    Sealed,
    Secrecy,
    Unsealed,
    commit_place,
    epoch_place,
    file_place,
    repo_place,
    topic_place,
)


class OtherStoreKey(Exception):
    """The store was sealed with another key."""


def find_secrecy(connection: Connection, store_key: bytes | None) -> Secrecy:
    """How secrets are kept in a store that is only read. Raises OtherStoreKey."""
    mark = connection.execute(select(store_seal.c.mark)).scalar()
    if mark is None:
        return Unsealed()
    if store_key is None:
        return Locked()
    if not compare_digest(mark, store_mark(store_key)):
        raise OtherStoreKey
    return Sealed(store_key)


def seal_store(engine: Engine, store_key: bytes | None) -> Secrecy:
    """Seal what is not sealed yet, where there is a key; gives how secrets are kept now.

    Raises OtherStoreKey, DBAPIError.
    """
    with engine.connect() as connection:
        connection.exec_driver_sql("BEGIN IMMEDIATE")
        try:
            found = find_secrecy(connection, store_key)
            if store_key is not None and isinstance(found, Unsealed):
                found = Sealed(store_key)
                sealed_count = _seal_rows(connection, found)
                mark = store_mark(store_key)
                connection.execute(insert(store_seal).values(num=1, mark=mark, is_clean=not sealed_count))
            connection.exec_driver_sql("COMMIT")
        except BaseException:
            # On a full disk SQLite has undone it itself, and to say so again would hide why.
            if _driver(connection).in_transaction:
                connection.exec_driver_sql("ROLLBACK")
            raise
        is_clean = connection.execute(select(store_seal.c.is_clean)).scalar()
        connection.rollback()
        if is_clean is False:
            with suppress(DBAPIError):  # no room: the next opening tries again
                _sweep(connection)
    return found


def _sweep(connection: Connection) -> None:
    connection.exec_driver_sql("VACUUM")
    connection.execute(update(store_seal).values(is_clean=True))
    connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.rollback()


_Place = Callable[..., bytes]
_BOXES: Final[tuple[tuple[str, str, str, _Place], ...]] = (
    ("repos", "init_key", "repo_id", lambda raw: repo_place("init_key", raw)),
    ("repos", "invitation", "repo_id", lambda raw: repo_place("invitation", raw)),
    ("epochs", "read_secret", "repo_num, epoch_id", lambda num, raw: epoch_place("read_secret", num, raw)),
    ("epochs", "write_secret", "repo_num, epoch_id", lambda num, raw: epoch_place("write_secret", num, raw)),
    ("topics", "channel", "topic", topic_place),
)
_MASKS: Final[tuple[tuple[str, str, str, _Place], ...]] = (
    ("commits", "commit_key", "commit_id", commit_place),
    ("files", "object_key", "num, object_id", file_place),
)
"""Table, column, what tells its row, and the place that follows from that."""


def _seal_rows(connection: Connection, secrecy: Secrecy) -> int:
    """Seal every secret, inside SQLite: a million rows are not brought here one by one. Gives how many."""
    driver = _driver(connection)
    count = 0
    for columns, transform in ((_BOXES, secrecy.seal), (_MASKS, secrecy.mask)):
        for table, column, key, place in columns:

            def seal(
                secret: bytes,
                *row: bytes | int,
                transform: Callable[[bytes, bytes], bytes] = transform,
                place: _Place = place,
            ) -> bytes:
                return transform(place(*row), secret)

            driver.create_function("ravel_seal", -1, seal)
            statement = (
                f"UPDATE {table} SET {column} = ravel_seal({column}, {key}) WHERE {column} IS NOT NULL"  # noqa: S608  # names of ours
            )
            count += connection.exec_driver_sql(statement).rowcount
    return count


def _driver(connection: Connection) -> sqlite3.Connection:
    driver = connection.connection.driver_connection
    assert isinstance(driver, sqlite3.Connection)
    return driver
