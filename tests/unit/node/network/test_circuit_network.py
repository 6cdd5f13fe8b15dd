"""Nodes that cannot dial each other meet through a relay, and a direct connection takes the circuit's place."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest
import trio
from trio.testing import MockClock

from node.circuits.dialing import place_of, relay_at
from node.circuits.switch import CircuitSwitch
from node.network.admission import share_name
from node.network.line import listening_address, open_listener
from node.network.network import Network
from node.relay.relay import RelayService
from node.sync.addresses import AddressSource
from protocol.crypto.signing import check_claims
from protocol.ids import PeerId
from protocol.limits.network import CONNECTIONS_MAX, CONNECTIONS_PER_HOST_SHARE
from protocol.limits.peers import DUPLICATE_SECONDS
from protocol.session.outputs import AddressSeen
from tests.support.blocking import inline
from tests.support.circuits import PLENTY as CIRCUITS
from tests.support.machine import fail_after
from tests.support.nodes import Node, open_nodes, until_equal
from tests.support.relays import PLENTY, until
from tests.unit.node.network.test_network import stays

NOWHERE: Final = "127.0.0.1:1"
"""Where nobody listens."""


@dataclass
class Served:
    """A node with its network, and where it listens."""

    node: Node
    network: Network
    address: str

    def paths(self, other: Node) -> list[bool]:
        """Connections with another node: whether each goes through a relay."""
        return [
            state.through is not None
            for state in self.network.peers
            if state.peer == other.key and state.connection is not None
        ]


@asynccontextmanager
async def _serving(
    node: Node, *, takes_circuits: bool, is_relay: bool = False, punches: bool = False
) -> AsyncIterator[Served]:
    switch = None
    if is_relay:
        node.hub.relay = RelayService(node.replica.database, PLENTY, inline(), lambda: 0, check_claims)
        switch = CircuitSwitch(node.key, CIRCUITS, node.hub.relay.visitor)
    listeners = await open_listener("127.0.0.1:0")
    network = Network(
        node.hub,
        node.seed,
        trio.current_time,
        introduces=not is_relay,
        takes_circuits=takes_circuits,
        punches=punches,
        switch=switch,
    )
    async with trio.open_nursery() as nursery:
        await nursery.start(network.run, listeners)
        nursery.start_soon(node.joiner.run)
        yield Served(node, network, listening_address(listeners))
        nursery.cancel_scope.cancel()


@asynccontextmanager
async def _three(
    folder: Path,
    *,
    bob_takes_circuits: bool = True,
    knows_alice: bool = True,
    punches: tuple[bool, bool] = (False, False),
) -> AsyncIterator[tuple[Served, Served, Served]]:
    """Alice, who has a repo, Bob, who joins it, and a relay that both use. Alice is kept where nobody listens."""
    with fail_after(3600), open_nodes(folder, "alice", "bob", "relay") as (alice, bob, relay):
        async with AsyncExitStack() as stack:
            at_relay = await stack.enter_async_context(_serving(relay, takes_circuits=False, is_relay=True))
            at_alice = await stack.enter_async_context(
                _serving(alice, takes_circuits=True, punches=punches[0])
            )
            at_bob = await stack.enter_async_context(
                _serving(bob, takes_circuits=bob_takes_circuits, punches=punches[1])
            )
            repo, _ = alice.create_repo()
            await bob.joiner.begin(alice.invite(repo))
            for one in (at_alice, at_bob):
                one.network.relays.add(relay.key)
                one.network.keep(relay.key, at_relay.address)
            if knows_alice:
                at_bob.network.keep(alice.key, NOWHERE)
            yield at_alice, at_bob, at_relay


@pytest.mark.slow
async def test_a_direct_connection_takes_the_circuits_place_and_no_commit_is_lost(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with _three(tmp_path) as (alice, bob, relay):
        await until(lambda: bob.paths(alice.node) == [True])
        await until_equal(alice.node, bob.node)
        branch = alice.node.branch()
        for number in range(20):
            alice.node.write(branch, f"post {number}")
            if number == 10:
                bob.network.dialed[alice.node.key].address = alice.address
                bob.network._dialer._woken.set()
            await trio.sleep(0.01)
        await until(lambda: bob.paths(alice.node) == [False] == alice.paths(bob.node))
        await until_equal(alice.node, bob.node)
        assert alice.node.digest(branch)[1] >= 20
        assert relay.network.switch is not None
        await until(lambda: relay.network.switch is not None and relay.network.switch.count == 0)
        await trio.sleep(3600)
        assert bob.paths(alice.node) == [False], "no circuit is asked for where there is a direct way"


@pytest.mark.slow
async def test_both_dial_at_one_moment_and_move_over_without_losing_a_commit(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with _three(tmp_path, punches=(True, True)) as (alice, bob, relay):
        await until(lambda: bob.paths(alice.node) == [True])
        branch = alice.node.branch()
        for number in range(20):
            alice.node.write(branch, f"post {number}")
            await trio.sleep(0.1)
        await until(lambda: bob.paths(alice.node) == [False] == alice.paths(bob.node))
        await until_equal(alice.node, bob.node)
        assert alice.node.digest(branch)[1] >= 20
        for one, other in ((alice, bob), (bob, alice)):
            (state,) = [one for one in one.network.peers if one.is_punched]
            assert state.peer == other.node.key
        switch = relay.network.switch
        assert switch is not None
        await until(lambda: switch.count == 0)
        await trio.sleep(3600)
        assert bob.paths(alice.node) == [False]
        ports = {state.address for state in alice.network.peers if state.is_punched}
        assert not ports & {one.address for one in bob.network.book.all}, "nobody else can dial there"


@pytest.mark.slow
@pytest.mark.parametrize("punches", [(True, False), (False, True)])
async def test_who_does_not_want_to_be_dialed_says_no_address(
    tmp_path: Path, autojump_clock: MockClock, punches: tuple[bool, bool]
) -> None:
    async with _three(tmp_path, punches=punches) as (alice, bob, _):
        await until(lambda: bob.paths(alice.node) == [True])
        await trio.sleep(600)
        assert bob.paths(alice.node) == [True]
        await until_equal(alice.node, bob.node)


@pytest.mark.slow
async def test_a_lost_circuit_is_asked_for_again_and_a_lost_relay_too(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with _three(tmp_path) as (alice, bob, relay):
        await until(lambda: bob.paths(alice.node) == [True])
        for state in relay.network.peers:
            assert state.connection is not None
            state.connection.part("stopping")
        await until(lambda: bob.paths(alice.node) == [])
        await until(lambda: bob.paths(alice.node) == [True])
        await until_equal(alice.node, bob.node)


@pytest.mark.slow
async def test_who_takes_no_circuits_is_not_met(tmp_path: Path, autojump_clock: MockClock) -> None:
    async with _three(tmp_path, bob_takes_circuits=False) as (alice, bob, relay):
        await trio.sleep(600)
        assert bob.paths(alice.node) == []
        assert relay.network.switch is not None
        assert relay.network.switch.totals.opened == 0


@pytest.mark.slow
async def test_a_relay_that_nobody_chose_passes_nothing_on(tmp_path: Path, autojump_clock: MockClock) -> None:
    async with _three(tmp_path) as (alice, bob, _):
        await until(lambda: bob.paths(alice.node) == [True])
        bob.network.relays.clear()
        for state in bob.network.peers:
            if state.connection is not None:
                state.connection.part("stopping")
        await trio.sleep(600)
        assert bob.paths(alice.node) == []


@pytest.mark.parametrize("gap", [0.0, DUPLICATE_SECONDS - 1, DUPLICATE_SECONDS, 1000.0])
@pytest.mark.parametrize("directions", [("out", "in"), ("in", "out"), ("out", "out"), ("in", "in")])
@pytest.mark.parametrize("is_first_relayed", [True, False])
async def test_of_a_circuit_and_a_direct_connection_both_nodes_keep_the_same(
    tmp_path: Path, directions: tuple[str, str], gap: float, is_first_relayed: bool
) -> None:
    place = place_of(PeerId(b"r" * 32))
    addresses = (place, NOWHERE) if is_first_relayed else (NOWHERE, place)
    other_side = {"out": "in", "in": "out"}
    with open_nodes(tmp_path, "alice", "bob") as nodes:
        small, large = sorted(nodes, key=lambda node: node.key)
        ours = stays(Network(small.hub, small.seed, lambda: 0.0), large.key, directions, gap, addresses)
        mirrored = (other_side[directions[0]], other_side[directions[1]])
        theirs = stays(Network(large.hub, large.seed, lambda: 0.0), small.key, mirrored, gap, addresses)
    assert ours == theirs
    direct = addresses.index(NOWHERE)
    assert ours == (direct if gap < DUPLICATE_SECONDS or is_first_relayed else 1)


async def test_a_place_behind_a_relay_is_no_address(tmp_path: Path) -> None:
    relay = PeerId(b"r" * 32)
    assert relay_at(place_of(relay)) == relay
    assert [relay_at(one) for one in ("127.0.0.1:7474", "relay:nonsense", "unknown")] == [None] * 3
    assert share_name(place_of(relay)) == place_of(relay)


async def test_strangers_through_one_relay_share_the_places_of_one_host(tmp_path: Path) -> None:
    with open_nodes(tmp_path, "alice") as (alice,):
        network = Network(alice.hub, alice.seed, lambda: 0.0)
        place = place_of(PeerId(b"r" * 32))
        for _ in range(CONNECTIONS_MAX // CONNECTIONS_PER_HOST_SHARE):
            assert network._admission.admit(place) is None
        assert network._admission.admit(place) == "too_many_connections_of_host"
        assert network._admission.admit("203.0.113.7:4711") is None


async def test_a_relay_elsewhere_does_not_see_this_node_on_its_own_machine(tmp_path: Path) -> None:
    with open_nodes(tmp_path, "alice") as (alice,):
        network = Network(alice.hub, alice.seed, lambda: 0.0)
        state = network.new_state(
            PeerId(b"r" * 32), "8.8.4.4:1", "out", "connected", AddressSource.CONFIGURED
        )
        for said, seen in (("127.0.0.1:5", ""), ("192.168.1.2:5", ""), ("8.8.8.8:5", "8.8.8.8:5")):
            network._conversing.note_reach(state, AddressSeen(said), state.address)
            assert state.seen == seen
