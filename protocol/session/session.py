"""Sync protocol with one peer as a pure state machine: events in, outputs out; no clock, store or network.

Life of a topic on a session: both sides announce it (blinded), both send a summary, each plans what the other lacks,
and streams it in batches; commits accepted later are appended.

    us: Announce ->   <- Announce :them      topic joined
    us: Summary  ->   <- Summary  :them      LoadPlan
    us: Publications -> ... <- Receipt :them

`MESSAGES` and `EVENTS` at the end are the way in: when a message is legal, and what handles it. Rules of a subject are in a
module of its own, states in tables of `protocol.session.machines`. The shell (`node.sync.connection`) performs Load and Take
outputs, and reports back. A fault of the peer ends in one `Close` with a stable reason; after it the machine is dead.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from protocol.crypto.hashing import announced_topic, blind_topic
from protocol.ids import AnnouncedTopic, BlindTopic, SessionId, TopicKey
from protocol.limits.peers import TOPIC_COUNT_MAX, TOPICS_SETTLING_MAX
from protocol.session import events, messages
from protocol.session.accounts import Accounts
from protocol.session.announcements import Announcements
from protocol.session.circuits import SessionCircuits
from protocol.session.comparison import Comparison
from protocol.session.deposits import Deposits
from protocol.session.earlier import EarlierEpochs
from protocol.session.features import PRESENCE
from protocol.session.introducing import Introducing
from protocol.session.machines.conversation import (
    FEATURES,
    INTRODUCTIONS,
    RELAY,
    HandshakeEvent,
    HandshakeMessage,
    TopicStanding,
)
from protocol.session.machines.table import PeerFault
from protocol.session.outputs import (
    AddressSeen,
    Close,
    OpenTopics,
    Output,
    PresenceSeen,
    RendezvousPossible,
    Send,
)
from protocol.session.presence import PresencePlace
from protocol.session.punching import Punching
from protocol.session.rendezvous import Rendezvous
from protocol.session.room import Room
from protocol.session.topic_progress import TopicProgress
from protocol.session.transfer import Transfer
from protocol.session.wanting import Wanting
from protocol.session.windows import Windows

M = TypeVar("M")
_HANDSHAKE: Final = {
    messages.Features: FEATURES,
    messages.Relay: RELAY,
    messages.Introductions: INTRODUCTIONS,
}


class Session:
    """Session machine. `handle` is its only entrance; its parts are for the tables below alone.

    A relay (`is_relay`) keeps topics that the peer names to it. A node that `introduces` tells peers of each other.
    """

    def __init__(
        self, session_id: SessionId, *, is_dialer: bool, is_relay: bool = False, introduces: bool = False
    ) -> None:
        self._session_id = session_id
        self.introducing = Introducing(takes_part=introduces)
        self.circuits = SessionCircuits(is_dialer=is_dialer)
        self.rendezvous = Rendezvous()
        self.accounts = Accounts(is_relay=is_relay)
        self.deposits = Deposits(is_relay=is_relay)
        self.punching = Punching(is_dialer=is_dialer)
        self.wanting = Wanting()
        self.transfer = Transfer(self.wanting)
        self.windows = Windows()
        self._room = Room()
        # Not by a method of the session: in a circle all that the peer has sent would wait for Python's collector.
        self.comparison = Comparison(self.transfer, self._room.settle)
        self.earlier = EarlierEpochs(session_id)
        self.is_dialer = is_dialer
        self.is_relay = is_relay
        self._handshake = dict.fromkeys(_HANDSHAKE, HandshakeMessage.UNSAID)
        self.peer_features: frozenset[str] | None = None
        """Features that the peer has said to know; None: it has not said."""
        self._announced = Announcements(session_id, is_dialer=is_dialer)
        self._changed: set[TopicKey] = set()
        self._is_dead = False
        self.joined_count = 0
        """Topics that were joined so far."""

    @property
    def peer_is_relay(self) -> bool:
        """Return True if the peer keeps topics for others."""
        return self._handshake[messages.Relay] is HandshakeMessage.SAID

    @property
    def compares_publications(self) -> bool:
        """Return True if publications are compared instead of commits: one side is a relay, which opens none."""
        return self.is_relay or self.peer_is_relay

    @property
    def has_room(self) -> bool:
        """Return True if one topic more may be joined now: those that settle make room for others."""
        if not self._room.is_free:
            return False
        is_few = len(self._announced.by_key) < TOPIC_COUNT_MAX
        return is_few or self.comparison.settling_count < TOPICS_SETTLING_MAX

    def has_room_for(self, count: int) -> bool:
        """Return True if this many topics can be joined now and none has to wait."""
        return self._room.has_for(count) and len(self._announced.by_key) + count <= TOPIC_COUNT_MAX

    @property
    def may_announce(self) -> bool:
        """Return True if this side may announce one topic more now that the peer has not announced.

        A peer that has joined none may be a stranger, and is told of TOPIC_COUNT_MAX topics in a turn (`take_turn`).
        """
        return self.has_room and (len(self._announced.by_key) < TOPIC_COUNT_MAX or self.joined_count > 0)

    @property
    def has_turns(self) -> bool:
        """Return True if the peer is a relay, or has announced a topic: else it follows none, or may turn out to be one."""
        return self._handshake[messages.Relay] is not HandshakeMessage.UNSAID

    @property
    def settling_count(self) -> int:
        """Count the topics whose comparison is not over."""
        return self.comparison.settling_count

    @property
    def topics(self) -> list[TopicProgress]:
        """List the progress of the topics that this node follows."""
        return list(self._announced.by_blind.values())

    def progress_of(self, topic: TopicKey) -> TopicProgress | None:
        """Return the progress of one topic; None where this side has not announced it."""
        return self._announced.by_key.get(topic)

    def take_changed(self) -> set[TopicKey]:
        """Return topics whose progress may have changed since the last call: of thousands, most have not."""
        changed, self._changed = self._changed, set()
        return changed

    def has_joined(self, topic: TopicKey) -> bool:
        """Return True if both sides follow a topic."""
        progress = self._announced.by_key.get(topic)
        return progress is not None and progress.is_joined

    def takes_presence(self, topic: TopicKey) -> bool:
        """Return True if the peer may be told who has the text of a topic open."""
        knows = self.peer_features is not None and PRESENCE in self.peer_features
        return knows and not self.peer_is_relay and self.has_joined(topic)

    def presence_place(self, topic: TopicKey, *, by_us: bool) -> PresencePlace:
        """Return the place that binds one side's presences to this topic and connection."""
        return PresencePlace(announced_topic(topic, self._session_id, by_dialer=self.is_dialer is by_us))

    def handle(self, event: events.Event) -> list[Output]:
        """Return what to do about an event, in order."""
        if self._is_dead:
            return []
        try:
            outputs = EVENTS[type(event)](self, event)
        except PeerFault as fault:
            self._is_dead = True
            return [Close(fault.reason)]
        self._note_changed(event, outputs)
        return outputs

    def _note_changed(self, event: events.Event, outputs: list[Output]) -> None:
        """Note topics that may have changed: that of the event, and those of its outputs."""
        if isinstance(event, events.MessageReceived):
            progress = self.find_topic(event.message)
            topics = [None if progress is None else progress.topic]
        else:
            topics = [getattr(event, "topic", None)]
        topics += [getattr(output, "topic", None) for output in outputs]
        self._changed.update(topic for topic in topics if topic in self._announced.by_key)

    def receive(self, event: events.MessageReceived) -> list[Output]:
        """Handle a message. Raises PeerFault if its topic's state does not allow it."""
        message = event.message
        row = MESSAGES[type(message)]
        if not row.standings:
            return row.handler(self, message)
        progress = self.find_topic(message)
        standing = TopicStanding.FOREIGN if progress is None else progress.standing
        if standing not in row.standings:
            raise PeerFault("unknown_topic")
        return row.handler(self, progress, message)

    def find_topic(self, message: messages.Message) -> TopicProgress | None:
        """Return the topic that a message names; None without one, or for one that is not followed here."""
        blind: BlindTopic | None = getattr(message, "topic", None)
        return None if blind is None else self._announced.by_blind.get(blind)

    # --- topics ---

    def peer_name_of(self, topic: TopicKey) -> AnnouncedTopic:
        """Return the name by which the peer announces a topic, if it follows it."""
        return self._announced.peer_name_of(topic)

    def has_heard_of(self, topic: TopicKey) -> bool:
        """Return True if the peer has announced a topic that this side has not."""
        return self._room.has_heard(self.peer_name_of(topic))

    def follow(self, event: events.TopicFollowed) -> list[Output]:
        """Announce a topic, and join it where the peer has announced it."""
        if event.topic in self._announced.by_key:
            return []
        outputs = [self._announce(progress := self._announced.place(event))]
        if self.peer_is_relay and event.is_entrusted:
            self._room.take((event.topic,))
            outputs.append(Send(messages.Deposit((event.topic,))))
        if self._room.pop_heard(self.peer_name_of(event.topic)):
            outputs += self._join(progress)
        return outputs

    def take_turn(self, _: events.RoomWanted) -> list[Output]:
        """Begin rounds of topics in doubt, and put by those that the peer has not announced, for others to have a turn."""
        if self.has_turns and len(self._announced.by_key) >= TOPIC_COUNT_MAX:
            self._announced.put_by(are_entrusted=self.peer_is_relay)
        return self.comparison.begin_rounds(self._announced.by_blind.values())

    def _announce(self, progress: TopicProgress) -> Output:
        return Send(messages.Announce((self._announced.say(progress),)))

    def _join(self, progress: TopicProgress) -> list[Output]:
        is_first = not progress.is_joined
        if is_first:
            self._room.take((progress.topic,))
        outputs = self.comparison.joined(progress)
        if not is_first:
            return outputs
        self.joined_count += 1
        if not self.compares_publications:
            outputs += self.earlier.joined(progress)
        return [*outputs, *self.introducing.joined(progress), *self._offer_rendezvous(progress)]

    def _offer_rendezvous(self, progress: TopicProgress) -> list[Output]:
        is_asked = progress.is_joined and progress.is_own and progress.is_entrusted
        is_possible = is_asked and self.peer_is_relay and self.circuits.are_agreed
        return [RendezvousPossible(progress.topic)] if is_possible else []

    def take_circuits(self, _: events.CircuitsTaken) -> list[Output]:
        """Take circuits from now on."""
        outputs = self.circuits.take()
        for progress in self.topics:
            outputs += self._offer_rendezvous(progress)
        return outputs

    def accept_commits(self, event: events.CommitsAccepted) -> list[Output]:
        """Queue commits of a joined topic for the peer."""
        if not self.has_joined(event.topic):
            return []
        return self.transfer.accepted(self._announced.by_key[event.topic], event.nums)

    def release_commits(self, event: events.CommitsReleased) -> list[Output]:
        """Count commits that the peer had sent and that had waited."""
        if self.has_joined(event.topic):
            self._announced.by_key[event.topic].received += event.count
        return []

    def tell_presence(self, event: events.PresenceTold) -> list[Output]:
        """Say a presence, if the peer knows what that is."""
        if not self.takes_presence(event.topic):
            return []
        return [Send(messages.PresenceSaid(self._announced.by_key[event.topic].blind, event.box))]

    def refuse_topics(self, event: events.TopicsRefused) -> list[Output]:
        """Tell the peer which topics this relay does not keep, and why. Nothing more is sent on those that it has kept."""
        self._room.settle(event.topics)
        outputs: list[Output] = []
        for topic in event.topics:
            said = messages.Refused(blind_topic(topic, self._session_id), event.reason)
            outputs.append(Send(said))
            progress = self._announced.by_key.get(topic)
            if progress is not None and progress.is_joined:
                outputs += self.handle_refused(progress, said)
        return outputs

    def check(self, event: events.CheckDue) -> list[Output]:
        """Look whether topics that differed are equal now, and for peers to introduce; allow more questions."""
        self.windows.check()
        said = [*self.introducing.check(), *self.wanting.check(), *self.rendezvous.check()]
        return [*self.comparison.check(self.topics, is_quiet=event.is_quiet), *said]

    # --- messages that are about no one topic ---

    def handle_announce(self, message: messages.Announce) -> list[Output]:
        """Join topics that are followed here, and note the others."""
        outputs: list[Output] = []
        for announced in message.topics:
            progress = self._announced.find_expected(announced)
            if progress is None:
                self._room.hear(announced)
                continue
            if not progress.is_joined and self._announced.count_said_since(progress) >= TOPIC_COUNT_MAX:
                outputs.append(self._announce(progress))  # the peer may have forgotten it
            outputs += self._join(progress)
        self._room.forget_heard()
        if message.topics:
            for kind, machine in _HANDSHAKE.items():
                self._handshake[kind] = machine.find(self._handshake[kind], HandshakeEvent.ANNOUNCEMENT).to
        return outputs

    def _agree(self, kind: type[messages.Features | messages.Relay | messages.Introductions]) -> None:
        self._handshake[kind] = _HANDSHAKE[kind].find(self._handshake[kind], HandshakeEvent.MESSAGE).to

    def handle_features(self, message: messages.Features) -> list[Output]:
        """Note what the peer knows."""
        self._agree(messages.Features)
        self.peer_features = frozenset(message.features)
        return []

    def handle_relay(self, _: messages.Relay) -> list[Output]:
        """Note that the peer is a relay, and ask it to keep topics."""
        self._agree(messages.Relay)
        self.introducing.peer_is_relay()
        entrusted = tuple(progress.topic for progress in self.topics if progress.is_entrusted)
        self._room.take(entrusted)
        return [Send(messages.Deposit(entrusted))] if entrusted else []

    def handle_introductions(self, _: messages.Introductions) -> list[Output]:
        """Note that the peer takes introductions."""
        self._agree(messages.Introductions)
        self.introducing.peer_takes_part()
        return []

    def handle_deposit(self, message: messages.Deposit) -> list[Output]:
        """Ask the shell to follow topics that the peer wants kept."""
        if not self.is_relay:
            raise PeerFault("no_relay")
        known = (self._announced.by_key.get(topic) for topic in message.topics)
        fresh = (
            one for one, here in zip(message.topics, known, strict=True) if not (here and here.has_settled)
        )
        self._room.deposit(fresh)
        return [OpenTopics(message.topics)]

    def handle_refused(self, progress: TopicProgress, message: messages.Refused) -> list[Output]:
        """Stop sending on a topic, which makes room for others."""
        progress.has_settled = True
        self._room.settle((progress.topic,))
        return self.transfer.refused(progress, message)

    def note_ingested(self, progress: TopicProgress, event: events.BatchIngested) -> list[Output]:
        """Tell the session that a batch is stored. If this relay takes no more of the topic, other topics get its
        room."""
        if event.refused:
            progress.has_settled = True
            self._room.settle((progress.topic,))
        return self.transfer.ingested(progress, event)

    def handle_goodbye(self, _: messages.Goodbye) -> list[Output]:
        """End the session: the peer has left."""
        raise PeerFault("peer_left")


@dataclass(frozen=True, slots=True)
class MessageRow:
    """Row of `MESSAGES`. `does` and `faults` are for the reference page and the tests."""

    standings: frozenset[TopicStanding]
    """How its topic may stand; empty: the message names no topic, and may always be said."""
    does: str
    handler: Callable[..., list[Output]]
    faults: tuple[str, ...]
    """Faults of the peer that the handler itself finds, beyond those of the machine that `does` names."""


def _plain(
    kind: type[M], does: str, handler: Callable[[Session, M], list[Output]], *faults: str
) -> tuple[type[Any], MessageRow]:
    """Make the row of a message that is about no one topic."""
    return kind, MessageRow(frozenset(), does, handler, faults)


def _joined(
    kind: type[M],
    does: str,
    handler: Callable[[Session, TopicProgress, M], list[Output]],
    *faults: str,
    also: frozenset[TopicStanding] = frozenset(),
) -> tuple[type[Any], MessageRow]:
    """Make the row of a message about a topic that both sides have announced."""
    return kind, MessageRow(also | {TopicStanding.JOINED}, does, handler, faults)


_SERVE: Final = "*Answering want1, want-bodies1 and fetch1*"
_CIRCUIT: Final = "*A circuit on one session*"

MESSAGES: Final[Mapping[type[messages.Message], MessageRow]] = dict(
    (
        _plain(messages.KeepAlive, "nothing", lambda s, m: []),
        _plain(messages.Goodbye, "end the session", Session.handle_goodbye, "peer_left"),
        _plain(messages.Features, "*Saying features1*", Session.handle_features),
        _plain(messages.Relay, "*Saying relay2*", Session.handle_relay),
        _plain(messages.Introductions, "*Saying introductions1*", Session.handle_introductions),
        _plain(messages.Announce, "join topics that both follow, note the others", Session.handle_announce),
        _plain(
            messages.Deposit,
            "follow the topics, where that may be",
            Session.handle_deposit,
            "no_relay",
            "too_many_topics",
        ),
        _plain(
            messages.JoinAccount,
            "see whose link it is, and say `account-joined1`",
            lambda s, m: s.accounts.handle_join(m),
            "no_relay",
            "too_many_account_links",
        ),
        _plain(
            messages.AccountJoined,
            "note what the account may keep there",
            lambda s, m: s.accounts.handle_joined(m),
            "unasked_account",
        ),
        _plain(messages.Seen, "note where the peer sees this node", lambda s, m: [AddressSeen(m.address)]),
        _plain(messages.PunchAddresses, "*Dialing at one moment*", lambda s, m: s.punching.handle_punch(m)),
        _plain(messages.PunchNow, "*Dialing at one moment*", lambda s, m: s.punching.handle_now(m)),
        _plain(messages.Circuits, "*Saying circuits1*", lambda s, m: s.circuits.handle_circuits(m)),
        _plain(messages.CircuitOpen, _CIRCUIT, lambda s, m: s.circuits.handle(m)),
        _plain(messages.CircuitData, _CIRCUIT, lambda s, m: s.circuits.handle(m)),
        _plain(messages.CircuitCredit, _CIRCUIT, lambda s, m: s.circuits.handle(m)),
        _plain(messages.CircuitClose, _CIRCUIT, lambda s, m: s.circuits.handle(m)),
        _joined(
            messages.Summary, "*Comparison of a topic*", lambda s, topic, m: s.comparison.summarised(topic, m)
        ),
        _joined(
            messages.Earlier,
            "say `earlier2`, and announce what rests in parts that differ",
            lambda s, topic, m: s.earlier.heard(topic, m),
            "unasked_earlier",
        ),
        _joined(
            messages.Reconcile,
            "*Comparison of a topic*",
            lambda s, topic, m: s.comparison.handle_frame(topic, m),
        ),
        _joined(
            messages.Publications,
            "verify and store the batch, then say `receipt1`",
            lambda s, topic, m: s.transfer.received(topic, m),
            "too_many_batches",
        ),
        _joined(messages.Receipt, "*Sending on a topic*", lambda s, topic, m: s.transfer.receipted(topic, m)),
        # A relay says so of a topic that it does not keep, which cannot be joined then.
        _joined(
            messages.Refused,
            "*Sending on a topic*",
            Session.handle_refused,
            also=frozenset({TopicStanding.ENTRUSTED}),
        ),
        _joined(messages.Want, _SERVE, lambda s, topic, m: s.transfer.wanted(topic, m)),
        _joined(messages.WantBodies, _SERVE, lambda s, topic, m: s.transfer.wanted(topic, m)),
        _joined(
            messages.FoundBodies,
            "note how many of the bodies are to come",
            lambda s, topic, m: s.wanting.bodies_found(topic, m),
            "unasked_bodies",
        ),
        _joined(messages.Keeps, "note whose bodies the peer keeps", lambda s, t, m: t.note_keeps(m)),
        _joined(messages.WantWindow, "answer", lambda s, t, m: s.windows.wanted(t, m), "too_many_windows"),
        _joined(messages.Window, "keep it apart", lambda s, t, m: s.windows.came(t, m), "unasked_window"),
        _joined(messages.Fetch, _SERVE, lambda s, topic, m: s.transfer.fetched(topic, m)),
        _joined(
            messages.Blocks,
            "hand the blocks to who asked for them",
            lambda s, topic, m: s.transfer.blocks_came(topic, m),
            "unasked_blocks",
            "wrong_block",
        ),
        _joined(
            messages.ListFiles,
            "say `listed-files1`",
            lambda s, topic, m: s.deposits.handle_list(topic, m),
            "no_relay",
            "too_many_lists",
        ),
        _joined(
            messages.ListedFiles,
            "note which files the peer keeps",
            lambda s, topic, m: s.deposits.handle_listed(topic, m),
            "unasked_files",
        ),
        _joined(
            messages.DepositFiles,
            "fetch the files' blocks, keep them, and say `settled-files1`",
            lambda s, topic, m: s.deposits.handle_deposit(topic, m),
            "no_relay",
            "too_many_deposits",
        ),
        _joined(
            messages.SettledFiles,
            "note which files the peer keeps now, or why not",
            lambda s, topic, m: s.deposits.handle_settled(topic, m),
            "unasked_files",
        ),
        _joined(
            messages.Introduce,
            "note where peers can be dialed",
            lambda s, topic, m: s.introducing.handle_introduce(topic, m),
            "unasked_introduction",
        ),
        _joined(
            messages.Meet,
            "name other nodes on the topic to the peer, and the peer to them",
            lambda s, topic, m: s.rendezvous.handle_meet(
                topic.topic, is_agreed=s.is_relay and s.circuits.are_agreed
            ),
            "no_circuits",
        ),
        _joined(
            messages.Nodes,
            "note to which nodes circuits can be asked for",
            lambda s, topic, m: s.rendezvous.handle_nodes(topic, m),
            "unasked_nodes",
        ),
        _joined(messages.PresenceSaid, "show it, if true", lambda s, t, m: [PresenceSeen(t.topic, m.box)]),
    )
)
"""Every message: when the peer may say it, and what handles it. Else the peer is at fault: `unknown_topic`."""


def _event(
    kind: type[M], handler: Callable[[Session, M], list[Output]]
) -> tuple[type[Any], Callable[[Session, Any], list[Output]]]:
    return kind, handler


def _topic_event(
    kind: type[M], handler: Callable[[Session, TopicProgress, M], list[Output]]
) -> tuple[type[Any], Callable[[Session, Any], list[Output]]]:
    """Make the row of an event about a topic that this side follows."""
    return kind, lambda s, event: handler(s, s._announced.by_key[event.topic], event)


EVENTS: Final[Mapping[type[events.Event], Callable[[Session, Any], list[Output]]]] = dict(
    (
        _event(events.MessageReceived, Session.receive),
        _event(events.TopicFollowed, Session.follow),
        _event(events.TopicsRefused, Session.refuse_topics),
        _event(events.CommitsAccepted, Session.accept_commits),
        _event(events.CommitsReleased, Session.release_commits),
        _event(events.CheckDue, Session.check),
        _event(events.RoomWanted, Session.take_turn),
        _event(events.PresenceTold, Session.tell_presence),
        _event(events.CircuitsTaken, Session.take_circuits),
        _event(events.CircuitWanted, lambda s, e: s.circuits.handle(e)),
        _event(events.CircuitGranted, lambda s, e: s.circuits.handle(e)),
        _event(events.CircuitSent, lambda s, e: s.circuits.handle(e)),
        _event(events.CircuitEnded, lambda s, e: s.circuits.handle(e)),
        _event(events.PunchWanted, lambda s, e: s.punching.ask(e)),
        _event(events.PunchAnswered, lambda s, e: s.punching.answer(e)),
        _event(events.AccountWanted, lambda s, e: s.accounts.ask(e)),
        _event(events.AccountSettled, lambda s, e: s.accounts.settle(e)),
        _topic_event(events.SummaryLoaded, lambda s, topic, e: s.comparison.summary_loaded(topic, e)),
        _topic_event(events.EarlierLoaded, lambda s, topic, e: s.earlier.loaded(topic, e)),
        _topic_event(events.PlanLoaded, lambda s, topic, e: s.comparison.planned(topic, e)),
        _topic_event(events.Reconciled, lambda s, topic, e: s.comparison.reconciled(topic, e)),
        _topic_event(events.WantedFound, lambda s, topic, e: s.transfer.wanted_found(topic, e)),
        _topic_event(events.BatchLoaded, lambda s, topic, e: s.transfer.loaded(topic, e)),
        _topic_event(events.BatchIngested, Session.note_ingested),
        _topic_event(events.RoundWanted, lambda s, topic, e: s.comparison.begin_later_round(topic)),
        _topic_event(events.BlocksLoaded, lambda s, topic, e: s.transfer.blocks_loaded(topic, e)),
        _topic_event(events.BlocksWanted, lambda s, topic, e: s.transfer.fetch(topic, e.ids)),
        _topic_event(events.CommitsWanted, lambda s, topic, e: s.wanting.ask(topic, e.ids)),
        _topic_event(events.BodiesWanted, lambda s, topic, e: s.wanting.ask_bodies(topic, e.ids)),
        _topic_event(events.PeersFound, lambda s, topic, e: s.introducing.introduce(topic, e)),
        _topic_event(events.WindowWanted, lambda s, topic, e: s.windows.ask(topic, e)),
        _topic_event(events.WindowLoaded, lambda s, topic, e: s.windows.loaded(topic, e)),
        _topic_event(events.RendezvousWanted, lambda s, topic, e: s.rendezvous.ask(topic)),
        _topic_event(events.NodesFound, lambda s, topic, e: s.rendezvous.tell(topic, e)),
        _topic_event(events.FileListWanted, lambda s, topic, e: s.deposits.ask_list(topic, e)),
        _topic_event(events.FilesOffered, lambda s, topic, e: s.deposits.offer(topic, e)),
        _topic_event(events.FileListLoaded, lambda s, topic, e: s.deposits.answer_list(topic, e)),
        _topic_event(events.FileSettled, lambda s, topic, e: s.deposits.settle(topic, e)),
    )
)
"""Every event of this side, and what handles it."""
