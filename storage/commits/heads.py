"""Tables of heads: commits that no accepted commit names as parent, per branch and per topic.

There may be as many as somebody likes to make: nothing here that a batch or a commit needs reads all of them.
"""

from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

from sqlalchemy import Connection, bindparam, delete, false, func, select, true, update

from protocol.ids import CommitId
from storage.engine.bulk import change_rows, insert_rows, select_in, select_rows
from storage.engine.id_keys import chunks
from storage.schema.schema import heads

Head = tuple[CommitId, int]
"""Id and rank."""

_COLUMNS = ("topic_num", "commit_id", "branch_num", "rank", "is_acked")
_OF_BRANCH = heads.c.branch_num == bindparam("branch")
_GIVEN_IDS = heads.c.commit_id.in_(bindparam("keys", expanding=True))
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


def load_heads(connection: Connection, branch_num: int, limit: int) -> list[Head]:
    """Load (id, rank) of a branch's heads, those of highest rank first. Costs O(limit)."""
    rows = select_rows(connection, _HIGHEST, branch=branch_num, count=limit)
    found = [(row[0], row[1]) for row in rows]
    return sorted(found, key=lambda head: (-head[1], head[0]))


def count_heads(connection: Connection, branch_num: int) -> int:
    """Count a branch's heads. Costs O(heads)."""
    return int(select_rows(connection, _COUNT, branch=branch_num).scalars()[0])


class NewHead(NamedTuple):
    """New commit of a branch: its acks and topic, and of an init also its second topics."""

    commit_id: CommitId
    rank: int
    acks: tuple[CommitId, ...]
    topic_num: int
    starts_on: tuple[int, ...]


def advance_heads(
    connection: Connection, branch_num: int, new: Sequence[NewHead], before: set[CommitId]
) -> None:
    """Update heads for new commits, of which `before` names what they ack that was here. Costs O(new and acks).

    Acked by its own topic, a head goes; acked by another one, it is marked, and goes on standing for its topic's past.
    """
    acked: defaultdict[int, set[CommitId]] = defaultdict(set)  # by the topics of what acks them
    for one in new:
        acked[one.topic_num].update(one.acks)
    gone: list[tuple[int, CommitId]] = []
    marked: list[tuple[int, CommitId]] = []
    for part in chunks(sorted(before)):
        for topic_num, raw in select_in(connection, _TOPICS, part, branch=branch_num):
            (gone if raw in acked[topic_num] else marked).append((topic_num, raw))
    # One by one: for pairs of topic and id, SQLite reads the whole table.
    change_rows(connection, _REMOVE, gone)
    change_rows(connection, _MARK, marked)
    rows = []
    for one in new:
        for topic_num in (one.topic_num, *one.starts_on):
            if one.commit_id in acked[topic_num]:
                continue
            # On the topic of the epoch that it starts, an init is no head of the branch a second time.
            is_acked = topic_num != one.topic_num or any(one.commit_id in ids for ids in acked.values())
            rows.append((topic_num, one.commit_id, branch_num, one.rank, is_acked))
    insert_rows(connection, heads, _COLUMNS, rows)
