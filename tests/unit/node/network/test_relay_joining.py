"""Links to accounts at a relay, of which only the WebSocket address can be reached."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
import trio
from trio.testing import MockClock

from node.api.relay_accounts import RelayAccounts
from node.network.line import listening_address, open_listener
from node.network.network import Network
from node.network.own_addresses import OwnAddresses
from node.network.peers import Peers
from node.network.relay_joining import RelayJoining
from node.network.websocket import WebListener
from node.relay.relay import RelayService
from node.runtime.errors import ServiceError
from protocol.formats.links import parse_relay_link
from protocol.formats.text import id_text
from storage.peers.peers import load_peers
from tests.support.machine import fail_after
from tests.support.nodes import Node, open_nodes
from tests.support.relays import PLENTY, open_relay, until

BLOCKED = "127.0.0.1:1"
"""An address that this network lets nobody reach."""


@dataclass(frozen=True, slots=True)
class Place:
    """Alice, and a relay that keeps topics of accounts alone."""

    alice: Node
    peers: Peers
    network: Network
    joining: RelayJoining
    relay: Node
    service: RelayService
    accounts: RelayAccounts
    web: str
    """Where the relay is reached."""

    async def invite(self) -> str:
        return (await self.accounts.invite("ann", 1 << 20, expires_seconds=60))["link"]


@asynccontextmanager
async def _place(folder: Path) -> AsyncIterator[Place]:
    with (
        fail_after(3600),
        open_nodes(folder, "alice") as (alice,),
        open_relay(folder / "r", replace(PLENTY, takes_strangers=False)) as relay,
    ):
        service = relay.hub.relay
        assert service is not None
        web = WebListener(await open_listener("127.0.0.1:0"))
        address = f"ws://{listening_address(web.listeners)}"
        network, at_relay = (Network(node.hub, node.seed, lambda: 0.0) for node in (alice, relay))
        peers = Peers(alice.hub, network, alice.key)
        accounts = RelayAccounts(
            relay.hub,
            at_relay,
            lambda: service,
            addresses=OwnAddresses(BLOCKED, f"{BLOCKED}, {address}"),
            node_key=relay.key,
            clock=lambda: 0.0,
        )
        joining = RelayJoining(alice.hub, peers, network)
        async with trio.open_nursery() as nursery:
            await nursery.start(network.run, await open_listener("127.0.0.1:0"))
            await nursery.start(at_relay.run, await open_listener("127.0.0.1:0"), web)
            yield Place(alice, peers, network, joining, relay, service, accounts, address)
            nursery.cancel_scope.cancel()


@pytest.mark.slow
@pytest.mark.parametrize("is_known_before", [False, True])
async def test_an_account_is_had_where_only_the_websocket_address_is_reached(
    tmp_path: Path, autojump_clock: MockClock, is_known_before: bool
) -> None:
    async with _place(tmp_path) as at:
        at.alice.create_repo()
        topics = set(at.alice.replica.by_topic)
        link = await at.invite()
        assert len(parse_relay_link(link).peers) == 2
        if is_known_before:
            await at.peers.add(at.web, id_text(at.relay.key), relay=True)
            await until(lambda: bool(at.alice.hub.relay_clients and at.alice.hub.relay_clients[0].refused()))
        joined = await at.joining.join(link)
        assert (joined["address"], joined["quota"]) == (at.web, 1 << 20)
        await until(lambda: set(at.service.topics) == topics)
        (state,) = at.network.peers
        assert {state.address, *state.others} == {at.web, BLOCKED}


@pytest.mark.slow
async def test_a_relay_that_refuses_a_link_is_trusted_as_before(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with _place(tmp_path) as at:
        link = await at.invite()
        await at.accounts.revoke("ann")
        with pytest.raises(ServiceError, match="does not know the link"):
            await at.joining.join(link)
        assert at.network.peers == []
        await at.peers.add(at.web, id_text(at.relay.key), relay=False)
        with pytest.raises(ServiceError, match="does not know the link"):
            await at.joining.join(link)
        assert at.network.is_kept(at.relay.key)
        assert at.network.relays == set()
        with at.alice.replica.database.read() as connection:
            (row,) = load_peers(connection)
        assert (row.address, row.others) == (at.web, ()), (
            "a link takes the place of nothing that the user has named"
        )
