"""Owners of peers: the users who signed on a connection with each (`node.sync.presence`), and their names.

A signature is of one connection, so no peer can pass as another's. What was said stays true after the connection, and is
stored (`node.observe.standing`).
"""

from collections.abc import Callable, Iterable

from node.ingest.replica import Replica
from protocol.formats.text import id_text
from protocol.ids import PeerId, RepoId, UserId
from protocol.limits.network import PEER_USERS_MAX
from ravel.types.peers import CalledPeer, PeerOwner
from storage.peers.peers import PeerUser


class Owners:
    """The users whose nodes the peers of this node are. Lives in trio's thread, but for `called`."""

    def __init__(self, replica: Replica, clock_ms: Callable[[], int]) -> None:
        self.me: UserId | None = None
        """This node's user, once it is known."""
        self._replica = replica
        self._clock_ms = clock_ms
        self._by_peer: dict[PeerId, PeerUser] = {}  # the latest to say so last
        self._new: dict[PeerId, PeerUser] = {}

    def load(self, rows: Iterable[PeerUser]) -> None:
        """Take up what was said before this node was started."""
        self._by_peer = {one.peer: one for one in rows}

    def note(self, peer: PeerId, user: UserId, repo_id: RepoId) -> None:
        """Note that a peer is a member's node: of too many peers, the one that said so first is forgotten. Costs O(1)."""
        before = self._by_peer.get(peer)
        if before is not None and before.user == user:
            return
        self._by_peer.pop(peer, None)
        self._by_peer[peer] = self._new[peer] = PeerUser(peer, user, repo_id, self._clock_ms() // 1000)
        if len(self._by_peer) > PEER_USERS_MAX:
            oldest = next(iter(self._by_peer))
            del self._by_peer[oldest]
            self._new.pop(oldest, None)

    def take_new(self) -> list[PeerUser]:
        """Return what was said since the last call. For one caller, which stores it."""
        new, self._new = list(self._new.values()), {}
        return new

    def user_of(self, peer: PeerId) -> UserId | None:
        """Return the user who has signed to be a peer's, the last one; None: nobody has. Costs O(1)."""
        said = self._by_peer.get(peer)
        return None if said is None else said.user

    def called(self, peer: PeerId) -> CalledPeer:
        """Return what a peer is called: by this user, and by whose it is. Costs O(1)."""
        return {"name": self._replica.people.peer_name(peer), "owner": self._owner(peer)}

    def _owner(self, peer: PeerId) -> PeerOwner | None:
        said = self._by_peer.get(peer)
        if said is None:
            return None
        people, persons = self._replica.people, self._replica.persons(said.repo_id)
        person, own = persons.get(said.user, said.user), people.stated(said.repo_id).get(said.user)
        name = people.name(said.repo_id, said.user)
        device = own.name if own is not None and person != said.user else None
        return {
            "user": id_text(said.user),
            "name": name,
            "device": device if device and device != name else "",
            "mine": self.me is not None and person == persons.get(self.me, self.me),
            "earlier": people.has_moved(said.repo_id, said.user),
        }
