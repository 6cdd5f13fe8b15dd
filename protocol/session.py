"""Sync protocol with one peer as a pure state machine: events in, outputs out; no clock, store or network.

Life of a topic on a session: both sides announce it (blinded), both send a summary, each plans what the other lacks,
and streams it in batches; commits accepted later are appended. A batch stays in flight until its receipt, and at most
BATCHES_IN_FLIGHT_MAX are, so a slow peer holds back reads from the store instead of filling memory. Joined topics take
turns, root branches first, since membership must be there before what it permits.

The shell (`node.sync.connection`) performs the Load and Take outputs and reports back with the matching event. Whatever a
peer does wrong ends in one output, `Close`, with a stable reason; after it the machine is dead.

    us: Announce ->   <- Announce :them      topic joined
    us: Summary  ->   <- Summary  :them      LoadPlan
    us: Publications -> ... <- Receipt :them
"""

from collections import deque

from protocol.comparison import Comparison
from protocol.hashing import announced_topic, blind_topic, block_id
from protocol.ids import AnnouncedTopic, BlindTopic, BlockId, CommitId, SessionId, TopicKey
from protocol.introducing import Introducing
from protocol.limits.peers import (
    BATCH_COUNT_MAX,
    BATCHES_IN_FLIGHT_MAX,
    FETCHED_COUNT_MAX,
    TOPIC_COUNT_MAX,
    WANT_COUNT_MAX,
    WANTED_COUNT_MAX,
)
from protocol.messages import (
    Announce,
    Blocks,
    Deposit,
    Fetch,
    Goodbye,
    Introduce,
    Introductions,
    KeepAlive,
    Message,
    Publications,
    Receipt,
    Reconcile,
    Refused,
    Relay,
    Summary,
    Want,
)
from protocol.session_events import (
    BatchIngested,
    BatchLoaded,
    BlocksLoaded,
    BlocksWanted,
    CheckDue,
    Close,
    CommitsAccepted,
    CommitsWanted,
    Event,
    FindWanted,
    HandOver,
    IngestBatch,
    LoadBatch,
    LoadBlocks,
    LoadSummary,
    MessageReceived,
    OpenTopics,
    Output,
    PeersFound,
    PlanLoaded,
    Reconciled,
    Send,
    SummaryLoaded,
    TopicFollowed,
    TopicsRefused,
    WantedFound,
)
from protocol.topic_progress import TopicProgress


class Session:
    """The machine. `handle` is its only entrance.

    A relay (`is_relay`) keeps topics that the peer names to it. A node that `introduces` tells peers of each other.
    """

    def __init__(
        self, session_id: SessionId, *, is_dialer: bool, is_relay: bool = False, introduces: bool = False
    ) -> None:
        self._session_id = session_id
        self._introducing = Introducing(takes_part=introduces)
        self._is_dialer = is_dialer
        self._is_relay = is_relay
        self._peer_is_relay = False
        self._deposited = 0
        self._topics: dict[BlindTopic, TopicProgress] = {}  # by blinded topic
        self._comparison = Comparison(self._topics)
        self._blind: dict[TopicKey, BlindTopic] = {}  # followed topic -> blinded topic
        self._expected: dict[
            AnnouncedTopic, BlindTopic
        ] = {}  # how the peer would announce a followed topic -> blinded topic
        self._heard: set[AnnouncedTopic] = set()  # announced by the peer, and not followed here
        self._asked_count = 0
        self._wanted_count = 0
        self._turn: deque[BlindTopic] = deque()
        self._is_dead = False

    @property
    def peer_is_relay(self) -> bool:
        """Whether the peer keeps topics for others."""
        return self._peer_is_relay

    @property
    def compares_publications(self) -> bool:
        """Whether sets of publications are compared instead of commits: where one side is a relay, which opens none."""
        return self._is_relay or self._peer_is_relay

    @property
    def topics(self) -> list[TopicProgress]:
        """Progress of the topics this node follows."""
        return list(self._topics.values())

    def has_joined(self, topic: TopicKey) -> bool:
        """Whether both sides follow a topic. In one step: callers ask it for each of many topics of each of many peers."""
        blind = self._blind.get(topic)
        return blind is not None and self._topics[blind].is_joined

    def handle(self, event: Event) -> list[Output]:
        """What to do about an event, in order."""
        if self._is_dead:
            return []
        outputs = self._handle(event)
        self._is_dead = any(isinstance(output, Close) for output in outputs)
        return [output for output in outputs if isinstance(output, Close)] if self._is_dead else outputs

    def _handle(self, event: Event) -> list[Output]:
        match event:
            case TopicFollowed():
                return self._follow(event)
            case MessageReceived():
                return self._receive(event.message)
            case CommitsAccepted():
                return self._append_accepted(event)
            case CheckDue():
                return [*self._comparison.check(), *self._introducing.check()]
            case PeersFound():
                return self._introducing.found(self._blind[event.topic], event)
            case BlocksWanted():
                return self._fetch(event)
            case CommitsWanted(topic, ids):
                return self._ask(self._topics[self._blind[topic]], ids)
            case TopicsRefused(topics, reason):
                blinds = [blind_topic(topic, self._session_id) for topic in topics]
                return [Send(Refused(blind, reason)) for blind in blinds]
            case _:
                return self._continue(event, self._topics[self._blind[event.topic]])

    def _follow(self, event: TopicFollowed) -> list[Output]:
        if event.topic in self._blind:
            return []
        blind = blind_topic(event.topic, self._session_id)
        self._blind[event.topic] = blind
        theirs = announced_topic(event.topic, self._session_id, by_dialer=not self._is_dialer)
        self._expected[theirs] = blind
        progress = TopicProgress(event.topic, event.is_root, event.is_entrusted, theirs in self._heard)
        self._heard.discard(theirs)
        self._topics[blind] = progress
        entrusted = [Send(Deposit((event.topic,)))] if self._peer_is_relay and event.is_entrusted else []
        ours = announced_topic(event.topic, self._session_id, by_dialer=self._is_dialer)
        return [Send(Announce((ours,))), *entrusted, *self._open(progress)]

    def _open(self, progress: TopicProgress) -> list[Output]:
        if not progress.is_joined or progress.summary_sent:
            return []
        progress.summary_sent = True
        self._turn.append(self._blind[progress.topic])
        return [LoadSummary(progress.topic), *self._introducing.joined(progress)]

    def _receive(self, message: Message) -> list[Output]:
        match message:
            case KeepAlive():
                return []
            case Goodbye():
                return self._close("peer_left")
            case Announce():
                return self._announced(message)
            case Relay():
                return self._met_relay()
            case Introductions():
                if not self._introducing.peer_takes_part():
                    return self._close("second_introductions")
                return self._close("late_introductions") if self._has_peer_announced() else []
            case Deposit():
                return self._handle_deposit(message.topics)
        progress = self._topics.get(message.topic)
        if progress is None or not (
            progress.is_joined or (progress.is_entrusted and isinstance(message, Refused))
        ):
            return self._close("unknown_topic")
        match message:
            case Summary():
                return self._comparison.summarised(progress, message)
            case Reconcile():
                return self._comparison.handle_frame(progress, message)
            case Publications():
                progress.unreceipted += 1
                if sum(topic.unreceipted for topic in self._topics.values()) > BATCHES_IN_FLIGHT_MAX:
                    return self._close("too_many_batches")
                return [IngestBatch(progress.topic, message.items, progress.is_root)]
            case Receipt():
                if progress.in_flight == 0:
                    return self._close("unasked_receipt")
                progress.confirmed += progress.sent_sizes.popleft()
                return self._pump()
            case Want():
                return self._wanted(progress, message.ids)
            case Refused():
                progress.refused = message.reason
                progress.queue.clear()
                return self._pump()
            case Introduce():
                output = self._introducing.handle_introduce(progress.topic, message)
                return self._close(output) if isinstance(output, str) else [output]
            case Fetch():
                return self._serve(progress, message.ids)
            case Blocks():
                return self._blocks_came(progress, message.items)

    def _met_relay(self) -> list[Output]:
        if self._peer_is_relay:
            return self._close("second_relay")
        if self._has_peer_announced():
            return self._close("late_relay")  # what is compared must be agreed before it is
        self._peer_is_relay = True
        self._introducing.peer_is_relay()
        entrusted = tuple(progress.topic for progress in self.topics if progress.is_entrusted)
        return [Send(Deposit(entrusted))] if entrusted else []

    def _has_peer_announced(self) -> bool:
        return bool(self._heard) or any(progress.is_joined for progress in self._topics.values())

    def _handle_deposit(self, topics: tuple[TopicKey, ...]) -> list[Output]:
        if not self._is_relay:
            return self._close("no_relay")
        self._deposited += len(topics)
        if self._deposited > TOPIC_COUNT_MAX:
            return self._close("too_many_topics")
        return [OpenTopics(topics)]

    def _ask(self, progress: TopicProgress, ids: tuple[CommitId, ...]) -> list[Output]:
        """Ask for commits, each once on a topic: another may have it, and what is kept under one is not found by another."""
        if not progress.is_joined:
            return []
        room = WANTED_COUNT_MAX - self._asked_count
        wanted = [commit_id for commit_id in dict.fromkeys(ids) if commit_id not in progress.asked][:room]
        progress.asked.update(wanted)
        self._asked_count += len(wanted)
        blind = self._blind[progress.topic]
        parts = (wanted[start : start + WANT_COUNT_MAX] for start in range(0, len(wanted), WANT_COUNT_MAX))
        return [Send(Want(blind, tuple(part))) for part in parts]

    def _wanted(self, progress: TopicProgress, ids: tuple[CommitId, ...]) -> list[Output]:
        """Look up what the peer lacks, one message after the other. A peer asks for an id once, and so do we."""
        self._wanted_count += len(ids)
        if self._wanted_count > WANTED_COUNT_MAX:
            return self._close("too_many_wants")
        progress.wants.append(ids)
        return [FindWanted(progress.topic, ids)] if len(progress.wants) == 1 else []

    def _fetch(self, event: BlocksWanted) -> list[Output]:
        blind = self._blind[event.topic]
        self._topics[blind].fetched.extend(event.ids)
        return [Send(Fetch(blind, event.ids))]

    def _serve(self, progress: TopicProgress, ids: tuple[BlockId, ...]) -> list[Output]:
        is_idle = not progress.served
        progress.served.extend(ids)
        if sum(len(topic.served) for topic in self._topics.values()) > FETCHED_COUNT_MAX:
            return self._close("too_many_fetches")
        return [LoadBlocks(progress.topic, tuple(progress.served))] if is_idle else []

    def _blocks_came(self, progress: TopicProgress, items: tuple[bytes, ...]) -> list[Output]:
        if len(items) > len(progress.fetched):
            return self._close("unasked_blocks")
        came = tuple((progress.fetched.popleft(), item or None) for item in items)
        if any(item is not None and block_id(item) != wanted for wanted, item in came):
            return self._close("wrong_block")
        return [HandOver(progress.topic, came)]

    def _announced(self, message: Announce) -> list[Output]:
        outputs: list[Output] = []
        for announced in message.topics:
            if announced in self._expected:
                progress = self._topics[self._expected[announced]]
                progress.is_joined = True
                outputs += self._open(progress)
            else:
                self._heard.add(announced)
        if len(self._heard) + len(self._topics) > 2 * TOPIC_COUNT_MAX:
            return self._close("too_many_topics")
        return outputs

    def _continue(self, event: Event, progress: TopicProgress) -> list[Output]:
        blind = self._blind[progress.topic]
        match event:
            case SummaryLoaded():
                return self._comparison.summary_loaded(blind, event)
            case PlanLoaded():
                return [*self._comparison.planned(progress, event), *self._pump()]
            case Reconciled():
                return [*self._comparison.reconciled(blind, event), *self._pump()]
            case WantedFound():
                progress.enqueue(event.nums)
                progress.wants.popleft()
                more = [FindWanted(progress.topic, progress.wants[0])] if progress.wants else []
                return [*more, *self._pump()]
            case BatchLoaded():
                return self._batch_loaded(progress, blind, event.items)
            case BlocksLoaded():
                for _ in event.items:
                    progress.served.popleft()
                rest = [LoadBlocks(progress.topic, tuple(progress.served))] if progress.served else []
                return [Send(Blocks(blind, event.items)), *rest]
            case BatchIngested():
                progress.unreceipted -= 1
                progress.received += event.accepted
                progress.dropped += event.dropped
                progress.bodiless += event.bodiless
                outputs: list[Output] = [Send(Receipt(blind))]
                outputs += self._ask(progress, event.wanted)
                if event.refused:
                    outputs.append(Send(Refused(blind, event.refused)))
                return outputs
        raise AssertionError(f"no such event: {event}")

    def _batch_loaded(
        self, progress: TopicProgress, blind: BlindTopic, items: tuple[bytes, ...]
    ) -> list[Output]:
        progress.loading = False
        if progress.refused:
            return self._pump()
        progress.sent += len(items)
        rest = progress.queue[0][max(len(items), 1) :]  # what is no longer there is passed over
        if rest:
            progress.queue[0] = rest
        else:
            progress.queue.popleft()
        if not items:
            return self._pump()
        progress.sent_sizes.append(len(items))
        return [Send(Publications(blind, items)), *self._pump()]

    def _append_accepted(self, event: CommitsAccepted) -> list[Output]:
        blind = self._blind.get(event.topic)
        progress = self._topics.get(blind) if blind else None
        if progress is None or not progress.is_joined:
            return []
        if progress.upto is None:
            progress.early.extend(event.nums)
            return []
        progress.enqueue([num for num in event.nums if num > progress.upto or num < 0])
        return self._pump()

    def _pump(self) -> list[Output]:
        """Ask for batches while the window has room: root branches first, the other topics in turn.

        No topic takes all of it: what another one gets meanwhile goes out at once.
        """
        outputs: list[Output] = []
        ready = [blind for blind in self._turn if self._topics[blind].is_ready]
        if not ready:
            return outputs  # the usual case, also with thousands of topics
        busy = sum(topic.in_flight + topic.loading for topic in self._topics.values())
        for blind in sorted(ready, key=lambda blind: not self._topics[blind].is_root):
            if busy >= BATCHES_IN_FLIGHT_MAX:
                break
            busy += 1
            progress = self._topics[blind]
            progress.loading = True
            outputs.append(LoadBatch(progress.topic, tuple(progress.queue[0][:BATCH_COUNT_MAX])))
            self._turn.remove(blind)
            self._turn.append(blind)
        return outputs

    @staticmethod
    def _close(reason: str) -> list[Output]:
        return [Close(reason)]
