"""The state of one peer, kept by `node.network.network`, and the rule which of two connections with one peer stays."""

import math
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

import trio

from node.circuits.dialing import relay_at
from node.sync.addresses import AddressSource
from node.sync.connection import Connection
from protocol.ids import PeerId
from protocol.limits.network import PEER_ADDRESSES_MAX
from protocol.limits.peers import DUPLICATE_SECONDS
from storage.peers.peers import add_addresses

_LASTED_SECONDS: Final = 5.0
"""Seconds that a session lasts at least if it is to count as one: a peer may prove its key and leave at once."""
DUPLICATE: Final = "duplicate"
"""Why a connection ends in whose place another one with the same peer is."""
_UNREAD: Final = "bad_message"
"""Beginning of the reason with which a node leaves a peer whose message it cannot read."""
_DISPLACED_COUNT: Final = 3
"""Displacements by one peer that show another node with this key."""
_DISPLACED_SECONDS: Final = 600.0
"""Seconds in which _DISPLACED_COUNT displacements must happen: two nodes that dial with back-off take each other's
place at least once a minute."""
_DISPLACING_PEERS_MAX: Final = 256
"""Peers that are remembered, the latest: anybody may connect under a new key. Two nodes have far fewer peers in common."""


@dataclass(slots=True)
class PeerState:
    """State of one peer as status shows it."""

    peer: PeerId
    address: str
    direction: str
    state: str
    since: float
    source: AddressSource
    reached_at: int | None
    """Unix seconds when the peer last proved its key where it was dialed."""
    last_error: str | None = None
    connection: Connection | None = None
    others: tuple[str, ...] = ()
    """Further addresses at which the peer is dialed."""
    from_links: frozenset[str] = frozenset()
    """Addresses that only links have named, of a peer that a user has named by others."""
    local_host: str = ""
    """This machine's address on a connection that was dialed."""
    met_at: float = 0.0
    """When the connection began, in trio's time; while there is none, the last one of this try (-inf: none)."""
    has_shared: bool = False
    """True if the last session that ended had a topic of both."""
    is_web: bool = False
    """True if the connection goes by WebSocket."""
    is_punched: bool = False
    """True if both sides dialed at one moment, from behind their routers."""
    socket: trio.SocketStream | None = None
    """The connection by TCP that was dialed."""
    seen: str = ""
    """Address at which the dialed peer says that it sees this node."""
    missed_since: float | None = None
    """When it was first dialed after the last connection, in trio's time."""
    scope: trio.CancelScope = field(default_factory=trio.CancelScope)

    def add_addresses(self, address: str, others: Sequence[str], source: AddressSource) -> None:
        """Add addresses to dial. While the peer is connected, `address` stays the one in use.

        Addresses from links come after those that the user has named, and are dialed with restraint.
        """
        known, new = (self.address, *self.others), (address, *others)
        if source is AddressSource.LINK and self.source is not source:
            first, *rest = list(dict.fromkeys([*known, *new]))[:PEER_ADDRESSES_MAX]
            self.from_links |= set(new) - set(known)
        else:
            first, *rest = add_addresses(known, new, source)
            if self.source is not source:  # the user names a peer that links have named before
                self.from_links = frozenset(known)
            self.from_links -= set(new)
            self.source = source
        if self.connection is None:
            self.address = first
        self.others = tuple(one for one in (first, *rest) if one != self.address)

    @property
    def named(self) -> list[str]:
        """Addresses that the user named; those of links, if only links named any."""
        return [one for one in (self.address, *self.others) if one not in self.from_links]

    def reset_met_at(self) -> None:
        """Forget when the last session began: none has come of this try yet."""
        self.met_at = -math.inf

    @property
    def has_met(self) -> bool:
        """Return True if a session came of the last try."""
        return self.met_at > -math.inf

    @property
    def has_lasted(self) -> bool:
        """Return True if a session came of the last try that ends now and was one.

        What came before it does not count: a silent address takes longer than any that answers.
        """
        return self.has_met and trio.current_time() - self.met_at > _LASTED_SECONDS

    def is_linked(self, address: str) -> bool:
        """Return True if only links have named an address of the peer."""
        return self.source is AddressSource.LINK or address in self.from_links

    @property
    def through(self) -> PeerId | None:
        """Relay that the connection goes through; None if it is direct."""
        return relay_at(self.address)


class Displacements:
    """Times at which peers ended connections as duplicates of ones that this node does not have.

    A peer keeps one connection with a key. Where another node has the same key, each takes the other's place again and
    again, at the same peer. A dial that crosses another one does so once, and with each of several peers at a start.
    """

    def __init__(self) -> None:
        self._times: dict[PeerId, deque[float]] = {}  # the peer of the latest last

    def note(self, peer: PeerId, now: float) -> None:
        """Note one by this peer, at this moment in unix seconds."""
        times = self._times.pop(peer, None) or deque[float](maxlen=_DISPLACED_COUNT)
        times.append(now)
        self._times[peer] = times
        if len(self._times) > _DISPLACING_PEERS_MAX:
            del self._times[next(iter(self._times))]

    def find_last(self, now: float) -> float | None:
        """Return when the last was, if one peer made so many in a short time that another node must use the key."""
        found = [
            times[-1]
            for times in self._times.values()
            if len(times) == _DISPLACED_COUNT and 0 <= now - times[0] <= _DISPLACED_SECONDS
        ]
        return max(found, default=None)


@contextmanager
def listed(states: list[PeerState], state: PeerState) -> Iterator[None]:
    """List a peer while the block runs. The peer's scope may cancel the block."""
    states.append(state)
    try:
        with state.scope:
            yield
    finally:
        states.remove(state)


def old_stays(old: PeerState, new: PeerState, own_key: PeerId) -> bool:
    """Return True if the older of two connections stays, by a rule that both nodes apply alike (protocol.md, 9).

    A direct one takes the place of a circuit. A circuit takes that of a direct one that did not begin just now: its dialer
    sees none. Of two of one kind that were dialed at once stays the one whose dialer has the smaller key; else the new one,
    since the other may be dead without having been noticed to be.
    """
    is_at_once = new.met_at - old.met_at < DUPLICATE_SECONDS
    if (old.through is None) != (new.through is None):
        return is_at_once and new.through is not None
    preferred = "out" if own_key < new.peer else "in"
    return is_at_once and old.direction == preferred != new.direction


def explain_end(reason: str, goodbye: str) -> str | None:
    """Return what went wrong in a connection that ended, for people; None if nothing did."""
    if _UNREAD in (reason.partition(":")[0], goodbye.partition(":")[0]):
        return (
            f"{goodbye or reason}: one of the two nodes is of a version that the other does not read; "
            "compare `ravel --version` on both"
        )
    return None if reason in ("closed", "peer_left", DUPLICATE) else reason
