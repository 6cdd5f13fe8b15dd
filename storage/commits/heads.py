"""Tables of heads: commits that no accepted commit names as parent, per branch and per topic.

There may be as many as somebody likes to make: nothing here that a batch or a commit needs reads all of them.
"""

from collections.abc import Iterable, Sequence

from sqlalchemy import Connection, delete, false, func, insert, select, update

from protocol.ids import CommitId
from storage.engine.id_keys import chunks
from storage.repos.repos import Branch
from storage.schema.schema import heads

Head = tuple[CommitId, int]
"""Id and rank."""


def find_heads(connection: Connection, branch_num: int, ids: Iterable[CommitId]) -> set[CommitId]:
    """Those of these commits that are heads of the branch."""
    found: set[CommitId] = set()
    for part in chunks(sorted(set(ids))):
        query = select(heads.c.commit_id).where(
            heads.c.branch_num == branch_num, heads.c.commit_id.in_(part), ~heads.c.is_acked
        )
        found.update(connection.execute(query).scalars())
    return found


def load_heads(connection: Connection, branch_num: int, limit: int) -> list[Head]:
    """(id, rank) of a branch's heads, those of highest rank first."""
    query = (
        select(heads.c.commit_id, heads.c.rank)
        .where(heads.c.branch_num == branch_num, heads.c.is_acked == false())
        .order_by(heads.c.rank.desc(), heads.c.commit_id.desc())  # as the index has them, backwards
        .limit(limit)
    )
    found = [(row[0], row[1]) for row in connection.execute(query)]
    return sorted(found, key=lambda head: (-head[1], head[0]))


def count_heads(connection: Connection, branch_num: int) -> int:
    """How many heads a branch has."""
    query = select(func.count()).where(heads.c.branch_num == branch_num, heads.c.is_acked == false())
    return int(connection.execute(query).scalar_one())


def advance_heads(
    connection: Connection, branch: Branch, new: Sequence[Head], acked: set[CommitId], before: set[CommitId]
) -> None:
    """Acked by their own topic, heads go; acked by another, they are marked, and go on standing for their topic's past.

    `new` are commits that came by the branch's topic, `acked` is all that they ack, `before` what of it was here before.
    """
    by_topic: dict[int, list[CommitId]] = {}
    for part in chunks(sorted(before)):
        query = select(heads.c.topic_num, heads.c.commit_id).where(
            heads.c.branch_num == branch.num, heads.c.commit_id.in_(part)
        )
        for topic_num, raw in connection.execute(query):
            by_topic.setdefault(topic_num, []).append(raw)
    for topic_num, ids in by_topic.items():
        for part in chunks(ids):
            # One topic at a time: for pairs of topic and id, SQLite reads the whole table.
            here = (heads.c.topic_num == topic_num) & heads.c.commit_id.in_(part)
            if topic_num == branch.topic_num:
                connection.execute(delete(heads).where(here))
            else:
                connection.execute(update(heads).where(here).values(is_acked=True))
    rows = [
        {
            "topic_num": branch.topic_num,
            "commit_id": commit_id,
            "branch_num": branch.num,
            "rank": rank,
            "is_acked": False,
        }
        for commit_id, rank in new
        if commit_id not in acked
    ]
    if rows:
        connection.execute(insert(heads), rows)
