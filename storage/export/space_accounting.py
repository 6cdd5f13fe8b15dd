"""Measures deduplication: bytes of blocks in the store, and how often blocks are referenced.

*Held* are all blocks, as rows and in packs. *Referenced* are the blocks of every commit, and those in the tree of every
file that a commit adds, each as often as it is named, as far as it is here. The database sums up commits. Trees of files
are walked, many together and level by level: a block is looked up once for all that name it on a level, and of a leaf
only the first bytes are read. That is most of the cost, so nothing is walked while the tables are as they were.
"""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from blake3 import blake3
from sqlalchemy import Connection, Table, case, func, select

from protocol.ids import BlockId
from protocol.limits.formats import OBJECT_DEPTH_MAX
from storage.blobs.reachability import child_ids, packed_children
from storage.commits.blocks import read_shared_blocks
from storage.engine.database import StorageError
from storage.engine.id_keys import BLOCK_NUM_SIZE, LOOKUP_COUNT_MAX, chunks, id_key, unpack_nums
from storage.engine.queries import stream_parts, sum_of
from storage.engine.store_identity import PACKS_NAME
from storage.export.manifest import Holdings
from storage.schema.schema import blocks, commits, files, pack_blocks, packs

FILE_BLOCKS_WALKED_MAX: Final = 1_000_000
"""Blocks of files that are looked up for one count: a TB of large files. 20,000 took 0.2 seconds of a processor; the ids
of one level, and those that it names, are in memory: some 200 MB at the most."""
SIZE_MAX: Final = 2**62
"""Bytes or blocks: a tree that names one child again and again, on every level, comes to more than a column holds."""
_ROWS_AT_ONCE: Final = 64
"""Blocks of files in rows have 256 KiB at most."""

_Sum = tuple[int, int]
"""Blocks and their bytes."""


class HoldingsCount(NamedTuple):
    """Holdings, and what tables they are of: equal while nothing came or left; empty if files are damaged."""

    holdings: Holdings | None
    state: str


def count_holdings(connection: Connection, before: HoldingsCount, folder: Path) -> HoldingsCount:
    """Count blocks and bytes as held and as referenced, unless `before` is still right. Costs O(blocks).

    None where files are too many, come to too much, or are damaged; the last is looked at again each time.
    """
    held, of_commits = _sums(_in_rows(connection), _in_packs(connection)), _of_commits(connection)
    described = (held, of_commits, *(_describe(connection, table) for table in (blocks, pack_blocks, files)))
    state = blake3(repr(described).encode()).hexdigest()
    if state == before.state:
        return before
    try:
        of_files = _count_files(connection, folder / PACKS_NAME)
    except StorageError:  # `ravel fsck` names it; nobody misses an export for it
        return HoldingsCount(None, "")
    if of_files is None:
        return HoldingsCount(None, state)
    referenced = _sums(of_commits, of_files)
    return HoldingsCount(None if max(referenced) > SIZE_MAX else Holdings(*held, *referenced), state)


def _describe(connection: Connection, table: Table) -> tuple[int, int]:
    """Return the number of rows of a table and the last row's number, which tell one state of it from another.

    One case is missed: the last rows went, the daemon was restarted, and as many came, of as many bytes. Then the figure
    stays older until the next change.
    """
    query = select(func.count(), func.coalesce(func.max(table.c.num), 0)).select_from(table)
    count, last = connection.execute(query).one()
    return count, last


def _sums(*parts: _Sum) -> _Sum:
    return sum(count for count, _ in parts), sum(size for _, size in parts)


def _in_rows(connection: Connection) -> _Sum:
    query = select(func.count(), sum_of(func.length(blocks.c.encoded))).select_from(blocks)
    count, size = connection.execute(query).one()
    return count, size


def _in_packs(connection: Connection) -> _Sum:
    query = select(func.count(), sum_of(pack_blocks.c.size)).select_from(pack_blocks)
    count, size = connection.execute(query).one()
    return count, size


def _of_commits(connection: Connection) -> _Sum:
    """Sum what commits reference: the size of one that has its body is that of its blocks."""
    length, is_whole = func.length(commits.c.block_nums), func.length(commits.c.block_nums) > BLOCK_NUM_SIZE
    query = select(
        sum_of(case((is_whole, length), else_=0)),
        sum_of(case((is_whole, commits.c.size), else_=0)),
        func.count().filter(~is_whole),
    )
    length_sum, size, bare = connection.execute(query.select_from(commits)).one()
    whole = (length_sum // BLOCK_NUM_SIZE, size)
    return _sums(whole, _of_bare(connection)) if bare else whole


def _of_bare(connection: Connection) -> _Sum:
    """Sum what commits without their body reference: their size still counts what is not here any more."""
    query = select(commits.c.block_nums).where(func.length(commits.c.block_nums) <= BLOCK_NUM_SIZE)
    count = size = 0
    for rows in stream_parts(connection, query, LOOKUP_COUNT_MAX):
        nums = [num for (packed,) in rows for num in unpack_nums(packed)]
        weighed = select(func.count(), sum_of(func.length(blocks.c.encoded))).where(blocks.c.num.in_(nums))
        more = connection.execute(weighed).one()
        count, size = _sums((count, size), (more[0], more[1]))
    return count, size


def _count_files(connection: Connection, folder: Path) -> _Sum | None:
    query = select(files.c.object_id, func.count()).group_by(files.c.object_id)
    left = FILE_BLOCKS_WALKED_MAX
    count = size = 0
    for rows in stream_parts(connection, query, LOOKUP_COUNT_MAX):
        level = Counter({row[0]: int(row[1]) for row in rows})
        for _ in range(OBJECT_DEPTH_MAX):  # what lies deeper is no object's
            left -= len(level)
            if left < 0:
                return None
            below: Counter[BlockId] = Counter()
            for block_id, block_size, children in _look_up(connection, folder, list(level)):
                named = level[block_id]
                count, size = count + named, size + named * block_size
                for child in children:
                    below[child] += named
                if len(below) > left:  # a block names thousands
                    return None
            level = below
    return count, size


def _look_up(
    connection: Connection, folder: Path, ids: list[BlockId]
) -> Iterator[tuple[BlockId, int, tuple[BlockId, ...]]]:
    """Yield (id, bytes, ids of children) of the given blocks that are stored, each once."""
    for part in chunks(ids):
        wanted = set(part)
        keys = [id_key(raw) for raw in part]
        packed = (
            select(pack_blocks.c.block_id, pack_blocks.c.size, pack_blocks.c.offset, packs.c.name)
            .join(packs, packs.c.num == pack_blocks.c.pack_num)
            .where(pack_blocks.c.id_key.in_(keys))
        )
        for found, size, offset, name in connection.execute(packed).all():
            if found in wanted:
                wanted.remove(found)
                yield found, size, packed_children(folder / name, offset, size)
        for few in chunks(sorted(wanted), _ROWS_AT_ONCE):
            for one in read_shared_blocks(connection, few):
                yield one.block_id, len(one.encoded), child_ids(one.encoded)
