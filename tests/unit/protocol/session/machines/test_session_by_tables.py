"""A session in each state of a comparison, and each message of the peer's: it does what the table says."""

from array import array
from itertools import product
from typing import Final

import pytest

from protocol.crypto.hashing import announced_topic, blind_topic
from protocol.crypto.keys import AccountToken
from protocol.formats.links import PeerAddress
from protocol.ids import (
    AnyId,
    BlindTopic,
    BlockId,
    BranchMark,
    CircuitAddress,
    Digest,
    ObjectId,
    PeerId,
    SessionId,
    ShortId,
    Signature,
    TopicKey,
)
from protocol.limits.peers import EARLIER_FINGERPRINT_SIZE
from protocol.session.events import (
    CheckDue,
    Event,
    MessageReceived,
    PlanLoaded,
    Reconciled,
    SummaryLoaded,
    TopicFollowed,
)
from protocol.session.machines.comparing import COMPARING, Compared, Comparing
from protocol.session.machines.table import PeerFaultCell, Step
from protocol.session.messages import (
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
    Earlier,
    Features,
    Fetch,
    FileDeposit,
    FoundBodies,
    Goodbye,
    Introduce,
    Introductions,
    JoinAccount,
    KeepAlive,
    Keeps,
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
    Relay,
    Seen,
    SettledFiles,
    Summary,
    Want,
    WantBodies,
    WantWindow,
    Window,
)
from protocol.session.outputs import Close
from protocol.session.session import MESSAGES, Session
from tests.support.ids import as_commit_id

SESSION_ID: Final = SessionId(b"s" * 32)
TOPIC: Final = TopicKey(b"t" * 32)
BLIND: Final = blind_topic(TOPIC, SESSION_ID)
SHORT: Final = ShortId(b"f" * 16)
FOREIGN: Final = BlindTopic(b"?" * 32)
ANNOUNCED: Final = announced_topic(TOPIC, SESSION_ID, by_dialer=False)
FOLLOWED: Final = TopicFollowed(TOPIC, is_own=True)
JOINED: Final = (FOLLOWED, MessageReceived(Announce((ANNOUNCED,))))
SMALLER, LARGER = (7, Digest(b"a" * 32)), (8, Digest(b"b" * 32))


def _loaded(size: tuple[int, Digest]) -> Event:
    return SummaryLoaded(TOPIC, (as_commit_id(b"h" * 32),), *size, upto=9)


def _summary(number: int, size: tuple[int, Digest], topic: BlindTopic = BLIND) -> Event:
    return MessageReceived(Summary(topic, number, (ShortId(b"t" * 16),), *size))


FRAME: Final = MessageReceived(Reconcile(BLIND, 0, b"frame"))
INEXACT: Final = PlanLoaded(TOPIC, array("q"), 9, is_exact=False)
STEP: Final = Reconciled(TOPIC, ((0, b"frame"),), ())
AS_LARGER: Final = (*JOINED, _loaded(LARGER), _summary(0, SMALLER))
AS_SMALLER: Final = (*JOINED, _loaded(SMALLER), _summary(0, LARGER))
OTHERS: Final = tuple(TopicKey(bytes([number]) * 32) for number in range(8))


def _answered_before() -> tuple[Event, ...]:
    """Eight other topics that take all places."""
    events: list[Event] = []
    for topic in OTHERS:
        blind = blind_topic(topic, SESSION_ID)
        events += [
            TopicFollowed(topic, is_own=False),
            MessageReceived(Announce((announced_topic(topic, SESSION_ID, by_dialer=False),))),
            SummaryLoaded(topic, (), *LARGER, upto=9),
            MessageReceived(Summary(blind, 0, (), *SMALLER)),
            PlanLoaded(topic, array("q"), 9, is_exact=False),
        ]
    return tuple(events)


TO: Final[dict[Comparing, tuple[Event, ...]]] = {
    Comparing.UNJOINED: (FOLLOWED,),
    Comparing.SUMMARISING: JOINED,
    Comparing.HEARD: (*JOINED, _summary(0, SMALLER)),
    Comparing.SAID: (*JOINED, _loaded(LARGER)),
    Comparing.PLANNING: AS_LARGER,
    Comparing.PLANNING_ASKED: (*AS_SMALLER, FRAME),
    Comparing.BEHIND: (*AS_SMALLER, INEXACT),
    Comparing.AHEAD: (*AS_LARGER, PlanLoaded(TOPIC, array("q", [5]), 9)),
    Comparing.COMPARED: (*JOINED, _loaded(LARGER), _summary(0, LARGER), INEXACT),
    Comparing.QUEUED: (*_answered_before(), *AS_LARGER, INEXACT),
    Comparing.OPENING: (*AS_LARGER, INEXACT),
    Comparing.ANSWERING: (*AS_LARGER, INEXACT, STEP, FRAME),
    Comparing.ANSWERED: (*AS_LARGER, INEXACT, STEP),
    Comparing.ASKING: (*AS_SMALLER, INEXACT, FRAME),
    Comparing.ASKED: (*AS_SMALLER, INEXACT, FRAME, STEP),
}
"""What brings a topic into each state."""


def _messages(topic: BlindTopic, number: int) -> list[Message]:
    """One of each kind, as good as it can be: `number` is the round whose summary is the next one."""
    return [
        KeepAlive(),
        Goodbye("bye"),
        Announce((ANNOUNCED,)),
        Features(("files",)),
        Relay(),
        Introductions(),
        Deposit((TOPIC,)),
        JoinAccount(AccountToken(b"t" * 32)),
        AccountJoined("", 7, 3),
        ListFiles(topic, SHORT),
        ListedFiles(topic, (SHORT,)),
        DepositFiles(topic, (FileDeposit(ObjectId(BlockId(b"f" * 32)), 7, Signature(b"s" * 64)),)),
        SettledFiles(topic, (SHORT,), ""),
        Summary(topic, number, (), *SMALLER),
        Earlier(topic, 1, b"e" * EARLIER_FINGERPRINT_SIZE),
        Reconcile(topic, 1, b"frame"),
        Publications(topic, (b"x",)),
        Receipt(topic),
        Want(topic, (as_commit_id(b"w" * 32),)),
        WantBodies(topic, (AnyId(b"w" * 32),)),
        FoundBodies(topic, 1),
        Refused(topic, "topic_full"),
        Introduce(topic, (PeerAddress("192.0.2.7:7474", PeerId(b"b" * 32)),)),
        Fetch(topic, (BlockId(b"b" * 32),)),
        Seen("198.51.100.7:50123"),
        PunchAddresses(("198.51.100.7:50123",)),
        PunchNow(),
        Circuits(),
        CircuitOpen(2, CircuitAddress(b"a" * 32)),
        CircuitData(2, b"bytes"),
        CircuitCredit(2, 7),
        CircuitClose(2, "closed"),
        Meet(topic),
        Nodes(topic, (PeerId(b"n" * 32),)),
        Blocks(topic, (b"",)),
        PresenceSaid(topic, b"a box"),
        WantWindow(topic, BranchMark(b"8 bytes."), 7, is_upwards=False, count=3),
        Window(topic, BranchMark(b"8 bytes."), (b"one",), is_last=True),
        Keeps(topic, is_all=False, marks=(BranchMark(b"8 bytes."),), days=90),
    ]


def _session(state: Comparing) -> Session:
    session = Session(SESSION_ID, is_dialer=True)
    for event in TO[state]:
        assert not any(isinstance(output, Close) for output in session.handle(event))
    progress = next(one for one in session.topics if one.topic == TOPIC)
    assert progress.comparing is state
    return session


COMPARED: Final[dict[type[Message], Compared]] = {
    Announce: Compared.JOIN,
    Summary: Compared.SUMMARY,
    Reconcile: Compared.FRAME,
}
"""Messages that the comparison is about."""
KINDS: Final = list(MESSAGES)


def _message(kind: type[Message], topic: BlindTopic, number: int) -> Message:
    (found,) = (one for one in _messages(topic, number) if type(one) is kind)
    return found


@pytest.mark.parametrize(
    "state, kind", list(product(Comparing, KINDS)), ids=lambda one: getattr(one, "name", None) or one.__name__
)
def test_each_message_in_each_state_does_what_the_tables_say(state: Comparing, kind: type[Message]) -> None:
    session = _session(state)
    progress = next(one for one in session.topics if one.topic == TOPIC)
    expected = 0 if progress.rounds.peer is None else progress.rounds.peer.round + 1
    row, is_joined = MESSAGES[kind], progress.is_joined
    outputs = session.handle(MessageReceived(_message(kind, BLIND, expected)))
    said = next((output.reason for output in outputs if isinstance(output, Close)), "")
    if row.standings and not is_joined:
        assert said == "unknown_topic"
        return
    compared = COMPARING.cells[(state, COMPARED[kind])] if kind in COMPARED else None
    if isinstance(compared, PeerFaultCell):
        assert said == compared.reason
        assert progress.comparing is state, "what is refused changes nothing"
        return
    of_machines = {
        *(one.reason for bound in COMPARING.bounds.values() for one in bound),
        "late_features",
        "late_relay",
        "late_introductions",
        "unasked_receipt",
        "no_circuits",
        "unknown_circuit",
        "unasked_punch",
    }
    assert said in {"", *row.faults, *of_machines}
    if isinstance(compared, Step) and not said:
        assert progress.comparing is compared.to


@pytest.mark.parametrize("kind", [kind for kind in KINDS if MESSAGES[kind].standings])
def test_no_message_about_a_foreign_topic_is_taken(kind: type[Message]) -> None:
    session = _session(Comparing.COMPARED)
    assert session.handle(MessageReceived(_message(kind, FOREIGN, 0))) == [Close("unknown_topic")]


@pytest.mark.parametrize("state", [state for state in Comparing if state is not Comparing.UNJOINED])
def test_a_summary_that_repeats_or_skips_a_round_is_refused_in_each_state(state: Comparing) -> None:
    for number in range(5):
        session = _session(state)
        progress = next(one for one in session.topics if one.topic == TOPIC)
        expected = 0 if progress.rounds.peer is None else progress.rounds.peer.round + 1
        refused = session.handle(_summary(number, SMALLER)) == [Close("unasked_summary")]
        assert refused is (number != expected)


@pytest.mark.parametrize("state", list(Comparing))
def test_a_check_ends_no_session_at_once(state: Comparing) -> None:
    session = _session(state)
    assert not any(isinstance(output, Close) for output in session.handle(CheckDue()))


def test_a_round_that_the_peer_begins_before_this_one_is_compared_waits() -> None:
    """It made a second summary be loaded, and the peer be told a round twice."""
    session = _session(Comparing.HEARD)
    assert session.handle(_summary(1, LARGER)) == []
    (progress,) = session.topics
    assert progress.comparing is Comparing.HEARD
    session.handle(_loaded(LARGER))
    assert session.handle(PlanLoaded(TOPIC, array("q", [5]), 9))[0].__class__.__name__ == "LoadSummary"
    assert progress.rounds.number == 1
