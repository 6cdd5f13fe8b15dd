"""Server of the API (ASGI) on an open socket: of loopback, or over TLS for other machines.

`connection` serves each connection, and `strangers` limits those without a token.
"""

import socket
from functools import partial
from typing import Any, Final

import structlog
import trio
from starlette.types import ASGIApp

from node.http.connection import HttpConnection
from node.http.remote import REMOTE, Remote
from node.http.strangers import Strangers
from node.runtime.subnets import address_of, subnet_of
from node.runtime.user_requests import UserRequests
from protocol.limits.users import API_CONNECTIONS_MAX, REMOTE_CONNECTIONS_MAX

CUT: Final = "ravel.cut"
"""Extension of the ASGI scope: an async callable that closes the connection under whatever is being written."""
TRUSTED: Final = "ravel.trusted"
"""In a request's extensions: what to call when it has shown the token. Servers that bound strangers have it."""
log = structlog.get_logger()

_CLOSE_SECONDS = 1.0
"""Seconds for closing a connection. TLS sends a closing message, which a client that does not read would hold up."""
_BACKLOG = 128
_ACCEPT_SECONDS = 0.005
"""Seconds between two connections that are accepted while a request of the user is at work: each costs 1 ms before one knows
who comes. Behind a full backlog a program of this user waits for 0.6 s then."""


def open_api_listener(host: str, port: int) -> socket.socket:
    """Open a listening socket; the host `*` is every interface. Raises OSError if the address is taken."""
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


async def serve_api(
    app: ASGIApp,
    listener: socket.socket,
    remote: Remote | None = None,
    requests: UserRequests | None = None,
) -> None:
    """Serve until cancelled, then close the listener. What is over API_CONNECTIONS_MAX waits to be accepted.

    With `remote` it is the listener for other machines: over TLS, and with bounds of its own, so that what comes there
    takes nothing from programs of this machine. Who has no token gives way to `requests` of the user.
    """
    slots = trio.Semaphore(API_CONNECTIONS_MAX if remote is None else REMOTE_CONNECTIONS_MAX)
    strangers = Strangers(remote, requests)

    async def serve_one(stream: trio.SocketStream) -> None:
        try:
            await serve_connection(app, stream, strangers)
        finally:
            slots.release()

    with listener:
        listening = trio.SocketListener(trio.socket.from_stdlib_socket(listener))
        await trio.serve_listeners(serve_one, [_Turnstile(listening, slots, requests)])


async def serve_connection(app: ASGIApp, stream: trio.SocketStream, strangers: Strangers) -> None:
    """Serve one connection to its end. A client's fault ends this connection and nothing else."""
    remote, subnet = strangers.remote, _subnet_at(stream, strangers.remote)
    if remote is not None and subnet and not remote.limits.may_connect(subnet):
        await trio.aclose_forcefully(stream)
        return
    try:
        ends = {
            "scheme": "http" if remote is None else "https",
            "client": stream.socket.getpeername()[:2],
            "server": stream.socket.getsockname()[:2],
        }
        async with trio.open_nursery() as nursery:
            with strangers.admit(nursery.cancel_scope, subnet) as stranger:
                extensions: dict[str, Any] = {
                    CUT: partial(trio.aclose_forcefully, stream),
                    TRUSTED: stranger.trust,
                }
                if remote is not None:
                    extensions[REMOTE] = remote
                inner = await _begin(stream, remote)
                if inner is not None:
                    await HttpConnection(app, inner, stranger, {**ends, "extensions": extensions}).run()
                    with trio.move_on_after(_CLOSE_SECONDS):
                        await inner.aclose()
    except OSError:  # the client left before it was asked who it is
        pass
    except Exception as error:  # the border of one connection
        log.warning("API connection failed", error=repr(error))
    finally:
        await trio.aclose_forcefully(stream)


async def _begin(stream: trio.SocketStream, remote: Remote | None) -> trio.abc.Stream | None:
    """Return the connection's stream, over TLS for other machines. None: the client speaks something else, or left."""
    if remote is None:
        return stream
    # Browsers close without a word, and most others too.
    tls = trio.SSLStream(stream, remote.context, server_side=True, https_compatible=True)
    try:
        await tls.do_handshake()
    except (trio.BrokenResourceError, trio.ClosedResourceError):
        return None
    return tls


def _subnet_at(stream: trio.SocketStream, remote: Remote | None) -> str:
    """Return the subnet that a connection counts for; empty for this machine and for proxies."""
    if remote is None:
        return ""
    address = address_of(stream)
    return "" if remote.is_proxy(address.rpartition(":")[0].strip("[]")) else subnet_of(address)


class _Turnstile(trio.abc.Listener[trio.SocketStream]):
    """Accepts a connection when a slot is free; who serves it gives the slot back.

    While requests of the user are at work it waits a moment before each: who comes may be anybody.
    """

    def __init__(
        self, listener: trio.SocketListener, slots: trio.Semaphore, requests: UserRequests | None
    ) -> None:
        self._listener = listener
        self._slots = slots
        self._requests = requests

    async def accept(self) -> trio.SocketStream:
        """Accept the next connection when a slot is free."""
        await self._slots.acquire()
        try:
            if self._requests is not None:
                await self._requests.wait(_ACCEPT_SECONDS)
            return await self._listener.accept()
        except BaseException:
            self._slots.release()
            raise

    async def aclose(self) -> None:
        """Accept no more."""
        await self._listener.aclose()
