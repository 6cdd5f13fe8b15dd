"""Sync protocol with one peer as a pure state machine: events in, outputs out; no clock, store or network.

Life of a topic on a session: both sides announce it (blinded), both send a summary, each plans what the other lacks,
and streams it in batches; commits accepted later are appended.

    us: Announce ->   <- Announce :them      topic joined
    us: Summary  ->   <- Summary  :them      LoadPlan
    us: Publications -> ... <- Receipt :them

What follows what stands in tables (`protocol.machines`). This module takes each event to the part that is about it:
`protocol.comparison`, `protocol.transfer`, `protocol.introducing`, `protocol.circuits`, `protocol.meeting`,
`protocol.deposits`, `protocol.accounts` or `protocol.punching`. The shell (`node.sync.connection`) performs the Load and
Take outputs and reports back with the matching event. Whatever a peer does wrong ends in one output, `Close`, with a stable
reason; after it the machine is dead.
"""

from typing import Final

from protocol.accounts import Accounts
from protocol.circuits import SessionCircuits
from protocol.comparison import Comparison
from protocol.deposits import Deposits
from protocol.features import MANY_TOPICS, PRESENCE, WIDE_CIRCUITS
from protocol.hashing import announced_topic, blind_topic
from protocol.ids import AnnouncedTopic, BlindTopic, SessionId, TopicKey
from protocol.introducing import Introducing
from protocol.limits.peers import TOPIC_COUNT_MANY_MAX, TOPIC_COUNT_MAX
from protocol.machines.conversation import (
    FEATURES,
    INTRODUCTIONS,
    MESSAGES,
    RELAY,
    About,
    Early,
    EarlyWord,
    Pass,
    Word,
)
from protocol.machines.table import PeerFault
from protocol.meeting import Meetings
from protocol.messages import (
    AccountJoined,
    Announce,
    Blocks,
    CircuitClose,
    CircuitCredit,
    CircuitData,
    CircuitOpen,
    Circuits,
    Deposit,
    DepositFiles,
    Features,
    Fetch,
    FoundBodies,
    Introduce,
    JoinAccount,
    ListedFiles,
    ListFiles,
    Meet,
    Message,
    Nodes,
    PresenceSaid,
    Publications,
    PunchAddresses,
    PunchNow,
    Receipt,
    Reconcile,
    Refused,
    Seen,
    SettledFiles,
    Summary,
    Want,
    WantBodies,
)
from protocol.presence import PresencePlace
from protocol.punching import Punching
from protocol.session_events import (
    AccountSettled,
    AccountWanted,
    BatchIngested,
    BatchLoaded,
    BlocksLoaded,
    BlocksWanted,
    BodiesWanted,
    CheckDue,
    CircuitAsked,
    CircuitEnded,
    CircuitGranted,
    CircuitSent,
    CircuitsTaken,
    CommitsAccepted,
    CommitsReleased,
    CommitsWanted,
    Event,
    FileListLoaded,
    FileListWanted,
    FileSettled,
    FilesOffered,
    MeetingWanted,
    MessageReceived,
    NodesFound,
    PeersFound,
    PlanLoaded,
    PresenceTold,
    PunchAnswered,
    PunchWanted,
    Reconciled,
    SummaryLoaded,
    TopicFollowed,
    TopicsRefused,
    WantedFound,
)
from protocol.session_outputs import (
    AddressSeen,
    Close,
    MeetingPossible,
    OpenTopics,
    Output,
    PresenceSeen,
    Send,
)
from protocol.topic_progress import TopicProgress
from protocol.transfer import Transfer

_EARLY: Final = {Word.FEATURES: FEATURES, Word.RELAY: RELAY, Word.INTRODUCTIONS: INTRODUCTIONS}


class Session:
    """The machine. `handle` is its only entrance.

    A relay (`is_relay`) keeps topics that the peer names to it. A node that `introduces` tells peers of each other.
    """

    def __init__(
        self, session_id: SessionId, *, is_dialer: bool, is_relay: bool = False, introduces: bool = False
    ) -> None:
        self._session_id = session_id
        self._introducing = Introducing(takes_part=introduces)
        self.circuits = SessionCircuits(is_dialer=is_dialer)
        """Circuits on this session; events of theirs go through `handle` like all others."""
        self._meetings = Meetings()
        self._accounts = Accounts(is_relay=is_relay)
        self._deposits = Deposits(is_relay=is_relay)
        self._punching = Punching(is_dialer=is_dialer)
        self._is_dialer = is_dialer
        self._is_relay = is_relay
        self._early = dict.fromkeys(_EARLY, Early.UNSAID)
        self.peer_features: frozenset[str] | None = None
        """What the peer has said that it knows; None: it has not said."""
        self._deposited = 0
        self._topics: dict[BlindTopic, TopicProgress] = {}  # by blinded topic
        self._transfer = Transfer(self._topics)
        self._comparison = Comparison(self._topics, self._transfer)
        self._blind: dict[TopicKey, BlindTopic] = {}  # followed topic -> blinded topic
        self._expected: dict[
            AnnouncedTopic, BlindTopic
        ] = {}  # how the peer would announce a followed topic -> blinded topic
        self._heard: set[AnnouncedTopic] = set()  # announced by the peer, and not followed here
        self._changed: set[TopicKey] = set()
        self._is_dead = False
        self.joined_count = 0
        """Topics that were joined so far."""

    @property
    def peer_is_relay(self) -> bool:
        """Whether the peer keeps topics for others."""
        return self._early[Word.RELAY] is Early.SAID

    @property
    def compares_publications(self) -> bool:
        """Whether sets of publications are compared instead of commits: where one side is a relay, which opens none."""
        return self._is_relay or self.peer_is_relay

    @property
    def topic_count_max(self) -> int:
        """How many topics this side may announce, by what the peer has said until now."""
        knows = self.peer_features is not None and MANY_TOPICS in self.peer_features
        if knows and self.joined_count and not self.compares_publications:
            return TOPIC_COUNT_MANY_MAX
        return TOPIC_COUNT_MAX

    @property
    def settling_count(self) -> int:
        """Topics whose comparison is not over."""
        return self._comparison.settling_count

    @property
    def topics(self) -> list[TopicProgress]:
        """Progress of the topics this node follows."""
        return list(self._topics.values())

    def progress_of(self, topic: TopicKey) -> TopicProgress | None:
        """The same of one topic. In one step: callers ask it for each of many topics of each of many peers."""
        blind = self._blind.get(topic)
        return None if blind is None else self._topics[blind]

    def take_changed(self) -> set[TopicKey]:
        """Topics whose progress may have changed since the last call: of thousands, most have not."""
        changed, self._changed = self._changed, set()
        return changed

    def has_joined(self, topic: TopicKey) -> bool:
        """Whether both sides follow a topic."""
        progress = self.progress_of(topic)
        return progress is not None and progress.is_joined

    def has_room_for_bodies(self, count: int) -> bool:
        """Whether the peer may be asked for so many bodies more on this session."""
        return self._transfer.has_room_for_bodies(count)

    def takes_presence(self, topic: TopicKey) -> bool:
        """Whether the peer may be told who has the text of a topic open: it has joined that, knows how, and is no relay."""
        knows = self.peer_features is not None and PRESENCE in self.peer_features
        return knows and not self.peer_is_relay and self.has_joined(topic)

    def presence_place(self, topic: TopicKey, *, by_us: bool) -> PresencePlace:
        """Where one side says so: what is sealed for this place opens nowhere else."""
        by_dialer = self._is_dialer is by_us
        return PresencePlace(announced_topic(topic, self._session_id, by_dialer=by_dialer))

    def handle(self, event: Event) -> list[Output]:
        """What to do about an event, in order."""
        if self._is_dead:
            return []
        try:
            outputs = self._handle(event)
        except PeerFault as fault:
            self._is_dead = True
            return [Close(fault.reason)]
        self._note_changed(event, outputs)
        return outputs

    def _note_changed(self, event: Event, outputs: list[Output]) -> None:
        """An event names one topic. For each other topic that it changes, there is an output."""
        if isinstance(event, MessageReceived):
            progress = self._topics.get(getattr(event.message, "topic", None))  # type: ignore[arg-type]  # None is no key
            topics = [None if progress is None else progress.topic]
        else:
            topics = [getattr(event, "topic", None)]
        topics += [getattr(output, "topic", None) for output in outputs]
        self._changed.update(topic for topic in topics if topic in self._blind)

    def _handle(self, event: Event) -> list[Output]:
        match event:
            case TopicFollowed():
                return self._follow(event)
            case MessageReceived():
                return self._receive(event.message)
            case CommitsAccepted():
                if not self.has_joined(event.topic):
                    return []
                return self._transfer.accepted(self._topics[self._blind[event.topic]], event.nums)
            case CommitsReleased(topic, count):
                if self.has_joined(topic):
                    self._topics[self._blind[topic]].received += count
                return []
            case CheckDue():
                return [*self._comparison.check(), *self._introducing.check()]
            case PeersFound():
                return self._introducing.found(self._blind[event.topic], event)
            case BlocksWanted():
                return self._transfer.fetch(self._blind[event.topic], event.ids)
            case CommitsWanted(topic, ids):
                return self._transfer.ask(self._blind[topic], ids)
            case BodiesWanted(topic, ids):
                return self._transfer.ask_bodies(self._blind[topic], ids)
            case TopicsRefused(topics, reason):
                blinds = [blind_topic(topic, self._session_id) for topic in topics]
                return [Send(Refused(blind, reason)) for blind in blinds]
            case CircuitsTaken():
                outputs = self.circuits.take()
                for progress in self.topics:
                    outputs += self._may_meet(progress)
                return outputs
            case MeetingWanted(topic):
                return self._meetings.meet(self._blind[topic], topic)
            case NodesFound(topic, nodes):
                return self._meetings.found(self._blind[topic], topic, nodes)
            case PresenceTold(topic, box):
                return [Send(PresenceSaid(self._blind[topic], box))] if self.takes_presence(topic) else []
            case FileListWanted() | FilesOffered() | FileListLoaded() | FileSettled():
                return self._deposits.happen(self._blind[event.topic], event)
            case AccountWanted() | AccountSettled():
                return self._accounts.happen(event)
            case CircuitAsked() | CircuitGranted() | CircuitSent() | CircuitEnded():
                return self.circuits.happen(event)
            case PunchWanted() | PunchAnswered():
                return self._punching.happen(event)
            case SummaryLoaded():
                return self._comparison.summary_loaded(self._blind[event.topic], event)
            case PlanLoaded():
                return [
                    *self._comparison.planned(self._blind[event.topic], event),
                    *self._transfer.pump(),
                ]
            case Reconciled():
                return [
                    *self._comparison.reconciled(self._blind[event.topic], event),
                    *self._transfer.pump(),
                ]
            case WantedFound():
                return self._transfer.wanted_found(self._blind[event.topic], event)
            case BatchLoaded():
                return self._transfer.loaded(self._blind[event.topic], event)
            case BlocksLoaded():
                return self._transfer.blocks_loaded(self._blind[event.topic], event)
            case BatchIngested():
                return self._transfer.ingested(self._blind[event.topic], event)

    # --- topics ---

    def said_of(self, topic: TopicKey) -> AnnouncedTopic:
        """How the peer announces a topic, if it follows it."""
        return announced_topic(topic, self._session_id, by_dialer=not self._is_dialer)

    def has_heard_of(self, topic: TopicKey) -> bool:
        """Whether the peer has announced a topic that this side has not announced."""
        return self.said_of(topic) in self._heard

    def _follow(self, event: TopicFollowed) -> list[Output]:
        if event.topic in self._blind:
            return []
        blind = blind_topic(event.topic, self._session_id)
        self._blind[event.topic] = blind
        theirs = self.said_of(event.topic)
        self._expected[theirs] = blind
        self._topics[blind] = TopicProgress(event.topic, event.is_own, event.is_entrusted)
        entrusted = [Send(Deposit((event.topic,)))] if self.peer_is_relay and event.is_entrusted else []
        ours = announced_topic(event.topic, self._session_id, by_dialer=self._is_dialer)
        outputs: list[Output] = [Send(Announce((ours,))), *entrusted]
        if theirs in self._heard:
            self._heard.discard(theirs)
            outputs += self._join(blind)
        return outputs

    def _join(self, blind: BlindTopic) -> list[Output]:
        progress = self._topics[blind]
        is_first = not progress.is_joined
        outputs = self._comparison.joined(blind)
        if not is_first:
            return outputs
        self.joined_count += 1
        self._transfer.joined(progress)
        return [*outputs, *self._introducing.joined(progress), *self._may_meet(progress)]

    def _may_meet(self, progress: TopicProgress) -> list[Output]:
        is_asked = progress.is_joined and progress.is_own and progress.is_entrusted
        if not (is_asked and self.peer_is_relay and self.circuits.are_agreed):
            return []
        return [MeetingPossible(progress.topic)]

    def _announced(self, message: Announce) -> list[Output]:
        outputs: list[Output] = []
        for announced in message.topics:
            if announced in self._expected:
                outputs += self._join(self._expected[announced])
            else:
                self._heard.add(announced)
        if len(self._heard) > self._heard_count_max():
            raise PeerFault("too_many_topics")
        if message.topics:
            for word, table in _EARLY.items():
                self._early[word] = table.find(self._early[word], EarlyWord.ANNOUNCEMENT).to
        return outputs

    def _heard_count_max(self) -> int:
        """How many topics may be announced that are not followed here. A stranger has joined none, and announces fewer."""
        if self.joined_count and not self.compares_publications:
            return TOPIC_COUNT_MANY_MAX
        return 2 * TOPIC_COUNT_MAX - min(len(self._topics), TOPIC_COUNT_MAX)

    # --- messages ---

    def _receive(self, message: Message) -> list[Output]:
        word = Word(message.__struct_config__.tag)
        blind = getattr(message, "topic", None)
        progress = self._topics.get(blind) if blind is not None else None
        about = (
            About.NOTHING if blind is None else progress.standing if progress is not None else About.FOREIGN
        )
        outputs: list[Output] = []
        for what in MESSAGES.find(about, word).outputs:
            outputs += self._pass(what, message)
        return outputs

    def _pass(self, what: Pass, message: Message) -> list[Output]:
        """Which message is passed where follows from the table."""
        match what, message:
            case Pass.JOIN, Announce():
                return self._announced(message)
            case Pass.EARLY_FEATURES, Features(features):
                self.peer_features = frozenset(features)
                self.circuits.is_wide = WIDE_CIRCUITS in features
                return self._agree(Word.FEATURES)
            case Pass.EARLY_RELAY, _:
                return self._agree(Word.RELAY)
            case Pass.EARLY_INTRODUCTIONS, _:
                return self._agree(Word.INTRODUCTIONS)
            case Pass.OPEN_TOPICS, Deposit(topics):
                return self._open_topics(topics)
            case Pass.COMPARE, Summary():
                return self._comparison.summarised(message)
            case Pass.COMPARE, Reconcile():
                return self._comparison.handle_frame(message)
            case Pass.INGEST, Publications():
                return self._transfer.received(message)
            case Pass.SEND, Receipt():
                return self._transfer.receipted(message)
            case Pass.SEND, Refused():
                return self._transfer.refused(message)
            case Pass.SERVE, Want() | WantBodies():
                return self._transfer.wanted(message)
            case Pass.SERVE, Fetch():
                return self._transfer.fetched(message)
            case Pass.NOTE_BODIES, FoundBodies():
                return self._transfer.bodies_found(message)
            case Pass.LEARN, Introduce():
                return self._introducing.handle_introduce(self._topics[message.topic].topic, message)
            case Pass.NOTE, Seen(address):
                return [AddressSeen(address)]
            case Pass.PUNCH, PunchAddresses() | PunchNow():
                return self._punching.receive(message)
            case Pass.TAKE_CIRCUITS, Circuits():
                return self.circuits.receive(message)
            case Pass.CARRY, CircuitOpen() | CircuitData() | CircuitCredit() | CircuitClose():
                return self.circuits.receive(message)
            case Pass.MEET, Meet(topic):
                return self._meetings.peer_meets(
                    self._topics[topic].topic, is_agreed=self._is_relay and self.circuits.are_agreed
                )
            case Pass.LEARN_NODES, Nodes(topic):
                return self._meetings.told(self._topics[topic].topic, message)
            case Pass.SHOW, PresenceSaid(topic, box):
                return [PresenceSeen(self._topics[topic].topic, box)]
            case Pass.LIST_FILES | Pass.KEEP_FILES, ListFiles() | DepositFiles():
                return self._deposits.asked(self._topics[message.topic].topic, message)
            case Pass.NOTE_FILES | Pass.SETTLE_FILES, ListedFiles() | SettledFiles():
                return self._deposits.answered(self._topics[message.topic].topic, message)
            case Pass.JOIN_ACCOUNT | Pass.NOTE_ACCOUNT, JoinAccount() | AccountJoined():
                return self._accounts.receive(message)
            case Pass.HAND_OVER, Blocks():
                return self._transfer.blocks_came(message)
        raise AssertionError(f"{what.name} is not done about {message}")

    def _agree(self, word: Word) -> list[Output]:
        """The peer says a word that it may say before it announces topics."""
        step = _EARLY[word].find(self._early[word], EarlyWord.WORD)
        self._early[word] = step.to
        match word:
            case Word.INTRODUCTIONS:
                self._introducing.peer_takes_part()
            case Word.RELAY:
                self._introducing.peer_is_relay()
                entrusted = tuple(progress.topic for progress in self.topics if progress.is_entrusted)
                return [Send(Deposit(entrusted))] if entrusted else []
        return []

    def _open_topics(self, topics: tuple[TopicKey, ...]) -> list[Output]:
        if not self._is_relay:
            raise PeerFault("no_relay")
        self._deposited += len(topics)
        if self._deposited > TOPIC_COUNT_MAX:
            raise PeerFault("too_many_topics")
        return [OpenTopics(topics)]
