"""Table of this node's files that relays keep, as they have said; and what a file counts there.

A file is deposited on the topic by which the commit came that added it, once this node has all of its content.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from sqlalchemy import Connection, bindparam, delete, func, insert, select

from protocol.ids import BlockId, ObjectId, PeerId, ShortId
from protocol.limits.formats import OBJECT_DEPTH_MAX
from protocol.limits.peers import RELAYED_INNER_COUNT_MAX
from protocol.session.deposits import short_file, size_of
from storage.blobs.files import IS_REMOVED
from storage.blobs.packs import Packs
from storage.blobs.reachability import packed_children
from storage.commits.blocks import DamagedBlock
from storage.engine.bulk import select_in, select_rows
from storage.engine.id_keys import chunks, id_key
from storage.engine.store_identity import PACKS_NAME
from storage.schema.peer_schema import relayed_files
from storage.schema.schema import commits, files, pack_blocks, packs

_PACKED: Final = (
    select(pack_blocks.c.block_id, packs.c.name, pack_blocks.c.offset, pack_blocks.c.size)
    .join(packs, packs.c.num == pack_blocks.c.pack_num)
    .where(pack_blocks.c.id_key == bindparam("key"))
)
_SIZES: Final = select(pack_blocks.c.block_id, pack_blocks.c.size).where(
    pack_blocks.c.id_key.in_(bindparam("keys", expanding=True))
)


@dataclass(frozen=True, slots=True)
class OwnFile:
    """A file that is there: its number, its object, and the topic by which it came."""

    num: int
    object_id: ObjectId
    topic_num: int


def last_file(connection: Connection) -> int:
    """Return the number of the file that came last, or 0."""
    return int(connection.execute(select(func.coalesce(func.max(files.c.num), 0))).scalar_one())


def topics_with_files(connection: Connection) -> set[int]:
    """Return the numbers of topics by which files came. Costs O(files)."""
    query = select(commits.c.topic_num).join(files, files.c.commit_num == commits.c.num).distinct()
    return set(connection.execute(query).scalars())


def load_own_files(connection: Connection, after: int, limit: int) -> list[OwnFile]:
    """Load files that are there, above a number, in their order. Costs O(limit)."""
    query = (
        select(files.c.num, files.c.object_id, commits.c.topic_num)
        .join(commits, commits.c.num == files.c.commit_num)
        .where(files.c.num > after, ~commits.c.is_void, ~IS_REMOVED)
        .order_by(files.c.num)
        .limit(limit)
    )
    return [OwnFile(*row) for row in connection.execute(query)]


def find_keeping_relays(connection: Connection, ids: Sequence[ObjectId]) -> dict[ShortId, set[PeerId]]:
    """Map files' short ids to the relays that have said to keep them, on any topic. Costs O(ids)."""
    found: dict[ShortId, set[PeerId]] = {}
    columns = relayed_files.c
    for part in chunks([short_file(one) for one in ids]):
        query = select(columns.file, columns.relay).where(columns.file.in_(part))
        for file, relay in connection.execute(query):
            found.setdefault(file, set()).add(relay)
    return found


def find_relayed_on(connection: Connection, relay: PeerId, own: Sequence[OwnFile]) -> set[int]:
    """Find the numbers of the given files that a relay keeps on the topic by which they came.

    On another topic they go when that is forgotten.
    """
    columns = relayed_files.c
    kept: set[tuple[int, ShortId]] = set()
    for part in chunks([short_file(one.object_id) for one in own]):
        query = select(columns.topic_num, columns.file)
        rows = connection.execute(query.where(columns.relay == relay, columns.file.in_(part)))
        kept.update((topic_num, file) for topic_num, file in rows)
    return {one.num for one in own if (one.topic_num, short_file(one.object_id)) in kept}


def replace_relayed(connection: Connection, relay: PeerId, topic_num: int, kept: Collection[ShortId]) -> None:
    """Record the files of a topic that a relay says to keep, in place of its last statement.

    Costs O(files of the topic).
    """
    here = (relayed_files.c.relay == relay) & (relayed_files.c.topic_num == topic_num)
    connection.execute(delete(relayed_files).where(here))
    rows = [{"relay": relay, "topic_num": topic_num, "file": file} for file in kept]
    for part in chunks(rows):
        connection.execute(insert(relayed_files), list(part))


def note_relayed(connection: Connection, relay: PeerId, topic_num: int, kept: Collection[ShortId]) -> None:
    """Record that a relay keeps these files too."""
    here = (relayed_files.c.relay == relay) & (relayed_files.c.topic_num == topic_num)
    for part in chunks(list(kept)):
        connection.execute(delete(relayed_files).where(here, relayed_files.c.file.in_(part)))
        rows = [{"relay": relay, "topic_num": topic_num, "file": file} for file in part]
        connection.execute(insert(relayed_files), rows)


def forget_relayed(connection: Connection, relay: PeerId) -> None:
    """Forget what a relay keeps: this node no longer uses it. Costs O(files that it keeps)."""
    connection.execute(delete(relayed_files).where(relayed_files.c.relay == relay))


@dataclass(slots=True)
class Looks:
    """Count of places of blocks that may still be looked at."""

    left: int


class TooManyPlaces(Exception):
    """A file has more places of blocks than may be looked at."""


def measure_file(
    connection: Connection, root: Path, blobs: Packs, file: ObjectId, looks: Looks | None = None
) -> int | None:
    """Measure what a file's blocks count at a relay at most: leaves that are named twice count twice.

    Costs O(blocks of the file).

    None: they are not all here, or a relay takes no such tree, which has too many inner blocks. Raises StorageError, and
    TooManyPlaces before it takes more than is left of `looks`.
    """
    total = 0
    inner: set[BlockId] = set()
    ahead: list[tuple[BlockId, int]] = [(file, 1)]
    while ahead:
        block_id, depth = ahead.pop()
        if block_id in inner:
            continue
        found = look_at_block(connection, root, blobs, block_id)
        if found is None:
            return None
        size, children = found
        total += size_of(size)
        if not children:
            continue
        if looks is not None:
            if len(children) > looks.left:
                raise TooManyPlaces
            looks.left -= len(children)
        inner.add(block_id)
        if depth == OBJECT_DEPTH_MAX or len(inner) > RELAYED_INNER_COUNT_MAX:
            return None
        first = look_at_block(connection, root, blobs, children[0])
        if first is None:
            return None
        if first[1]:
            ahead += [(one, depth + 1) for one in dict.fromkeys(children)]
            continue
        sizes = _leaf_sizes(connection, root, blobs, children)  # where one child is a leaf, all are
        if sizes is None:
            return None
        total += sum(map(size_of, sizes))
    return total


def look_at_block(
    connection: Connection, root: Path, blobs: Packs, block_id: BlockId
) -> tuple[int, tuple[BlockId, ...]] | None:
    """Return the bytes and the children of a block; None if it is not here. Raises StorageError."""
    for found, name, offset, size in select_rows(connection, _PACKED, key=id_key(block_id)):
        if found == block_id:
            return size, packed_children(root / PACKS_NAME / name, offset, size)
    try:
        block = blobs.find(connection, block_id)
    except DamagedBlock:
        return None
    return None if block is None else (len(block.encoded), block.child_ids)


def _leaf_sizes(connection: Connection, root: Path, blobs: Packs, ids: Sequence[BlockId]) -> list[int] | None:
    packed: dict[BlockId, int] = {}
    wanted = set(ids)
    for part in chunks([id_key(one) for one in wanted]):
        packed.update(row for row in select_in(connection, _SIZES, part) if row[0] in wanted)
    sizes: list[int] = []
    for one in ids:
        if one not in packed:
            found = look_at_block(connection, root, blobs, one)
            if found is None:
                return None
            packed[one] = found[0]
        sizes.append(packed[one])
    return sizes
