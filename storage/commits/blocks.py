"""Table of blocks: verifies a block's hash on every read.

A commit's row names its blocks by number, and whoever needs one comes by the commit. Found by id are *shared* blocks alone:
those of files, which name each other by id, and large ones of commits. The index of ids has no others: so a commit adds one
index entry at a random place, of its own id, and not three.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Final, NamedTuple

from sqlalchemy import Connection, bindparam, select

from protocol.codec import DecodeError
from protocol.crypto.hashing import block_id
from protocol.formats.block import Block, decode_block
from protocol.ids import BlockId
from storage.engine.bulk import insert_rows, select_in
from storage.engine.database import Database, StorageError
from storage.engine.id_keys import chunks, id_key, id_keys
from storage.schema.schema import blocks as table

SHARED_SIZE_MIN: Final = 4096
"""Bytes from which equal blocks of commits are stored once. Each shared block costs an index page, as much as a copy
of a smaller block."""
_SHARED = select(table.c.num, table.c.encoded).where(
    table.c.is_shared, table.c.id_key.in_(bindparam("keys", expanding=True))
)
_BY_NUM = select(table.c.num, table.c.encoded).where(table.c.num.in_(bindparam("keys", expanding=True)))


class DamagedBlock(StorageError):
    """A block's bytes are no longer what its id says."""


class SharedBlock(NamedTuple):
    """Block that was found by its id, and the number of its row."""

    block_id: BlockId
    num: int
    encoded: bytes


def put_commit_blocks(
    database: Database, connection: Connection, blocks: Iterable[Block]
) -> dict[BlockId, int]:
    """Store blocks of commits, which rows name by number; return the row number of each. Costs O(blocks).

    Equal ones of one call are stored once; those of SHARED_SIZE_MIN bytes also where a shared one is here.
    """
    new = {block.block_id: block for block in blocks}
    nums = put_shared_blocks(
        database, connection, [block for block in new.values() if len(block.encoded) >= SHARED_SIZE_MIN]
    )
    alone = [block for block in new.values() if block.block_id not in nums] if nums else new.values()
    return nums | _insert(database, connection, alone, is_shared=False)


def put_shared_blocks(
    database: Database, connection: Connection, blocks: Iterable[Block]
) -> dict[BlockId, int]:
    """Store blocks that can be looked up by id, as far as they are not here; return the row number of each.

    Costs O(blocks), each O(log n).
    """
    wanted = {block.block_id: block for block in blocks}
    nums = find_shared_blocks(connection, list(wanted))
    if database.reused_rows is not None:
        database.reused_rows.update(nums.values())
    new = [block for block in wanted.values() if block.block_id not in nums]
    return nums | _insert(database, connection, new, is_shared=True)


def _insert(
    database: Database, connection: Connection, new: Collection[Block], *, is_shared: bool
) -> dict[BlockId, int]:
    if not new:
        return {}
    nums, ids = database.next_nums(connection, table, len(new)), [block.block_id for block in new]
    rows = zip(nums, id_keys(ids), [is_shared] * len(new), [block.encoded for block in new], strict=True)
    insert_rows(connection, table, ("num", "id_key", "is_shared", "encoded"), list(rows))
    return dict(zip(ids, nums, strict=True))


def read_shared_blocks(connection: Connection, ids: Collection[BlockId]) -> Iterator[SharedBlock]:
    """Yield the given blocks that are shared and here, each once, hashed again.

    Costs O(ids), each O(log n). LOOKUP_COUNT_MAX of them may be in memory at once.
    """
    wanted = set(ids)
    for part in chunks(id_keys(wanted)):
        for num, encoded in select_in(connection, _SHARED, part):
            actual = block_id(encoded)
            if actual in wanted:
                wanted.remove(actual)
                yield SharedBlock(actual, num, encoded)


def find_shared_block(connection: Connection, wanted: BlockId) -> Block | None:
    """Find one shared block by its id, hashed again once. Costs O(block), and O(log n)."""
    for _, encoded in select_in(connection, _SHARED, [id_key(wanted)]):
        with suppress(DecodeError):  # damaged, or another one whose id begins so
            block = decode_block(encoded)
            if block.block_id == wanted:
                return block
    return None


def find_shared_blocks(connection: Connection, ids: Collection[BlockId]) -> dict[BlockId, int]:
    """Find the row numbers of the given blocks that are shared and here. Costs O(ids), each O(log n)."""
    return {found.block_id: found.num for found in read_shared_blocks(connection, ids)}


def find_blocks_in(connection: Connection, nums: Sequence[int]) -> dict[BlockId, int]:
    """Hash the blocks in these rows, as far as they are here; return the row number of each. Costs O(bytes)."""
    return {
        block_id(encoded): num
        for part in chunks(nums)
        for num, encoded in select_in(connection, _BY_NUM, part)
    }


def read_blocks(connection: Connection, expected: Mapping[int, BlockId | None]) -> dict[int, bytes]:
    """Read encoded blocks by row number; hash those again whose id is given. Costs O(bytes). Raises DamagedBlock."""
    found: dict[int, bytes] = {}
    for part in chunks(list(expected)):
        for num, encoded in select_in(connection, _BY_NUM, part):
            wanted = expected[num]
            if wanted is not None and block_id(encoded) != wanted:
                raise DamagedBlock(f"block {wanted.hex()} (row {num})")
            found[num] = encoded
    if len(found) != len(expected):
        raise DamagedBlock(f"{len(expected) - len(found)} blocks are not where their commits say")
    return found
