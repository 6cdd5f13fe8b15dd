"""Circuits on a session: who may ask, credit, ends, and what is the peer's fault."""

import re
from pathlib import Path
from typing import Final

import pytest

from protocol.crypto.hashing import circuit_address
from protocol.ids import CircuitAddress, PeerId, SessionId
from protocol.limits.network import (
    CIRCUIT_DATA_SIZE_MAX,
    CIRCUIT_WINDOW_SIZE,
    CIRCUITS_OF_SESSION_MAX,
    WIDE_CIRCUIT_WINDOW_SIZE,
)
from protocol.session.circuits import CIRCUIT_ENDS, CircuitEnd
from protocol.session.events import (
    CircuitEnded,
    CircuitGranted,
    CircuitSent,
    CircuitsTaken,
    CircuitWanted,
    Event,
    MessageReceived,
)
from protocol.session.messages import (
    CircuitClose,
    CircuitCredit,
    CircuitData,
    CircuitOpen,
    Circuits,
    Message,
)
from protocol.session.outputs import (
    CircuitClosed,
    CircuitCredited,
    CircuitOffered,
    CircuitReceived,
    CircuitsAgreed,
    Close,
    Output,
    Send,
)
from protocol.session.session import Session

SESSION_ID: Final = SessionId(b"s" * 32)
ADDRESS: Final = CircuitAddress(b"a" * 32)
DOCUMENT: Final = Path(__file__).parents[4] / "docs" / "specification" / "profiles" / "circuits.md"


class Side:
    """One end of a session, and what it was told about circuits."""

    def __init__(self, *, is_dialer: bool) -> None:
        self.session = Session(SESSION_ID, is_dialer=is_dialer)
        self.told: list[Output] = []
        self.said: list[Message] = []

    def do(self, event: Event) -> list[Output]:
        """Give it an event; what it says is kept until `deliver`."""
        outputs = self.session.handle(event)
        for output in outputs:
            if isinstance(output, Send):
                self.said.append(output.message)
            else:
                self.told.append(output)
        return outputs

    def deliver(self, other: "Side") -> None:
        """Tell the other side all that was said."""
        said, self.said = self.said, []
        for message in said:
            other.do(MessageReceived(message))

    def pop_told(self) -> list[Output]:
        """What it was told since the last time."""
        told, self.told = self.told, []
        return told


def _agreed() -> tuple[Side, Side]:
    dialer, acceptor = Side(is_dialer=True), Side(is_dialer=False)
    acceptor.do(CircuitsTaken())
    acceptor.deliver(dialer)
    assert dialer.pop_told() == [CircuitsAgreed()]
    dialer.do(CircuitsTaken())
    dialer.deliver(acceptor)
    assert acceptor.pop_told() == [CircuitsAgreed()]
    return dialer, acceptor


def _open() -> tuple[Side, Side]:
    dialer, acceptor = _agreed()
    dialer.do(CircuitWanted(1, ADDRESS))
    dialer.do(CircuitGranted(1, CIRCUIT_WINDOW_SIZE))
    dialer.deliver(acceptor)
    assert acceptor.pop_told() == [CircuitOffered(1, ADDRESS), CircuitCredited(1, CIRCUIT_WINDOW_SIZE)]
    acceptor.do(CircuitGranted(1, CIRCUIT_WINDOW_SIZE))
    acceptor.deliver(dialer)
    assert dialer.pop_told() == [CircuitCredited(1, CIRCUIT_WINDOW_SIZE)]
    return dialer, acceptor


def _hear(side: Side, message: Message) -> list[Output]:
    return side.do(MessageReceived(message))


def test_bytes_go_both_ways_as_far_as_there_is_credit() -> None:
    dialer, acceptor = _open()
    dialer.do(CircuitSent(1, b"to"))
    acceptor.do(CircuitSent(1, b"fro"))
    dialer.deliver(acceptor)
    acceptor.deliver(dialer)
    assert (dialer.pop_told(), acceptor.pop_told()) == (
        [CircuitReceived(1, b"fro")],
        [CircuitReceived(1, b"to")],
    )
    acceptor.do(CircuitGranted(1, 2))
    acceptor.deliver(dialer)
    assert dialer.pop_told() == [CircuitCredited(1, 2)]


def test_a_number_is_free_again_once_both_have_closed() -> None:
    dialer, acceptor = _open()
    dialer.do(CircuitEnded(1, CircuitEnd.CLOSED))
    acceptor.do(CircuitSent(1, b"late"))
    acceptor.do(CircuitGranted(1, 5))
    acceptor.deliver(dialer)
    assert dialer.pop_told() == [], "what comes for a circuit that ends is passed over"
    dialer.deliver(acceptor)
    assert acceptor.pop_told() == [CircuitClosed(1, "closed")]
    for event in (CircuitSent(1, b"later"), CircuitGranted(1, 5), CircuitEnded(1, "closed")):
        assert [type(one) for one in acceptor.do(event)] == [], "it is gone here"
    acceptor.deliver(dialer)
    assert dialer.pop_told() == []
    dialer.do(CircuitWanted(1, ADDRESS))
    dialer.deliver(acceptor)
    assert acceptor.pop_told() == [CircuitOffered(1, ADDRESS)]


def test_both_may_close_at_once() -> None:
    dialer, acceptor = _open()
    dialer.do(CircuitEnded(1, CircuitEnd.IDLE))
    acceptor.do(CircuitEnded(1, CircuitEnd.CLOSED))
    dialer.deliver(acceptor)
    acceptor.deliver(dialer)
    assert (dialer.pop_told(), acceptor.pop_told(), dialer.said, acceptor.said) == ([], [], [], [])
    assert _hear(dialer, CircuitData(1, b"x")) == [Close("unknown_circuit")]


def test_a_side_says_once_that_it_takes_circuits() -> None:
    side = Side(is_dialer=True)
    side.do(CircuitsTaken())
    side.do(CircuitsTaken())
    assert side.said == [Circuits()]
    assert not side.session.circuits.are_agreed, "the peer has not said so"


def test_numbers_of_the_sides_do_not_meet() -> None:
    dialer, acceptor = _agreed()
    assert [dialer.session.circuits.new_number() for _ in range(3)] == [1, 3, 5]
    assert [acceptor.session.circuits.new_number() for _ in range(3)] == [2, 4, 6]
    assert _hear(dialer, CircuitOpen(1, ADDRESS)) == [Close("wrong_circuit")]
    assert _hear(acceptor, CircuitOpen(2, ADDRESS)) == [Close("wrong_circuit")]


def test_circuits_are_agreed_once_and_before_the_first() -> None:
    side = Side(is_dialer=False)
    assert _hear(side, CircuitOpen(1, ADDRESS)) == [Close("no_circuits")]
    side = Side(is_dialer=False)
    _hear(side, Circuits())
    assert _hear(side, CircuitOpen(1, ADDRESS)) == [Close("no_circuits")], "this side takes none"
    side = Side(is_dialer=False)
    _hear(side, Circuits())
    assert _hear(side, Circuits()) == [Close("second_circuits")]


@pytest.mark.parametrize(
    "message, reason",
    [
        (CircuitData(3, b"x"), "unknown_circuit"),
        (CircuitCredit(3, 1), "unknown_circuit"),
        (CircuitClose(3, "closed"), "unknown_circuit"),
        (CircuitOpen(1, ADDRESS), "circuit_in_use"),
    ],
)
def test_what_no_honest_peer_says_ends_the_session(message: Message, reason: str) -> None:
    _, acceptor = _open()
    assert _hear(acceptor, message) == [Close(reason)]


def test_one_byte_over_the_credit_ends_the_session() -> None:
    _, acceptor = _open()
    whole = bytes(CIRCUIT_DATA_SIZE_MAX)
    for _ in range(CIRCUIT_WINDOW_SIZE // CIRCUIT_DATA_SIZE_MAX):
        assert _hear(acceptor, CircuitData(1, whole)) == [CircuitReceived(1, whole)]
    assert _hear(acceptor, CircuitData(1, b"x")) == [Close("circuit_overrun")]


def test_bytes_before_credit_end_the_session() -> None:
    dialer, acceptor = _agreed()
    dialer.do(CircuitWanted(1, ADDRESS))
    dialer.deliver(acceptor)
    assert _hear(acceptor, CircuitData(1, b"x")) == [Close("circuit_not_open")]
    assert _hear(dialer, CircuitData(1, b"x")) == [Close("circuit_not_open")]


def test_one_circuit_over_the_bound_ends_the_session() -> None:
    _, acceptor = _agreed()
    for number in range(1, 2 * CIRCUITS_OF_SESSION_MAX, 2):
        assert _hear(acceptor, CircuitOpen(number, ADDRESS)) == [CircuitOffered(number, ADDRESS)]
    after = 2 * CIRCUITS_OF_SESSION_MAX + 1
    assert _hear(acceptor, CircuitOpen(after, ADDRESS)) == [Close("too_many_circuits")]


def test_circuits_that_end_here_count_until_the_peer_has_closed_them_too() -> None:
    """Else a peer that never answers would have this side remember any number of them."""
    _, acceptor = _agreed()
    for number in range(1, 2 * CIRCUITS_OF_SESSION_MAX, 2):
        _hear(acceptor, CircuitOpen(number, ADDRESS))
        acceptor.do(CircuitEnded(number, CircuitEnd.NOT_HERE))
    after = 2 * CIRCUITS_OF_SESSION_MAX + 1
    assert _hear(acceptor, CircuitClose(1, "closed")) == []
    assert _hear(acceptor, CircuitOpen(after, ADDRESS)) == [CircuitOffered(after, ADDRESS)]
    assert _hear(acceptor, CircuitOpen(after + 2, ADDRESS)) == [Close("too_many_circuits")]


def test_a_node_has_another_address_at_each_relay() -> None:
    node, one, other = (PeerId(bytes([byte]) * 32) for byte in b"nab")
    assert len({circuit_address(one, node), circuit_address(other, node), circuit_address(node, one)}) == 3


def test_every_end_of_a_circuit_is_in_the_document() -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    rows = text[text.index("| a circuit's end |") :].partition("\n\n")[0].splitlines()[2:]
    documented = [code for row in rows for code in re.findall(r"`([a-z_]+)`", row.split("|")[1])]
    assert sorted(documented) == sorted(CIRCUIT_ENDS)


def test_a_wide_window_and_no_byte_more_is_taken() -> None:
    large = bytes(CIRCUIT_DATA_SIZE_MAX)
    dialer, acceptor = _open()
    acceptor.do(CircuitGranted(1, WIDE_CIRCUIT_WINDOW_SIZE - CIRCUIT_WINDOW_SIZE))
    acceptor.deliver(dialer)
    for _ in range(WIDE_CIRCUIT_WINDOW_SIZE // CIRCUIT_DATA_SIZE_MAX):
        dialer.do(CircuitSent(1, large))
        dialer.deliver(acceptor)
    assert acceptor.pop_told()[-1] == CircuitReceived(1, large)
    assert _hear(acceptor, CircuitData(1, b"x")) == [Close("circuit_overrun")]
    _, other = _open()
    more = WIDE_CIRCUIT_WINDOW_SIZE - CIRCUIT_WINDOW_SIZE
    assert _hear(other, CircuitCredit(1, more)) == [CircuitCredited(1, more)]
    assert _hear(other, CircuitCredit(1, 1)) == [Close("too_much_credit")]
