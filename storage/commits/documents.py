"""Keeps which documents there are, and which of them are to be made anew. `document_rows` keeps what they come to."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from sqlalchemy import Connection, bindparam, insert, select, update

from protocol.formats.body import Carried, kind_name
from protocol.formats.document_kinds import DOCUMENT_KINDS, ValuesKind
from storage.engine.bulk import select_in, select_rows
from storage.engine.database import Database, reserve_numbers_to
from storage.engine.id_keys import PackedNums, chunks, pack_nums, unpack_nums
from storage.schema.document_schema import documents
from storage.schema.schema import commits

_SNAPSHOTS: Final = {kind_name(kind.snapshot): kind.name for kind in DOCUMENT_KINDS}
_EDITS: Final = {kind_name(kind.edit): kind.name for kind in DOCUMENT_KINDS}
KIND_OF: Final = _SNAPSHOTS | _EDITS
_CARRIED: Final = kind_name(Carried)
BODY_KINDS: Final = (_CARRIED, *KIND_OF)
VALUES_KINDS: Final = tuple(kind.name for kind in DOCUMENT_KINDS if isinstance(kind, ValuesKind))
_DOCUMENT: Final = (
    documents.c.num,
    documents.c.branch_num,
    documents.c.kind,
    documents.c.name,
    documents.c.depth,
    documents.c.origins,
    documents.c.is_stale,
    documents.c.has_snapshots,
    documents.c.made_upto,
    documents.c.entry_count,
    documents.c.changed_num,
)
_ONE: Final = select(*_DOCUMENT).where(
    documents.c.branch_num == bindparam("branch"),
    documents.c.kind == bindparam("kind"),
    documents.c.name == bindparam("name"),
)
_NAMED: Final = select(*_DOCUMENT).where(
    documents.c.branch_num == bindparam("branch"),
    documents.c.kind == bindparam("kind"),
    documents.c.name.in_(bindparam("keys", expanding=True)),
)


class Document(NamedTuple):
    """A document as its row has it; see `document_schema`."""

    num: int
    branch_num: int
    kind: str
    name: str
    depth: int
    origins: PackedNums
    is_stale: bool
    has_snapshots: bool
    made_upto: int
    entry_count: int
    changed_num: int


def load_document(connection: Connection, branch_num: int, kind: str, name: str) -> Document | None:
    """Load a document's row; None where nothing was said of it in its own branch, nor asked for. Costs O(log n)."""
    row = select_rows(connection, _ONE, branch=branch_num, kind=kind, name=name).first()
    return None if row is None else _document(row)


def load_documents_by_name(
    connection: Connection, branch_num: int, kind: str, names: Sequence[str]
) -> dict[str, Document]:
    """Load the rows of documents of a branch, as `load_document`, by name. Costs O(names), each O(log n)."""
    found: dict[str, Document] = {}
    for part in chunks(names):
        for row in select_in(connection, _NAMED, part, branch=branch_num, kind=kind):
            document = _document(row)
            found[document.name] = document
    return found


def add_document(
    database: Database,
    connection: Connection,
    branch_num: int,
    kind: str,
    name: str,
    *,
    origins: Sequence[int] | None,
) -> Document:
    """Add a document of a branch that continues these (None: it is not known what, so the document is stale)."""
    row = Document(
        database.next_nums(connection, documents, 1)[0],
        branch_num,
        kind,
        name,
        len(origins or ()),
        pack_nums(origins or ()),
        origins is None or bool(origins),
        has_snapshots=False,
        made_upto=0,
        entry_count=0,
        changed_num=0,
    )
    connection.execute(insert(documents).values(row._asdict()))
    return row


def next_change(database: Database, connection: Connection) -> int:
    """Return a number of the sequence of commits that no later commit or change has."""
    num = database.next_nums(connection, commits, 1)[0]
    reserve_numbers_to(connection, commits, num)
    return num


def mark_stale(connection: Connection, doc_nums: Iterable[int]) -> None:
    """Let documents be made anew before they are read."""
    for part in chunks(sorted(doc_nums)):
        connection.execute(update(documents).where(documents.c.num.in_(part)).values(is_stale=True))


def mark_stale_of(connection: Connection, nums: Sequence[int]) -> dict[int, list[int]]:
    """Mark the documents of these commits as stale; return them with their commits, also those that were stale before.

    Costs O(nums and these documents).
    """
    found: dict[int, list[int]] = {}
    for document, _, num in _find_documents(connection, nums):
        found.setdefault(document.num, []).append(num)
    mark_stale(connection, found)
    return found


def find_changed(connection: Connection, nums: Sequence[int]) -> dict[int, list[int]]:
    """Find documents of these commits whose rows can follow a change, each with its commits; mark the others as stale."""
    changed: dict[int, list[int]] = {}
    stale: set[int] = set()
    for document, body_kind, num in _find_documents(connection, nums):
        if document.is_stale:
            continue
        if num <= document.made_upto or body_kind in _SNAPSHOTS:
            stale.add(document.num)
        else:
            changed.setdefault(document.num, []).append(num)
    mark_stale(connection, stale)
    return {doc_num: found for doc_num, found in changed.items() if doc_num not in stale}


def _find_documents(connection: Connection, nums: Sequence[int]) -> Iterator[tuple[Document, str, int]]:
    """Yield the documents of these commits, each with the body's kind and the number of a commit."""
    known: dict[tuple[int, str, str], list[Document]] = {}
    for part in chunks(nums):
        query = select(commits.c.num, commits.c.branch_num, commits.c.body_kind, commits.c.document)
        wanted = commits.c.num.in_(part) & commits.c.body_kind.in_(BODY_KINDS)
        for num, *place in connection.execute(query.where(wanted)).all():
            branch_num, body_kind, name = place
            if (branch_num, body_kind, name) not in known:
                known[branch_num, body_kind, name] = _load_named(connection, branch_num, body_kind, name)
            for document in known[branch_num, body_kind, name]:
                yield document, body_kind, num


def _load_named(connection: Connection, branch_num: int, body_kind: str, name: str) -> list[Document]:
    """Load documents by a name that commits of a branch have, also those of branches that continue it."""
    kinds = [KIND_OF[body_kind]] if body_kind in KIND_OF else VALUES_KINDS
    query = select(*_DOCUMENT).where(
        documents.c.kind.in_(kinds),
        documents.c.name == name,
        (documents.c.branch_num == branch_num) | (documents.c.depth > 0),
    )
    found = [_document(tuple(row)) for row in connection.execute(query)]
    return [one for one in found if branch_num in (one.branch_num, *unpack_nums(one.origins))]


def _document(row: tuple[object, ...]) -> Document:
    found = Document(*row)  # type: ignore[arg-type]  # as _DOCUMENT has them
    return found._replace(is_stale=bool(found.is_stale), has_snapshots=bool(found.has_snapshots))
