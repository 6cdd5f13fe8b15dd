"""Who is told when something was accepted: connections, and local subscribers.

A `Hub` is called in the trio thread after a transaction has committed; it never waits. What a listener cannot take at
once it must note and read from the store later: nothing is lost, because the store is what counts.
"""

import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import structlog
import trio

from node.blocking import RunBlocking
from node.inbound import accept_batch, release_more
from node.intake import Intake
from node.metrics import Histogram
from node.opening import ReadBatch, read_batch, settle_batch
from node.relay import Relay, Relayed
from node.replica import Replica
from node.senders import Senders
from node.turns import Backlog, Previous, ShortFirst
from protocol.signing import CheckClaims, check_claims
from storage.errors import StorageError
from storage.relay import KeptTopic
from storage.relay_quotas import Visitor
from storage.repos import Branch

log = structlog.get_logger()


class Listener(Protocol):
    """Somebody to be told."""

    def commits_accepted(self, topic: bytes, nums: tuple[int, ...]) -> None:
        """Commits of a topic were accepted (or, with numbers below 0, kept to be passed on)."""
        ...

    def topics_changed(self) -> None:
        """Root branches have grown, or something waits in one: there may be more topics than before."""
        ...


class BlockSource(Protocol):
    """A peer that may have blocks of files, and commits."""

    def has_joined(self, topic: bytes) -> bool:
        """Whether it follows a topic."""
        ...

    def want(self, topic: bytes, ids: tuple[bytes, ...]) -> None:
        """Ask it for publications of commits of a topic, if it follows that; each id once on a connection."""
        ...

    async def fetch(self, topic: bytes, wanted: bytes) -> bytes | None:
        """A block, encoded, of just that id, or None. Raises NotFetched."""
        ...


class NotFetched(Exception):
    """A peer did not answer for a block."""


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
    intake_seconds: Histogram = field(default_factory=Histogram)

    def count(self, intake: Intake) -> None:
        """Count what became of a batch."""
        self.rejected += len(intake.rejected)
        self.dropped += intake.dropped.total()
        self.accepted += sum(map(len, intake.accepted.values()))
        self.already += intake.already
        self.waiting += intake.waiting
        self.unread += sum(map(len, intake.unread.values()))
        self.refused.update(intake.dropped)
        self.refused.update(item.code for item in intake.rejected)


class Hub:
    """Runs batches through the way in, and tells listeners what came of it."""

    def __init__(
        self,
        replica: Replica,
        run_blocking: RunBlocking,
        clock_ms: Callable[[], int],
        check: CheckClaims = check_claims,
    ) -> None:
        self.replica = replica
        self.run_blocking = run_blocking
        self.clock_ms = clock_ms
        self._check = check
        self._reading = ShortFirst()
        self._storing = ShortFirst()
        self.backlog = Backlog()
        self._turn = threading.Lock()
        self.totals = Totals()
        self.relay: Relay | None = None
        """Topics that this node keeps for others, where it is a relay."""
        self._listeners: list[Listener] = []
        self._senders: Senders[Listener] = Senders()
        self.sources: list[BlockSource] = []
        """Peers that are connected now."""
        self._changed = trio.Event()
        self.change_count = 0
        """Of all changes that were told: what is read from the store at one count is as new as at any time of it."""

    def add(self, listener: Listener) -> None:
        """Tell this listener from now on."""
        self._listeners.append(listener)

    def remove(self, listener: Listener) -> None:
        """Tell this listener no more. One that was never added is no error: it may have been cancelled before."""
        if listener in self._listeners:
            self._listeners.remove(listener)
        self._senders.forget(listener)

    async def take(
        self, branch: Branch, items: Sequence[bytes], previous: Previous, source: Listener | None
    ) -> Intake:
        """Take publications in, after `previous`; then tell everyone but their source. Raises StorageError.

        One batch is read while another's signatures are checked and a third is on its way to the disk. Reading and storing
        are mostly Python, and two threads of it only wait for each other's interpreter: they take turns.
        """
        began = time.perf_counter()
        async with self._reading.held(len(items)):
            read = await self.run_blocking(self._read, branch, items)
        holds = await self.run_blocking(self._check, read.claims)
        await previous.wait()
        async with self._storing.held(len(items)):
            intake = await self.run_blocking(self._accept, branch, read, holds)
        try:
            while intake.is_unfinished:
                async with self._storing.held(len(items)):
                    intake = intake.with_more(await self.run_blocking(self._release))
        except StorageError as error:  # what was accepted is to be told; the rest is released later
            log.error("what waits could not be released", error=str(error))
        if source is not None:
            self._senders.note(intake.waited, source)
        self.totals.intake_seconds.observe(time.perf_counter() - began)
        self.announce(intake, branch.topic, source)
        return intake

    def _read(self, branch: Branch, items: Sequence[bytes]) -> ReadBatch:
        with self._turn:
            return read_batch(branch, items)

    def _accept(self, branch: Branch, read: ReadBatch, holds: Sequence[bool]) -> Intake:
        batch = settle_batch(read, holds)
        return accept_batch(self.replica, branch, batch, self.clock_ms(), turn=self._turn, in_slices=True)

    def _release(self) -> Intake:
        return release_more(self.replica, self.clock_ms(), turn=self._turn)

    def find_followed(self, topic: bytes) -> Branch | KeptTopic | None:
        """What a topic is on this node: a branch's, or one that is kept for others."""
        branch = self.replica.by_topic.get(topic)
        if branch is not None or self.relay is None:
            return branch
        return self.relay.topics.get(topic)

    async def relay_batch(
        self,
        topic: KeptTopic,
        items: Sequence[bytes],
        previous: Previous,
        visitor: Visitor,
        source: Listener,
    ) -> Relayed:
        """Keep publications of a topic for others, after `previous`; then tell everyone else. Raises StorageError."""
        assert self.relay is not None, "it keeps the topic"
        relayed = await self.relay.take(topic, items, previous, visitor)
        self.totals.dropped += relayed.dropped.total()
        if relayed.dropped:
            log.warning("publications dropped", reasons=dict(relayed.dropped))
        if relayed.has_forgotten:
            self.topics_changed()
        for listener in list(self._listeners):
            if listener is not source and relayed.nums:
                listener.commits_accepted(topic.topic, relayed.nums)
        return relayed

    def announce(
        self, intake: Intake, source_topic: bytes | None = None, source: Listener | None = None
    ) -> None:
        """Tell listeners what was accepted, but none what it sent: now, or as what waited until now."""
        self.totals.count(intake)
        if intake.rejected:
            first = intake.rejected[0]
            log.warning(
                "commits rejected",
                count=len(intake.rejected),
                first=first.commit_id.hex(),
                code=first.code,
                detail=first.detail,
            )
        if intake.dropped:
            log.warning("publications dropped", reasons=dict(intake.dropped))
        if not (intake.accepted or intake.unread or intake.is_about_repos or intake.filled):
            return
        sent_by = self._senders.take(intake.released)
        for listener in list(self._listeners):
            if intake.is_about_repos:
                listener.topics_changed()
            its_own = sent_by.get(listener, set())
            for topic, nums in [*intake.accepted.items(), *intake.unread.items()]:
                is_sources = listener is source and topic == source_topic
                new = tuple(
                    num for num in nums if num not in its_own and (not is_sources or num in intake.released)
                )
                if new:
                    listener.commits_accepted(topic, new)
        self._wake()

    def topics_changed(self) -> None:
        """Tell everyone that what is followed has changed."""
        for listener in list(self._listeners):
            listener.topics_changed()
        self._wake()

    async def wait_for_change(self) -> None:
        """Return after the next change. The caller sets the deadline."""
        await self._changed.wait()

    def _wake(self) -> None:
        self.change_count += 1
        self._changed.set()
        self._changed = trio.Event()
