"""Files that a relay keeps for others: which ones, and their blocks, each once whatever files have it.

Nothing here is opened: ids of children stand in clear, so that a tree of blocks can be fetched and forgotten by who cannot
read it. Blocks are rows and not packs: files of others are forgotten while the node runs, one topic at a time, and a pack
would stay for the sake of one block.

A file counts for the topic that it was deposited on and for the peer that brought it, also where another file has brought
its blocks before: what a quota is used for does not depend on what others keep.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from sqlalchemy import Connection, bindparam, func, insert, select, update

from protocol.block import LEAF_START_SIZE, Block, decode_block, has_children
from protocol.deposits import size_of
from protocol.ids import BlockId, ObjectId, ShortId
from protocol.limits.peers import RELAYED_FILE_UNFINISHED_SECONDS
from protocol.messages import FileDeposit
from storage.engine.bulk import insert_rows, select_in
from storage.engine.database import Database, keep_last_number
from storage.engine.id_keys import chunks, id_key
from storage.relay.quotas import (
    RelayQuotas,
    Visitor,
    add_share,
    find_file_room,
    forget_files,
    take_back_share,
)
from storage.schema.relay_schema import relay_blocks, relay_file_blocks, relay_files, relay_topics

_BY_KEY: Final = select(relay_blocks.c.num, relay_blocks.c.block_id).where(
    relay_blocks.c.id_key.in_(bindparam("keys", expanding=True))
)
_FORGOTTEN_AT_ONCE: Final = 16
"""Unfinished files that one deposit clears away: more of them wait for the next."""


@dataclass(frozen=True, slots=True)
class BegunFile:
    """A file that was deposited: its number, whether all of it is here; or why it is not kept ("": it is)."""

    num: int
    is_whole: bool = False
    refusal: str = ""
    has_forgotten: bool = False


@dataclass(frozen=True, slots=True)
class KeptBlocks:
    """What became of blocks of a file: those that were there or are now, by id their children; why not more ("": none)."""

    children: dict[BlockId, tuple[BlockId, ...]]
    refusal: str = ""
    has_forgotten: bool = False


def list_whole(connection: Connection, topic_num: int, after: ShortId, limit: int) -> tuple[ShortId, ...]:
    """Files of a topic that are here whole, above an id, in order."""
    columns = relay_files.c
    query = (
        select(columns.file_id)
        # No id is longer than this with so many 0xff behind it.
        .where(columns.topic_num == topic_num, columns.is_whole, columns.file_id > after + b"\xff" * 16)
        .order_by(columns.file_id)
        .limit(limit)
    )
    return tuple(ShortId(file_id[:16]) for file_id in connection.execute(query).scalars())


def load_deposits(
    connection: Connection, topic_num: int, after: ObjectId | None, limit: int
) -> list[FileDeposit]:
    """Files of a topic that are here whole, above an id, as they were deposited."""
    columns = relay_files.c
    query = (
        select(columns.file_id, columns.claimed_size, columns.signature)
        .where(columns.topic_num == topic_num, columns.is_whole, columns.file_id > (after or b""))
        .order_by(columns.file_id)
        .limit(limit)
    )
    return [FileDeposit(*row) for row in connection.execute(query)]


def begin_file(
    database: Database,
    connection: Connection,
    topic_num: int,
    deposit: FileDeposit,
    visitor: Visitor,
    quotas: RelayQuotas,
    now_ms: int,
) -> BegunFile:
    """Keep a file from now on, if there is room for all of it."""
    columns = relay_files.c
    here = (columns.topic_num == topic_num) & (columns.file_id == deposit.file)
    known = connection.execute(
        select(columns.num, columns.is_whole, columns.size, columns.claimed_size).where(here)
    ).first()
    if known is not None and known.is_whole:
        return BegunFile(known.num, is_whole=True)
    _forget_unfinished(connection, topic_num, now_ms)
    lacking = deposit.size - (known.size if known is not None else 0)
    room = find_file_room(connection, topic_num, visitor, max(0, lacking), quotas)
    if not room.count:
        return BegunFile(0, refusal=room.refused, has_forgotten=room.has_forgotten)
    values = {"claimed_size": deposit.size, "signature": deposit.signature, "touched_at": now_ms}
    if connection.execute(update(relay_files).where(here).values(values)).rowcount:
        num = connection.execute(select(columns.num).where(here)).scalar_one()
        return BegunFile(num, has_forgotten=room.has_forgotten)
    num = database.next_nums(connection, relay_files, 1)[0]
    row = {"num": num, "topic_num": topic_num, "file_id": deposit.file, "size": 0}
    row |= {"peer": visitor.peer, "is_whole": False}
    connection.execute(insert(relay_files).values({**row, **values}))
    return BegunFile(num, has_forgotten=room.has_forgotten)


def find_kept(connection: Connection, ids: Sequence[BlockId]) -> set[BlockId]:
    """Those of these blocks that are here, whatever file has them."""
    return set(_find(connection, ids))


def keep_blocks(
    database: Database,
    connection: Connection,
    file_num: int,
    ids: Sequence[BlockId],
    came: Sequence[Block],
    visitor: Visitor,
    quotas: RelayQuotas,
    now_ms: int,
) -> KeptBlocks:
    """Give a file these blocks, of which some have come and the others are here already."""
    row = connection.execute(
        select(relay_files.c.topic_num, relay_files.c.size, relay_files.c.claimed_size).where(
            relay_files.c.num == file_num
        )
    ).first()
    if row is None:
        return KeptBlocks({}, "topic_forgotten")
    nums = _find(connection, ids)
    fresh = {block.block_id: block for block in came if block.block_id not in nums}
    known = [nums[one] for one in nums]
    linked = _find_linked(connection, file_num, known)
    joining = [one for one in nums.values() if one not in linked]
    sizes = _load_sizes(connection, joining)
    size = sum(map(size_of, sizes)) + sum(size_of(len(block.encoded)) for block in fresh.values())
    if row.size + size > row.claimed_size:
        return KeptBlocks({}, "bad_file")
    room = find_file_room(connection, row.topic_num, visitor, size, quotas)
    if not room.count:
        return KeptBlocks({}, room.refused, room.has_forgotten)
    for num, block in zip(
        database.next_nums(connection, relay_blocks, len(fresh)), fresh.values(), strict=True
    ):
        values = {"num": num, "id_key": id_key(block.block_id), "block_id": block.block_id}
        connection.execute(insert(relay_blocks).values({**values, "encoded": block.encoded}))
        joining.append(num)
    insert_rows(
        connection, relay_file_blocks, ("file_num", "block_num"), [(file_num, num) for num in joining]
    )
    grown = {"size": relay_files.c.size + size, "touched_at": now_ms}
    connection.execute(update(relay_files).where(relay_files.c.num == file_num).values(grown))
    connection.execute(
        update(relay_topics)
        .where(relay_topics.c.num == row.topic_num)
        .values(file_size=relay_topics.c.file_size + size, touched_at=now_ms)
    )
    if size:
        add_share(connection, row.topic_num, visitor, size)
    children = _load_children(connection, nums)
    children.update((block_id, block.child_ids) for block_id, block in fresh.items())
    return KeptBlocks(children, "", room.has_forgotten)


def finish_file(connection: Connection, file_num: int) -> bool:
    """All blocks of a file are here; whether it still is."""
    here = relay_files.c.num == file_num
    return bool(connection.execute(update(relay_files).where(here).values(is_whole=True)).rowcount)


def drop_file(connection: Connection, file_num: int) -> None:
    """Keep a file no more: its tree is none."""
    _take_back(connection, [file_num])


def load_kept_block(connection: Connection, block_id: BlockId) -> bytes | None:
    """A block of any file, encoded; who knows its id was shown it."""
    nums = _find(connection, [block_id])
    if not nums:
        return None
    query = select(relay_blocks.c.encoded).where(relay_blocks.c.num == nums[block_id])
    return connection.execute(query).scalar()


def _find(connection: Connection, ids: Sequence[BlockId]) -> dict[BlockId, int]:
    wanted = set(ids)
    found: dict[BlockId, int] = {}
    for part in chunks([id_key(one) for one in wanted]):
        found.update(
            (block_id, num) for num, block_id in select_in(connection, _BY_KEY, part) if block_id in wanted
        )
    return found


def _find_linked(connection: Connection, file_num: int, nums: Sequence[int]) -> set[int]:
    found: set[int] = set()
    for part in chunks(nums):
        links = relay_file_blocks.c
        query = select(links.block_num).where(links.file_num == file_num, links.block_num.in_(part))
        found.update(connection.execute(query).scalars())
    return found


def _load_sizes(connection: Connection, nums: Sequence[int]) -> list[int]:
    found: list[int] = []
    for part in chunks(nums):
        query = select(func.length(relay_blocks.c.encoded)).where(relay_blocks.c.num.in_(part))
        found += connection.execute(query).scalars()
    return found


def _load_children(connection: Connection, nums: dict[BlockId, int]) -> dict[BlockId, tuple[BlockId, ...]]:
    """The ids that blocks name in clear."""
    found: dict[BlockId, tuple[BlockId, ...]] = {}
    for block_id, num in nums.items():
        found[block_id] = ()
        here = relay_blocks.c.num == num
        start = func.substr(relay_blocks.c.encoded, 1, LEAF_START_SIZE)
        if has_children(connection.execute(select(start).where(here)).scalar_one()):  # most are large leaves
            encoded = connection.execute(select(relay_blocks.c.encoded).where(here)).scalar_one()
            found[block_id] = decode_block(encoded).child_ids
    return found


def _forget_unfinished(connection: Connection, topic_num: int, now_ms: int) -> None:
    """Forget files of a topic of which no block came for long."""
    columns = relay_files.c
    since = now_ms - int(RELAYED_FILE_UNFINISHED_SECONDS * 1000)
    old = select(columns.num).where(
        columns.topic_num == topic_num, ~columns.is_whole, columns.touched_at < since
    )
    nums = connection.execute(old.limit(_FORGOTTEN_AT_ONCE)).scalars().all()
    if nums:
        _take_back(connection, nums)


def _take_back(connection: Connection, nums: Sequence[int]) -> None:
    """Forget files that are not whole, and what they counted. Their numbers are not given again: pulls have them."""
    keep_last_number(connection, relay_files)
    columns = relay_files.c
    for topic_num, size, peer in connection.execute(
        select(columns.topic_num, columns.size, columns.peer).where(columns.num.in_(nums))
    ).all():
        less = {"file_size": relay_topics.c.file_size - size}
        connection.execute(update(relay_topics).where(relay_topics.c.num == topic_num).values(less))
        take_back_share(connection, topic_num, peer, size)
    forget_files(connection, select(columns.num).where(columns.num.in_(nums)))
