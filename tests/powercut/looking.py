"""What a store holds, read the way the node itself reads it; and how to open thousands of stores in a row."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final
from unittest.mock import patch

from blake3 import blake3
from sqlalchemy import Engine, create_engine, select

from node.ingest.replica import Replica
from protocol.codec import DecodeError
from protocol.formats.block import WrongKey
from protocol.formats.object import MissingBlocks
from protocol.ids import CommitId
from storage.blobs.files import StoredObject, load_files
from storage.engine.database import StorageError
from storage.repos.repos import Branch
from storage.schema.schema import commits

_UNREADABLE: Final = (WrongKey, DecodeError, MissingBlocks, StorageError)
_WINDOW: Final = 1000
_MEMORY: Final = Path("/dev/shm")  # noqa: S108  # folders of random names are made there, as in /tmp


def in_memory() -> Path | None:
    """Where thousands of folders are best laid out: in memory, if there is a place for that."""
    return _MEMORY if _MEMORY.is_dir() else None


@contextmanager
def sharing_statements() -> Iterator[None]:
    """All stores that are opened in the block compile each SQL statement once, which is half of what a start costs."""
    first: list[Engine] = []

    def make_alike(*arguments: Any, **options: Any) -> Engine:  # noqa: ANN401  # whatever it takes
        engine: Engine = create_engine(*arguments, **options)
        if not first:
            first.append(engine)
        # Compiled statements are found by the dialect that they are for, and each engine has one of its own.
        engine.dialect = engine.pool._dialect = first[0].dialect
        engine._compiled_cache = first[0]._compiled_cache
        return engine

    with patch("storage.engine.sqlite.create_engine", make_alike):
        yield


def find_ids(replica: Replica, branch: Branch) -> list[CommitId]:
    """Ids of the branch's commits that are not void."""
    query = select(commits.c.commit_id).where(commits.c.branch_num == branch.num, ~commits.c.is_void)
    with replica.database.read() as connection:
        return list(connection.execute(query).scalars())


def hash_files(replica: Replica, branch: Branch) -> Iterator[tuple[str, str]]:
    """Names of the branch's files with the BLAKE3 of their content; of what cannot be read, the reason."""
    after, is_last = 0, False
    while not is_last:
        with replica.database.read() as connection:
            rows = load_files(connection, branch.num, after, _WINDOW)
        is_last = len(rows) < _WINDOW
        for row in rows:
            after = row.num
            reference = row.reference
            assert reference is not None, "files of tests have keys"
            try:
                secret = replica.convergence_secret(row)
                content = StoredObject(replica.database, replica.packs, reference, secret)
                hasher = blake3()
                for piece in content.read(0, content.size):
                    hasher.update(piece)
                yield row.name, hasher.hexdigest()
            except _UNREADABLE as error:
                yield row.name, f"{type(error).__name__}: {error}"
