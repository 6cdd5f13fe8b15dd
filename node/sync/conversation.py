"""`Conversation`: a session with one peer, as the parts of its connection and the rest of this node use it.

It says messages, tells the session machine of events, asks for commits and blocks, and charges the peer's account. What the
machine asks for in turn is `node.sync.connection`'s.
"""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress

import structlog
import trio

from node.ingest.publication_parsing import Opened
from node.runtime.scheduling import WorkAccount
from node.sync.block_requests import BlockRequests, NotFetched, RequestTimeout, UselessSources
from node.sync.sync_progress import ConnectionRates
from node.wire.send_queue import SendQueue
from protocol.formats.text import id_text
from protocol.ids import BlockId, BranchMark, CommitId, ItemId, PeerId, TopicKey
from protocol.session.events import (
    BlocksWanted,
    BodiesWanted,
    CommitsAccepted,
    CommitsReleased,
    CommitsWanted,
    Event,
)
from protocol.session.features import BODIES, FILES, RELAY_FILES, has_feature
from protocol.session.messages import Goodbye, Message
from protocol.session.outputs import Output
from protocol.session.session import Session
from protocol.session.topic_progress import IN_SYNC, TopicProgress
from storage.engine.database import StorageError
from storage.repos.epochs import Topic

log = structlog.get_logger()


class Conversation:
    """Session with one peer, with its send queue, its tasks and the account that pays."""

    def __init__(
        self,
        session: Session,
        peer: PeerId,
        subnet: str,
        account: WorkAccount,
        useless_sources: UselessSources,
    ) -> None:
        self.session = session
        self.peer = peer
        self.subnet = subnet
        self.account = account
        self.is_stranger = False
        self.outgoing = SendQueue()
        self.transfer_rates = ConnectionRates()
        self.nursery: trio.Nursery | None = None
        self.questions = BlockRequests()
        self.reading = trio.CancelScope()
        """Scope of the reader, which ends with the conversation."""
        self.reason = ""
        """Why the conversation ends; empty: it goes on."""
        self.has_ended = False
        self._useless_sources = useless_sources

    def perform(self, outputs: Sequence[Output]) -> None:
        """Start what the session machine asks for, as `Connection` does. Never waits."""
        raise NotImplementedError

    def topics_changed(self) -> None:
        """Announce topics that are followed now and were not before, as `Connection` does."""
        raise NotImplementedError

    def wake(self, topic: TopicKey) -> None:
        """Announce a topic of an ended epoch, where it rests: there is something to send or to ask for."""

    async def look_at_window(
        self, topic: Topic, mark: BranchMark, below: int, count: int
    ) -> list[Opened] | None:
        """Ask for commits of a mark below a rank, and read them; None without an answer. Only a `Connection` does."""
        del topic, mark, below, count
        return None

    def bodies_settled(self, topic: TopicKey | None = None) -> None:
        """Tell the peer that its bodies of a topic are held here, too. Without a topic: for each topic that lacks
        none now."""

    def tell_keeps(self) -> None:
        """Tell the peer what has changed of whose bodies are kept here. Only a `Connection` does."""

    def is_waiting(self, topic: TopicKey) -> bool:
        """Return True if a topic is still to be compared with the peer. Only a `Connection` has any."""
        del topic
        return False

    @property
    def topics(self) -> list[TopicProgress]:
        """List the progress of each topic."""
        return self.session.topics

    @property
    def peer_is_relay(self) -> bool:
        """Return True if the peer has said that it keeps topics for others."""
        return self.session.peer_is_relay

    def knows(self, feature: str) -> bool:
        """Return True if the peer has said that it knows a feature that is younger than `features1`."""
        return feature in (self.session.peer_features or ())

    def has_joined(self, topic: TopicKey) -> bool:
        """Return True if the peer follows a topic too."""
        return self.session.has_joined(topic)

    def is_level(self, topic: TopicKey) -> bool:
        """Return True if the peer follows a topic too and has nothing of it that this node lacks."""
        progress = self.session.progress_of(topic)
        return progress is not None and progress.state == IN_SYNC and not progress.behind

    # --- what happens on this node ---

    def happen(self, event: Event) -> None:
        """Tell the session machine of an event, and start what it asks for. Never waits; does nothing after the end."""
        if not self.has_ended:
            self.perform(self.session.handle(event))

    def commits_accepted(self, topic: TopicKey, nums: tuple[int, ...]) -> None:
        """Send commits that were accepted and that this peer has not sent."""
        self.happen(CommitsAccepted(topic, nums))

    def commits_released(self, topic: TopicKey, count: int) -> None:
        """Count commits that were accepted now: this peer had sent them, and they had waited."""
        self.happen(CommitsReleased(topic, count))

    def missed(self) -> None:
        """End: this conversation has a defect, and the next one compares everything anew."""
        self.part("defect")

    # --- what the peer is asked for ---

    @property
    def answers_bodies(self) -> bool:
        """Return True if the peer can be asked for bodies, and says how many it has."""
        return self.knows(BODIES)

    @property
    def compares_publications(self) -> bool:
        """Return True if commits are named by the ids of their publications: one side is a relay."""
        return self.session.compares_publications

    def want(self, topic: TopicKey, ids: tuple[CommitId, ...]) -> None:
        """Ask the peer for publications of commits, if it follows the topic; each id once in a long while."""
        self.wake(topic)
        if self.has_joined(topic):
            self.happen(CommitsWanted(topic, ids))

    def want_bodies(self, topic: TopicKey, ids: tuple[ItemId, ...]) -> bool:
        """Ask the peer for commits whole. Return False where it takes no more questions for so many now."""
        if self.has_ended or not self.has_joined(topic):
            return False
        outputs = self.session.handle(BodiesWanted(topic, ids))
        self.perform(outputs)
        return bool(outputs)

    def bodies_found(self, topic: TopicKey) -> int | None:
        """Return how many the peer has of those that it was asked for last; None: it has not said yet."""
        progress = self.session.progress_of(topic)
        return None if progress is None else progress.bodies_found

    async def fetch(self, topic: TopicKey, wanted: BlockId) -> bytes | None:
        """Fetch a block of a joined topic's files, encoded, of just that id; None where the peer has not got it.

        Asks for FETCHED_COUNT_MAX at a time. Raises NotFetched when the peer leaves, or does not answer in time. A peer
        whose version knows no files is not asked: it would pass over the question.
        """
        if self.has_ended:
            raise NotFetched
        if not has_feature(self.session.peer_features, FILES) or self._is_useless(wanted):
            return None

        def say() -> bool:
            if self.is_ending() or not self.has_joined(topic):
                return False
            self.happen(BlocksWanted(topic, (wanted,)))
            return True

        try:
            found = await self.questions.ask(wanted, say, lambda: self.outgoing.size)
        except RequestTimeout:
            self.part("peer_does_not_answer")  # what it still owes would be taken for what is asked later
            raise NotFetched from None
        if found is None and self.peer_is_relay:  # of others than relays it may come at any time
            self._useless_sources.note_lost(self.peer, wanted)
        return found

    def _is_useless(self, wanted: BlockId) -> bool:
        """Return True if the peer has lied, or is a relay that keeps no files or has lost this block."""
        return self._useless_sources.is_useless(self.peer, wanted) or (
            self.peer_is_relay and not self.knows(RELAY_FILES)
        )

    # --- work and its end ---

    def start(self, work: Callable[..., Awaitable[None]], *args: object) -> None:
        """Start a task of this conversation, and end the conversation where that fails."""
        assert self.nursery is not None, "run() is what starts work"
        self.nursery.start_soon(self._end_if_it_fails, work, args)

    async def _end_if_it_fails(self, work: Callable[..., Awaitable[None]], args: tuple[object, ...]) -> None:
        try:
            await work(*args)
            self._check_budget()
        except StorageError as error:
            log.error("storage failed", peer=id_text(self.peer), error=str(error))
            self.part("storage_failed")

    def charge(self, seconds: float) -> None:
        """Charge work of this peer, and part from it where its budget is used up."""
        self.account.charge(seconds)
        self._check_budget()

    def _check_budget(self) -> None:
        if self.account.is_over and not self.is_ending():
            log.warning("peer is over its budget", peer=id_text(self.peer), stranger=self.is_stranger)
            self.part("over_budget")

    def say(self, message: Message) -> None:
        """Queue a message."""
        try:
            if not self.outgoing.put(message):
                self.part("peer_does_not_read")
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            self.lose("closed")

    def is_ending(self) -> bool:
        """Return True if the conversation has a reason to end."""
        return bool(self.reason)

    def part(self, reason: str) -> None:
        """Stop reading, and tell the peer why, as far as it still reads. The first reason counts."""
        if self.is_ending():
            return
        with suppress(trio.BrokenResourceError, trio.ClosedResourceError):
            self.outgoing.put(Goodbye(reason), is_last=True)
        self.lose(reason)

    def lose(self, reason: str) -> None:
        """Stop reading, where nothing can be said any more. The first reason counts."""
        if not self.reason:
            self.reason = reason
            self.reading.cancel()
