"""Tables of state machines: (state, event) -> (outputs, next state), or why the peer is at fault. Read at run time.

A table answers every pair of a state and an event in one of three ways. It is handled (`Step`), the peer is at fault and
the connection ends with a reason (`PeerFaultCell`), or it cannot happen, and the table says why (`impossible`).

Counters with a bound (rounds, frames that wait, batches without a receipt) are data beside the state: as states, 32 frames
that may wait would be 32 rows that say the same. An output that enforces such a bound names its reasons in `bounds`.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from itertools import product
from typing import Generic, TypeVar


class PeerFault(Exception):
    """Behaviour that no honest peer shows: the connection ends, and `reason` (a stable code) is said first."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


StateT = TypeVar("StateT", bound=Enum)
EventT = TypeVar("EventT", bound=Enum)
OutputT = TypeVar("OutputT", bound=Enum)


@dataclass(frozen=True, slots=True)
class Step(Generic[StateT, OutputT]):
    """Cell of a pair that is handled: the next state, which is entered first, and its outputs in order."""

    to: StateT
    outputs: tuple[OutputT, ...]


@dataclass(frozen=True, slots=True)
class PeerFaultCell:
    """Cell of a pair that is the peer's fault: the connection ends."""

    reason: str


def go(to: StateT, *outputs: OutputT) -> Step[StateT, OutputT]:
    """Make the cell of a pair that is handled."""
    return Step(to, outputs)


def stay(
    states: Iterable[StateT], event: EventT, *outputs: OutputT
) -> Mapping[tuple[StateT, EventT], Step[StateT, OutputT]]:
    """Make cells of states in which an event changes no state."""
    return {(state, event): Step(state, outputs) for state in states}


def refuse(
    states: Iterable[StateT], event: EventT, fault: PeerFaultCell
) -> Mapping[tuple[StateT, EventT], PeerFaultCell]:
    """Make cells of states in which an event is the peer's fault."""
    return {(state, event): fault for state in states}


@dataclass(frozen=True)
class Table(Generic[StateT, EventT, OutputT]):
    """State machine as a table. Values of its enums are what people read: the reference page is made of them."""

    title: str
    states: type[StateT]
    events: type[EventT]
    first: tuple[StateT, ...]
    """States that it may begin in."""
    cells: Mapping[tuple[StateT, EventT], Step[StateT, OutputT] | PeerFaultCell]
    impossible: Mapping[EventT, str] = field(default_factory=dict)
    """Why an event cannot come in a state without a cell for it."""
    bounds: Mapping[OutputT, tuple[PeerFaultCell, ...]] = field(default_factory=dict)
    """Faults by output, where a counter beside the state has come to its bound."""

    def pairs(self) -> Iterator[tuple[StateT, EventT]]:
        """Yield every state with every event."""
        states: Iterable[StateT] = self.states
        events: Iterable[EventT] = self.events
        return product(states, events)

    def find(self, state: StateT, event: EventT) -> Step[StateT, OutputT]:
        """Return the cell of a pair. Raises PeerFault where the peer is at fault."""
        cell = self.cells.get((state, event))
        if cell is None:
            raise AssertionError(
                f"{self.title}: {event.name} in {state.name}, though {self.impossible[event]}"
            )
        if isinstance(cell, PeerFaultCell):
            raise PeerFault(cell.reason)
        return cell
