"""Keeps the sums of counters of JSON documents: an increment, and a reading, cost the same however many there were.

An increment stands beside all others until a put replaces it, so a register may have very many. They are not among the tips:
in their place stands one row, before all others, that has their number and sum. Copies of an increment count once.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

from sqlalchemy import Connection, bindparam, delete, select

from protocol.ids import CommitId, UserId
from storage.engine.bulk import change_rows, insert_rows, select_rows
from storage.schema.document_schema import document_increments, document_tips
from storage.schema.schema import authors, commits
from verifier.documents import OrderKey

COUNTER_DEPTH: Final = -1
"""Depth of a counter's row, which is the place of no commit."""
_NOWHERE: Final = (COUNTER_DEPTH, 0, 0, bytes(32), 0, bytes(32), True)
"""Place, source, name and presence of a counter's row."""
_PLACED: Final = ("depth", "passed", "rank", "commit_id", "source_num", "name", "is_there")
_COLUMNS: Final = ("doc_num", "key", *_PLACED, "added_count", "added")
_OF_KEY: Final = (
    document_tips.c.doc_num == bindparam("doc"),
    document_tips.c.key == bindparam("of_key"),
    document_tips.c.depth == COUNTER_DEPTH,
)
_COUNTER: Final = select(document_tips.c.added_count, document_tips.c.added).where(*_OF_KEY)
_DROP: Final = delete(document_tips).where(*_OF_KEY[:2], document_tips.c.depth == bindparam("of_depth"))
INCREMENT_COLUMNS: Final = tuple(column.name for column in document_increments.columns)
_INCREMENTS: Final = (
    select(
        document_increments.c.name,
        document_increments.c.depth,
        commits.c.passed,
        commits.c.rank,
        commits.c.commit_id,
    )
    .join(commits, commits.c.num == document_increments.c.place_num)
    .where(document_increments.c.doc_num == bindparam("doc"), document_increments.c.key == bindparam("key"))
)
_INCREMENTS_OF_KEY: Final = _INCREMENTS.limit(bindparam("limit"))
_LONG: Final = select(document_tips.c.key).where(
    document_tips.c.doc_num == bindparam("doc"),
    document_tips.c.depth == COUNTER_DEPTH,
    document_tips.c.added_count > bindparam("count"),
)
_OWN: Final = (
    _INCREMENTS.add_columns(document_increments.c.added)
    .join(authors, authors.c.num == commits.c.author_num)
    .where(
        commits.c.branch_num == bindparam("branch"),
        commits.c.commit_id == document_increments.c.name,
        authors.c.user == bindparam("user"),
    )
    .order_by(commits.c.passed, commits.c.rank, commits.c.commit_id)
    .limit(bindparam("limit"))
)


class Counter(NamedTuple):
    """Number of the increments of a register that stand, and their sum."""

    increments: int
    added: int


class Increment(NamedTuple):
    """Increment that stands: its name, and the place of its first copy."""

    name: CommitId
    place: OrderKey


class OwnIncrements(NamedTuple):
    """Standing increments of a counter that one user wrote in the branch itself, and their sum."""

    key: str
    increments: list[Increment]
    added: int


def keep_counters(connection: Connection, changes: Mapping[tuple[int, bytes], Counter]) -> None:
    """Change what counters come to, by document and key. Costs O(log n) for each."""
    counters: dict[tuple[int, bytes], Counter] = {}
    for (doc_num, key), more in changes.items():
        found = select_rows(connection, _COUNTER, doc=doc_num, of_key=key).first()
        increments, added = (0, "0") if found is None else found
        counters[doc_num, key] = Counter(increments + more.increments, int(added) + more.added)
    change_rows(connection, _DROP, [(*place, COUNTER_DEPTH) for place in counters])
    insert_counters(connection, counters)


def insert_counters(connection: Connection, counters: Mapping[tuple[int, bytes], Counter]) -> None:
    """Insert counters that have no row, by document and key; those without increments are left out."""
    rows = [
        (*place, *_NOWHERE, one.increments, str(one.added))
        for place, one in sorted(counters.items())
        if one.increments
    ]
    insert_rows(connection, document_tips, _COLUMNS, rows)


def load_own_increments(
    connection: Connection, doc_num: int, branch_num: int, user: UserId, count: int, limit: int
) -> list[OwnIncrements]:
    """Load a user's own first `limit` increments of each counter of more than `count`. What was carried here is left out.

    Costs O(what stands of the document).
    """
    found: list[OwnIncrements] = []
    for key in select_rows(connection, _LONG, doc=doc_num, count=count).scalars():
        own = {"doc": doc_num, "key": key, "branch": branch_num, "user": user, "limit": limit}
        rows = list(select_rows(connection, _OWN, **own))
        increments = [Increment(CommitId(name), tuple(place)) for name, *place, _ in rows]
        found.append(OwnIncrements(key.decode(), increments, sum(added for *_, added in rows)))
    return found


def load_increments(connection: Connection, doc_num: int, key: bytes, limit: int) -> list[Increment] | None:
    """Load the increments of a register that stand, in canonical order; None where over `limit` rows have them.

    Costs O(what is loaded).
    """
    rows = list(select_rows(connection, _INCREMENTS_OF_KEY, doc=doc_num, key=key, limit=limit + 1))
    if len(rows) > limit:
        return None
    first: dict[CommitId, OrderKey] = {}
    for name, depth, passed, rank, commit_id in rows:
        place = (depth, passed, rank, commit_id)
        first[name] = min(first.get(name, place), place)
    return sorted((Increment(name, place) for name, place in first.items()), key=lambda one: one.place)
