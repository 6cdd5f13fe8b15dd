"""Connections come and go, and whatever is wrong with one of them, the node and the others go on."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio
from trio.testing import MockClock

from node.network import Network, open_listener
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
