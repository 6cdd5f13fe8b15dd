"""The server of the HTTP API: connections that wait, stall, break off or never show the token."""

import contextlib
import gc
import weakref
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import httpx
import pytest
import trio
import trio.testing
from starlette.types import Receive, Scope, Send
from trio.testing import MemoryReceiveStream, MemorySendStream, MockClock, memory_stream_pair

from node.api import requests as api_requests
from node.http import connection as http_connection
from node.http import server as http_server_module
from node.http import strangers as http_strangers
from node.http.connection import HttpConnection
from node.http.parsing import RequestParser
from node.http.server import TRUSTED
from node.http.strangers import Stranger, Strangers
from node.runtime.user_requests import UserRequests
from protocol.limits.peers import GIVING_WAY_SECONDS
from protocol.limits.users import (
    API_STRANGER_SECONDS,
    PAGE_CODE_BODY_SIZE_MAX,
)
from ravel.operations import path_part
from tests.fuzz.api import Loopback
from tests.fuzz.seeds import CORPUS
from tests.support.connections import serve_alone
from tests.support.machine import fail_after
from tests.support.served import AUTH, served

_ClientEnd = trio.StapledStream[MemorySendStream, MemoryReceiveStream]


async def _post(client: httpx.AsyncClient, path: str, body: Any) -> httpx.Response:  # noqa: ANN401  # any JSON
    return await client.post(f"/api/v1{path}", json=body)


@asynccontextmanager
async def _served(folder: Path) -> AsyncIterator[httpx.AsyncClient]:
    """The same over a real server and a real connection."""
    async with served(folder) as one:
        yield one.client


def _connection() -> tuple[_ClientEnd, trio.SocketStream]:
    """Both ends of a connection in memory. The server asks its end for the addresses of both."""
    client, stream = memory_stream_pair()
    stream.socket = Loopback()  # type: ignore[attr-defined]  # streams in memory have no socket
    return client, cast("trio.SocketStream", stream)


async def test_the_server_reports_its_port_and_serves(tmp_path: Path) -> None:
    async with _served(tmp_path) as client:
        assert (await client.get("/api/v1/status")).json()["repos"] == 0


@pytest.mark.parametrize("path", sorted((CORPUS / "http").iterdir()), ids=lambda path: path.name)
async def test_no_connection_ends_the_server(
    tmp_path: Path, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_connection, "_AFTER_CLIENT_LEFT_SECONDS", 0.05)
    said = path.read_bytes()  # noqa: ASYNC240  # a small file, before anything runs
    async with _served(tmp_path) as client:
        stream = await trio.open_tcp_stream("127.0.0.1", client.base_url.port or 0)
        async with stream:
            await stream.send_all(said)
            await stream.send_eof()
            with contextlib.suppress(trio.BrokenResourceError):
                async for _ in stream:
                    pass
        assert (await client.get("/healthz")).json() == {"status": "ok"}


@pytest.mark.slow
async def test_more_connections_than_are_served_wait_for_their_turn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_server_module, "API_CONNECTIONS_MAX", 2)
    monkeypatch.setattr(http_connection, "_AFTER_CLIENT_LEFT_SECONDS", 0.05)
    async with _served(tmp_path) as client:
        port = client.base_url.port or 0
        idle = [await trio.open_tcp_stream("127.0.0.1", port) for _ in range(2)]
        for stream in idle:
            await stream.send_all(b"GET")
        answered = trio.Event()

        async def ask() -> None:
            assert (await client.get("/healthz")).json() == {"status": "ok"}
            answered.set()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(ask)
            await trio.testing.wait_all_tasks_blocked(0.05)
            assert not answered.is_set()
            for stream in idle:
                await stream.aclose()


@pytest.mark.slow
async def test_the_server_stops_although_a_client_does_not_read(tmp_path: Path) -> None:
    async with _served(tmp_path) as client:
        await _post(client, "/repos", {"name": "notes"})
        await client.post("/api/v1/branches/main/files?name=big", content=bytes(20 << 20))
        stream = await trio.open_tcp_stream("127.0.0.1", client.base_url.port or 0)
        lines = ["GET /api/v1/branches/main/files/big HTTP/1.1", f"Host: 127.0.0.1:{client.base_url.port}"]
        lines += [f"Authorization: {AUTH['Authorization']}", "", ""]
        await stream.send_all("\r\n".join(lines).encode())
        assert await stream.receive_some(10)
        await trio.testing.wait_all_tasks_blocked(0.05)
    await stream.aclose()


async def test_a_body_over_the_limit_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(api_requests, "REQUEST_SIZE_MAX", 100)
    async with _served(tmp_path) as client:
        answer = await _post(client, "/repos", {"name": "x" * 200})
        assert (answer.status_code, answer.json()["error"]["code"]) == (413, "too_large")
        assert (await client.get("/api/v1/repos")).json()["repos"] == []


async def test_a_body_that_stops_coming_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_connection, "BODY_WAIT_SECONDS", 0.05)
    async with _served(tmp_path) as client:
        async with await trio.open_tcp_stream("127.0.0.1", client.base_url.port or 0) as stream:
            lines = ["POST /api/v1/repos HTTP/1.1", f"Host: 127.0.0.1:{client.base_url.port}"]
            lines += [f"Authorization: {AUTH['Authorization']}", "Content-Length: 100", "", "{"]
            await stream.send_all("\r\n".join(lines).encode())
            assert b"interrupted" in b"".join([part async for part in stream])
        assert (await client.get("/api/v1/repos")).json()["repos"] == []


async def test_an_answer_may_take_its_time(autojump_clock: MockClock) -> None:
    async def app(_scope: Scope, _receive: Receive, send: Send) -> None:
        await trio.sleep(3600)
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"at last"})

    client, stream = _connection()
    with fail_after(7200):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(serve_alone, app, stream)
            await client.send_all(b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            assert b"at last" in b"".join([part async for part in client])


class _Counting:
    """A stream that counts what is sent by it."""

    def __init__(self, stream: trio.abc.Stream) -> None:
        self.socket = Loopback()
        self.sent: list[bytes] = []
        self._stream = stream

    async def send_all(self, data: bytes) -> None:
        self.sent.append(bytes(data))
        await self._stream.send_all(data)

    async def receive_some(self, count_max: int) -> bytes | bytearray:
        return await self._stream.receive_some(count_max)

    async def send_eof(self) -> None:
        pass

    async def aclose(self) -> None:
        await self._stream.aclose()


@pytest.mark.parametrize(
    "method, length, sends",
    [
        ("GET", b"2", [b"HTTP/1.1 200 \r\ncontent-length: 2\r\n\r\nok"]),
        ("HEAD", b"2", [b"HTTP/1.1 200 \r\ncontent-length: 2\r\n\r\n"]),
        ("GET", b"0", [b"HTTP/1.1 200 \r\ncontent-length: 0\r\n\r\n"]),
        # A stream of events: its head tells that it is open, whenever the first event comes.
        ("GET", None, [b"HTTP/1.1 200 \r\nTransfer-Encoding: chunked\r\n\r\n", b"2\r\nok\r\n0\r\n\r\n"]),
    ],
)
async def test_the_head_of_an_answer_is_sent_with_its_body(
    method: str, length: bytes | None, sends: list[bytes], autojump_clock: MockClock
) -> None:
    async def app(_scope: Scope, _receive: Receive, send: Send) -> None:
        headers = [] if length is None else [(b"content-length", length)]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": b"" if length == b"0" else b"ok"})

    client, server = memory_stream_pair()
    counting = _Counting(server)
    with fail_after(600):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(serve_alone, app, counting)  # type: ignore[arg-type]  # it has all that the server uses
            for _ in range(2):  # the second one begins with nothing left of the first
                await client.send_all(method.encode() + b" / HTTP/1.1\r\nHost: localhost\r\n\r\n")
                while len(b"".join(counting.sent)) < len(b"".join(sends)):
                    await client.receive_some()
                assert counting.sent == sends
                counting.sent.clear()
            await client.aclose()


async def test_who_asks_for_http2_is_answered_in_http1(autojump_clock: MockClock) -> None:
    async def app(scope: Scope, _receive: Receive, send: Send) -> None:
        status = 200 if scope["http_version"] == "1.1" else 505
        await send({"type": "http.response.start", "status": status, "headers": [(b"content-length", b"2")]})
        await send({"type": "http.response.body", "body": b"ok"})

    upgrade = [b"GET / HTTP/1.1", b"Host: localhost", b"Connection: Upgrade, HTTP2-Settings", b"Upgrade: h2c"]
    client, stream = _connection()
    with fail_after(600):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(serve_alone, app, stream)
            for _ in range(2):
                await client.send_all(b"\r\n".join([*upgrade, b"HTTP2-Settings: AAMAAABkAAQAAP__", b"", b""]))
                said = b""
                while not said.endswith(b"ok"):
                    said += await client.receive_some()
                assert said.startswith(b"HTTP/1.1 200 ")
            await client.send_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\0\4\0\0\0\0\0")
            assert b"".join([part async for part in client]).startswith(b"HTTP/1.1 505 ")


async def test_a_connection_without_a_request_is_ended(autojump_clock: MockClock) -> None:
    async def app(scope: Scope, _receive: Receive, send: Send) -> None:
        scope["extensions"][TRUSTED]()
        await trio.sleep(60)  # a request that takes its time is none that does not come
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
        await send({"type": "http.response.body", "body": b"ok"})

    client, stream = _connection()
    began = trio.current_time()
    with fail_after(600):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(serve_alone, app, stream)
            await client.send_all(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
            said = b"".join([part async for part in client])
    assert said.endswith(b"ok")
    assert 60 < trio.current_time() - began < 70


async def test_headers_that_come_byte_by_byte_are_given_up(autojump_clock: MockClock) -> None:
    async def app(_scope: Scope, _receive: Receive, _send: Send) -> None:
        raise AssertionError("a request that never came whole")

    client, stream = _connection()
    began = trio.current_time()
    with fail_after(60):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(serve_alone, app, stream)
            with pytest.raises(trio.BrokenResourceError):
                for byte in b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + bytes([97]) * 100:
                    await client.send_all(bytes([byte]))
                    await trio.sleep(1)
    assert trio.current_time() - began < 10


_UNFINISHED = b"POST /open HTTP/1.1\r\nHost: localhost\r\nContent-Length: 500\r\n\r\n{"


async def test_a_body_of_a_stranger_that_comes_byte_by_byte_is_given_up(autojump_clock: MockClock) -> None:
    async def app(_scope: Scope, receive: Receive, _send: Send) -> None:
        while (await receive())["type"] == "http.request":
            pass

    client, stream = _connection()
    began = trio.current_time()
    with fail_after(600):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(serve_alone, app, stream)
            await client.send_all(_UNFINISHED)
            with pytest.raises(trio.BrokenResourceError):
                for _ in range(400):
                    await client.send_all(b" ")
                    await trio.sleep(1)
    assert trio.current_time() - began <= API_STRANGER_SECONDS + 2


async def test_who_has_shown_the_token_may_take_its_time(autojump_clock: MockClock) -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        scope["extensions"][TRUSTED]()
        while (await receive()).get("more_body"):
            pass
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"at last"})

    client, stream = _connection()
    with fail_after(600):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(serve_alone, app, stream)
            await client.send_all(_UNFINISHED)
            for _ in range(499):
                await trio.sleep(API_STRANGER_SECONDS / 10)
                await client.send_all(b" ")
            said = b""
            while b"at last" not in said:
                said += await client.receive_some()
            await client.aclose()


async def test_strangers_do_not_keep_the_api_from_who_has_the_token(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_server_module, "API_CONNECTIONS_MAX", 5)
    monkeypatch.setattr(http_strangers, "API_STRANGERS_MAX", 3)
    async with _served(tmp_path) as client:
        port = client.base_url.port or 0
        strangers = [await trio.open_tcp_stream("127.0.0.1", port) for _ in range(20)]
        for stream in strangers:
            with contextlib.suppress(trio.BrokenResourceError):
                await stream.send_all(_UNFINISHED)
        assert (await client.get("/api/v1/status")).status_code == 200
        for stream in strangers:
            await stream.aclose()


@pytest.mark.parametrize(
    "said, answers",
    [
        (b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n" * 400, 400),
        (
            b"POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
            + b"1\r\nx\r\n" * 70_000
            + b"0\r\n\r\n",
            1,
        ),
    ],
    ids=["requests at once", "small chunks"],
)
@pytest.mark.parametrize("shows_token", [True, False])
async def test_strangers_are_served_at_a_bounded_rate(
    shows_token: bool, said: bytes, answers: int, autojump_clock: MockClock
) -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if shows_token:
            scope["extensions"][TRUSTED]()
        while (await receive()).get("more_body"):
            pass
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
        await send({"type": "http.response.body", "body": b"ok"})

    client, stream = _connection()
    began = trio.current_time()
    with fail_after(600):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(serve_alone, app, stream)
            await client.send_all(said)
            answered = b""
            while answered.count(b"ok") < answers:
                answered += await client.receive_some()
            seconds = trio.current_time() - began
            await client.aclose()
    assert seconds < 0.1 if shows_token else seconds >= 3.9


async def test_strangers_give_way_to_requests_of_the_user(autojump_clock: MockClock) -> None:
    async def app(_scope: Scope, _receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
        await send({"type": "http.response.body", "body": b"ok"})

    requests = UserRequests(lambda: 0.0)
    strangers, answered = Strangers(None, requests), 0

    async def ask() -> None:
        nonlocal answered
        client, stream = _connection()
        nursery.start_soon(serve_alone, app, stream, strangers)
        await client.send_all(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n" * 10)
        while piece := await client.receive_some():
            answered += piece.count(b"ok")
            if answered == 80:
                nursery.cancel_scope.cancel()

    with fail_after(60):
        async with trio.open_nursery() as nursery:
            with requests.at_work():
                for _ in range(8):
                    nursery.start_soon(ask)
                await trio.sleep(10 * GIVING_WAY_SECONDS + 0.005)
                assert 5 <= answered <= 10, "one turn at a time, of a few at once"
    assert answered == 80


async def test_strangers_that_come_at_once_are_parsed_one_in_a_turn_of_the_event_loop(
    autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def app(_scope: Scope, _receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
        await send({"type": "http.response.body", "body": b"ok"})

    class Loop(trio.abc.Instrument):
        turns, parsed = 0, Counter[int]()

        def after_io_wait(self, timeout: float) -> None:
            self.turns += 1

    loop, strangers, feed = Loop(), Strangers(), RequestParser.feed

    def feed_counted(self: RequestParser, piece: bytes | memoryview) -> None:
        loop.parsed[loop.turns] += bool(piece)
        feed(self, piece)

    monkeypatch.setattr(RequestParser, "feed", feed_counted)
    trio.lowlevel.add_instrument(loop)
    pairs = [_connection() for _ in range(20)]
    async with trio.open_nursery() as nursery:
        for _, stream in pairs:
            nursery.start_soon(serve_alone, app, stream, strangers)
        await trio.testing.wait_all_tasks_blocked()
        for client, _ in pairs:
            nursery.start_soon(client.send_all, b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        for client, _ in pairs:
            assert (await client.receive_some()).endswith(b"ok")
            await client.aclose()
    trio.lowlevel.remove_instrument(loop)
    assert (loop.parsed.total(), max(loop.parsed.values())) == (20, 1)


async def test_connections_are_accepted_more_slowly_while_a_request_of_the_user_is_at_work(
    mock_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Until it is known who comes each costs as much as one of the user's own."""
    accepted, requests = list[float](), UserRequests(lambda: 0.0)

    async def note(_app: object, stream: trio.SocketStream, _strangers: Strangers) -> None:
        accepted.append(trio.current_time())
        await stream.aclose()

    async def app(_scope: Scope, _receive: Receive, _send: Send) -> None:
        raise AssertionError("nothing is asked for")

    monkeypatch.setattr(http_server_module, "serve_connection", note)
    listener = http_server_module.open_api_listener("127.0.0.1", 0)
    async with trio.open_nursery() as nursery:
        with requests.at_work():
            nursery.start_soon(http_server_module.serve_api, app, listener, None, requests)
            for count in range(3):
                async with await trio.open_tcp_stream(*listener.getsockname()) as client:
                    await trio.testing.wait_all_tasks_blocked(0.01)
                    assert len(accepted) == count
                    mock_clock.jump(0.005)
                    assert await client.receive_some() == b""
        nursery.cancel_scope.cancel()


async def test_a_token_in_a_long_head_is_seen_while_all_turns_are_taken(autojump_clock: MockClock) -> None:
    async def app(scope: Scope, _receive: Receive, send: Send) -> None:
        scope["extensions"][TRUSTED]()
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
        await send({"type": "http.response.body", "body": b"ok"})

    strangers, (client, stream) = Strangers(), _connection()
    assert strangers._turns is not None
    for _ in range(strangers._turns.value):
        await strangers._turns.acquire()
    head = b"GET / HTTP/1.1\r\nHost: localhost\r\nCookie: " + b"c" * 7000 + b"\r\n\r\n"
    with fail_after(60):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(serve_alone, app, stream, strangers)
            await client.send_all(head)
            assert b"200" in await client.receive_some()
            await client.aclose()


async def test_one_stranger_too_many_ends_the_one_with_the_oldest_request(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: MockClock
) -> None:
    monkeypatch.setattr(http_strangers, "API_STRANGERS_MAX", 3)
    strangers, ended = Strangers(), list[str]()

    async def hold(name: str) -> None:
        with trio.CancelScope() as scope, strangers.admit(scope) as stranger:
            if name == "page":
                await trio.sleep(2)
                stranger.begin_request()
            elif name == "does not read its answer":
                stranger.end_request()
            elif name == "has the token":
                stranger.trust()
            await trio.sleep_forever()
        if scope.cancelled_caught:
            ended.append(name)

    with fail_after(60):
        async with trio.open_nursery() as nursery:
            for name in ("has the token", "page", "does not read its answer", "sends nothing"):
                nursery.start_soon(hold, name)
                await trio.testing.wait_all_tasks_blocked()
            await trio.sleep(3)
            assert not ended
            for name in ("fourth", "fifth", "sixth"):
                nursery.start_soon(hold, name)
                await trio.testing.wait_all_tasks_blocked()
            assert ended == ["does not read its answer", "sends nothing", "page"]
            nursery.cancel_scope.cancel()


@pytest.mark.parametrize("said", [b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", b"nonsense\r\n\r\n", b"GET"])
async def test_a_connection_that_has_ended_keeps_nothing_of_what_came(
    said: bytes, monkeypatch: pytest.MonkeyPatch, autojump_clock: MockClock
) -> None:
    """By itself: Python's collector counts objects and not bytes, and connections are free."""
    seen: weakref.WeakSet[HttpConnection | Stranger] = weakref.WeakSet()
    run = HttpConnection.run

    async def run_seen(self: HttpConnection) -> None:
        seen.update((self, self._stranger))
        await run(self)
        assert seen

    async def app(_scope: Scope, _receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"0")]})
        await send({"type": "http.response.body"})

    monkeypatch.setattr(HttpConnection, "run", run_seen)
    gc.disable()
    try:
        for _ in range(3):
            client, stream = _connection()
            async with trio.open_nursery() as nursery:
                nursery.start_soon(serve_alone, app, stream)
                await client.send_all(said)
                await client.receive_some()
                await client.aclose()
        assert not seen
    finally:
        gc.enable()


async def test_a_stranger_gets_its_refusal_though_it_sends_more_than_is_read(
    autojump_clock: MockClock,
) -> None:
    async def refuse(_scope: Scope, _receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 401, "headers": [(b"content-length", b"2")]})
        await send({"type": "http.response.body", "body": b"no"})

    client, stream = _connection()
    sent = 0
    with fail_after(600):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(serve_alone, refuse, stream)
            await client.send_all(b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10000000\r\n\r\n")
            while sent < 5_000_000:
                await client.send_all(bytes(50_000))
                sent += 50_000
                await trio.sleep(0.015)
            assert b"".join([part async for part in client]).endswith(b"no")


async def test_a_code_is_short(tmp_path: Path) -> None:
    async with _served(tmp_path) as client:
        answer = await client.post("/open", json={"code": "x" * PAGE_CODE_BODY_SIZE_MAX})
        assert answer.json()["error"]["code"] == "too_large"


@pytest.mark.parametrize("name", ["../../x", "..", "a/b", "/etc/passwd"])
async def test_a_file_is_asked_for_by_its_name_whatever_that_is(tmp_path: Path, name: str) -> None:
    async with _served(tmp_path) as client:
        await _post(client, "/repos", {"name": "notes"})
        path = f"/api/v1/branches/main/files/{path_part(name)}"
        error = (await client.get(path)).json()["error"]
        assert (error["code"], error["message"]) == ("not_found", f"no file is called {name!r}")
        await client.post("/api/v1/branches/main/files", params={"name": name}, content=b"content")
        assert (await client.get(path)).content == b"content"
