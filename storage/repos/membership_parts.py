"""Parts of the snapshots of memberships (`verifier.membership_snapshots`), in the order of their operations.

A part that was changed is not given out, nor what follows it: a store with a key seals them, and each has a digest, for a
store may have no key. Nothing is lost with them. They are made anew of the commits.
"""

from collections.abc import Iterator
from typing import Final

from sqlalchemy import Connection, delete, insert, select

from protocol.crypto.hashing import snapshot_digest
from storage.engine.column_encryption import BadSecret, cipher_of, membership_place
from storage.schema.schema import membership_parts

_DIGEST_SIZE: Final = 32


def add_part(connection: Connection, branch_num: int, first: int, content: bytes) -> None:
    """Store a part, in place of the one with its number."""
    drop_parts(connection, branch_num, first)
    place = membership_place(branch_num, first)
    sealed = cipher_of(connection).seal(place, snapshot_digest(place + content) + content)
    connection.execute(insert(membership_parts).values(branch_num=branch_num, first=first, content=sealed))


def load_parts(connection: Connection, branch_num: int) -> Iterator[bytes]:
    """Yield the parts of a root branch, up to one that was changed or is away. Costs O(their bytes)."""
    columns = membership_parts.c
    query = select(columns.first, columns.content).where(columns.branch_num == branch_num)
    cipher = cipher_of(connection)
    for first, sealed in connection.execute(query.order_by(columns.first)):
        place = membership_place(branch_num, first)
        try:
            opened = cipher.open(place, sealed)
        except BadSecret:
            return
        digest, content = opened[:_DIGEST_SIZE], opened[_DIGEST_SIZE:]
        if digest != snapshot_digest(place + content):
            return
        yield content


def drop_all_parts(connection: Connection) -> int:
    """Forget the parts of all repos; returns their count."""
    return connection.execute(delete(membership_parts)).rowcount


def drop_parts(connection: Connection, branch_num: int, first: int = 0) -> None:
    """Forget the parts from the one on that begins with this operation."""
    columns = membership_parts.c
    connection.execute(
        delete(membership_parts).where(columns.branch_num == branch_num, columns.first >= first)
    )
