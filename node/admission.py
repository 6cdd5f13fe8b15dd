"""Places for connections from others: so many at all, and a share of them for one host.

Places are taken before the handshake, which strangers can begin too. This machine's own programs are no strangers, and
many of them may run here: loopback has no share of its own.
"""

from collections import Counter

from protocol.limits import CONNECTIONS_PER_HOST_SHARE
from protocol.reach import Reach, host_of, network_of, reach_of


class Admission:
    """So many places, of which one host may take a share."""

    def __init__(self, places: int) -> None:
        self._places = places
        self._per_host = max(1, places // CONNECTIONS_PER_HOST_SHARE)
        self._taken: Counter[str] = Counter()

    def admit(self, address: str) -> str | None:
        """Take a place for a connection from host:port; why there is none, or None."""
        if self._taken.total() >= self._places:
            return "too many connections"
        network = _network(address)
        if network and self._taken[network] >= self._per_host:
            return "too many connections from one host"
        self._taken[network] += 1
        return None

    def leave(self, address: str) -> None:
        """Give back the place of a connection that was admitted."""
        network = _network(address)
        self._taken[network] -= 1
        if not self._taken[network]:
            del self._taken[network]


def _network(address: str) -> str:
    """What is counted as one host; empty of this machine, and of a peer that has gone already."""
    host = host_of(address)
    return "" if host is None or reach_of(host) is Reach.MACHINE else network_of(host)
