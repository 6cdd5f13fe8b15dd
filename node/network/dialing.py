"""Dials the addresses of one peer: in which order, how many at a time, and how often a host that a link named.

A peer that is named by several addresses is tried at them one after the other, the next one as soon as the last one
failed or has been silent for a moment, as clients of web servers do with IPv6 and IPv4 (RFC 8305). Who answers first need
not be the peer: a private address may be another machine's in this network. So the handshake decides, one at a time: two
at once with the peer itself would look to it like two connections, of which it ends one.

Pure but for the calls that it is given. Left to others: `node.network.network` keeps connections, and pauses between rounds.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

import trio

from node.wire.transport import TransportError
from protocol.formats.web_address import is_web_address, parse_web_address
from protocol.limits.peers import (
    DIAL_STAGGER_SECONDS,
    HANDSHAKE_SHARED_SECONDS,
    LINK_DIAL_SECONDS,
    LINK_DIALS_AT_ONCE_MAX,
    LINK_HOSTS_MAX,
)
from protocol.session.reach import Reach, host_of, network_of, reach_of

S = TypeVar("S")
T = TypeVar("T")


class DialsFailed(Exception):
    """No address of a peer led to it. The text says what happened at each."""


def order_addresses(
    addresses: Sequence[str], proven: str | None, is_near: Callable[[str], bool]
) -> list[str]:
    """Order a peer's addresses as they are to be tried, each once.

    First where it last proved its key (`proven`), then what is in a network of this machine, what everybody can dial or
    has a name, WebSocket, other private networks, and this machine itself; within these as they are given. WebSocket stays
    behind TCP where it was needed once: it may have been another network that let nothing else pass.
    """

    def rank(address: str) -> int:
        if is_web_address(address):
            return 3
        if address == proven:
            return 0
        if is_near(address):
            return 1
        host = host_of(address)
        reach = Reach.EVERYBODY if host is None else reach_of(host)
        return {Reach.EVERYBODY: 2, Reach.PRIVATE: 4, Reach.MACHINE: 5, None: 6}[reach]

    return sorted(dict.fromkeys(addresses), key=rank)


async def dial_first(
    addresses: Sequence[str],
    connect: Callable[[str], Awaitable[S]],
    prove: Callable[[S], Awaitable[T]],
    abandon: Callable[[S], Awaitable[None]],
    leave: Callable[[T], Awaitable[None]],
) -> tuple[str, S, T]:
    """Dial all addresses; return the first one whose peer proved its key, with the results of `connect` and `prove`
    there.

    `prove` owns the stream that `connect` returned, and closes it on failure. `abandon` closes a stream for which
    `prove` was not called. `leave` closes a second result of `prove`. Raises the error of the only address, or
    DialsFailed.
    """
    if len(addresses) == 1:
        stream = await connect(addresses[0])
        return addresses[0], stream, await prove(stream)
    errors: dict[str, Exception] = {}
    found: list[tuple[str, S, T]] = []
    turn = trio.Lock()

    async def try_one(address: str, failed: trio.Event, nursery: trio.Nursery) -> None:
        try:
            stream = await connect(address)
            is_proving = False
            try:
                async with turn:
                    is_proving = True
                    with trio.fail_after(HANDSHAKE_SHARED_SECONDS):
                        found.append((address, stream, await prove(stream)))
                    nursery.cancel_scope.cancel()  # before the next one has its turn
            finally:
                if not is_proving:
                    await abandon(stream)
        except trio.TooSlowError:
            errors[address] = TransportError("timeout", "no handshake")
        except (TransportError, OSError, ValueError) as error:
            errors[address] = error
        failed.set()

    try:
        async with trio.open_nursery() as nursery:
            for address in addresses:
                failed = trio.Event()
                nursery.start_soon(try_one, address, failed, nursery)
                with trio.move_on_after(DIAL_STAGGER_SECONDS):
                    await failed.wait()
    except BaseException:
        for _, _, secure in found:
            await leave(secure)
        raise
    if found:
        return found[0]
    raise DialsFailed("; ".join(f"{address}: {error}" for address, error in errors.items()))


class HostAllowance:
    """Allowance to dial hosts because a link named them. Time is an argument, in seconds as trio counts."""

    def __init__(self) -> None:
        self._left: dict[str, tuple[float, float]] = {}  # by host: dials left, and when that was counted

    def try_dial(self, address: str, now: float) -> bool:
        """Return True if the host of an address may be dialed now, which counts."""
        host = _host_key(address)
        if host not in self._left and len(self._left) >= LINK_HOSTS_MAX and not self._forget_rested(now):
            return False
        left = self._dials_left(host, now)
        if left < 1:
            return False
        self._left[host] = (left - 1, now)
        return True

    def give_back(self, address: str, now: float) -> None:
        """Take back a dial that led to the peer."""
        host = _host_key(address)
        if host in self._left:
            self._left[host] = (min(self._dials_left(host, now) + 1, LINK_DIALS_AT_ONCE_MAX), now)

    def _dials_left(self, host: str, now: float) -> float:
        left, at = self._left.get(host, (float(LINK_DIALS_AT_ONCE_MAX), now))
        return min(left + (now - at) / LINK_DIAL_SECONDS, LINK_DIALS_AT_ONCE_MAX)

    def _forget_rested(self, now: float) -> bool:
        """Forget hosts that may be dialed as often as new ones; whether there were any."""
        rested = [host for host in self._left if self._dials_left(host, now) >= LINK_DIALS_AT_ONCE_MAX]
        for host in rested:
            del self._left[host]
        return bool(rested)


def _host_key(address: str) -> str:
    web = parse_web_address(address)
    address = address if web is None else web.place
    host = host_of(address)
    return network_of(host) if host is not None else address.rpartition(":")[0].lower()
