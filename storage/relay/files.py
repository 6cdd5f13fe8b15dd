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

from protocol.crypto.hashing import block_id as hash_block
from protocol.formats.block import LEAF_START_SIZE, Block, decode_block, has_children
from protocol.ids import BlockId, ObjectId, ShortId
from protocol.limits.peers import RELAYED_FILE_UNFINISHED_SECONDS
from protocol.session.deposits import size_of
from protocol.session.messages import FileDeposit
from storage.commits.blocks import DamagedBlock
from storage.engine.bulk import insert_rows, select_by_ids
from storage.engine.database import Database, reserve_used_numbers
from storage.engine.id_keys import chunks, id_key
from storage.relay.quotas import (
    RelayQuotas,
    Visitor,
    add_share,
    forget_files,
    make_file_room,
    refuse_file,
    take_back_share,
)
from storage.relay.sums import ALL, grow_sums
from storage.schema.relay_schema import relay_blocks, relay_file_blocks, relay_files, relay_topics

_BY_KEY: Final = select(relay_blocks.c.block_id, relay_blocks.c.num).where(
    relay_blocks.c.id_key.in_(bindparam("keys", expanding=True))
)
_FORGOTTEN_AT_ONCE: Final = 16
"""Unfinished files that one deposit clears away: more of them wait for the next."""


class DamagedKeptBlock(DamagedBlock):
    """Damaged block of another's file (`storage.relay.damaged_files`)."""

    def __init__(self, block_id: BlockId) -> None:
        super().__init__(f"block {block_id.hex()}, which is kept for others, is damaged")
        self.block_id = block_id


@dataclass(frozen=True, slots=True)
class BegunFile:
    """File that was deposited: its number (0: none before its first block), if it is whole; or why it is not kept."""

    num: int
    is_whole: bool = False
    refusal: str = ""


@dataclass(frozen=True, slots=True)
class KeptBlocks:
    """Result of keeping blocks of a file: children by id of those that are here now; why not more ("": none).

    `num` is the file's from now on; `joined` counts the blocks that it had not before.
    """

    children: dict[BlockId, tuple[BlockId, ...]]
    refusal: str = ""
    has_forgotten: bool = False
    num: int = 0
    joined: int = 0


@dataclass(frozen=True, slots=True)
class _Joining:
    """Blocks for a file: numbers of those that are here, and of those that join it; new ones; what they count."""

    nums: dict[BlockId, int]
    known: list[int]
    fresh: list[Block]
    size: int


def list_whole(connection: Connection, topic_num: int, after: ShortId, limit: int) -> tuple[ShortId, ...]:
    """List files of a topic that are here whole, above an id, in order. Costs O(limit)."""
    columns = relay_files.c
    query = (
        select(columns.file_id)
        # No id is longer than this with so many 0xff behind it.
        .where(columns.topic_num == topic_num, columns.is_whole, columns.file_id > after + b"\xff" * 16)
        .order_by(columns.file_id)
        .limit(limit)
    )
    return tuple(ShortId(file_id[:16]) for file_id in connection.execute(query).scalars())


def is_kept_whole(connection: Connection, topic_num: int, file: ObjectId) -> bool:
    """Return True if all of a file is here, on this topic. Costs O(1)."""
    columns = relay_files.c
    query = select(columns.is_whole).where(columns.topic_num == topic_num, columns.file_id == file)
    return bool(connection.execute(query).scalar())


def load_deposits(
    connection: Connection, topic_num: int, after: ObjectId | None, limit: int
) -> list[FileDeposit]:
    """Load files of a topic that are here whole, above an id, as they were deposited. Costs O(limit)."""
    columns = relay_files.c
    query = (
        select(columns.file_id, columns.claimed_size, columns.signature)
        .where(columns.topic_num == topic_num, columns.is_whole, columns.file_id > (after or b""))
        .order_by(columns.file_id)
        .limit(limit)
    )
    return [FileDeposit(*row) for row in connection.execute(query)]


def begin_file(
    connection: Connection,
    topic_num: int,
    deposit: FileDeposit,
    visitor: Visitor,
    quotas: RelayQuotas,
    now_ms: int,
) -> BegunFile:
    """Begin to keep a file, if there is room for all of it. Nothing is forgotten before its blocks are here.

    Its row comes with its first blocks, too: no quota would bound rows of which nothing has come.
    """
    columns = relay_files.c
    here = (columns.topic_num == topic_num) & (columns.file_id == deposit.file)
    if is_kept_whole(connection, topic_num, deposit.file):
        return BegunFile(0, is_whole=True)
    _forget_unfinished(connection, topic_num, now_ms)
    row = connection.execute(select(columns.num, columns.size, columns.claimed_size).where(here)).first()
    lacking = deposit.size - (row.size if row is not None else 0)
    refusal = refuse_file(connection, topic_num, visitor, max(0, lacking), quotas)
    if refusal:
        return BegunFile(0, refusal=refusal)
    if row is None:
        return BegunFile(0)
    _raise_claim(connection, row.num, row.claimed_size, deposit)
    connection.execute(update(relay_files).where(here).values(touched_at=now_ms))
    return BegunFile(row.num)


def find_kept_blocks(connection: Connection, ids: Sequence[BlockId]) -> set[BlockId]:
    """Return which of these blocks are here, of any file. Costs O(ids)."""
    return set(_find(connection, ids))


def keep_blocks(
    database: Database,
    connection: Connection,
    topic_num: int,
    deposit: FileDeposit,
    file_num: int,
    ids: Sequence[BlockId],
    came: Sequence[Block],
    visitor: Visitor,
    quotas: RelayQuotas,
    now_ms: int,
) -> KeptBlocks:
    """Give a file blocks, of which some have come and others are here already. Costs O(blocks).

    Args:
        database: Gives row numbers.
        connection: Of its write transaction.
        topic_num: Number of the kept topic's row.
        deposit: The file's id (32 bytes) and the size (bytes) that the topic's key signed.
        file_num: Number of the file's row; 0 before its first blocks.
        ids: Ids of all these blocks, 32 bytes each.
        came: Those that have come.
        visitor: The peer that brought them.
        quotas: Bounds in bytes.
        now_ms: Unix milliseconds.

    Raises:
        DamagedKeptBlock: A block that was here is damaged, and names others.
    """
    columns = relay_files.c
    here = columns.num == file_num
    if not file_num:  # another peer may have brought some meanwhile
        here = (columns.topic_num == topic_num) & (columns.file_id == deposit.file)
    row = connection.execute(select(columns.num, columns.size, columns.claimed_size).where(here)).first()
    if row is None and file_num:
        return KeptBlocks({}, "topic_forgotten")
    old_num, old_size, claimed = (row.num, row.size, row.claimed_size) if row is not None else (0, 0, 0)
    joining = _find_joining(connection, old_num, ids, came)
    if old_size + joining.size > max(claimed, deposit.size):
        return KeptBlocks({}, "bad_file")
    room = make_file_room(connection, topic_num, visitor, joining.size, quotas)
    if not room.count:
        return KeptBlocks({}, room.refused)
    if room.has_forgotten:  # also blocks that these files shared: a link to one that has gone would stay
        joining = _find_joining(connection, old_num, ids, came)
    if not (old_num or joining.known or joining.fresh):
        return KeptBlocks({}, "", room.has_forgotten)  # they were forgotten meanwhile, with another file
    if old_num:
        num = old_num
        _raise_claim(connection, num, claimed, deposit)
    else:
        num = _insert_file(database, connection, topic_num, deposit, visitor, now_ms)
    for block_num, block in zip(
        database.next_nums(connection, relay_blocks, len(joining.fresh)), joining.fresh, strict=True
    ):
        values = {"num": block_num, "id_key": id_key(block.block_id), "block_id": block.block_id}
        connection.execute(insert(relay_blocks).values({**values, "encoded": block.encoded}))
        joining.known.append(block_num)
    links = [(num, one) for one in joining.known]
    insert_rows(connection, relay_file_blocks, ("file_num", "block_num"), links)
    grown = {"size": relay_files.c.size + joining.size, "touched_at": now_ms}
    connection.execute(update(relay_files).where(relay_files.c.num == num).values(grown))
    connection.execute(
        update(relay_topics)
        .where(relay_topics.c.num == topic_num)
        .values(file_size=relay_topics.c.file_size + joining.size, touched_at=now_ms)
    )
    if joining.size:
        add_share(connection, topic_num, visitor, joining.size)
    children = _load_children(connection, joining.nums)
    children.update((block.block_id, block.child_ids) for block in joining.fresh)
    return KeptBlocks(children, "", room.has_forgotten, num, len(joining.known))


def finish_file(connection: Connection, file_num: int) -> bool:
    """Mark a file as whole; return True if it is still kept."""
    here = relay_files.c.num == file_num
    return bool(connection.execute(update(relay_files).where(here).values(is_whole=True)).rowcount)


def drop_file(connection: Connection, file_num: int) -> None:
    """Forget a file, whose tree is none."""
    _take_back(connection, [file_num])


def load_kept_block(connection: Connection, block_id: BlockId) -> bytes | None:
    """Return an encoded block of any file, or None. Raises DamagedKeptBlock.

    Access needs the id alone: it was shown to members only.
    """
    found = find_kept_block(connection, block_id)
    if found is None:
        return None
    if hash_block(found[1]) != block_id:  # one of 1 MiB at most: a third of a millisecond
        raise DamagedKeptBlock(block_id)
    return found[1]


def find_kept_block(connection: Connection, block_id: BlockId) -> tuple[int, bytes] | None:
    """Return number and bytes of a block as they are, damaged or not; or None."""
    nums = _find(connection, [block_id])
    if not nums:
        return None
    query = select(relay_blocks.c.num, relay_blocks.c.encoded)
    row = connection.execute(query.where(relay_blocks.c.num == nums[block_id])).first()
    return None if row is None else (row.num, row.encoded)


def _insert_file(
    database: Database,
    connection: Connection,
    topic_num: int,
    deposit: FileDeposit,
    visitor: Visitor,
    now_ms: int,
) -> int:
    num: int = database.next_nums(connection, relay_files, 1)[0]
    row = {"num": num, "topic_num": topic_num, "file_id": deposit.file, "size": 0}
    row |= {"touched_at": now_ms, "began_at": now_ms}
    row |= {"claimed_size": deposit.size, "signature": deposit.signature}
    row |= {"peer": visitor.peer, "is_whole": False}
    connection.execute(insert(relay_files).values(row))
    return num


def _raise_claim(connection: Connection, num: int, claimed: int, deposit: FileDeposit) -> None:
    """Store a larger claim. A lower one is not: another peer may bring the file just now by the larger one."""
    if deposit.size > claimed:
        larger = {"claimed_size": deposit.size, "signature": deposit.signature}
        connection.execute(update(relay_files).where(relay_files.c.num == num).values(larger))


def _find(connection: Connection, ids: Sequence[BlockId]) -> dict[BlockId, int]:
    return dict(select_by_ids(connection, _BY_KEY, ids))


def _find_joining(
    connection: Connection, file_num: int, ids: Sequence[BlockId], came: Sequence[Block]
) -> _Joining:
    nums = _find(connection, ids)
    fresh = {block.block_id: block for block in came if block.block_id not in nums}
    linked = _find_linked(connection, file_num, list(nums.values()))
    known = [one for one in nums.values() if one not in linked]
    size = sum(map(size_of, _load_sizes(connection, known)))
    size += sum(size_of(len(block.encoded)) for block in fresh.values())
    return _Joining(nums, known, list(fresh.values()), size)


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
    """Return the ids that blocks name in clear. Raises DamagedKeptBlock."""
    found: dict[BlockId, tuple[BlockId, ...]] = {}
    for block_id, num in nums.items():
        found[block_id] = ()
        here = relay_blocks.c.num == num
        start = func.substr(relay_blocks.c.encoded, 1, LEAF_START_SIZE)
        if has_children(connection.execute(select(start).where(here)).scalar_one()):  # most are large leaves
            encoded = connection.execute(select(relay_blocks.c.encoded).where(here)).scalar_one()
            if hash_block(encoded) != block_id:
                raise DamagedKeptBlock(block_id)
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
    reserve_used_numbers(connection, relay_files)
    columns = relay_files.c
    for topic_num, size, peer in connection.execute(
        select(columns.topic_num, columns.size, columns.peer).where(columns.num.in_(nums))
    ).all():
        less = {"file_size": relay_topics.c.file_size - size}
        connection.execute(update(relay_topics).where(relay_topics.c.num == topic_num).values(less))
        grow_sums(connection, ALL, -size)
        take_back_share(connection, topic_num, peer, size)
    forget_files(connection, select(columns.num).where(columns.num.in_(nums)))
