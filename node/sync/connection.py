"""One peer connection: does the I/O for the sync state machine (`protocol.session`) over an encrypted stream.

Moves bytes and runs the machine's outputs. It charges the peer's account, and ends the connection of a peer whose work
comes to nothing.

Tasks, all owned by the connection's nursery: the reader (frames in), the writer (frames out, coalesced), the
keep-alive, and one short task for each load or take that the machine asks for (`node.sync.topic_work`), at most a handful by
the machine's own window.
"""

import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress

import structlog
import trio

from node.sync.block_requests import BlockRequests, RequestTimeout
from node.sync.circuit_port import CircuitHandler, CircuitOutput, CircuitPort
from node.sync.followed_topics import FollowedTopics
from node.sync.goodbye import LAST_WORDS_SECONDS, Ended, say_goodbye
from node.sync.hub import Hub
from node.sync.introductions import Introducer
from node.sync.neighbours import NotFetched
from node.sync.presence import PresencePort
from node.sync.rate_limit import MessageRates
from node.sync.relay_port import RelayOutput, RelayPort
from node.sync.send_queue import SendQueue
from node.sync.sync_progress import ConnectionRates
from node.sync.topic_work import TopicWork
from node.sync.transport import SecureStream, TransportError
from protocol.circuits import SessionCircuits
from protocol.codec import DecodeError
from protocol.features import BODIES, FEATURES, FILES, find_newer, has_feature
from protocol.ids import BlockId, CommitId, ItemId, TopicKey
from protocol.limits.peers import (
    BYTE_SECONDS,
    FRAME_SECONDS,
    FRUITLESS_SLOWED_SECONDS,
    IDLE_TIMEOUT_SECONDS,
    STRANGER_IDLE_SECONDS,
    STRANGERS_SLOWED_SECONDS,
    TOPIC_COUNT_MAX,
)
from protocol.links import PeerAddress
from protocol.messages import (
    Announce,
    Blocks,
    Features,
    Goodbye,
    Introductions,
    KeepAlive,
    Message,
    Publications,
    Receipt,
    Relay,
    Seen,
    UnknownMessage,
    decode_message,
)
from protocol.reach import host_of
from protocol.session import Session
from protocol.session_events import (
    BlocksWanted,
    BodiesWanted,
    CheckDue,
    CommitsAccepted,
    CommitsReleased,
    CommitsWanted,
    Event,
    MessageReceived,
    PeersFound,
)
from protocol.session_outputs import (
    Close,
    FindPeers,
    HandleFrame,
    HandOver,
    IngestBatch,
    LearnPeers,
    LoadPlan,
    LoadSummary,
    OpenReconciliation,
    Output,
    PresenceSeen,
    ReachOutput,
    Send,
    say_together,
)
from protocol.text import id_text
from protocol.topic_progress import TopicProgress
from storage.engine.database import StorageError
from storage.relay.quotas import Visitor
from storage.relay.relay import KeptTopic
from storage.repos.epochs import Topic
from storage.topics.difference import TopicTables

log = structlog.get_logger()


class Connection:
    """One conversation with one peer. `run` returns when it has ended."""

    def __init__(
        self,
        hub: Hub,
        stream: SecureStream,
        may_keep: Callable[[Topic], bool] = lambda _: False,
        subnet: str = "",
        introducer: Introducer | None = None,
        *,
        network: str = "",
        is_known: bool = False,
        met: Callable[[], None] | None = None,
        circuits: CircuitHandler | None = None,
        across: str = "",
        seen: Callable[[ReachOutput], None] = lambda _: None,
    ) -> None:
        """`may_keep` says of which topics the peer may be told, if it is a relay; `subnet` is where it is;
        `introducer` says which other nodes it is told of. A peer that is not known is a stranger of its `network` until it
        shows that it knows a topic; then `met` is called. `circuits` opens, accepts or passes circuits on, if this
        connection has any. `across` is where the peer is (host:port), which it is told if it dialed; `seen` hears of direct
        ways.
        """
        self._met = met
        ledger = hub.ledger
        slowed_after = STRANGERS_SLOWED_SECONDS if hub.relay is None else FRUITLESS_SLOWED_SECONDS
        self.account = (
            ledger.of_peer(stream.peer_key) if is_known else ledger.of_strangers(network, slowed_after)
        )
        """What pays for the work that the peer causes."""
        self.is_stranger = not is_known
        self.subnet = subnet
        self._introducer = introducer
        self.peer = stream.peer_key
        self._hub = hub
        self._stream = stream
        self._session = Session(
            stream.session_id,
            is_dialer=stream.is_dialer,
            is_relay=hub.relay is not None,
            introduces=introducer is not None,
        )
        self.outgoing = SendQueue()
        self._nursery: trio.Nursery | None = None
        self._followed = FollowedTopics(hub, self._session, may_keep)
        self.progress_at = self.heard_at = hub.clock_ms() // 1000
        """Unix seconds when the peer last sent something or took it, and when it last said anything."""
        self._reason = ""
        self._has_ended = False
        self.goodbye = ""
        """Why the peer has ended the connection, as it says."""
        self.unknown_count = 0
        """Messages of kinds that this version does not know."""
        self._circuits = CircuitPort(self, circuits)
        self._across = across
        self._seen = seen
        self._questions = BlockRequests()
        self.relaying = RelayPort(self, hub)
        """What goes on with a relay, on either side of it, beyond the comparing of topics."""
        self._work = TopicWork(self, self._session, stream.session_id, hub, self.relaying)
        self._reading = trio.CancelScope()
        self._written = trio.Event()
        self._rates = MessageRates()
        self.transfer_rates = ConnectionRates()
        self._presence = PresencePort(self, self._session)
        self._joined_count = 0

    @property
    def topics(self) -> list[TopicProgress]:
        """Progress of each topic on this connection."""
        return self._session.topics

    def take_changed(self) -> set[TopicKey]:
        """Topics whose progress may have changed since the last call. For one caller."""
        return self._session.take_changed()

    @property
    def peer_is_relay(self) -> bool:
        """Whether the peer has said that it keeps topics for others."""
        return self._session.peer_is_relay

    @property
    def older_features(self) -> list[str]:
        """Features of this version that the peer's has not, sorted; none before it has said its own."""
        said = self._session.peer_features
        return [] if said is None else [one for one in FEATURES if not has_feature(said, one)]

    @property
    def newer_features(self) -> list[str]:
        """Features of the peer's version that this one has not, sorted."""
        return find_newer(self._session.peer_features or ())

    @property
    def circuits(self) -> SessionCircuits:
        """The circuits of this session."""
        return self._session.circuits

    def happen(self, event: Event) -> None:
        """Tell the session machine of an event, and start what it asks for. Never waits. After the end nothing happens."""
        if self._has_ended:
            return
        self._perform_all(self._session.handle(event))
        if self._followed.is_due:
            self._announce()

    async def run(self) -> Ended:
        """Converse until either side ends it, this node stops, or something fails."""
        cut = "stopping"
        try:
            async with trio.open_nursery() as nursery:
                self._nursery = nursery
                with self._hub.connected(self, self._presence):
                    await self._converse(nursery)
                nursery.cancel_scope.cancel()
        except Exception:
            cut = "defect"
            raise
        finally:
            is_cut = not self._is_ending()
            self._lose(cut)
            self._questions.lose()
            self._circuits.lose()
            self.relaying.lose()
            self._hub.given.lose(self, is_cut=self.outgoing.count > 0)
            if is_cut:  # the writer is gone, and what is queued with it
                await say_goodbye(self._stream, cut)
            else:
                with trio.move_on_after(LAST_WORDS_SECONDS, shield=True):
                    await self._stream.aclose()
            self._let_go()
        return Ended(self._reason)

    def _let_go(self) -> None:
        """Drop the parts that know this connection.

        In a circle with it they would wait for Python's collector, and with them all that the peer has made this node
        remember: 10 MB for each connection. The collector counts objects and not their bytes, so it would come late.
        """
        self._has_ended = True
        del self._circuits, self.relaying, self._work, self._presence

    async def _converse(self, nursery: trio.Nursery) -> None:
        nursery.start_soon(self._write)
        nursery.start_soon(self._keep_alive)
        nursery.start_soon(self.relaying.offer_again)
        self._say(Features(FEATURES))
        if self._hub.relay is not None:
            self._say(Relay())
        if self._introducer is not None:
            self._say(Introductions())
        if not self._stream.is_dialer and host_of(self._across) is not None:
            self._say(Seen(self._across))
        self._circuits.begin()
        self.topics_changed()
        await self._read()
        self.outgoing.close()
        with trio.move_on_after(LAST_WORDS_SECONDS):  # for what is queued, a goodbye above all
            await self._written.wait()

    def commits_accepted(
        self, topic: TopicKey, nums: tuple[int, ...], branches: AbstractSet[int] = frozenset()
    ) -> None:
        """The hub's word: commits were accepted that this peer has not sent."""
        if self._has_ended:
            return
        if topic in self._followed.places:
            self._work.note_news(topic, len(nums))
        self.happen(CommitsAccepted(topic, nums))

    def commits_released(self, topic: TopicKey, count: int) -> None:
        """The hub's word: commits were accepted that this peer had sent, and that had waited."""
        self.happen(CommitsReleased(topic, count))

    def topics_changed(self) -> None:
        """The hub's word: announce what is followed now."""
        if self._has_ended:
            return
        if not self._followed.look():
            self.part("topic_forgotten")
            return
        self._announce()
        self.relaying.follow_partners()
        if self.is_stranger:
            self._look_whether_known()

    def _announce(self) -> None:
        self._perform_all(say_together(self._followed.announce()))

    def missed(self) -> None:
        """The hub's word: this conversation has a defect, and the next one compares everything anew."""
        self.part("defect")

    def has_joined(self, topic: TopicKey) -> bool:
        """Whether the peer follows it too."""
        return self._session.has_joined(topic)

    def progress_of(self, topic: TopicKey) -> TopicProgress | None:
        """Progress of one topic, if this side has announced it."""
        return self._session.progress_of(topic)

    def is_level(self, topic: TopicKey) -> bool:
        """Whether the peer follows it too, and has nothing of it that is not here."""
        progress = self._session.progress_of(topic)
        return progress is not None and progress.state == "in sync" and not progress.behind

    def introduce(self, topic: TopicKey, peers: tuple[PeerAddress, ...]) -> None:
        """Tell the peer of these, as far as it may be told and has not been."""
        self.happen(PeersFound(topic, peers))

    def want(self, topic: TopicKey, ids: tuple[CommitId, ...]) -> None:
        """Ask the peer for publications of commits, if it follows the topic; what comes is taken in as ever."""
        if self.has_joined(topic):
            self.happen(CommitsWanted(topic, ids))

    @property
    def answers_bodies(self) -> bool:
        """Whether the peer can be asked for bodies, and says how many it has."""
        return self.knows(BODIES)

    @property
    def compares_publications(self) -> bool:
        """Whether commits are named by the ids of their publications: one side is a relay."""
        return self._session.compares_publications

    def want_bodies(self, topic: TopicKey, ids: tuple[ItemId, ...]) -> bool:
        """Ask the peer for commits whole; whether it was asked: a connection has room for so many."""
        if not self.has_joined(topic) or not self._session.has_room_for_bodies(len(ids)):
            return False
        self.happen(BodiesWanted(topic, ids))
        return True

    def bodies_found(self, topic: TopicKey) -> int | None:
        """How many the peer has of those that it was asked for last; None: it has not said yet."""
        progress = self._session.progress_of(topic)
        return None if progress is None else progress.bodies_found

    def visitor(self) -> Visitor:
        """The peer as the quotas of this relay see it."""
        return self.relaying.visitor()

    async def fetch(self, topic: TopicKey, wanted: BlockId) -> bytes | None:
        """A block of a joined topic's files, encoded, of just that id; None where the peer has not got it.

        Asks for FETCHED_COUNT_MAX at a time. Raises NotFetched when the peer leaves, or does not answer in time. A peer
        whose version knows no files is not asked: it would pass over the question.
        """
        if self._has_ended:
            raise NotFetched
        relaying = self.relaying  # this connection may have ended when the peer's answer is looked at
        if not has_feature(self._session.peer_features, FILES) or relaying.has_none(wanted):
            return None

        def say() -> bool:
            if self._is_ending() or not self.has_joined(topic):
                return False
            self.happen(BlocksWanted(topic, (wanted,)))
            return True

        try:
            found = await self._questions.ask(wanted, say)
        except RequestTimeout:
            self.part("peer_does_not_answer")  # what it still owes would be taken for what is asked later
            raise NotFetched from None
        if found is None:
            relaying.note_absent(wanted)
        return found

    async def _read(self) -> None:
        with self._reading:
            await self._read_on()
        if self._reading.cancelled_caught:
            self.part("idle")

    async def _read_on(self) -> None:
        while not self._is_ending():
            frame = await self._receive()
            if frame is None:
                return
            self._charge(FRAME_SECONDS + len(frame) * BYTE_SECONDS)
            if self._is_ending():
                return
            message: Message | None = None
            try:
                message = decode_message(frame)
            except UnknownMessage:
                self.unknown_count += 1
                log.debug("unknown message", peer=id_text(self.peer))
            except DecodeError as error:
                self.part(f"bad_message:{error.reason}")
                return
            refusal = self._rates.find_flood(message, trio.current_time())
            if refusal:
                self.part(refusal)
                return
            self.heard_at = self._hub.clock_ms() // 1000
            if message is None:
                continue
            if isinstance(message, Goodbye):
                self.goodbye = message.reason
                log.info("goodbye", peer=id_text(self.peer), reason=message.reason)
            if isinstance(message, Receipt | Publications | Blocks):
                self.progress_at, self._questions.progressed = self.heard_at, trio.current_time()
            joined_count = self._session.joined_count
            if isinstance(message, Announce):
                self._followed.note_announced(message.topics)
            if isinstance(message, Relay):
                self._followed.note_relay()
            self.happen(MessageReceived(message))
            if self._session.joined_count > TOPIC_COUNT_MAX:
                self._rates.join_topics(self._session.joined_count)
            if isinstance(message, Features) and self.newer_features:
                log.info("peer of a newer version", peer=id_text(self.peer), features=self.newer_features)
            # Not at each announcement: this looks at all topics, and a stranger may say the same one without end.
            if self.is_stranger and self._session.joined_count > joined_count:
                self._look_whether_known()

    async def _receive(self) -> bytes | None:
        """The next frame, or None where the connection ends."""
        pause = self.account.pop_pause()
        frame: bytes | None = None
        try:
            if not pause and self._hub.byte_budget.is_open:
                frame = self._stream.take_frame()  # most have been read with the one before
            if frame is None:
                frame = await self._wait_for_frame(pause)
        except TransportError as error:
            self.part(error.reason)
        return None if self._is_ending() else frame

    async def _wait_for_frame(self, pause: float) -> bytes | None:
        """The next frame after a pause of some seconds, or None where the connection ends. Raises TransportError."""
        if pause or not self._hub.byte_budget.is_open:
            self._reading.deadline = math.inf  # the time in which nothing is read does not count
            if pause:
                await trio.sleep(pause)
            await self._hub.byte_budget.has_room()
        # A second at a time: to move the deadline costs as much as to decode a small message.
        idle_at = trio.current_time() + IDLE_TIMEOUT_SECONDS
        if not idle_at <= self._reading.deadline < math.inf:
            self._reading.deadline = idle_at + 1
        frame = await self._stream.receive_frame()
        if frame is None:
            self.part("closed")
        return frame

    def _charge(self, seconds: float) -> None:
        """Charge work of this peer, and part from it where its budget is used up."""
        self.account.charge(seconds)
        self._look_at_budget()

    def _look_at_budget(self) -> None:
        if self.account.is_over and not self._is_ending():
            log.warning("peer is over its budget", peer=id_text(self.peer), stranger=self.is_stranger)
            self.part("over_budget")

    def _look_whether_known(self) -> None:
        """Who has joined a topic knows its secret name: it has an account of its own from now on."""
        topics = self._hub.replica.by_topic
        if any(progress.is_joined and progress.topic in topics for progress in self._session.topics):
            self.is_stranger = False
            self.account = self._hub.ledger.of_peer(self.peer)
            if self._met is not None:
                self._met()

    async def _write(self) -> None:
        try:
            fault = await self.outgoing.write(self._stream)
            if fault:
                self._lose(fault)
        finally:
            self._written.set()

    async def _keep_alive(self) -> None:
        began = trio.current_time()
        while True:
            await trio.sleep(IDLE_TIMEOUT_SECONDS / 3)
            self._say(KeepAlive())
            self.happen(CheckDue())
            has_topic = any(progress.is_joined for progress in self._session.topics)
            if self.is_stranger and not has_topic and trio.current_time() - began >= STRANGER_IDLE_SECONDS:
                self.part("no_common_topic")

    def _perform_all(self, outputs: Sequence[Output]) -> None:
        """Start what is asked for. Never waits."""
        if self._session.joined_count > self._joined_count:
            self._joined_count = self._session.joined_count
            if self._hub.awaits_bodies:  # the peer may have some
                self._hub.absences.ring()
        summaries: list[TopicKey] = []
        for output in outputs:
            if isinstance(output, LoadSummary):
                summaries.append(output.topic)
            else:
                self._perform(output)
        self._work.load_summaries(summaries)

    def _perform(self, output: Output) -> None:
        match output:
            case Send():
                self._say(output.message)
            case Close():
                if output.reason == "wrong_block":
                    self._hub.useless_sources.note_lie(self.peer, self.account)
                self.part(output.reason)
            case HandOver():
                for wanted, item in output.blocks:
                    self._questions.settle(wanted, item)
            case IngestBatch():
                self._work.ingest(output)
            case OpenReconciliation() | HandleFrame():
                self._work.reconcile(output)
            case _ if isinstance(output, RelayOutput):
                self.relaying.perform(output)
            case FindPeers() | LearnPeers():
                assert self._introducer is not None, "the session says no otherwise"
                self._introducer.perform(self, output)
            case _ if isinstance(output, CircuitOutput):
                self._circuits.perform(output)
            case PresenceSeen(topic, box):
                self._hub.presences.received(self._presence, topic, box)
            case _ if isinstance(output, ReachOutput):
                self._seen(output)
            case LoadSummary():
                self._work.load_summaries((output.topic,))
            case LoadPlan():
                self._work.plan(output)
            case _:
                self._work.load(output)

    def follow_kept(
        self, kept: Sequence[KeptTopic], refused: tuple[TopicKey, ...] = (), reason: str = ""
    ) -> None:
        """Follow topics that this relay keeps; tell the peer of those that it does not, and why."""
        if self._has_ended:
            return
        outputs = self._followed.announce_kept(kept, refused, reason, is_entrusted=self.relaying.is_partner)
        self._perform_all(say_together(outputs))

    @property
    def topic_room(self) -> int:
        """How many more topics this side may announce."""
        return self._followed.room

    def followed(self) -> Mapping[TopicKey, tuple[TopicTables, int]]:
        """Topics that this side has announced, and what they were here then."""
        return self._followed.places

    def knows(self, feature: str) -> bool:
        """Whether the peer has said that it knows a feature that is younger than `features1`."""
        return feature in (self._session.peer_features or ())

    def start(self, work: Callable[..., Awaitable[None]], *args: object) -> None:
        """Do work of this connection's, and end it where that fails."""
        assert self._nursery is not None, "run() is what starts work"
        self._nursery.start_soon(self._end_if_it_fails, work, args)

    async def _end_if_it_fails(self, work: Callable[..., Awaitable[None]], args: tuple[object, ...]) -> None:
        try:
            await work(*args)
            self._look_at_budget()
        except StorageError as error:
            log.error("storage failed", peer=id_text(self.peer), error=str(error))
            self.part("storage_failed")

    def _say(self, message: Message) -> None:
        try:
            if not self.outgoing.put(message):
                self.part("peer_does_not_read")
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            self._lose("closed")

    def _is_ending(self) -> bool:
        return bool(self._reason)

    def part(self, reason: str) -> None:
        """Stop reading, and tell the peer why: as far as it still reads, it need not guess. The first reason counts."""
        if self._is_ending():
            return
        with suppress(trio.BrokenResourceError, trio.ClosedResourceError):
            self.outgoing.put(Goodbye(reason), is_last=True)
        self._lose(reason)

    def _lose(self, reason: str) -> None:
        """Stop reading, where nothing can be said any more; the first reason counts."""
        if not self._reason:
            self._reason = reason
            self._reading.cancel()
