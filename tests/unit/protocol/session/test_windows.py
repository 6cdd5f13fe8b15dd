"""Questions for windows on a session: what is asked and answered, and their bounds."""

import pytest

from protocol.crypto.hashing import announced_topic, blind_topic
from protocol.ids import BranchMark, SessionId, TopicKey
from protocol.limits.peers import (
    WINDOW_COUNT_MAX,
    WINDOWS_AT_ONCE_MAX,
    WINDOWS_PER_CHECK,
    WINDOWS_UNANSWERED_MAX,
)
from protocol.session.events import (
    CheckDue,
    Event,
    MessageReceived,
    TopicFollowed,
    WindowLoaded,
    WindowWanted,
)
from protocol.session.messages import Announce, Message, WantWindow, Window
from protocol.session.outputs import Close, LoadWindow, Output, Send, WindowCame
from protocol.session.session import Session

SESSION_ID = SessionId(b"s" * 32)
TOPIC = TopicKey(b"r" * 32)
BLIND = blind_topic(TOPIC, SESSION_ID)
MARK = BranchMark(b"8 bytes.")
ASKED = WindowWanted(TOPIC, MARK, 9, is_upwards=False, count=2)


def _joined() -> Session:
    session = Session(SESSION_ID, is_dialer=True)
    session.handle(TopicFollowed(TOPIC, is_own=True))
    theirs = announced_topic(TOPIC, SESSION_ID, by_dialer=False)
    session.handle(MessageReceived(Announce((theirs,))))
    return session


def _mark(number: int) -> BranchMark:
    return BranchMark(number.to_bytes(8, "big"))


def _want(number: int) -> Message:
    return WantWindow(BLIND, _mark(number), 9, is_upwards=True, count=WINDOW_COUNT_MAX)


def test_a_window_is_asked_for_once_and_its_answer_handed_on() -> None:
    session = _joined()
    assert session.handle(ASKED) == [Send(WantWindow(BLIND, MARK, 9, is_upwards=False, count=2))]
    assert session.handle(ASKED) == [], "one of a mark at a time"
    answer = MessageReceived(Window(BLIND, MARK, (b"one", b"two"), is_last=False))
    assert session.handle(answer) == [WindowCame(TOPIC, ASKED, (b"one", b"two"), is_last=False)]
    assert session.handle(answer) == [Close("unasked_window")]


@pytest.mark.parametrize(
    "message",
    [
        Window(BLIND, MARK, (b"one",) * 3, is_last=True),
        Window(BLIND, _mark(1), (), is_last=True),
    ],
    ids=["longer than asked", "of another mark"],
)
def test_an_answer_that_was_not_asked_for_ends_the_session(message: Message) -> None:
    session = _joined()
    session.handle(ASKED)
    assert session.handle(MessageReceived(message)) == [Close("unasked_window")]


def test_a_question_is_looked_up_and_answered() -> None:
    session = _joined()
    wanted = LoadWindow(TOPIC, _mark(1), 9, is_upwards=True, count=WINDOW_COUNT_MAX)
    assert session.handle(MessageReceived(_want(1))) == [wanted]
    answered = session.handle(WindowLoaded(TOPIC, _mark(1), (b"one",), is_last=True))
    assert answered == [Send(Window(BLIND, _mark(1), (b"one",), is_last=True))]


def _take(session: Session, *events: Event) -> list[Output]:
    return [output for event in events for output in session.handle(event)]


def test_so_many_questions_may_wait_and_so_many_come_without_a_pause() -> None:
    session = _joined()
    waiting = [MessageReceived(_want(number)) for number in range(WINDOWS_UNANSWERED_MAX)]
    assert len(_take(session, *waiting)) == WINDOWS_UNANSWERED_MAX
    assert session.handle(MessageReceived(_want(99))) == [Close("too_many_windows")]
    session = _joined()
    for count in (WINDOWS_AT_ONCE_MAX, *[WINDOWS_PER_CHECK] * 3):
        for _ in range(2 * count):
            answered = WindowLoaded(TOPIC, _mark(1), (), is_last=True)
            assert len(_take(session, MessageReceived(_want(1)), answered)) == 2
        session.handle(CheckDue())
    for _ in range(2 * WINDOWS_PER_CHECK):
        _take(session, MessageReceived(_want(1)), WindowLoaded(TOPIC, _mark(1), (), is_last=True))
    assert session.handle(MessageReceived(_want(1))) == [Close("too_many_windows")]
    session = _joined()
    twice = MessageReceived(_want(1))
    assert _take(session, twice, twice)[-1] == Close("too_many_windows")
