"""Connections come and go, and whatever is wrong with one of them, the node and the others go on."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio
from trio.testing import MockClock

from node.network import Network, open_listener
from node.peers import Peers
from protocol.text import id_text
from storage.peers import load_links, load_peers
from tests.nodes import Node, open_nodes

KEY = b"k" * 32


@asynccontextmanager
async def _running(node: Node) -> AsyncIterator[Network]:
    """The node's network on loopback; cancelled at the end."""
    network = Network(node.hub, node.seed, lambda: 0.0)
    with trio.fail_after(600):
        async with trio.open_nursery() as nursery:
            await nursery.start(network.run, await open_listener("127.0.0.1:0"))
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


async def test_a_defect_in_one_connection_is_logged_and_the_peer_dialed_again(
    tmp_path: Path, autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(Network, "_dial_once", fail)
    with open_nodes(tmp_path, "alice") as (alice,):
        async with _running(alice) as network:
            network.keep(KEY, "127.0.0.1:7474")
            await trio.sleep(1)
            assert "defect" in (network.peers[0].last_error or "")


async def test_a_listener_needs_a_host() -> None:
    with trio.fail_after(5), pytest.raises(OSError, match="not a host"):
        await open_listener("ex..ample:0")


async def test_a_relay_that_a_link_named_may_keep_that_repo_and_one_that_was_chosen_all(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    with open_nodes(tmp_path, "alice") as (alice,):
        linked, _ = alice.create_repo("linked")
        alice.create_repo("other")
        branches = list(alice.replica.branches.values())
        async with _running(alice) as network:
            peers = Peers(alice.hub, network, alice.key)
            await peers.keep(KEY, "host:7474", linked.repo_id)
            may = {branch.facts.repo_id for branch in branches if network.may_keep(KEY, branch)}
            assert may == {linked.repo_id}
            with alice.replica.database.read() as connection:
                assert load_links(connection) == {KEY: {linked.repo_id}}
            await peers.add("host:7474", id_text(KEY), relay=True)
            assert all(network.may_keep(KEY, branch) for branch in branches)
            await peers.keep(KEY, "host:7475", linked.repo_id)
            with alice.replica.database.read() as connection:
                assert [row.is_relay for row in load_peers(connection)] == [True], "a link takes nothing back"
            await peers.remove(id_text(KEY))
            with alice.replica.database.read() as connection:
                assert (load_peers(connection), load_links(connection)) == ([], {})
