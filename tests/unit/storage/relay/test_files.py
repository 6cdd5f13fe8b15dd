"""Files that a relay keeps: each block once, within every quota, and no block of a file that has gone."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import ceil
from pathlib import Path
from typing import Final

import pytest
from sqlalchemy import func, select, update

from protocol.crypto.keys import ConvergenceSecret, TopicSeed
from protocol.crypto.signing import public_key
from protocol.formats.block import Block, encrypt_block
from protocol.ids import BlockId, ObjectId, PeerId, ShortId
from protocol.limits.peers import RELAY_FILES_SHARE, RELAYED_FILE_UNFINISHED_SECONDS
from protocol.session.deposits import sign_deposit, size_of
from storage.engine.database import Database
from storage.relay.damaged_files import drop_damaged_block
from storage.relay.files import (
    BegunFile,
    KeptBlocks,
    begin_file,
    drop_file,
    finish_file,
    keep_blocks,
    list_whole,
    load_kept_block,
)
from storage.relay.quotas import RelayQuotas, Visitor, forget_topics
from storage.relay.relay import load_kept_topics, open_topics
from storage.relay.usage import load_growth
from storage.schema.relay_schema import (
    relay_blocks,
    relay_file_blocks,
    relay_files,
    relay_shares,
    relay_sums,
)
from tests.support.relays import PLENTY

SEED: Final = TopicSeed(b"t" * 32)
ALICE, BOB = Visitor(PeerId(b"A" * 32), "10.0.0.0/24"), Visitor(PeerId(b"B" * 32), "10.0.0.0/24")
LOWEST: Final = ShortId(bytes(16))


def _block(text: bytes) -> Block:
    return encrypt_block(text, ConvergenceSecret(b"c" * 32))[0]


class Store:
    """Store of a relay with one topic, and a clock that the test sets."""

    def __init__(self, folder: Path) -> None:
        self.database = Database(folder)
        self.now = 0
        with self.database.write() as connection:
            open_topics(self.database, connection, [public_key(SEED)], ALICE, PLENTY, 0)
        self.topic_num = self.topic_size()[0]

    def topic_size(self) -> tuple[int, int]:
        with self.database.read() as connection:
            (topic,) = load_kept_topics(connection).values()
        return topic.num, topic.file_size

    def begin(
        self, block: Block, size: int = 10_000, by: Visitor = ALICE, quotas: RelayQuotas = PLENTY
    ) -> BegunFile:
        deposit = sign_deposit(SEED, ObjectId(block.block_id), size)
        with self.database.write() as connection:
            return begin_file(connection, self.topic_num, deposit, by, quotas, self.now)

    def keep(
        self,
        root: Block,
        ids: Sequence[BlockId],
        came: Sequence[Block],
        quotas: RelayQuotas = PLENTY,
        *,
        num: int = 0,
        size: int = 10_000,
    ) -> KeptBlocks:
        deposit = sign_deposit(SEED, ObjectId(root.block_id), size)
        with self.database.write() as connection:
            where = (self.database, connection, self.topic_num, deposit, num)
            return keep_blocks(*where, ids, came, ALICE, quotas, self.now)

    def keep_whole(self, block: Block) -> None:
        assert self.begin(block).num == 0
        kept = self.keep(block, [block.block_id], [block])
        assert kept.children == {block.block_id: ()}
        with self.database.write() as connection:
            assert finish_file(connection, kept.num)

    def counts(self) -> tuple[int, int, int]:
        """Count blocks, links, and bytes that peers brought."""
        with self.database.read() as connection:
            blocks = connection.execute(select(func.count()).select_from(relay_blocks)).scalar_one()
            links = connection.execute(select(func.count()).select_from(relay_file_blocks)).scalar_one()
            brought = connection.execute(select(relay_shares.c.size)).scalars().all()
        return blocks, links, int(sum(brought))

    def listed(self) -> tuple[ShortId, ...]:
        with self.database.read() as connection:
            return list_whole(connection, self.topic_num, LOWEST, 10)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    store = Store(tmp_path)
    yield store
    store.database.close()


def test_a_block_of_two_files_is_here_once_and_counts_for_both(store: Store) -> None:
    leaf, parent = (
        _block(b"leaf"),
        encrypt_block(b"", ConvergenceSecret(b"c" * 32), (_block(b"leaf").block_id,))[0],
    )
    store.keep_whole(leaf)
    kept = store.keep(parent, [parent.block_id, leaf.block_id], [parent])
    assert kept.children == {parent.block_id: (leaf.block_id,), leaf.block_id: ()}
    assert kept.joined == 2
    again = store.keep(parent, [leaf.block_id], [leaf], num=kept.num)
    assert (again.refusal, again.joined) == ("", 0), "again, and changes nothing"
    size = size_of(len(leaf.encoded)) * 2 + size_of(len(parent.encoded))
    assert store.topic_size()[1] == size
    assert store.counts() == (2, 3, size)
    assert store.listed() == (leaf.block_id[:16],), "the other one is not finished"
    with store.database.write() as connection:
        drop_file(connection, kept.num)
    assert store.counts() == (1, 1, size_of(len(leaf.encoded)))
    with store.database.read() as connection:
        assert load_kept_block(connection, leaf.block_id) == leaf.encoded
        assert load_kept_block(connection, parent.block_id) is None
    with store.database.write() as connection:
        forget_topics(connection, [store.topic_num])
    assert store.counts() == (0, 0, 0)


def test_who_brought_nothing_that_is_left_has_no_sums(store: Store) -> None:
    # Else each key that a stranger makes up would leave a row for good.
    block = _block(b"block")
    num = store.keep(block, [block.block_id], [block]).num
    with store.database.write() as connection:
        drop_file(connection, num)
        forget_topics(connection, [store.topic_num])
        peers = connection.execute(select(relay_sums.c.peer)).scalars().all()
    assert peers == []


def test_a_file_that_counts_more_than_was_said_is_refused(store: Store) -> None:
    block = _block(b"block")
    size = size_of(len(block.encoded))
    assert store.keep(block, [block.block_id], [block], size=size - 1) == KeptBlocks({}, "bad_file")
    assert store.keep(block, [block.block_id], [block], size=size).refusal == ""


def test_a_larger_claim_is_not_lowered_while_the_file_comes(store: Store) -> None:
    # Two peers may bring one file beside each other, by different claims.
    leaf = _block(b"leaf")
    parent = encrypt_block(b"", ConvergenceSecret(b"c" * 32), (leaf.block_id,))[0]
    size = size_of(len(leaf.encoded)) + size_of(len(parent.encoded))
    num = store.keep(parent, [parent.block_id], [parent], size=size).num
    assert store.begin(parent, size - 1).num == num
    assert store.keep(parent, [leaf.block_id], [leaf], num=num, size=size - 1).refusal == ""


def test_a_file_of_which_no_block_came_takes_nothing(store: Store) -> None:
    # Rows without blocks count for no quota, so there are none.
    block = _block(b"block")
    assert store.begin(block) == BegunFile(0)
    assert store.keep(block, [block.block_id], []) == KeptBlocks({})
    with store.database.read() as connection:
        assert connection.execute(select(func.count()).select_from(relay_files)).scalar_one() == 0


def _bounded(reason: str, size: int) -> RelayQuotas:
    """Make quotas of which one is so large, by the code of that one."""
    match reason:
        case "topic_full":
            return replace(PLENTY, topic=size)
        case "peer_full":
            return replace(PLENTY, peer=size)
        case "subnet_full":
            return replace(PLENTY, subnet=size)
    return replace(PLENTY, total=size)


@pytest.mark.parametrize("reason", ["topic_full", "peer_full", "subnet_full", "relay_full"])
def test_files_take_their_share_of_each_bound_and_no_byte_more(store: Store, reason: str) -> None:
    first, block = _block(b"first"), _block(b"block")
    store.keep_whole(first)
    size = size_of(len(block.encoded))
    both = size_of(len(first.encoded)) + size
    enough = _bounded(reason, ceil(both / RELAY_FILES_SHARE))
    tight = _bounded(reason, ceil(both / RELAY_FILES_SHARE) - 1)
    assert store.begin(block, size, quotas=tight).refusal == reason
    assert store.begin(block, size, quotas=enough).refusal == ""
    assert store.keep(block, [block.block_id], [block], tight).refusal == reason, "it was lowered meanwhile"
    assert store.keep(block, [block.block_id], [block], enough).refusal == ""


@pytest.mark.parametrize("reason", ["topic_full", "peer_full", "subnet_full", "relay_full"])
def test_a_file_that_no_emptying_would_make_room_for_is_too_large_and_nothing_is_full(
    store: Store, reason: str
) -> None:
    block = _block(b"block")
    size = size_of(len(block.encoded))
    tight = _bounded(reason, ceil(size / RELAY_FILES_SHARE) - 1)
    assert store.begin(block, size, quotas=tight).refusal == "file_too_large"
    assert store.begin(_block(b"b"), size - 1, quotas=tight).refusal == ""


def test_an_unfinished_file_goes_after_a_day_and_another_deposit(store: Store) -> None:
    first, second = _block(b"first"), _block(b"second")
    num = store.keep(first, [first.block_id], [first]).num
    store.now = int(RELAYED_FILE_UNFINISHED_SECONDS * 1000)
    store.begin(second, by=BOB)
    assert store.counts()[0] == 1
    store.now += 1
    store.begin(second, by=BOB)
    assert store.counts() == (0, 0, 0)
    assert store.keep(first, [first.block_id], [first], num=num).refusal == "topic_forgotten", (
        "no other file has its number"
    )


def test_a_claim_forgets_nothing_and_blocks_that_come_do(store: Store) -> None:
    # A deposit of some bytes that claims much must not cost others their topics.
    block, other = _block(b"block"), TopicSeed(b"o" * 32)
    size = size_of(len(block.encoded))
    store.keep_whole(block)
    with store.database.write() as connection:
        open_topics(store.database, connection, [public_key(other)], BOB, PLENTY, 1)
        num = load_kept_topics(connection)[public_key(other)].num
        tight = replace(PLENTY, total=ceil(size / RELAY_FILES_SHARE))
        deposit = sign_deposit(other, ObjectId(block.block_id), size)
        assert not begin_file(connection, num, deposit, BOB, tight, 1).refusal, "there would be room"
        larger = sign_deposit(other, ObjectId(block.block_id), size + 1)
        assert begin_file(connection, num, larger, BOB, tight, 1).refusal == "file_too_large"
        assert load_kept_topics(connection)[public_key(SEED)].file_size == size
        where = (store.database, connection, num, deposit, 0)
        kept = keep_blocks(*where, [block.block_id], [block], BOB, tight, 1)
        assert (kept.refusal, kept.has_forgotten) == ("", True)
        assert public_key(SEED) not in load_kept_topics(connection)


def test_a_block_that_goes_while_room_is_made_for_it_is_no_more_here(store: Store) -> None:
    # The topic that is forgotten may have had it: a link to it would stay, and the file would never be whole.
    block, other = _block(b"block"), TopicSeed(b"o" * 32)
    size = size_of(len(block.encoded))
    store.keep_whole(block)
    tight = replace(PLENTY, total=ceil(size / RELAY_FILES_SHARE))
    with store.database.write() as connection:
        open_topics(store.database, connection, [public_key(other)], BOB, PLENTY, 1)
        num = load_kept_topics(connection)[public_key(other)].num
        deposit = sign_deposit(other, ObjectId(block.block_id), size)
        kept = keep_blocks(store.database, connection, num, deposit, 0, [block.block_id], [], BOB, tight, 1)
    assert kept == KeptBlocks({}, has_forgotten=True)
    assert store.counts() == (0, 0, 0)


def test_a_file_that_is_brought_again_is_no_new_one(store: Store) -> None:
    # Its lost block is new; all the rest was here, and takes no more room than before.
    leaf = _block(b"leaf")
    parent = encrypt_block(b"", ConvergenceSecret(b"c" * 32), (leaf.block_id,))[0]
    file_num = store.keep(parent, [parent.block_id, leaf.block_id], [parent, leaf]).num
    size = store.topic_size()[1]
    store.now = 30 * 86_400_000
    with store.database.write() as connection:
        connection.execute(update(relay_blocks).where(relay_blocks.c.num == 2).values(encoded=b"junk"))
        assert drop_damaged_block(connection, leaf.block_id, store.now) == {file_num}
    assert store.begin(parent).num == file_num
    assert store.keep(parent, [leaf.block_id], [leaf], num=file_num).joined == 1
    assert store.topic_size()[1] == size
    with store.database.read() as connection:
        assert load_growth(connection, store.now) == 0


@pytest.mark.parametrize("kept_size", [0, 1])
def test_a_topic_with_files_and_no_commits_is_not_empty(store: Store, kept_size: int) -> None:
    # Empty topics go for new ones of anybody, also of strangers; those with files do not.
    block, other = _block(b"block"), TopicSeed(b"o" * 32)
    if kept_size:
        store.keep_whole(block)
    with store.database.write() as connection:
        full = replace(PLENTY, topic_count=1)
        open_topics(store.database, connection, [public_key(other)], BOB, full, 1)
        assert set(load_kept_topics(connection)) == {public_key(SEED if kept_size else other)}
