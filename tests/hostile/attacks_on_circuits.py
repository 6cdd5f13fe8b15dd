"""Attacks on circuits: by strangers on a relay that passes circuits on, and by what claims to be one."""

import secrets

from protocol.crypto.hashing import circuit_address
from protocol.crypto.keys import NodeSeed
from protocol.crypto.signing import public_key
from protocol.ids import CircuitAddress, PeerId
from protocol.limits.network import (
    CIRCUIT_DATA_SIZE_MAX,
    CIRCUIT_WINDOW_SIZE,
    CIRCUITS_OF_SESSION_MAX,
    WIDE_CIRCUIT_WINDOW_SIZE,
)
from protocol.session.messages import (
    CircuitClose,
    CircuitCredit,
    CircuitData,
    CircuitOpen,
    Circuits,
    KeepAlive,
    Meet,
    Message,
    Nodes,
    PunchAddresses,
    PunchNow,
    Relay,
)
from tests.hostile.peer import Attacker, HostilePeer
from tests.hostile.table import Role, attack

_ACCOMPLICE = NodeSeed(b"an accomplice".ljust(32, b"-"))


def _anybody() -> CircuitAddress:
    return CircuitAddress(secrets.token_bytes(32))


async def _taking(
    mallory: Attacker, *first: Message, seed: NodeSeed | None = None, reads: bool = True
) -> HostilePeer:
    """A connection on which circuits are taken, after these messages."""
    peer = await mallory.meet(seed=seed, reads=reads)
    await peer.say(*first, Circuits())
    if reads:
        await peer.hear(Circuits)
    return peer


async def _opened(mallory: Attacker, credit: int) -> tuple[HostilePeer, HostilePeer]:
    """Two connections of the attacker's own, with a circuit between them, for which its far end grants so much."""
    accomplice = await _taking(mallory, seed=_ACCOMPLICE)
    peer = await _taking(mallory)
    address = circuit_address(mallory.stage.victim, PeerId(public_key(_ACCOMPLICE)))
    await peer.say(CircuitOpen(1, address), CircuitCredit(1, CIRCUIT_WINDOW_SIZE))
    opened = await accomplice.hear(CircuitOpen)
    await accomplice.say(CircuitCredit(opened.circuit, credit))
    await peer.hear(CircuitCredit)
    return peer, accomplice


@attack(Role.RELAY_CLIENT)
async def circuits_to_nobody(mallory: Attacker) -> None:
    """A flood of circuits to nodes that are not here is refused, at the cost of a look each."""
    peer = await _taking(mallory)
    number = 1
    async for _ in mallory.rounds():
        for _ in range(20 * mallory.size):
            await peer.say(CircuitOpen(number, _anybody()))
            assert (await peer.hear(CircuitClose)).reason in ("not_here", "peer_full")
            await peer.say(CircuitClose(number, "closed"))
            number += 2


@attack(Role.RELAY_CLIENT, ends=("too_many_circuits",))
async def circuits_never_closed(mallory: Attacker) -> None:
    """Who asks for circuits and never says that they are closed is left at a bound."""
    peer = await _taking(mallory)
    for number in range(CIRCUITS_OF_SESSION_MAX + 1):
        await peer.say(CircuitOpen(2 * number + 1, _anybody()))
    await peer.wait_ended()


@attack(Role.RELAY_CLIENT, ends=("unknown_circuit",))
async def data_for_circuits_of_others(mallory: Attacker) -> None:
    """Numbers hold on one connection: nobody reaches into a circuit of others, which goes on."""
    peer, accomplice = await _opened(mallory, 1000)
    stranger = await _taking(mallory)
    await stranger.say(CircuitData(1, b"into another's circuit"))
    await stranger.wait_ended()
    await peer.say(CircuitData(1, b"on"))
    assert (await accomplice.hear(CircuitData)).data == b"on"


@attack(Role.RELAY_CLIENT, ends=("circuit_overrun",))
async def more_than_the_credit(mallory: Attacker) -> None:
    """One byte over the credit of the far end ends the sender's connection: a relay holds no more than was granted."""
    peer, _ = await _opened(mallory, 1000)
    await peer.say(CircuitData(1, bytes(1000)), CircuitData(1, b"x"))
    await peer.wait_ended()


@attack(Role.RELAY_CLIENT, ends=("circuit_overrun",))
async def wide_from_the_start(mallory: Attacker) -> None:
    """An accomplice that grants a wide window at once, and reads nothing, makes a relay hold no more than a usual one."""
    peer, _ = await _opened(mallory, WIDE_CIRCUIT_WINDOW_SIZE)
    await peer.say(CircuitData(1, bytes(CIRCUIT_WINDOW_SIZE)), CircuitData(1, b"x"))
    await peer.wait_ended()


@attack(Role.RELAY_CLIENT, ends=("too_much_credit",))
async def more_credit_than_a_window(mallory: Attacker) -> None:
    """Credit does not add up beyond a window, so that no end can have a relay queue more."""
    _, accomplice = await _opened(mallory, WIDE_CIRCUIT_WINDOW_SIZE)
    await accomplice.say(CircuitCredit(2, 1))
    await accomplice.wait_ended()


@attack(Role.RELAY_CLIENT, ends=("peer_does_not_read", ""))
async def circuits_that_nobody_reads(mallory: Attacker) -> None:
    """An end that takes credit and reads nothing stalls its own circuits, and is left in the end."""
    accomplice = await _taking(mallory, seed=_ACCOMPLICE, reads=False)
    peer = await _taking(mallory)
    address = circuit_address(mallory.stage.victim, PeerId(public_key(_ACCOMPLICE)))
    for number in range(1, 9, 2):
        await peer.say(CircuitOpen(number, address), CircuitCredit(number, 1))
        await accomplice.say(CircuitCredit(number + 1, CIRCUIT_WINDOW_SIZE))
        await peer.hear(CircuitCredit)
        for _ in range(CIRCUIT_WINDOW_SIZE // CIRCUIT_DATA_SIZE_MAX):
            await peer.say(CircuitData(number, bytes(CIRCUIT_DATA_SIZE_MAX)))
    async for _ in mallory.rounds():
        await peer.say(KeepAlive())


@attack(Role.RELAY_CLIENT, ends=("no_circuits",))
async def circuits_without_a_word(mallory: Attacker) -> None:
    """A circuit is asked for after both have said that they take circuits."""
    peer = await mallory.meet()
    await peer.say(CircuitOpen(1, _anybody()))
    await peer.wait_ended()


@attack(Role.STRANGER, ends=("no_circuits",))
async def circuits_of_a_false_relay(mallory: Attacker) -> None:
    """Who claims to be a relay, and was not chosen as one, opens no circuit to the node."""
    peer = await mallory.meet()
    await peer.say(Relay(), Circuits(), CircuitOpen(1, _anybody()))
    await peer.wait_ended()
    assert mallory.heard["Circuits"] == 0


@attack(Role.READER, ends=("unasked_nodes",))
async def nodes_nobody_asked_for(mallory: Attacker) -> None:
    """Who was not asked names no nodes, so that the node asks nobody for circuits to them."""
    peer = await mallory.meet()
    topic = await peer.join_alike(mallory.stage.own_root)
    await peer.say(Nodes(topic, (PeerId(secrets.token_bytes(32)),)))
    await peer.wait_ended()


@attack(Role.READER, ends=("no_circuits",))
async def meetings_at_no_relay(mallory: Attacker) -> None:
    """A node that is no relay names nobody: members' keys are not to be had from members this way."""
    peer = await mallory.meet()
    topic = await peer.join_alike(mallory.stage.own_root)
    await peer.say(Meet(topic))
    await peer.wait_ended()


_VICTIMS = ("8.8.4.4:22", "192.168.1.1:80")
"""Addresses that are others'."""


@attack(Role.READER, ends=("second_punch",))
async def punches_beside_a_circuit(mallory: Attacker) -> None:
    """Who is connected directly has the node dial nothing, and is told no address; who insists is left."""
    peer = await mallory.meet()
    await peer.join_alike(mallory.stage.own_root)
    await peer.say(PunchAddresses(_VICTIMS))
    await peer.say(PunchAddresses(_VICTIMS))
    await peer.wait_ended()
    assert mallory.heard["PunchAddresses"] == 0


@attack(Role.STRANGER, ends=("unasked_punch",))
async def punches_without_a_question(mallory: Attacker) -> None:
    """Nobody has the node dial at a moment that was not agreed on."""
    for said in (PunchNow(),), (PunchAddresses(_VICTIMS), PunchNow()):
        peer = await mallory.meet()
        await peer.say(*said)
        await peer.wait_ended()
