"""Makes rows of documents anew from all their commits, and compares them with what these come to.

`document_rows` keeps them a change at a time, and says where that cannot be done.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from sqlalchemy import Connection, delete, select, update

from protocol.formats.document_kinds import JSON, ValuesEdit
from protocol.ids import CommitId
from storage.commits.document_counters import COUNTER_DEPTH, INCREMENT_COLUMNS, Counter, insert_counters
from storage.commits.document_positions import PlacedItem, find_shown, insert_positions
from storage.commits.document_rows import OPERATION_COLUMNS, SOURCE_COLUMNS, TIP_COLUMNS
from storage.commits.documents import (
    BODY_KINDS,
    KIND_OF,
    VALUES_KINDS,
    Document,
    add_document,
    load_document,
    next_change,
)
from storage.engine.bulk import insert_rows
from storage.engine.database import Database
from storage.engine.id_keys import chunks, pack_nums
from storage.schema.document_schema import (
    OF_DOCUMENTS,
    document_increments,
    document_operations,
    document_positions,
    document_sources,
    document_tips,
    document_unmet,
    documents,
)
from storage.schema.schema import commits
from verifier.documents import DocumentCommit, ErasedValues, OrderKey, find_operations
from verifier.json_contents import find_increment, find_position


class MadeRow(NamedTuple):
    """An operation of a document that is made anew, by the numbers of commits: where it stands, and whose body says it."""

    key: bytes
    name: CommitId
    source_num: int
    place_num: int
    place: OrderKey
    is_there: bool
    replaced: int
    position: bytes | None
    added: int | None


class MadeDocument(NamedTuple):
    """All of a document that is made anew."""

    rows: Sequence[MadeRow]
    unmet: Mapping[tuple[bytes, CommitId], int]
    sources: Sequence[tuple[CommitId, int]]
    """Names, each with the number of another commit whose body says operations of it."""
    origins: Sequence[int]
    has_snapshots: bool


def plan_document(
    kind: str, said: Sequence[tuple[int, DocumentCommit]], origins: Sequence[int]
) -> MadeDocument:
    """Compute the rows of a document from its commits that are not void, by number. Raises ErasedValues."""
    nums = {one.place[-1]: num for num, one in said}
    operations = find_operations(one for _, one in said)
    rows = [
        MadeRow(
            one.key.encode(),
            one.name,
            nums[one.source],
            nums[one.place[-1]],
            one.place,
            one.value is not None,
            operations.replaced[one.name, one.key],
            find_position(one.key, one.value) if kind == JSON.name else None,
            find_increment(one.key, one.value) if kind == JSON.name else None,
        )
        for one in operations.counting
    ]
    here = {(one.name, one.key) for one in operations.counting}
    unmet = {
        (key.encode(), name): count
        for (name, key), count in operations.replaced.items()
        if count and (name, key) not in here
    }
    sources = {(one.name, num) for num, one in said if one.name != one.place[-1]}
    sources |= {(one.name, nums[one.source]) for one in operations.counting if one.name != one.source}
    return MadeDocument(rows, unmet, sorted(sources), origins, any(one.bit for _, one in said))


def make_document(database: Database, connection: Connection, document: Document, made: MadeDocument) -> None:
    """Write a document's rows anew. Costs O(its operations)."""
    num = document.num
    for table in OF_DOCUMENTS:
        connection.execute(delete(table).where(table.c.doc_num == num))
    operations: list[tuple[object, ...]] = [
        (
            num,
            one.key,
            one.name,
            one.source_num,
            one.place_num,
            one.place[0],
            one.is_there,
            True,
            one.replaced,
            one.position,
            one.added,
            None,
        )
        for one in made.rows
    ]
    insert_rows(connection, document_operations, OPERATION_COLUMNS, operations)
    standing = [one for one in made.rows if not one.replaced]
    insert_rows(connection, document_increments, INCREMENT_COLUMNS, _increments_of(num, made))
    tips: list[tuple[object, ...]] = [
        (num, one.key, *one.place, one.source_num, one.name, one.is_there, one.position)
        for one in sorted(standing, key=lambda one: (one.key, one.place, one.source_num))
        if one.added is None
    ]
    insert_rows(connection, document_tips, TIP_COLUMNS, tips)
    insert_counters(connection, {(num, key): one for key, one in _find_counters(standing).items()})
    insert_positions(connection, [(num, key, at) for key, at in sorted(_find_positions(standing).items())])
    unmet = [(num, key, name, count) for (key, name), count in made.unmet.items()]
    insert_rows(connection, document_unmet, ("doc_num", "key", "name", "replaced"), unmet)
    sources = [(num, *one) for one in made.sources]
    insert_rows(connection, document_sources, SOURCE_COLUMNS, sources)
    last = next_change(database, connection)
    values = {
        "depth": len(made.origins),
        "origins": pack_nums(made.origins),
        "is_stale": False,
        "has_snapshots": made.has_snapshots,
        "made_upto": last,
        "entry_count": len({one.key for one in standing if one.is_there}),
        "changed_num": last,
    }
    connection.execute(update(documents).where(documents.c.num == num).values(values))


def _find_positions(standing: Iterable[MadeRow]) -> dict[bytes, bytes]:
    return find_shown(
        PlacedItem(one.key, one.name, one.place, one.position) for one in standing if one.position is not None
    )


def _find_counters(standing: Iterable[MadeRow]) -> dict[bytes, Counter]:
    increments = {(one.key, one.name, one.added) for one in standing if one.added is not None}
    found: dict[bytes, Counter] = {}
    for key, _, number in increments:
        count, added = found.get(key, Counter(0, 0))
        found[key] = Counter(count + 1, added + number)
    return found


def is_document_wrong(
    connection: Connection,
    branch_num: int,
    kind: str,
    name: str,
    depth: int,
    said: Sequence[tuple[int, DocumentCommit]],
) -> bool:
    """Return True if rows of a document say otherwise than its commits do. Costs O(its operations).

    `depth` counts the branches that its own continues.
    """
    document = load_document(connection, branch_num, kind, name)
    if document is None:  # of what the branch continues alone, nobody may have asked yet
        return any(isinstance(one.body, ValuesEdit) and one.place[0] == depth for _, one in said)
    if document.is_stale:
        return False
    try:
        made = plan_document(kind, said, ())
    except ErasedValues:
        return True
    standing = [one for one in made.rows if not one.replaced]
    expected = {(one.key, *one.place, one.name, one.is_there) for one in standing if one.added is None}
    tips = document_tips.c
    of_document = tips.doc_num == document.num
    query = select(
        tips.key, tips.depth, tips.passed, tips.rank, tips.commit_id, tips.name, tips.is_there
    ).where(of_document, tips.depth != COUNTER_DEPTH)
    found = {tuple(row) for row in connection.execute(query)}
    counters = select(tips.key, tips.added_count, tips.added).where(of_document, tips.depth == COUNTER_DEPTH)
    counted = {key: Counter(count, int(added)) for key, count, added in connection.execute(counters)}
    there = {one.key for one in standing if one.is_there}
    positions = select(document_positions.c.key, document_positions.c.position)
    placed = connection.execute(positions.where(document_positions.c.doc_num == document.num))
    return (
        found != expected
        or _are_operations_wrong(connection, document, made)
        or counted != _find_counters(standing)
        or document.entry_count != len(there)
        or dict(map(tuple, placed)) != _find_positions(standing)
    )


def _are_operations_wrong(connection: Connection, document: Document, made: MadeDocument) -> bool:
    """Return True if rows of operations that count are others, or those of increments: later changes go by them."""
    rows = document_operations.c
    columns = (rows.key, rows.name, rows.source_num, rows.place_num, rows.depth, rows.is_there, rows.replaced)
    query = select(*columns, rows.position, rows.added).where(rows.doc_num == document.num, rows.is_live)
    found = {tuple(row) for row in connection.execute(query)}
    expected = {
        (*one[:4], one.place[0], one.is_there, one.replaced, one.position, one.added) for one in made.rows
    }
    rows = document_increments.c
    query = select(*(rows[name] for name in INCREMENT_COLUMNS)).where(rows.doc_num == document.num)
    added = {tuple(row) for row in connection.execute(query)}
    return found != expected or added != set(_increments_of(document.num, made))


def _increments_of(doc_num: int, made: MadeDocument) -> list[tuple[object, ...]]:
    """Return the rows of increments that stand, as INCREMENT_COLUMNS."""
    return [
        (doc_num, one.key, one.source_num, one.name, one.place_num, one.place[0], one.added)
        for one in made.rows
        if one.added is not None and not one.replaced
    ]


def reset_documents(database: Database, connection: Connection) -> int:
    """Forget all rows of documents, and let each be made anew; return how many there are. Costs O(commits)."""
    for table in (*OF_DOCUMENTS, documents):
        connection.execute(delete(table))
    return len(add_stale_documents(database, connection))


def add_stale_documents(
    database: Database, connection: Connection, nums: Sequence[int] | None = None
) -> set[int]:
    """Add stale documents for commits (None: all) that are of no document yet; return the documents' numbers. Costs
    O(commits)."""
    query = select(commits.c.branch_num, commits.c.body_kind, commits.c.document).distinct()
    query = query.where(commits.c.body_kind.in_(BODY_KINDS))
    found: set[tuple[int, str, str]] = set()
    for part in [None] if nums is None else chunks(nums):
        rows = connection.execute(query if part is None else query.where(commits.c.num.in_(part)))
        for branch_num, body_kind, name in rows:
            kinds = [KIND_OF[body_kind]] if body_kind in KIND_OF else VALUES_KINDS
            found.update((branch_num, kind, name) for kind in kinds)
    return {
        add_document(database, connection, *place, origins=None).num
        for place in sorted(found)
        if load_document(connection, *place) is None
    }
