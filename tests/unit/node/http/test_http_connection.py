"""One connection of the API's server: requests in a row, bodies that break off, clients that leave, and what is no HTTP."""

import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import trio
import trio.testing
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from trio.testing import MockClock, memory_stream_pair

from node.http.connection import IDLE_SECONDS, HttpConnection
from node.http.strangers import Stranger
from tests.support.machine import fail_after

_GET = b"GET /a%20b?c=d HTTP/1.1\r\nHost: localhost\r\n\r\n"
_OK = b"HTTP/1.1 200 \r\ncontent-length: 2\r\n\r\nok"
_EMPTY = b"HTTP/1.1 200 \r\ncontent-length: 0\r\n\r\n"


async def _say(send: Send, content: bytes = b"ok") -> None:
    length = str(len(content)).encode()
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", length)]})
    await send({"type": "http.response.body", "body": content})


async def _echo(_scope: Scope, receive: Receive, send: Send) -> None:
    """Answer with the body that comes."""
    content, has_more = b"", True
    while has_more:
        message = await receive()
        if message["type"] == "http.disconnect":
            return
        content += message["body"]
        has_more = message["more_body"]
    await _say(send, content)


@asynccontextmanager
async def _connected(
    app: ASGIApp, *pair: trio.abc.HalfCloseableStream
) -> AsyncIterator[trio.abc.HalfCloseableStream]:
    """A client of a server that serves it by this application, for at most ten minutes of the mock clock."""
    client, server = pair or memory_stream_pair()
    stranger = Stranger(trio.Semaphore(1))
    stranger.trust()
    ends = {"scheme": "http", "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 2)}

    async def serve() -> None:
        await HttpConnection(app, server, stranger, ends).run()
        await server.aclose()
        nursery.cancel_scope.cancel()

    with fail_after(600):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(serve)
            yield client
            await client.aclose()


async def _read(client: trio.abc.ReceiveStream, end: bytes = b"") -> bytes:
    """What is answered, up to what it ends with, or to the end of the connection."""
    said = b""
    while not end or not said.endswith(end):
        part = await client.receive_some()
        if not part:
            break
        said += part
    return said


async def test_requests_that_come_at_once_are_answered_in_order(autojump_clock: MockClock) -> None:
    asked: list[Scope] = []

    async def app(scope: Scope, _receive: Receive, send: Send) -> None:
        asked.append(scope)
        await _say(send, str(len(asked)).encode())

    async with _connected(app) as client:
        await client.send_all(_GET * 3)
        said = await _read(client, b"3")
    assert said == b"".join(
        b"HTTP/1.1 200 \r\ncontent-length: 1\r\n\r\n%d" % number for number in range(1, 4)
    )
    first = asked[0]
    assert (first["method"], first["path"], first["query_string"]) == ("GET", "/a b", b"c=d")
    assert first["headers"] == [(b"host", b"localhost")]
    assert (first["scheme"], first["client"], first["server"]) == (
        "http",
        ("127.0.0.1", 1),
        ("127.0.0.1", 2),
    )


@pytest.mark.parametrize(
    "head, body",
    [
        (b"Content-Length: 5", [b"ab", b"cde"]),
        (b"Transfer-Encoding: chunked", [b"2\r\nab\r", b"\n3\r\ncde\r\n0\r\n", b"\r\n"]),
        (b"Content-Length: 5\r\nExpect: 100-continue", [b"abcde"]),
    ],
)
async def test_a_body_may_come_in_parts(head: bytes, body: list[bytes], autojump_clock: MockClock) -> None:
    async with _connected(_echo) as client:
        for _ in range(2):  # and the connection is used again
            await client.send_all(b"POST / HTTP/1.1\r\nHost: localhost\r\n" + head + b"\r\n\r\n")
            if b"Expect" in head:
                assert await _read(client, b"\r\n\r\n") == b"HTTP/1.1 100 \r\n\r\n"
            for part in body:
                await client.send_all(part)
                await trio.sleep(1)
            assert (await _read(client, b"abcde")).endswith(b"\r\n\r\nabcde")


async def test_a_request_that_had_come_when_the_process_had_no_turn_for_long_is_answered(
    mock_clock: MockClock,
) -> None:
    near, far = socket.socketpair()
    client, server = (trio.SocketStream(trio.socket.from_stdlib_socket(one)) for one in (near, far))
    async with _connected(_echo, client, server):
        for said, answer in ((_GET, _EMPTY), (_GET, _EMPTY), (_GET[:-1], b"")):
            await trio.testing.wait_all_tasks_blocked()
            near.send(said)  # at once with the jump: no task runs between them
            mock_clock.jump(IDLE_SECONDS + 1)
            assert await client.receive_some() == answer


@pytest.mark.parametrize(
    "said, status",
    [
        (b"nonsense\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\n\r\n", 400),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505),
        (b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + bytes([97]) * 20_000, 431),
        (b"POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: gzip\r\n\r\n", 501),
        (b"POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n", 400),
        (b"POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nax\r\n", 400),
    ],
    ids=["nonsense", "no host", "HTTP/2", "long header", "encoding", "chunk's size", "chunk's end"],
)
async def test_what_is_no_request_is_refused_and_ends_the_connection(
    said: bytes, status: int, autojump_clock: MockClock
) -> None:
    async with _connected(_echo) as client:
        await client.send_all(said)
        answer = await _read(client)
    assert answer == b"HTTP/1.1 %d \r\ncontent-length: 0\r\nconnection: close\r\n\r\n" % status


async def test_a_body_that_goes_wrong_later_is_refused_once(autojump_clock: MockClock) -> None:
    messages: list[Message] = []

    async def app(_scope: Scope, receive: Receive, send: Send) -> None:
        messages.extend([await receive(), await receive()])
        await _say(send)

    async with _connected(app) as client:
        await client.send_all(
            b"POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na"
        )
        await trio.sleep(1)
        await client.send_all(b"no line's end")
        answer = await _read(client)
    assert [message["type"] for message in messages] == ["http.request", "http.disconnect"]
    assert answer == b"HTTP/1.1 400 \r\ncontent-length: 0\r\nconnection: close\r\n\r\n"


async def test_another_protocol_is_not_spoken(autojump_clock: MockClock) -> None:
    async def app(_scope: Scope, _receive: Receive, send: Send) -> None:
        await _say(send)

    async with _connected(app) as client:
        for _ in range(2):
            await client.send_all(
                b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n"
            )
            assert await _read(client, b"ok") == _OK


async def test_a_client_that_does_not_read_the_answer_first_gets_it(autojump_clock: MockClock) -> None:
    """What is still sent of a body that nobody wants is thrown away: else the answer is lost with the connection."""

    async def refuse(_scope: Scope, _receive: Receive, send: Send) -> None:
        await _say(send)

    async with _connected(refuse) as client:
        await client.send_all(b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\n")
        for _ in range(100):
            await client.send_all(bytes(5000))
        assert await _read(client) == _OK
        began = trio.current_time()
        with pytest.raises(trio.BrokenResourceError):
            while True:
                await client.send_all(b"x")
                await trio.sleep(0.1)
        assert trio.current_time() - began < 2, "and not for ever"


@pytest.mark.parametrize("body", [b"", b"abc", b"abcde"], ids=["held back", "in part", "whole"])
async def test_a_connection_is_closed_whose_client_may_hold_its_body_back(
    body: bytes, autojump_clock: MockClock
) -> None:
    """It was answered without being asked for the body: what it sends next may be that, or another request."""

    async def refuse(_scope: Scope, _receive: Receive, send: Send) -> None:
        await _say(send)

    is_whole = len(body) == 5
    async with _connected(refuse) as client:
        head = b"POST / HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n"
        await client.send_all(head + body)
        answer = await _read(client, b"ok")
        assert answer.startswith(b"HTTP/1.1 200 ")
        assert (b"\r\nconnection: close\r\n" in answer) != is_whole
        await client.send_all(_GET)
        assert await _read(client, b"ok") == (_OK if is_whole else b"")


async def test_a_client_that_leaves_ends_what_runs_for_it(autojump_clock: MockClock) -> None:
    ended = trio.Event()

    async def app(_scope: Scope, receive: Receive, send: Send) -> None:
        await receive()
        try:
            await send({"type": "http.response.start", "status": 200, "headers": []})
            await send({"type": "http.response.body", "body": b"first", "more_body": True})
            assert (await receive())["type"] == "http.disconnect"
            await send({"type": "http.response.body", "body": b"to nobody", "more_body": True})
            await trio.sleep_forever()
        finally:
            ended.set()

    async with _connected(app) as client:
        await client.send_all(_GET)
        assert (await _read(client, b"first\r\n")).startswith(b"HTTP/1.1 200")
        began = trio.current_time()
        await client.aclose()
        await ended.wait()
        assert trio.current_time() - began <= 2


async def test_a_client_that_has_said_its_last_is_answered(autojump_clock: MockClock) -> None:
    async def app(_scope: Scope, _receive: Receive, send: Send) -> None:
        await trio.sleep(0.5)
        await _say(send)

    async with _connected(app) as client:
        await client.send_all(_GET)
        await client.send_eof()
        assert await _read(client) == _OK


async def test_an_application_that_fails_answers_so_and_ends_the_connection(
    autojump_clock: MockClock,
) -> None:
    async def app(scope: Scope, _receive: Receive, send: Send) -> None:
        if scope["method"] == "POST":
            await send({"type": "http.response.start", "status": 200, "headers": []})
        raise RuntimeError("a defect")

    async with _connected(app) as client:
        await client.send_all(_GET)
        assert await _read(client) == b"HTTP/1.1 500 \r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
    async with _connected(app) as client:  # too late for another status: the client sees that it is cut
        await client.send_all(b"POST / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert await _read(client) == b"HTTP/1.1 200 \r\nTransfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize("part", [None, b"longer"])
async def test_an_application_that_fails_before_anything_is_sent_answers_so(
    part: bytes | None, autojump_clock: MockClock
) -> None:
    """A head of known length waits for the first part of its body, so the client has seen nothing of it."""

    async def app(_scope: Scope, _receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
        if part is None:
            raise RuntimeError("a defect")
        await send({"type": "http.response.body", "body": part})

    async with _connected(app) as client:
        await client.send_all(_GET * 2)
        assert await _read(client) == b"HTTP/1.1 500 \r\ncontent-length: 0\r\nconnection: close\r\n\r\n"


async def test_a_body_that_goes_wrong_after_the_head_was_made_is_refused(autojump_clock: MockClock) -> None:
    async def app(_scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
        while (await receive())["type"] != "http.disconnect":
            pass

    async with _connected(app) as client:
        await client.send_all(
            b"POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na"
        )
        await trio.sleep(1)
        await client.send_all(b"no line's end")
        assert await _read(client) == b"HTTP/1.1 400 \r\ncontent-length: 0\r\nconnection: close\r\n\r\n"


async def test_what_was_sent_in_part_is_followed_by_nothing(autojump_clock: MockClock) -> None:
    """A write that is cancelled leaves the client in the middle of an answer."""

    async def app(_scope: Scope, _receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        with trio.CancelScope() as scope:
            scope.cancel()
            await send({"type": "http.response.body", "body": b"lost", "more_body": True})
        await send({"type": "http.response.body", "body": b"later", "more_body": False})

    async with _connected(app) as client:
        await client.send_all(_GET * 2)
        assert b"later" not in await _read(client)


async def test_a_body_that_is_cut_is_told_to_the_application(autojump_clock: MockClock) -> None:
    messages: list[Message] = []

    async def app(_scope: Scope, receive: Receive, _send: Send) -> None:
        while not messages or messages[-1]["type"] == "http.request":
            messages.append(await receive())

    async with _connected(app) as client:
        await client.send_all(b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\nab")
        await client.send_eof()
        assert b"HTTP/1.1 200" not in await _read(client)
    assert messages == [
        {"type": "http.request", "body": b"ab", "more_body": True},
        {"type": "http.disconnect"},
    ]


async def test_a_client_that_leaves_a_long_answer_is_noticed_though_nobody_waits_for_that(
    autojump_clock: MockClock,
) -> None:
    ended: list[float] = []

    async def app(_scope: Scope, receive: Receive, _send: Send) -> None:
        await receive()
        try:
            await trio.sleep_forever()
        finally:
            ended.append(trio.current_time())

    began = trio.current_time()
    async with _connected(app) as client:
        await client.send_all(_GET)
        await trio.sleep(30)
    assert 30 <= ended[0] - began <= 32


async def test_a_request_that_comes_during_a_long_answer_waits_for_its_turn(
    autojump_clock: MockClock,
) -> None:
    """To notice a client that leaves, one piece is read ahead."""
    asked: list[str] = []

    async def app(scope: Scope, _receive: Receive, send: Send) -> None:
        asked.append(scope["path"])
        await trio.sleep(20)
        await _say(send)

    async with _connected(app) as client:
        await client.send_all(_GET)
        await trio.sleep(10)
        for _ in range(3):
            await client.send_all(_GET.replace(b"a%20b", b"second"))
            await trio.sleep(1)
        assert asked == ["/a b"]
        assert await _read(client, b"ok" + _OK * 3) == _OK * 4
    assert asked == ["/a b", *["/second"] * 3]


async def test_many_requests_in_one_piece_leave_room_for_others(autojump_clock: MockClock) -> None:
    answered: list[int] = []

    async def app(_scope: Scope, _receive: Receive, send: Send) -> None:
        answered.append(0)
        await _say(send)

    async with _connected(app) as client:
        await client.send_all(_GET * 100)
        while len(answered) < 50:
            before = len(answered)
            await trio.lowlevel.checkpoint()
            assert len(answered) - before <= 2
