"""A WebSocket connection as a stream of trio's: what carries sessions where only the web's ports are open.

The handshake and session of `node.wire.transport` run inside, in binary messages whose bounds mean nothing. TLS and HTTP
hide from a network what is spoken, and prove nothing of the peer: the node key does. `websockets` parses; here are the
reads, the writes and the bounds. Imported once it is needed: it takes 50 ms and 3 MB.
"""

import logging
import ssl
from pathlib import Path
from typing import Final

import trio
from websockets.client import ClientProtocol
from websockets.datastructures import Headers
from websockets.exceptions import InvalidProxy, InvalidStatus
from websockets.frames import CloseCode, Frame, Opcode
from websockets.http11 import Request, Response
from websockets.protocol import Protocol, State
from websockets.proxy import get_proxy, parse_proxy, prepare_connect_request
from websockets.server import ServerProtocol
from websockets.uri import parse_uri

from node.network.line import Line, listening_address
from node.network.own_addresses import shown_address
from node.network.peer_state import PeerState
from node.runtime.subnets import address_of, local_host
from node.runtime.token_bucket import TokenBucket
from node.wire.transport import CLOSE_TIMEOUT_SECONDS, TransportError
from protocol.formats.web_address import WEB_PATH, WebAddress, is_web_path
from protocol.limits.formats import KIB
from protocol.limits.network import (
    WEBSOCKET_HEAD_SIZE_MAX,
    WEBSOCKET_MESSAGE_SIZE_MAX,
    WEBSOCKET_SMALL_AT_ONCE_MAX,
    WEBSOCKET_SMALL_OF_STRANGERS_MAX,
    WEBSOCKET_SMALL_PER_SECOND_MAX,
    WEBSOCKET_SMALL_SIZE,
)
from protocol.session.reach import host_named, host_of

_READ_SIZE: Final = 64 * KIB
"""Bytes that are read at a time: of the shortest frames 11,000."""
_FRAMES_AT_ONCE: Final = 64
"""Frames that are parsed before others have their turn: 0.4 ms."""
_HEAD_READ_SIZE: Final = 4 * KIB
_SMALL_SECONDS: Final = 6e-6
"""Seconds of the processor that a small frame takes. The bound for one stream is 3 % of it: a host may have hundreds."""
_SILENT: Final = logging.Logger("websockets", logging.CRITICAL)
"""What strangers send is no matter for the log."""


class WebListener:
    """Address at which this node listens by WebSocket."""

    def __init__(self, listeners: list[trio.SocketListener], tls: ssl.SSLContext | None = None) -> None:
        """Take the addresses. Without `tls` there is none: a proxy before this node has it, or nobody."""
        self.listeners: Final = listeners
        self._tls = tls

    @property
    def address(self) -> str:
        """Return the address to dial, with the host as it is listened on."""
        return f"{'ws' if self._tls is None else 'wss'}://{listening_address(self.listeners)}{WEB_PATH}"

    async def accept(self, stream: trio.SocketStream) -> tuple["WebSocketStream", str]:
        """Answer a client; the connection, and where the client is, host:port. Raises TransportError.

        What a proxy says of that is believed of this machine's proxies alone. The port is the proxy's, then.
        """
        address = address_of(stream)
        opened, forwarded = await accept_websocket(stream, self._tls)
        near, host = host_of(address), host_named(forwarded)
        if host is None or near is None or not near.is_loopback:
            return opened, address
        return opened, shown_address(host, address.rpartition(":")[2])


def load_certificate(certificate: Path, key: Path) -> ssl.SSLContext:
    """Load the certificate and key for TLS. Raises OSError, of which ssl.SSLError is one."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate, key)
    return context


class FrameCutter:
    """Finds where frames end in received bytes, so that the parser is given whole frames: it takes all in one step."""

    def __init__(self) -> None:
        self._head = bytearray()  # of a frame, as far as it has come
        self._rest = 0  # bytes of the last frame's content that have not come

    def cut(self, data: bytearray) -> int:
        """Bytes from the start of `data` that end at most _FRAMES_AT_ONCE frames later; the others are to be given again."""
        place = 0
        for _ in range(_FRAMES_AT_ONCE):
            taken = min(self._rest, len(data) - place)
            place, self._rest = place + taken, self._rest - taken
            while place < len(data) and (lacking := _head_size(self._head) - len(self._head)):
                self._head += data[place : place + lacking]
                place = min(place + lacking, len(data))
            if len(self._head) < _head_size(self._head):
                break  # what has come is at its end
            self._rest = _content_size(self._head)
            self._head.clear()
        return place


_LENGTH_SIZES: Final = {126: 2, 127: 8}
_MASK_SIZE: Final = 4


def _head_size(head: bytearray) -> int:
    """Bytes of a frame's head that begins so, as far as that can be told: 2 at least (RFC 6455, 5.2)."""
    if len(head) < 2:
        return 2
    return 2 + _LENGTH_SIZES.get(head[1] & 0x7F, 0) + (_MASK_SIZE if head[1] & 0x80 else 0)


def _content_size(head: bytearray) -> int:
    """Bytes that follow a whole head."""
    short = head[1] & 0x7F
    return int.from_bytes(head[2 : 2 + _LENGTH_SIZES[short]], "big") if short in _LENGTH_SIZES else short


class WebSocketStream(trio.abc.Stream):
    """The bytes in the binary messages of one connection. One task may read and one may write at a time."""

    def __init__(
        self, stream: trio.abc.Stream, protocol: Protocol, frames: list[Frame], *, is_stranger: bool = False
    ) -> None:
        """`frames` came with the end of the handshake. Of who has dialed this node only few small ones are taken before
        there is an account that pays for them."""
        self._stream = stream
        self._protocol = protocol
        self._received = bytearray()
        self._unparsed = bytearray()
        self._cutter = FrameCutter()
        small_max = WEBSOCKET_SMALL_OF_STRANGERS_MAX if is_stranger else WEBSOCKET_SMALL_AT_ONCE_MAX
        self._small = TokenBucket(small_max, 0 if is_stranger else WEBSOCKET_SMALL_PER_SECOND_MAX)
        self._payer: PeerState | None = None
        self._is_over = False
        self._fault = ""
        self._writing = trio.Lock()  # a pong is said by the reader
        self._is_torn = False
        self._take(frames)

    def charge_to(self, payer: PeerState) -> None:
        """Charge a peer's account for small frames from now on; end the connection beyond its budget."""
        self._payer = payer
        self._small = TokenBucket(WEBSOCKET_SMALL_AT_ONCE_MAX, WEBSOCKET_SMALL_PER_SECOND_MAX)

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        """Send all, in messages of WEBSOCKET_MESSAGE_SIZE_MAX at most."""
        async with self._writing:
            if self._protocol.state is not State.OPEN:
                raise trio.BrokenResourceError("the WebSocket connection is closing")
            with memoryview(data) as view:
                for start in range(0, len(view), WEBSOCKET_MESSAGE_SIZE_MAX):
                    self._protocol.send_binary(view[start : start + WEBSOCKET_MESSAGE_SIZE_MAX])
            await self._write()

    async def wait_send_all_might_not_block(self) -> None:
        """Return once the connection may take bytes."""
        await self._stream.wait_send_all_might_not_block()

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        """Bytes that came; none once the peer has closed the connection and all are read."""
        await trio.lowlevel.checkpoint()
        while not self._received:
            if self._fault:
                raise trio.BrokenResourceError(self._fault)
            if self._is_over:
                return b""
            await self._read()
        size = len(self._received) if max_bytes is None else min(max_bytes, len(self._received))
        some = bytes(memoryview(self._received)[:size])
        del self._received[:size]
        return some

    async def aclose(self) -> None:
        """Say that this is the end, as far as it can be said in a moment, and close."""
        try:
            with trio.move_on_after(CLOSE_TIMEOUT_SECONDS):
                async with self._writing:
                    if self._protocol.state is State.OPEN:
                        self._protocol.send_close(CloseCode.NORMAL_CLOSURE)
                        await self._write()
        except trio.BrokenResourceError:
            pass  # it is closed anyway
        finally:
            _free(self._protocol)
            await self._stream.aclose()

    async def _read(self) -> None:
        if self._unparsed:
            await trio.lowlevel.checkpoint()
        else:
            data = await self._stream.receive_some(_READ_SIZE)
            if not data:
                self._is_over = True
                return
            self._unparsed += data
        size = self._cutter.cut(self._unparsed)
        self._protocol.receive_data(bytes(memoryview(self._unparsed)[:size]))
        del self._unparsed[:size]
        self._take([one for one in self._protocol.events_received() if isinstance(one, Frame)])
        if self._protocol.writes:
            async with self._writing:
                await self._write()

    def _take(self, frames: list[Frame]) -> None:
        """Return the bytes of parsed messages. No binary message, or too many small frames, ends the connection."""
        now = trio.current_time()
        self._charge(sum(len(frame.data) < WEBSOCKET_SMALL_SIZE for frame in frames))
        has_text = False
        for frame in frames:
            if len(frame.data) < WEBSOCKET_SMALL_SIZE and not self._small.try_acquire(now):
                self._fail(CloseCode.POLICY_VIOLATION, "too many small frames")
                return
            match frame.opcode:
                case Opcode.BINARY | Opcode.CONT:
                    self._received += frame.data
                case Opcode.TEXT:
                    has_text = True
                case Opcode.CLOSE:
                    self._is_over = True
        if has_text:
            self._fail(CloseCode.UNSUPPORTED_DATA, "a message of text")
        elif self._protocol.parser_exc is not None:
            self._fault = str(self._protocol.parser_exc) or "the peer does not speak WebSocket"

    def _charge(self, small: int) -> None:
        """Charge the peer for pings and pieces, which the session does not see."""
        connection = None if self._payer is None else self._payer.connection
        if connection is not None and small:
            connection.account.charge(small * _SMALL_SECONDS)
            if connection.account.is_over:
                connection.part("over_budget")

    def _fail(self, code: CloseCode, fault: str) -> None:
        self._fault = fault
        self._received.clear()
        self._protocol.fail(code)

    async def _write(self) -> None:
        """Write what the protocol wants to be written. A write that is cancelled leaves a torn frame: it is the last."""
        if self._is_torn:
            raise trio.BrokenResourceError("a write was cut off")
        data = b"".join(self._protocol.data_to_send())
        self._is_torn = True
        if data:
            await self._stream.send_all(data)
        self._is_torn = False


async def accept_websocket(
    stream: trio.abc.Stream, tls: ssl.SSLContext | None
) -> tuple[WebSocketStream, str]:
    """Answer a WebSocket client; the connection, and what a proxy says of where the client is (empty: nothing).

    The stream is owned from here on: it is closed when this fails. Raises TransportError.
    """
    protocol: ServerProtocol | None = None
    try:
        if tls is not None:
            stream = await _shake_hands(trio.SSLStream(stream, tls, server_side=True, https_compatible=True))
        # A browser's page could be made to dial: it says an Origin, which no node does.
        protocol = ServerProtocol(origins=[None], max_size=WEBSOCKET_MESSAGE_SIZE_MAX, logger=_SILENT)
        events = await _receive_head(stream, protocol)
        request = events[0] if events else None
        is_early = (
            len(events) > 1 or protocol.parser_exc is not None
        )  # frames, or what is none, before the answer
        if not isinstance(request, Request) or is_early:
            if protocol.handshake_exc is not None:  # too long, which the client is told
                await _send_rest(stream, protocol)
            raise TransportError("no_websocket", "what was received is no request of a WebSocket client")
        response = protocol.accept(request) if is_web_path(request.path) else protocol.reject(404, "")
        protocol.send_response(response)
        await _send_rest(stream, protocol)
        if response.status_code != 101:
            raise TransportError("no_websocket", f"a request was answered with {response.status_code}")
        return WebSocketStream(stream, protocol, [], is_stranger=True), _forwarded_for(request.headers)
    except BaseException as error:  # Cancelled too: nothing else holds the stream
        if protocol is not None:
            _free(protocol)
        await trio.aclose_forcefully(stream)
        if isinstance(error, trio.BrokenResourceError):
            raise TransportError("closed", "the connection broke") from error
        raise


async def dial_websocket(address: WebAddress) -> Line:
    """Connect by WebSocket to a node, or to a proxy before it; through a proxy for HTTP where the environment names one.

    Raises OSError, TransportError. The caller bounds how long it takes.
    """
    uri = parse_uri(address.full)
    try:
        proxy = get_proxy(uri)
        via = None if proxy is None else parse_proxy(proxy)
    except (InvalidProxy, ValueError):
        raise TransportError("proxy", "the environment names a proxy that is no URL") from None
    if via is not None and via.scheme != "http":
        raise TransportError("proxy", f"the environment names a proxy of {via.scheme}; only http is spoken")
    tcp = await trio.open_tcp_stream(*((address.host, address.port) if via is None else (via.host, via.port)))
    stream: trio.abc.Stream = tcp
    try:
        if via is not None:
            await tcp.send_all(prepare_connect_request(via, uri, None))
            await _receive_tunnel(tcp)
        if address.is_secure:
            context = ssl.create_default_context()
            stream = await _shake_hands(
                trio.SSLStream(tcp, context, server_hostname=address.host, https_compatible=True)
            )
        protocol = ClientProtocol(uri, max_size=WEBSOCKET_MESSAGE_SIZE_MAX, logger=_SILENT)
        protocol.send_request(protocol.connect())
        await _send_rest(stream, protocol)
        events = await _receive_head(stream, protocol)
        if protocol.handshake_exc is not None or not events:
            raise TransportError("no_websocket", f"no node answers at {address}: {_answer(protocol)}")
        frames = [one for one in events[1:] if isinstance(one, Frame)]
        return Line(WebSocketStream(stream, protocol, frames), "", local_host(tcp))
    except BaseException as error:  # Cancelled too: nothing else holds the stream
        await trio.aclose_forcefully(stream)
        if isinstance(error, trio.BrokenResourceError):
            raise TransportError("closed", f"the connection to {address} broke") from error
        raise


async def _shake_hands(stream: trio.SSLStream[trio.abc.Stream]) -> trio.SSLStream[trio.abc.Stream]:
    try:
        await stream.do_handshake()
    except trio.BrokenResourceError as error:
        cause = error.__cause__
        if isinstance(cause, ssl.SSLCertVerificationError):
            raise TransportError(
                "certificate", f"its certificate is not valid: {cause.verify_message}"
            ) from error
        if isinstance(cause, ssl.SSLError):
            raise TransportError("no_websocket", "TLS failed") from error
        raise
    return stream


async def _receive_head(stream: trio.abc.Stream, protocol: Protocol) -> list[Frame | Request | Response]:
    """Return what came until the other side's head was read, or is known to be none."""
    left = WEBSOCKET_HEAD_SIZE_MAX
    while not protocol.events and protocol.handshake_exc is None:
        if not left:
            raise TransportError("no_websocket", f"a head has more than {WEBSOCKET_HEAD_SIZE_MAX} bytes")
        some = await stream.receive_some(min(left, _HEAD_READ_SIZE))
        if not some:
            protocol.receive_eof()
            break
        left -= len(some)
        protocol.receive_data(some)
    return protocol.events_received()


def _free(protocol: Protocol) -> None:
    """End the parser, and drop the frames that its errors hold. Both refer back: in a circle, all that came would wait for
    Python's collector, which counts objects and not bytes."""
    protocol.parser.close()
    for fault in (protocol.handshake_exc, protocol.parser_exc):
        error: BaseException | None = fault
        while error is not None:
            error.__traceback__, error = None, error.__cause__ or error.__context__


async def _send_rest(stream: trio.abc.Stream, protocol: Protocol) -> None:
    data = b"".join(protocol.data_to_send())
    if data:
        await stream.send_all(data)


async def _receive_tunnel(stream: trio.abc.Stream) -> None:
    """Wait for a proxy's word that it has connected. Behind it comes nothing: the other side waits for this one."""
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        some = await stream.receive_some(min(_HEAD_READ_SIZE, WEBSOCKET_HEAD_SIZE_MAX - len(head)))
        if not some or len(head) + len(some) >= WEBSOCKET_HEAD_SIZE_MAX:
            raise TransportError("proxy", "the proxy does not answer")
        head += some
    words = head.split(None, 2)
    if len(words) < 2 or not words[0].startswith(b"HTTP/1.") or not words[1].startswith(b"2"):
        said = " ".join(word[:8].decode("ascii", "replace") for word in words[:2])
        raise TransportError("proxy", f"the proxy opens no tunnel: {said}")


def _forwarded_for(headers: Headers) -> str:
    """Return the last entry, which the nearest proxy has added."""
    values = headers.get_all("X-Forwarded-For")
    return values[-1].rpartition(",")[2].strip() if values else ""


def _answer(protocol: Protocol) -> str:
    error = protocol.handshake_exc
    if isinstance(error, InvalidStatus):
        return f"the server says {error.response.status_code}"
    return "what answers speaks no WebSocket"
