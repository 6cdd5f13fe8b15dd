"""Table of rejected commits that give keys of epochs (E7). Peers do not send them again, so the store alone has them.

Each is kept as the publication it came in, until all keys that it gives were taken. Inits stay: the marks that they state
tell false keys, and the keys that they seal may be opened later.

What is kept is local policy. A key that only such a commit gives is tried sooner by who has kept it. What counts comes to
every member by accepted commits: E10 hands over the epoch in use, and E11 opens what that does not.

Each *payer* has a share of the room. A payer is an author with a credential that counts; all others pay together, by the
kind of topic. So authors that are made up for a flood push out nobody else. Of one payer the first stay: if the last did, a
flood would push out an honest author who came before it. Who floods first keeps others of the same payer out.
"""

from collections import Counter
from collections.abc import Collection, Mapping
from typing import NamedTuple

from sqlalchemy import Connection, delete, insert, select

from protocol.ids import CommitId, UserId
from protocol.limits.peers import KEY_GIVERS_SIZE_MAX, REJECTION_COUNT_MAX
from storage.engine.database import Database
from storage.engine.id_keys import chunks
from storage.schema.schema import rejected_givers

_COLUMNS = rejected_givers.c


class RejectedGiver(NamedTuple):
    """Rejected commit that gives keys."""

    author: UserId | None
    """None without a credential that counts."""
    by_writer: bool
    """True if it came on a writers' topic: there not everybody can make authors up."""
    publication: bytes


def keep_rejected_givers(
    database: Database, connection: Connection, branch_num: int, givers: Mapping[CommitId, RejectedGiver]
) -> None:
    """Store rejected commits of a root branch within KEY_GIVERS_SIZE_MAX bytes; each takes at least a
    REJECTION_COUNT_MAXth.

    Each of n payers keeps its first commits up to an n-th of the room, however much the others send. Room that some
    leave unused goes to the others. A commit that is kept already keeps its place. Costs O(rows of the branch).
    """
    query = select(_COLUMNS.commit_id, _COLUMNS.payer, _COLUMNS.size).where(_COLUMNS.branch_num == branch_num)
    kept = [(row[0], row[1], row[2]) for row in connection.execute(query.order_by(_COLUMNS.num))]
    known = {commit_id for commit_id, _, _ in kept}
    fresh = [
        (commit_id, _find_payer(one), len(one.publication))
        for commit_id, one in givers.items()
        if commit_id not in known
    ]
    gone = _find_surplus([*kept, *fresh])
    forget_rejected_givers(connection, known & gone)
    new = [(one, payer, size) for one, payer, size in fresh if one not in gone]
    if not new:
        return
    nums = database.next_nums(connection, rejected_givers, len(new))
    rows = [
        {
            "num": num,
            "branch_num": branch_num,
            "commit_id": one,
            "payer": payer,
            "size": size,
            "publication": givers[one].publication,
        }
        for num, (one, payer, size) in zip(nums, new, strict=True)
    ]
    connection.execute(insert(rejected_givers), rows)


def _find_payer(giver: RejectedGiver) -> bytes:
    return giver.author or (b"writers" if giver.by_writer else b"others")


def _find_surplus(rows: list[tuple[CommitId, bytes, int]]) -> set[CommitId]:
    """Find the commits, given with payer and size, for which there is no room."""
    paid: Counter[bytes] = Counter()
    places: list[tuple[int, int, CommitId]] = []
    for commit_id, payer, size in rows:
        cost = max(size * REJECTION_COUNT_MAX, KEY_GIVERS_SIZE_MAX)  # in parts of a byte
        paid[payer] += cost
        places.append((paid[payer], cost, commit_id))
    left, gone = KEY_GIVERS_SIZE_MAX * REJECTION_COUNT_MAX, set()
    for _, cost, commit_id in sorted(places, key=lambda place: place[0]):
        if cost <= left:
            left -= cost
        else:
            gone.add(commit_id)
    return gone


def load_rejected_givers(
    connection: Connection, branch_num: int, known: Collection[CommitId]
) -> list[tuple[CommitId, bytes]]:
    """Load (id, publication) of a branch's rows that are not `known`, in order. Costs O(rows of the branch)."""
    fresh = [one for one in list_rejected_givers(connection, branch_num) if one not in known]
    query = select(_COLUMNS.commit_id, _COLUMNS.publication).order_by(_COLUMNS.num)
    found: list[tuple[CommitId, bytes]] = []
    for part in chunks(fresh):
        rows = connection.execute(query.where(_COLUMNS.commit_id.in_(part)))
        found += [(row[0], row[1]) for row in rows]
    return found


def list_rejected_givers(connection: Connection, branch_num: int) -> list[CommitId]:
    """List the commits of a branch that are kept, in order. Costs O(rows of the branch)."""
    query = select(_COLUMNS.commit_id).where(_COLUMNS.branch_num == branch_num).order_by(_COLUMNS.num)
    return list(connection.execute(query).scalars())


def forget_rejected_givers(connection: Connection, ids: Collection[CommitId]) -> None:
    """Forget commits that give no more. Costs O(ids)."""
    for part in chunks(list(ids)):
        connection.execute(delete(rejected_givers).where(_COLUMNS.commit_id.in_(part)))
