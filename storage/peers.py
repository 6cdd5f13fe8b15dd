"""Peers whose address is known, and which of them this node keeps a connection to."""

from dataclasses import dataclass

from sqlalchemy import Connection, delete, insert, select

from storage.schema import peers


@dataclass(frozen=True, slots=True)
class PeerRow:
    """A peer's key and where it was last known to listen; `is_dialed` when this node keeps a connection to it."""

    peer: bytes
    address: str
    is_dialed: bool


def load_peers(connection: Connection) -> list[PeerRow]:
    """All peers whose address is known."""
    return [
        PeerRow(*row) for row in connection.execute(select(peers.c.peer, peers.c.address, peers.c.is_dialed))
    ]


def keep_peer(connection: Connection, peer: bytes, address: str) -> None:
    """Keep a peer to be dialed, with its newest address."""
    connection.execute(delete(peers).where(peers.c.peer == peer))
    connection.execute(insert(peers).values(peer=peer, address=address, is_dialed=True))


def forget_peer(connection: Connection, peer: bytes) -> None:
    """Forget a peer."""
    connection.execute(delete(peers).where(peers.c.peer == peer))
