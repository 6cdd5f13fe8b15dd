"""Table of blocks: writes each block once, and verifies its hash on every read."""

from collections.abc import Iterable, Mapping, Sequence

from sqlalchemy import Connection, bindparam, select

from protocol.crypto.hashing import block_id
from protocol.formats.block import Block
from protocol.ids import BlockId
from storage.engine.bulk import insert_rows, select_in
from storage.engine.database import Database, StorageError
from storage.engine.id_keys import chunks, id_keys
from storage.schema.schema import blocks as table

_BY_KEY = select(table.c.num, table.c.encoded).where(table.c.id_key.in_(bindparam("keys", expanding=True)))
_BY_NUM = select(table.c.num, table.c.encoded).where(table.c.num.in_(bindparam("keys", expanding=True)))


class DamagedBlock(StorageError):
    """A block's bytes are no longer what its id says."""


def put_blocks(
    database: Database, connection: Connection, fresh: Sequence[Block], shared: Iterable[Block]
) -> dict[BlockId, int]:
    """Store blocks; return the row number of each. Costs O(blocks).

    `fresh` are known not to be here (a new commit's own); `shared` are looked up first, as equal plaintexts share a block.
    """
    new = {block.block_id: block for block in fresh}
    maybe = {block.block_id: block for block in shared if block.block_id not in new}
    nums = find_blocks(connection, list(maybe))
    new.update((wanted, block) for wanted, block in maybe.items() if wanted not in nums)
    fresh_nums = database.next_nums(connection, table, len(new))
    nums.update(zip(new, fresh_nums, strict=True))
    rows = zip(fresh_nums, id_keys(new), [block.encoded for block in new.values()], strict=True)
    insert_rows(connection, table, ("num", "id_key", "encoded"), list(rows))
    return nums


def find_blocks(connection: Connection, ids: Sequence[BlockId]) -> dict[BlockId, int]:
    """Find the row numbers of those of these blocks that are here. Costs O(ids)."""
    wanted = set(ids)
    found: dict[BlockId, int] = {}
    for part in chunks(id_keys(wanted)):
        for num, encoded in select_in(connection, _BY_KEY, part):
            actual = block_id(encoded)
            if actual in wanted:
                found[actual] = num
    return found


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
