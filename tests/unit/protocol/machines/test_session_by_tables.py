"""A session in each state of a comparison, and each message of the peer's: it does what the table says."""

from array import array
from itertools import product
from typing import Final

import pytest

from protocol.hashing import announced_topic, blind_topic
from protocol.ids import (
    AnyId,
    BlindTopic,
    BlockId,
    CircuitAddress,
    Digest,
    ObjectId,
    PeerId,
    SessionId,
    ShortId,
    Signature,
    TopicKey,
)
from protocol.keys import AccountToken
from protocol.links import PeerAddress
from protocol.machines.comparing import COMPARING, Compared, Comparing
from protocol.machines.conversation import MESSAGES, About, Word
from protocol.machines.table import Refuse, Step
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
    FileDeposit,
    FoundBodies,
    Goodbye,
    Introduce,
    Introductions,
    JoinAccount,
    KeepAlive,
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
)
from protocol.session import Session
from protocol.session_events import (
    CheckDue,
    Event,
    MessageReceived,
    PlanLoaded,
    Reconciled,
    SummaryLoaded,
    TopicFollowed,
)
from protocol.session_outputs import Close
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


def _messages(topic: BlindTopic, number: int) -> dict[Word, Message]:
    """One of each kind, as good as it can be: `number` is the round whose summary is the next one."""
    return {
        Word.ALIVE: KeepAlive(),
        Word.GOODBYE: Goodbye("bye"),
        Word.ANNOUNCE: Announce((ANNOUNCED,)),
        Word.FEATURES: Features(("files",)),
        Word.RELAY: Relay(),
        Word.INTRODUCTIONS: Introductions(),
        Word.DEPOSIT: Deposit((TOPIC,)),
        Word.JOIN_ACCOUNT: JoinAccount(AccountToken(b"t" * 32)),
        Word.ACCOUNT_JOINED: AccountJoined("", 7, 3),
        Word.LIST_FILES: ListFiles(topic, SHORT),
        Word.LISTED_FILES: ListedFiles(topic, (SHORT,)),
        Word.DEPOSIT_FILES: DepositFiles(
            topic, (FileDeposit(ObjectId(BlockId(b"f" * 32)), 7, Signature(b"s" * 64)),)
        ),
        Word.SETTLED_FILES: SettledFiles(topic, (SHORT,), ""),
        Word.SUMMARY: Summary(topic, number, (), *SMALLER),
        Word.RECONCILE: Reconcile(topic, 1, b"frame"),
        Word.PUBLICATIONS: Publications(topic, (b"x",)),
        Word.RECEIPT: Receipt(topic),
        Word.WANT: Want(topic, (as_commit_id(b"w" * 32),)),
        Word.WANT_BODIES: WantBodies(topic, (AnyId(b"w" * 32),)),
        Word.FOUND_BODIES: FoundBodies(topic, 1),
        Word.REFUSED: Refused(topic, "topic_full"),
        Word.INTRODUCE: Introduce(topic, (PeerAddress("192.0.2.7:7474", PeerId(b"b" * 32)),)),
        Word.FETCH: Fetch(topic, (BlockId(b"b" * 32),)),
        Word.SEEN: Seen("198.51.100.7:50123"),
        Word.PUNCH: PunchAddresses(("198.51.100.7:50123",)),
        Word.PUNCH_NOW: PunchNow(),
        Word.CIRCUITS: Circuits(),
        Word.CIRCUIT_OPEN: CircuitOpen(2, CircuitAddress(b"a" * 32)),
        Word.CIRCUIT_DATA: CircuitData(2, b"bytes"),
        Word.CIRCUIT_CREDIT: CircuitCredit(2, 7),
        Word.CIRCUIT_CLOSE: CircuitClose(2, "closed"),
        Word.MEET: Meet(topic),
        Word.NODES: Nodes(topic, (PeerId(b"n" * 32),)),
        Word.BLOCKS: Blocks(topic, (b"",)),
        Word.PRESENCE: PresenceSaid(topic, b"a box"),
    }


def _session(state: Comparing) -> Session:
    session = Session(SESSION_ID, is_dialer=True)
    for event in TO[state]:
        assert not any(isinstance(output, Close) for output in session.handle(event))
    progress = next(one for one in session.topics if one.topic == TOPIC)
    assert progress.comparing is state
    return session


COMPARED: Final = {
    Word.ANNOUNCE: Compared.JOIN,
    Word.SUMMARY: Compared.SUMMARY,
    Word.RECONCILE: Compared.FRAME,
}
"""Messages that the comparison is about."""


@pytest.mark.parametrize("state, word", list(product(Comparing, Word)), ids=lambda one: one.name)
def test_each_message_in_each_state_does_what_the_tables_say(state: Comparing, word: Word) -> None:
    session = _session(state)
    progress = next(one for one in session.topics if one.topic == TOPIC)
    expected = 0 if progress.rounds.peer is None else progress.rounds.peer.round + 1
    standing = progress.standing
    outputs = session.handle(MessageReceived(_messages(BLIND, expected)[word]))
    said = next((output.reason for output in outputs if isinstance(output, Close)), "")
    about = standing if hasattr(_messages(BLIND, 0)[word], "topic") else About.NOTHING
    passed = MESSAGES.cells[(about, word)]
    compared = COMPARING.cells[(state, COMPARED[word])] if word in COMPARED else None
    refused = next((cell.reason for cell in (passed, compared) if isinstance(cell, Refuse)), None)
    if refused is not None:
        assert said == refused
        assert progress.comparing is state, "what is refused changes nothing"
        return
    at_bounds = {
        one.reason for machine in (MESSAGES, COMPARING) for bound in machine.bounds.values() for one in bound
    }
    early = {
        "late_features",
        "late_relay",
        "late_introductions",
        "unasked_receipt",
        "no_circuits",
        "unknown_circuit",
        "unasked_punch",
    }
    assert said in {"", *at_bounds, *early}
    if isinstance(compared, Step) and not said:
        assert progress.comparing is compared.to


@pytest.mark.parametrize(
    "word", [word for word in Word if hasattr(_messages(BLIND, 0)[word], "topic")], ids=lambda one: one.name
)
def test_no_message_about_a_foreign_topic_is_taken(word: Word) -> None:
    session = _session(Comparing.COMPARED)
    assert session.handle(MessageReceived(_messages(FOREIGN, 0)[word])) == [Close("unknown_topic")]


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
