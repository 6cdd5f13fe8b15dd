"""The addresses of one peer: the order in which they are dialed, who wins, and what links may cause."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio
from trio.testing import MockClock

from node.network.dialing import DialsFailed, HostAllowance, dial_first, order_addresses
from node.network.line import Line, listening_address, open_listener
from node.network.network import Network
from node.network.peers import Peers
from node.sync.addresses import AddressSource
from node.wire.transport import TransportError
from protocol.ids import PeerId
from protocol.limits.peers import (
    DIAL_BACKOFF_MAX_SECONDS,
    DIAL_STAGGER_SECONDS,
    HANDSHAKE_SHARED_SECONDS,
    LINK_DIAL_SECONDS,
    LINK_DIALS_AT_ONCE_MAX,
    LINK_HOSTS_MAX,
)
from protocol.session.outputs import AddressSeen
from storage.peers.peers import load_peers
from tests.support.machine import fail_after
from tests.support.nodes import Node, open_nodes
from tests.support.relays import until

KEY = PeerId(b"k" * 32)


def test_the_nearest_that_may_work_comes_first() -> None:
    addresses = [
        "10.1.0.1:1",
        "127.0.0.1:1",
        "93.184.216.34:1",
        "192.168.1.9:1",
        "name.example:1",
        "[fe80::1]:1",
    ]
    near = {"192.168.1.9:1"}
    assert order_addresses([*addresses, "10.1.0.1:1"], None, near.__contains__) == [
        "192.168.1.9:1",
        "93.184.216.34:1",
        "name.example:1",
        "10.1.0.1:1",
        "127.0.0.1:1",
        "[fe80::1]:1",
    ]
    assert order_addresses(addresses, "127.0.0.1:1", near.__contains__)[0] == "127.0.0.1:1", "proven there"
    assert "10.0.0.1:1" not in order_addresses(addresses, "10.0.0.1:1", near.__contains__), "named no more"


class _Lines:
    """Addresses of which each connects after some seconds, or fails, and proves the key after some more."""

    def __init__(self, connects: dict[str, float], proves: dict[str, float]) -> None:
        self.connects = connects
        self.proves = proves
        self.began: dict[str, float] = {}
        self.at_once = 0
        self.proving = 0
        self.abandoned: list[str] = []
        self.left: list[str] = []

    async def connect(self, address: str) -> str:
        self.began[address] = trio.current_time()
        seconds = self.connects[address]
        await trio.sleep(abs(seconds))
        if seconds < 0:
            raise OSError("refused")
        return address

    async def prove(self, stream: str) -> str:
        self.proving += 1
        self.at_once = max(self.at_once, self.proving)
        try:
            await trio.sleep(abs(self.proves[stream]))
        finally:
            self.proving -= 1
        if self.proves[stream] < 0:
            raise TransportError("wrong_peer_key", "another node")
        return f"session at {stream}"

    async def abandon(self, stream: str) -> None:
        self.abandoned.append(stream)

    async def leave(self, session: str) -> None:
        self.left.append(session)

    async def dial(self) -> str:
        address, stream, session = await dial_first(
            list(self.connects), self.connect, self.prove, self.abandon, self.leave
        )
        assert address == stream
        assert session == f"session at {stream}"
        return address


async def test_a_silent_address_holds_up_the_next_one_for_a_moment_only(autojump_clock: MockClock) -> None:
    lines = _Lines({"silent": 100, "there": 0.01}, {"there": 0.01})
    began = trio.current_time()
    assert await lines.dial() == "there"
    assert trio.current_time() - began == pytest.approx(DIAL_STAGGER_SECONDS + 0.02)


async def test_after_a_failure_the_next_is_dialed_at_once(autojump_clock: MockClock) -> None:
    lines = _Lines({"refuses": -0.01, "another's": 0.01, "there": 0.01}, {"another's": -0.01, "there": 0.01})
    began = trio.current_time()
    assert await lines.dial() == "there"
    assert trio.current_time() - began == pytest.approx(0.05)


async def test_one_handshake_at_a_time_and_the_others_are_closed(autojump_clock: MockClock) -> None:
    lines = _Lines({"a": 0.3, "b": 0.06, "c": 5}, {"a": 1, "b": 1, "c": 1})
    assert await lines.dial() == "a"
    assert lines.at_once == 1
    assert lines.abandoned == ["b"], "it has connected, and waited for its turn"
    assert lines.left == []


async def test_who_connects_and_says_nothing_does_not_keep_the_peer_away(autojump_clock: MockClock) -> None:
    lines = _Lines({"mute": 0.01, "there": 0.01}, {"mute": 3600, "there": 0.1})
    began = trio.current_time()
    assert await lines.dial() == "there"
    assert trio.current_time() - began < HANDSHAKE_SHARED_SECONDS + 1


async def test_what_went_wrong_is_said_of_each(autojump_clock: MockClock) -> None:
    with pytest.raises(DialsFailed, match=r"a: refused; b: another node; c: no handshake"):
        await _Lines({"a": -1, "b": 1, "c": 1}, {"b": -1, "c": 3600}).dial()
    with pytest.raises(OSError, match="refused"):
        await _Lines({"a": -1}, {}).dial()
    with pytest.raises(TransportError, match="another node"):
        await _Lines({"a": 1}, {"a": -1}).dial()


async def test_a_session_that_nobody_gets_is_ended(autojump_clock: MockClock) -> None:
    lines = _Lines({"a": 0.01, "b": 0.01}, {"a": 0.01, "b": 0.01})
    with trio.CancelScope() as scope:
        prove = lines.prove

        async def prove_and_stop(stream: str) -> str:
            session = await prove(stream)
            scope.cancel()
            return session

        lines.prove = prove_and_stop  # type: ignore[method-assign]  # the user stops the node at that moment
        await lines.dial()
    assert lines.left == ["session at a"]


# --- what links may cause ---


def test_a_host_that_links_name_is_dialed_so_often_whatever_ports_and_keys_they_say() -> None:
    allowance = HostAllowance()
    assert [allowance.try_dial(f"93.184.216.34:{1 + n}", 0.0) for n in range(LINK_DIALS_AT_ONCE_MAX + 1)] == [
        *[True] * LINK_DIALS_AT_ONCE_MAX,
        False,
    ]
    assert allowance.try_dial("93.184.216.35:1", 0.0), "another host"
    assert not allowance.try_dial("93.184.216.34:1", LINK_DIAL_SECONDS - 1)
    assert allowance.try_dial("93.184.216.34:1", LINK_DIAL_SECONDS)
    assert not allowance.try_dial("93.184.216.34:1", LINK_DIAL_SECONDS)
    allowance.give_back("93.184.216.34:1", LINK_DIAL_SECONDS)
    assert allowance.try_dial("93.184.216.34:1", LINK_DIAL_SECONDS), "somebody is there"


def test_a_network_of_ipv6_and_a_name_count_as_one_host() -> None:
    allowance = HostAllowance()
    for number in range(LINK_DIALS_AT_ONCE_MAX):
        assert allowance.try_dial(f"[2606:2800:220::{1 + number}]:1", 0.0)
        assert allowance.try_dial(f"Host.example:{1 + number}", 0.0)
    assert not allowance.try_dial("[2606:2800:220::ffff]:1", 0.0)
    assert not allowance.try_dial("host.EXAMPLE:1", 0.0)


def test_so_many_hosts_are_counted_and_rested_ones_make_room() -> None:
    allowance = HostAllowance()
    for number in range(LINK_HOSTS_MAX):
        assert allowance.try_dial(f"host{number}.example:1", 0.0)
    assert not allowance.try_dial("another.example:1", 0.0)
    assert allowance.try_dial("another.example:1", LINK_DIAL_SECONDS)
    assert len(allowance._left) == 1


@asynccontextmanager
async def _running(node: Node) -> AsyncIterator[Network]:
    listeners = await open_listener("127.0.0.1:0")
    network = Network(node.hub, node.seed, lambda: 0.0, own_address=listening_address(listeners))
    with fail_after(36_000):
        async with trio.open_nursery() as nursery:
            await nursery.start(network.run, listeners)
            yield network
            nursery.cancel_scope.cancel()


@pytest.mark.slow
@pytest.mark.parametrize("source", [AddressSource.LINK, AddressSource.CONFIGURED])
async def test_a_link_does_not_make_a_node_dial_a_victim_for_ever_at_full_rate(
    tmp_path: Path, autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch, source: AddressSource
) -> None:
    dials: list[str] = []

    async def refuse(address: str) -> Line:
        dials.append(address)
        raise OSError("refused")

    monkeypatch.setattr("node.network.peer_dialing.open_tcp", refuse)
    with open_nodes(tmp_path, "alice") as (alice,):
        async with _running(alice) as network:
            for number in range(4):
                peer = PeerId(bytes([number]) * 32)
                others = [f"93.184.216.34:{10 * number + port}" for port in range(2, 9)]
                network.keep(peer, f"93.184.216.34:{10 * number + 1}", source, others)
            await trio.sleep(3600)
    if source is AddressSource.LINK:
        assert len(dials) <= LINK_DIALS_AT_ONCE_MAX + 3600 / LINK_DIAL_SECONDS + 1
        assert len(dials) > 3600 / LINK_DIAL_SECONDS - 2, "the peer may come back"
    else:
        assert len(dials) > 4 * 8 * 3600 / DIAL_BACKOFF_MAX_SECONDS / 2, "the user said so"
        assert len(dials) < 4 * 8 * (3600 / (DIAL_BACKOFF_MAX_SECONDS * 0.7) + 10), "and not more than that"


async def test_a_peer_is_found_at_another_of_its_addresses_and_there_first_from_then_on(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    with open_nodes(tmp_path, "alice", "bob") as (alice, bob):
        repo, _ = alice.create_repo()
        async with _running(alice) as at_alice, _running(bob) as at_bob:
            peers = Peers(alice.hub, at_alice, alice.key)
            there = at_bob.introducer.own.address
            await peers.keep(bob.key, "127.0.0.1:9", repo.repo_id, ("127.0.0.1:10", there))
            await until(lambda: at_alice.is_connected(bob.key))
            (state,) = at_alice.peers
            assert state.address == there
            assert state.others == ("127.0.0.1:9", "127.0.0.1:10")
            with alice.replica.database.read() as connection:
                (row,) = load_peers(connection)
                assert (row.address, row.others) == ("127.0.0.1:9", ("127.0.0.1:10", there))
            await until(lambda: at_alice.reached_at(bob.key) is not None)
            assert at_alice.proven == {bob.key: there}
            at_alice.forget(bob.key)
            assert at_alice.proven == {}


async def test_a_dialed_peer_says_where_it_sees_this_node_and_who_dials_is_not_believed(
    tmp_path: Path, autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard: list[tuple[PeerId, str, str]] = []
    monkeypatch.setattr(
        "node.network.own_addresses.OwnAddresses.note_claim", lambda _, *claim: heard.append(claim)
    )
    with open_nodes(tmp_path, "alice", "bob") as (alice, bob):
        async with _running(alice) as at_alice, _running(bob) as at_bob:
            there = at_bob.introducer.own.address
            at_alice.keep(bob.key, there)
            await until(lambda: bool(heard))
            ((peer, seen, across),) = heard
            assert (peer, across) == (bob.key, there)
            (state,) = at_bob.peers
            assert seen == state.address
            at_bob._conversing.note_reach(state, AddressSeen("8.8.4.4:1"), state.address)
            assert len(heard) == 1, "of who has come by itself nothing is taken"
