"""Ways from another machine that others' programs make: an SSH tunnel, and a reverse proxy."""

import ipaddress
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import httpx
import pytest
import trio
from starlette.applications import Starlette
from starlette.background import BackgroundTask
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from node.home.config_sections import ApiConfig
from node.http.server import TRUSTED, open_api_listener, serve_api
from protocol.limits.users import PAIRING_TRIES_AT_ONCE_MAX
from tests.support.served import Served, served

NAME = "ravel.example"
PROXIED = ApiConfig(
    tls="127.0.0.1:0",
    tls_names=(f"{NAME}:443",),
    trusted_proxies=(ipaddress.ip_network("127.0.0.1"),),
)


@asynccontextmanager
async def _tunnel(port: int) -> AsyncIterator[int]:
    """The port of a plain forward to another, as `ssh -L` makes: bytes, and nothing else."""

    async def pump(source: trio.SocketStream, target: trio.SocketStream) -> None:
        async for data in source:
            await target.send_all(data)
        await target.send_eof()

    async def forward(near: trio.SocketStream) -> None:
        async with near, await trio.open_tcp_stream("127.0.0.1", port) as far, trio.open_nursery() as nursery:
            nursery.start_soon(pump, near, far)
            nursery.start_soon(pump, far, near)

    async with trio.open_nursery() as nursery:
        listeners: list[trio.SocketListener] = await nursery.start(
            partial(trio.serve_tcp, forward, 0, host="127.0.0.1")
        )
        yield int(listeners[0].socket.getsockname()[1])
        nursery.cancel_scope.cancel()


async def test_the_page_opens_through_an_ssh_tunnel_at_any_port(tmp_path: Path) -> None:
    async with served(tmp_path) as one, _tunnel(one.client.base_url.port or 0) as port:
        here = f"http://127.0.0.1:{port}"
        async with httpx.AsyncClient(base_url=here, headers={"Origin": here}) as browser:
            assert (await browser.get("/")).status_code == 200
            code = (await one.client.post("/api/v1/codes")).json()["code"]
            token = (await browser.post("/open", json={"code": code})).json()["token"]
            headers = {"Authorization": f"Bearer {token}", "Accept": "text/event-stream"}
            foreign = {**headers, "Origin": "http://127.0.0.1:1"}
            assert (await browser.get("/api/v1/status", headers=foreign)).status_code == 403
            assert await _events(one, browser, headers) == ["peers", "repos", "closing"]


async def _events(one: Served, browser: httpx.AsyncClient, headers: dict[str, str]) -> list[str]:
    """Names of events of a stream, which the node ends when the first has come through."""
    asked = {**headers, "Accept": "text/event-stream"}
    found = []
    async with (
        trio.open_nursery() as nursery,
        browser.stream("GET", "/api/v1/events", headers=asked) as answer,
    ):
        async for line in answer.aiter_lines():
            if line.startswith("event: "):
                found.append(line.removeprefix("event: "))
                if len(found) == 1:
                    nursery.start_soon(one.streams.close)
    return found


@asynccontextmanager
async def _proxy(one: Served) -> AsyncIterator[httpx.AsyncClient]:
    """What talks to a reverse proxy that hands on as Caddy and nginx do with the configurations of the how-to.

    Who asks says by `from` where it is; the proxy adds that to what the request says of itself.
    """
    async with one.elsewhere() as node:

        async def hand_on(request: Request) -> Response:
            request.scope["extensions"][TRUSTED]()  # a proxy knows no tokens, and slows no body
            headers = [
                (name, value)
                for name, value in request.headers.items()
                if name not in ("connection", "x-forwarded-for", "from")
            ]
            said = [request.headers.get("x-forwarded-for", ""), request.headers.get("from", "192.0.2.1")]
            asked = node.build_request(
                request.method,
                str(request.url.path) + f"?{request.url.query}" * bool(request.url.query),
                headers=[*headers, ("x-forwarded-for", ", ".join(filter(None, said)))],
                content=request.stream(),
            )
            answer = await node.send(asked, stream=True)
            return StreamingResponse(
                answer.aiter_raw(),
                answer.status_code,
                dict(answer.headers),
                background=BackgroundTask(answer.aclose),
            )

        listener = open_api_listener("127.0.0.1", 0)
        methods = ["GET", "POST", "PUT", "DELETE"]
        app = Starlette(routes=[Route("/{path:path}", hand_on, methods=methods)])
        async with trio.open_nursery() as nursery:
            nursery.start_soon(serve_api, app, listener)
            url = f"http://127.0.0.1:{listener.getsockname()[1]}"
            async with httpx.AsyncClient(base_url=url, headers={"Host": NAME}) as browser:
                yield browser
            nursery.cancel_scope.cancel()


@pytest.mark.slow
async def test_a_browser_is_paired_behind_a_reverse_proxy(tmp_path: Path) -> None:
    async with served(tmp_path, api=PROXIED) as one, _proxy(one) as browser:
        made = (await one.client.post("/api/v1/browsers/codes")).json()
        assert made["addresses"][0].startswith(f"https://{NAME}/#pair=")
        own = {"Origin": f"https://{NAME}"}
        token = (await browser.post("/open", json={"code": made["code"]}, headers=own)).json()["token"]
        own |= {"Authorization": f"Bearer {token}"}
        assert (await browser.post("/api/v1/repos", json={"name": "notes"}, headers=own)).status_code == 200
        content = bytes(3 << 20)
        path = "/api/v1/branches/main/files"
        assert (await browser.post(f"{path}?name=a", headers=own, content=content)).status_code == 200
        assert (await browser.get(f"{path}/a", headers=own)).content == content
        # What a proxy says of the browser's name and scheme is not believed.
        lies = {"Host": "evil.example", "X-Forwarded-Host": NAME, "Forwarded": f"host={NAME};proto=https"}
        assert (await browser.get("/", headers=lies)).status_code == 403
        lies = {"Origin": "https://evil.example", "X-Forwarded-Proto": "https"}
        assert (await browser.get("/", headers=lies)).status_code == 403
        assert await _events(one, browser, own) == ["peers", "repos", "closing"]


async def test_behind_a_proxy_each_browser_has_its_own_bounds(tmp_path: Path) -> None:
    async with served(tmp_path, api=PROXIED) as one, _proxy(one) as browser:
        for number in range(PAIRING_TRIES_AT_ONCE_MAX):
            lie = {"From": "203.0.113.9", "X-Forwarded-For": f"10.0.{number}.1"}
            assert (await browser.post("/open", json={"code": "x"}, headers=lie)).status_code == 401
        again = await browser.post("/open", json={"code": "x"}, headers={"From": "203.0.113.10"})
        assert again.json()["error"]["code"] == "busy"
        other = await browser.post("/open", json={"code": "x"}, headers={"From": "198.51.100.1"})
        assert other.status_code == 401
