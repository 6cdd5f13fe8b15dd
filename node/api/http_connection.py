"""One connection of the API: HTTP/1.1 in h11's parsing, its requests answered one after the other by an ASGI application.

The application runs in the connection's own task, and another one reads: so a client that leaves is noticed while it is
being answered, and a request costs no task. What the application sends is not shielded from cancellation. A connection on
which something was sent in part is used no more.
"""

import math
from collections.abc import Awaitable, Callable
from typing import Final
from urllib.parse import unquote

import h11
import structlog
import trio
from starlette.types import ASGIApp, Message, Scope

from protocol.limits.formats import KIB

log = structlog.get_logger()

_HEADERS_SIZE_MAX: Final = 16 * KIB
"""Bytes of a request's line and headers: browsers send a few hundred, and a token at most 256."""
_READ_SIZE: Final = 64 * KIB
"""Bytes read at a time. So many wait, of a client that sends its next request before it is answered, or faster than read."""
_IDLE_SECONDS: Final = 5.0
"""Until a request's headers have come whole. Browsers and the client open another connection when they need one."""
_AFTER_CLIENT_LEFT_SECONDS: Final = 1.0
"""What still runs for a client that has left may end by itself for so long; a transaction is never cut."""
_LINGER_SECONDS: Final = 1.0
"""How long what a client still sends is thrown away: a system that closes with bytes unread also takes the answer back."""
_PARTS_AT_ONCE: Final = 32
"""Parts of a body that are parsed before others have their turn, 0.2 ms: one read may bring 11,000 chunks of a byte."""
_VERSIONS: Final = frozenset({b"1.0", b"1.1"})
_BODILESS: Final = frozenset({204, 304})


class HttpConnection:
    """Serves one connection. `scheme` and the ends' addresses are what the application learns of it."""

    def __init__(
        self,
        app: ASGIApp,
        stream: trio.abc.Stream,
        *,
        scheme: str,
        client: tuple[str, int] | None,
        server: tuple[str, int] | None,
        rest: Callable[[], Awaitable[None]] = trio.lowlevel.checkpoint,
    ) -> None:
        """`rest` returns when more of a body in many small chunks may be parsed: others have had their turn."""
        self._app = app
        self._stream = stream
        self._rest = rest
        self._ends: Scope = {"scheme": scheme, "client": client, "server": server}
        self._http = h11.Connection(h11.SERVER, max_incomplete_event_size=_HEADERS_SIZE_MAX)
        self._idle = trio.CancelScope()
        self._client_left = trio.Event()
        self._is_broken = False
        """Whether something was sent in part, or to a client that has left."""
        # Between the task that reads and the one that answers: one piece at most. The last one is empty, and stays.
        self._piece: bytes | None = None
        self._arrived = trio.Event()
        self._taken = trio.Event()
        # Of the request that is being answered:
        self._body = b""
        self._has_whole_body = False
        self._has_unparsed = False
        self._is_body_given = False
        self._is_over = False
        self._head = b""
        self._is_bodiless = False

    async def run(self) -> None:
        """Serve it until the client leaves, says nothing, or is not to go on. The caller closes the stream."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._read)
            nursery.start_soon(self._end_after_client_left, nursery.cancel_scope)
            with self._idle:
                await self._serve()
            nursery.cancel_scope.cancel()

    async def _read(self) -> None:
        """Take what comes, the next piece when the last was taken."""
        piece = b"."
        while piece:
            try:
                piece = bytes(await self._stream.receive_some(_READ_SIZE))
            except (trio.BrokenResourceError, trio.ClosedResourceError):
                piece = b""
            if not piece:
                self._client_left.set()
            while self._piece is not None:
                self._taken = trio.Event()
                await self._taken.wait()
            self._piece = piece
            self._arrived.set()

    async def _end_after_client_left(self, scope: trio.CancelScope) -> None:
        """End what a client that has left would keep alive."""
        await self._client_left.wait()
        await trio.sleep(_AFTER_CLIENT_LEFT_SECONDS)
        scope.cancel()

    async def _take(self) -> bytes:
        """What came next; empty when nothing more comes."""
        while self._piece is None:
            self._arrived = trio.Event()
            await self._arrived.wait()
        piece = self._piece
        if piece:
            self._piece = None
            self._taken.set()
        return piece

    async def _serve(self) -> None:
        while True:
            self._idle.deadline = trio.current_time() + _IDLE_SECONDS
            try:
                request = await self._next_event()
                if not isinstance(request, h11.Request):  # the client has left
                    return
                self._idle.deadline = math.inf
                if request.http_version not in _VERSIONS:
                    raise h11.RemoteProtocolError("another HTTP", error_status_hint=505)
                self._begin(request)
            except h11.RemoteProtocolError as error:
                await self._refuse(error.error_status_hint)
                break
            await self._answer(request)
            if self._is_broken:
                return
            if self._http.their_state is h11.SEND_BODY:
                await self._drop_rest()
            if self._http.our_state is not h11.DONE or self._http.their_state is not h11.DONE:
                break
            self._http.start_next_cycle()
        await self._end()

    async def _next_event(self) -> object:
        """What h11 finds next in what comes. Raises h11.RemoteProtocolError."""
        while (event := self._http.next_event()) is h11.NEED_DATA:
            self._http.receive_data(await self._take())
        return event

    # --- a request ---

    def _begin(self, request: h11.Request) -> None:
        self._body, self._has_whole_body, self._is_body_given = b"", False, False
        self._head, self._is_bodiless, self._is_over = b"", request.method == b"HEAD", False
        self._read_ahead()

    def _read_ahead(self) -> None:
        """Take of the body what has come: mostly the whole one, with the headers. Raises h11.RemoteProtocolError."""
        parts: list[bytes] = []
        event: object = None
        while len(parts) < _PARTS_AT_ONCE and isinstance(event := self._http.next_event(), h11.Data):
            parts.append(event.data)
        self._body += b"".join(parts)
        self._has_unparsed = isinstance(event, h11.Data)
        self._has_whole_body = isinstance(event, h11.EndOfMessage)

    async def _read_more(self) -> None:
        """Wait for more of the body, and take it. Raises h11.RemoteProtocolError."""
        if self._has_unparsed:
            await self._rest()
        else:
            self._http.receive_data(await self._take())
        self._read_ahead()

    async def _answer(self, request: h11.Request) -> None:
        path, _, query = request.target.partition(b"?")
        scope = {
            **self._ends,
            "type": "http",
            "http_version": request.http_version.decode(),
            "asgi": {"spec_version": "2.1", "version": "3.0"},
            "method": request.method.decode("ascii").upper(),
            "path": unquote(path.decode("ascii")),
            "raw_path": path,
            "query_string": query,
            "root_path": "",
            "headers": [(name.lower(), value) for name, value in request.headers.raw_items()],
            "extensions": {},
        }
        try:
            await self._app(scope, self._receive, self._send)
        except (
            Exception
        ):  # a defect of one endpoint must not end the daemon: the log has it, the client a 500
            log.exception("request failed", path=scope["path"])
        if self._http.our_state is h11.SEND_RESPONSE:
            await self._refuse(500)

    async def _receive(self) -> Message:
        """What comes of the request (ASGI)."""
        if self._is_body_given:
            await self._client_left.wait()
        elif not self._body and not self._has_whole_body:
            await self._read_on()
        if self._is_body_given or self._is_over:
            return {"type": "http.disconnect"}
        body, self._body = self._body, b""
        self._is_body_given = self._has_whole_body
        return {"type": "http.request", "body": body, "more_body": not self._has_whole_body}

    async def _read_on(self) -> None:
        """Wait for more of the body. Where none can come, the request is over."""
        try:
            if self._http.they_are_waiting_for_100_continue:
                await self._send_bytes(
                    self._http.send(h11.InformationalResponse(status_code=100, headers=[]))
                )
            await self._read_more()
        except h11.RemoteProtocolError as error:
            if not self._client_left.is_set():
                await self._refuse(error.error_status_hint)
            self._is_over = True

    async def _send(self, message: Message) -> None:
        """Send something of the answer (ASGI). The head of one of known length goes with its body.

        That is one system call, and wakes the client once. To a client that has left, nothing is sent.
        """
        if self._is_broken or self._is_over:
            return
        if message["type"] == "http.response.start":
            headers, status = message.get("headers", ()), message["status"]
            self._is_bodiless |= status in _BODILESS
            self._head = self._http.send(h11.Response(status_code=status, headers=list(headers)))
            if b"content-length" not in [name for name, _ in headers]:
                await self._send_rest([])
            return
        content = message.get("body", b"")
        parts = [] if self._is_bodiless or not content else [self._http.send(h11.Data(content))]
        if not message.get("more_body", False):
            parts.append(self._http.send(h11.EndOfMessage()))
        await self._send_rest(parts)

    async def _send_rest(self, parts: list[bytes]) -> None:
        """Send the head, if that was not sent yet, and these parts of the body."""
        if data := b"".join((self._head, *parts)):
            self._head = b""
            await self._send_bytes(data)

    async def _send_bytes(self, data: bytes) -> None:
        try:
            await self._stream.send_all(data)
        except BaseException as error:  # also cancelled: a part may be sent, so nothing can follow it
            self._is_broken = True
            if not isinstance(error, (trio.BrokenResourceError, trio.ClosedResourceError)):
                raise
            self._client_left.set()

    async def _refuse(self, status: int) -> None:
        """Answer a request that cannot be served, as the last one."""
        if self._http.our_state in (h11.IDLE, h11.SEND_RESPONSE) and not self._is_broken:
            headers = [(b"content-length", b"0"), (b"connection", b"close")]
            head = self._http.send(h11.Response(status_code=status, headers=headers))
            await self._send_bytes(head + self._http.send(h11.EndOfMessage()))

    async def _drop_rest(self) -> None:
        """Throw away what comes of a body that was answered before it had come: the client goes on with its next request."""
        try:
            with trio.move_on_after(_LINGER_SECONDS):
                while self._http.their_state is h11.SEND_BODY:
                    await self._read_more()
                    self._body = b""
        except h11.RemoteProtocolError:
            pass

    async def _end(self) -> None:
        """Have the client read its last answer before the stream is closed."""
        try:
            if isinstance(self._stream, trio.abc.HalfCloseableStream):  # TLS ends with the stream
                await self._stream.send_eof()
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            return
        if self._http.their_state is h11.ERROR:
            with trio.move_on_after(_LINGER_SECONDS):
                while await self._take():
                    pass
