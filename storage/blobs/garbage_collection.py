"""Deletes blocks that no commit and no file needs: single rows, and packs in which nothing is needed.

A pack of which some blocks are needed stays as it is, and what is dead in it is counted. The rows go in one transaction;
files of packs after it, and where that is cut short the next start sweeps them.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import Connection, delete, func, select

from storage.blobs.reachability import ReachedRows, mark_reached
from storage.engine.database import Database, StorageError, read_store
from storage.engine.id_keys import chunks
from storage.engine.queries import stream_rows
from storage.engine.store_identity import PACKS_NAME
from storage.schema.schema import blocks, pack_blocks, packs

_BATCH = 1000


@dataclass(frozen=True, slots=True)
class Garbage:
    """Blocks that are not needed: rows and bytes, whole packs and bytes, and dead bytes in packs that stay."""

    blocks: int
    block_size: int
    packs: tuple[str, ...]
    pack_size: int
    dead_size: int


def find_garbage(folder: Path, url: str = "", *, keep_removed: bool) -> Garbage:
    """Find what `collect_garbage` would delete; change nothing. Costs O(blocks). Raises StorageError."""
    with read_store(folder, url=url) as connection:
        reached = mark_reached(connection, folder, with_removed=keep_removed)
        return _weigh(connection, reached)


def collect_garbage(folder: Path, url: str = "", *, keep_removed: bool) -> Garbage:
    """Delete what is not needed; nobody else may have the store open. Costs O(blocks). Raises StorageError."""
    database = Database(folder, url=url)
    try:
        with database.write() as connection:
            reached = mark_reached(connection, folder, with_removed=keep_removed)
            garbage = _weigh(connection, reached)
            dead = [num for num, _ in _dead_rows(connection, reached)]
            for part in chunks(dead):
                connection.execute(delete(blocks).where(blocks.c.num.in_(part)))
            for names in chunks(garbage.packs):
                nums = select(packs.c.num).where(packs.c.name.in_(names))
                connection.execute(delete(pack_blocks).where(pack_blocks.c.pack_num.in_(nums)))
                connection.execute(delete(packs).where(packs.c.name.in_(names)))
    finally:
        database.close()
    try:
        for name in garbage.packs:
            (folder / PACKS_NAME / name).unlink(missing_ok=True)
    except OSError as error:
        raise StorageError(f"{folder / PACKS_NAME}: {error}; the next start removes what is left") from error
    return garbage


def _weigh(connection: Connection, reached: ReachedRows) -> Garbage:
    sizes = [size for _, size in _dead_rows(connection, reached)]
    live: set[int] = set()
    dead_sizes: dict[int, int] = {}
    rows = select(pack_blocks.c.num, pack_blocks.c.pack_num, pack_blocks.c.size)
    for num, pack_num, size in stream_rows(connection, rows, _BATCH):
        if reached.packed[num]:
            live.add(pack_num)
        else:
            dead_sizes[pack_num] = dead_sizes.get(pack_num, 0) + size
    whole = [
        (name, size)
        for num, name, size in connection.execute(
            select(packs.c.num, packs.c.name, packs.c.size).order_by(packs.c.num)
        )
        if num not in live
    ]
    return Garbage(
        len(sizes),
        sum(sizes),
        tuple(name for name, _ in whole),
        sum(size for _, size in whole),
        sum(size for pack_num, size in dead_sizes.items() if pack_num in live),
    )


def _dead_rows(connection: Connection, reached: ReachedRows) -> Iterator[tuple[int, int]]:
    """Yield number and bytes of rows that are not needed."""
    query = select(blocks.c.num, func.length(blocks.c.encoded))
    for num, size in stream_rows(connection, query, _BATCH):
        if not reached.rows[num]:
            yield num, size
