"""`Hub`: announces what was accepted to connections and local subscribers, and has what they share.

It announces in the trio thread after a transaction has committed, and never waits. What a listener cannot take at once it
must note and read from the store later: nothing is lost, because the store is what counts.
"""

import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol, TypeVar

import structlog
import trio

from node.home.folder_mark import store_name
from node.ingest.batch_order import ByteBudget, Previous
from node.ingest.ingest_result import IngestResult
from node.ingest.kept_windows import KeptWindows
from node.ingest.native_reading import Reader
from node.ingest.replica import Replica
from node.relay.relay import RelayResult, RelayService
from node.runtime.backoff import Backoff
from node.runtime.blocking import RunBlocking
from node.runtime.counted_event import CountedEvent
from node.runtime.group_lane import GroupLane
from node.runtime.scheduling import NOBODY, FairLock, Ledger, WorkAccount, WorkBill
from node.runtime.user_requests import GivingWay, UserRequests
from node.sync.block_requests import UselessSources
from node.sync.body_proofs import BodyProofs
from node.sync.bulk_turns import BulkTurns
from node.sync.conversation import Conversation
from node.sync.given_blocks import GivenBlocks
from node.sync.intake import Intake, PendingSenders
from node.sync.owners import Owners
from node.sync.presence import PresencePort, Presences
from node.sync.recent_publications import RecentPublications
from node.sync.relay_client import RelayClient
from node.sync.store_bound import StoreBound
from protocol.ids import CommitId, PeerId, TopicKey
from protocol.limits.peers import COMPARED_AT_ONCE_MAX, DAY_SECONDS, GIVING_WAY_SECONDS
from protocol.limits.users import WRITE_GATHER_SECONDS, WRITE_GROUP_COUNT_MAX
from storage.commits.absent_bodies import find_topics_missing_bodies
from storage.relay.quotas import Visitor
from storage.relay.relay import KeptTopic
from storage.repos.epochs import Topic

log = structlog.get_logger()

T = TypeVar("T")
Q = TypeVar("Q")
KeptChanged = Callable[[AbstractSet[TopicKey], Sequence[KeptTopic]], None]
"""Called with topics that this relay has forgotten, and with ones that it has begun to keep."""


class Follower(Protocol):
    """Subscriber to what branches hold."""

    def branches_changed(self, branches: AbstractSet[int]) -> None:
        """Take note that branches with these numbers got commits, or contents that had been absent."""
        ...

    def topics_changed(self) -> None:
        """Take note that root branches have grown, or something waits in one: there may be more topics than before."""
        ...

    def missed(self) -> None:
        """Recover from an error that this listener raised in an earlier call: it has missed an event. Must not fail."""
        ...


class Listener(Protocol):
    """Subscriber to what topics hold."""

    def commits_accepted(self, topic: TopicKey, nums: tuple[int, ...]) -> None:
        """Take note that commits of a topic were accepted (or, with numbers below 0, kept to be passed on)."""
        ...

    def topics_changed(self) -> None:
        """Take note of changes, as Follower."""
        ...

    def missed(self) -> None:
        """Take note that something was missed, as Follower."""
        ...


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


def find_lacking(replica: Replica) -> frozenset[TopicKey]:
    """Find the topics of repos of which bodies are missing. Costs O(those). Raises StorageError."""
    with replica.database.read() as connection:
        missing = find_topics_missing_bodies(connection)
    return frozenset(replica.topics[num].topic for num in missing if num in replica.topics)


class Hub:
    """Shared state of all connections; announces accepted commits to listeners."""

    def __init__(
        self,
        replica: Replica,
        run_blocking: RunBlocking,
        clock_ms: Callable[[], int],
        reader: Reader | None = None,
        cpu_clock: Callable[[], float] = time.thread_time,
    ) -> None:
        """`reader` reads batches; by default all is read by Python. `cpu_clock` counts a thread's processor seconds."""
        self.replica = replica
        self.run_blocking = run_blocking
        self.clock_ms = clock_ms
        self.store_name = store_name(replica.database.folder)
        """Name of the store: another has other numbers."""
        self.cpu_clock = cpu_clock
        self.ledger = Ledger(trio.current_time)
        self.user_requests = UserRequests()
        """Requests of this user that are at work."""
        self.giving_way = GivingWay(self.user_requests, GIVING_WAY_SECONDS)
        """Peers whose work came to nothing, in their turns."""
        self.intake = Intake(
            replica,
            run_blocking,
            clock_ms,
            reader or Reader(),
            cpu_clock,
            lambda: self.account,
            self._note_waiting,
            self.announce,
            self.giving_way,
        )
        self._looking = FairLock(COMPARED_AT_ONCE_MAX, self.giving_way)
        self.byte_budget = ByteBudget()
        self._writing = trio.StrictFIFOLock()
        self._groups: GroupLane[Any, Any] = GroupLane(
            self._writing, WRITE_GROUP_COUNT_MAX, WRITE_GATHER_SECONDS
        )
        self.totals = Totals()
        self.relay: RelayService | None = None
        """Topics that this node keeps for others, where it is a relay."""
        self._listeners: list[Listener] = []
        self._followers: list[Follower] = []
        self._senders = PendingSenders()
        self.sources: list[Conversation] = []
        """Peers that are connected now."""
        self.relay_clients: list[RelayClient] = []
        """Connected peers, as far as they may turn out to be relays."""
        self._when_kept_changed: list[KeptChanged] = []
        self.file_refusals: dict[tuple[PeerId, int], str] = {}
        """Why a connected relay takes no more files of a repo (its number), as it said last."""
        self.refusing: dict[PeerId, Backoff] = {}
        """Relays that refused topics in the last session, and when these are offered again. Only to relays that this user or
        a link has chosen are topics offered."""
        self.useless_sources = UselessSources(trio.current_time)
        self.owners = Owners(replica, self.clock_ms)
        """Whose nodes peers are."""
        self.presences = Presences(replica, self.owners)
        """Who has which text open, here and at connected nodes."""
        self.windows = KeptWindows(replica)
        """Newest commits of branches whose past is not here."""
        self._questions = 0  # for which the past waits
        self._asked_since = 0.0  # while there are any
        self._asked_seconds = 0.0  # before that
        self._answered = CountedEvent()
        self.recent = RecentPublications()
        self.given = GivenBlocks()
        """Blocks of files that peers were sent."""
        self.changes = CountedEvent()
        """Of all changes that were told: what is read from the store at one count is as new as at any time of it."""
        self.bulk_turns = BulkTurns(replica, self.changes, self._count_asked_seconds)
        """The peer that brings much of a repo."""
        self.absences = CountedEvent()
        """Of commits that were accepted without their bodies, of bodies that came, and of peers that may have some."""
        self.proofs = BodyProofs()
        """Bodies that a peer is asked to show before they are given up here."""
        self.bound = StoreBound()
        """Bound on the size of the store."""
        self.opened: set[TopicKey] = set()
        """Topics of which bodies were opened since absent ones were looked for last: of any age."""
        self.lacking_bodies = find_lacking(replica)
        """Topics of which bodies are missing, as far as is known."""

    def add(self, listener: Listener) -> None:
        """Tell this listener from now on."""
        self._listeners.append(listener)

    def remove(self, listener: Listener) -> None:
        """Tell this listener no more. One that was never added is no error: it may have been cancelled before."""
        if listener in self._listeners:
            self._listeners.remove(listener)
        self._senders.forget(listener)

    def follow(self, follower: Follower) -> None:
        """Tell this follower from now on."""
        self._followers.append(follower)

    def unfollow(self, follower: Follower) -> None:
        """Tell this follower no more. One that never followed is no error: it may have been cancelled before."""
        if follower in self._followers:
            self._followers.remove(follower)

    @contextmanager
    def asking_first(self) -> Iterator[None]:
        """Hold back receipts of batches meanwhile: peers then send no more of the past, which answers would wait behind."""
        if not self._questions:
            self._asked_since = trio.current_time()
        self._questions += 1
        try:
            yield
        finally:
            self._questions -= 1
            if not self._questions:
                self._asked_seconds += trio.current_time() - self._asked_since
            self._answered.ring()

    async def let_questions_pass(self) -> None:
        """Wait while something is asked first, DAY_SECONDS at most: one question after another would hold the past back."""
        with trio.move_on_after(DAY_SECONDS):
            while self._questions:
                await self._answered.wait(self._answered.count)

    def _count_asked_seconds(self) -> float:
        """Count the seconds in which something was asked first, since the start."""
        running = trio.current_time() - self._asked_since if self._questions else 0.0
        return self._asked_seconds + running

    @contextmanager
    def connected(
        self, peer: Conversation, client: RelayClient, presence: PresencePort, kept_changed: KeptChanged
    ) -> Iterator[None]:
        """Register a connected peer: it hears of changes and presences, and is asked for blocks.

        To be left before the connection's nursery closes: what the peer hears starts work there.
        """
        self.add(peer)
        self.sources.append(peer)
        self.relay_clients.append(client)
        self._when_kept_changed.append(kept_changed)
        self.presences.connect(presence)
        try:
            yield
        finally:
            self.remove(peer)
            self.sources.remove(peer)
            self.bulk_turns.leave(peer)
            self.relay_clients.remove(client)
            self._when_kept_changed.remove(kept_changed)
            self.presences.lose(presence)

    def _note_waiting(self, ids: Collection[CommitId], source: Conversation | None) -> None:
        if source is not None and source in self._listeners:  # one that has left would never be forgotten
            self._senders.note(ids, source)

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
        """Run this user's work that writes to the store, after the work asked for before it.

        Only one transaction writes at a time anyway. Work that waited in a thread would take that thread from readers.
        """
        async with self._writing:
            return await self.run_blocking(work, *args)

    @property
    def is_storing(self) -> bool:
        """Return True while commits are written or taken in: less urgent work waits then."""
        return self._writing.locked() or self.intake.is_storing

    async def write_grouped(
        self, work: Callable[[Sequence[Q]], tuple[list[T | Exception], IngestResult]], request: Q
    ) -> T:
        """Run work that writes what this request asks for, together with requests that came while another write was stored.

        `work` gives an outcome for each request, in order; what was accepted is announced.
        """
        [outcome] = await self.write_each(work, [request])
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    async def write_each(
        self, work: Callable[[Sequence[Q]], tuple[list[T | Exception], IngestResult]], requests: Sequence[Q]
    ) -> list[T | Exception]:
        """Return the outcome of each of one client's requests, written in this order. As `write_grouped`."""

        async def run(requests: Sequence[Q]) -> list[T | Exception]:
            outcomes, ingested = await self.run_blocking(work, requests)
            self.announce(ingested)
            return outcomes

        return await self._groups.run_each(requests, run)

    def find_followed(self, topic: TopicKey) -> Topic | KeptTopic | None:
        """Find what a topic is on this node: one that it opens, or one that is kept for others."""
        opened = self.replica.by_topic.get(topic)
        if opened is not None or self.relay is None:
            return opened
        return self.relay.topics.get(topic)

    def is_partner(self, peer: PeerId) -> bool:
        """Return True if this node is a relay, and a peer another one with which it keeps the same topics."""
        return self.relay is not None and self.relay.is_partner(peer)

    @property
    def account(self) -> WorkAccount:
        """Account that pays for work which no peer has caused."""
        return self.ledger.of_peer(NOBODY)

    async def relay_batch(
        self,
        topic: KeptTopic,
        items: Sequence[bytes],
        previous: Previous,
        visitor: Visitor,
        source: Conversation,
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
        self, ingested: IngestResult, source_topic: TopicKey | None = None, source: Conversation | None = None
    ) -> None:
        """Announce new commits and released ones to all listeners but the one that sent them."""
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
        if not (ingested.branches or ingested.unread or ingested.is_about_repos):
            return
        for topic, own in ingested.own_publications.items() if self.sources else ():
            self.recent.note(topic, ((num, one.encoded) for num, one in reversed(own.items())))
        sent_by = self._senders.pop(ingested.released | ingested.inits)
        told = [*ingested.accepted.items(), *ingested.also_on.items(), *ingested.unread.items()]
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
                    self._tell(listener, partial(listener.commits_accepted, topic, new))
        branches = frozenset(ingested.branches)
        for follower in list(self._followers):
            if ingested.is_about_repos:
                self._tell(follower, follower.topics_changed)
            if branches:
                self._tell(follower, partial(follower.branches_changed, branches))
        if ingested.has_bare or ingested.filled:
            self.absences.ring()
        self.changes.ring()

    def topics_changed(self) -> None:
        """Tell everyone that what is followed has changed."""
        self.windows.forget_gone()
        everyone: list[Listener | Follower] = [*self._listeners, *self._followers]
        for one in everyone:
            self._tell(one, one.topics_changed)
        self.changes.ring()

    def relay_forgot(self) -> None:
        """Tell connections which topics this relay has forgotten: a full one does for each message that brings something."""
        assert self.relay is not None, "a relay has forgotten"
        if forgotten := self.relay.take_forgotten():
            for changed in list(self._when_kept_changed):
                changed(forgotten, ())

    def relay_opened(self, kept: Sequence[KeptTopic]) -> None:
        """Tell connections which topics this relay has begun to keep."""
        for changed in list(self._when_kept_changed):
            changed(frozenset(), kept)

    def _tell(self, listener: Listener | Follower, tell: Callable[[], None]) -> None:
        """Notify one listener. Its failure stops neither the other listeners nor the caller."""
        try:
            tell()
        except Exception:  # the border of one listener
            log.exception("a listener failed", listener=type(listener).__name__)
            listener.missed()
