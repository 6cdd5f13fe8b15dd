"""What bringing a file to a relay costs who brings it, and who waits for that."""

from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace
from itertools import count
from math import ceil
from pathlib import Path
from typing import Final

import pytest
import trio
from sqlalchemy import update
from trio.testing import MockClock

from node.relay.relay import INCOMPLETE, RelayService
from node.runtime.scheduling import WorkAccount, WorkBill
from node.sync import file_keeping
from node.sync.file_keeping import BAD_FILE, FilePull
from protocol.crypto.keys import AccountToken, ConvergenceSecret, TopicSeed
from protocol.crypto.signing import check_claims, public_key
from protocol.formats.block import Block, encrypt_block
from protocol.ids import BlockId, ObjectId, PeerId
from protocol.limits.formats import MARK_SIZE
from protocol.limits.peers import FETCH_TIMEOUT_SECONDS, RELAY_FILES_SHARE
from protocol.session.deposits import sign_deposit, size_of
from storage.relay.files import DamagedKeptBlock
from storage.relay.quotas import Visitor
from storage.relay.relay import KeptTopic
from storage.schema.relay_schema import relay_blocks, relay_files
from tests.support.blocking import inline
from tests.support.machine import fail_after
from tests.support.nodes import Node
from tests.support.relays import PLENTY, open_relay

SEED: Final = TopicSeed(b"t" * 32)
ALICE: Final = Visitor(PeerId(b"A" * 32), "10.0.0.0/24")


def _block(text: bytes, children: tuple[BlockId, ...] = ()) -> Block:
    return encrypt_block(text, ConvergenceSecret(b"c" * 32), children)[0]


class Relay:
    """A relay where each piece of work takes a second, and where Alice brings files."""

    def __init__(self, node: Node) -> None:
        self.hub = node.hub
        seconds = count()
        self.service = RelayService(
            node.replica.database, PLENTY, inline(), lambda: 0, check_claims, lambda: float(next(seconds))
        )
        self.hub.relay = self.service
        self.hub.cpu_clock = lambda: float(next(seconds))
        self.account = WorkAccount(lambda: 0.0)

    async def open(self, seed: TopicSeed = SEED) -> KeptTopic:
        (topic,) = (await self.service.open([public_key(seed)], ALICE)).kept
        return topic

    async def bring(
        self,
        topic: KeptTopic,
        root: Block,
        *others: Block,
        seed: TopicSeed = SEED,
        meanwhile: Callable[[], Awaitable[None]] = trio.lowlevel.checkpoint,
    ) -> str:
        """Why the file is not kept. `meanwhile` happens whenever the relay asks for a block."""
        blocks = {one.block_id: one.encoded for one in (root, *others)}

        async def fetch(wanted: BlockId) -> bytes | None:
            await meanwhile()
            return blocks.get(wanted)

        deposit = sign_deposit(seed, ObjectId(root.block_id), size_of(len(root.encoded)) + 1000 * len(others))
        pull = FilePull(self.hub, self.service, topic, deposit, lambda: ALICE, fetch, self.account)
        return await pull.run()


@pytest.fixture
def relay(tmp_path: Path) -> Iterator[Relay]:
    with open_relay(tmp_path) as node:
        yield Relay(node)


async def test_only_what_brings_blocks_is_earned_back(relay: Relay) -> None:
    topic = await relay.open()
    leaf = _block(b"leaf")
    assert await relay.bring(topic, leaf) == ""
    assert relay.account.fruitless == 0
    used = relay.account.used
    assert await relay.bring(topic, leaf) == ""
    assert relay.account.fruitless == 1, "it is whole: one look"
    assert relay.account.used == used + 1


async def test_what_a_bad_file_has_earned_is_charged_again(relay: Relay) -> None:
    topic = await relay.open()
    leaves = [_block(b"%d" % number) for number in range(2)]
    large = _block(b"l" * 5000)  # more than is claimed
    root = _block(b"", (*(one.block_id for one in leaves), large.block_id))
    assert await relay.bring(topic, root, *leaves, large) == BAD_FILE
    assert relay.account.fruitless >= 6, "looks, and writes of blocks that are gone again"


async def test_a_commits_block_is_no_part_of_a_file(relay: Relay) -> None:
    topic, leaf = await relay.open(), _block(b"leaf")
    secret, mark = ConvergenceSecret(b"c" * 32), bytes(MARK_SIZE)
    of_commit, _ = encrypt_block(b"a commit that acks nothing", secret, mark=mark)
    root = _block(b"", (leaf.block_id, of_commit.block_id))
    assert await relay.bring(topic, root, leaf, of_commit) == BAD_FILE
    assert not relay.service.has_file(topic, ObjectId(root.block_id))


async def test_a_damaged_block_that_is_here_is_brought_again(relay: Relay) -> None:
    topic, leaf = await relay.open(), _block(b"leaf")
    root = _block(b"", (leaf.block_id,))
    assert await relay.bring(topic, root, leaf) == ""
    with relay.hub.replica.database.write() as connection:
        connection.execute(update(relay_blocks).where(relay_blocks.c.num == 1).values(encoded=b"junk"))
        connection.execute(update(relay_files).values(is_whole=False))
    assert await relay.bring(topic, root, leaf) == INCOMPLETE
    assert await relay.bring(topic, root, leaf) == ""


async def test_a_file_that_lost_a_block_that_was_passed_is_not_whole(
    relay: Relay, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another member downloads it meanwhile, and is the first to read that block."""
    monkeypatch.setattr(
        file_keeping, "FETCHED_COUNT_MAX", 1
    )  # the lost one is passed, then the other fetched
    topic, leaves = await relay.open(), [_block(b"%d" % number) for number in range(2)]
    lost, lacking = (one.block_id for one in leaves)
    root = _block(b"", (lost, lacking))
    assert await relay.bring(topic, root, *leaves) == ""
    with relay.hub.replica.database.write() as connection:
        for leaf in leaves:  # still a leaf: those are hashed when somebody downloads them
            damage = update(relay_blocks).where(relay_blocks.c.block_id == leaf.block_id)
            connection.execute(damage.values(encoded=leaf.encoded[:-1] + b"\0"))
    await relay.service.drop_damaged(DamagedKeptBlock(lacking))

    async def download() -> None:
        await relay.service.drop_damaged(DamagedKeptBlock(lost))

    assert await relay.bring(topic, root, *leaves, meanwhile=download) == INCOMPLETE
    assert not relay.service.has_file(topic, ObjectId(root.block_id))
    assert await relay.bring(topic, root, *leaves) == ""
    assert relay.service.has_file(topic, ObjectId(root.block_id))
    assert relay.service.find_blocks([lost, lacking]) == {lost, lacking}


async def test_topics_that_go_for_files_are_told(relay: Relay, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[None] = []
    monkeypatch.setattr(relay.hub, "relay_forgot", lambda: told.append(None))
    block, other = _block(b"block"), TopicSeed(b"o" * 32)
    assert await relay.bring(await relay.open(), block) == ""
    topic = await relay.open(other)
    size = size_of(len(block.encoded))
    relay.service.quotas = replace(PLENTY, total=ceil(size / RELAY_FILES_SHARE))
    assert await relay.bring(topic, _block(b"other"), seed=other) == ""
    assert set(relay.service.topics) == {topic.topic}
    assert told == [None]


async def test_a_peer_that_brings_a_file_slowly_keeps_others_waiting_for_a_bounded_time(
    relay: Relay, autojump_clock: MockClock
) -> None:
    topic, file = await relay.open(), ObjectId(_block(b"leaf").block_id)
    with fail_after(10 * FETCH_TIMEOUT_SECONDS):
        async with relay.service.keeping(topic, file), trio.open_nursery() as nursery:

            async def second() -> None:
                began = trio.current_time()
                async with relay.service.keeping(topic, file):
                    assert trio.current_time() - began == pytest.approx(FETCH_TIMEOUT_SECONDS)

            nursery.start_soon(second)
        async with relay.service.keeping(topic, file):
            pass


async def test_a_guessed_link_costs_no_write(relay: Relay, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(relay.service._database, "write", None)  # it would fail
    bill = WorkBill(relay.account)
    joined = await relay.service.join_account(AccountToken(bytes(32)), ALICE.peer, bill)
    assert joined.refusal == "unknown_link"
    assert relay.account.fruitless == 1
