"""Marks every block that a commit or file still needs (mark phase of garbage collection). Needs no keys.

A block is marked by the number of its row, one byte each: memory is a byte for each block that was ever stored. Leaves
are most of the bytes of a store; of them only the first few are read.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from sqlalchemy import ColumnElement, Connection, func, select, true

from protocol.codec import DecodeError
from protocol.formats.block import LEAF_START_SIZE, decode_block, has_children
from protocol.ids import BlockId, ObjectId
from storage.blobs.files import IS_REMOVED, IS_SPARED
from storage.commits.blocks import read_shared_blocks
from storage.engine.database import StorageError
from storage.engine.id_keys import id_key, unpack_nums
from storage.engine.queries import stream_rows
from storage.engine.store_identity import PACKS_NAME
from storage.schema.schema import blocks, commits, files, pack_blocks, packs

_BATCH: Final = 1000


@dataclass(slots=True)
class ReachedRows:
    """Marks (1 where reached) by row number of `blocks` and of `pack_blocks`, and counts of objects.

    Rows that are newer than the marks have none.
    """

    rows: bytearray
    packed: bytearray
    objects: int = 0
    incomplete: int = 0  # objects of which blocks are not here


def _pass_over(_block_id: BlockId) -> None:
    pass


def mark_reached(
    connection: Connection,
    folder: Path,
    *,
    with_removed: bool = True,
    on_missing: Callable[[BlockId], None] = _pass_over,
) -> ReachedRows:
    """Mark all blocks that commits and files need; removed files only `with_removed`, and none of which the content was
    given up. Costs O(blocks).

    `on_missing` gets the id of each block of a file that is not here. Raises StorageError.
    """
    reached = nothing_reached(connection)
    for (nums,) in stream_rows(connection, select(commits.c.block_nums), _BATCH):
        for num in unpack_nums(nums):
            _mark(reached.rows, num)
    condition: ColumnElement[bool] = true() if with_removed else ~IS_REMOVED
    wanted = select(files.c.object_id).where(condition, ~IS_SPARED).distinct()
    walk = Walk(connection, folder / PACKS_NAME, reached, on_missing)
    for (object_id,) in stream_rows(connection, wanted, _BATCH):
        reached.objects += 1
        reached.incomplete += not walk.mark(object_id)
    return reached


class Walk:
    """Marks trees of blocks."""

    def __init__(
        self,
        connection: Connection,
        folder: Path,
        reached: ReachedRows,
        on_missing: Callable[[BlockId], None] = _pass_over,
    ) -> None:
        self._connection = connection
        self._folder = folder
        self._reached = reached
        self._on_missing = on_missing

    def mark(self, object_id: ObjectId) -> bool:
        """Mark an object's blocks; return True if all are here.

        Costs O(its blocks): an author can name one block in many places of a tree, and it is passed on once.
        """
        ahead: list[BlockId] = [object_id]
        inner: set[BlockId] = set()
        is_whole = True
        while ahead:
            block_id = ahead.pop()
            if block_id in inner:
                continue
            children = self._mark_packed(block_id)
            if children is None:
                children = self._mark_row(block_id)
            if children is None:
                is_whole = False
                self._on_missing(block_id)
            elif children:
                inner.add(block_id)
                ahead.extend(dict.fromkeys(children))
        return is_whole

    def _mark_packed(self, block_id: BlockId) -> tuple[BlockId, ...] | None:
        query = (
            select(
                pack_blocks.c.num,
                pack_blocks.c.block_id,
                packs.c.name,
                pack_blocks.c.offset,
                pack_blocks.c.size,
            )
            .join(packs, packs.c.num == pack_blocks.c.pack_num)
            .where(pack_blocks.c.id_key == id_key(block_id))
        )
        found: tuple[BlockId, ...] | None = None
        for num, stored_id, name, offset, size in self._connection.execute(query):
            if stored_id == block_id:
                _mark(self._reached.packed, num)
                found = packed_children(self._folder / name, offset, size)
        return found

    def _mark_row(self, block_id: BlockId) -> tuple[BlockId, ...] | None:
        for found in read_shared_blocks(self._connection, [block_id]):
            _mark(self._reached.rows, found.num)
            return child_ids(found.encoded)
        return None


def packed_children(path: Path, offset: int, size: int) -> tuple[BlockId, ...]:
    """Read the children's ids of a block in a pack; of a leaf only the start. Raises StorageError."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            if not has_children(os.pread(handle, LEAF_START_SIZE, offset)):
                return ()
            return child_ids(os.pread(handle, size, offset))
        finally:
            os.close(handle)
    except OSError as error:
        raise StorageError(f"{path}: {error}") from error


def child_ids(encoded: bytes) -> tuple[BlockId, ...]:
    """Return the ids that a block names as its children. Raises StorageError."""
    try:
        return decode_block(encoded).child_ids
    except DecodeError as error:
        raise StorageError(f"a damaged block ({error}); `ravel fsck` names it") from None


def nothing_reached(connection: Connection) -> ReachedRows:
    """Return marks for all stored rows, with none of them reached. Costs O(1), and a byte for each row."""
    return ReachedRows(_marks(connection, blocks.c.num), _marks(connection, pack_blocks.c.num))


def _mark(marks: bytearray, num: int) -> None:
    if 0 <= num < len(marks):
        marks[num] = 1


def _marks(connection: Connection, num: ColumnElement[int]) -> bytearray:
    last = connection.execute(select(func.coalesce(func.max(num), 0))).scalar_one()
    return bytearray(last + 1)
