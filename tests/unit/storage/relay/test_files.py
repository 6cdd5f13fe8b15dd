"""Files that a relay keeps: each block once, within every quota, and no block of a file that has gone."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import ceil
from pathlib import Path
from typing import Final

import pytest
from sqlalchemy import func, select

from protocol.block import Block, encrypt_block
from protocol.deposits import sign_deposit, size_of
from protocol.ids import BlockId, ObjectId, PeerId, ShortId
from protocol.keys import ConvergenceSecret, TopicSeed
from protocol.limits.peers import RELAY_FILES_SHARE, RELAYED_FILE_UNFINISHED_SECONDS
from protocol.signing import public_key
from storage.engine.database import Database
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
from storage.relay.relay import load_kept, open_topics
from storage.schema.relay_schema import relay_blocks, relay_file_blocks, relay_shares
from tests.support.relays import PLENTY

SEED: Final = TopicSeed(b"t" * 32)
ALICE, BOB = Visitor(PeerId(b"A" * 32), "10.0.0.0/24"), Visitor(PeerId(b"B" * 32), "10.0.0.0/24")
LOWEST: Final = ShortId(bytes(16))


def _block(text: bytes) -> Block:
    return encrypt_block(text, ConvergenceSecret(b"c" * 32))[0]


class Store:
    """A relay's store with one topic. Its clock says what it is told."""

    def __init__(self, folder: Path) -> None:
        self.database = Database(folder)
        self.now = 0
        with self.database.write() as connection:
            open_topics(self.database, connection, [public_key(SEED)], ALICE, PLENTY, 0)
        self.topic_num = self.topic_size()[0]

    def topic_size(self) -> tuple[int, int]:
        with self.database.read() as connection:
            (topic,) = load_kept(connection).values()
        return topic.num, topic.file_size

    def begin(
        self, block: Block, size: int = 10_000, by: Visitor = ALICE, quotas: RelayQuotas = PLENTY
    ) -> BegunFile:
        deposit = sign_deposit(SEED, ObjectId(block.block_id), size)
        with self.database.write() as connection:
            return begin_file(self.database, connection, self.topic_num, deposit, by, quotas, self.now)

    def keep(
        self, num: int, ids: Sequence[BlockId], came: Sequence[Block], quotas: RelayQuotas = PLENTY
    ) -> KeptBlocks:
        with self.database.write() as connection:
            return keep_blocks(self.database, connection, num, ids, came, ALICE, quotas, self.now)

    def keep_whole(self, block: Block) -> None:
        num = self.begin(block).num
        assert self.keep(num, [block.block_id], [block]).children == {block.block_id: ()}
        with self.database.write() as connection:
            assert finish_file(connection, num)

    def counts(self) -> tuple[int, int, int]:
        """Blocks, links, and bytes that peers brought."""
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
    num = store.begin(parent).num
    kept = store.keep(num, [parent.block_id, leaf.block_id], [parent])
    assert kept.children == {parent.block_id: (leaf.block_id,), leaf.block_id: ()}
    assert store.keep(num, [leaf.block_id], [leaf]).refusal == "", "again, and changes nothing"
    size = size_of(len(leaf.encoded)) * 2 + size_of(len(parent.encoded))
    assert store.topic_size()[1] == size
    assert store.counts() == (2, 3, size)
    assert store.listed() == (leaf.block_id[:16],), "the other one is not finished"
    with store.database.write() as connection:
        drop_file(connection, num)
    assert store.counts() == (1, 1, size_of(len(leaf.encoded)))
    with store.database.read() as connection:
        assert load_kept_block(connection, leaf.block_id) == leaf.encoded
        assert load_kept_block(connection, parent.block_id) is None
    with store.database.write() as connection:
        forget_topics(connection, [store.topic_num])
    assert store.counts() == (0, 0, 0)


def test_a_file_that_counts_more_than_was_said_is_refused(store: Store) -> None:
    block = _block(b"block")
    size = size_of(len(block.encoded))
    num = store.begin(block, size - 1).num
    assert store.keep(num, [block.block_id], [block]) == KeptBlocks({}, "bad_file")
    assert store.begin(block, size).num == num
    assert store.keep(num, [block.block_id], [block]).refusal == ""


def _bounded(reason: str, size: int) -> RelayQuotas:
    """Quotas of which one is so large, by the code of that one."""
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
    block = _block(b"block")
    size = size_of(len(block.encoded))
    enough = _bounded(reason, ceil(size / RELAY_FILES_SHARE))
    tight = _bounded(reason, ceil(size / RELAY_FILES_SHARE) - 1)
    assert store.begin(block, size, quotas=tight).refusal == reason
    num = store.begin(block, size, quotas=enough).num
    assert store.keep(num, [block.block_id], [block], tight).refusal == reason, "it was lowered meanwhile"
    assert store.keep(num, [block.block_id], [block], enough).refusal == ""


def test_an_unfinished_file_goes_after_a_day_and_another_deposit(store: Store) -> None:
    first, second = _block(b"first"), _block(b"second")
    num = store.begin(first).num
    store.keep(num, [first.block_id], [first])
    store.now = int(RELAYED_FILE_UNFINISHED_SECONDS * 1000)
    store.begin(second, by=BOB)
    assert store.counts()[0] == 1
    store.now += 1
    store.begin(second, by=BOB)
    assert store.counts() == (0, 0, 0)
    assert store.keep(num, [first.block_id], [first]).refusal == "topic_forgotten", (
        "no other file has its number"
    )
