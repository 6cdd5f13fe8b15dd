"""An hour with peers that are of no use: they are tried on, for they may come back, and ever more seldom.

How long a try takes says nothing: an address that swallows packets takes longest, and is the most common one.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, cast

import pytest
import trio
from trio.testing import MockClock, memory_stream_pair

from node.circuits.client import CircuitClient, CircuitStream, NamedNode
from node.circuits.dialing import CircuitDialer
from node.network import line
from node.network.line import Line, listening_address, open_listener
from node.network.network import Network
from node.network.peer_state import PeerState
from node.wire.transport import TransportError
from protocol.crypto.keys import NodeSeed
from protocol.crypto.signing import public_key
from protocol.ids import PeerId
from protocol.limits.network import STRANGER_IDLE_SECONDS
from protocol.limits.peers import DIAL_BACKOFF_MAX_SECONDS, HANDSHAKE_TIMEOUT_SECONDS
from tests.support.machine import fail_after
from tests.support.nodes import Node, open_nodes, share
from tests.support.relays import PLENTY, open_relay

HOUR: Final = 3600.0
KEY: Final = public_key(NodeSeed(b"k" * 32))
WHILE_GROWING: Final = 10
"""Tries until pauses are the longest, and some more."""
TRIES_MAX: Final = HOUR / (DIAL_BACKOFF_MAX_SECONDS * 0.7) + WHILE_GROWING
"""Tries in an hour where each fails at once: 0.7 of a pause is not left to chance."""
TRIES_MIN: Final = HOUR / (DIAL_BACKOFF_MAX_SECONDS + 2 * HANDSHAKE_TIMEOUT_SECONDS)
"""Tries in an hour where each takes as long as it may."""


@asynccontextmanager
async def _running(node: Node) -> AsyncIterator[Network]:
    listeners = await open_listener("127.0.0.1:0")
    network = Network(node.hub, node.seed, lambda: 0.0, own_address=listening_address(listeners))
    with fail_after(10 * HOUR):
        async with trio.open_nursery() as nursery:
            await nursery.start(network.run, listeners)
            yield network
            nursery.cancel_scope.cancel()


async def _refuse(address: str) -> Line:
    raise OSError("refused")


async def _swallow(address: str) -> Line:
    await trio.sleep_forever()
    raise AssertionError


async def _take_long_to_refuse(address: str) -> Line:
    await trio.sleep(HANDSHAKE_TIMEOUT_SECONDS - 1)
    raise OSError("no route to host")


async def _say_nothing(address: str) -> Line:
    ours, theirs = memory_stream_pair()

    async def listen() -> None:
        while await theirs.receive_some():
            pass

    trio.lowlevel.spawn_system_task(listen)
    return Line(ours, address, "")


@pytest.mark.slow
@pytest.mark.parametrize("others", [(), ("192.0.2.1:2", "192.0.2.1:3")], ids=["one", "three"])
@pytest.mark.parametrize("answer", [_refuse, _swallow, _take_long_to_refuse, _say_nothing])
async def test_an_address_that_leads_nowhere_is_dialed_ever_more_seldom(
    tmp_path: Path,
    autojump_clock: MockClock,
    monkeypatch: pytest.MonkeyPatch,
    answer: Callable[[str], Awaitable[Line]],
    others: tuple[str, ...],
) -> None:
    dials: list[float] = []

    async def open_tcp(address: str) -> Line:
        if address == "192.0.2.1:1":
            dials.append(trio.current_time())
        return await answer(address)

    monkeypatch.setattr("node.network.peer_dialing.open_tcp", open_tcp)
    with open_nodes(tmp_path, "alice") as (alice,):
        async with _running(alice) as network:
            network.keep(KEY, "192.0.2.1:1", others=others)
            await trio.sleep(HOUR)
    assert TRIES_MIN <= len(dials) <= TRIES_MAX


@pytest.mark.slow
@pytest.mark.parametrize(
    "lasts, tries", [(0.1, (TRIES_MIN, TRIES_MAX)), (60.0, (HOUR / 61, HOUR / 60))], ids=["flaps", "lasts"]
)
async def test_a_peer_that_leaves_at_once_is_dialed_ever_more_seldom_and_one_that_stayed_at_once(
    tmp_path: Path,
    autojump_clock: MockClock,
    monkeypatch: pytest.MonkeyPatch,
    lasts: float,
    tries: tuple[float, float],
) -> None:
    met: list[float] = []
    with open_nodes(tmp_path, "alice", "bob") as (alice, bob):
        await share(alice, bob)
        async with _running(alice) as at_alice, _running(bob) as at_bob:
            converse = at_bob._conversing.converse

            async def leave(state: PeerState) -> None:
                await trio.sleep(lasts)
                assert state.connection is not None
                state.connection.part("stopping")

            async def converse_and_leave(state: PeerState, *args: Any) -> None:  # noqa: ANN401  # as it is called
                met.append(trio.current_time())
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(leave, state)
                    await converse(state, *args)

            monkeypatch.setattr(at_bob._conversing, "converse", converse_and_leave)
            at_alice.keep(bob.key, at_bob.introducer.own.address)
            await trio.sleep(HOUR)
    assert tries[0] - 1 <= len(met) <= tries[1] + 1


@pytest.mark.slow
async def test_a_peer_that_shares_nothing_is_dialed_at_the_longest_pause(
    tmp_path: Path, autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It hangs up on a stranger after two minutes."""
    dials: list[float] = []

    async def open_tcp(address: str) -> Line:
        dials.append(trio.current_time())
        return await line.open_tcp(address)

    monkeypatch.setattr("node.network.peer_dialing.open_tcp", open_tcp)
    with open_nodes(tmp_path, "alice", "bob") as (alice, bob):
        async with _running(alice) as at_alice, _running(bob) as at_bob:
            at_alice.keep(bob.key, at_bob.introducer.own.address)
            await trio.sleep(HOUR)
    longest = STRANGER_IDLE_SECONDS + DIAL_BACKOFF_MAX_SECONDS
    assert HOUR / (longest + 1) <= len(dials) <= HOUR / (longest - 0.3 * DIAL_BACKOFF_MAX_SECONDS) + 6


@pytest.mark.slow
async def test_a_circuit_on_which_nobody_shakes_hands_is_no_conversation(
    tmp_path: Path, autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def dial(*_: object) -> None:
        await trio.sleep(HANDSHAKE_TIMEOUT_SECONDS)
        raise TransportError("timeout", "no handshake")

    monkeypatch.setattr("node.network.peer_dialing.dial", dial)
    with open_nodes(tmp_path, "alice") as (alice,):
        network = Network(alice.hub, alice.seed, lambda: 0.0)
        stream = cast(CircuitStream, memory_stream_pair()[0])
        assert not await network._dialer.dial_through(KEY, stream, PeerId(b"r" * 32))


class _Relays:
    """A circuit client whose relays come and go, and open no circuit, or one on which nothing lasts."""

    def __init__(self, opens: bool) -> None:
        self.opens = opens
        self.relays = [PeerId(b"r" * 32)]
        self.named_nodes: dict[PeerId, NamedNode] = {}
        self.asked: list[float] = []

    def relays_to(self, peer: PeerId) -> list[PeerId]:
        return self.relays

    async def open(self, relay: PeerId, peer: PeerId) -> CircuitStream:
        self.asked.append(trio.current_time())
        await trio.lowlevel.checkpoint()
        if not self.opens:
            raise TransportError("circuit_refused", "the relay opens no circuit")
        return cast(CircuitStream, None)


@pytest.mark.parametrize("seconds", [0.0, HANDSHAKE_TIMEOUT_SECONDS])
@pytest.mark.parametrize("opens", [False, True], ids=["refuses", "opens"])
async def test_a_peer_that_no_circuit_reaches_is_asked_for_ever_more_seldom(
    autojump_clock: MockClock, opens: bool, seconds: float
) -> None:
    relays = _Relays(opens)

    async def converse(peer: PeerId, stream: CircuitStream, relay: PeerId) -> bool:
        await trio.sleep(seconds)
        return False

    dialer = CircuitDialer(
        cast(CircuitClient, relays), lambda: {KEY: 0.0}, lambda peer, topic: False, converse
    )
    with trio.move_on_after(HOUR):
        await dialer.run()
    assert TRIES_MIN <= len(relays.asked) <= TRIES_MAX


async def test_a_relay_that_comes_is_asked_at_once_and_one_that_comes_and_goes_no_oftener_than_it_comes(
    autojump_clock: MockClock,
) -> None:
    relays = _Relays(opens=False)
    dialer = CircuitDialer(
        cast(CircuitClient, relays), lambda: {KEY: 0.0}, lambda peer, topic: False, _never_converse
    )
    comes = 0
    async with trio.open_nursery() as nursery:
        nursery.start_soon(dialer.run)
        while trio.current_time() < HOUR:
            await trio.sleep(30)
            relays.relays = []
            dialer.look_again()
            await trio.sleep(30)
            comes += 1
            relays.relays = [PeerId(b"r" * 32)]
            dialer.look_again()
        nursery.cancel_scope.cancel()
    assert comes <= len(relays.asked) <= 2 * comes + WHILE_GROWING


async def _never_converse(peer: PeerId, stream: CircuitStream, relay: PeerId) -> bool:
    raise AssertionError


@pytest.mark.slow
async def test_topics_that_a_relay_has_no_room_for_are_offered_ever_more_seldom_and_kept_once_it_has(
    tmp_path: Path, autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A topic is offered once in a session, which may last for weeks."""
    monkeypatch.setattr("node.sync.relay_client.REFUSED_PAUSE_MIN_SECONDS", HOUR / 8)  # days take long
    monkeypatch.setattr("node.sync.relay_client.REFUSED_PAUSE_MAX_SECONDS", HOUR)
    full = replace(PLENTY, peer_topic_count=1)
    with open_nodes(tmp_path, "alice") as (alice,), open_relay(tmp_path / "r", full) as relay:
        alice.create_repo()
        service = relay.hub.relay
        assert service is not None
        async with _running(alice) as at_alice, _running(relay) as at_relay:
            at_alice.relays.add(relay.key)
            at_alice.keep(relay.key, at_relay.introducer.own.address)
            await trio.sleep(2 * HOUR)
            (refusal,) = service.refusals.counts.values()
            sessions = refusal.count
            assert 4 <= sessions <= 6, "after 0, 1, 3, 7 and 15 eighths of an hour, of which 0.3 are chance"
            service.quotas = PLENTY
            await trio.sleep(2 * HOUR)
            assert service.topics.keys() == alice.replica.by_topic.keys()
            assert alice.hub.refusing == {}
            assert refusal.count == sessions
