"""Moves blocks that are needed out of packs into a new one, so that the old files can go with what is not needed in them.

Why no holes are punched: not every file system can, a copy of such a file has its old size again, and a hole looks like
damage to whoever reads there.

A move writes the new pack, makes it durable, and then changes the rows in one transaction. Whatever ends it before, the rows
name the old packs, and a mark has the next start delete the new one. After it marks have the next start delete the old ones.
"""

import os
import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import groupby
from pathlib import Path
from typing import Final, NamedTuple

from sqlalchemy import bindparam, insert, select, update

from protocol.crypto.hashing import block_id as hash_block
from protocol.ids import BlockId
from storage.blobs.packs import MARK_SUFFIX, may_be_named, write_encoded
from storage.engine.database import Database, StorageError
from storage.engine.folders import open_new, sync_folder
from storage.engine.id_keys import chunks
from storage.engine.store_identity import PACKS_NAME
from storage.schema.schema import pack_blocks, packs

_READ_SIZE: Final = 4 << 20
"""Bytes of blocks that are in memory at once."""
_MOVE: Final = (
    update(pack_blocks)
    .where(pack_blocks.c.num == bindparam("row"))
    .values(pack_num=bindparam("pack"), offset=bindparam("place"))
)


class _Place(NamedTuple):
    pack: str
    num: int
    block_id: BlockId
    offset: int
    size: int


class DamagedPack(StorageError):
    """A block of a pack cannot be read, or is not what its id says: none is moved, and `ravel fsck` names it."""


def move_blocks(database: Database, nums: Sequence[int]) -> None:
    """Move the blocks in these rows out of their packs into a new one. Costs O(their bytes).

    Raises DamagedPack, StorageError.
    """
    folder = database.folder / PACKS_NAME
    new = secrets.token_hex(16)
    with database.read() as connection:
        columns = (pack_blocks.c.num, pack_blocks.c.block_id, pack_blocks.c.offset, pack_blocks.c.size)
        query = select(packs.c.name, *columns).join(packs, packs.c.num == pack_blocks.c.pack_num)
        rows = [
            _Place(*row)
            for part in chunks(nums)
            for row in connection.execute(query.where(pack_blocks.c.num.in_(part)))
        ]
    rows.sort(key=lambda row: (row.pack, row.offset))
    is_named = False
    try:
        mark_pack(folder, new)
        size = _copy(folder, folder / new, rows)
        sync_folder(folder)
        with database.write(is_patient=True) as connection:
            is_named = True
            [pack_num] = database.next_nums(connection, packs, 1)
            connection.execute(insert(packs).values(num=pack_num, name=new, size=size))
            places, place = list[dict[str, int]](), 0
            for row in rows:
                places.append({"row": row.num, "pack": pack_num, "place": place})
                place += row.size
            connection.execute(_MOVE, places)
    except OSError as error:
        raise StorageError(f"{folder / new}: {error}") from error
    finally:
        with suppress(OSError):  # what stays is swept at the next start
            if not (is_named and may_be_named(database, new)):
                (folder / new).unlink(missing_ok=True)
            (folder / f"{new}{MARK_SUFFIX}").unlink(missing_ok=True)


def mark_pack(folder: Path, name: str) -> None:
    """Mark a pack: nothing is lost with it if no row names it. Raises OSError."""
    (folder / f"{name}{MARK_SUFFIX}").touch(mode=0o600)


def remove_packs(folder: Path, names: Sequence[str]) -> None:
    """Delete the files of packs, and their marks. Raises StorageError."""
    try:
        for name in names:
            (folder / PACKS_NAME / name).unlink(missing_ok=True)
            (folder / PACKS_NAME / f"{name}{MARK_SUFFIX}").unlink(missing_ok=True)
    except OSError as error:
        raise StorageError(f"{folder / PACKS_NAME}: {error}; the next start removes what is left") from error


def _copy(folder: Path, target: Path, rows: Sequence[_Place]) -> int:
    """Write the blocks of packs in a folder one after another, and make the file durable; return its bytes."""
    writing = open_new(target)
    try:
        gathered, waiting, total = list[bytes](), 0, 0
        for name, of_pack in groupby(rows, key=lambda row: row.pack):
            with _opened(folder / name) as reading:
                for row in of_pack:
                    gathered.append(_read(reading, row))
                    waiting += row.size
                    if waiting >= _READ_SIZE:
                        write_encoded(writing, gathered)
                        total += waiting
                        gathered, waiting = [], 0
        write_encoded(writing, gathered)
        os.fsync(writing)
        return total + waiting
    finally:
        os.close(writing)


@contextmanager
def _opened(source: Path) -> Iterator[int]:
    try:
        handle = os.open(source, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        raise DamagedPack(f"{source}: {error}") from error
    try:
        yield handle
    finally:
        os.close(handle)


def _read(handle: int, row: _Place) -> bytes:
    try:
        encoded = os.pread(handle, row.size, row.offset)
    except OSError as error:
        raise DamagedPack(f"block {row.block_id.hex()}: {error}") from error
    if hash_block(encoded) != row.block_id:
        raise DamagedPack(f"block {row.block_id.hex()} is not what its id says")
    return encoded
