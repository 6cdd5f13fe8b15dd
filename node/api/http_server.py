"""Serves the API (ASGI) under trio with hypercorn, on a socket that is already open: of loopback, or for others over TLS.

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
from node.api.remote import REMOTE, Remote
from node.runtime.subnets import address_of, subnet_of
from protocol.limits.formats import KIB
from protocol.limits.users import (
    API_CONNECTIONS_MAX,
    API_STRANGER_SECONDS,
    API_STRANGERS_MAX,
    REMOTE_CONNECTIONS_MAX,
    REMOTE_STRANGERS_MAX,
    REMOTE_STRANGERS_SUBNET_MAX,
)

log = structlog.get_logger()

_HEADERS_SIZE_MAX = 16 * KIB
_AFTER_CLIENT_LEFT_SECONDS = 1.0
"""What still runs for a client that has left may end by itself for so long; a transaction is never cut."""
_BACKLOG = 128


def open_api_listener(host: str, port: int) -> socket.socket:
    """A listening socket; the host `*` is every interface. Raises OSError when the address is taken."""
    is_everywhere = host == "*"
    family = (
        socket.AF_INET6 if ":" in host or (is_everywhere and socket.has_dualstack_ipv6()) else socket.AF_INET
    )
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if is_everywhere:
            host = ""
            if family == socket.AF_INET6:
                listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        listener.bind((host, port))
        listener.listen(_BACKLOG)
        listener.setblocking(False)
    except BaseException:
        listener.close()
        raise
    return listener


async def serve_api(app: ASGIApp, listener: socket.socket, remote: Remote | None = None) -> None:
    """Serve until cancelled, then close the listener. What is over API_CONNECTIONS_MAX waits to be accepted.

    With `remote` it is the listener for other machines: over TLS, and with bounds of its own, so that what comes there
    takes nothing from programs of this machine.
    """
    slots = trio.Semaphore(API_CONNECTIONS_MAX if remote is None else REMOTE_CONNECTIONS_MAX)
    strangers = Strangers(remote)

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
    strangers = strangers or Strangers()
    remote, subnet = strangers.remote, _subnet_at(stream, strangers.remote)
    if remote is not None and subnet and not remote.limits.may_connect(subnet):
        await trio.aclose_forcefully(stream)
        return
    config = Config()
    config.accesslog = None
    config.errorlog = None
    config.h11_max_incomplete_size = _HEADERS_SIZE_MAX
    # No read_timeout: hypercorn would end a long answer with it. Until a request's headers have come whole, its idle
    # limit (keep_alive_timeout, 5 s) holds; for its body, the API's own; for both, until it shows the token, Stranger's.
    config.include_server_header = False
    config.include_date_header = False  # hypercorn's reading of a clock past 2262 would end each answer
    watched, stranger = _Watched(stream, remote), Stranger(subnet)

    async def cuttable(scope: Scope, receive: Receive, send: Send) -> None:
        extensions = scope.setdefault("extensions", {})
        extensions[CUT] = partial(trio.aclose_forcefully, stream)
        extensions[TRUSTED] = stranger.trust
        if remote is not None:
            extensions[REMOTE] = remote

        async def send_together(message: Message) -> None:
            if message["type"] == "http.response.start":
                watched.hold_head(message)
            await send(message)

        with stranger.asking(scope):
            await app(scope, partial(stranger.listen, receive), send_together)

    server = _Http1Server(ASGIWrapper(cuttable), config, WorkerContext(None), {}, watched)  # type: ignore[arg-type]  # its ASGI types are its own, and a stream is enough
    idle = server.idle_task = _IdleLimit(config.keep_alive_timeout)  # type: ignore[assignment]  # has what hypercorn calls
    try:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(partial(_watch, watched, nursery.cancel_scope))
            with strangers.admitting(stranger, nursery.cancel_scope):
                if await watched.begin():
                    with idle.scope:
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


def _subnet_at(stream: trio.SocketStream, remote: Remote | None) -> str:
    """The subnet whose connections are counted together; empty where they are not: of this machine and of proxies."""
    if remote is None:
        return ""
    address = address_of(stream)
    return "" if remote.is_proxy(address.rpartition(":")[0].strip("[]")) else subnet_of(address)


class Stranger:
    """A connection until a request on it has shown the token."""

    def __init__(self, subnet: str = "") -> None:
        self.subnet = subnet
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

    def __init__(self, remote: Remote | None = None) -> None:
        self.remote = remote
        self._here: dict[Stranger, None] = {}  # the oldest first

    @contextmanager
    def admitting(self, stranger: Stranger, scope: trio.CancelScope) -> Iterator[None]:
        """While a connection lasts, of which `scope` ends all. Of too many strangers the oldest goes: it had its time."""
        near = [one for one in self._here if stranger.subnet and one.subnet == stranger.subnet]
        if len(near) >= REMOTE_STRANGERS_SUBNET_MAX:
            self._end(near[0])
        elif len(self._here) >= (API_STRANGERS_MAX if self.remote is None else REMOTE_STRANGERS_MAX):
            self._end(next(iter(self._here)))
        stranger.scope, stranger.leave = scope, partial(self._here.pop, stranger, None)
        stranger.wait_for_request()
        self._here[stranger] = None
        try:
            yield
        finally:
            stranger.leave()

    def _end(self, stranger: Stranger) -> None:
        del self._here[stranger]
        stranger.scope.cancel()


class _Http1Server(TCPServer):
    """One connection, by HTTP/1 alone.

    hypercorn changes to HTTP/2 on any connection whose client asks for it, as Java's does by default. Answers would come
    side by side there, and `_Watched` holds one head. An `Upgrade` header may be ignored (RFC 9110, 7.8).
    """

    async def _read_data(self) -> None:
        self.protocol.protocol._check_protocol = _keep_protocol  # type: ignore[method-assign, union-attr]  # before the first byte it is HTTP/1's
        await super()._read_data()


async def _keep_protocol(_request: object) -> None:
    """Change to no other protocol. HTTP/2's preface is a request like others then, which no route is for."""


class _IdleLimit:
    """Ends a connection that no request comes on, by a deadline.

    hypercorn starts a task before each request and cancels it when the request has come: a tenth of what a write takes.
    """

    def __init__(self, seconds: float) -> None:
        self.scope = trio.CancelScope()
        self._seconds = seconds

    async def restart(self, _task_group: object, _action: object) -> None:
        """Wait for a request from now on."""
        self.scope.deadline = trio.current_time() + self._seconds

    async def stop(self) -> None:
        """A request has come."""
        self.scope.deadline = math.inf


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
    """A connection's stream, over TLS for other machines, that remembers when its client has said its last byte.

    hypercorn is not shown that there is TLS: it would do the handshake with a deadline of its own.
    """

    def __init__(self, stream: trio.SocketStream, remote: Remote | None) -> None:
        self.stream = stream
        self.socket = stream.socket
        self.client_left = trio.Event()
        self._holds_next = False
        self._held = b""
        self._tls = (
            None
            if remote is None
            # Browsers close without a word, and most others too.
            else trio.SSLStream(stream, remote.context, server_side=True, https_compatible=True)
        )
        self._inner: trio.SocketStream | trio.SSLStream[trio.SocketStream] = self._tls or stream

    async def begin(self) -> bool:
        """Agree on TLS, where there is any. False: the client speaks something else, or left."""
        if self._tls is not None:
            try:
                await self._tls.do_handshake()
            except (trio.BrokenResourceError, trio.ClosedResourceError):
                return False
        return True

    async def receive_some(self, count_max: int) -> bytes | bytearray:
        data = await self._inner.receive_some(count_max)
        if not data:
            self.client_left.set()
        return data

    def hold_head(self, start: Message) -> None:
        """Send the head of an answer of known length together with its body: one system call, one wake of the client."""
        length = next((value for name, value in start.get("headers", ()) if name == b"content-length"), b"0")
        self._holds_next = length != b"0"

    async def send_all(self, data: bytes) -> None:
        if self._holds_next:
            self._holds_next, self._held = False, data
            return
        if self._held:
            data, self._held = self._held + data, b""
        if data:  # hypercorn sends the end of an answer too, which has no bytes
            await self._inner.send_all(data)

    async def send_eof(self) -> None:
        if self._tls is None:  # TLS ends with `aclose`
            await self.stream.send_eof()

    async def aclose(self) -> None:
        await self._inner.aclose()
