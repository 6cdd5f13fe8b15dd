"""Peers of a repo find one another by those who know both, and again where one of them has moved."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import trio
from trio.testing import MockClock

from node.addresses import Source
from node.network import Network, listening_address, open_listener
from protocol.limits import HOST_TRIES_MAX, HOST_TRIES_SECONDS
from protocol.text import PeerAddress, id_text
from storage.addresses import load_reached
from tests.nodes import Node, members_of, open_nodes, share, together, until_equal


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


async def test_two_who_know_a_third_meet_and_meet_again_when_one_has_moved(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    with trio.fail_after(6000), open_nodes(tmp_path, "alice", "bob", "carol") as (alice, bob, carol):
        await share(bob, alice, carol)
        async with networked(bob) as at_bob, networked(alice) as at_alice:
            at_alice.keep(bob.key, address_of(at_bob))
            async with networked(carol) as at_carol:
                at_carol.keep(bob.key, address_of(at_bob))
                await until_met(at_alice, carol)
                sources = {state.source for state in at_alice.peers if state.peer == carol.key}
                assert sources <= {Source.INTRODUCTION, Source.INCOMING}
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


async def test_one_who_takes_no_part_is_made_known_to_nobody(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    with trio.fail_after(6000), open_nodes(tmp_path, "alice", "bob", "carol") as (alice, bob, carol):
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


async def test_who_was_reached_is_found_again_after_a_restart_without_anyone_else(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    with trio.fail_after(6000), open_nodes(tmp_path, "alice", "bob", "carol") as (alice, bob, carol):
        await share(bob, alice, carol)
        async with networked(carol) as at_carol:
            async with networked(bob) as at_bob, networked(alice) as at_alice:
                at_alice.keep(bob.key, address_of(at_bob))
                at_carol.keep(bob.key, address_of(at_bob))
                await until_met(at_alice, carol)
                await trio.sleep(60)
            dialer, other, at_other = (alice, carol, at_carol)
            if not _has_reached(alice, carol):  # either may have dialed the other
                dialer, other, at_other = (carol, alice, at_alice)
            assert _has_reached(dialer, other)
            if dialer is alice:
                async with networked(alice) as again:
                    await until_met(again, carol)
            else:
                async with networked(alice, listen=address_of(at_other)):
                    await until_met(at_carol, alice)


def _has_reached(node: Node, other: Node) -> bool:
    with node.replica.database.read() as connection:
        return any(row.peer == other.key and row.repos for row in load_reached(connection))


async def test_a_banned_peer_is_neither_made_known_nor_dialed(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    with trio.fail_after(6000), open_nodes(tmp_path, "alice", "bob", "carol") as (alice, bob, carol):
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


async def test_who_was_excluded_is_told_of_nobody_and_believed_nothing(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    with trio.fail_after(6000), open_nodes(tmp_path, "alice", "bob", "carol") as (alice, bob, carol):
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


async def test_a_host_that_a_liar_names_gets_a_bounded_number_of_connections(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    hits = 0

    async def be_hit(stream: trio.SocketStream) -> None:
        nonlocal hits
        hits += 1
        await stream.aclose()

    with trio.fail_after(600_000), open_nodes(tmp_path, "alice", "bob") as (alice, bob):
        await share(bob, alice)
        async with trio.open_nursery() as nursery, networked(alice) as at_alice, networked(bob) as at_bob:
            victims = await open_listener("127.0.0.1:0")
            nursery.start_soon(trio.serve_listeners, be_hit, victims)
            at_bob.keep(alice.key, address_of(at_alice))
            await until_met(at_alice, bob)
            (connection,) = [one.connection for one in at_bob.peers if one.connection]
            root = bob.replica.root_branch(bob.repo()).topic
            hour_began = trio.current_time()
            for number in range(200):
                lie = PeerAddress(listening_address(victims), number.to_bytes(32, "big"))
                connection.introduce(root, (lie,))
                await trio.sleep(15)
            assert trio.current_time() - hour_began < HOST_TRIES_SECONDS
            assert hits == HOST_TRIES_MAX
            nursery.cancel_scope.cancel()
