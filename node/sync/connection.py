"""One peer connection: does the I/O for the sync state machine (`protocol.session.session`) over an encrypted stream.

It moves bytes and runs the machine's outputs. What others ask of the peer is `node.sync.conversation`'s.

Tasks, all owned by the connection's nursery: the reader (frames in), the writer (frames out, coalesced), the
keep-alive, and one short task for each load or take that the machine asks for (`node.sync.topic_work`), at most a handful by
the machine's own window.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

import structlog
import trio

from node.ingest.publication_parsing import Opened
from node.runtime.token_bucket import TokenBucket
from node.sync.circuit_port import CircuitHandler, CircuitOutput, CircuitPort, is_of_large_circuit
from node.sync.conversation import Conversation
from node.sync.followed_topics import FollowedTopics
from node.sync.hub import Hub
from node.sync.introductions import Introducer
from node.sync.kept_parts import KeepsPort
from node.sync.presence import PresencePort
from node.sync.relay_client import RelayAnswer, RelayClient
from node.sync.relay_port import RelayPort, RelayQuestion
from node.sync.topic_work import TopicWork
from node.sync.windows import WindowPort
from node.wire.transport import LAST_WORDS_SECONDS, SecureStream, TransportError, say_goodbye
from protocol.codec import DecodeError
from protocol.formats.text import id_text
from protocol.ids import BranchMark, TopicKey
from protocol.limits.network import STRANGER_IDLE_SECONDS
from protocol.limits.peers import (
    ANNOUNCED_AT_ONCE_MAX,
    BYTE_SECONDS,
    FIRST_TURNS_SECONDS,
    FRAME_SECONDS,
    FRUITLESS_SLOWED_SECONDS,
    IDLE_TIMEOUT_SECONDS,
    MESSAGES_AT_ONCE_MAX,
    MESSAGES_PER_SECOND_MAX,
    STRANGERS_SLOWED_SECONDS,
    TOPIC_COUNT_MAX,
    TURNS_SECONDS,
    UNKNOWN_MESSAGES_AT_ONCE_MAX,
    UNKNOWN_MESSAGES_PER_SECOND_MAX,
)
from protocol.session.events import (
    CheckDue,
    MessageReceived,
    RoomWanted,
)
from protocol.session.features import FEATURES, find_newer, has_feature
from protocol.session.messages import (
    Announce,
    Blocks,
    Features,
    Goodbye,
    Introductions,
    KeepAlive,
    Message,
    Publications,
    Receipt,
    Reconcile,
    Relay,
    Seen,
    Summary,
    UnknownMessage,
    Window,
    decode_message,
)
from protocol.session.outputs import (
    Close,
    EarlierCompared,
    FindPeers,
    HandleFrame,
    HandOver,
    IngestBatch,
    LearnPeers,
    LoadEarlier,
    LoadPlan,
    LoadSummary,
    OpenReconciliation,
    Output,
    PresenceSeen,
    ReachOutput,
    Send,
    WindowCame,
    say_together,
)
from protocol.session.reach import host_of
from protocol.session.session import Session
from storage.engine.id_keys import chunks
from storage.repos.epochs import Topic

log = structlog.get_logger()

_TOPICS_AT_ONCE: Final = 64
"""Topics that are announced, or taken from one announcement, before others have their turn: 1 to 2 ms."""
_USEFUL: Final = (Receipt, Publications, Blocks, Reconcile, Summary, Window)
"""Messages that count as useful while a peer answers for blocks: they may hold up an answer on a slow line."""


@dataclass(frozen=True, slots=True)
class Ended:
    """End of a connection, with a stable reason."""

    reason: str


class Connection(Conversation):
    """Connection with one peer. `run` returns when it has ended."""

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
        `introducer` says of which other nodes it hears. A peer that is not known is a stranger of its `network` until it
        shows that it knows a topic; then `met` is called. `circuits` opens, accepts or passes circuits on, if this
        connection has any. `across` is where the peer is (host:port), which it hears if it dialed; `seen` hears of direct
        ways.
        """
        slowed_after = STRANGERS_SLOWED_SECONDS if hub.relay is None else FRUITLESS_SLOWED_SECONDS
        ledger, peer = hub.ledger, stream.peer_key
        session = Session(
            stream.session_id,
            is_dialer=stream.is_dialer,
            is_relay=hub.relay is not None,
            introduces=introducer is not None,
        )
        account = ledger.of_peer(peer) if is_known else ledger.of_strangers(network, slowed_after)
        super().__init__(session, peer, subnet, account, hub.useless_sources)
        self.is_stranger = not is_known
        self._met = met
        self._introducer = introducer
        self._hub = hub
        self._stream = stream
        self._followed = FollowedTopics(hub, session, may_keep, partial(hub.is_partner, peer))
        self.progress_at = self.heard_at = hub.clock_ms() // 1000
        """Unix seconds when the peer last sent something or took it, and when it last said anything."""
        self.goodbye = ""
        """Why the peer has ended the connection, as it says."""
        self.unknown_count = 0
        """Messages of kinds that this version does not know."""
        self._circuits = CircuitPort(self, circuits)
        self._across = across
        self._seen = seen
        self._client = RelayClient(self, hub.refusing)
        self._relaying = RelayPort(self, self._followed, hub, self._client.note_kept_again)
        self._work = TopicWork(self, stream.session_id, hub, self._relaying)
        self._windows = WindowPort(self, hub, self._work.load_summaries)
        self._keeps = KeepsPort(self, hub)
        self._written = trio.Event()
        self._rates = MessageRates()
        self._presence = PresencePort(self)
        self._joined_count = 0
        self._is_announcing = False
        self._has_turns = False

    def take_changed(self) -> set[TopicKey]:
        """Return topics whose progress may have changed since the last call. For one caller."""
        return self.session.take_changed()

    @property
    def waiting_count(self) -> int:
        """Return how many topics wait for their turn to be compared with the peer; none if it follows nothing."""
        return self._followed.waiting_count if self.session.has_turns else 0

    def is_waiting(self, topic: TopicKey) -> bool:
        """Return True if a topic is still to be compared with the peer."""
        return self.session.has_turns and self._followed.is_waiting(topic)

    @property
    def older_features(self) -> list[str]:
        """List the features of this version that the peer's has not, sorted; none before it has said its own."""
        said = self.session.peer_features
        return [] if said is None else [one for one in FEATURES if not has_feature(said, one)]

    @property
    def newer_features(self) -> list[str]:
        """List the features of the peer's version that this one has not, sorted."""
        return find_newer(self.session.peer_features or ())

    async def run(self) -> Ended:
        """Converse until either side ends it, this node stops, or something fails."""
        cut = "stopping"
        try:
            async with trio.open_nursery() as nursery:
                self.nursery = nursery
                with self._hub.connected(self, self._client, self._presence, self._relaying.kept_changed):
                    await self._converse(nursery)
                nursery.cancel_scope.cancel()
        except Exception:
            cut = "defect"
            raise
        finally:
            is_cut = not self.is_ending()
            self.lose(cut)
            self.questions.lose()
            self._circuits.lose()
            self._client.lose()
            self._hub.given.lose(self, is_cut=self.outgoing.count > 0)
            if is_cut:  # the writer is gone, and what is queued with it
                await say_goodbye(self._stream, cut)
            else:
                with trio.move_on_after(LAST_WORDS_SECONDS, shield=True):
                    await self._stream.aclose()
            self._let_go()
        return Ended(self.reason)

    def _let_go(self) -> None:
        """Drop the parts that know this connection.

        In a circle with it they would wait for Python's collector, and with them all that the peer has made this node
        remember: 10 MB for each connection. The collector counts objects and not their bytes, so it would come late.
        """
        self.has_ended = True
        del (
            self._circuits,
            self._client,
            self._relaying,
            self._work,
            self._presence,
            self._windows,
            self._keeps,
        )

    async def _converse(self, nursery: trio.Nursery) -> None:
        nursery.start_soon(self._write)
        nursery.start_soon(self._keep_alive)
        nursery.start_soon(self._client.offer_again)
        self.say(Features(FEATURES))
        if self._hub.relay is not None:
            self.say(Relay())
        if self._introducer is not None:
            self.say(Introductions())
        if not self._stream.is_dialer and host_of(self._across) is not None:
            self.say(Seen(self._across))
        self._circuits.begin()
        self.topics_changed()
        await self._read()
        self.outgoing.close()
        with trio.move_on_after(LAST_WORDS_SECONDS):  # for what is queued, a goodbye above all
            await self._written.wait()

    def commits_accepted(self, topic: TopicKey, nums: tuple[int, ...]) -> None:
        """Send commits that were accepted and that this peer has not sent."""
        if self.has_ended:
            return
        self.wake(topic)
        if topic in self._followed.places:
            self._work.note_news(topic, len(nums))
        self._hub.presences.introduce(self._presence, topic)  # the user may be a member by it
        super().commits_accepted(topic, nums)

    def wake(self, topic: TopicKey) -> None:
        """Announce a topic of an ended epoch, for there is something to send or to ask for."""
        if not self.has_ended and self._followed.wake(topic):
            self._announce()

    async def look_at_window(
        self, topic: Topic, mark: BranchMark, below: int, count: int
    ) -> list[Opened] | None:
        """Ask for commits of a mark below a rank, and read them; None without an answer."""
        return None if self.has_ended else await self._windows.look(topic, mark, below, count)

    def bodies_settled(self, topic: TopicKey | None = None) -> None:
        """Tell the peer that its bodies of a topic are held here, too. Without a topic: for each topic that lacks
        none now."""
        if not self.has_ended:
            self._keeps.settle(topic)

    def tell_keeps(self) -> None:
        """Tell the peer what has changed of whose bodies are kept here."""
        if not self.has_ended:
            self._keeps.tell_changes()

    def topics_changed(self) -> None:
        """Announce topics that are followed now and were not before."""
        if self.has_ended:
            return
        if not self._followed.look():
            self.part("topic_forgotten")
            return
        self._relaying.entrust_all()
        self._work.topics_changed()
        self._announce()
        self._windows.topics_changed()
        self._keeps.tell_changes()
        if self.is_stranger:
            self._note_if_known()

    async def _read(self) -> None:
        with self.reading:
            await self._read_on()
        if self.reading.cancelled_caught:
            self.part("idle")

    async def _read_on(self) -> None:
        while not self.is_ending():
            frame = await self._receive()
            if frame is None:
                return
            self.charge(FRAME_SECONDS + len(frame) * BYTE_SECONDS)
            if self.is_ending():
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
            is_met = self.session.joined_count > 0
            refusal = self._rates.find_flood(message, trio.current_time(), is_met=is_met)
            if refusal:
                self.part(refusal)
                return
            self.heard_at = self._hub.clock_ms() // 1000
            if message is None:
                continue
            if isinstance(message, Goodbye):
                self.goodbye = message.reason
                log.info("goodbye", peer=id_text(self.peer), reason=message.reason)
            if isinstance(message, _USEFUL):
                self.questions.note_progress(len(frame))
            if isinstance(message, Receipt | Publications | Blocks):
                self.progress_at = self.heard_at
            joined_count = self.session.joined_count
            if isinstance(message, Announce) and len(message.topics) > _TOPICS_AT_ONCE:
                self.reading.deadline = math.inf  # until the next frame: what waits here is no peer's silence
                for topics in chunks(message.topics, _TOPICS_AT_ONCE):
                    if not self.is_ending():
                        self._take(Announce(tuple(topics)))
                        await self._let_others()
            else:
                self._take(message)
            if isinstance(message, Summary) and (progress := self.session.find_topic(message)) is not None:
                self._windows.summary_came(progress.topic)
            if self.session.joined_count > TOPIC_COUNT_MAX:
                self._rates.join_topics(self.session.joined_count)
            if isinstance(message, Features) and self.newer_features:
                log.info("peer of a newer version", peer=id_text(self.peer), features=self.newer_features)
            # Not at each announcement: this looks at all topics, and a stranger may say the same one without end.
            if self.is_stranger and self.session.joined_count > joined_count:
                self._note_if_known()

    def _take(self, message: Message) -> None:
        if isinstance(message, Announce):
            self._followed.note_announced(message.topics)
        if isinstance(message, Relay):
            self._followed.note_relay()
        self.happen(MessageReceived(message))

    async def _receive(self) -> bytes | None:
        """Receive the next frame; None where the connection ends."""
        pause = self.account.pop_pause()
        frame: bytes | None = None
        try:
            if not pause and self._is_free:
                frame = self._stream.take_frame()  # most have been read with the one before
            if frame is None:
                frame = await self._wait_for_frame(pause)
        except TransportError as error:
            self.part(error.reason)
        return None if self.is_ending() else frame

    @property
    def _is_free(self) -> bool:
        """Return True if this node has room and time for more of the peer."""
        return self._hub.byte_budget.is_open and not self.session.wanting.is_full

    async def _wait_for_frame(self, pause: float) -> bytes | None:
        """Receive the next frame after a pause of some seconds; None where the connection ends. Raises TransportError."""
        gives_way = self._hub.giving_way.is_due and self.account.gives_way
        if pause or gives_way or not self._is_free:
            self.reading.deadline = math.inf  # the time in which nothing is read does not count
            self.questions.pause()
            if pause:
                await trio.sleep(pause)
            if gives_way:
                await self._hub.giving_way.wait()
            await self._work.has_answered()
            await self._hub.byte_budget.has_room()
            self.questions.resume()
        # A second at a time: to move the deadline costs as much as to decode a small message.
        idle_at = trio.current_time() + IDLE_TIMEOUT_SECONDS
        if not idle_at <= self.reading.deadline < math.inf:
            self.reading.deadline = idle_at + 1
        frame = await self._stream.receive_frame()
        if frame is None:
            self.part("closed")
        return frame

    async def _let_others(self) -> None:
        """Let all other tasks run; pause longer for this user's requests if the peer's work came to nothing."""
        if self.account.gives_way:
            await self._hub.giving_way.wait()
        await trio.lowlevel.checkpoint()

    def _note_if_known(self) -> None:
        """Switch a peer that has joined a topic to an account of its own: it knows the topic's secret name."""
        topics = self._hub.replica.by_topic
        if any(progress.is_joined and progress.topic in topics for progress in self.session.topics):
            self.is_stranger = False
            self.account = self._hub.ledger.of_peer(self.peer)
            if self._met is not None:
                self._met()

    async def _write(self) -> None:
        try:
            fault = await self.outgoing.write(self._stream)
            if fault:
                self.lose(fault)
        finally:
            self._written.set()

    async def _keep_alive(self) -> None:
        began = trio.current_time()
        while True:
            await trio.sleep(IDLE_TIMEOUT_SECONDS / 3)
            self.say(KeepAlive())
            is_read = self.reading.deadline < math.inf
            is_useful = self.questions.progressed > trio.current_time() - IDLE_TIMEOUT_SECONDS / 3
            self.happen(CheckDue(is_quiet=is_read and not is_useful))
            has_topic = any(progress.is_joined for progress in self.session.topics)
            if self.is_stranger and not has_topic and trio.current_time() - began >= STRANGER_IDLE_SECONDS:
                self.part("no_common_topic")

    def _announce(self) -> None:
        """Announce waiting topics: as many at once as one turn takes, and the rest in later turns."""
        if self._is_announcing:
            return
        self._is_announcing = True
        self._announce_some()
        if self._followed.is_due and not self.is_ending():
            self.start(self._announce_rest)
        else:
            self._announced()

    def _announce_some(self) -> None:
        self.perform(say_together(self._followed.announce(_TOPICS_AT_ONCE)))

    async def _announce_rest(self) -> None:
        """Announce the rest, at the cost of strangers: to tell one of them of thousands takes a tenth of a second."""
        while self._followed.is_due and not self.is_ending():
            await self._let_others()
            began = self._hub.cpu_clock()
            self._announce_some()
            if self.is_stranger:
                self.charge(self._hub.cpu_clock() - began)
        self._announced()

    def _announced(self) -> None:
        """Note that nothing can be announced now. While topics wait, have those that hold their room compared again."""
        self._is_announcing = False
        if self._followed.waiting_count and not self._has_turns:
            self._has_turns = True
            self.start(self._take_turns)

    async def _take_turns(self) -> None:
        while self._followed.waiting_count:
            await trio.sleep(TURNS_SECONDS if self.session.joined_count else FIRST_TURNS_SECONDS)
            self.happen(RoomWanted())
        self._has_turns = False

    def perform(self, outputs: Sequence[Output]) -> None:
        """Start what the session machine asks for. Never waits."""
        if self.session.joined_count > self._joined_count:
            self._joined_count = self.session.joined_count
            if self._hub.lacking_bodies:  # the peer may have some
                self._hub.absences.ring()
        summaries: list[TopicKey] = []
        for output in outputs:
            if isinstance(output, LoadSummary):
                summaries.append(output.topic)
            else:
                self._perform(output)
        self._keeps.tell(summaries)
        self._windows.summarise(summaries)
        for topic in summaries:
            self._hub.presences.introduce(self._presence, topic)
        if self._followed.is_due:
            self._announce()

    def _perform(self, output: Output) -> None:
        match output:
            case Send():
                self.say(output.message)
            case Close():
                if output.reason == "wrong_block":
                    self._hub.useless_sources.note_lie(self.peer, self.account)
                self.part(output.reason)
            case HandOver():
                for wanted, item in output.blocks:
                    self.questions.settle(wanted, item)
            case IngestBatch():
                self._work.ingest(output)
            case OpenReconciliation() | HandleFrame():
                self._work.reconcile(output)
            case _ if isinstance(output, RelayQuestion):
                self._relaying.perform(output)
            case _ if isinstance(output, RelayAnswer):
                self._client.perform(output)
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
                self._windows.summarise((output.topic,))
            case LoadPlan():
                self._work.plan(output)
                self._windows.compared(output.topic)
            case WindowCame():
                self._windows.came(output)
            case LoadEarlier(topic, is_asked):
                others = self._followed.find_earlier(topic, is_asked=is_asked)
                if others is not None:
                    self._work.load_earlier(topic, others)
            case EarlierCompared(topic, differing):
                self._followed.note_compared(topic, differing)
            case _:
                self._work.load(output)


class MessageRates:
    """Rates at which messages of one peer are taken. The smallest cost the sender nothing, and this node its time."""

    def __init__(self) -> None:
        self._unknown = TokenBucket(UNKNOWN_MESSAGES_AT_ONCE_MAX, UNKNOWN_MESSAGES_PER_SECOND_MAX)
        self._messages = TokenBucket(MESSAGES_AT_ONCE_MAX, MESSAGES_PER_SECOND_MAX)
        self._announced = TokenBucket(ANNOUNCED_AT_ONCE_MAX, TOPIC_COUNT_MAX / FIRST_TURNS_SECONDS)
        self._joined = TOPIC_COUNT_MAX

    def join_topics(self, count: int) -> None:
        """Note how many topics are joined. Each one beyond TOPIC_COUNT_MAX adds its share of messages, once."""
        self._messages.grow(max(0, count - self._joined) * MESSAGES_AT_ONCE_MAX / TOPIC_COUNT_MAX)
        self._joined = max(count, self._joined)

    def find_flood(self, message: Message | None, now: float, *, is_met: bool) -> str:
        """Return why a message (None: of an unknown kind) is one too many, or an empty text.

        Args:
            message: What came.
            now: Seconds.
            is_met: Whether the peer has joined a topic.
        """
        if message is None and not self._unknown.try_acquire(now):
            return "too_many_unknown_messages"
        if isinstance(message, Announce) and not (
            is_met or self._announced.try_acquire(now, len(message.topics))
        ):
            return "too_many_topics"
        is_taken = is_of_large_circuit(message) or self._messages.try_acquire(now)
        return "" if is_taken else "too_many_messages"
