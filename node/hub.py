"""Who is told when something was accepted: connections, and local subscribers.

A `Hub` is called in the trio thread after a transaction has committed; it never waits. What a listener cannot take at
once it must note and read from the store later: nothing is lost, because the store is what counts.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import structlog
import trio

from node.blocking import RunBlocking
from node.inbound import Intake, OpenedBatch, accept_batch
from node.replica import Replica
from storage.repos import Branch

log = structlog.get_logger()


class Listener(Protocol):
    """Somebody to be told."""

    def commits_accepted(self, topic: bytes, nums: tuple[int, ...]) -> None:
        """Commits of a topic were accepted."""
        ...

    def topics_changed(self) -> None:
        """The node follows more topics than before."""
        ...


@dataclass(slots=True)
class Totals:
    """Counts since the start, for status."""

    rejected: int = 0
    dropped: int = 0


class Hub:
    """Runs batches through the way in, and tells listeners what came of it."""

    def __init__(self, replica: Replica, run_blocking: RunBlocking, clock_ms: Callable[[], int]) -> None:
        self.replica = replica
        self.run_blocking = run_blocking
        self.clock_ms = clock_ms
        self.totals = Totals()
        self._listeners: list[Listener] = []
        self._changed = trio.Event()

    def add(self, listener: Listener) -> None:
        """Tell this listener from now on."""
        self._listeners.append(listener)

    def remove(self, listener: Listener) -> None:
        """Tell this listener no more."""
        self._listeners.remove(listener)

    async def accept(self, branch: Branch, batch: OpenedBatch, source: Listener | None) -> Intake:
        """Judge and store a batch, then tell everyone but its source. Raises StorageError."""
        intake = await self.run_blocking(accept_batch, self.replica, branch, batch, self.clock_ms())
        self.announce(intake, branch.topic, source)
        return intake

    def announce(
        self, intake: Intake, source_topic: bytes | None = None, source: Listener | None = None
    ) -> None:
        """Tell listeners what was accepted; the source knows what it sent on its topic already."""
        self.totals.rejected += len(intake.rejected)
        self.totals.dropped += intake.dropped.total()
        for verdict in intake.rejected:
            log.warning(
                "commit rejected", commit=verdict.commit_id.hex(), code=verdict.code, detail=verdict.detail
            )
        if intake.dropped:
            log.warning("publications dropped", reasons=dict(intake.dropped))
        if not intake.accepted:
            return
        for listener in list(self._listeners):
            listener.topics_changed()
            for topic, nums in intake.accepted.items():
                if listener is not source or topic != source_topic:
                    listener.commits_accepted(topic, tuple(nums))
        self._wake()

    def topics_changed(self) -> None:
        """Tell everyone that there are more topics."""
        for listener in list(self._listeners):
            listener.topics_changed()
        self._wake()

    async def wait_for_change(self) -> None:
        """Return after the next change. The caller sets the deadline."""
        await self._changed.wait()

    def _wake(self) -> None:
        self._changed.set()
        self._changed = trio.Event()
