"""Keeps the entries of declared indexes of JSON documents: where each document stands in an order of fields.

An index is brought level when it is asked, from the changes of documents since then, as the search index is: who writes
pays nothing for it, and documents that are made anew need no second way. So a row says nothing until the index is level.
`node.content.document_indexes` reads the fields. They stand here in the clear, as keys of documents do: bytes that are
sealed have no order. Erasing a body takes its document out of all indexes.
"""

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from sqlalchemy import Connection, bindparam, delete, func, insert, select, tuple_, update

from protocol.formats.document_kinds import JSON
from storage.engine.bulk import change_rows, insert_rows, select_in, select_rows
from storage.engine.database import Database
from storage.engine.id_keys import chunks
from storage.schema.document_schema import (
    document_index_entries,
    document_indexes,
    documents,
)

NEVER: Final = (-1, 0)
"""Before all changes."""
_INDEX: Final = (
    document_indexes.c.num,
    document_indexes.c.branch_num,
    document_indexes.c.prefix,
    document_indexes.c.fields,
    document_indexes.c.upto,
    document_indexes.c.upto_num,
)
_OF_BRANCH: Final = (
    select(*_INDEX)
    .where(document_indexes.c.branch_num == bindparam("branch"))
    .order_by(document_indexes.c.num)
)
_RANGE: Final = (
    select(document_index_entries.c.place, document_index_entries.c.name)
    .where(
        document_index_entries.c.index_num == bindparam("index"),
        document_index_entries.c.place >= bindparam("start"),
        document_index_entries.c.place < bindparam("end"),
    )
    .order_by(document_index_entries.c.place)
    .limit(bindparam("limit"))
)
_PLACES: Final = select(document_index_entries.c.name, document_index_entries.c.place).where(
    document_index_entries.c.index_num == bindparam("index"),
    document_index_entries.c.name.in_(bindparam("keys", expanding=True)),
)
_DROP: Final = delete(document_index_entries).where(
    document_index_entries.c.index_num == bindparam("index"),
    document_index_entries.c.name == bindparam("of_name"),
)
_CHANGES: Final = (
    select(documents.c.name, documents.c.changed_num, documents.c.num)
    .where(
        documents.c.branch_num.in_(bindparam("keys", expanding=True)),
        documents.c.is_stale == bindparam("stale"),
        documents.c.kind == JSON.name,
        tuple_(documents.c.changed_num, documents.c.num) > tuple_(bindparam("since"), bindparam("since_num")),
    )
    .order_by(documents.c.changed_num, documents.c.num)
    .limit(bindparam("limit"))
)
_STALE: Final = select(documents.c.name).where(
    documents.c.branch_num == bindparam("branch"),
    documents.c.kind == JSON.name,
    documents.c.name.in_(bindparam("keys", expanding=True)),
    documents.c.is_stale,
)


class DocumentIndex(NamedTuple):
    """A declared index: of names that begin so, by fields, level up to a change (its number, and the document's)."""

    num: int
    branch_num: int
    prefix: str
    fields: str
    upto: int
    upto_num: int


def load_indexes(connection: Connection, branch_num: int) -> list[DocumentIndex]:
    """Load the indexes of a branch, the first declared first. Costs O(their number), which is bounded."""
    return [DocumentIndex(*row) for row in select_rows(connection, _OF_BRANCH, branch=branch_num)]


def load_all_indexes(connection: Connection) -> list[DocumentIndex]:
    """Load the indexes of all branches. Costs O(their number)."""
    return [DocumentIndex(*row) for row in connection.execute(select(*_INDEX))]


def add_index(
    database: Database, connection: Connection, branch_num: int, prefix: str, fields: str, *, count_max: int
) -> None:
    """Add an index of a branch without entries, if there is none like it; of too many, the first declared go."""
    known = load_indexes(connection, branch_num)
    if any((one.prefix, one.fields) == (prefix, fields) for one in known):
        return
    for one in known[: max(len(known) + 1 - count_max, 0)]:
        connection.execute(
            delete(document_index_entries).where(document_index_entries.c.index_num == one.num)
        )
        connection.execute(delete(document_indexes).where(document_indexes.c.num == one.num))
    num = database.next_nums(connection, document_indexes, 1)[0]
    row = DocumentIndex(num, branch_num, prefix, fields, *NEVER)
    connection.execute(insert(document_indexes).values(row._asdict()))


def load_unindexed(
    connection: Connection, parts: Sequence[int], since: tuple[int, int], limit: int
) -> tuple[list[str], tuple[int, int]]:
    """Load the first JSON documents of a branch's `parts` that changed after a change, and the last such change.

    Costs O(limit); in a branch that continues others O(changes).
    """
    rows = list(
        select_in(connection, _CHANGES, parts, stale=False, since=since[0], since_num=since[1], limit=limit)
    )
    return [name for name, _, _ in rows], (rows[-1][1], rows[-1][2]) if rows else since


def load_stale(connection: Connection, parts: Sequence[int], limit: int) -> list[str]:
    """Load JSON documents of a branch's `parts` that must be made anew. Costs O(limit)."""
    values = {"since": NEVER[0], "since_num": NEVER[1], "limit": limit}
    return [name for name, _, _ in select_in(connection, _CHANGES, parts, stale=True, **values)]


def load_range(
    connection: Connection, index_num: int, start: bytes, end: bytes, limit: int
) -> list[tuple[bytes, str]]:
    """Load places and names of an index from a place on, and before another, in their order. Costs O(limit and log n)."""
    found = select_rows(connection, _RANGE, index=index_num, start=start, end=end, limit=limit)
    return [(bytes(place), name) for place, name in found]


def load_places(connection: Connection, index_num: int, names: Sequence[str]) -> dict[str, bytes]:
    """Load the places of documents in an index. Costs O(names), each O(log n)."""
    return {
        name: bytes(place)
        for part in chunks(names)
        for name, place in select_in(connection, _PLACES, part, index=index_num)
    }


def count_places(connection: Connection, index_num: int) -> int:
    """Count the documents that are in an index. Costs O(n)."""
    query = select(func.count()).where(document_index_entries.c.index_num == index_num)
    return int(connection.execute(query).scalar_one())


def write_places(
    connection: Connection, index: DocumentIndex, places: Mapping[str, bytes | None], upto: tuple[int, int]
) -> None:
    """Write where documents stand in an index (None: nowhere), and that it is level so far. Costs O(places).

    Documents that must be made anew are written nowhere: a body of theirs may have been erased since it was read. An index
    that was dropped meanwhile gets nothing.
    """
    row = update(document_indexes).where(document_indexes.c.num == index.num)
    if not connection.execute(row.values(upto=upto[0], upto_num=upto[1])).rowcount:
        return
    change_rows(connection, _DROP, [(index.num, name) for name in places])
    stale = {
        name
        for part in chunks(list(places))
        for name in select_in(connection, _STALE, part, branch=index.branch_num).scalars()
    }
    rows = [
        (index.num, name, place) for name, place in places.items() if place is not None and name not in stale
    ]
    insert_rows(connection, document_index_entries, ("index_num", "name", "place"), rows)


def forget_places(connection: Connection, doc_nums: Sequence[int]) -> None:
    """Take documents out of all indexes of their branches. Costs O(doc_nums)."""
    for part in chunks(doc_nums):
        query = select(documents.c.branch_num, documents.c.name).where(
            documents.c.num.in_(part), documents.c.kind == JSON.name
        )
        for branch_num, name in connection.execute(query).all():
            for index in load_indexes(connection, branch_num):
                change_rows(connection, _DROP, [(index.num, name)])


def reset_indexes(connection: Connection) -> int:
    """Let all indexes be made anew; return how many there are."""
    connection.execute(delete(document_index_entries))
    return connection.execute(update(document_indexes).values(upto=NEVER[0], upto_num=NEVER[1])).rowcount
