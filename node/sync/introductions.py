"""Peer exchange: tells peers of a repo where its other peers can be dialed, and learns such addresses.

A peer is made known only to peers that have shown, as it has, to know the own topic of the epoch in which the repo is
written, and only while both are connected: by the address at which this node has reached it, or else the one that it says
of itself. `protocol.session.introducing` bounds how often and how many, `node.sync.addresses` what is kept of it,
`node.network.peer_discovery` dials.
"""

import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

import trio

from node.sync.addresses import AddressBook, AddressSource
from node.sync.conversation import Conversation
from node.sync.hub import Hub
from protocol.formats.links import PeerAddress
from protocol.ids import RepoId, TopicKey
from protocol.session.events import PeersFound
from protocol.session.outputs import FindPeers, LearnPeers
from protocol.session.reach import as_seen, host_of, is_public, may_travel

YIELD_SECONDS: Final = 3.0
"""Seconds that the peer with the larger key waits for the other to dial: two introduced peers then connect once."""


@dataclass(slots=True, eq=False)
class _Encounter:
    """Connection with its other end (host:port) and the addresses learned through it."""

    connection: Conversation
    across: str
    is_dialed: bool
    advertised: str | None = None
    topics: set[TopicKey] = field(default_factory=set)

    @property
    def is_blind(self) -> bool:
        """Return True if neither side sees an address of the other: through a relay, and by WebSocket."""
        return host_of(self.across) is None

    @property
    def address(self) -> str | None:
        """Return where the peer can be dialed, as far as this connection tells."""
        return self.across if self.is_dialed else self.advertised


class Introducer:
    """Tells peers of one another, and learns what they tell. `own` is this node, and where it can be dialed."""

    def __init__(
        self,
        hub: Hub,
        book: AddressBook,
        own: PeerAddress,
        forwarded: Callable[[], str | None] = lambda: None,
        public: Callable[[], Sequence[str]] = tuple,
    ) -> None:
        """`forwarded` is where a router leads to this node now, if one does: by a port that others do not see. `public` are
        its public addresses, for peers that reach it through a relay and see none.
        """
        self._hub = hub
        self._forwarded = forwarded
        self._public = public
        self._book = book
        self.own = PeerAddress(_numeric(own.address), own.peer)
        self._encounters: dict[Conversation, _Encounter] = {}
        self.news = trio.Event()
        """Set, and replaced, when something was learned."""

    @contextmanager
    def while_connected(self, connection: Conversation, across: str, *, is_dialed: bool) -> Iterator[None]:
        """Introduce a peer while its connection lasts."""
        self._encounters[connection] = _Encounter(connection, across, is_dialed)
        try:
            yield
        finally:
            del self._encounters[connection]

    def count_peers(self, repo_id: RepoId) -> int:
        """Count the peers met on the own topic of the epoch that a repo is written in."""
        return len(
            {
                encounter.connection.peer
                for encounter in self._encounters.values()
                if any(self.repo_of(topic) == repo_id for topic in encounter.topics)
            }
        )

    def perform(self, connection: Conversation, output: FindPeers | LearnPeers) -> None:
        """Carry out an output of a session."""
        match output:
            case FindPeers(topic):
                self._find(connection, topic)
            case LearnPeers(topic, peers):
                self._learn(connection, topic, peers)

    def _find(self, connection: Conversation, topic: TopicKey) -> None:
        encounter = self._encounters[connection]
        if self.repo_of(topic) is None:
            return
        is_new = topic not in encounter.topics
        encounter.topics.add(topic)
        connection.happen(PeersFound(topic, self._others(encounter, topic)))
        if is_new:
            self._make_known(encounter, topic)

    def _learn(self, connection: Conversation, topic: TopicKey, peers: tuple[PeerAddress, ...]) -> None:
        repo_id = self.repo_of(topic)
        if repo_id is None:
            return
        encounter = self._encounters[connection]
        before = encounter.advertised
        for one in peers:
            is_own = one.peer == connection.peer
            if encounter.is_blind:
                address = one.address if is_own and is_public(one.address) else None
            else:
                address = as_seen(one.address, encounter.across) if is_own else one.address
                address = address if address is not None and may_travel(address, encounter.across) else None
            if address is None:
                continue
            if is_own:
                encounter.advertised = address
            self._book.learn(
                one.peer,
                address,
                AddressSource.INTRODUCTION,
                told_by=connection.peer,
                repos=(repo_id,),
                now=trio.current_time(),
                delay=0.0 if self.own.peer < one.peer else YIELD_SECONDS,
            )
        # Once for all of them: this looks at all peers for each topic.
        for met in encounter.topics if encounter.advertised != before else ():
            self._make_known(encounter, met)
        self.tell_news()

    def tell_news(self) -> None:
        """Something was learned."""
        self.news.set()
        self.news = trio.Event()

    def repo_of(self, topic: TopicKey) -> RepoId | None:
        """Return the repo of a *current* own topic: former members still know old ones."""
        epoch = self._hub.replica.tables.written_on(topic)
        return None if epoch is None else epoch.repo_id

    def _others(self, encounter: _Encounter, topic: TopicKey) -> tuple[PeerAddress, ...]:
        """List addresses for a peer: this node first, then others in any order; through a relay, this node alone."""
        if encounter.is_blind:
            return tuple(PeerAddress(one, self.own.peer) for one in self._public())
        others = [
            PeerAddress(other.address, other.connection.peer)
            for other in self._encounters.values()
            if other.address is not None and self._may_hear_of(encounter, other, topic)
        ]
        secrets.SystemRandom().shuffle(others)
        host = host_of(self.own.address)
        is_told = host is not None and (host.is_unspecified or may_travel(self.own.address, encounter.across))
        forwarded = self._forwarded()
        # Last: of two own addresses the receiver makes the last one known to others.
        also = (PeerAddress(forwarded, self.own.peer),) if forwarded is not None and is_told else ()
        return (self.own, *also, *others) if is_told else tuple(others)

    def _make_known(self, met: _Encounter, topic: TopicKey) -> None:
        """Tell others of a peer, once it is known where it can be dialed."""
        if met.address is None:
            return
        for encounter in self._encounters.values():
            if self._may_hear_of(encounter, met, topic):
                peers = (PeerAddress(met.address, met.connection.peer),)
                encounter.connection.happen(PeersFound(topic, peers))

    def _may_hear_of(self, encounter: _Encounter, other: _Encounter, topic: TopicKey) -> bool:
        return (
            other.address is not None
            and other.connection.peer != encounter.connection.peer
            and topic in encounter.topics
            and topic in other.topics
            and self.repo_of(topic) is not None
            and may_travel(other.address, encounter.across)
        )


def _numeric(address: str) -> str:
    """Return this node's address as peers hear it: a name becomes the host that the peer sees."""
    return address if host_of(address) is not None else f"0.0.0.0:{address.rpartition(':')[2]}"
