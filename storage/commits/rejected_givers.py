"""Table of rejected commits that give keys of epochs (E7). Peers do not send them again, so the store alone has them.

Each is kept as the publication it came in, until all keys that it gives were taken. Inits stay: the marks that they state
tell false keys, and the keys that they seal may be opened later.
"""

from collections.abc import Collection, Mapping

from sqlalchemy import Connection, delete, insert, select

from protocol.ids import CommitId
from protocol.limits.peers import KEY_GIVERS_SIZE_MAX, REJECTION_COUNT_MAX
from storage.engine.database import Database
from storage.engine.id_keys import chunks
from storage.schema.schema import rejected_givers

_COLUMNS = rejected_givers.c


def keep_rejected_givers(
    database: Database, connection: Connection, branch_num: int, publications: Mapping[CommitId, bytes]
) -> None:
    """Store commits of a root branch; forget its oldest beyond KEY_GIVERS_SIZE_MAX bytes and REJECTION_COUNT_MAX commits.

    Costs O(rows of the branch).
    """
    forget_rejected_givers(connection, publications)  # a rejection that was forgotten comes again
    nums = database.next_nums(connection, rejected_givers, len(publications))
    rows = [
        {"num": num, "branch_num": branch_num, "commit_id": one, "size": len(encoded), "publication": encoded}
        for num, (one, encoded) in zip(nums, publications.items(), strict=True)
    ]
    connection.execute(insert(rejected_givers), rows)
    query = select(_COLUMNS.commit_id, _COLUMNS.size).where(_COLUMNS.branch_num == branch_num)
    left = KEY_GIVERS_SIZE_MAX
    sizes = enumerate(connection.execute(query.order_by(_COLUMNS.num.desc())))
    gone = [one for place, (one, size) in sizes if (left := left - size) < 0 or place >= REJECTION_COUNT_MAX]
    forget_rejected_givers(connection, gone)


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
