"""Serves the API (ASGI) on a socket that is already open: of loopback, or for others over TLS.

Which connections there are, how long they may go without the token, and what becomes of one that goes wrong, is decided
here. `http_connection` serves each.
"""

import math
import socket
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import structlog
import trio
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from node.api.authentication import TRUSTED
from node.api.connection_watch import ConnectionWatch
from node.api.event_streams import CUT
from node.api.http_connection import HttpConnection
from node.api.remote import REMOTE, Remote
from node.api.socket_stream import DirectStream
from node.runtime.subnets import address_of, subnet_of
from node.sync.rate_limit import TokenBucket
from protocol.limits.formats import KIB
from protocol.limits.users import (
    API_CONNECTIONS_MAX,
    API_STRANGER_ANSWERS_AT_ONCE_MAX,
    API_STRANGER_ANSWERS_PER_SECOND_MAX,
    API_STRANGER_SECONDS,
    API_STRANGERS_MAX,
    REMOTE_CONNECTIONS_MAX,
    REMOTE_STRANGERS_MAX,
    REMOTE_STRANGERS_SUBNET_MAX,
)

log = structlog.get_logger()

_CLOSE_SECONDS = 1.0
"""TLS says that it ends, which a client that reads nothing does not let it send."""
_BACKLOG = 128
_REST_SECONDS = 0.06
"""Between two slices of what a stranger has sent at once: all API_STRANGERS_MAX take a tenth of a processor."""
_STRANGER_SLICE_SIZE = KIB
"""Bytes: chunks of one byte are parsed in 0.02 ms, small requests in 0.07."""
_GRACE_SECONDS = 1.0
"""For which a stranger that has sent no request is not ended before others: one that has the token needs milliseconds."""
_SLICE_SIZE = 1 << 30
"""Of who has shown the token: all that was read."""


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
    strangers, watch = Strangers(remote), ConnectionWatch()

    async def serve_one(stream: trio.SocketStream) -> None:
        try:
            await serve_connection(app, stream, strangers, watch)
        finally:
            slots.release()

    with listener:
        listening = trio.SocketListener(trio.socket.from_stdlib_socket(listener))
        async with trio.open_nursery() as nursery:
            nursery.start_soon(watch.run)
            nursery.start_soon(strangers.run)
            await trio.serve_listeners(serve_one, [_Turnstile(listening, slots)])


async def serve_connection(
    app: ASGIApp, stream: trio.SocketStream, strangers: "Strangers", watch: ConnectionWatch
) -> None:
    """Serve one connection to its end. Whatever a client makes of it ends this connection and nothing else."""
    remote, subnet = strangers.remote, _subnet_at(stream, strangers.remote)
    if remote is not None and subnet and not remote.limits.may_connect(subnet):
        await trio.aclose_forcefully(stream)
        return
    stranger = Stranger(strangers, subnet)

    async def serve(scope: Scope, receive: Receive, send: Send) -> None:
        if stranger.is_trusted:
            await app(scope, receive, send)
            return

        async def answer(message: Message) -> None:
            if message["type"] == "http.response.start":
                await stranger.wait_for_turn()
            await send(message)

        with stranger.asking(scope):
            await app(scope, partial(stranger.listen, receive), answer)

    try:
        extensions: dict[str, Any] = {
            CUT: partial(trio.aclose_forcefully, stream),
            TRUSTED: stranger.trust,
        }
        if remote is not None:
            extensions[REMOTE] = remote
        ends = {
            "scheme": "http" if remote is None else "https",
            "client": stream.socket.getpeername()[:2],
            "server": stream.socket.getsockname()[:2],
            "extensions": extensions,
        }
        async with trio.open_nursery() as nursery:
            with strangers.admitting(stranger, nursery.cancel_scope):
                inner = await _begin(stream, remote)
                if inner is not None:
                    connection = HttpConnection(serve, inner, watch, stranger, ends)
                    stranger.look = connection.look_for_client
                    try:
                        await connection.run()
                    finally:
                        stranger.look = (
                            _do_nothing  # it would hold the connection until Python looks for cycles
                        )
                    with trio.move_on_after(_CLOSE_SECONDS):
                        await inner.aclose()
    except OSError:  # the client left before it was asked who it is
        pass
    except Exception as error:  # the border of one connection
        log.warning("API connection failed", error=repr(error))
    finally:
        await trio.aclose_forcefully(stream)


async def _begin(stream: trio.SocketStream, remote: Remote | None) -> trio.abc.Stream | None:
    """The connection's stream, over TLS for other machines. None: the client speaks something else, or left."""
    if remote is None:
        return DirectStream(stream) if isinstance(stream, trio.SocketStream) else stream
    # Browsers close without a word, and most others too.
    tls = trio.SSLStream(stream, remote.context, server_side=True, https_compatible=True)
    try:
        await tls.do_handshake()
    except (trio.BrokenResourceError, trio.ClosedResourceError):
        return None
    return tls


def _subnet_at(stream: trio.SocketStream, remote: Remote | None) -> str:
    """The subnet whose connections are counted together; empty where they are not: of this machine and of proxies."""
    if remote is None:
        return ""
    address = address_of(stream)
    return "" if remote.is_proxy(address.rpartition(":")[0].strip("[]")) else subnet_of(address)


def _do_nothing() -> None:
    """Where there is nothing to do yet, or any more."""


class Stranger:
    """A connection until a request on it has shown the token."""

    def __init__(self, strangers: "Strangers", subnet: str = "") -> None:
        self.subnet = subnet
        self.answers = 0
        """How many it has had."""
        self.comes_last = False
        """Whether all others come before it: what it has sent is no request, or its client has left."""
        self.look: Callable[[], object] = _do_nothing
        """Begin to notice if its client leaves."""
        self._strangers = strangers
        self.scope = trio.CancelScope()
        self.is_trusted = False
        self.leave: Callable[[], object] = _do_nothing
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

    @property
    def slice_size(self) -> int:
        """Bytes of what has come that are parsed at a time."""
        return _SLICE_SIZE if self.is_trusted else _STRANGER_SLICE_SIZE

    async def rest(self) -> None:
        """Give others their turn; who has not shown the token also leaves them most of the processor."""
        await trio.sleep(0 if self.is_trusted else _REST_SECONDS)

    async def wait_for_turn(self) -> None:
        """Return when it may be answered: at once if it has shown the token."""
        if not self.is_trusted:
            await self._strangers.wait_for_turn(self)

    async def wait_to_refuse(self) -> None:
        """Return when it may be answered that what it has sent is no request."""
        self.comes_last = True
        await self.wait_for_turn()

    def note_left(self) -> None:
        """Its client has left, or has shut down its side."""
        self.comes_last = True

    @property
    def waited(self) -> float:
        """Seconds for which its request has not come whole; less than 0 where it has."""
        return trio.current_time() - self.scope.deadline + API_STRANGER_SECONDS

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
        self._answers = TokenBucket(API_STRANGER_ANSWERS_AT_ONCE_MAX, API_STRANGER_ANSWERS_PER_SECOND_MAX)
        self._here: dict[Stranger, None] = {}  # the oldest first
        self._waiting: dict[Stranger, trio.Event] = {}  # for their turn, the longest first
        self._has_some = trio.Event()
        self._is_fewest_next = False

    async def run(self) -> None:
        """Give turns to those that wait, until cancelled."""
        while True:
            if not self._waiting:
                if self._has_some.is_set():
                    self._has_some = trio.Event()
                await self._has_some.wait()
            # Nothing is reserved: those that leave meanwhile would have used up the answers of those that come.
            elif self._answers.try_acquire(trio.current_time()):
                self._waiting.pop(self._choose()).set()
            else:
                await trio.sleep(1 / API_STRANGER_ANSWERS_PER_SECOND_MAX)

    async def wait_for_turn(self, stranger: Stranger) -> None:
        """Return when it may be answered: so many a second, all together. Of other machines subnets are counted."""
        if self.remote is None and (self._waiting or not self._answers.try_acquire(trio.current_time())):
            turn = self._waiting[stranger] = trio.Event()
            self._has_some.set()
            stranger.look()
            try:
                await turn.wait()
            finally:
                self._waiting.pop(stranger, None)
        stranger.answers += 1

    def _choose(self) -> Stranger:
        """Whose turn it is: by turns, the one that has had the fewest answers, and the one that has waited the longest.

        The first keeps connections with requests without end from delaying a page. The second keeps connections that are
        always new from delaying a page that has had some of its files. Those that are refused or have left get what turns
        are over: they cost who makes them nothing while they wait.
        """
        self._is_fewest_next = not self._is_fewest_next
        if self._is_fewest_next:
            return min(self._waiting, key=lambda one: (one.comes_last, one.answers))
        return min(self._waiting, key=lambda one: one.comes_last)

    @contextmanager
    def admitting(self, stranger: Stranger, scope: trio.CancelScope) -> Iterator[None]:
        """While a connection lasts, of which `scope` ends all. One more than may be here ends another one."""
        near = [one for one in self._here if stranger.subnet and one.subnet == stranger.subnet]
        if len(near) >= REMOTE_STRANGERS_SUBNET_MAX:
            self._end_one(near)
        elif len(self._here) >= (API_STRANGERS_MAX if self.remote is None else REMOTE_STRANGERS_MAX):
            self._end_one(self._here)
        stranger.scope, stranger.leave = scope, partial(self._here.pop, stranger, None)
        stranger.wait_for_request()
        self._here[stranger] = None
        try:
            yield
        finally:
            stranger.leave()

    def _end_one(self, some: Collection[Stranger]) -> None:
        """End one that comes last, or whose request is due for the longest, or else the one that has had the most answers.

        Simply the oldest would often be a page's that waits for its turn, while others come again as soon as they are ended.
        """
        found = max(some, key=lambda one: (one.comes_last, one.waited))
        if not found.comes_last and found.waited < _GRACE_SECONDS:  # it may be about to show the token
            found = max(some, key=lambda one: one.answers)  # of equals the oldest
        del self._here[found]
        found.scope.cancel()


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
