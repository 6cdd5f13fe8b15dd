"""Connections come and go, and whatever is wrong with one of them, the node and the others go on."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest
import trio
from trio.testing import MockClock

from node.network.line import listening_address, open_listener
from node.network.network import Network
from node.network.peer_dialing import PeerDialer
from node.network.peer_state import Displacements, explain_end
from node.network.peers import Peers
from node.runtime.errors import ServiceError
from node.sync.addresses import AddressSource, Learned
from node.sync.connection import Connection, Ended
from node.wire.transport import TransportError, dial
from protocol.crypto.keys import AgreementSecret, NodeSeed
from protocol.formats.text import id_text
from protocol.ids import PeerId
from protocol.limits.network import STRANGER_IDLE_SECONDS
from protocol.limits.peers import DIAL_BACKOFF_MAX_SECONDS, DUPLICATE_SECONDS, IDLE_TIMEOUT_SECONDS
from protocol.session.messages import KeepAlive
from ravel.types.peers import PeerSettings
from storage.peers.peers import load_links, load_peers
from tests.support.machine import fail_after
from tests.support.nodes import Node, open_nodes
from tests.support.relays import open_relay, until
from tests.support.strangers import met

KEY = PeerId(b"k" * 32)


@asynccontextmanager
async def _running(node: Node, clock: Callable[[], float] = lambda: 0.0) -> AsyncIterator[Network]:
    """The node's network on loopback; cancelled at the end."""
    listeners = await open_listener("127.0.0.1:0")
    network = Network(node.hub, node.seed, clock, own_address=listening_address(listeners))
    with fail_after(3600):
        async with trio.open_nursery() as nursery:
            await nursery.start(network.run, listeners)
            yield network
            nursery.cancel_scope.cancel()


@pytest.mark.parametrize("host", ["a" * 64 + ".example", "ex..ample"])
async def test_an_address_that_cannot_be_looked_up_is_said_and_ends_nothing(
    tmp_path: Path, autojump_clock: MockClock, host: str
) -> None:
    with open_nodes(tmp_path, "alice") as (alice,):
        async with _running(alice) as network:
            network.keep(KEY, f"{host}:7474")
            await trio.sleep(1)
            assert network.peers[0].last_error
            assert network.peers[0].state in ("waiting", "dialing")


async def test_a_peer_that_is_gone_before_it_is_served_ends_nothing(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    with open_nodes(tmp_path, "alice") as (alice,):
        async with _running(alice) as network:
            with trio.socket.socket() as listening:
                await listening.bind(("127.0.0.1", 0))
                listening.listen(1)
                theirs = await trio.open_tcp_stream("127.0.0.1", listening.getsockname()[1])
                ours = trio.SocketStream((await listening.accept())[0])
                await theirs.aclose()
                ours.socket.close()  # as after a reset: it has no peer whose address could be asked for
                await network._serve(ours)
                assert network.peers == []


@pytest.mark.slow
async def test_a_defect_in_one_connection_is_logged_and_the_peer_dialed_again(
    tmp_path: Path, autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(PeerDialer, "_dial_once", fail)
    with open_nodes(tmp_path, "alice") as (alice,):
        async with _running(alice) as network:
            network.keep(KEY, "127.0.0.1:7474")
            await trio.sleep(1)
            assert "defect" in (network.peers[0].last_error or "")


async def test_a_listener_needs_a_host() -> None:
    with fail_after(5), pytest.raises(OSError, match="not a host"):
        await open_listener("ex..ample:0")


async def test_a_relay_that_a_link_named_may_keep_that_repo_and_one_that_was_chosen_all(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    with open_nodes(tmp_path, "alice") as (alice,):
        linked, _ = alice.create_repo("linked")
        alice.create_repo("other")
        topics = list(alice.replica.topics.values())
        async with _running(alice) as network:
            peers = Peers(alice.hub, network, alice.key)
            await peers.keep(KEY, "host:7474", linked.repo_id)
            may = [one for one in topics if network.may_keep(KEY, one)]
            assert may == alice.replica.tables.topics_in(linked.num)
            assert len(may) == 2
            (other,) = alice.replica.tables.topics_in(linked.num + 1)[:1]
            shared = replace(other, writers_of=may[0].epochs)
            assert network.may_keep(KEY, shared), "an init may state what is another repo's"
            gone = replace(other, repo_num=999, epochs=(), writers_of=())
            assert not network.may_keep(KEY, gone), "its repo was deleted since it was looked up"
            with alice.replica.database.read() as connection:
                assert load_links(connection) == {KEY: {linked.repo_id}}
            await peers.add("host:7474", id_text(KEY), relay=True)
            assert all(network.may_keep(KEY, one) for one in topics)
            await peers.keep(KEY, "host:7475", linked.repo_id)
            with alice.replica.database.read() as connection:
                assert [row.is_relay for row in load_peers(connection)] == [True], "a link takes nothing back"
            await peers.remove(id_text(KEY))
            with alice.replica.database.read() as connection:
                assert (load_peers(connection), load_links(connection)) == ([], {})


async def test_another_address_leaves_a_relay_a_relay_until_the_user_says_otherwise(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    with open_nodes(tmp_path, "alice") as (alice,):
        alice.create_repo()
        topic = next(iter(alice.replica.topics.values()))
        async with _running(alice) as network:
            peers = Peers(alice.hub, network, alice.key)

            def is_trusted() -> bool:
                with alice.replica.database.read() as connection:
                    (row,) = load_peers(connection)
                assert network.may_keep(KEY, topic) is row.is_relay, "after a restart as before it"
                return row.is_relay

            await peers.add("one.example:7474", id_text(KEY), relay=None)
            assert not is_trusted()
            await peers.add("two.example:7474", id_text(KEY), relay=True)
            assert is_trusted()
            await peers.add("three.example:7474", id_text(KEY), relay=None)
            assert is_trusted()
            assert (await peers.show(id_text(KEY)))["relay"]
            await peers.add("four.example:7474", id_text(KEY), relay=False)
            assert not is_trusted()


async def test_another_address_of_a_peer_is_added_and_cuts_no_connection(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    """The one in use may be the only one that this network lets through."""
    with open_nodes(tmp_path, "alice", "bob") as (alice, bob):
        repo, _ = alice.create_repo()
        async with _running(alice) as at_alice, _running(bob) as at_bob:
            peers = Peers(alice.hub, at_alice, alice.key)
            there = at_bob.introducer.own.address
            await peers.add("127.0.0.1:1", id_text(bob.key), relay=False)
            await peers.add(there, id_text(bob.key), relay=False)
            await until(lambda: at_alice.is_connected(bob.key))
            (state,) = at_alice.peers
            before = state.connection
            await peers.add("127.0.0.1:2", id_text(bob.key), relay=False)
            await peers.keep(bob.key, "127.0.0.1:3", repo.repo_id, ("127.0.0.1:4",))
            await trio.sleep(10)
            assert at_alice.peers == [state]
            assert state.connection is before
            assert state.address == there
            assert state.others == tuple(f"127.0.0.1:{port}" for port in (2, 1, 3, 4))
            assert [state.is_linked(f"127.0.0.1:{port}") for port in (2, 1, 3, 4)] == [
                False,
                False,
                True,
                True,
            ]
            with alice.replica.database.read() as connection:
                (row,) = load_peers(connection)
            assert row.address == "127.0.0.1:2"
            assert set(row.others) == {there, "127.0.0.1:1"}, "links add nothing to what a user has named"
            await peers.add(there, id_text(bob.key), relay=True)
            await until(lambda: state.connection not in (None, before))  # so it is told what to keep
            await peers.remove(id_text(bob.key))
            with alice.replica.database.read() as connection:
                assert load_peers(connection) == []
            await peers.add("127.0.0.1:9", id_text(bob.key), relay=False)
            (state,) = at_alice.peers
            assert (state.address, state.others) == ("127.0.0.1:9", ()), "a new beginning"


async def test_what_a_removal_or_a_ban_forgets_can_be_put_back(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    with open_nodes(tmp_path, "alice") as (alice,):
        linked, _ = alice.create_repo("linked")
        alice.create_repo("other")
        topics = list(alice.replica.topics.values())
        key = id_text(KEY)
        async with _running(alice) as network:
            peers = Peers(alice.hub, network, alice.key)

            async def facts() -> object:
                with alice.replica.database.read() as connection:
                    rows = (load_peers(connection), load_links(connection))
                return (
                    rows,
                    [network.may_keep(KEY, one) for one in topics],
                    (await peers.views())[0]["source"],
                )

            await peers.keep(KEY, "host:7474", linked.repo_id, ["wss://host"])
            before, shown = await facts(), await peers.show(key)
            assert (shown["relay"], shown["repos"]) == (False, [id_text(linked.repo_id)])
            await peers.remove(key)
            await _restore(peers, shown)
            assert await facts() == before, "it may keep that repo, and no other"
            await peers.ban(key)
            with pytest.raises(ServiceError, match="banned"):
                await _restore(peers, shown)
            await peers.unban(key)
            await _restore(peers, shown)
            assert (await facts(), await peers.show(key)) == (before, shown)

            await peers.remove(key)
            await peers.add("host:7474", key, relay=True)
            before, shown = await facts(), await peers.show(key)
            await peers.remove(key)
            await _restore(peers, shown)
            assert await facts() == before, "it has not said what it is, and may keep all that it will take"
            await _restore(peers, shown | {"relay": False})
            assert not any(network.may_keep(KEY, one) for one in topics)


async def _restore(peers: Peers, shown: PeerSettings) -> None:
    await peers.restore(
        shown["peer"],
        shown["address"],
        shown["others"],
        from_link=shown["from_link"],
        relay=shown["relay"],
        repos=shown["repos"],
    )


async def test_of_a_peer_that_only_connected_nothing_was_asked_for(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    with open_nodes(tmp_path, "alice", "bob") as (alice, bob):
        async with _running(alice) as at_alice, _running(bob) as at_bob:
            at_bob.keep(alice.key, at_alice.introducer.own.address)
            await until(lambda: at_alice.is_connected(bob.key))
            with pytest.raises(ServiceError) as refused:
                await Peers(alice.hub, at_alice, alice.key).show(id_text(bob.key))
            assert refused.value.code == "not_found"


class _Sleeper:
    """The wall clock of a machine that may sleep, while trio's clock stands still."""

    def __init__(self) -> None:
        self.slept = 0.0

    def __call__(self) -> float:
        return 1_700_000_000.0 + trio.current_time() + self.slept


async def _accept_and_close(listener: trio.SocketListener) -> None:
    await (await listener.accept()).aclose()


async def test_after_a_sleep_peers_are_dialed_at_once(tmp_path: Path, autojump_clock: MockClock) -> None:
    clock = _Sleeper()
    with open_nodes(tmp_path, "alice") as (alice,):
        async with _running(alice, clock) as network, trio.open_nursery() as nursery:
            (listener, *_) = await open_listener("127.0.0.1:0")
            network.keep(KEY, listening_address([listener]))
            for _ in range(20):  # until the pauses are the longest
                with fail_after(DIAL_BACKOFF_MAX_SECONDS + 1):
                    await _accept_and_close(listener)
            await trio.sleep(0.1)
            clock.slept += IDLE_TIMEOUT_SECONDS
            with fail_after(6):  # the clock is looked at every five seconds
                await _accept_and_close(listener)
            with fail_after(1):
                await _accept_and_close(listener)
            nursery.cancel_scope.cancel()
            await listener.aclose()


@pytest.mark.parametrize("slept, is_ended", [(IDLE_TIMEOUT_SECONDS - 1, False), (IDLE_TIMEOUT_SECONDS, True)])
async def test_a_connection_that_slept_longer_than_peers_wait_is_made_anew(
    tmp_path: Path,
    autojump_clock: MockClock,
    slept: float,
    is_ended: bool,
) -> None:
    clock = _Sleeper()
    with open_nodes(tmp_path, "alice", "bob") as (alice, bob):
        async with _running(alice, clock) as at_alice, _running(bob) as at_bob:
            at_alice.keep(bob.key, at_bob.introducer.own.address)
            while True:
                if at_alice.is_connected(bob.key):
                    break
                await trio.sleep(0.1)
            before = at_alice.peers[0].connection
            clock.slept += slept
            await trio.sleep(20)
            assert at_alice.peers[0].connection is not None
            assert (at_alice.peers[0].connection is not before) == is_ended


@pytest.mark.parametrize("kind", ["half open", "idle"])
async def test_strangers_do_not_keep_a_known_peer_out(
    tmp_path: Path, autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setattr("node.network.network.CONNECTIONS_MAX", 8)
    monkeypatch.setattr("node.network.admission.HALF_OPEN_MAX", 8)
    with open_nodes(tmp_path, "alice", "bob") as (alice, bob):
        async with _running(alice) as at_alice, _running(bob) as at_bob:
            host, _, port = at_alice.introducer.own.address.rpartition(":")
            streams: list[trio.SocketStream] = []
            for number in range(12):
                stream = await trio.open_tcp_stream(host, int(port))
                streams.append(stream)
                if kind == "idle":
                    await dial(
                        stream, NodeSeed(number.to_bytes(32, "big")), alice.key, AgreementSecret(b"d" * 32)
                    )
            await trio.testing.wait_all_tasks_blocked()
            assert len(at_alice.peers) == (6 if kind == "idle" else 0)
            at_alice.keep(bob.key, "127.0.0.1:9")
            at_bob.keep(alice.key, at_alice.introducer.own.address)
            with fail_after(4):  # before a half-open connection's time is over
                await until(lambda: at_alice.is_connected(bob.key))
            for stream in streams:
                await trio.aclose_forcefully(stream)


async def test_a_relay_keeps_topics_of_who_chose_it_whoever_dialed(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    with open_nodes(tmp_path, "alice") as (alice,), open_relay(tmp_path / "r") as relay:
        alice.create_repo()
        async with _running(alice) as at_alice, _running(relay) as at_relay:
            await Peers(alice.hub, at_alice, alice.key).add("127.0.0.1:9", id_text(relay.key), relay=True)
            at_relay.keep(alice.key, at_alice.introducer.own.address)
            kept = relay.hub.relay
            assert kept is not None
            await until(lambda: len(kept.topics) == 2)


async def test_a_connection_that_is_cancelled_while_it_is_noted_is_closed(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    with open_nodes(tmp_path, "alice", "bob") as (alice, bob):
        async with _running(alice) as at_alice, _running(bob) as at_bob, trio.open_nursery() as nursery:
            proven = trio.Event()

            async def reached() -> None:
                proven.set()
                await trio.sleep_forever()

            learned = Learned(
                bob.key, at_bob.introducer.own.address, AddressSource.INTRODUCTION, bob.key, 0.0, 0.0
            )
            nursery.start_soon(at_alice._dialer.dial_learned, learned, reached)
            await proven.wait()
            nursery.cancel_scope.cancel()
        with fail_after(1):
            await until(lambda: not at_bob.is_connected(alice.key))


async def test_a_stranger_without_a_topic_is_left_after_a_while_and_one_with_a_topic_is_not(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    with open_nodes(tmp_path, "alice") as (alice,):
        alice.create_repo()
        began = trio.current_time()
        async with met(alice) as stranger:
            with suppress(TransportError):
                while await stranger.stream.receive_frame() is not None:
                    await stranger.say(KeepAlive())
        assert stranger.ended == Ended("no_common_topic")
        assert STRANGER_IDLE_SECONDS <= trio.current_time() - began < 2 * STRANGER_IDLE_SECONDS
        began = trio.current_time()
        async with met(alice) as other:
            await other.join(alice.epoch().topic)
            for _ in range(6):
                await other.say(KeepAlive())
                await trio.sleep(STRANGER_IDLE_SECONDS / 3)
            await other.stream.aclose()
        assert other.ended == Ended("closed")


class _Parted:
    """What is left of a connection where only its end matters."""

    def __init__(self) -> None:
        self.reason = ""

    def part(self, reason: str) -> None:
        self.reason = reason


def stays(
    network: Network,
    peer: PeerId,
    directions: tuple[str, str],
    gap: float,
    addresses: tuple[str, str] = ("host:7474", "host:7474"),
) -> int:
    """Which of two connections with a peer stays, that began after each other."""
    states = [
        network.new_state(peer, address, one, "connected", AddressSource.INCOMING)
        for address, one in zip(addresses, directions, strict=True)
    ]
    network.inbound = states
    connections = [_Parted(), _Parted()]
    for number, (state, connection) in enumerate(zip(states, connections, strict=True)):
        state.connection, state.met_at = cast(Connection, connection), 100.0 + number * gap
        network._conversing.settle_duplicates(state)
    (left,) = [number for number, one in enumerate(connections) if not one.reason]
    assert connections[1 - left].reason == "duplicate"
    return left


@pytest.mark.parametrize("gap", [0.0, DUPLICATE_SECONDS - 1, DUPLICATE_SECONDS, 1000.0])
@pytest.mark.parametrize("directions", [("out", "in"), ("in", "out"), ("out", "out"), ("in", "in")])
async def test_of_two_connections_both_nodes_keep_the_same(
    tmp_path: Path, directions: tuple[str, str], gap: float
) -> None:
    other_side = {"out": "in", "in": "out"}
    with open_nodes(tmp_path, "alice", "bob") as nodes:
        small, large = sorted(nodes, key=lambda node: node.key)
        ours = stays(Network(small.hub, small.seed, lambda: 0.0), large.key, directions, gap)
        mirrored = (other_side[directions[0]], other_side[directions[1]])
        theirs = stays(Network(large.hub, large.seed, lambda: 0.0), small.key, mirrored, gap)
    assert ours == theirs
    is_at_once = gap < DUPLICATE_SECONDS and directions[0] != directions[1]
    assert ours == (directions.index("out") if is_at_once else 1)


async def test_another_node_with_the_same_key_is_noticed(tmp_path: Path, autojump_clock: MockClock) -> None:
    with open_nodes(tmp_path, "alice", "bob", "copy") as (alice, bob, copy):
        copy.seed = alice.seed  # as after a restore beside the first
        now = trio.current_time
        async with _running(bob, now) as at_bob, _running(alice, now) as at_alice:
            where = at_bob.introducer.own.address
            at_alice.keep(bob.key, where)
            await until(lambda: at_alice.is_connected(bob.key))
            await trio.sleep(60)
            assert at_alice.displacements.find_last(now()) is None
            async with _running(copy, now) as at_copy:
                at_copy.keep(bob.key, where)
                await trio.sleep(300)
                for network in (at_alice, at_copy):
                    last = network.displacements.find_last(now())
                    assert last is not None
                    assert now() - last < 120
                assert at_bob.displacements.find_last(now()) is None
            await trio.sleep(700)
            assert at_alice.displacements.find_last(now()) is None, "it has gone"


def test_displacements_by_one_peer_show_another_node_with_the_key_and_one_by_each_of_many_do_not() -> None:
    """At a start in a LAN, this node's dial crosses that of every peer there."""
    displacements = Displacements()
    for number in range(2000):
        displacements.note(PeerId(number.to_bytes(32, "big")), 100.0)
        assert displacements.find_last(100.0) is None
    for now in (100.0, 200.0, 300.0):
        assert displacements.find_last(now) is None
        displacements.note(KEY, now)
    displacements.note(PeerId(bytes(32)), 400.0)
    assert displacements.find_last(400.0) == 300.0
    assert displacements.find_last(701.0) is None
    assert len(displacements._times) == 256


async def test_nodes_that_dial_each_other_are_no_two_of_one_key(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    with open_nodes(tmp_path, "alice", "bob") as (alice, bob):
        now = trio.current_time
        async with _running(bob, now) as at_bob, _running(alice, now) as at_alice:
            for _ in range(5):
                at_alice.keep(bob.key, at_bob.introducer.own.address)
                at_bob.keep(alice.key, at_alice.introducer.own.address)
                await until(lambda: at_alice.is_connected(bob.key) and at_bob.is_connected(alice.key))
                at_alice.forget(bob.key)
                at_bob.forget(alice.key)
                await trio.sleep(1)
            assert at_alice.displacements.find_last(now()) is None
            assert at_bob.displacements.find_last(now()) is None


@pytest.mark.parametrize(
    "reason, goodbye, said",
    [
        ("peer_left", "stopping", None),
        ("closed", "", None),
        ("idle", "", "idle"),
        ("peer_left", "bad_message:unknown_message", "bad_message:unknown_message: one of the two nodes"),
        ("bad_message:not_canonical", "", "bad_message:not_canonical: one of the two nodes"),
    ],
)
def test_an_end_for_what_the_other_version_does_not_read_says_so(
    reason: str, goodbye: str, said: str | None
) -> None:
    found = explain_end(reason, goodbye)
    assert found == said or (said is not None and found is not None and found.startswith(said))
    assert said is None or not said.startswith("bad") or (found is not None and "--version" in found)
