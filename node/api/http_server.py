"""Serves the API (ASGI) under trio with hypercorn, on a loopback socket that is already open.

hypercorn's parts serve one connection each; which connections there are, and what becomes of one that goes wrong, is
decided here: hypercorn's own loop ends the whole server when a client upgrades to HTTP/2 or WebSocket with nonsense.
"""

import math
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

import structlog
import trio
from hypercorn.app_wrappers import ASGIWrapper
from hypercorn.config import Config
from hypercorn.trio.tcp_server import TCPServer
from hypercorn.trio.worker_context import WorkerContext
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from node.api.authentication import TRUSTED
from node.api.event_streams import CUT
from protocol.limits.formats import KIB
from protocol.limits.users import API_CONNECTIONS_MAX, API_STRANGER_SECONDS, API_STRANGERS_MAX

log = structlog.get_logger()

_HEADERS_SIZE_MAX = 16 * KIB
_AFTER_CLIENT_LEFT_SECONDS = 1.0
"""What still runs for a client that has left may end by itself for so long; a transaction is never cut."""
_BACKLOG = 128


def open_api_listener(host: str, port: int) -> socket.socket:
    """A listening socket. Raises OSError when the address is taken."""
    listener = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.listen(_BACKLOG)
        listener.setblocking(False)
    except BaseException:
        listener.close()
        raise
    return listener


async def serve_api(app: ASGIApp, listener: socket.socket) -> None:
    """Serve until cancelled, then close the listener. What is over API_CONNECTIONS_MAX waits to be accepted."""
    slots, strangers = trio.Semaphore(API_CONNECTIONS_MAX), Strangers()

    async def serve_one(stream: trio.SocketStream) -> None:
        try:
            await serve_connection(app, stream, strangers)
        finally:
            slots.release()

    with listener:
        listening = trio.SocketListener(trio.socket.from_stdlib_socket(listener))
        await trio.serve_listeners(serve_one, [_Turnstile(listening, slots)])


async def serve_connection(
    app: ASGIApp, stream: trio.SocketStream, strangers: "Strangers | None" = None
) -> None:
    """Serve one connection to its end. Whatever a client makes of it ends this connection and nothing else."""
    config = Config()
    config.accesslog = None
    config.errorlog = None
    config.h11_max_incomplete_size = _HEADERS_SIZE_MAX
    # No read_timeout: hypercorn would end a long answer with it. Until a request's headers have come whole, its idle
    # limit (keep_alive_timeout, 5 s) holds; for its body, the API's own; for both, until it shows the token, Stranger's.
    config.include_server_header = False
    config.include_date_header = False  # hypercorn's reading of a clock past 2262 would end each answer
    watched, stranger = _Watched(stream), Stranger()

    async def cuttable(scope: Scope, receive: Receive, send: Send) -> None:
        extensions = scope.setdefault("extensions", {})
        extensions[CUT] = partial(trio.aclose_forcefully, stream)
        extensions[TRUSTED] = stranger.trust
        with stranger.asking(scope):
            await app(scope, partial(stranger.listen, receive), send)

    server = TCPServer(ASGIWrapper(cuttable), config, WorkerContext(None), {}, watched)  # type: ignore[arg-type]  # its ASGI types are its own, and a stream is enough
    try:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(partial(_watch, watched, nursery.cancel_scope))
            with (strangers or Strangers()).admitting(stranger, nursery.cancel_scope):
                await server.run()
            nursery.cancel_scope.cancel()
    except Exception as error:  # the border of one connection
        log.warning("API connection failed", error=repr(error))


async def _watch(stream: "_Watched", scope: trio.CancelScope) -> None:
    """End what a client that has left would keep alive; and when cancelled, whatever hypercorn shields."""
    try:
        await stream.client_left.wait()
        await trio.sleep(_AFTER_CLIENT_LEFT_SECONDS)
        scope.cancel()
    finally:
        await trio.aclose_forcefully(stream.stream)


class Stranger:
    """A connection until a request on it has shown the token."""

    def __init__(self) -> None:
        self.scope = trio.CancelScope()
        self.is_trusted = False
        self.leave: Callable[[], object] = lambda: None
        """Be one of the strangers no more."""

    def trust(self) -> None:
        """A request has shown the token: who holds it may take any time."""
        self.is_trusted = True
        self.scope.deadline = math.inf
        self.leave()

    def wait_for_request(self) -> None:
        """A request is to come from now on, or what a request lacks."""
        if not self.is_trusted:
            self.scope.deadline = trio.current_time() + API_STRANGER_SECONDS

    @contextmanager
    def asking(self, scope: Scope) -> Iterator[None]:
        """While one request is answered, whose headers have come: the time goes on where there is a body."""
        if not any(name in (b"content-length", b"transfer-encoding") for name, _ in scope.get("headers", ())):
            self.scope.deadline = math.inf
        try:
            yield
        finally:
            self.wait_for_request()

    async def listen(self, receive: Receive) -> Message:
        """Hand on what comes of a request; when it has come whole, the answer may take any time."""
        message = await receive()
        if not message.get("more_body", False):
            self.scope.deadline = math.inf
        return message


class Strangers:
    """Connections that have not shown the token: few at a time, so that they cannot take all that are served."""

    def __init__(self) -> None:
        self._here: dict[Stranger, None] = {}  # the oldest first

    @contextmanager
    def admitting(self, stranger: Stranger, scope: trio.CancelScope) -> Iterator[None]:
        """While a connection lasts, of which `scope` ends all. Of too many strangers the oldest goes: it had its time."""
        if len(self._here) >= API_STRANGERS_MAX:
            oldest = next(iter(self._here))
            del self._here[oldest]
            oldest.scope.cancel()
        stranger.scope, stranger.leave = scope, partial(self._here.pop, stranger, None)
        stranger.wait_for_request()
        self._here[stranger] = None
        try:
            yield
        finally:
            stranger.leave()


class _Turnstile(trio.abc.Listener[trio.SocketStream]):
    """Accepts a connection when a slot is free; who serves it gives the slot back."""

    def __init__(self, listener: trio.SocketListener, slots: trio.Semaphore) -> None:
        self._listener = listener
        self._slots = slots

    async def accept(self) -> trio.SocketStream:
        """The next connection."""
        await self._slots.acquire()
        try:
            return await self._listener.accept()
        except BaseException:
            self._slots.release()
            raise

    async def aclose(self) -> None:
        """Accept no more."""
        await self._listener.aclose()


class _Watched:
    """A connection's stream that remembers when its client has said its last byte."""

    def __init__(self, stream: trio.SocketStream) -> None:
        self.stream = stream
        self.socket = stream.socket
        self.client_left = trio.Event()

    async def receive_some(self, count_max: int) -> bytes | bytearray:
        data = await self.stream.receive_some(count_max)
        if not data:
            self.client_left.set()
        return data

    async def send_all(self, data: bytes) -> None:
        await self.stream.send_all(data)

    async def send_eof(self) -> None:
        await self.stream.send_eof()

    async def aclose(self) -> None:
        await self.stream.aclose()
