"""Encrypts all secrets of an unencrypted store when it is first opened with a key (one transaction).

After that it is opened with the same key, or without one for what takes no secrets. Where secrets lay in the clear, their
tables are written anew, since databases leave what was replaced where it was; if that fails, for want of room say, or
somebody reads meanwhile, it is tried again at the next opening. What a PostgreSQL server has elsewhere (its log, archives
of it, copies) is not ours to sweep.
"""

from collections.abc import Callable
from contextlib import suppress
from hmac import compare_digest
from typing import Any, Final

from sqlalchemy import Connection, insert, select, update
from sqlalchemy.exc import DBAPIError

from protocol.crypto.hashing import store_mark
from protocol.crypto.keys import StoreKey
from storage.engine.backends import Backend
from storage.engine.column_encryption import (
    ColumnCipher,
    KeyedCipher,
    LockedCipher,
    PlainCipher,
    commit_key_context,
    epoch_place,
    file_place,
    membership_place,
    prekey_place,
    repo_place,
    search_place,
    search_text_place,
    text_block_place,
    text_place,
    topic_place,
)
from storage.schema.schema import store_seal


class OtherStoreKey(Exception):
    """The store was sealed with another key."""


def find_cipher(connection: Connection, store_key: StoreKey | None) -> ColumnCipher:
    """Return the cipher of a store that is only read. Raises OtherStoreKey."""
    mark = connection.execute(select(store_seal.c.mark)).scalar()
    if mark is None:
        return PlainCipher()
    if store_key is None:
        return LockedCipher()
    if not compare_digest(mark, store_mark(store_key)):
        raise OtherStoreKey
    return KeyedCipher(store_key)


def seal_store(writer: Connection, backend: Backend, store_key: StoreKey | None) -> ColumnCipher:
    """Seal what is not sealed yet, if there is a key; return the cipher. Costs O(secrets) once, then O(1).

    Raises OtherStoreKey, DBAPIError, StorageError.
    """
    writer.exec_driver_sql(backend.begin_write)
    try:
        found = find_cipher(writer, store_key)
        if store_key is not None and isinstance(found, PlainCipher):
            found = KeyedCipher(store_key)
            sealed_count = _seal_rows(writer, backend, found)
            mark = store_mark(store_key)
            writer.execute(insert(store_seal).values(num=1, mark=mark, is_clean=not sealed_count))
        backend.prepare_commit(writer)
        writer.exec_driver_sql("COMMIT")
    finally:
        writer.rollback()  # undoes it if it was not committed, and ends SQLAlchemy's own bookkeeping
    is_clean = writer.execute(select(store_seal.c.is_clean)).scalar()
    writer.rollback()
    if is_clean is False:
        with suppress(DBAPIError):  # no room, or somebody reads: the next opening tries again
            if backend.sweep(writer, _TABLES):
                writer.execute(update(store_seal).values(is_clean=True))
        writer.rollback()
    return found


_Place = Callable[..., bytes]
_BOXES: Final[tuple[tuple[str, str, tuple[str, ...], _Place], ...]] = (
    ("repos", "init_key", ("repo_id",), lambda raw: repo_place("init_key", raw)),
    ("repos", "invitation", ("repo_id",), lambda raw: repo_place("invitation", raw)),
    (
        "epochs",
        "key",
        ("repo_num", "epoch_id"),
        lambda num, raw: epoch_place("key", num, raw),
    ),
    (
        "epochs",
        "writers_secret",
        ("repo_num", "epoch_id"),
        lambda num, raw: epoch_place("writers_secret", num, raw),
    ),
    ("prekeys", "secret", ("repo_num", "prekey"), prekey_place),
    ("topics", "channel", ("topic",), topic_place),
    ("membership_parts", "content", ("branch_num", "first"), membership_place),
    ("search_state", "hash_key", ("num",), lambda _num: search_place()),
    ("search_texts", "content", ("branch_num",), search_text_place),
    ("texts", "summary", ("branch_num",), text_place),
    ("text_blocks", "content", ("branch_num", "client", "clock"), text_block_place),
)
_MASKS: Final[tuple[tuple[str, str, tuple[str, ...], _Place], ...]] = (
    ("commits", "commit_key", ("commit_id",), commit_key_context),
    ("files", "object_key", ("num", "object_id"), file_place),
)
"""Table, column, the row's key, and the place derived from it."""
_TABLES: Final = sorted({table for table, *_ in (*_BOXES, *_MASKS)})


def _seal_rows(connection: Connection, backend: Backend, cipher: ColumnCipher) -> int:
    """Seal every secret; return how many."""
    count = 0
    for columns, transform in ((_BOXES, cipher.seal), (_MASKS, cipher.mask)):
        for table, column, keys, place in columns:

            def seal(
                plaintext: Any,  # noqa: ANN401  # bytes: a key to `mask`, of 32 bytes, or a secret of any length to `seal`
                *row: bytes | int,
                transform: Callable[[bytes, Any], bytes] = transform,
                place: _Place = place,
            ) -> bytes:
                return transform(place(*row), plaintext)

            count += backend.rewrite(connection, table, column, keys, seal)
    return count


def is_clean(connection: Connection) -> bool | None:
    """Return False if secrets of before the store was sealed may stand on its pages; None where it is not sealed."""
    return connection.execute(select(store_seal.c.is_clean)).scalar()
