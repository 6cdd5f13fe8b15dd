"""Every pair of a state and an event: handled, refused with a named reason, or impossible for a reason."""

import re
from enum import Enum
from typing import Final, get_args

import pytest

from protocol.session import events
from protocol.session.events import Event, TopicEvent
from protocol.session.machines.circuits import LegEvent, TakingEvent
from protocol.session.machines.comparing import Compared
from protocol.session.machines.conversation import HandshakeEvent, TopicStanding
from protocol.session.machines.reconciling import FrameCame
from protocol.session.machines.table import PeerFault, PeerFaultCell, Step
from protocol.session.machines.transfer import Sent, Served
from protocol.session.messages import Message, Refused
from protocol.session.reconciliation.reconciler import FrameKind
from protocol.session.session import EVENTS, MESSAGES
from tests.support.machine_tables import MACHINES, AnyTable

PAIRS: Final = [
    pytest.param(machine, state, event, id=f"{machine.title}-{state.name}-{event.name}")
    for machine in MACHINES
    for state, event in machine.pairs()
]
BY_PEER: Final[frozenset[Enum]] = frozenset(
    {
        *HandshakeEvent,
        Compared.JOIN,
        Compared.SUMMARY,
        Compared.FRAME,
        Sent.RECEIPT,
        Sent.REFUSAL,
        Served.ASKED,
    }
    | {TakingEvent.MESSAGE, LegEvent.OFFER, LegEvent.CREDIT, LegEvent.DATA, LegEvent.CLOSE}
    | (set(FrameCame) - {FrameCame.STUCK})
)
"""Events that a peer causes when it likes: in no state are they impossible."""


@pytest.mark.parametrize("machine, state, event", PAIRS)
def test_each_pair_is_handled_or_refused_or_impossible(machine: AnyTable, state: Enum, event: Enum) -> None:
    cell = machine.cells.get((state, event))
    match cell:
        case PeerFaultCell(reason):
            assert re.fullmatch(r"[a-z_]+", reason)
            with pytest.raises(PeerFault) as caught:
                machine.find(state, event)
            assert caught.value.reason == reason
        case Step():
            assert machine.find(state, event) is cell
            assert isinstance(cell.to, machine.states)
        case None:
            assert event not in BY_PEER, "a peer may say it whenever it likes"
            assert machine.impossible[event]
            with pytest.raises(AssertionError, match=event.name):
                machine.find(state, event)


@pytest.mark.parametrize("machine", MACHINES, ids=lambda machine: machine.title)
def test_a_table_has_no_state_that_is_not_reached_and_no_output_that_is_not_done(machine: AnyTable) -> None:
    reached, fresh = set(machine.first), list(machine.first)
    while fresh:
        state = fresh.pop()
        cells = (machine.cells.get((state, event)) for event in machine.events)
        for cell in cells:
            if isinstance(cell, Step) and cell.to not in reached:
                reached.add(cell.to)
                fresh.append(cell.to)
    assert reached == {state for state, _ in machine.pairs()}
    done = {output for cell in machine.cells.values() if isinstance(cell, Step) for output in cell.outputs}
    outputs: type[Enum] = type(next(iter(done)))
    assert done == set(outputs)
    assert set(machine.bounds) <= done
    unused = [
        event
        for event in machine.impossible
        if all((state, event) in machine.cells for state in machine.states)
    ]
    assert unused == [], "nothing is said to be impossible that is not"


def test_every_message_and_every_event_has_a_row() -> None:
    assert set(MESSAGES) == set(get_args(Message))
    kinds = {one for one in vars(events).values() if isinstance(one, type) and issubclass(one, Event)}
    assert set(EVENTS) == kinds - {Event, TopicEvent}


def test_a_message_about_a_topic_needs_one_that_both_have_announced() -> None:
    """But that a relay does not keep what it was asked to keep."""
    joined, entrusted = TopicStanding.JOINED, TopicStanding.ENTRUSTED
    for kind, row in MESSAGES.items():
        names_topic = "topic" in kind.__struct_fields__
        expected = {joined, entrusted} if kind is Refused else {joined} if names_topic else set()
        assert row.standings == expected


def test_frames_have_the_numbers_of_their_kinds() -> None:
    assert {(kind.name, kind.value) for kind in FrameKind} == {
        (event.name, event.value) for event in FrameCame if event is not FrameCame.STUCK
    }
