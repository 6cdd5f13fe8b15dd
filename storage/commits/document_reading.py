"""Reads what stands of documents from the rows that `document_rows` keeps, by item or key."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from sqlalchemy import Connection, String, bindparam, case, collate, func, literal_column, or_, select

from protocol.ids import CommitId
from storage.commits.documents import KIND_OF
from storage.engine.bulk import Row, select_in, select_rows
from storage.engine.id_keys import chunks
from storage.schema.document_schema import document_operations, document_tips, documents
from storage.schema.schema import commits
from verifier.documents import OrderKey

NO_KEY: Final = b"\xff"
"""Behind all items and keys: it is not UTF-8."""
_BYTE_ORDER: Final = {"sqlite": "BINARY", "postgresql": "C"}
_IS_LISTED: Final = func.substr(documents.c.name, 1, 1) != "."
_SAID_OF: Final = select(commits.c.num).where(
    commits.c.branch_num == documents.c.branch_num,
    commits.c.document == documents.c.name,
    case(KIND_OF, value=commits.c.body_kind) == documents.c.kind,
)
# As the index `commits_documents` has it: SQLite uses that for no parameter.
_NO_NAME: Final = literal_column("''", String)
_IS_SAID: Final = or_(
    documents.c.depth == 0,
    select(document_operations.c.key).where(document_operations.c.doc_num == documents.c.num).exists(),
    _SAID_OF.where(commits.c.document != _NO_NAME).exists(),
    (documents.c.name == _NO_NAME) & _SAID_OF.where(commits.c.document == _NO_NAME).exists(),
)
"""Excludes a fork's documents of which nothing was said: rows are kept of what was only asked for.

For a named one it costs O(log n, and commits of its name as another kind); for an unnamed one O(commits of the branch).
"""
_KEYS: Final = (
    select(document_tips.c.key)
    .where(document_tips.c.doc_num == bindparam("doc"), document_tips.c.is_there)
    .distinct()
    .order_by(document_tips.c.key)
    .limit(bindparam("limit"))
    .offset(bindparam("offset"))
)
_TIP: Final = (
    document_tips.c.key,
    document_tips.c.depth,
    document_tips.c.passed,
    document_tips.c.rank,
    document_tips.c.commit_id,
    document_tips.c.source_num,
)
_SAID: Final = (document_tips.c.name, document_tips.c.is_there, document_tips.c.added)
_TIPS: Final = (
    select(*_TIP, *_SAID)
    .where(
        document_tips.c.doc_num == bindparam("doc"),
        document_tips.c.key.in_(bindparam("keys", expanding=True)),
    )
    .order_by(*_TIP)
    .limit(bindparam("limit"))
)
_TIPS_BETWEEN: Final = (
    select(*_TIP, *_SAID)
    .where(
        document_tips.c.doc_num == bindparam("doc"),
        document_tips.c.key >= bindparam("first"),
        document_tips.c.key < bindparam("end"),
        document_tips.c.is_there,
    )
    .order_by(*_TIP)
    .limit(bindparam("limit"))
)
_KEYS_BETWEEN: Final = (
    select(document_tips.c.key)
    .where(
        document_tips.c.doc_num == bindparam("doc"),
        document_tips.c.key >= bindparam("first"),
        document_tips.c.key < bindparam("end"),
        document_tips.c.is_there,
    )
    .distinct()
    .order_by(document_tips.c.key)
    .limit(bindparam("limit"))
)
_TIPS_OF: Final = (
    select(*_TIP, *_SAID, document_tips.c.doc_num)
    .where(document_tips.c.doc_num.in_(bindparam("keys", expanding=True)), document_tips.c.is_there)
    .order_by(document_tips.c.doc_num, *_TIP)
    .limit(bindparam("limit"))
)
_CHANGED: Final = (
    select(documents.c.kind, documents.c.name, documents.c.changed_num)
    .where(
        documents.c.branch_num.in_(bindparam("keys", expanding=True)),
        documents.c.is_stale == bindparam("stale"),
        documents.c.changed_num > bindparam("since"),
        ((documents.c.kind == bindparam("kind")) & _IS_LISTED)
        | ((documents.c.kind == bindparam("mark_kind")) & (documents.c.name == bindparam("mark"))),
    )
    .limit(bindparam("limit"))
)
_LAST_CHANGE: Final = select(func.max(documents.c.changed_num)).where(
    documents.c.branch_num.in_(bindparam("keys", expanding=True)),
    documents.c.is_stale == bindparam("stale"),
)


class Tip(NamedTuple):
    """An operation that stands: its key (UTF-8), its place, the commit whose body says it, and its first id.

    Or all increments that stand of a counter: `added` is their sum, and no commit says it.
    """

    key: bytes
    place: OrderKey
    source_num: int
    name: CommitId
    is_there: bool
    added: int | None


def _tip(row: Row) -> Tip:
    num, name, is_there, added = row[5:9]  # behind the key and the place
    return Tip(row[0], row[1:5], num, name, bool(is_there), None if added is None else int(added))


class ListedDocument(NamedTuple):
    """A document of a list; `entry_count` is None where its rows are to be made anew, or were never asked for."""

    kind: str
    name: str
    entry_count: int | None


def is_listed(connection: Connection, parts: Sequence[int], kind: str, name: str) -> bool:
    """Return True if the list of documents of these branches has one. Costs O(branches), each as `_IS_SAID`."""
    columns = documents.c
    here = columns.branch_num.in_(parts) & (columns.kind == kind) & (columns.name == name)
    query = select(columns.num).where(here, _IS_LISTED, _IS_SAID).limit(1)
    return connection.execute(query).first() is not None


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

    Costs O(documents of these branches), each of a fork as `_IS_SAID`.
    """
    first = func.min(documents.c.num)
    own = case((documents.c.branch_num == branch_num, documents.c.num))
    query = (
        select(documents.c.kind, documents.c.name, func.min(own))
        .where(documents.c.branch_num.in_(parts), _IS_LISTED, _IS_SAID)
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


def load_tips_between(
    connection: Connection, doc_num: int, first: bytes, end: bytes, key_limit: int | None, limit: int
) -> list[Tip]:
    """Load what is there about the first keys from one on, and before another. Costs O(what is loaded, and log n).

    Where over `limit` operations stand, it is one more than that.
    """
    if key_limit is not None:
        keys = select_rows(
            connection, _KEYS_BETWEEN, doc=doc_num, first=first, end=end, limit=key_limit
        ).scalars()
        if not keys:
            return []
        end = keys[-1] + b"\0"
    found = select_rows(connection, _TIPS_BETWEEN, doc=doc_num, first=first, end=end, limit=limit + 1)
    return list(map(_tip, found))


def load_tips(connection: Connection, doc_num: int, keys: Sequence[bytes], limit: int) -> list[Tip]:
    """Load what stands about some items or keys, of each in canonical order. Costs O(what is loaded), each key O(log n).

    Where over `limit` operations stand, it is one more than that.
    """
    found: list[Tip] = []
    for part in chunks(keys):
        found += map(_tip, select_in(connection, _TIPS, part, doc=doc_num, limit=limit + 1 - len(found)))
        if len(found) > limit:
            break
    return found


def load_tips_of(connection: Connection, doc_nums: Sequence[int], limit: int) -> dict[int, list[Tip]] | None:
    """Load what is there in some documents, by document, in the order of keys; None where it is over `limit` operations.

    `doc_nums` are one at least, LOOKUP_COUNT_MAX at most. Costs O(what stands of them, up to the limit).
    """
    found: dict[int, list[Tip]] = {}
    rows = list(select_in(connection, _TIPS_OF, doc_nums, limit=limit + 1))
    for row in rows:
        found.setdefault(row[-1], []).append(_tip(row))
    return None if len(rows) > limit else found


class ChangedDocuments(NamedTuple):
    """Names of documents that have changed or must be made anew; whether a mark has; the last change that this has seen."""

    names: list[str]
    has_marks: bool
    upto: int


def load_changed(
    connection: Connection, parts: Sequence[int], kind: str, mark: tuple[str, str], since: int, limit: int
) -> ChangedDocuments | None:
    """Load which documents of a kind changed after `since` in a branch's `parts`, and whether the one of `mark` did.

    None where these are more than `limit`. Costs O(changes after `since`, also of other kinds) and O(stale documents).
    """
    values = {"kind": kind, "mark_kind": mark[0], "mark": mark[1], "limit": limit + 1}
    rows = [
        *select_in(connection, _CHANGED, parts, stale=False, since=since, **values),
        *select_in(connection, _CHANGED, parts, stale=True, since=-1, **values),
    ]
    if len(rows) > limit:
        return None
    names = {name for found_kind, name, _ in rows if (found_kind, name) != mark}
    upto = max((changed for _, _, changed in rows), default=since)
    return ChangedDocuments(sorted(names), len(names) < len({row[:2] for row in rows}), max(upto, since))


def load_last_change(connection: Connection, parts: Sequence[int]) -> int:
    """Return the last change of the documents of some branches. Costs O(parts), each O(log n)."""
    found = (select_in(connection, _LAST_CHANGE, parts, stale=stale).scalars() for stale in (False, True))
    return max(last or 0 for (last,) in found)


def load_names(
    connection: Connection, branch_nums: Sequence[int], kind: str, prefix: str, after: str | None, limit: int
) -> list[str]:
    """Load document names of these branches that have a prefix and follow `after`, in order of their UTF-8 bytes.

    Names that begin with a dot are left out, as in lists. Costs O(limit and log n); on PostgreSQL, where an index has
    the order of a language, O(documents of the branches).
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
