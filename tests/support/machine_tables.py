"""The reference page of the state machines, and drawings of them, made from the tables that the code reads."""

from collections.abc import Iterable
from enum import Enum
from typing import Any, Final

from protocol.session.machines.circuits import CIRCUIT, TAKING
from protocol.session.machines.comparing import COMPARING
from protocol.session.machines.conversation import FEATURES, INTRODUCTIONS, RELAY, TopicStanding
from protocol.session.machines.punching import PUNCHING
from protocol.session.machines.reconciling import RECONCILING
from protocol.session.machines.table import PeerFaultCell, Step, Table
from protocol.session.machines.transfer import SENDING, SERVING
from protocol.session.session import MESSAGES

AnyTable = Table[Any, Any, Any]
MACHINES: Final[tuple[AnyTable, ...]] = (
    FEATURES,
    RELAY,
    INTRODUCTIONS,
    COMPARING,
    RECONCILING,
    SENDING,
    SERVING,
    TAKING,
    PUNCHING,
    CIRCUIT,
)


def machines_page(made: str) -> str:
    """All machines: each with its states, its cells, what cannot happen, and what its outputs do."""
    parts = [
        "# State machines of a session",
        "",
        made,
        "What a node does about each message and each answer of its store: the code reads these tables at run time.",
        "What a table refuses ends the connection with that reason ([protocol.md](../specification/protocol.md), 9).",
    ]
    parts += ["", "## Messages of the peer", "", *_messages()]
    for machine in MACHINES:
        drawn = [*drawing(machine), ""] if machine is COMPARING else []
        parts += ["", f"## {machine.title}", "", *drawn, *_states(machine), "", *_cells(machine)]
        parts += ["", *_outputs(machine), *_impossible(machine)]
    return "\n".join(parts) + "\n"


def drawing(machine: AnyTable) -> list[str]:
    """As a state diagram: arrows that change the state. What is refused is in the table."""
    arrows: dict[tuple[Enum, Enum], list[str]] = {}
    for (state, event), cell in machine.cells.items():
        if isinstance(cell, Step) and cell.to is not state:
            arrows.setdefault((state, cell.to), []).append(_name(event))
    lines = [f"    [*] --> {_name(state)}" for state in machine.first]
    states: type[Enum] = machine.states
    order = list(states)
    for (state, to), events in sorted(arrows.items(), key=lambda one: tuple(map(order.index, one[0]))):
        lines.append(f"    {_name(state)} --> {_name(to)} : {', '.join(events)}")
    return ["```mermaid", "stateDiagram-v2", *lines, "```"]


def _name(one: Enum) -> str:
    return one.name.lower()


def _meaning(one: Enum) -> str:
    if isinstance(one.value, int):
        return f"a frame of kind {one.value}"
    return str(one.value)


def _messages() -> list[str]:
    """Make a row for each message, and say how topics stand."""
    rows = ["| message | about a topic that is | does | refuses with |", "|---|---|---|---|"]
    for kind, row in MESSAGES.items():
        standings = [one for one in TopicStanding if one in row.standings]
        faults = ", ".join(f"`{one}`" for one in row.faults)
        rows.append(f"| `{kind.__struct_config__.tag}` | {_listed(standings)} | {row.does} | {faults} |")
    return [
        "What is in *italics* is a machine of this page, with faults of its own.",
        "A message that names no topic may always be said. About a topic that stands otherwise it is `unknown_topic`.",
        "",
        "| a topic is | where |",
        "|---|---|",
        *(f"| {_name(one)} | {one.value} |" for one in TopicStanding),
        "",
        *rows,
    ]


def _states(machine: AnyTable) -> list[str]:
    return ["| state | |", "|---|---|", *(f"| {_name(one)} | {one.value} |" for one in machine.states)]


def _cells(machine: AnyTable) -> list[str]:
    """A row for each event and each different answer to it."""
    rows = ["| event | in | does | next |", "|---|---|---|---|"]
    for event in machine.events:
        answers: dict[tuple[str, str], list[Enum]] = {}
        for state in machine.states:
            if (cell := machine.cells.get((state, event))) is not None:
                answers.setdefault(_answer(state, cell), []).append(state)
        for (does, to), states in answers.items():
            rows.append(f"| {_name(event)} | {_listed(states)} | {does} | {to} |")
    names = [
        "",
        "| event | |",
        "|---|---|",
        *(f"| {_name(one)} | {_meaning(one)} |" for one in machine.events),
    ]
    return rows + names


def _answer(state: Enum, cell: "Step[Any, Any] | PeerFaultCell") -> tuple[str, str]:
    if isinstance(cell, PeerFaultCell):
        return f"refuse: `{cell.reason}`", ""
    return _listed(cell.outputs), "" if cell.to is state else _name(cell.to)


def _listed(ones: Iterable[Enum]) -> str:
    return ", ".join(map(_name, ones))


def _outputs(machine: AnyTable) -> list[str]:
    used = {output for cell in machine.cells.values() if isinstance(cell, Step) for output in cell.outputs}
    rows = ["| output | | refuses at a bound |", "|---|---|---|"]
    for output in type(next(iter(used))):
        bounds = ", ".join(f"`{one.reason}`" for one in machine.bounds.get(output, ()))
        rows.append(f"| {_name(output)} | {output.value} | {bounds} |")
    return rows


def _impossible(machine: AnyTable) -> list[str]:
    if not machine.impossible:
        return []
    reasons: dict[str, list[Enum]] = {}
    for event, why in machine.impossible.items():
        reasons.setdefault(why, []).append(event)
    lines = [f"- {_listed(events)}: {why}." for why, events in reasons.items()]
    return ["", "Impossible in a state that has no cell for it:", "", *lines]
