"""Blocks of relayed files whose bytes are not what their ids say: takes them out, and has their files deposited again.

A file that lacks a block is not whole. A relay does not list it as kept then, so that members who have it deposit it again;
of that deposit the relay asks for no more than what is lacking.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from sqlalchemy import Connection, delete, func, select, update

from protocol.crypto.hashing import block_id as hash_block
from protocol.ids import BlockId
from protocol.limits.peers import RELAYED_FILE_OVERHEAD
from storage.engine.id_keys import chunks
from storage.engine.queries import sum_of
from storage.relay.files import find_kept_block
from storage.relay.quotas import take_back_share
from storage.relay.sums import ALL, grow_sums
from storage.schema.relay_schema import relay_blocks, relay_file_blocks, relay_files, relay_topics

COUNTED_SIZE: Final = (
    select(sum_of(func.length(relay_blocks.c.encoded)) + func.count() * RELAYED_FILE_OVERHEAD)
    .join(relay_file_blocks, relay_file_blocks.c.block_num == relay_blocks.c.num)
    .where(relay_file_blocks.c.file_num == relay_files.c.num)
    .scalar_subquery()
)
"""Counted size of a file's stored blocks (`protocol.session.deposits.size_of`)."""


def drop_damaged_block(connection: Connection, block_id: BlockId, now_ms: int) -> set[int]:
    """Remove a block whose bytes do not hash to its id; return the files that lack it now."""
    found = find_kept_block(connection, block_id)
    if found is None or hash_block(found[1]) == block_id:
        return set()  # another reader has found it, too, and a peer may have brought it anew
    return drop_blocks(connection, [found[0]], now_ms)


def drop_blocks(connection: Connection, nums: Iterable[int], now_ms: int) -> set[int]:
    """Remove these blocks; return the numbers of the files that lack some from now on. Costs O(change)."""
    links = relay_file_blocks.c
    lacking: set[int] = set()
    for part in chunks(list(nums)):
        files = select(links.file_num).where(links.block_num.in_(part))
        lacking.update(connection.execute(files.distinct()).scalars())
        connection.execute(delete(relay_file_blocks).where(links.block_num.in_(part)))
        connection.execute(delete(relay_blocks).where(relay_blocks.c.num.in_(part)))
    break_files(connection, sorted(lacking), now_ms)
    return lacking


def break_files(connection: Connection, nums: Sequence[int], now_ms: int) -> None:
    """Mark files as not whole. They wait for their blocks as if some had come just now."""
    for part in chunks(nums):
        broken = update(relay_files).where(relay_files.c.num.in_(part))
        connection.execute(broken.values(is_whole=False, touched_at=now_ms))
        repair_sizes(connection, part, has_lost=True)


def repair_sizes(connection: Connection, nums: Sequence[int], *, has_lost: bool = False) -> int:
    """Correct what files, and their topics, count by the blocks that are here; return how many changed.

    `has_lost`: what they count less is gone, and their peers may bring it again.
    """
    columns = relay_files.c
    query = select(columns.num, columns.topic_num, columns.peer, columns.size, COUNTED_SIZE.label("counted"))
    wrong = [
        row
        for part in chunks(nums)
        for row in connection.execute(query.where(columns.num.in_(part)))
        if row.size != row.counted
    ]
    for num, topic_num, peer, size, counted in wrong:
        connection.execute(update(relay_files).where(columns.num == num).values(size=counted))
        of_topic = update(relay_topics).where(relay_topics.c.num == topic_num)
        connection.execute(of_topic.values(file_size=relay_topics.c.file_size + (counted - size)))
        grow_sums(connection, ALL, counted - size)
        if has_lost and counted < size:
            take_back_share(connection, topic_num, peer, size - counted)
    return len(wrong)
