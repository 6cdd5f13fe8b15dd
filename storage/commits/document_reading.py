"""Reads what stands of documents from the rows that `document_rows` keeps, by item or key."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from sqlalchemy import Connection, bindparam, case, collate, func, select

from protocol.ids import CommitId
from storage.engine.bulk import select_in, select_rows
from storage.engine.id_keys import chunks
from storage.schema.document_schema import document_tips, documents
from verifier.documents import OrderKey

_BYTE_ORDER: Final = {"sqlite": "BINARY", "postgresql": "C"}
_IS_LISTED: Final = func.substr(documents.c.name, 1, 1) != "."
_KEYS: Final = (
    select(document_tips.c.key)
    .where(document_tips.c.doc_num == bindparam("doc"), document_tips.c.is_there)
    .distinct()
    .order_by(document_tips.c.key)
    .limit(bindparam("limit"))
    .offset(bindparam("offset"))
)
_TIPS: Final = (
    select(
        document_tips.c.key,
        document_tips.c.depth,
        document_tips.c.passed,
        document_tips.c.rank,
        document_tips.c.commit_id,
        document_tips.c.source_num,
        document_tips.c.name,
        document_tips.c.is_there,
    )
    .where(
        document_tips.c.doc_num == bindparam("doc"),
        document_tips.c.key.in_(bindparam("keys", expanding=True)),
    )
    .order_by(
        document_tips.c.key,
        document_tips.c.depth,
        document_tips.c.passed,
        document_tips.c.rank,
        document_tips.c.commit_id,
        document_tips.c.source_num,
    )
)


class Tip(NamedTuple):
    """An operation that stands: its key (UTF-8), its place, the commit whose body says it, and its first id."""

    key: bytes
    place: OrderKey
    source_num: int
    name: CommitId
    is_there: bool


class ListedDocument(NamedTuple):
    """A document of a list; `entry_count` is None where its rows are to be made anew, or were never asked for."""

    kind: str
    name: str
    entry_count: int | None


def load_documents(
    connection: Connection,
    branch_num: int,
    parts: Sequence[int],
    kind: str,
    prefix: str,
    offset: int,
    limit: int,
) -> list[ListedDocument]:
    """Load documents of a branch and what it continues (`parts`), as this node learned of them, but for dotted names.

    Costs O(documents of these branches).
    """
    first = func.min(documents.c.num)
    own = case((documents.c.branch_num == branch_num, documents.c.num))
    query = (
        select(documents.c.kind, documents.c.name, func.min(own))
        .where(documents.c.branch_num.in_(parts), _IS_LISTED)
        .group_by(documents.c.kind, documents.c.name)
        .order_by(first)
        .limit(limit)
        .offset(offset)
    )
    if kind:
        query = query.where(documents.c.kind == kind)
    if prefix:
        query = query.where(func.substr(documents.c.name, 1, len(prefix)) == prefix)
    rows = connection.execute(query).all()
    nums = [num for _, _, num in rows if num is not None]
    counted = select(documents.c.num, documents.c.entry_count)
    counts: dict[int, int] = {}
    for part in chunks(nums):
        found = connection.execute(counted.where(documents.c.num.in_(part), ~documents.c.is_stale))
        counts.update((num, count) for num, count in found)
    return [ListedDocument(kind, name, counts.get(num)) for kind, name, num in rows]


def load_keys(connection: Connection, doc_num: int, offset: int, limit: int) -> list[bytes]:
    """Load items or keys that are there, in the order of their bytes. Costs O(offset + limit and what stands of these)."""
    return select_rows(connection, _KEYS, doc=doc_num, offset=offset, limit=limit).scalars()


def load_tips(connection: Connection, doc_num: int, keys: Sequence[bytes]) -> dict[bytes, list[Tip]]:
    """Load what stands about some items or keys, by key, in canonical order. Costs O(that), each key O(log n)."""
    found: dict[bytes, list[Tip]] = {}
    for part in chunks(keys):
        for key, depth, passed, rank, commit_id, num, name, is_there in select_in(
            connection, _TIPS, part, doc=doc_num
        ):
            place = (depth, passed, rank, commit_id)
            found.setdefault(key, []).append(Tip(key, place, num, name, bool(is_there)))
    return found


def load_names(
    connection: Connection, branch_nums: Sequence[int], kind: str, prefix: str, after: str | None, limit: int
) -> list[str]:
    """Load names of documents of these branches that begin so, after one, in the order of their UTF-8 bytes.

    Names that begin with a dot are left out, as in lists. Costs O(limit and log n); on PostgreSQL, where an index has the
    order of a language, O(documents of the branches).
    """
    name = collate(documents.c.name, _BYTE_ORDER[connection.dialect.name])
    query = (
        select(documents.c.name)
        .where(
            documents.c.branch_num.in_(branch_nums),
            documents.c.kind == kind,
            name >= prefix,
            _IS_LISTED,
        )
        .group_by(documents.c.name)
        .order_by(name)
        .limit(limit)
    )
    if after is not None:
        query = query.where(name > after)
    return [found for found in connection.execute(query).scalars() if found.startswith(prefix)]
