"""Tables of state machines: (state, event) -> (outputs, next state), or why the peer is refused. Read at run time.

A table answers every pair of a state and an event in one of three ways. It is handled (`Step`), the peer is at fault and
the connection ends with a reason (`Refuse`), or it cannot happen, and the table says why (`impossible`). What only counts
up to a bound (rounds, frames that wait, batches without a receipt) is data beside the state: as states, 32 frames that
may wait would be 32 rows that say the same. An output that enforces such a bound names its reasons in `bounds`.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from itertools import product
from typing import Generic, TypeVar


class PeerFault(Exception):
    """The peer did what no honest one does: the connection ends, and `reason` (a stable code) is said first."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


StateT = TypeVar("StateT", bound=Enum)
EventT = TypeVar("EventT", bound=Enum)
OutputT = TypeVar("OutputT", bound=Enum)


@dataclass(frozen=True, slots=True)
class Step(Generic[StateT, OutputT]):
    """The next state, which is entered first, and what is done then, in this order."""

    to: StateT
    outputs: tuple[OutputT, ...]


@dataclass(frozen=True, slots=True)
class Refuse:
    """The peer is at fault."""

    reason: str


def go(to: StateT, *outputs: OutputT) -> Step[StateT, OutputT]:
    """The cell of a pair that is handled."""
    return Step(to, outputs)


def stay(
    states: Iterable[StateT], event: EventT, *outputs: OutputT
) -> Mapping[tuple[StateT, EventT], Step[StateT, OutputT]]:
    """Cells of states in which an event changes nothing but what its outputs do."""
    return {(state, event): Step(state, outputs) for state in states}


def refuse(states: Iterable[StateT], event: EventT, fault: Refuse) -> Mapping[tuple[StateT, EventT], Refuse]:
    """Cells of states in which an event is the peer's fault."""
    return {(state, event): fault for state in states}


@dataclass(frozen=True)
class Table(Generic[StateT, EventT, OutputT]):
    """A machine. Values of its enums are what people read: the reference page is made of them."""

    title: str
    states: type[StateT]
    events: type[EventT]
    first: tuple[StateT, ...]
    """States that it may begin in."""
    cells: Mapping[tuple[StateT, EventT], Step[StateT, OutputT] | Refuse]
    impossible: Mapping[EventT, str] = field(default_factory=dict)
    """Why an event cannot come in a state without a cell for it."""
    bounds: Mapping[OutputT, tuple[Refuse, ...]] = field(default_factory=dict)
    """With what an output refuses the peer, where a counter beside the state has come to its bound."""

    def pairs(self) -> Iterator[tuple[StateT, EventT]]:
        """Every state with every event."""
        states: Iterable[StateT] = self.states
        events: Iterable[EventT] = self.events
        return product(states, events)

    def find(self, state: StateT, event: EventT) -> Step[StateT, OutputT]:
        """The cell of a pair. Raises PeerFault where the peer is refused."""
        cell = self.cells.get((state, event))
        if cell is None:
            raise AssertionError(
                f"{self.title}: {event.name} in {state.name}, though {self.impossible[event]}"
            )
        if isinstance(cell, Refuse):
            raise PeerFault(cell.reason)
        return cell
