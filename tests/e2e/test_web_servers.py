"""The page and a relay behind nginx and Caddy, with the configurations that the pages print."""

import ssl
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Final

import httpx
import pytest

from protocol.limits.users import PAIRING_TRIES_AT_ONCE_MAX
from tests.e2e.cluster import Peer, digest, run_ravel, until
from tests.support.machine import patience
from tests.support.web_proxy import make_certificate
from tests.support.web_servers import (
    blocks_below,
    caddy,
    exchange,
    find_block,
    find_program,
    nginx,
    reserve_port,
    settings_in,
)

pytestmark = [pytest.mark.slow, pytest.mark.extended]

Server = Callable[[Path, int, str], AbstractContextManager[None]]
SERVERS: Final[dict[str, Server]] = {"nginx": nginx, "caddy": caddy}
NAME: Final = "ravel.example"
PAGE: Final = blocks_below("security.md", "Behind Caddy or nginx")
RELAY: Final = blocks_below("relay.md", "Put it behind a web server on port 443")
SIZE: Final = 3 << 20
"""Bytes of an upload: more than what a proxy keeps in memory or takes at all, unless told."""


def _site(kind: str, port: int, node: int, certificate: Path, key: Path) -> str:
    """The page's configuration, for these ports and this certificate."""
    if kind == "nginx":
        return exchange(
            find_block(PAGE, "server_name"),
            {
                "listen 443 ssl;": f"listen 127.0.0.1:{port} ssl;",
                "/etc/letsencrypt/live/ravel.example/fullchain.pem": str(certificate),
                "/etc/letsencrypt/live/ravel.example/privkey.pem": str(key),
                "https://127.0.0.1:7476;": f"https://127.0.0.1:{node};",
            },
        )
    own = f"{NAME}:{port} {{\n    bind 127.0.0.1\n    tls {certificate} {key}"
    found = find_block(PAGE, "reverse_proxy")
    return exchange(found, {f"{NAME} {{": own, "127.0.0.1:7476": f"127.0.0.1:{node}"})


@contextmanager
def _browser(port: int, certificate: Path) -> Iterator[httpx.Client]:
    """What asks the web server on a port as a browser asks `https://ravel.example`."""

    def name(request: httpx.Request) -> None:
        request.extensions["sni_hostname"] = NAME

    with httpx.Client(
        base_url=f"https://127.0.0.1:{port}",
        headers={"Host": NAME, "Origin": f"https://{NAME}"},
        verify=ssl.create_default_context(cafile=str(certificate)),
        event_hooks={"request": [name]},
        timeout=patience(30),
    ) as browser:
        yield browser


@pytest.fixture(scope="module")
def behind(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Peer, int]]:
    """A node with the page's settings, and the port at which it listens for the web server."""
    with reserve_port() as port:
        peer = Peer(tmp_path_factory.mktemp("behind") / "node")
        for setting, value in settings_in(PAGE).items():
            run_ravel(peer, "config", "set", setting, value.replace("127.0.0.1:7476", f"127.0.0.1:{port}"))
        try:
            peer.start()
            yield peer, port
        finally:
            peer.close()


@pytest.mark.parametrize("kind", sorted(SERVERS))
def test_the_page_works_behind_a_web_server(kind: str, behind: tuple[Peer, int], tmp_path: Path) -> None:
    find_program(kind)
    peer, node = behind
    certificate, key = make_certificate(tmp_path, NAME)
    with (
        reserve_port() as port,
        SERVERS[kind](tmp_path / kind, port, _site(kind, port, node, certificate, key)),
        _browser(port, certificate) as browser,
    ):
        made = peer.client.make_pairing_code()
        assert made["addresses"][0].startswith(f"https://{NAME}/#pair=")
        assert "Ravel" in browser.get("/").text
        paired = browser.post("/open", json={"code": made["code"], "name": kind})
        browser.headers["Authorization"] = f"Bearer {paired.json()['token']}"
        with browser.stream("GET", "/api/v1/events", headers={"Accept": "text/event-stream"}) as events:
            names = (
                line.removeprefix("event: ") for line in events.iter_lines() if line.startswith("event: ")
            )
            assert {next(names), next(names)} == {"peers", "repos"}
            assert browser.post("/api/v1/repos", json={"name": kind}).status_code == 200
            assert next(names) in {"peers", "repos"}, "and what happens later comes at once"
        content = bytes(SIZE)
        path = f"/api/v1/branches/{kind}:main/files"
        assert browser.post(f"{path}?name=a", content=content).status_code == 200
        in_parts = (bytes(SIZE // 3) for _ in range(3))
        assert browser.post(f"{path}?name=b", content=in_parts).status_code == 200
        assert browser.get(f"{path}/a").content == browser.get(f"{path}/b").content == content
        part = browser.get(f"{path}/a", headers={"Range": "bytes=10-19"})
        assert (part.status_code, len(part.content)) == (206, 10)
        foreign = browser.get("/api/v1/repos", headers={"Origin": "https://evil.example"})
        assert foreign.status_code == 403
        del browser.headers["Authorization"]
        for number in range(PAIRING_TRIES_AT_ONCE_MAX + 1):
            lie = {"X-Forwarded-For": f"203.0.{number}.9", "Forwarded": f"for=203.0.{number}.9"}
            refused = browser.post("/open", json={"code": "x"}, headers=lie)
        assert refused.json()["error"]["code"] == "busy", "what a browser says of its address is not believed"


def test_a_relay_is_reached_through_both_web_servers(tmp_path: Path) -> None:
    for kind in SERVERS:
        find_program(kind)
    certificate, key = make_certificate(tmp_path)
    trusts = {"SSL_CERT_FILE": str(certificate)}
    relay = Peer(tmp_path / "relay")
    alice, bob = (Peer(tmp_path / name, environment=trusts) for name in ("alice", "bob"))
    assert settings_in(RELAY)["network.websocket_listen"] == "127.0.0.1:9443"
    try:
        with (
            reserve_port() as listening,
            reserve_port() as by_nginx,
            reserve_port() as by_caddy,
        ):
            run_ravel(relay, "config", "set", "relay.enabled", "true")
            run_ravel(relay, "config", "set", "network.websocket_listen", f"127.0.0.1:{listening}")
            for peer in (relay, alice, bob):
                peer.start()
            where = {"127.0.0.1:9443": f"127.0.0.1:{listening}"}
            location = exchange(find_block(RELAY, "location"), where)
            server = (
                f"server {{\nlisten 127.0.0.1:{by_nginx} ssl;\nserver_name localhost;\n"
                f"ssl_certificate {certificate};\nssl_certificate_key {key};\n{location}\n}}"
            )
            own = f"localhost:{by_caddy} {{\n    bind 127.0.0.1\n    tls {certificate} {key}"
            site = exchange(find_block(RELAY, "reverse_proxy"), where | {"relay.example.org {": own})
            with (
                nginx(tmp_path / "nginx", by_nginx, server),
                caddy(tmp_path / "caddy", by_caddy, site),
            ):
                relay_id = str(relay.client.show_status()["node"])
                for peer, port in ((alice, by_nginx), (bob, by_caddy)):
                    run_ravel(peer, "peer", "add", "--relay", f"wss://localhost:{port}", relay_id)
                until(
                    lambda: (
                        [(one["websocket"], one["state"]) for one in relay.client.list_peers()["peers"]]
                        == [(True, "connected")] * 2
                    ),
                    "both are connected through a web server",
                )
                alice.client.create_repo("notes")
                alice.client.write_post("main", "hello")
                until(
                    lambda: relay.client.list_relayed_topics()["size"] > 0,
                    "the relay keeps what came by nginx",
                )
                link = alice.client.create_invitation("notes", permission="write", expires_seconds=3600)
                alice.stop()
                bob.client.join_repo(link["invitation"])
                until(lambda: digest(bob, "main")["commits"] == 2, "bob has it from the relay, by Caddy")
    finally:
        for peer in (alice, bob, relay):
            peer.close()
