"""Tables of heads: commits that no accepted commit names as parent, per branch and per topic.

There may be as many as somebody likes to make: nothing here that a batch or a commit needs reads all of them.
"""

from collections.abc import Iterable, Sequence

from sqlalchemy import Connection, bindparam, delete, false, func, select, true, update

from protocol.ids import CommitId
from storage.engine.bulk import change_rows, insert_rows, select_in, select_rows
from storage.engine.id_keys import chunks
from storage.repos.repos import Branch
from storage.schema.schema import heads

Head = tuple[CommitId, int]
"""Id and rank."""

_COLUMNS = ("topic_num", "commit_id", "branch_num", "rank", "is_acked")
_OF_BRANCH = heads.c.branch_num == bindparam("branch")
_GIVEN_IDS = heads.c.commit_id.in_(bindparam("keys", expanding=True))
_AMONG = select(heads.c.commit_id).where(_OF_BRANCH, _GIVEN_IDS, heads.c.is_acked == false())
_TOPICS = select(heads.c.topic_num, heads.c.commit_id).where(_OF_BRANCH, _GIVEN_IDS)
_HIGHEST = (
    select(heads.c.commit_id, heads.c.rank)
    .where(_OF_BRANCH, heads.c.is_acked == false())
    .order_by(heads.c.rank.desc(), heads.c.commit_id.desc())  # as the index has them, backwards
    .limit(bindparam("count"))
)
_COUNT = select(func.count()).where(_OF_BRANCH, heads.c.is_acked == false())
_IS_IT = (heads.c.topic_num == bindparam("topic")) & (heads.c.commit_id == bindparam("commit"))
_REMOVE = delete(heads).where(_IS_IT)
_MARK = update(heads).where(_IS_IT).values(is_acked=true())


def find_heads(connection: Connection, branch_num: int, ids: Iterable[CommitId]) -> set[CommitId]:
    """Those of these commits that are heads of the branch."""
    found: set[CommitId] = set()
    for part in chunks(sorted(set(ids))):
        found.update(select_in(connection, _AMONG, part, branch=branch_num).scalars())
    return found


def load_heads(connection: Connection, branch_num: int, limit: int) -> list[Head]:
    """(id, rank) of a branch's heads, those of highest rank first."""
    rows = select_rows(connection, _HIGHEST, branch=branch_num, count=limit)
    found = [(row[0], row[1]) for row in rows]
    return sorted(found, key=lambda head: (-head[1], head[0]))


def count_heads(connection: Connection, branch_num: int) -> int:
    """How many heads a branch has."""
    return int(select_rows(connection, _COUNT, branch=branch_num).scalars()[0])


def advance_heads(
    connection: Connection, branch: Branch, new: Sequence[Head], acked: set[CommitId], before: set[CommitId]
) -> None:
    """Acked by their own topic, heads go; acked by another, they are marked, and go on standing for their topic's past.

    `new` are commits that came by the branch's topic, `acked` is all that they ack, `before` what of it was here before.
    """
    by_topic: dict[int, list[CommitId]] = {}
    for part in chunks(sorted(before)):
        for topic_num, raw in select_in(connection, _TOPICS, part, branch=branch.num):
            by_topic.setdefault(topic_num, []).append(raw)
    for topic_num, ids in by_topic.items():
        # One by one: for pairs of topic and id, SQLite reads the whole table.
        statement = _REMOVE if topic_num == branch.topic_num else _MARK
        change_rows(connection, statement, [(topic_num, raw) for raw in ids])
    rows = [
        (branch.topic_num, commit_id, branch.num, rank, False)
        for commit_id, rank in new
        if commit_id not in acked
    ]
    insert_rows(connection, heads, _COLUMNS, rows)
