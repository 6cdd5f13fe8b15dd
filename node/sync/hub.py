"""Coordinates ingest: takes in batches of commits, then notifies connections and local subscribers.

A `Hub` is called in the trio thread after a transaction has committed; it never waits. What a listener cannot take at
once it must note and read from the store later: nothing is lost, because the store is what counts.
"""

import math
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, TypeVar

import structlog
import trio

from node.ingest.acceptance import Share, accept_batch, release_more
from node.ingest.ingest_result import IngestResult
from node.ingest.publication_parsing import OpenedBatch, join_batches, opening_keys, settle_batch
from node.ingest.publication_reading import gather_claims, read_batch
from node.ingest.reading_workers import ReadingWorkers, UnreadableBatch
from node.ingest.replica import Replica
from node.ingest.worker_process import ASKED_MAX
from node.runtime.backoff import Backoff
from node.runtime.blocking import RunBlocking
from node.runtime.counted_event import CountedEvent
from node.runtime.group_lane import GroupLane
from node.runtime.metrics import Histogram
from node.sync.batch_order import ByteBudget, Previous
from node.sync.given_blocks import GivenBlocks
from node.sync.neighbours import BlockSource, FileTaker, Listener, Neighbour, Sender
from node.sync.presence import PresencePort, Presences
from node.sync.recent_publications import RecentPublications
from node.sync.relay import RelayResult, RelayService
from node.sync.scheduling import NOBODY, FairLock, Ledger, WorkAccount, WorkBill
from node.sync.senders import Senders
from node.sync.useless_sources import UselessSources
from protocol.ids import PeerId, TopicKey
from protocol.limits.peers import (
    COMPARED_AT_ONCE_MAX,
    RELEASED_COUNT_MAX,
    SIGNATURE_SECONDS,
    SLICE_SECONDS,
    UNREADABLE_SECONDS,
)
from protocol.limits.users import WRITE_GROUP_COUNT_MAX
from storage.engine.errors import StorageError
from storage.relay.quotas import Visitor
from storage.relay.relay import KeptTopic
from storage.repos.epochs import Topic

log = structlog.get_logger()

_PIECE_COUNT: Final = 256
"""Publications that a worker reads at a time: 20 ms, so that nobody waits long for another, and 1 % of it for the trip."""
_READINGS_MAX: Final = 6
"""Pieces that are read at a time at most: each holds one of the eight threads, and what is stored needs one, too."""
T = TypeVar("T")
Q = TypeVar("Q")


@dataclass(slots=True)
class Totals:
    """Counts since the start, for status and metrics."""

    rejected: int = 0
    dropped: int = 0
    accepted: int = 0
    already: int = 0
    waiting: int = 0
    unread: int = 0
    refused: Counter[str] = field(default_factory=Counter)  # rejected and dropped ones, by code
    files_settled: Counter[str] = field(
        default_factory=Counter
    )  # deposited at this relay: "kept", or why not
    intake_seconds: Histogram = field(default_factory=Histogram)

    def count(self, ingested: IngestResult) -> None:
        """Count what became of a batch."""
        self.rejected += len(ingested.rejected)
        self.dropped += ingested.dropped.total()
        self.accepted += sum(map(len, ingested.accepted.values()))
        self.already += ingested.already
        self.waiting += ingested.waiting
        self.unread += sum(map(len, ingested.unread.values()))
        self.refused.update(ingested.dropped)
        self.refused.update(item.code for item in ingested.rejected)


def _count_readings(worker_count: int) -> int:
    """Pieces that are read at a time.

    Each worker has one and the next, one waits for a worker, and one is read in this process. Without workers, one has its
    signatures checked while another is decoded.
    """
    return min(ASKED_MAX * worker_count + 2, _READINGS_MAX)


class Hub:
    """Runs batches through the way in, and tells listeners what came of it."""

    def __init__(
        self,
        replica: Replica,
        run_blocking: RunBlocking,
        clock_ms: Callable[[], int],
        workers: ReadingWorkers | None = None,
        cpu_clock: Callable[[], float] = time.thread_time,
        clock: Callable[[], float] = trio.current_time,
    ) -> None:
        """`workers` read batches; without them all is read here. `cpu_clock` counts what a thread used of the processor, in
        seconds; `clock` those that pass."""
        self.replica = replica
        self.run_blocking = run_blocking
        self.clock_ms = clock_ms
        self._workers = workers or ReadingWorkers(0)
        self.cpu_clock = cpu_clock
        self.ledger = Ledger(clock)
        self._reading = FairLock(_count_readings(self._workers.count))
        self._storing = FairLock()
        self._looking = FairLock(COMPARED_AT_ONCE_MAX)
        self.byte_budget = ByteBudget()
        self._turn = threading.Lock()
        self._writing = trio.StrictFIFOLock()
        self._groups: GroupLane[Any, Any] = GroupLane(self._writing, WRITE_GROUP_COUNT_MAX)
        self.totals = Totals()
        self.relay: RelayService | None = None
        """Topics that this node keeps for others, where it is a relay."""
        self._listeners: list[Listener] = []
        self._senders: Senders[Sender] = Senders()
        self.sources: list[BlockSource] = []
        """Peers that are connected now."""
        self.relay_ports: list[FileTaker] = []
        """The same, as far as they may turn out to be relays that keep files."""
        self.file_refusals: dict[tuple[PeerId, int], str] = {}
        """Why a connected relay takes no more files of a repo (its number), as it said last."""
        self.refusing: dict[PeerId, Backoff] = {}
        """Relays that refused topics in the last session, and when these are offered again. Only to relays that this user or
        a link has chosen are topics offered."""
        self.useless_sources = UselessSources(clock)
        self.presences = Presences(replica)
        """Who has which text open, here and at connected nodes."""
        self.recent = RecentPublications()
        self.given = GivenBlocks()
        """Blocks of files that peers were sent."""
        self.changes = CountedEvent()
        """Of all changes that were told: what is read from the store at one count is as new as at any time of it."""
        self.absences = CountedEvent()
        """Of commits that were accepted without their bodies, of bodies that came, and of peers that may have some."""
        self.awaits_bodies = False
        """Whether bodies are missing, as far as is known."""

    def add(self, listener: Listener) -> None:
        """Tell this listener from now on."""
        self._listeners.append(listener)

    def remove(self, listener: Listener) -> None:
        """Tell this listener no more. One that was never added is no error: it may have been cancelled before."""
        if listener in self._listeners:
            self._listeners.remove(listener)
        self._senders.forget(listener)

    @contextmanager
    def connected(self, peer: Neighbour, presence: PresencePort) -> Iterator[None]:
        """Tell a connected peer of changes and presences, and ask it for blocks.

        To be left before the connection's nursery closes: what the peer is told of starts work there.
        """
        self.add(peer)
        self.sources.append(peer)
        self.presences.connect(presence)
        try:
            yield
        finally:
            self.remove(peer)
            self.sources.remove(peer)
            self.presences.lose(presence)

    async def ingest(
        self,
        topic: Topic,
        items: Sequence[bytes],
        previous: Previous,
        source: Sender | None,
        bill: WorkBill | None = None,
    ) -> IngestResult:
        """Take publications in, after `previous`, and tell everyone but their source. Raises StorageError.

        Batches are read in pieces, by workers and here, while another is on its way to the disk. Reading and storing are
        mostly Python, and two threads of it only wait for each other's interpreter: here they take turns. Both are done in
        slices, each of which is told as soon as it is durable; `bill` says who pays.
        """
        began = time.perf_counter()
        bill = bill or WorkBill(self.account)
        opened = await self._read_in_pieces(topic, items, bill)
        await previous.wait()
        ingested = await self._store_in_slices(topic, opened, source, bill)
        try:
            while ingested.is_unfinished:
                ingested.add(await self._release_slice(topic.repo_num, topic.topic, source, bill))
        except StorageError as error:  # what was accepted was told; the rest is released later
            log.error("what waits could not be released", error=str(error))
        self.totals.intake_seconds.observe(time.perf_counter() - began)
        return ingested

    async def _read_in_pieces(self, topic: Topic, items: Sequence[bytes], bill: WorkBill) -> OpenedBatch:
        """Read a batch, as many of its pieces at a time as there are places."""
        count = bill.account.reading.count
        if self._workers.count:
            count = min(count, _PIECE_COUNT)
        parts = [items[start : start + count] for start in range(0, len(items), count)]
        opened = [OpenedBatch() for _ in parts]

        async def read(number: int) -> None:
            part = parts[number]
            async with self._reading.held(bill, len(items)):
                found, claim_count, seconds = await self.run_blocking(self._read, topic, part)
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
        self, topic: Topic, batch: OpenedBatch, source: Sender | None, bill: WorkBill
    ) -> IngestResult:
        """Judge and store a batch, some of it at a time; tell what came of each."""
        together = IngestResult()
        rest = batch.opened
        while True:
            count = bill.account.storing.count
            first = OpenedBatch(rest[:count], batch.rejected, batch.waiting, batch.dropped)
            async with self._storing.held(bill, len(rest)):
                ingested, seconds = await self.run_blocking(self._accept, topic, first, count)
                bill.charge(seconds)
            self._workers.look_again()
            rest = ingested.left + rest[count:]
            judged = len(first.opened) - len(ingested.left) + len(ingested.released)
            bill.account.storing.note(max(1, judged), seconds)
            if source in self._listeners:  # one that has left meanwhile would never be forgotten
                self._senders.note(ingested.waited, source)
            self._touch(topic.repo_num, ingested)
            self.announce(ingested, topic.topic, source)
            together.add(ingested)
            if not rest:
                return together
            batch = OpenedBatch()

    async def release(self, repo_num: int) -> None:
        """Judge what waited for what a repo has got by other ways: keys. Tell what came of it. Raises StorageError."""
        bill = WorkBill(self.account)
        while (await self._release_slice(repo_num, None, None, bill)).is_unfinished:
            pass

    async def _release_slice(
        self, repo_num: int, topic: TopicKey | None, source: Listener | None, bill: WorkBill
    ) -> IngestResult:
        """Judge some of what waited, and tell what came of it. Who brought what it waited for pays."""
        count = bill.account.storing.count
        async with self._storing.held(bill):
            ingested, seconds = await self.run_blocking(self._release, count)
            bill.charge(seconds)
        bill.account.storing.note(max(1, len(ingested.released)), seconds)
        self._touch(repo_num, ingested)
        self.announce(ingested, topic, source)
        return ingested

    def _touch(self, repo_num: int, ingested: IngestResult) -> None:
        """Have a repo described anew of which something waits, found no room or was rejected: no branch has changed."""
        if ingested.waiting or ingested.rejected or ingested.unread or ingested.dropped["pending_full"]:
            self.replica.shown.touch(repo_num)

    def _read(self, topic: Topic, items: Sequence[bytes]) -> tuple[OpenedBatch, int, float]:
        """Read and settle publications, by a worker or here; how many claims were checked, the seconds that reading took.

        Where workers are busy this thread waits for one of them as long as another one stores: two that compute here would
        only wait for each other. When that has ended, it is done here: no core is idle for long.
        """
        keys = opening_keys(topic)
        try:
            reading = self._workers.read(keys, items, wait_while=lambda: self._storing.is_held)
        except UnreadableBatch as error:
            log.error("a batch cannot be read", topic=topic.topic.hex(), error=str(error))
            return OpenedBatch(dropped=Counter({"unreadable_batch": len(items)})), 0, UNREADABLE_SECONDS
        if reading is not None:
            return settle_batch(reading.batch, reading.claims_hold), len(reading.claims_hold), reading.seconds
        with ExitStack() as turn:
            turn.enter_context(self._turn)
            began = self.cpu_clock()
            batch = read_batch(keys, items)
            claims = gather_claims(batch)
            seconds = self.cpu_clock() - began
            if not self._workers.count:
                turn.close()  # libsodium leaves the interpreter to who stores, on a second core if there is one
            holds = self._workers.check(claims, may_wait=False)
        return settle_batch(batch, holds), len(claims), seconds

    def _accept(self, topic: Topic, batch: OpenedBatch, count: int) -> tuple[IngestResult, float]:
        began = self.cpu_clock()
        ingested = accept_batch(
            self.replica, topic, batch, self.clock_ms(), share=self._share(count), in_slices=True
        )
        return ingested, self.cpu_clock() - began

    def _release(self, count: int) -> tuple[IngestResult, float]:
        began = self.cpu_clock()
        return release_more(self.replica, self.clock_ms(), self._share(count)), self.cpu_clock() - began

    def _share(self, count: int) -> Share:
        """What one slice may do: it is over after SLICE_SECONDS."""
        began = self.cpu_clock()
        # A thread uses no more of the processor than time passes, and asking for that is several times as fast.
        is_threads = self.cpu_clock is time.thread_time
        look_at = time.perf_counter() + SLICE_SECONDS if is_threads else -math.inf

        def is_over() -> bool:
            nonlocal look_at
            now = time.perf_counter()
            if now <= look_at:
                return False
            left = SLICE_SECONDS - (self.cpu_clock() - began)
            look_at = now + left if is_threads else -math.inf
            return left < 0

        return Share(self._turn, is_over, min(count, RELEASED_COUNT_MAX), is_patient=True)

    async def look(self, bill: WorkBill, work: Callable[..., T], *args: Any) -> T:  # noqa: ANN401  # whatever it takes
        """Look into the store for a peer, in its turn and at its cost."""

        def measure() -> tuple[T, float]:
            began = self.cpu_clock()
            return work(*args), self.cpu_clock() - began

        async with self._looking.held(bill):
            found, seconds = await self.run_blocking(measure)
            bill.charge(seconds)
        return found

    async def write(self, work: Callable[..., T], *args: Any) -> T:  # noqa: ANN401  # whatever the work takes
        """Run work that writes to the store for this user, after what came before it.

        One at a time writes anyway, and who waits for that in a thread takes it from those who only read.
        """
        async with self._writing:
            return await self.run_blocking(work, *args)

    @property
    def is_storing(self) -> bool:
        """Whether commits are being written or taken in now: what can wait leaves them the processor."""
        return self._writing.locked() or self._storing.is_held

    async def write_grouped(
        self, work: Callable[[Sequence[Q]], tuple[list[T | Exception], IngestResult]], request: Q
    ) -> T:
        """Run work that writes what this request asks for, and with it all that were made while another write was stored.

        `work` gives an outcome for each request, in order; what it came to is told.
        """

        async def run(requests: Sequence[Q]) -> list[T | Exception]:
            outcomes, ingested = await self.run_blocking(work, requests)
            self.announce(ingested)
            return outcomes

        outcome: T = await self._groups.run(request, run)
        return outcome

    def find_followed(self, topic: TopicKey) -> Topic | KeptTopic | None:
        """What a topic is on this node: one that it opens, or one that is kept for others."""
        opened = self.replica.by_topic.get(topic)
        if opened is not None or self.relay is None:
            return opened
        return self.relay.topics.get(topic)

    @property
    def account(self) -> WorkAccount:
        """The account of what no peer has caused."""
        return self.ledger.of_peer(NOBODY)

    async def relay_batch(
        self,
        topic: KeptTopic,
        items: Sequence[bytes],
        previous: Previous,
        visitor: Visitor,
        source: Listener,
        bill: WorkBill,
    ) -> RelayResult:
        """Keep publications of a topic for others, after `previous`; then tell everyone else. Raises StorageError."""
        assert self.relay is not None, "it keeps the topic"
        relayed = await self.relay.ingest(topic, items, previous, visitor, bill)
        self.totals.dropped += relayed.dropped.total()
        if relayed.dropped:
            log.warning("publications dropped", reasons=dict(relayed.dropped))
        if relayed.has_forgotten:
            self.relay_forgot()
        if relayed.has_bare or relayed.completed:
            self.absences.ring()
        for listener in list(self._listeners):
            if listener is not source and relayed.nums:
                self._tell(listener, partial(listener.commits_accepted, topic.topic, relayed.nums))
        return relayed

    def announce(
        self, ingested: IngestResult, source_topic: TopicKey | None = None, source: Listener | None = None
    ) -> None:
        """Tell listeners what was accepted, but none what it sent: now, or as what waited until now."""
        self.totals.count(ingested)
        if ingested.rejected:
            first = ingested.rejected[0]
            log.warning(
                "commits rejected",
                count=len(ingested.rejected),
                first=first.commit_id.hex(),
                code=first.code,
                detail=first.detail,
            )
        if ingested.dropped:
            log.warning("publications dropped", reasons=dict(ingested.dropped))
        if not (ingested.accepted or ingested.unread or ingested.is_about_repos or ingested.filled):
            return
        for topic, own in ingested.own_publications.items() if self.sources else ():
            self.recent.note(topic, ((num, one.encoded) for num, one in reversed(own.items())))
        sent_by = self._senders.pop(ingested.released | ingested.inits)
        told = [*ingested.accepted.items(), *ingested.also_on.items(), *ingested.unread.items()]
        branches = frozenset(ingested.branches)
        for sender, sent in sent_by.items():
            for topic, nums in told:
                count = len(sent.intersection(nums))
                if count and (sender is not source or topic != source_topic):
                    self._tell(sender, partial(sender.commits_released, topic, count))
        for listener in list(self._listeners):
            if ingested.is_about_repos:
                self._tell(listener, listener.topics_changed)
            its_own: AbstractSet[int] = next(
                (sent for sender, sent in sent_by.items() if sender is listener), frozenset()
            )
            for topic, nums in told:
                is_sources = listener is source and topic == source_topic
                new = tuple(
                    num for num in nums if num not in its_own and (not is_sources or num in ingested.released)
                )
                if new:
                    self._tell(listener, partial(listener.commits_accepted, topic, new, branches))
        if ingested.has_bare or ingested.filled:
            self.absences.ring()
        self.changes.ring()

    def topics_changed(self) -> None:
        """Tell everyone that what is followed has changed."""
        for listener in list(self._listeners):
            self._tell(listener, listener.topics_changed)
        self.changes.ring()

    def relay_forgot(self) -> None:
        """Tell connections which topics this relay has forgotten: a full one does for each message that brings something.

        Each looks at these alone: a relay has many peers, and each of them follows many topics.
        """
        assert self.relay is not None, "a relay has forgotten"
        forgotten = self.relay.take_forgotten()
        for port in list(self.relay_ports) if forgotten else ():
            port.topics_forgotten(forgotten)

    def _tell(self, listener: Listener, tell: Callable[[], None]) -> None:
        """Tell one listener. What goes wrong with it is its own: the others are told, and who announced goes on."""
        try:
            tell()
        except Exception:  # the border of one listener
            log.exception("a listener failed", listener=type(listener).__name__)
            listener.missed()
