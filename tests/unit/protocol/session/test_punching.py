"""Dialing at one moment: who asks, who answers, when, and what is never dialed because a peer said so."""

import pytest

from protocol.ids import SessionId
from protocol.limits.network import PUNCH_ROUNDS_MAX, PUNCH_WAIT_SECONDS_MAX
from protocol.session.events import MessageReceived, PunchAnswered, PunchWanted
from protocol.session.messages import Message, PunchAddresses, PunchNow
from protocol.session.outputs import Close, Output, PunchDue, PunchHeard, Send
from protocol.session.punching import choose_targets, half_way
from protocol.session.session import Session

OURS = ("198.51.100.7:50123",)
THEIRS = ("203.0.113.9:41000", "192.168.1.7:41000")


def _sides() -> tuple[Session, Session]:
    session_id = SessionId(b"s" * 32)
    return Session(session_id, is_dialer=True), Session(session_id, is_dialer=False)


def _hear(session: Session, message: Message) -> list[Output]:
    return session.handle(MessageReceived(message))


def test_the_dialer_asks_and_says_when() -> None:
    asking, asked = _sides()
    assert asking.handle(PunchWanted(OURS)) == [Send(PunchAddresses(OURS))]
    assert asking.handle(PunchWanted(OURS)) == [], "it has asked"
    assert _hear(asked, PunchAddresses(OURS)) == [PunchHeard()]
    assert asked.handle(PunchAnswered(THEIRS)) == [Send(PunchAddresses(THEIRS))]
    assert _hear(asking, PunchAddresses(THEIRS)) == [Send(PunchNow()), PunchDue(THEIRS, is_later=True)]
    assert _hear(asked, PunchNow()) == [PunchDue(OURS, is_later=False)]
    assert asking.handle(PunchWanted(OURS)) == [Send(PunchAddresses(OURS))], "another round"


def test_nothing_is_dialed_where_one_side_says_no_address() -> None:
    asking, asked = _sides()
    asking.handle(PunchWanted(OURS))
    _hear(asked, PunchAddresses(OURS))
    assert asked.handle(PunchAnswered(())) == [Send(PunchAddresses(()))]
    assert _hear(asking, PunchAddresses(())) == []
    assert _hear(asked, PunchAddresses(OURS)) == [PunchHeard()], "it may ask again"
    asked.handle(PunchAnswered(()))
    assert _hear(asked, PunchNow()) == []


def test_so_many_rounds_and_no_more() -> None:
    _, asked = _sides()
    for _ in range(PUNCH_ROUNDS_MAX):
        assert _hear(asked, PunchAddresses(OURS)) == [PunchHeard()]
        asked.handle(PunchAnswered(THEIRS))
        assert _hear(asked, PunchNow()) == [PunchDue(OURS, is_later=False)]
    assert _hear(asked, PunchAddresses(OURS)) == [Close("too_many_punches")]


@pytest.mark.parametrize(
    "is_dialer, said, reason",
    [
        (True, [PunchAddresses(OURS)], "unasked_punch"),
        (True, [PunchNow()], "unasked_punch"),
        (False, [PunchNow()], "unasked_punch"),
        (False, [PunchAddresses(OURS), PunchAddresses(OURS)], "second_punch"),
        (False, [PunchAddresses(OURS), PunchNow()], "unasked_punch"),
    ],
)
def test_what_is_said_out_of_turn_ends_the_session(is_dialer: bool, said: list[Message], reason: str) -> None:
    session = _sides()[0 if is_dialer else 1]
    outputs = [_hear(session, message) for message in said]
    assert outputs[-1] == [Close(reason)]


@pytest.mark.parametrize(
    "asked_at, answered_at, seconds",
    [(0.0, 0.2, 0.1), (5.0, 5.0, 0.0), (0.0, 1000.0, PUNCH_WAIT_SECONDS_MAX), (1.0, 0.0, 0.0)],
)
def test_half_of_the_way_there_and_back_is_waited(
    asked_at: float, answered_at: float, seconds: float
) -> None:
    assert half_way(asked_at, answered_at) == seconds


@pytest.mark.parametrize(
    "theirs, own, chosen",
    [
        (("8.8.4.4:1000",), "8.8.8.8:1", ["8.8.4.4:1000"]),
        (("8.8.4.4:1000", "192.168.1.1:80"), "8.8.8.8:1", ["8.8.4.4:1000"]),
        (("8.8.8.8:9", "192.168.1.7:9"), "8.8.8.8:1", ["8.8.8.8:9", "192.168.1.7:9"]),
        (("10.0.0.7:9",), "10.0.0.8:1", ["10.0.0.7:9"]),
        (("10.0.1.7:9",), "10.0.0.8:1", []),
        (("8.8.4.4:1", "10.0.0.7:9"), "10.0.0.8:1", ["8.8.4.4:1", "10.0.0.7:9"]),
        (("8.8.8.8:1", "127.0.0.1:22"), "8.8.8.8:2", ["8.8.8.8:1"]),
        (("127.0.0.1:22",), "127.0.0.1:5", ["127.0.0.1:22"]),
        (("127.0.0.1:5",), "127.0.0.1:5", []),
        (("name.example:1", "224.0.0.1:1", "0.0.0.0:1", "8.8.8.8:0"), "8.8.4.4:1", []),
        (("[2001:4860:4860::8888]:1",), "8.8.8.8:1", []),
        (("[fd00::7]:1",), "[fd00::8]:1", ["[fd00::7]:1"]),
        (("[fd00:1::7]:1",), "[fd00::8]:1", []),
        (("wss://8.8.4.4",), "8.8.8.8:1", []),
        ((), "8.8.8.8:1", []),
        (("8.8.4.4:1",), "unknown", []),
    ],
)
def test_private_addresses_are_dialed_in_the_same_network_alone(
    theirs: tuple[str, ...], own: str, chosen: list[str]
) -> None:
    near = {"192.168.1.7:9"}
    local = "172.16.5.2:1" if own.startswith("8.8.") else own
    assert choose_targets(theirs, own, local, near.__contains__) == chosen


@pytest.mark.parametrize(
    "theirs, own, local, chosen",
    [
        (("8.8.8.8:9", "192.168.1.7:9"), "8.8.8.8:1", "10.0.0.2:1", ["8.8.8.8:9"]),
        (("8.8.8.8:9", "192.168.1.7:9"), "8.8.8.8:1", "192.168.1.2:1", ["8.8.8.8:9", "192.168.1.7:9"]),
        (("192.168.1.7:9", "192.168.1.1:80"), "192.168.1.2:1", "192.168.1.2:1", ["192.168.1.7:9"]),
        (("10.0.0.7:9", "192.168.1.7:9"), "10.0.0.8:1", "192.168.1.2:1", []),
        (("192.168.1.2:22",), "192.168.1.2:1", "192.168.1.2:1", []),
        (("8.8.8.8:9", "192.168.1.2:22"), "8.8.8.8:1", "192.168.1.2:1", ["8.8.8.8:9"]),
        (("8.8.8.8:22",), "8.8.8.8:1", "8.8.8.8:1", []),
        (("8.8.4.4:22",), "8.8.8.8:1", "192.168.1.2:1", []),
        (("127.0.0.1:22",), "127.0.0.1:5", "192.168.1.2:1", []),
        (("127.0.0.1:22",), "8.8.8.8:5", "127.0.0.1:1", []),
    ],
    ids=["far", "beside", "second", "outer", "own", "own inside", "own public", "own other", "lie", "no relay here"],
)  # fmt: skip
def test_a_peer_chooses_no_other_host_or_port_inside(
    theirs: tuple[str, ...], own: str, local: str, chosen: list[str]
) -> None:
    assert choose_targets(theirs, own, local, is_own={"8.8.4.4:22"}.__contains__) == chosen
