"""Nodes that talk by WebSocket through a reverse proxy: what each side knows of the other, and what strangers cost."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest
import trio
from trio.testing import MockClock

from node.network.admission import share_name
from node.network.dialing import HostAllowance, order_addresses
from node.network.line import listening_address, open_listener
from node.network.network import Network
from node.network.own_addresses import FoundBy, OwnAddresses, told_reach
from node.network.websocket import WebListener
from node.sync.addresses import AddressSource
from protocol.limits.network import HANDSHAKE_ACCEPT_SECONDS
from protocol.limits.peers import LINK_DIALS_AT_ONCE_MAX
from protocol.session.reach import Reach
from tests.support.machine import fail_after
from tests.support.nodes import Node, open_nodes, until_equal
from tests.support.relays import until
from tests.support.web_proxy import ReverseProxy


@asynccontextmanager
async def _running(node: Node, web: WebListener | None = None) -> AsyncIterator[Network]:
    listeners = await open_listener("127.0.0.1:0")
    network = Network(
        node.hub, node.seed, lambda: 0.0, own_address=listening_address(listeners), introduces=True
    )
    async with trio.open_nursery() as nursery:
        await nursery.start(network.run, listeners, web)
        nursery.start_soon(node.joiner.run)
        yield network
        nursery.cancel_scope.cancel()


@asynccontextmanager
async def _behind_proxy(folder: Path) -> AsyncIterator[tuple[Node, Network, Node, Network, str]]:
    """Alice, who listens by WebSocket behind a proxy, Bob, and the proxy's address."""
    with fail_after(3600), open_nodes(folder, "alice", "bob") as (alice, bob):
        web = WebListener(await open_listener("127.0.0.1:0"))
        proxy = ReverseProxy(listening_address(web.listeners))
        listeners = await open_listener("127.0.0.1:0")
        async with _running(alice, web) as at_alice, _running(bob) as at_bob, trio.open_nursery() as nursery:
            nursery.start_soon(trio.serve_listeners, proxy.serve, listeners)
            yield alice, at_alice, bob, at_bob, f"ws://{listening_address(listeners)}"
            nursery.cancel_scope.cancel()


@pytest.mark.slow
async def test_two_nodes_talk_through_a_reverse_proxy(tmp_path: Path, autojump_clock: MockClock) -> None:
    async with _behind_proxy(tmp_path) as (alice, at_alice, bob, at_bob, address):
        repo, branch = alice.create_repo()
        await bob.joiner.begin(alice.invite(repo))
        at_bob.keep(alice.key, address, AddressSource.LINK, ("127.0.0.1:1",))
        await until(lambda: at_bob.is_connected(alice.key) and at_alice.is_connected(bob.key))
        alice.write(branch, "by WebSocket")
        await until_equal(alice, bob)
        (at_him,) = at_bob.peers
        assert (at_him.address, at_him.is_web, at_him.local_host) == (address, True, "127.0.0.1")
        (at_her,) = at_alice.peers
        assert at_her.is_web
        assert at_her.address.rpartition(":")[0] == "203.0.113.7", "as the proxy says"
        assert share_name(at_her.address) == "203.0.113.7", "strangers count where they come from"
        assert at_alice.book.all == at_bob.book.all == [], "neither tells the other where the proxy is"
        at_bob.forget(alice.key)
        await until(lambda: at_alice.peers == [])


@pytest.mark.parametrize("said", [b"", b"GET /ravel HTTP/1.1\r\n"])
async def test_who_says_nothing_is_left_as_on_tcp(
    tmp_path: Path, autojump_clock: MockClock, said: bytes
) -> None:
    with fail_after(3600), open_nodes(tmp_path, "alice") as (alice,):
        web = WebListener(await open_listener("127.0.0.1:0"))
        port = int(listening_address(web.listeners).rpartition(":")[2])
        async with _running(alice, web) as network:
            stranger = await trio.open_tcp_stream("127.0.0.1", port)
            if said:
                await stranger.send_all(said)
            await until(lambda: len(network._half_open._held) == 1)
            began = trio.current_time()
            with suppress(trio.BrokenResourceError):
                assert await stranger.receive_some() == b""
            assert trio.current_time() - began <= HANDSHAKE_ACCEPT_SECONDS + 1
            await until(lambda: network._half_open._held == [])
            await stranger.aclose()


def test_websocket_is_dialed_behind_tcp_that_may_work() -> None:
    addresses = ["wss://relay.example", "10.0.0.1:1", "relay.example:1", "127.0.0.1:1"]
    order = ["relay.example:1", "wss://relay.example", "10.0.0.1:1", "127.0.0.1:1"]
    assert order_addresses(addresses, None, lambda _: False) == order
    assert order_addresses(addresses, "wss://relay.example", lambda _: False) == order, "not for ever"


def test_a_host_that_links_name_by_websocket_counts_as_that_host() -> None:
    allowance = HostAllowance()
    for number in range(LINK_DIALS_AT_ONCE_MAX):
        assert allowance.try_dial(f"wss://victim.example:{1 + number}", 0.0)
    assert not allowance.try_dial("victim.example:7474", 0.0)
    assert not allowance.try_dial("ws://victim.example/another/ravel", 0.0)
    assert allowance.try_dial("wss://another.example", 0.0)


@pytest.mark.parametrize(
    "address, reach",
    [
        ("wss://relay.example", Reach.EVERYBODY),
        ("ws://localhost:9443", Reach.MACHINE),
        ("ws://127.0.0.1", Reach.MACHINE),
        ("ws://10.0.0.1", Reach.PRIVATE),
    ],
)
def test_an_advertised_websocket_address_is_told_with_its_reach(address: str, reach: Reach) -> None:
    assert told_reach(address) is reach
    (first, *_) = OwnAddresses("127.0.0.1:7474", address).for_links
    assert (first.address, first.reach, first.found_by) == (address, reach, FoundBy.CONFIGURED)


def test_links_name_each_address_that_is_advertised() -> None:
    stated = OwnAddresses("10.0.0.1:7474", "relay.example:7474, wss://relay.example").for_links
    assert [one.address for one in stated] == ["relay.example:7474", "wss://relay.example", "10.0.0.1:7474"]
