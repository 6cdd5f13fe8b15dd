"""Connection limits: total, per host, and separate slots for strangers, known peers and pending handshakes.

Who connects is not known before the handshake. Until then it has one of a few places of its own (`HalfOpen`), which never
run out: the newest takes the place of the oldest of the host that has most. After it, *known* peers find places that
strangers cannot take. This machine's own programs are no strangers' host, and many of them may run here: loopback has no
share of its own.
"""

import random
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import trio

from node.circuits.dialing import relay_at
from protocol.limits.network import (
    CONNECTIONS_PER_HOST_SHARE,
    HALF_OPEN_MAX,
    HANDSHAKE_ACCEPT_SECONDS,
    HANDSHAKE_TURN_SECONDS,
    KNOWN_PLACES_SHARE,
)
from protocol.limits.peers import ACCOUNTS_MAX
from protocol.session.reach import Reach, host_of, network_of, reach_of


class Admission:
    """Places for connections: strangers may take all but some, and those of one host a share."""

    def __init__(self, places: int) -> None:
        self._places = places
        self._for_strangers = places - places // KNOWN_PLACES_SHARE
        self._per_host = max(1, places // CONNECTIONS_PER_HOST_SHARE)
        self._known = 0
        self._strangers: Counter[str] = Counter()

    def admit(self, address: str, *, is_known: bool = False) -> str | None:
        """Take a place for a connection from host:port; why there is none (a reason of a goodbye), or None."""
        taken = self._strangers.total()
        if self._known + taken >= self._places or (not is_known and taken >= self._for_strangers):
            return "too_many_connections"
        if is_known:
            self._known += 1
            return None
        network = share_name(address)
        if network and self._strangers[network] >= self._per_host:
            return "too_many_connections_of_host"
        self._strangers[network] += 1
        return None

    def become_known(self, address: str) -> None:
        """Count the connection of a stranger, which was admitted, as a known peer's from now on."""
        self.leave(address, is_known=False)
        self._known += 1

    def leave(self, address: str, *, is_known: bool = False) -> None:
        """Give back the place of a connection that was admitted."""
        if is_known:
            self._known -= 1
            return
        network = share_name(address)
        self._strangers[network] -= 1
        if not self._strangers[network]:
            del self._strangers[network]


class HalfOpen:
    """Connections whose peers have not proved a key yet: few, each for a short time, and of each host in turn."""

    def __init__(
        self, places: int | None = None, choose: Callable[[float, float], float] = random.uniform
    ) -> None:
        """`choose` gives a wait between two bounds."""
        self._places = HALF_OPEN_MAX if places is None else places
        self._choose = choose
        self._held: list[tuple[str, trio.CancelScope]] = []  # the oldest first
        self._turns: OrderedDict[str, float] = (
            OrderedDict()
        )  # by host, when all its handshakes have had turns

    @contextmanager
    def place(self, address: str) -> Iterator[trio.CancelScope]:
        """Hold a place for the block, which is cancelled when its time is over or another needs the place."""
        if len(self._held) >= self._places:
            self._make_room()
        with trio.CancelScope(deadline=trio.current_time() + HANDSHAKE_ACCEPT_SECONDS) as scope:
            mine = (share_name(address), scope)
            self._held.append(mine)
            try:
                yield scope
            finally:
                if mine in self._held:
                    self._held.remove(mine)

    async def wait_turn(self, address: str) -> None:
        """Wait until the host may shake hands again: many short connections take a share of the processor only.

        The wait is at most HALF_OPEN_MAX turns, 3.2 seconds: so many wait, and the oldest make room. They go on in no order:
        in that of arrival who comes often pushes out all others of the host before their turns.
        """
        now, network = trio.current_time(), share_name(address)
        free = self._places * HANDSHAKE_TURN_SECONDS  # of turns that are taken without a wait
        last = max(self._turns.get(network, 0.0), now) + HANDSHAKE_TURN_SECONDS
        last = self._turns[network] = min(last, now + 2 * free)
        self._turns.move_to_end(network)
        if len(self._turns) > ACCOUNTS_MAX:
            self._turns.popitem(last=False)
        await trio.sleep(self._choose(0.0, max(0.0, last - now - free)))

    def _make_room(self) -> None:
        counts = Counter(network for network, _ in self._held)
        most = max(counts.values())
        chosen = next(one for one in self._held if counts[one[0]] == most)
        self._held.remove(chosen)
        chosen[1].cancel()


def share_name(address: str) -> str:
    """Return the name under which connections share a bound: the address's network, or the relay of a circuit.

    Empty for what is not counted: this machine, or a peer that has gone.
    """
    if relay_at(address) is not None:
        return address
    host = host_of(address)
    return "" if host is None or reach_of(host) is Reach.MACHINE else network_of(host)
