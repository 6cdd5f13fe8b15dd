"""`Intake`: the way of batches of publications into the store, read in pieces and stored in slices.

Batches are read while another is on its way to the disk. What came of each slice is announced as soon as it is durable.
"""

import math
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Final

import structlog
import trio

from node.ingest.acceptance import Share, accept_batch, release_more
from node.ingest.batch_order import Previous
from node.ingest.ingest_result import IngestResult
from node.ingest.native_reading import Reader
from node.ingest.publication_parsing import OpenedBatch, join_batches, opening_keys, settle_batch
from node.ingest.publication_reading import gather_claims
from node.ingest.replica import Replica
from node.runtime.blocking import RunBlocking
from node.runtime.metrics import Histogram
from node.runtime.scheduling import FairLock, WorkAccount, WorkBill
from node.runtime.user_requests import GivingWay
from node.sync.conversation import Conversation
from protocol.ids import CommitId, TopicKey
from protocol.limits.peers import (
    CUT_SLICE_SECONDS,
    PENDING_SENDERS_MAX,
    RELEASED_COUNT_MAX,
    SIGNATURE_SECONDS,
    SLICE_SECONDS,
)
from storage.engine.errors import StorageError
from storage.repos.epochs import Topic

log = structlog.get_logger()

Announce = Callable[[IngestResult, TopicKey | None, Conversation | None], None]
"""Announces a result to all but its source, which brought it on this topic."""

_PIECE_COUNT: Final = 256
"""Publications that the library reads at a time: 12 ms, so that nobody waits long for another."""
_READINGS_MAX: Final = 6
"""Pieces that are read at a time at most: each holds one of the eight threads, and what is stored needs one, too."""


def _count_readings(reader: Reader) -> int:
    """Return how many pieces are read at a time: as many as the library reads, and one that becomes objects."""
    return min(max(1, reader.count) + 1, _READINGS_MAX)


class Intake:
    """Way of batches into the store."""

    def __init__(
        self,
        replica: Replica,
        run_blocking: RunBlocking,
        clock_ms: Callable[[], int],
        reader: Reader,
        cpu_clock: Callable[[], float],
        account: Callable[[], WorkAccount],
        note_waiting: Callable[[Collection[CommitId], Conversation | None], None],
        announce: Announce,
        giving_way: GivingWay,
    ) -> None:
        """`account` finds the one that pays where no bill is given; `cpu_clock` counts seconds of a thread's processor."""
        self._replica = replica
        self._run_blocking = run_blocking
        self._clock_ms = clock_ms
        self._reader = reader
        self._cpu_clock = cpu_clock
        self._account = account
        self._note_waiting = note_waiting
        self._announce = announce
        self._giving_way = giving_way
        self._reading = FairLock(_count_readings(reader), giving_way)
        self._storing = FairLock(1, giving_way)
        self._turn = threading.Lock()
        self.seconds = Histogram()

    @property
    def is_storing(self) -> bool:
        """Return True if a slice is being stored."""
        return self._storing.is_held

    async def ingest(
        self,
        topic: Topic,
        items: Sequence[bytes],
        previous: Previous,
        source: Conversation | None,
        bill: WorkBill | None = None,
    ) -> IngestResult:
        """Take publications in, after `previous`, and announce them to all but their source. Raises StorageError.

        Batches are read in pieces, while another is on its way to the disk. Reading by Python and storing take turns, since
        two threads of it only wait for each other's interpreter. Both are done in slices, each of which is announced as soon
        as it is durable; `bill` says who pays.
        """
        began = time.perf_counter()
        bill = bill or WorkBill(self._account())
        opened = await self.read_in_pieces(topic, items, bill)
        await previous.wait()
        ingested = await self._store_in_slices(topic, opened, source, bill)
        try:
            while ingested.is_unfinished:
                ingested.add(await self._release_slice(topic.repo_num, topic.topic, source, bill))
        except StorageError as error:  # what was accepted was told; the rest is released later
            log.error("what waits could not be released", error=str(error))
        self.seconds.observe(time.perf_counter() - began)
        return ingested

    async def read_in_pieces(self, topic: Topic, items: Sequence[bytes], bill: WorkBill) -> OpenedBatch:
        """Read a batch and check its signatures, as many of its pieces at a time as there are places. Nothing is stored."""
        count = bill.account.reading.count
        if self._reader.count:
            count = min(count, _PIECE_COUNT)
        parts = [items[start : start + count] for start in range(0, len(items), count)]
        opened = [OpenedBatch() for _ in parts]

        async def read(number: int) -> None:
            part = parts[number]
            async with self._reading.held(bill, len(items)):
                found, claim_count, seconds = await self._run_blocking(self._read, topic, part)
                bill.charge(seconds)
            bill.account.reading.note(len(part), seconds)
            bill.charge(claim_count * SIGNATURE_SECONDS)
            opened[number] = found

        if len(parts) == 1:
            await read(0)
        else:
            async with trio.open_nursery() as nursery:
                for number in range(len(parts)):
                    nursery.start_soon(read, number)
        return join_batches(opened)

    async def _store_in_slices(
        self, topic: Topic, batch: OpenedBatch, source: Conversation | None, bill: WorkBill
    ) -> IngestResult:
        """Judge and store a batch in slices; report the result of each."""
        together = IngestResult()
        rest = batch.opened
        while True:
            count = bill.account.storing.count
            first = OpenedBatch(rest[:count], batch.rejected, batch.waiting, batch.dropped)
            async with self._storing.held(bill, len(rest)):
                ingested, seconds = await self._run_blocking(self._accept, topic, first, count)
                bill.charge(seconds)
            rest = ingested.left + rest[count:]
            judged = len(first.opened) - len(ingested.left) + len(ingested.released)
            bill.account.storing.note(max(1, judged), seconds)
            self._note_waiting(ingested.waited, source)
            self._touch(topic.repo_num, ingested)
            self._announce(ingested, topic.topic, source)
            together.add(ingested)
            if not rest:
                return together
            batch = OpenedBatch()

    async def release(self, repo_num: int) -> None:
        """Judge commits that waited for keys that a repo has got by other ways, and announce them. Raises StorageError."""
        bill = WorkBill(self._account())
        while (await self._release_slice(repo_num, None, None, bill)).is_unfinished:
            pass

    async def _release_slice(
        self, repo_num: int, topic: TopicKey | None, source: Conversation | None, bill: WorkBill
    ) -> IngestResult:
        """Judge some pending commits and announce the result. The peer that brought their cause pays for it."""
        count = bill.account.storing.count
        async with self._storing.held(bill):
            ingested, seconds = await self._run_blocking(self._release, count)
            bill.charge(seconds)
        bill.account.storing.note(max(1, len(ingested.released)), seconds)
        self._touch(repo_num, ingested)
        self._announce(ingested, topic, source)
        return ingested

    def _touch(self, repo_num: int, ingested: IngestResult) -> None:
        """Refresh a repo's description without a change of a branch: a commit waits, found no room or was rejected."""
        if ingested.waiting or ingested.rejected or ingested.unread or ingested.dropped["pending_full"]:
            self._replica.shown.touch(repo_num)

    def _read(self, topic: Topic, items: Sequence[bytes]) -> tuple[OpenedBatch, int, float]:
        """Read and settle publications; how many claims were checked apart, and the seconds that reading took."""
        began = self._cpu_clock()
        batch = self._reader.read(opening_keys(topic), items, self._turn)
        claims = gather_claims(batch)
        seconds = self._cpu_clock() - began
        return settle_batch(batch, self._reader.check(claims)), len(claims), seconds

    def _accept(self, topic: Topic, batch: OpenedBatch, count: int) -> tuple[IngestResult, float]:
        began = self._cpu_clock()
        ingested = accept_batch(self._replica, topic, batch, self._clock_ms(), share=self._share(count))
        return ingested, self._cpu_clock() - began

    def _release(self, count: int) -> tuple[IngestResult, float]:
        began = self._cpu_clock()
        return release_more(self._replica, self._clock_ms(), self._share(count)), self._cpu_clock() - began

    def _share(self, count: int) -> Share:
        """Make the share of one slice: it is over after SLICE_SECONDS, or sooner where this user asks for something."""
        began = self._cpu_clock()
        # A thread uses no more of the processor than time passes, and asking for that is several times as fast.
        is_threads = self._cpu_clock is time.thread_time
        look_at = time.perf_counter() + SLICE_SECONDS if is_threads else -math.inf

        def is_over() -> bool:
            nonlocal look_at
            if self._giving_way.is_due:
                return self._cpu_clock() - began >= CUT_SLICE_SECONDS
            now = time.perf_counter()
            if now <= look_at:
                return False
            left = SLICE_SECONDS - (self._cpu_clock() - began)
            look_at = now + left if is_threads else -math.inf
            return left < 0

        return Share(self._turn, is_over, min(count, RELEASED_COUNT_MAX), is_patient=True)


class PendingSenders:
    """Senders of the latest pending commits, so that these are not sent back once accepted. A forgotten one is sent
    back, which costs a batch.
    """

    def __init__(self, count_max: int = PENDING_SENDERS_MAX) -> None:
        self._count_max = count_max
        self._senders: OrderedDict[CommitId, set[Conversation]] = OrderedDict()  # oldest first

    def __len__(self) -> int:
        return len(self._senders)

    def note(self, ids: Collection[CommitId], sender: Conversation) -> None:
        """Note that a peer has sent these commits, which wait."""
        for commit_id in ids:
            self._senders.setdefault(commit_id, set()).add(sender)
            self._senders.move_to_end(commit_id)
        while len(self._senders) > self._count_max:
            self._senders.popitem(last=False)

    def pop(self, released: Mapping[int, CommitId]) -> dict[Conversation, set[int]]:
        """Return, by the peers that had sent them, the numbers of commits (ids by numbers) that wait no longer."""
        found: dict[Conversation, set[int]] = {}
        for num, commit_id in released.items():
            for sender in self._senders.pop(commit_id, ()):
                found.setdefault(sender, set()).add(num)
        return found

    def forget(self, sender: object) -> None:
        """Forget a peer that has gone."""
        for commit_id in [one for one, senders in self._senders.items() if sender in senders]:
            self._senders[commit_id] = {one for one in self._senders[commit_id] if one is not sender}
            if not self._senders[commit_id]:
                del self._senders[commit_id]
