"""Peers of a repo find one another by those who know both, and again where one of them has moved."""

from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path

import pytest
import trio
from trio.testing import MockClock

from node.circuits.dialing import place_of
from node.network.line import listening_address, open_listener
from node.network.network import Network
from node.sync.addresses import AddressBook, AddressSource, Learned
from node.sync.conversation import Conversation
from node.sync.introductions import Introducer
from protocol.formats.body import BranchLink
from protocol.formats.links import PeerAddress
from protocol.formats.text import id_text
from protocol.ids import PeerId
from protocol.limits.network import HOST_TRIES_MAX, HOST_TRIES_SECONDS
from protocol.session.events import Event, PeersFound
from protocol.session.outputs import FindPeers, LearnPeers
from storage.peers.peers import load_reached
from tests.support.machine import fail_after
from tests.support.nodes import Node, members_of, open_nodes, share, together, until_equal


@asynccontextmanager
async def networked(
    node: Node, *, listen: str = "127.0.0.1:0", introduces: bool = True, says: str = ""
) -> AsyncIterator[Network]:
    """A node's network, listening on loopback; with what it learned before."""
    listeners = await open_listener(listen)
    address = says or listening_address(listeners)
    network = Network(
        node.hub,
        node.seed,
        lambda: 1_700_000_000.0 + trio.current_time(),
        own_address=address,
        introduces=introduces,
    )
    with node.replica.database.read() as connection:
        network.load(load_reached(connection))
    async with trio.open_nursery() as nursery:
        await nursery.start(network.run, listeners)
        nursery.start_soon(node.joiner.run)
        yield network
        nursery.cancel_scope.cancel()


def address_of(network: Network) -> str:
    """Where a network listens."""
    return network.introducer.own.address


async def until_met(network: Network, other: Node) -> None:
    """Wait until there is a connection with a node."""
    while True:
        if network.is_connected(other.key):
            return
        await trio.sleep(0.1)


@pytest.mark.slow
async def test_two_who_know_a_third_meet_and_meet_again_when_one_has_moved(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    with fail_after(6000), open_nodes(tmp_path, "alice", "bob", "carol") as (alice, bob, carol):
        await share(bob, alice, carol)
        async with networked(bob) as at_bob, networked(alice) as at_alice:
            at_alice.keep(bob.key, address_of(at_bob))
            async with networked(carol) as at_carol:
                at_carol.keep(bob.key, address_of(at_bob))
                await until_met(at_alice, carol)
                sources = {state.source for state in at_alice.peers if state.peer == carol.key}
                assert sources <= {AddressSource.INTRODUCTION, AddressSource.INCOMING}
                await trio.sleep(60)
                between = [
                    one for one in (*at_alice.peers, *at_carol.peers) if one.peer in (alice.key, carol.key)
                ]
                assert len([one for one in between if one.connection]) == 2, (
                    "one connection, seen from both sides"
                )
            await trio.sleep(1)
            assert not at_alice.is_connected(carol.key)
            async with networked(carol) as elsewhere:
                elsewhere.keep(bob.key, address_of(at_bob))
                await until_met(at_alice, carol)
                carol.write(carol.branch(), "moved")
                await until_equal(alice, carol)


@pytest.mark.slow
async def test_one_who_takes_no_part_is_made_known_to_nobody(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    with fail_after(6000), open_nodes(tmp_path, "alice", "bob", "carol") as (alice, bob, carol):
        await share(bob, alice, carol)
        async with (
            networked(bob) as at_bob,
            networked(alice) as at_alice,
            networked(carol, introduces=False) as at_carol,
        ):
            for network in (at_alice, at_carol):
                network.keep(bob.key, address_of(at_bob))
            await until_met(at_bob, alice)
            await until_met(at_bob, carol)
            await trio.sleep(300)
            assert {one.peer for one in at_alice.book.all} == {bob.key}
            assert not at_carol.book.all
            assert not at_alice.is_connected(carol.key)


@pytest.mark.slow
async def test_who_was_reached_is_found_again_after_a_restart_without_anyone_else(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    with fail_after(6000), open_nodes(tmp_path, "alice", "bob", "carol") as (alice, bob, carol):
        await share(bob, alice, carol)
        dialer, other = sorted((alice, carol), key=lambda node: node.key)  # the other one waits a little
        async with networked(other) as at_other:
            async with networked(bob) as at_bob, networked(dialer) as at_dialer:
                for network in (at_dialer, at_other):
                    network.keep(bob.key, address_of(at_bob))
                await until_met(at_dialer, other)
                await trio.sleep(60)
            async with networked(dialer) as again:
                await until_met(again, other)
                (state,) = [one for one in again.peers if one.connection]
                assert (state.direction, state.source) == ("out", AddressSource.INTRODUCTION)
                assert state.reached_at is not None
        with dialer.replica.database.read() as connection:
            rows = {row.peer: row for row in load_reached(connection)}
        assert rows[other.key].repos == {dialer.repo().repo_id}
        assert rows[bob.key].source == AddressSource.CONFIGURED


async def test_two_who_find_each_other_at_once_keep_one_connection(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    with fail_after(600), open_nodes(tmp_path, "alice", "bob") as (alice, bob):
        await share(alice, bob)  # else they would part for want of a common topic
        async with networked(bob) as at_bob, networked(alice) as at_alice:
            at_alice.keep(bob.key, address_of(at_bob))
            await until_met(at_alice, bob)
            address = address_of(at_bob)
            learned = Learned(bob.key, address, AddressSource.INTRODUCTION, bob.key, 0.0, 0.0)
            async with trio.open_nursery() as nursery:
                nursery.start_soon(at_alice._dialer.dial_learned, learned, trio.lowlevel.checkpoint)
                for _ in range(5):
                    await trio.sleep(10)
                    for at in (at_alice, at_bob):
                        assert len([one for one in at.peers if one.connection]) == 1
                nursery.cancel_scope.cancel()


class _Connection(Conversation):
    """One that notes of whom its peer is told."""

    def __init__(self, name: str) -> None:
        self.peer = PeerId(name.encode().ljust(32))
        self.told: list[PeerAddress] = []

    def happen(self, event: Event) -> None:
        assert isinstance(event, PeersFound)
        self.told += event.peers


@pytest.mark.parametrize(
    "own, told",
    [
        ("10.0.0.9:7474", {"near": "10.0.0.9:7474", "far": None, "here": "10.0.0.9:7474"}),
        ("127.0.0.1:7474", {"near": None, "far": None, "here": "127.0.0.1:7474"}),
        ("host.example:7474", dict.fromkeys(("near", "far", "here"), "0.0.0.0:7474")),
        ("[::]:7474", dict.fromkeys(("near", "far", "here"), "[::]:7474")),
    ],
)
def test_peers_are_told_of_no_address_that_reaches_less_far_than_they_are(
    tmp_path: Path, own: str, told: dict[str, str | None]
) -> None:
    places = {"near": "10.0.0.2:5", "far": "93.184.216.34:5", "here": "127.0.0.1:5"}
    with open_nodes(tmp_path, "alice") as (alice,), ExitStack() as meetings:
        alice.create_repo()
        topic = alice.epoch().topic
        book = AddressBook(alice.key, set())
        introducer = Introducer(alice.hub, book, PeerAddress(own, alice.key))
        connections = {name: _Connection(name) for name in places}
        for name, connection in connections.items():
            meetings.enter_context(introducer.while_connected(connection, places[name], is_dialed=True))
            introducer.perform(connection, FindPeers(topic))
        heard = {name: {one.peer: one.address for one in met.told} for name, met in connections.items()}
        assert {name: said.get(alice.key) for name, said in heard.items()} == told
        keys = {name: connection.peer for name, connection in connections.items()}
        assert heard["far"].keys() - {alice.key} == set(), "of private addresses"
        assert heard["near"].keys() - {alice.key} == {keys["far"]}
        assert heard["here"].keys() - {alice.key} == {keys["far"], keys["near"]}


def test_a_port_that_the_router_forwards_is_told_behind_the_address_that_peers_see(tmp_path: Path) -> None:
    forwarded: list[str | None] = [None]
    with open_nodes(tmp_path, "alice") as (alice,), ExitStack() as meetings:
        alice.create_repo()
        topic = alice.epoch().topic
        book = AddressBook(alice.key, set())
        own = PeerAddress("*:7474", alice.key)
        introducer = Introducer(alice.hub, book, own, lambda: forwarded[-1])
        connection = _Connection("far")
        meetings.enter_context(introducer.while_connected(connection, "93.184.216.34:5", is_dialed=True))
        introducer.perform(connection, FindPeers(topic))
        assert [one.address for one in connection.told] == ["0.0.0.0:7474"]
        forwarded.append("8.8.4.4:7001")
        introducer.perform(connection, FindPeers(topic))
        assert [one.address for one in connection.told][1:] == ["0.0.0.0:7474", "8.8.4.4:7001"]


async def test_others_are_told_the_last_of_the_addresses_that_a_peer_says_together(tmp_path: Path) -> None:
    """Each would have all peers looked at for each topic: a peer that takes turns between two of them pays nothing."""
    with open_nodes(tmp_path, "alice") as (alice,), ExitStack() as meetings:
        alice.create_repo()
        topic = alice.epoch().topic
        introducer = Introducer(
            alice.hub, AddressBook(alice.key, set()), PeerAddress("10.0.0.1:1", alice.key)
        )
        near, moving = _Connection("near"), _Connection("far")
        meetings.enter_context(introducer.while_connected(near, "10.0.0.2:5", is_dialed=True))
        meetings.enter_context(introducer.while_connected(moving, "93.184.216.34:5", is_dialed=False))
        for connection in (near, moving):
            introducer.perform(connection, FindPeers(topic))
        near.told.clear()
        ports = [1, 2] * 8
        said = tuple(PeerAddress(f"93.184.216.34:{port}", moving.peer) for port in ports)
        for _ in range(2):
            introducer.perform(moving, LearnPeers(topic, said))
        assert near.told == [PeerAddress("93.184.216.34:2", moving.peer)]


async def test_through_a_relay_two_learn_public_addresses_of_each_other_and_nothing_else(
    tmp_path: Path,
) -> None:
    with open_nodes(tmp_path, "alice") as (alice,), ExitStack() as meetings:
        alice.create_repo()
        topic = alice.epoch().topic
        book = AddressBook(alice.key, set())
        own = PeerAddress("*:7474", alice.key)
        introducer = Introducer(alice.hub, book, own, lambda: None, lambda: ["8.8.4.4:7001"])
        near, through = _Connection("near"), _Connection("through")
        meetings.enter_context(introducer.while_connected(near, "10.0.0.2:5", is_dialed=True))
        meetings.enter_context(
            introducer.while_connected(through, place_of(PeerId(b"r" * 32)), is_dialed=False)
        )
        for connection in (near, through):
            introducer.perform(connection, FindPeers(topic))
        assert list(through.told) == [PeerAddress("8.8.4.4:7001", alice.key)], "of nobody else"
        said = ("8.8.8.8:1", "10.0.0.9:1", "127.0.0.1:1", "0.0.0.0:1", "[fe80::1]:1", "name.example:1")
        told = [PeerAddress(one, through.peer) for one in said]
        introducer.perform(through, LearnPeers(topic, (*told, PeerAddress("8.8.8.9:1", near.peer))))
        assert [(one.peer, one.address) for one in book.all] == [(through.peer, "8.8.8.8:1")]


async def test_peers_are_introduced_on_the_own_topic_of_the_epoch_that_is_written_in_and_on_no_other(
    tmp_path: Path,
) -> None:
    with open_nodes(tmp_path, "alice") as (alice,), ExitStack() as meetings:
        alice.create_repo()
        root = alice.replica.root_branch(alice.repo())
        earlier = alice.epoch()
        alice.author.start_epoch(alice.repo())
        alice.author.write(root, BranchLink(alice.branch().branch_id))
        own, book = alice.epoch().topic, AddressBook(alice.key, set())
        introducer = Introducer(alice.hub, book, PeerAddress("8.8.4.4:7474", alice.key))
        topics = set(alice.replica.by_topic)
        assert len(topics) == 6, "two of each epoch, and the links of a branch in both"
        assert {earlier.topic, own} <= topics
        for topic in topics:
            connection = _Connection(topic.hex())
            meetings.enter_context(introducer.while_connected(connection, "8.8.8.8:5", is_dialed=True))
            introducer.perform(connection, FindPeers(topic))
            said = PeerAddress("8.8.8.8:1", PeerId(topic))
            introducer.perform(connection, LearnPeers(topic, (said,)))
            assert bool(connection.told) is (topic == own)
            assert book.knows(PeerId(topic)) is (topic == own)
        assert introducer.count_peers(alice.repo().repo_id) == 1


@pytest.mark.slow
async def test_a_banned_peer_is_neither_made_known_nor_dialed(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    with fail_after(6000), open_nodes(tmp_path, "alice", "bob", "carol") as (alice, bob, carol):
        await share(bob, alice, carol)
        async with networked(bob) as at_bob, networked(alice) as at_alice, networked(carol) as at_carol:
            at_alice.banned.add(carol.key)
            at_bob.banned.add(carol.key)
            at_alice.keep(bob.key, address_of(at_bob))
            at_carol.keep(bob.key, address_of(at_bob))
            await trio.sleep(300)
            assert not at_alice.book.knows(carol.key)
            at_bob.banned.clear()
            await until_met(at_bob, carol)
            await trio.sleep(300)
            assert not at_alice.book.knows(carol.key)
            assert at_carol.book.knows(alice.key), "others hear of whom this node has banned"
            assert not at_alice.is_connected(carol.key)
            assert not at_carol.is_connected(alice.key)


@pytest.mark.slow
async def test_who_was_excluded_is_told_of_nobody_and_believed_nothing(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    with fail_after(6000), open_nodes(tmp_path, "alice", "bob", "carol") as (alice, bob, carol):
        await share(bob, alice, carol)
        await members_of(bob).remove("repo", id_text(carol.author.user), "")
        await together(bob, alice)
        async with networked(bob) as at_bob, networked(alice) as at_alice, networked(carol) as at_carol:
            at_alice.keep(bob.key, address_of(at_bob))
            at_carol.keep(bob.key, address_of(at_bob))
            await until_met(at_bob, alice)
            await until_met(at_bob, carol)
            await trio.sleep(300)
            assert at_alice.book.knows(bob.key)
            assert not at_carol.book.all
            assert not at_alice.book.knows(carol.key)
            assert not at_bob.book.knows(carol.key)


@pytest.mark.slow
async def test_a_host_that_a_liar_names_gets_a_bounded_number_of_connections(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    hits = 0

    async def be_hit(stream: trio.SocketStream) -> None:
        nonlocal hits
        hits += 1
        await stream.aclose()

    with fail_after(600_000), open_nodes(tmp_path, "alice", "bob") as (alice, bob):
        await share(bob, alice)
        async with trio.open_nursery() as nursery, networked(alice) as at_alice, networked(bob) as at_bob:
            victims = await open_listener("127.0.0.1:0")
            nursery.start_soon(trio.serve_listeners, be_hit, victims)
            at_bob.keep(alice.key, address_of(at_alice))
            await until_met(at_alice, bob)
            (connection,) = [one.connection for one in at_bob.peers if one.connection]
            topic = bob.epoch().topic
            hour_began = trio.current_time()
            for number in range(200):
                lie = PeerAddress(listening_address(victims), PeerId(number.to_bytes(32, "big")))
                connection.happen(PeersFound(topic, (lie,)))
                await trio.sleep(15)
            assert trio.current_time() - hour_began < HOST_TRIES_SECONDS
            assert hits == HOST_TRIES_MAX
            nursery.cancel_scope.cancel()
