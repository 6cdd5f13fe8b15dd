"""One connection of the API: requests of HTTP/1.1, answered one after the other by an ASGI application.

Requests are parsed and answered in one task. While one is answered, nothing is read, unless the application waits for
the client to leave or the answer takes long. What the application sends is not shielded from cancellation. A connection on
which something was sent in part is used no more.
"""

import math
from typing import Any, Final
from urllib.parse import unquote

import structlog
import trio
from starlette.types import ASGIApp, Message, Scope

from node.http.answer import CONTINUE, AnswerWriter
from node.http.parsing import BadRequest, Request, RequestParser
from node.http.strangers import Stranger
from protocol.limits.users import BODY_WAIT_SECONDS

log = structlog.get_logger()

IDLE_SECONDS: Final = 5.0
"""Seconds until a request's headers have come whole. Clients open another connection when they need one."""
_LOOK_SECONDS: Final = 0.5
"""Seconds between two looks whether an answer takes so long that its client may have left."""
_AFTER_CLIENT_LEFT_SECONDS: Final = 1.0
"""Seconds that a request still runs after its client has left; a transaction is never cut."""
_LINGER_SECONDS: Final = 1.0
"""Seconds for which further bytes are thrown away: closing with bytes unread would take the answer back."""
_UNREAD_SIZE: Final = 1 << 16
"""Bytes thrown away at a time."""
_REFUSAL_HEADERS: Final = ((b"content-length", b"0"), (b"connection", b"close"))


class BodyStopped(Exception):
    """Raised in the application that waits for a body when no bytes come for a while: ASGI has no message for that."""


class HttpConnection:
    """Serves one connection.

    `stranger` limits it until it has shown a token. `ends` goes into each request's scope: scheme, addresses, extensions.
    """

    def __init__(
        self,
        app: ASGIApp,
        stream: trio.abc.Stream,
        stranger: Stranger,
        ends: dict[str, Any],
    ) -> None:
        self._app = app
        self._stream = stream
        self._stranger = stranger
        self._ends = ends
        self._parser = RequestParser()
        self._nursery: trio.Nursery
        self._has_ended = False
        self._idle: trio.CancelScope
        self._client_left = trio.Event()
        self._is_broken = False
        """True if something was sent in part, or to a client that has left."""
        # One piece may be read ahead, to notice that the client leaves.
        self._piece = b""
        self._is_reading = False
        self._has_read: trio.Event | None = None  # for another who waits for it
        # Of the request that is being answered:
        self._request: Request
        self._is_answering = False
        self._answer: AnswerWriter
        self._is_body_given = False
        self._is_over = False
        """True if its body cannot come whole any more."""
        self._head = b""

    async def run(self) -> None:
        """Serve it until the client leaves, says nothing, or is not to go on. The caller closes the stream."""
        try:
            async with trio.open_nursery() as self._nursery:
                try:
                    self._nursery.start_soon(self._look_for_client)
                    await self._serve_in_time()
                finally:  # a nursery that is being left takes no further task
                    self._has_ended = True
                self._nursery.cancel_scope.cancel()
        finally:
            self._parser.close()

    # --- reading ---

    async def _take(self, size: int) -> bytes:
        """Return the next bytes, at most `size` new ones; empty when nothing more comes."""
        while self._is_reading:
            self._has_read = self._has_read or trio.Event()
            await self._has_read.wait()
        piece, self._piece = self._piece, b""
        if piece or self._client_left.is_set():
            return piece
        return await self._read(size)

    async def _parse_more(self) -> bool:
        """Parse the next bytes. Return False when nothing more comes."""
        piece = await self._take(self._stranger.read_size)
        await self._stranger.wait_to_parse()
        self._parser.feed(piece)
        return bool(piece)

    async def _read(self, size: int) -> bytes:
        self._is_reading = True
        try:
            piece = bytes(await self._stream.receive_some(size))
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            piece = b""
        finally:
            self._is_reading = False
            if self._has_read is not None:
                self._has_read.set()
                self._has_read = None
        if not piece:
            self._note_client_left()
        return piece

    async def _read_ahead(self) -> None:
        """Notice if the client leaves. Of a client that sends its next request, one piece waits for its turn."""
        if not (self._is_reading or self._piece or self._client_left.is_set()):
            self._piece = await self._read(self._stranger.read_size)

    async def _look_for_client(self) -> None:
        """Notice a client that leaves during a long answer."""
        seen: Request | None = None
        while True:
            await trio.sleep(_LOOK_SECONDS)
            request = self._request if self._is_answering else None
            if request is not None and request is seen:
                await self._read_ahead()
            seen = request

    def _note_client_left(self) -> None:
        if not self._client_left.is_set():
            self._client_left.set()
            if not self._has_ended:
                self._nursery.start_soon(self._end_soon)

    async def _end_soon(self) -> None:
        """End what a client that has left would keep alive."""
        await trio.sleep(_AFTER_CLIENT_LEFT_SECONDS)
        self._nursery.cancel_scope.cancel()

    async def _serve_in_time(self) -> None:
        """Serve until the client leaves, or says nothing for IDLE_SECONDS.

        Where this process had no turn for long, a request that came in time is found with its time over. It is served.
        """
        while True:
            with trio.CancelScope() as self._idle:
                await self._serve()
            if not (self._idle.cancel_called and self._parser.has_request):
                return

    async def _serve(self) -> None:
        is_unread = False
        while True:
            try:
                request = await self._next_request()
                if request is None:
                    return
                await self._serve_one(request)
            except BadRequest as fault:
                self._answer = AnswerWriter("", "1.1", keeps_open=False)
                await self._refuse(fault.status)
                break
            if self._is_broken:
                return
            if not request.is_whole:
                await self._drop_rest(request)
                is_unread = not request.is_whole
            if not (request.is_whole and self._answer.is_over and self._answer.keeps_open):
                break
        await self._end(is_unread=is_unread or self._parser.has_failed)

    async def _next_request(self) -> Request | None:
        """Return the next request; None when the client has left. Raises BadRequest."""
        self._is_answering = False
        self._idle.deadline = trio.current_time() + IDLE_SECONDS
        self._stranger.begin_request()
        if self._parser.has_request:
            await (
                trio.lowlevel.checkpoint()
            )  # requests that came in one piece would take the thread for all of them
        while not self._parser.has_request:
            if not await self._parse_more() or self._idle.cancel_called:
                return None
            if not self._parser.has_request:
                await self._stranger.take_turn()
        self._idle.deadline = math.inf
        return self._parser.pop_request()

    # --- a request ---

    async def _serve_one(self, request: Request) -> None:
        self._request, self._is_answering = request, True
        if request.is_whole:
            self._stranger.end_request()
        self._answer = AnswerWriter(request.method, request.version, keeps_open=request.keeps_open)
        self._is_body_given = self._is_over = False
        self._head = b""
        path, _, query = request.target.partition(b"?")
        scope: Scope = {
            **self._ends,
            "type": "http",
            "http_version": request.version,
            "asgi": {"spec_version": "2.1", "version": "3.0"},
            "method": request.method,
            "path": unquote(path.decode("ascii")),
            "raw_path": path,
            "query_string": query,
            "root_path": "",
            "headers": request.headers,
        }
        try:
            await self._app(scope, self._receive, self._send)
        except (
            Exception
        ):  # a defect of one endpoint must not end the daemon: the log has it, the client a 500
            log.exception("request failed", path=scope["path"])
            self._answer.keeps_open = False
        if not self._answer.is_begun or self._head:
            await self._refuse(500)

    async def _receive(self) -> Message:
        """Return the next part of the request's body, or the disconnect (ASGI)."""
        request = self._request
        if self._is_body_given:
            await self._read_ahead()
            await self._client_left.wait()
        elif not request.parts and not request.is_whole:
            await self._read_on(request)
        if self._is_body_given or self._is_over:
            return {"type": "http.disconnect"}
        self._is_body_given = request.is_whole
        return {"type": "http.request", "body": request.take(), "more_body": not request.is_whole}

    async def _read_on(self, request: Request) -> None:
        """Wait for more of the body. Where none can come, the request is over. Raises BodyStopped."""
        if request.awaits_continue and not self._answer.is_begun:
            request.awaits_continue = False
            await self._send_bytes(CONTINUE)
        if request.fault is None:
            # Here, and not by the application: a body that is there needs no timer.
            with trio.move_on_after(BODY_WAIT_SECONDS) as waiting:
                await self._stranger.take_turn()
                await self._parse_more()
            if waiting.cancelled_caught:
                raise BodyStopped
            if request.is_whole:
                self._stranger.end_request()
        if request.fault is not None and not request.parts:
            self._is_over = True
            await self._refuse(request.fault.status)
        elif self._client_left.is_set() and not request.parts and not request.is_whole:
            self._is_over = True

    async def _send(self, message: Message) -> None:
        """Send something of the answer (ASGI). The head of one of known length goes with its body.

        That is one system call, and wakes the client once. To a client that has left, nothing is sent.
        """
        if self._is_broken or self._is_over:
            return
        if message["type"] == "http.response.start":
            await self._stranger.take_turn()
            if self._request.awaits_continue and not self._request.is_whole:
                # Its body may never come, and what comes instead must not be taken for it.
                self._answer.keeps_open = False
            headers = message.get("headers", ())
            self._head = self._answer.write_head(message["status"], headers)
            if b"content-length" not in [name for name, _ in headers]:
                await self._send_rest(b"")
            return
        is_last = not message.get("more_body", False)
        await self._send_rest(self._answer.write_part(message.get("body", b""), is_last=is_last))

    async def _send_rest(self, part: bytes) -> None:
        """Send the head, if that was not sent yet, and a part of the body."""
        if data := self._head + part:
            self._head = b""
            await self._send_bytes(data)

    async def _send_bytes(self, data: bytes) -> None:
        try:
            await self._stream.send_all(data)
        except BaseException as error:  # also cancelled: a part may be sent, so nothing can follow it
            self._is_broken = True
            if not isinstance(error, (trio.BrokenResourceError, trio.ClosedResourceError)):
                raise
            self._note_client_left()

    async def _refuse(self, status: int) -> None:
        """Answer a request that cannot be served, as the last one. A head that still waits for its body is dropped."""
        if self._head:
            self._head = b""
            self._answer = AnswerWriter(self._request.method, self._request.version, keeps_open=False)
        if not self._answer.is_begun and not self._is_broken:
            await self._stranger.take_turn()
            self._answer.keeps_open = False
            await self._send_bytes(self._answer.write_head(status, _REFUSAL_HEADERS))

    async def _drop_rest(self, request: Request) -> None:
        """Discard the rest of a body that was answered early: the client's next request follows it."""
        with trio.move_on_after(_LINGER_SECONDS):
            while not request.is_whole and request.fault is None and not self._client_left.is_set():
                request.take()
                await self._stranger.take_turn()
                await self._parse_more()

    async def _end(self, *, is_unread: bool) -> None:
        """Let the client read its last answer before the stream is closed, even if it still sends a body that nobody
        reads."""
        try:
            if isinstance(self._stream, trio.abc.HalfCloseableStream):  # TLS ends with the stream
                await self._stream.send_eof()
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            return
        if is_unread:
            with trio.move_on_after(_LINGER_SECONDS):
                while await self._take(_UNREAD_SIZE):
                    pass
