"""An open stream to where a peer may be, before any handshake; and the sockets by which others open one.

Left to others: `node.network.websocket` opens and accepts WebSocket connections, `node.sync.transport` shakes hands.
"""

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

import structlog
import trio

from node.network.own_addresses import EVERYWHERE
from node.runtime.subnets import address_of, local_host
from node.sync.transport import TransportError

log = structlog.get_logger()

_PORTS_TRIED_MAX: Final = 8
"""Ports that are tried until one is free by both IPv4 and IPv6, where any will do."""


@dataclass(frozen=True, slots=True)
class Line:
    """A stream, where its other end is (host:port), and this machine's address on it.

    Empty is the place of one that goes by WebSocket: a proxy may stand there, and no node.
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
    """The border of one connection: whatever is wrong with it, the others go on."""
    try:
        yield
    except TransportError as error:
        log.info("handshake failed", reason=error.reason)
    except Exception:  # a defect that one peer meets must not end the listener for all
        log.exception("connection failed")


async def open_tcp(address: str) -> Line:
    """A TCP connection to host:port. Raises OSError, and ValueError of a host that is no name."""
    host, _, port = address.rpartition(":")
    stream = await trio.open_tcp_stream(host.strip("[]"), int(port))
    return Line(stream, address_of(stream), local_host(stream))


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
