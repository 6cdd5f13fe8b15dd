"""Maps items imported from other systems to their commits, so that a second import adds nothing."""

from sqlalchemy import Connection, insert, select

from protocol.ids import CommitId
from storage.engine.database import Database
from storage.schema.schema import imports


def load_imported(
    connection: Connection, branch_num: int, source: str, source_ids: list[str]
) -> dict[str, CommitId]:
    """Commit ids of those of these items that were imported from `source` before."""
    query = select(imports.c.source_id, imports.c.commit_id).where(
        imports.c.branch_num == branch_num, imports.c.source == source, imports.c.source_id.in_(source_ids)
    )
    return {row[0]: row[1] for row in connection.execute(query)}


def load_source_ids(
    connection: Connection, branch_num: int, source: str, after: int, limit: int
) -> list[tuple[int, str]]:
    """(number, id) of the items imported from `source`, in the order of their import, from the number after `after`."""
    query = (
        select(imports.c.num, imports.c.source_id)
        .where(imports.c.branch_num == branch_num, imports.c.source == source, imports.c.num > after)
        .order_by(imports.c.num)
        .limit(limit)
    )
    return [(row[0], row[1]) for row in connection.execute(query)]


def keep_imported(
    database: Database, connection: Connection, branch_num: int, source: str, items: dict[str, CommitId]
) -> None:
    """Remember which commit each imported item became."""
    nums = database.next_nums(connection, imports, len(items))
    rows = [
        {
            "num": num,
            "branch_num": branch_num,
            "source": source,
            "source_id": source_id,
            "commit_id": commit_id,
        }
        for num, (source_id, commit_id) in zip(nums, items.items(), strict=True)
    ]
    if rows:
        connection.execute(insert(imports), rows)
