"""A relay of which nothing but port 443 of a web server can be reached: members join, talk and fetch files through it."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import trio

from node.network.line import listening_address, open_listener
from node.network.websocket import load_certificate
from protocol.formats.links import parse_invitation
from tests.e2e.cluster import Peer, digest, run_ravel, until
from tests.support.web_proxy import ReverseProxy, make_certificate

pytestmark = [pytest.mark.slow, pytest.mark.extended]


@contextmanager
def _web_server(backend: str, certificate: Path, key: Path) -> Iterator[str]:
    """A web server with TLS before a node, in a thread; where it is."""
    ready = threading.Event()
    found: list[str] = []
    scope = trio.CancelScope()
    token: list[trio.lowlevel.TrioToken] = []

    async def serve() -> None:
        token.append(trio.lowlevel.current_trio_token())
        listeners = await open_listener("127.0.0.1:0")
        found.append(listening_address(listeners))
        ready.set()
        with scope:
            proxy = ReverseProxy(backend, load_certificate(certificate, key))
            await trio.serve_listeners(proxy.serve, listeners)

    thread = threading.Thread(target=trio.run, args=(serve,))
    thread.start()
    ready.wait()
    try:
        yield found[0]
    finally:
        trio.from_thread.run_sync(scope.cancel, trio_token=token[0])
        thread.join()


def test_members_meet_through_a_relay_behind_a_web_server(tmp_path: Path) -> None:
    certificate, key = make_certificate(tmp_path)
    trusts = {"SSL_CERT_FILE": str(certificate)}
    relay = Peer(tmp_path / "relay")
    alice, bob = (Peer(tmp_path / name, environment=trusts) for name in ("alice", "bob"))
    try:
        run_ravel(relay, "config", "set", "relay.enabled", "true")
        run_ravel(relay, "config", "set", "network.websocket_listen", "127.0.0.1:0")
        for peer in (relay, alice, bob):
            peer.start()
        listens = str(relay.client.show_status()["websocket_listen"])
        assert listens.startswith("ws://127.0.0.1:")
        backend = listens.removeprefix("ws://").removesuffix("/ravel")
        with _web_server(backend, certificate, key) as served:
            address = f"wss://localhost:{served.rpartition(':')[2]}"
            run_ravel(alice, "peer", "add", "--relay", address, str(relay.client.show_status()["node"]))
            alice.client.create_repo("notes")
            content = bytes(range(256)) * 4000
            source = tmp_path / "photo"
            source.write_bytes(content)
            run_ravel(alice, "file", "add", "main", str(source))
            until(lambda: relay.client.list_relayed_topics()["size"] > 0, "the relay keeps something")
            link = alice.client.create_invitation("notes", permission="write", expires_seconds=3600, uses=1)
            assert address in link["addresses"]
            assert address in [one.address for one in parse_invitation(link["invitation"]).peers]
            bob.client.join_repo(link["invitation"])
            until(lambda: digest(bob, "main") == digest(alice, "main"), "bob has what alice wrote")
            shown = {one["address"]: one for one in bob.client.list_peers()["peers"]}[address]
            assert (shown["websocket"], shown["path"], shown["state"]) == (True, "direct", "connected")
            (seen,) = [one for one in relay.client.list_peers()["peers"] if one["peer"] == _key(bob)]
            assert (seen["websocket"], seen["address"].partition(":")[0]) == (True, "203.0.113.7")
            assert "203.0.113.7" in run_ravel(relay, "status").stdout
            assert "by WebSocket" in run_ravel(relay, "peer", "list").stdout
            target = tmp_path / "fetched"
            run_ravel(bob, "file", "get", "main", "photo", "--out", str(target))
            assert target.read_bytes() == content
    finally:
        for peer in (alice, bob, relay):
            peer.close()


def _key(peer: Peer) -> str:
    return str(peer.client.show_status()["node"])
