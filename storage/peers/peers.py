"""Tables of peers: those to dial, those that are banned, where each was last reached, whose it is, who holds all of a repo.

Addresses that were only heard of are not kept: a restart forgets them.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from sqlalchemy import Connection, delete, func, insert, select

from protocol.ids import PeerId, RepoId, UserId
from protocol.limits.network import PEER_ADDRESSES_MAX, PEER_USERS_MAX, REACHED_PEERS_MAX
from storage.schema.peer_schema import (
    link_peers,
    peer_addresses,
    peer_users,
    peers,
    reached_peers,
    reached_repos,
    repo_holders,
)

CONFIGURED: Final = "configured"
"""Source of an address that a user has named."""


@dataclass(frozen=True, slots=True)
class PeerRow:
    """Peer's key and where it was last known to listen: to be dialed, or banned."""

    peer: PeerId
    address: str
    is_banned: bool
    is_relay: bool
    source: str  # of the address: configured, or link
    others: tuple[str, ...] = ()  # further addresses, in the order in which they are to be tried


def load_peers(connection: Connection) -> list[PeerRow]:
    """Load all peers that are kept or banned. Costs O(peers)."""
    others: dict[PeerId, tuple[str, ...]] = {}
    table = peer_addresses
    further = select(table.c.peer, table.c.address).order_by(table.c.peer, table.c.place)
    for peer, address in connection.execute(further):
        others[peer] = (*others.get(peer, ()), address)
    query = select(peers.c.peer, peers.c.address, peers.c.is_banned, peers.c.is_relay, peers.c.source)
    return [PeerRow(*row, others.get(row.peer, ())) for row in connection.execute(query)]


def keep_peer(
    connection: Connection,
    peer: PeerId,
    address: str,
    *,
    source: str,
    is_relay: bool | None = None,
    others: Sequence[str] = (),
) -> None:
    """Keep a peer to be dialed at these addresses too. With `is_relay` None, it keeps its role.

    Those that are kept are of one source. What a user names takes the place of what links named, and links add nothing to
    it: anyone can write one.
    """
    row = connection.execute(select(peers).where(peers.c.peer == peer, ~peers.c.is_banned)).one_or_none()
    known: list[str] = []
    new = [address, *others]
    if row is not None and row.source in (CONFIGURED, source):
        further = select(peer_addresses.c.address).where(peer_addresses.c.peer == peer)
        known = [row.address, *connection.execute(further.order_by(peer_addresses.c.place)).scalars()]
        if row.source != source:
            new, source = [], CONFIGURED
    if is_relay is None:
        is_relay = row is not None and row.is_relay
    first, *rest = add_addresses(known, new, source)
    _put(connection, peer, first, is_banned=False, is_relay=is_relay, source=source)
    for place, other in enumerate(rest):
        connection.execute(insert(peer_addresses).values(peer=peer, place=place, address=other))


def add_addresses(known: Sequence[str], new: Sequence[str], source: str) -> list[str]:
    """Merge new addresses of one source into a peer's known ones; the first that links named stays first.

    Of too many the oldest go.
    """
    first = () if source == CONFIGURED else known[:1]
    return list(dict.fromkeys([*first, *new, *known]))[:PEER_ADDRESSES_MAX]


def link_peer(connection: Connection, peer: PeerId, repo_id: RepoId) -> None:
    """Note that a link to a repo named the peer. Costs O(1)."""
    row = (link_peers.c.peer == peer) & (link_peers.c.repo_id == repo_id)
    connection.execute(delete(link_peers).where(row))
    connection.execute(insert(link_peers).values(peer=peer, repo_id=repo_id))


def replace_links(connection: Connection, peer: PeerId, repos: Collection[RepoId]) -> None:
    """Replace the repos whose links named the peer."""
    connection.execute(delete(link_peers).where(link_peers.c.peer == peer))
    if repos:
        connection.execute(insert(link_peers), [{"peer": peer, "repo_id": one} for one in sorted(repos)])


def load_links(connection: Connection) -> dict[PeerId, set[RepoId]]:
    """Load, by peer, the repos whose links named it. Costs O(these)."""
    found: dict[PeerId, set[RepoId]] = {}
    for peer, repo_id in connection.execute(select(link_peers.c.peer, link_peers.c.repo_id)):
        found.setdefault(peer, set()).add(repo_id)
    return found


def unlink_repo(connection: Connection, repo_id: RepoId) -> None:
    """Forget which peers links to a repo named."""
    connection.execute(delete(link_peers).where(link_peers.c.repo_id == repo_id))


def ban_peer(connection: Connection, peer: PeerId) -> None:
    """Ban a peer, and forget its addresses."""
    forget_peer(connection, peer)
    _put(connection, peer, "", is_banned=True)


def forget_peer(connection: Connection, peer: PeerId) -> None:
    """Forget a peer, also that it was banned, or named by links."""
    for table in (peers, peer_addresses, link_peers):
        connection.execute(delete(table).where(table.c.peer == peer))
    forget_reached(connection, peer)


def _put(
    connection: Connection,
    peer: PeerId,
    address: str,
    *,
    is_banned: bool,
    is_relay: bool = False,
    source: str = CONFIGURED,
) -> None:
    for table in (peers, peer_addresses):
        connection.execute(delete(table).where(table.c.peer == peer))
    row = {"peer": peer, "address": address, "is_banned": is_banned, "is_relay": is_relay, "source": source}
    connection.execute(insert(peers).values(row))


@dataclass(frozen=True, slots=True)
class ReachedRow:
    """Peer with the address and time (unix seconds) of the last contact, the address's source, and the peer's repos."""

    peer: PeerId
    address: str
    source: str
    reached_at: int
    repos: frozenset[RepoId]


def load_reached(connection: Connection) -> list[ReachedRow]:
    """Load all peers that were reached, the latest first. Costs O(peers)."""
    repos: dict[PeerId, set[RepoId]] = {}
    for peer, repo_id in connection.execute(select(reached_repos.c.peer, reached_repos.c.repo_id)):
        repos.setdefault(peer, set()).add(repo_id)
    table = reached_peers
    query = select(table.c.peer, table.c.address, table.c.source, table.c.reached_at)
    return [
        ReachedRow(*row, frozenset(repos.get(row.peer, ())))
        for row in connection.execute(query.order_by(table.c.reached_at.desc(), table.c.peer))
    ]


def put_reached(
    connection: Connection, peer: PeerId, address: str, source: str, reached_at: int, repos: Iterable[RepoId]
) -> None:
    """Note that a peer proved its key at an address, in place of the one before; of too many peers the oldest go."""
    forget_reached(connection, peer)
    connection.execute(
        insert(reached_peers).values(peer=peer, address=address, source=source, reached_at=reached_at)
    )
    for repo_id in sorted(repos):
        connection.execute(insert(reached_repos).values(peer=peer, repo_id=repo_id))
    table = reached_peers
    over = connection.execute(select(func.count()).select_from(table)).scalar_one() - REACHED_PEERS_MAX
    if over > 0:
        oldest = select(table.c.peer).order_by(table.c.reached_at, table.c.peer).limit(over)
        for old in connection.execute(oldest).scalars().all():
            forget_reached(connection, old)


def forget_reached(connection: Connection, peer: PeerId) -> None:
    """Forget where a peer was."""
    for table in (reached_peers, reached_repos):
        connection.execute(delete(table).where(table.c.peer == peer))


@dataclass(frozen=True, slots=True)
class PeerUser:
    """Peer with its user, the repo in which the user stated it as a member, and the time (unix seconds)."""

    peer: PeerId
    user: UserId
    repo_id: RepoId
    said_at: int


def load_peer_users(connection: Connection) -> list[PeerUser]:
    """Load whose nodes peers are, the latest to say so last. Costs O(peers)."""
    table = peer_users
    query = select(table.c.peer, table.c.user_id, table.c.repo_id, table.c.said_at)
    return [PeerUser(*row) for row in connection.execute(query.order_by(table.c.said_at, table.c.peer))]


def put_peer_users(connection: Connection, said: Sequence[PeerUser]) -> None:
    """Record whose nodes peers are, in place of earlier records; beyond the bound the oldest go. Costs O(change)."""
    table = peer_users
    for one in said:
        connection.execute(delete(table).where(table.c.peer == one.peer))
        row = {"peer": one.peer, "user_id": one.user, "repo_id": one.repo_id, "said_at": one.said_at}
        connection.execute(insert(table).values(row))
    over = connection.execute(select(func.count()).select_from(table)).scalar_one() - PEER_USERS_MAX
    if over > 0:
        oldest = select(table.c.peer).order_by(table.c.said_at, table.c.peer).limit(over)
        connection.execute(delete(table).where(table.c.peer.in_(connection.execute(oldest).scalars().all())))


@dataclass(frozen=True, slots=True)
class Holder:
    """A peer, when it was last seen to hold all (unix milliseconds), and the last commit's number then."""

    peer: PeerId
    held_at: int
    upto: int


def load_holders(connection: Connection) -> dict[int, list[Holder]]:
    """Load the peers that hold all of a repo, by the repo's number. Costs O(holders)."""
    found: dict[int, list[Holder]] = {}
    table = repo_holders
    for repo_num, *rest in connection.execute(
        select(table.c.repo_num, table.c.peer, table.c.held_at, table.c.upto)
    ):
        found.setdefault(repo_num, []).append(Holder(*rest))
    return found


def put_holders(connection: Connection, holders: Mapping[int, Sequence[Holder]]) -> None:
    """Replace the holders of some repos, given by number. Costs O(change)."""
    for repo_num, each in holders.items():
        connection.execute(delete(repo_holders).where(repo_holders.c.repo_num == repo_num))
        rows = [
            {"repo_num": repo_num, "peer": one.peer, "held_at": one.held_at, "upto": one.upto} for one in each
        ]
        if rows:
            connection.execute(insert(repo_holders), rows)
