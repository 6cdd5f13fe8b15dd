"""Brings one file to a relay: fetches the tree of its blocks from the peer that deposited it, and keeps them.

The relay asks, so it takes no more than it stores: FETCHED_COUNT_MAX blocks at a time, and the next ones when these are
durable. A block that is here already, by whatever file, is not asked for. A fetch that was cut goes on with what is
lacking when the file is deposited again.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import Final

import trio

from node.relay.relay import INCOMPLETE, RelayService
from node.runtime.scheduling import WorkAccount, WorkBill
from node.sync.block_requests import NotFetched
from node.sync.hub import Hub
from protocol.codec import DecodeError
from protocol.formats.block import Block, decode_block
from protocol.ids import BlockId
from protocol.limits.formats import OBJECT_DEPTH_MAX
from protocol.limits.peers import BYTE_SECONDS, FETCHED_COUNT_MAX, FRAME_SECONDS, RELAYED_INNER_COUNT_MAX
from protocol.session.messages import FileDeposit
from storage.engine.id_keys import chunks
from storage.relay.files import DamagedKeptBlock
from storage.relay.quotas import Visitor
from storage.relay.relay import KeptTopic

BAD_FILE: Final = "bad_file"
Fetch = Callable[[BlockId], Awaitable[bytes | None]]
"""Asks the peer for a block. Raises NotFetched."""


class FilePull:
    """One deposited file on its way in, from one peer."""

    def __init__(
        self,
        hub: Hub,
        relay: RelayService,
        topic: KeptTopic,
        deposit: FileDeposit,
        visitor: Callable[[], Visitor],
        fetch: Fetch,
        account: WorkAccount,
    ) -> None:
        """`visitor` says what the peer is just now: its account may be revoked while a file comes."""
        self._hub = hub
        self._relay = relay
        self._topic = topic
        self._deposit = deposit
        self._visitor = visitor
        self._fetch = fetch
        self._bill = WorkBill(account)
        """What has brought no block yet. It is earned back when the file is whole: then all of it was of use."""
        self._earned = 0.0
        self._num = 0
        self._inner: set[BlockId] = set()
        self._refusal = ""

    async def run(self) -> str:
        """Keep the file; why not, or an empty text. Raises NotFetched, StorageError."""
        topic, deposit = self._topic, self._deposit
        async with self._relay.keeping(topic, deposit.file):
            # Not earned back: `listed-files1` has told the peer of it.
            if await self._hub.look(self._bill, self._relay.has_file, topic, deposit.file):
                return ""
            begun = await self._relay.begin_file(topic, deposit, self._visitor(), self._bill)
            if begun.is_whole or begun.refusal:
                return begun.refusal
            self._num, losses = begun.num, self._relay.losses_of(begun.num)
            refusal = await self._take([deposit.file], 1)
            if refusal == BAD_FILE:
                self._bill.charge(self._earned)  # what it brought goes again
                if self._num:
                    await self._relay.drop_file(self._num, self._bill)
            if refusal:
                return refusal
            refusal = await self._relay.finish_file(topic, self._num, losses, self._bill)
            if not refusal:
                self._bill.earn()
            return refusal

    async def _take(self, ids: Sequence[BlockId], depth: int) -> str:
        """Keep blocks of one depth of the tree, and all blocks below them."""
        for part in chunks(ids, FETCHED_COUNT_MAX):
            bill = WorkBill(self._bill.account)
            here = await self._hub.look(bill, self._relay.find_blocks, part)
            came = await self._fetch_all([one for one in part if one not in here])
            try:
                blocks = [decode_block(one) for one in came if one is not None]
            except DecodeError:  # of just that id: so the file's author made it
                return BAD_FILE
            if any(block.is_of_commit for block in blocks):
                return BAD_FILE
            if len(blocks) < len(came):
                return INCOMPLETE
            with self._hub.byte_budget.holding([block.encoded for block in blocks]):
                kept = await self._keep(part, blocks, bill)
            if kept is None:
                return self._refusal
            for block_id in part:
                children = kept.get(block_id)
                if children is None:
                    return INCOMPLETE  # forgotten meanwhile, with another file
                if not children or block_id in self._inner:
                    continue
                self._inner.add(block_id)
                if depth == OBJECT_DEPTH_MAX or len(self._inner) > RELAYED_INNER_COUNT_MAX:
                    return BAD_FILE
                refusal = await self._take(tuple(dict.fromkeys(children)), depth + 1)
                if refusal:
                    return refusal
        return ""

    async def _keep(
        self, ids: Sequence[BlockId], blocks: Sequence[Block], bill: WorkBill
    ) -> dict[BlockId, tuple[BlockId, ...]] | None:
        # Charged when they were read.
        bill.total += sum(FRAME_SECONDS + len(block.encoded) * BYTE_SECONDS for block in blocks)
        where = (self._topic, self._deposit, self._num)
        try:
            kept = await self._relay.keep_blocks(*where, ids, blocks, self._visitor(), bill)
        except DamagedKeptBlock as damage:  # one that was here already: it comes with the next deposit
            await self._relay.drop_damaged(damage)
            self._refusal = INCOMPLETE
            return None
        if kept.has_forgotten:
            self._hub.relay_forgot()
        if kept.refusal:
            self._refusal = kept.refusal
            return None
        self._num = kept.num
        # Blocks that the file had before are asked for as often as a peer likes: only others are worth work.
        share = kept.joined / len(ids)
        bill.earn(share)
        self._earned += bill.total * share
        self._bill.total += bill.total * (1 - share)
        return kept.children

    async def _fetch_all(self, ids: Sequence[BlockId]) -> list[bytes | None]:
        found: list[bytes | None] = [None] * len(ids)
        is_lost = False

        async def fetch(place: int) -> None:
            nonlocal is_lost
            try:
                found[place] = await self._fetch(ids[place])
            except NotFetched:
                is_lost = True

        async with trio.open_nursery() as nursery:
            for place in range(len(ids)):
                nursery.start_soon(fetch, place)
        if is_lost:
            raise NotFetched
        return found
