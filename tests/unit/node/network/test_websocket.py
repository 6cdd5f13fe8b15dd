"""Streams by WebSocket: sessions run inside, and what a hostile client or server sends is bounded."""

import gc
import itertools
import weakref
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
import trio
import trio.lowlevel
import trio.testing
from hypothesis import given
from hypothesis import strategies as st
from trio.testing import MockClock, memory_stream_pair
from websockets.frames import Frame, Opcode
from websockets.server import ServerProtocol

from node.network import websocket
from node.network.line import listening_address, open_listener
from node.network.peer_state import PeerState
from node.network.websocket import (
    FrameCutter,
    WebListener,
    WebSocketStream,
    accept_websocket,
    dial_websocket,
    load_certificate,
)
from node.runtime.scheduling import WorkAccount
from node.wire.transport import TransportError, accept, dial
from protocol.crypto.signing import public_key
from protocol.formats.web_address import WebAddress
from protocol.limits.network import (
    WEBSOCKET_HEAD_SIZE_MAX,
    WEBSOCKET_MESSAGE_SIZE_MAX,
    WEBSOCKET_SMALL_AT_ONCE_MAX,
    WEBSOCKET_SMALL_OF_STRANGERS_MAX,
    WEBSOCKET_SMALL_PER_SECOND_MAX,
    WEBSOCKET_SMALL_SIZE,
)
from protocol.limits.peers import FRUITLESS_SECONDS_MAX
from tests.support.machine import fail_after
from tests.support.streams import ACCEPTOR_EPHEMERAL, ACCEPTOR_SEED, DIALER_EPHEMERAL, DIALER_SEED
from tests.support.web_proxy import ForwardProxy, make_certificate

DEADLINE_SECONDS = 20
REQUEST = (
    b"GET /ravel HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: 13\r\n"
)
Serve = Callable[[trio.SocketStream], Awaitable[None]]


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (
        "http_proxy",
        "https_proxy",
        "all_proxy",
        "ws_proxy",
        "wss_proxy",
        "socks_proxy",
        "no_proxy",
    ):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


@asynccontextmanager
async def _serving(serve: Serve) -> AsyncIterator[WebAddress]:
    """A server on loopback, and its address."""
    listeners = await open_listener("127.0.0.1:0")
    port = int(listening_address(listeners).rpartition(":")[2])
    with fail_after(DEADLINE_SECONDS):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(trio.serve_listeners, serve, listeners)
            yield WebAddress(False, "127.0.0.1", port, "/ravel")
            nursery.cancel_scope.cancel()


async def _answer(request: bytes) -> tuple[bytes, str]:
    """What a node answers to a request, and why it does not go on."""
    ours, theirs = memory_stream_pair()
    reason = ""
    async with trio.open_nursery() as nursery:

        @nursery.start_soon
        async def serve() -> None:
            nonlocal reason
            try:
                stream, _ = await accept_websocket(theirs, None)
                await trio.aclose_forcefully(stream)
            except TransportError as error:
                reason = error.reason

        answer = b""
        try:
            await ours.send_all(request)
            while some := await ours.receive_some():
                answer += some
        except trio.BrokenResourceError:
            pass
    return answer, reason


@asynccontextmanager
async def _accepted() -> AsyncIterator[tuple[trio.abc.Stream, WebSocketStream]]:
    """A client of which each frame is made by hand, and the stream that the node has with it."""
    ours, theirs = memory_stream_pair()
    with fail_after(DEADLINE_SECONDS):
        await ours.send_all(REQUEST + b"\r\n")
        stream, _ = await accept_websocket(theirs, None)
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            head += await ours.receive_some(1)
        assert head.startswith(b"HTTP/1.1 101 ")
        yield ours, stream


def _frame(opcode: Opcode, data: bytes, *, fin: bool = True) -> bytes:
    return Frame(opcode, data, fin).serialize(mask=True)


async def test_a_session_runs_inside_both_ways_and_ends_cleanly() -> None:
    frames = [b"hello", bytes(range(256)) * 4000]

    async def serve(tcp: trio.SocketStream) -> None:
        opened, _ = await accept_websocket(tcp, None)
        secure = await accept(opened, ACCEPTOR_SEED, ACCEPTOR_EPHEMERAL)
        while (frame := await secure.receive_frame()) is not None:
            await secure.send_frame(frame)
        await secure.aclose()

    async with _serving(serve) as address:
        line = await dial_websocket(address)
        assert (line.across, line.local_host) == ("", "127.0.0.1"), "who answers may be a proxy"
        secure = await dial(line.stream, DIALER_SEED, public_key(ACCEPTOR_SEED), DIALER_EPHEMERAL)
        for frame in frames:
            await secure.send_frame(frame)
        assert [await secure.receive_frame() for _ in frames] == frames
        await secure.aclose()


@pytest.mark.slow
async def test_tls_is_verified_and_its_own_certificate_serves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    certificate, key = make_certificate(tmp_path)
    other, other_key = make_certificate(tmp_path / "other", "other.example")
    web = WebListener([], load_certificate(certificate, key))
    web_of_other = WebListener([], load_certificate(other, other_key))

    async def serve(tcp: trio.SocketStream) -> None:
        try:
            opened, address = await web.accept(tcp)
        except TransportError:
            return
        assert address.startswith("127.0.0.1:")
        await opened.send_all(await opened.receive_some())
        await opened.aclose()

    async with _serving(serve) as plain:
        address = WebAddress(True, "localhost", plain.port, "/ravel")
        with pytest.raises(TransportError) as caught:
            await dial_websocket(address)
        assert caught.value.reason == "certificate"
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
        line = await dial_websocket(address)
        await line.stream.send_all(b"over TLS")
        assert await line.stream.receive_some() == b"over TLS"
        await line.stream.aclose()
        monkeypatch.setenv("SSL_CERT_FILE", str(other))
        web = web_of_other
        with pytest.raises(TransportError, match="not valid for 'localhost'"):
            await dial_websocket(address)


@pytest.mark.parametrize(
    "request_, answer",
    [
        (REQUEST.replace(b"/ravel", b"/admin") + b"\r\n", b"HTTP/1.1 404 "),
        (REQUEST.replace(b"/ravel", b"/a/b/c/d/ravel") + b"\r\n", b"HTTP/1.1 404 "),
        (b"GET /ravel HTTP/1.1\r\nHost: a\r\n\r\n", b"HTTP/1.1 426 "),
        (REQUEST + b"Origin: https://evil.example\r\n\r\n", b"HTTP/1.1 403 "),
        (REQUEST.replace(b"Version: 13", b"Version: 8") + b"\r\n", b"HTTP/1.1 400 "),
        (b"POST" + REQUEST[3:] + b"\r\n", b"HTTP/1.1 405 "),
        (REQUEST + b"X: " + b"a" * 9000 + b"\r\n\r\n", b"HTTP/1.1 431 "),
        (REQUEST + b"X: y\r\n" * 200 + b"\r\n", b"HTTP/1.1 431 "),
        (b"\x16\x03\x01\x02\x00nonsense\r\n", b""),
        (REQUEST + (b"X: " + b"a" * 2000 + b"\r\n") * 9 + b"\r\n", b""),
        (REQUEST + b"\r\n" + _frame(Opcode.PING, b""), b""),
        (REQUEST + b"\r\n\xff\xff\xff\xff", b""),
        (REQUEST.replace(b"/ravel", b"/admin") + b"\r\n\xff\xff\xff\xff", b""),
    ],
    ids=["path", "deep", "no upgrade", "browser", "version", "method", "long header", "many", "no HTTP", "long",
         "early", "malformed", "path and malformed"],
)  # fmt: skip
async def test_what_is_no_request_of_a_node_is_refused(request_: bytes, answer: bytes) -> None:
    with fail_after(DEADLINE_SECONDS):
        said, reason = await _answer(request_)
    assert said.startswith(answer)
    assert bool(said) == bool(answer)
    assert reason == "no_websocket"


async def test_a_path_that_a_proxy_adds_to_is_answered() -> None:
    with fail_after(DEADLINE_SECONDS):
        said, _ = await _answer(REQUEST.replace(b"/ravel", b"/a/b/c/ravel") + b"\r\n")
    assert said.startswith(b"HTTP/1.1 101 ")


async def test_a_head_may_have_just_so_many_bytes() -> None:
    filler = WEBSOCKET_HEAD_SIZE_MAX - len(REQUEST) - 2
    lines = b"".join(b"X: " + b"a" * 1000 + b"\r\n" for _ in range(filler // 1005))
    rest = filler - len(lines)
    fitting = REQUEST + lines + b"Y: " + b"b" * (rest - 5) + b"\r\n\r\n"
    assert len(fitting) == WEBSOCKET_HEAD_SIZE_MAX
    with fail_after(DEADLINE_SECONDS):
        assert (await _answer(fitting))[0].startswith(b"HTTP/1.1 101 ")
        assert (await _answer(fitting.replace(b"\r\n\r\n", b"b\r\n\r\n")))[1] == "no_websocket"


@pytest.mark.parametrize(
    "said, cuts",
    [
        (REQUEST + b"\r\n", True),
        (REQUEST, True),
        (REQUEST + b"a:b\r\n" * 200, False),
        (b"nonsense\r\n\r\n", False),
        (REQUEST + b"\r\n\x83\x80\0\0\0\0", False),
    ],
    ids=["whole", "cut", "long", "nonsense", "early"],
)
async def test_a_connection_that_has_ended_keeps_nothing_of_what_came(
    said: bytes, cuts: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By itself: Python's collector counts objects and not bytes, and connections are free."""
    seen: weakref.WeakSet[ServerProtocol] = weakref.WeakSet()

    class Seen(ServerProtocol):
        def receive_data(self, data: bytes | bytearray) -> None:
            seen.add(self)
            super().receive_data(data)

    monkeypatch.setattr(websocket, "ServerProtocol", Seen)

    async def serve(stream: trio.abc.Stream) -> None:
        with suppress(TransportError):
            opened, _ = await accept_websocket(stream, None)
            assert seen
            await opened.receive_some()
            await opened.aclose()

    gc.disable()
    try:
        for _ in range(3):
            ours, theirs = memory_stream_pair()
            async with trio.open_nursery() as nursery:
                nursery.start_soon(serve, theirs)
                await ours.send_all(said)
                if cuts:
                    await ours.send_eof()
        assert not seen
    finally:
        gc.enable()


async def test_messages_of_text_and_too_long_ones_end_it() -> None:
    for bad in (
        _frame(Opcode.TEXT, b"hello"),
        _frame(Opcode.BINARY, bytes(WEBSOCKET_MESSAGE_SIZE_MAX + 1)),
        _frame(Opcode.BINARY, bytes(WEBSOCKET_MESSAGE_SIZE_MAX), fin=False) + _frame(Opcode.CONT, b"1"),
        Frame(Opcode.BINARY, b"x").serialize(mask=False),
        b"\xff\xff\xff\xff",
    ):
        async with _accepted() as (ours, stream):
            await ours.send_all(_frame(Opcode.BINARY, bytes(WEBSOCKET_MESSAGE_SIZE_MAX)) + bad)
            received = 0
            with pytest.raises(trio.BrokenResourceError):
                while some := await stream.receive_some():
                    received += len(some)
            assert received <= 2 * WEBSOCKET_MESSAGE_SIZE_MAX
            with pytest.raises(trio.BrokenResourceError):
                await stream.send_all(b"x")
            await stream.aclose()


@pytest.mark.slow
@pytest.mark.parametrize("opcode", [Opcode.PING, Opcode.CONT, Opcode.BINARY])
async def test_endless_small_frames_end_it(autojump_clock: MockClock, opcode: Opcode) -> None:
    size = 0 if opcode is Opcode.CONT else 1
    small = _frame(opcode, bytes(size), fin=opcode is not Opcode.CONT)
    async with _accepted() as (ours, stream):
        stream.charge_to(cast(PeerState, SimpleNamespace(connection=None)))
        if opcode is Opcode.CONT:
            await ours.send_all(_frame(Opcode.BINARY, bytes(WEBSOCKET_SMALL_SIZE), fin=False))
        async with trio.open_nursery() as nursery:
            read = 0

            @nursery.start_soon
            async def receive() -> None:
                nonlocal read
                with pytest.raises(trio.BrokenResourceError, match="small frames"):
                    while some := await stream.receive_some():
                        read += len(some)
                nursery.cancel_scope.cancel()

            for count in (WEBSOCKET_SMALL_AT_ONCE_MAX, WEBSOCKET_SMALL_PER_SECOND_MAX):
                await ours.send_all(small * count)
                await trio.sleep(1)
            assert not nursery.cancel_scope.cancelled_caught
            await ours.send_all(small * (WEBSOCKET_SMALL_PER_SECOND_MAX + 1))
            await trio.sleep(1)
            raise AssertionError("it goes on")


@pytest.mark.parametrize("opcode", [Opcode.PING, Opcode.CONT, Opcode.BINARY])
async def test_few_small_frames_are_taken_of_who_has_proved_no_key(opcode: Opcode) -> None:
    async with _accepted() as (ours, stream):
        await ours.send_all(_frame(Opcode.BINARY, bytes(WEBSOCKET_SMALL_SIZE), fin=opcode is not Opcode.CONT))
        small = _frame(opcode, b"", fin=opcode is not Opcode.CONT)
        last = _frame(opcode, b"") + _frame(Opcode.CLOSE, b"\x03\xe8")
        await ours.send_all(small * (WEBSOCKET_SMALL_OF_STRANGERS_MAX - 2) + last)
        read = 0
        while some := await stream.receive_some():
            read += len(some)
        assert read == WEBSOCKET_SMALL_SIZE
    async with _accepted() as (ours, stream):
        await ours.send_all(_frame(Opcode.BINARY, bytes(WEBSOCKET_SMALL_SIZE), fin=opcode is not Opcode.CONT))
        await ours.send_all(small * (WEBSOCKET_SMALL_OF_STRANGERS_MAX + 1))
        with pytest.raises(trio.BrokenResourceError, match="small frames"):
            while await stream.receive_some():
                pass


@pytest.mark.parametrize("opcode", [Opcode.PING, Opcode.BINARY])
async def test_others_have_their_turn_between_small_frames(opcode: Opcode) -> None:
    """A read brings 11,000 of them."""
    async with _accepted() as (ours, stream):
        stream.charge_to(cast(PeerState, SimpleNamespace(connection=None)))
        await ours.send_all(_frame(opcode, b"") * 2000 + _frame(Opcode.BINARY, b"x"))
        turns = 0
        async with trio.open_nursery() as nursery:

            @nursery.start_soon
            async def count() -> None:
                nonlocal turns
                while True:
                    await trio.lowlevel.checkpoint()
                    turns += 1

            assert await stream.receive_some() == b"x"
            nursery.cancel_scope.cancel()
        assert turns >= 2000 // 64


@st.composite
def _streams(draw: st.DrawFn) -> list[bytes]:
    """Frames of all forms of lengths, masked or not, and where what comes of them is cut."""
    sizes = st.sampled_from([0, 0, 0, 1, 5, 125, 126, 300, 65_535, 65_536])
    frames = [
        Frame(Opcode.BINARY, bytes(size)).serialize(mask=draw(st.booleans()))
        for size in draw(st.lists(sizes, max_size=12))
        for _ in range(draw(st.sampled_from([1, 1, 40])) if size < 126 else 1)
    ]
    return [one for one in frames if one]


@given(frames=_streams(), data=st.data())
def test_what_is_cut_off_holds_some_frames_and_nothing_is_lost(
    frames: list[bytes], data: st.DataObject
) -> None:
    whole = b"".join(frames)
    cuts = data.draw(st.lists(st.integers(0, len(whole)), max_size=6).map(sorted))
    ends = set(itertools.accumulate(map(len, frames)))
    cutter, given_on, waiting = FrameCutter(), 0, bytearray()
    for start, end in itertools.pairwise([0, *cuts, len(whole)]):
        waiting += whole[start:end]
        while waiting:
            size = cutter.cut(waiting)
            assert size > 0
            assert sum(given_on < one <= given_on + size for one in ends) <= 64 + 1, "and the one before them"
            del waiting[:size]
            given_on += size
    assert given_on == len(whole)


async def test_small_frames_are_charged_to_the_peer_and_its_budget_ends_it(autojump_clock: MockClock) -> None:
    account, reasons = WorkAccount(trio.current_time), list[str]()
    connection = SimpleNamespace(account=account, part=reasons.append)
    count = 100
    async with _accepted() as (ours, stream):
        await ours.send_all(_frame(Opcode.PING, b"") * count + _frame(Opcode.BINARY, b"x"))
        assert await stream.receive_some() == b"x"
        assert account.used == 0, "its handshake is not done"
        stream.charge_to(cast(PeerState, SimpleNamespace(connection=connection)))
        await ours.send_all(_frame(Opcode.PING, b"") * count)
        await ours.send_all(_frame(Opcode.BINARY, bytes(WEBSOCKET_SMALL_SIZE)))
        await stream.receive_some()
        assert account.used == pytest.approx(count * 6e-6)
        assert not reasons
        account.charge(FRUITLESS_SECONDS_MAX)
        await ours.send_all(_frame(Opcode.BINARY, b"x"))
        await stream.receive_some()
        assert reasons == ["over_budget"]


async def test_pings_are_answered_between_messages() -> None:
    async with _accepted() as (ours, stream):
        await ours.send_all(_frame(Opcode.PING, b"are you there") + _frame(Opcode.BINARY, b"data"))
        assert await stream.receive_some(2) == b"da"
        assert await stream.receive_some() == b"ta"
        await stream.send_all(b"back")
        said = b""
        while len(said) < 21:
            said += await ours.receive_some()
        assert said == Frame(Opcode.PONG, b"are you there").serialize(mask=False) + Frame(
            Opcode.BINARY, b"back"
        ).serialize(mask=False)
        await ours.send_all(_frame(Opcode.CLOSE, b"\x03\xe8"))
        assert await stream.receive_some() == b""
        await stream.aclose()


async def test_a_cancelled_write_is_the_last_one() -> None:
    async with _accepted() as (_, stream):
        with trio.CancelScope() as scope:
            scope.cancel()
            await stream.send_all(b"x")
        assert scope.cancelled_caught
        stream._is_torn = True
        with pytest.raises(trio.BrokenResourceError):
            await stream.send_all(b"y")
        await stream.aclose()


@pytest.mark.parametrize(
    "answer, says",
    [
        (b"HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno", "says 403"),
        (b"HTTP/1.1 502 Bad Gateway\r\n\r\n" + b"x" * 100, "says 502"),
        (b"HTTP/1.1 200 OK\r\nX: " + b"a" * 20_000, "no WebSocket"),
        (b"HTTP/1.1 101 Ok\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n", "no WebSocket"),
        (b"SSH-2.0-OpenSSH\r\n", "no WebSocket"),
        (b"", "no WebSocket"),
    ],
    ids=["403", "502", "long", "no key", "SSH", "nothing"],
)
async def test_a_server_that_is_no_node_is_said(answer: bytes, says: str) -> None:
    async def serve(tcp: trio.SocketStream) -> None:
        await tcp.receive_some()
        await tcp.send_all(answer or b" ")
        await tcp.send_eof()
        await trio.lowlevel.checkpoint()

    async with _serving(serve) as address:
        with pytest.raises(TransportError, match=says) as caught:
            await dial_websocket(address)
        assert caught.value.reason == "no_websocket"


async def test_the_environments_proxy_is_used_and_what_it_says_is_bounded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def serve(tcp: trio.SocketStream) -> None:
        opened, _ = await accept_websocket(tcp, None)
        await opened.send_all(b"through")
        await opened.aclose()

    good = ForwardProxy()
    bad = [
        ForwardProxy(b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n"),
        ForwardProxy(b"x" * (WEBSOCKET_HEAD_SIZE_MAX + 1)),
        ForwardProxy(b"\r\n\r\n"),
    ]
    async with _serving(serve) as address, _serving(good.serve) as proxy:
        monkeypatch.setenv("http_proxy", f"http://me:secret@127.0.0.1:{proxy.port}")
        line = await dial_websocket(address)
        assert await line.stream.receive_some() == b"through"
        await trio.aclose_forcefully(line.stream)
        assert good.heads[0].startswith(f"CONNECT 127.0.0.1:{address.port} HTTP/1.1\r\n".encode())
        assert b"Proxy-Authorization: Basic " in good.heads[0]
        for one in bad:
            async with _serving(one.serve) as refusing:
                monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{refusing.port}")
                with pytest.raises(TransportError) as caught:
                    await dial_websocket(address)
                assert caught.value.reason == "proxy"
        for url in ("https://127.0.0.1:1", "nonsense://a"):
            monkeypatch.setenv("http_proxy", url)
            with pytest.raises(TransportError, match="the environment names a proxy"):
                await dial_websocket(address)
        monkeypatch.setenv("no_proxy", "127.0.0.1")
        await trio.aclose_forcefully((await dial_websocket(address)).stream)
