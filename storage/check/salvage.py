"""Removes damaged blocks from a store, and finds the commits and files that then lack a block.

Rows go from the database, and with them what names blocks in packs; bytes in pack files stay where they are, which nothing
names then. What is asked of peers is written down in `commits.damaged`.
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from sqlalchemy import Connection, delete, func, select, table, update
from sqlalchemy import column as named_column

from protocol.ids import BlockId
from storage.blobs.reachability import mark_reached
from storage.check.check_integrity import REFERENCES, Damage
from storage.commits.damaged import mark_blocks_damaged
from storage.engine.id_keys import chunks, id_key, unpack_nums
from storage.engine.queries import stream_rows
from storage.schema.schema import blocks, branches, commits, group_places, pack_blocks, packs, repos, topics

_BATCH: Final = 1000
_DERIVED: Final = {column.table.name for column, _ in REFERENCES} - {
    table.name for table in (repos, topics, branches, commits, pack_blocks)
}
"""Tables whose rows are nothing without what they name: made again from commits, or brought again by peers."""


@dataclass(slots=True)
class SalvageResult:
    """Removed blocks: their number, keys of the ids of those that were rows, and ids of those in packs."""

    count: int = 0
    keys: set[int] = field(default_factory=set)
    packed: set[BlockId] = field(default_factory=set)


def remove_damaged(connection: Connection, damage: Damage) -> SalvageResult:
    """Remove blocks whose bytes do not hash to their ids, and the rows of missing packs. Costs O(damage)."""
    removed = SalvageResult(keys=set(damage.rows.values()), packed=set(damage.packed.values()))
    for part in chunks(list(damage.rows)):
        removed.count += connection.execute(delete(blocks).where(blocks.c.num.in_(part))).rowcount
    for part in chunks(list(damage.packed)):
        removed.count += connection.execute(delete(pack_blocks).where(pack_blocks.c.num.in_(part))).rowcount
    for num, size in damage.sizes.items():
        if size is not None:
            connection.execute(update(packs).where(packs.c.num == num).values(size=size))
            continue
        here = pack_blocks.c.pack_num == num
        removed.packed.update(connection.execute(select(pack_blocks.c.block_id).where(here)).scalars())
        removed.count += connection.execute(delete(pack_blocks).where(here)).rowcount
        connection.execute(delete(packs).where(packs.c.num == num))
    nameless = pack_blocks.c.pack_num.not_in(select(packs.c.num))
    removed.packed.update(connection.execute(select(pack_blocks.c.block_id).where(nameless)).scalars())
    removed.count += connection.execute(delete(pack_blocks).where(nameless)).rowcount
    return removed


def mark_content_damaged(connection: Connection, folder: Path, removed: SalvageResult) -> int:
    """Ask peers for removed blocks of files' content; return how many. Costs O(blocks). Raises StorageError.

    Of a block whose parent is gone nobody can tell whether a file needs it, so all of those in packs are asked for then. Of
    one that was a row no more than a key is known until something names it: under a parent that is gone it is fetched
    when the file is read.
    """
    missing: set[BlockId] = set()

    def note(block_id: BlockId) -> None:
        if block_id in removed.packed or id_key(block_id) in removed.keys:
            missing.add(block_id)

    if removed.packed or removed.keys:
        mark_reached(connection, folder, on_missing=note)
    return mark_blocks_damaged(connection, missing | removed.packed) if missing else 0


def find_bodiless(connection: Connection) -> list[int]:
    """Find the numbers of commits whose blocks are not all here. Costs O(commits)."""
    last = connection.execute(select(func.coalesce(func.max(blocks.c.num), 0))).scalar_one()
    is_here = bytearray(last + 1)
    for (num,) in stream_rows(connection, select(blocks.c.num), _BATCH):
        is_here[num] = 1
    return [
        num
        for num, packed in stream_rows(connection, select(commits.c.num, commits.c.block_nums), _BATCH)
        if not packed or not all(0 < one <= last and is_here[one] for one in unpack_nums(packed))
    ]


def drop_dangling(connection: Connection) -> int:
    """Forget derived rows that name what is not there; return how many."""
    count = 0
    for column, target in REFERENCES:
        if column.table.name in _DERIVED:
            targets = table(target.table.name, named_column("num")).alias()
            dangling = column.is_not(None) & column.not_in(select(targets.c.num))
            count += connection.execute(delete(column.table).where(dangling)).rowcount
    # A place is told again by its commit, where that can be opened (`node.care.repair`).
    places = commits.c.place_num
    lost = (places != 0) & places.not_in(select(group_places.c.num))
    return count + connection.execute(update(commits).where(lost).values(place_num=0)).rowcount
