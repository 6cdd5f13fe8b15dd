"""An open stream to where a peer may be, before any handshake; and the sockets by which others open one.

Left to others: `node.network.websocket` opens and accepts WebSocket connections, `node.wire.transport` shakes hands.
"""

import errno
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

import structlog
import trio

from node.network.own_addresses import EVERYWHERE
from node.runtime.subnets import address_of, local_host
from node.wire.transport import TransportError

log = structlog.get_logger()

Place = tuple[str, int] | tuple[str, int, int, int]
"""A socket's address, as the system names it: host and port, and by IPv6 flow and scope."""

_PORTS_TRIED_MAX: Final = 8
"""Ports that are tried until one is free by both IPv4 and IPv6, where any will do."""
_PLACES_DIALED_MAX: Final = 8
"""Places of one name that are dialed: who answers for a name could list thousands."""
_NEXT_PLACE_SECONDS: Final = 0.25
"""Seconds until the next place of a name is dialed beside the one before it (RFC 8305, section 5)."""
_ANY_HOST: Final = {int(socket.AF_INET): "0.0.0.0", int(socket.AF_INET6): "::"}  # noqa: S104  # it dials


@dataclass(frozen=True, slots=True)
class Line:
    """Stream with the other end's address (host:port) and this machine's own on it.

    By WebSocket the other end's address is empty: it may be a proxy's.
    """

    stream: trio.abc.Stream
    across: str
    local_host: str

    @property
    def tcp(self) -> trio.SocketStream | None:
        """The stream, where nothing is between it and TCP."""
        return self.stream if isinstance(self.stream, trio.SocketStream) else None

    async def abandon(self) -> None:
        """Close it at once."""
        await trio.aclose_forcefully(self.stream)


@contextmanager
def one_connection() -> Iterator[None]:
    """Guard one connection: whatever is wrong with it, the others go on."""
    try:
        yield
    except TransportError as error:
        log.info("handshake failed", reason=error.reason)
    except Exception:  # a defect that one peer meets must not end the listener for all
        log.exception("connection failed")


async def open_tcp(address: str) -> Line:
    """Connect to host:port by TCP. Raises OSError, and ValueError of a host that is no name.

    Its local port can be shared: a node that is punched for dials and listens there as well. The system gives a port that
    `connect` chooses to connections with other hosts too, and no socket can be bound to such a port.
    """
    host, _, port = address.rpartition(":")
    places = await _resolve(host.strip("[]"), int(port))
    errors: list[OSError] = []
    found: list[trio.socket.SocketType] = []
    try:
        async with trio.open_nursery() as nursery:

            async def connect(family: int, place: Place, failed: trio.Event) -> None:
                try:
                    found.append(await connect_from(family, (_ANY_HOST[family], 0), place))
                    nursery.cancel_scope.cancel()
                except OSError as error:
                    errors.append(error)
                    failed.set()

            for family, place in places:
                failed = trio.Event()
                nursery.start_soon(connect, family, place, failed)
                with trio.move_on_after(_NEXT_PLACE_SECONDS):
                    await failed.wait()
        if not found:
            # Whoever shows it names the address, and trio's text has it, too.
            raise OSError(
                "; ".join(dict.fromkeys(os.strerror(one.errno) if one.errno else str(one) for one in errors))
            )
        stream = trio.SocketStream(found.pop(0))
    finally:  # two may connect before either cancels the other; a cancelled caller takes none
        for late in found:
            late.close()
    return Line(stream, address_of(stream), local_host(stream))


async def _resolve(host: str, port: int) -> list[tuple[int, Place]]:
    """List places of a name: the first one of the other family is second, so that one without routes costs little."""
    answers = await trio.socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    places: list[tuple[int, Place]] = []
    for family, _, _, _, place in answers:
        if family in _ANY_HOST and isinstance(place[0], str):
            places.append((int(family), place))
    others = [one for one in places[1:] if one[0] != places[0][0]][:1]
    return [*places[:1], *others, *(one for one in places[1:] if one not in others)][:_PLACES_DIALED_MAX]


async def connect_from(family: int, local: tuple[str, int], remote: Place) -> trio.socket.SocketType:
    """Connect from a port that others may have, too. Raises OSError."""
    sock = shared_socket(family, local)
    try:
        await sock.connect(remote)
    except BaseException:  # cancelled too: nothing else closes it
        sock.close()
        raise
    return sock


def shared_socket(family: int, local: tuple[str, int]) -> trio.socket.SocketType:
    """Open a socket at a host and port that other sockets of this user may have too. Raises OSError."""
    plain = socket.socket(family, socket.SOCK_STREAM)
    try:
        plain.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        plain.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        plain.bind(local)
        plain.setblocking(False)
        return trio.socket.from_stdlib_socket(plain)
    except BaseException:  # an interrupt too: nothing else closes it
        plain.close()
        raise


async def open_listener(address: str) -> list[trio.SocketListener]:
    """Listeners on host:port; `*` stands for every interface, by IPv4 and IPv6. Raises OSError."""
    host, _, port = address.rpartition(":")
    if host == EVERYWHERE:
        return await _listen_everywhere(int(port))
    try:
        return list(await trio.open_tcp_listeners(int(port), host=host.strip("[]")))
    except ValueError as error:
        raise OSError(f"{host!r} is not a host: {error}") from None


async def _listen_everywhere(port: int) -> list[trio.SocketListener]:
    """One port by IPv4 and IPv6, as far as the system speaks both."""
    for _ in range(_PORTS_TRIED_MAX):
        first = await trio.open_tcp_listeners(port, host="0.0.0.0")  # noqa: S104  # peers prove their keys
        try:
            second = await trio.open_tcp_listeners(first[0].socket.getsockname()[1], host="::")
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                return list(first)  # a system without IPv6
            await first[0].aclose()
            if port:
                raise
        else:
            return [*first, *second]
    raise OSError(errno.EADDRINUSE, "no port is free by both IPv4 and IPv6")


def listening_address(listeners: list[trio.SocketListener]) -> str:
    """host:port that the listeners got; `*:port` where they are one for IPv4 and one for IPv6."""
    host, port = listeners[0].socket.getsockname()[:2]
    if len({listener.socket.family for listener in listeners}) > 1:
        return f"{EVERYWHERE}:{port}"
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
