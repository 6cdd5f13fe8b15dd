"""Peers that this node keeps a connection to, and peers that it does not speak with."""

from dataclasses import dataclass

from sqlalchemy import Connection, delete, insert, select

from storage.schema import peers


@dataclass(frozen=True, slots=True)
class PeerRow:
    """A peer's key and where it was last known to listen: to be dialed, or banned."""

    peer: bytes
    address: str
    is_banned: bool


def load_peers(connection: Connection) -> list[PeerRow]:
    """All peers that are kept or banned."""
    query = select(peers.c.peer, peers.c.address, peers.c.is_banned)
    return [PeerRow(*row) for row in connection.execute(query)]


def keep_peer(connection: Connection, peer: bytes, address: str) -> None:
    """Keep a peer to be dialed, with its newest address."""
    _put(connection, peer, address, is_banned=False)


def ban_peer(connection: Connection, peer: bytes) -> None:
    """Speak with a peer no more, and forget its address."""
    _put(connection, peer, "", is_banned=True)


def forget_peer(connection: Connection, peer: bytes) -> None:
    """Forget a peer, also that it was banned."""
    connection.execute(delete(peers).where(peers.c.peer == peer))


def _put(connection: Connection, peer: bytes, address: str, *, is_banned: bool) -> None:
    forget_peer(connection, peer)
    connection.execute(
        insert(peers).values(peer=peer, address=address, is_dialed=not is_banned, is_banned=is_banned)
    )
