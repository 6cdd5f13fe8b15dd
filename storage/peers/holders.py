"""Table of the peers that were last seen to hold all that this node had of a repo, and up to which commit."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, delete, insert, select

from protocol.ids import PeerId
from storage.schema.peer_schema import repo_holders


@dataclass(frozen=True, slots=True)
class Holder:
    """A peer, when it was last seen to hold all (unix milliseconds), and the last commit's number then."""

    peer: PeerId
    held_at: int
    upto: int


def load_holders(connection: Connection) -> dict[int, list[Holder]]:
    """All of them, by the number of the repo."""
    found: dict[int, list[Holder]] = {}
    table = repo_holders
    for repo_num, *rest in connection.execute(
        select(table.c.repo_num, table.c.peer, table.c.held_at, table.c.upto)
    ):
        found.setdefault(repo_num, []).append(Holder(*rest))
    return found


def put_holders(connection: Connection, holders: Mapping[int, Sequence[Holder]]) -> None:
    """Enter those of some repos (by number) in place of the ones before."""
    for repo_num, each in holders.items():
        connection.execute(delete(repo_holders).where(repo_holders.c.repo_num == repo_num))
        rows = [
            {"repo_num": repo_num, "peer": one.peer, "held_at": one.held_at, "upto": one.upto} for one in each
        ]
        if rows:
            connection.execute(insert(repo_holders), rows)
