"""Reads documents of values by their rows, and makes these anew from the commits where they cannot be followed by steps.

`storage.commits.document_rows` keeps the rows. Values stand in the commits' bodies, which are remembered once opened.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final, TypeVar

from sqlalchemy import Connection

from node.authoring.write_queue import PlanMustWrite
from node.content.document_operations import DocumentOperationReader, not_here
from node.content.lineage import lineage, whole_lineage
from node.ingest.replica import Replica
from node.ingest.tables import Tables
from node.runtime.errors import ServiceError
from protocol.formats.document_kinds import ValuesEdit, ValuesKind, ValuesSnapshot
from protocol.ids import CommitId
from protocol.limits.users import DOCUMENT_SIZE_MAX, DOCUMENT_VALUE_COUNT_MAX
from storage.commits.commits import load_numbered
from storage.commits.document_making import MadeDocument, make_document, plan_document
from storage.commits.document_reading import Tip, load_keys, load_tips
from storage.commits.document_rows import (
    Document,
    add_document,
    load_document,
)
from storage.engine.database import Database
from storage.repos.repos import Branch
from verifier.documents import DocumentEntry, DocumentValue, ErasedValues

T = TypeVar("T")
NOTHING_SAID: Final = DocumentEntry(())


class DocumentState:
    """State of the sets and dicts of branches. Thread-safe."""

    def __init__(self, tables: Replica | Tables, reader: DocumentOperationReader) -> None:
        self._tables = tables
        self._reader = reader

    def find(self, connection: Connection, branch: Branch, kind: ValuesKind, name: str) -> Document | None:
        """Return a document whose rows can be read; None where nothing was said of it.

        Raises StaleDocument where they must be made anew first. Costs O(log n).
        """
        document = load_document(connection, branch.num, kind.name, name)
        if document is None and len(lineage(self._tables, connection, branch)) > 1:
            raise StaleDocument
        if document is not None and document.is_stale:
            raise StaleDocument
        return document

    def refresh(
        self, database: Database, connection: Connection, branch: Branch, kind: ValuesKind, name: str
    ) -> Document | None:
        """Return a document whose rows can be read, made anew if they must be; None where nothing was said of it.

        Costs O(log n), and where it is made anew O(commits of the document). Raises ServiceError `incomplete`, `too_large`;
        StaleDocument where it could be made anew and the connection only reads.
        """
        try:
            return self.find(connection, branch, kind, name)
        except StaleDocument:
            made = self._make(connection, branch, kind, name)
            if not database.is_writer(connection):
                raise
            document = load_document(connection, branch.num, kind.name, name)
            if document is None:
                document = add_document(database, connection, branch.num, kind.name, name, origins=None)
            make_document(database, connection, document, made)
            return load_document(connection, branch.num, kind.name, name)

    def entries(
        self, connection: Connection, kind: ValuesKind, document: Document | None, keys: Sequence[str]
    ) -> dict[str, DocumentEntry]:
        """Load entries of a document by item or key; those of which nothing stands are left out.

        Costs O(what stands of them), each key O(log n). Raises ServiceError `incomplete`, `too_large`.
        """
        if document is None:
            return {}
        found = load_tips(connection, document.num, [key.encode() for key in keys])
        tips = [tip for some in found.values() for tip in some]
        if len(tips) > DOCUMENT_VALUE_COUNT_MAX:
            raise _too_large()
        values = self._values(connection, tips)
        entries: dict[str, DocumentEntry] = {}
        for key, some in found.items():
            standing: dict[tuple[CommitId, str | None], DocumentValue] = {}
            for tip in some:
                value = values.get((tip.source_num, tip.name, key.decode()), "") if tip.is_there else None
                # What was carried twice shows once, at its first place.
                standing.setdefault((tip.name, value), DocumentValue(tip.name, tip.place, value))
            entries[key.decode()] = DocumentEntry(tuple(standing.values()))
        return entries

    def window(
        self, connection: Connection, kind: ValuesKind, document: Document | None, offset: int, limit: int
    ) -> list[tuple[str, DocumentEntry]]:
        """Load a window of the entries that are there, by UTF-8 bytes. Costs O(offset + limit and what stands of these)."""
        if document is None:
            return []
        keys = [key.decode() for key in load_keys(connection, document.num, offset, limit)]
        entries = self.entries(connection, kind, document, keys)
        return [(key, entries[key]) for key in keys]

    def _values(
        self, connection: Connection, tips: Sequence[Tip]
    ) -> dict[tuple[int, CommitId, str], str | None]:
        """Load the values of operations, by the commit whose body says them, name and key."""
        nums = sorted({tip.source_num for tip in tips if tip.is_there})
        wanted = {(tip.source_num, tip.name, tip.key.decode()) for tip in tips}
        found: dict[tuple[int, CommitId, str], str | None] = {}
        size = 0
        for row, opened in self._reader.open(connection, load_numbered(connection, nums)):
            if row.is_erased:
                raise not_here(ErasedValues(1))
            match opened.content:
                case ValuesEdit() as edit:
                    said = [((row.num, opened.name, key), value) for key, value in edit.values().items()]
                case ValuesSnapshot() as snapshot:
                    said = [((row.num, name, key), value) for name, key, value in snapshot.restated()]
                case _:
                    said = []
            for place, value in said:
                if place in wanted:
                    found[place] = value
                    size += len(value or "")
            if size > DOCUMENT_SIZE_MAX:
                raise _too_large()
        return found

    def _make(self, connection: Connection, branch: Branch, kind: ValuesKind, name: str) -> MadeDocument:
        said = [(num, one) for num, one, _ in self._reader.read_numbered(connection, branch, kind, name)]
        origins = [part.num for part, _ in reversed(lineage(self._tables, connection, branch))][:-1]
        try:
            return plan_document(said, origins, is_whole=self._is_whole(connection, branch))
        except ErasedValues as error:
            raise not_here(error) from None

    def _is_whole(self, connection: Connection, branch: Branch) -> bool:
        try:
            whole_lineage(self._tables, connection, branch)
        except ServiceError:
            return False
        return True


class StaleDocument(PlanMustWrite):
    """The rows of a document must be made anew before they are read."""


def read_fresh(
    database: Database, read: Callable[[Connection], T], refresh: Callable[[Connection], object]
) -> T:
    """Read in a read transaction; where a document is stale, in a write transaction after `refresh`.

    `refresh` is tried in a read transaction first, and raises where it cannot succeed: who asks again and again would
    hold up all who write.
    """
    try:
        with database.read() as connection:
            return read(connection)
    except StaleDocument:
        with suppress(StaleDocument), database.read() as connection:
            refresh(connection)
        with database.write() as connection:
            refresh(connection)
            return read(connection)


def _too_large() -> ServiceError:
    return ServiceError(
        "too_large",
        f"what is asked for has over {DOCUMENT_VALUE_COUNT_MAX} values or {DOCUMENT_SIZE_MAX} bytes",
        "ask for fewer at once (`limit`); of a key with that many conflicts, put one value in their place",
    )
