"""Table of the last address at which each peer proved its key, and where that address came from.

What was only heard is not kept: a restart forgets it.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from sqlalchemy import Connection, delete, func, insert, select

from protocol.ids import PeerId, RepoId
from protocol.limits.peers import REACHED_PEERS_MAX
from storage.schema.peer_schema import reached_peers, reached_repos


@dataclass(frozen=True, slots=True)
class ReachedRow:
    """A peer, where and when (unix seconds) it was last reached, how that address was learned, and repos it has."""

    peer: PeerId
    address: str
    source: str
    reached_at: int
    repos: frozenset[RepoId]


def load_reached(connection: Connection) -> list[ReachedRow]:
    """All peers that were reached, the latest first."""
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
