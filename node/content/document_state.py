"""Reads documents of values by their rows, and makes these anew from the commits where they cannot be followed by steps.

`storage.commits.document_rows` keeps the rows. Values stand in the commits' bodies, which are remembered once opened.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain, islice
from typing import Final, NamedTuple, TypeVar

from sqlalchemy import Connection

from node.authoring.write_queue import PlanMustWrite
from node.content.document_operations import DocumentOperationReader, OpenedBody, not_here
from node.content.lineage import is_whole, lineage, lineage_nums
from node.ingest.replica import Replica
from node.ingest.tables import Tables
from node.runtime.errors import ServiceError
from protocol.formats.document_kinds import ValuesKind, ValuesSnapshot
from protocol.ids import BranchId, CommitId
from protocol.limits.formats import MIB
from protocol.limits.users import (
    DOCUMENT_SIZE_MAX,
    DOCUMENT_TURN_COUNT,
    DOCUMENT_TURN_SIZE,
    DOCUMENT_VALUE_COUNT_MAX,
)
from storage.commits.absent_bodies import sum_absent
from storage.commits.commits import load_numbered
from storage.commits.document_counters import COUNTER_DEPTH, load_increments
from storage.commits.document_making import MadeDocument, make_document, plan_document
from storage.commits.document_reading import (
    NO_KEY,
    Tip,
    load_keys,
    load_tips,
    load_tips_between,
    load_tips_of,
)
from storage.commits.documents import Document, add_document, load_document, load_documents_by_name
from storage.commits.edits import load_last_change
from storage.engine.database import Database
from storage.engine.id_keys import chunks
from storage.repos.repos import Branch
from verifier.documents import DocumentEntry, DocumentValue, ErasedValues, in_byte_order, reduce_values
from verifier.json_contents import increment_text

T = TypeVar("T")
_Stamp = tuple[tuple[int, int, int], ...]
NOTHING_SAID: Final = DocumentEntry(())
_TOGETHER_COUNT_MAX: Final = 2048
"""Entries of documents that are read at once, with their conflicts: some 2 MB, and 5 ms."""
_TOGETHER_SIZE_MAX: Final = 4 * MIB
"""Characters of their values; of more, each document is read for itself."""
_UNREADABLE_COUNT_MAX: Final = 1024
"""Documents that are remembered as unreadable: some 1 KiB each."""
_OPENED_AT_ONCE: Final = 64
"""Commits that are opened before their sizes are looked at: 32 MiB at most."""


@dataclass(frozen=True, slots=True)
class Unwritten:
    """A document that no rows are written of; `depth` as `Document` has it."""

    entries: Mapping[str, DocumentEntry]
    depth: int

    @property
    def entry_count(self) -> int:
        """Number of items or keys that are there."""
        return sum(1 for entry in self.entries.values() if entry.values)


StandingDocument = Document | Unwritten


class DocumentState:
    """State of the sets and dicts of branches. Thread-safe."""

    def __init__(self, tables: Replica | Tables, reader: DocumentOperationReader) -> None:
        self._tables = tables
        self._reader = reader
        self._alone: set[BranchId] = set()
        """Branches that continue none, of which that was asked."""
        self._unreadable: dict[tuple[int, str, str], tuple[_Stamp, ServiceError]] = {}
        """Documents that could not be made anew, by branch, kind and name, as long as the branch stays as it was then."""

    def find(
        self, connection: Connection, branch: Branch, kind: ValuesKind, name: str
    ) -> StandingDocument | None:
        """Return a document whose rows can be read; None where nothing was said of it.

        Raises StaleDocument where they must be made anew first. Costs O(log n); in a branch that continues what has not come
        whole O(commits of the document), since rows of it would be wrong with the next commit. Then it raises ServiceError
        as `refresh`.
        """
        document = load_document(connection, branch.num, kind.name, name)
        if document is not None and not document.is_stale:
            if not document.depth:
                self._alone.add(branch.branch_id)
            return document
        if document is None and branch.branch_id in self._alone:
            return None
        parts = lineage(self._tables, connection, branch)
        if len(parts) > 1 and not is_whole(self._tables, connection, branch):
            return self._unwritten(connection, branch, kind, name)
        if document is not None or len(parts) > 1:
            raise StaleDocument
        return None

    def refresh(
        self, database: Database, connection: Connection, branch: Branch, kind: ValuesKind, name: str
    ) -> StandingDocument | None:
        """Return a document whose rows can be read, made anew if they must be; None where nothing was said of it.

        Costs O(log n), and where it is made anew O(commits of the document). Where that failed, it costs O(absent bodies of
        the branch) until the branch changes. Raises ServiceError `incomplete`, `too_large`; StaleDocument where it could be
        made anew and the connection only reads.
        """
        try:
            return self.find(connection, branch, kind, name)
        except StaleDocument:
            made = self._try_make(connection, branch, kind, name)
            if not database.is_writer(connection):
                raise
            document = load_document(connection, branch.num, kind.name, name)
            if document is None:
                document = add_document(database, connection, branch.num, kind.name, name, origins=None)
            make_document(database, connection, document, made)
            return load_document(connection, branch.num, kind.name, name)

    def find_first(
        self, connection: Connection, branch: Branch, kind: ValuesKind, names: Sequence[str]
    ) -> list[StandingDocument | None]:
        """Return documents whose rows can be read, as `find`, up to before the first that must be made anew.

        Raises StaleDocument where that is the first of all. Costs O(names), each O(log n).
        """
        known = load_documents_by_name(connection, branch.num, kind.name, names)
        is_fork = len(known) < len(names) and len(lineage(self._tables, connection, branch)) > 1
        found: list[StandingDocument | None] = []
        for name in names:
            document = known.get(name)
            if is_fork if document is None else document.is_stale:
                if found:
                    break
                return [self.find(connection, branch, kind, name)]
            found.append(document)
        return found

    def entries(
        self,
        connection: Connection,
        document: StandingDocument | None,
        keys: Sequence[str],
        *,
        has_turn: bool,
    ) -> dict[str, DocumentEntry]:
        """Load entries of a document by item or key. Those without any operation are left out.

        Costs O(their operations), each key O(log n). Raises ServiceError `incomplete`, `too_large`; LargeDocument, unless
        this reader alone reads so much (`has_turn`).
        """
        if document is None:
            return {}
        if isinstance(document, Unwritten):
            return {key: document.entries[key] for key in keys if key in document.entries}
        limit = _limit_of(has_turn)
        tips = load_tips(connection, document.num, [key.encode() for key in keys], limit.values)
        return self._entries(connection, tips, limit)

    def replaced(
        self, connection: Connection, document: StandingDocument | None, keys: Sequence[str]
    ) -> dict[str, tuple[DocumentValue, ...]]:
        """Load what an operation about each key replaces: as `entries`, with each increment of counters for itself.

        Costs O(what stands of them), and O(operations about counters). Raises ServiceError as `entries`.
        """
        entries = self.entries(connection, document, keys, has_turn=True)
        found = {key: entry.tips for key, entry in entries.items()}
        for key, tips in found.items():
            if isinstance(document, Document) and tips[0].place[0] == COUNTER_DEPTH:
                increments = load_increments(connection, document.num, key.encode(), DOCUMENT_VALUE_COUNT_MAX)
                if increments is None:
                    raise _too_large()
                found[key] = (*(DocumentValue(*one, "") for one in increments), *tips[1:])
        return found

    def window(
        self,
        connection: Connection,
        document: StandingDocument | None,
        offset: int,
        limit: int,
        *,
        has_turn: bool,
    ) -> list[tuple[str, DocumentEntry]]:
        """Load a window of the entries that are there, by UTF-8 bytes. Costs O(offset + limit and what stands of these)."""
        if document is None:
            return []
        if isinstance(document, Unwritten):
            there = in_byte_order(document.entries)
            return [(key, document.entries[key]) for key in there[offset : offset + limit]]
        keys = [key.decode() for key in load_keys(connection, document.num, offset, limit)]
        entries = self.entries(connection, document, keys, has_turn=has_turn)
        return [(key, entries[key]) for key in keys]

    def between(
        self,
        connection: Connection,
        document: Document,
        first: str,
        end: str,
        key_limit: int | None,
        *,
        has_turn: bool,
    ) -> dict[str, DocumentEntry]:
        """Load the first entries that are there of keys from one on, and before another. Costs and raises as `entries`."""
        limit = _limit_of(has_turn)
        place = document.num, first.encode(), end.encode()
        tips = load_tips_between(connection, *place, key_limit, limit.values)
        return self._entries(connection, tips, limit)

    def _entries(
        self, connection: Connection, tips: Sequence[Tip], limit: "_Limit"
    ) -> dict[str, DocumentEntry]:
        if len(tips) > limit.values:
            raise limit.error()
        keys = [tip.key.decode() for tip in tips]
        values = self._values(connection, tips, keys, limit.characters)
        if values is None:
            raise limit.error()
        return _entries_of(zip(keys, tips, values, strict=True))

    def _all(
        self, connection: Connection, document: StandingDocument, *, has_turn: bool
    ) -> dict[str, DocumentEntry]:
        """Load all entries that are there. Costs O(what stands of them)."""
        if isinstance(document, Unwritten):
            return {key: document.entries[key] for key in in_byte_order(document.entries)}
        for limit in (_limit_of(has_turn=True), _limit_of(has_turn)):
            if document.entry_count > limit.values:  # what takes so long is not begun in each query
                raise limit.error()
        tips = load_tips_between(connection, document.num, b"", NO_KEY, None, limit.values)
        return self._entries(connection, tips, limit)

    def read_whole(
        self, connection: Connection, documents: Sequence[StandingDocument | None], *, has_turn: bool
    ) -> Iterator[dict[str, DocumentEntry]]:
        """Yield all entries that are there in each document. Small ones are read together, by four statements for all.

        Costs O(what stands of them). Raises ServiceError as `entries`.
        """
        for group in _small_groups(documents):
            together = self._read_together(connection, group)
            for document in group:
                if document is None:
                    yield {}
                elif together is not None and isinstance(document, Document):
                    yield together.get(document.num, {})
                else:
                    yield self._all(connection, document, has_turn=has_turn)

    def _read_together(
        self, connection: Connection, documents: Sequence[StandingDocument | None]
    ) -> dict[int, dict[str, DocumentEntry]] | None:
        """Load the entries of several documents, by number; None if they are too large to be held together."""
        if any(isinstance(document, Unwritten) for document in documents):
            return None
        if sum(document.entry_count for document in documents if document is not None) > _TOGETHER_COUNT_MAX:
            return None
        nums = [document.num for document in documents if isinstance(document, Document)]
        found = load_tips_of(connection, nums, _TOGETHER_COUNT_MAX) if nums else {}
        if found is None:
            return None
        tips = [tip for some in found.values() for tip in some]
        keys = [tip.key.decode() for tip in tips]
        values = self._values(connection, tips, keys, _TOGETHER_SIZE_MAX)
        if values is None:
            return None
        left = zip(keys, tips, values, strict=True)
        return {num: _entries_of(islice(left, len(some))) for num, some in found.items()}

    def _values(
        self, connection: Connection, tips: Sequence[Tip], keys: Sequence[str], size_max: int
    ) -> list[str | None] | None:
        """Load the value of each operation, about these keys; None where they are too large together."""
        values: list[str | None] = [None if tip.added is None else increment_text(tip.added) for tip in tips]
        places: dict[int, list[int]] = {}
        for place, tip in enumerate(tips):
            if tip.is_there and tip.added is None:
                places.setdefault(tip.source_num, []).append(place)
        size, nums = 0, sorted(places)
        kept = self._reader.kept(nums)  # of what stands in rows that are not stale, no body was erased
        bodies = chain(kept.items(), self._open([num for num in nums if num not in kept], connection))
        for num, opened in bodies:
            if isinstance(opened.content, ValuesSnapshot):
                again = {(name, key): value for name, key, value in opened.content.restated()}
                found = [again.get((tips[place].name, keys[place])) for place in places[num]]
            else:
                said = {} if opened.content is None else opened.content.values()
                found = [said.get(keys[place]) for place in places[num]]
            for place, value in zip(places[num], found, strict=True):
                values[place] = value or ""
                size += len(value or "")
            if size > size_max:
                return None
        return values

    def _open(self, nums: Sequence[int], connection: Connection) -> Iterator[tuple[int, OpenedBody]]:
        for part in chunks(nums, _OPENED_AT_ONCE):
            for row, opened in self._reader.open(connection, load_numbered(connection, part)):
                if row.is_erased:
                    raise not_here(ErasedValues(1))
                yield row.num, opened

    def _try_make(self, connection: Connection, branch: Branch, kind: ValuesKind, name: str) -> MadeDocument:
        """Make a document anew, unless it could not be and the branch is as it was then."""
        key, stamp = (branch.num, kind.name, name), self._stamp(connection, branch)
        known = self._unreadable.pop(key, None)
        try:
            if known is not None and known[0] == stamp:
                raise ServiceError(known[1].code, known[1].message, known[1].advice)
            return self._make(connection, branch, kind, name)
        except ServiceError as error:
            if len(self._unreadable) >= _UNREADABLE_COUNT_MAX:
                self._unreadable.clear()
            self._unreadable[key] = stamp, error
            raise

    def _stamp(self, connection: Connection, branch: Branch) -> "_Stamp":
        """Return numbers that differ once commits or bodies came, went or moved, here or in what the branch continues."""
        parts = lineage_nums(self._tables, connection, branch)
        return tuple((load_last_change(connection, num), *sum_absent(connection, num)) for num in parts)

    def _make(self, connection: Connection, branch: Branch, kind: ValuesKind, name: str) -> MadeDocument:
        said = [(num, one) for num, one, _ in self._reader.read_numbered(connection, branch, kind, name)]
        origins = [part.num for part, _ in reversed(lineage(self._tables, connection, branch))][:-1]
        try:
            return plan_document(kind.name, said, origins)
        except ErasedValues as error:
            raise not_here(error) from None

    def _unwritten(self, connection: Connection, branch: Branch, kind: ValuesKind, name: str) -> Unwritten:
        said = [one for one, _ in self._reader.read(connection, branch, kind, name)]
        try:
            entries = reduce_values(said)
        except ErasedValues as error:
            raise not_here(error) from None
        return Unwritten(entries, len(lineage(self._tables, connection, branch)) - 1)


class LargeDocument(Exception):  # a state, which the reader ends
    """Demand for more than is read beside others: it waits until nothing else so large is read."""


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


def _small_groups(documents: Sequence[StandingDocument | None]) -> Iterator[list[StandingDocument | None]]:
    """Divide documents, in their order, into those that have few entries together, and single ones."""
    group: list[StandingDocument | None] = []
    count = 0
    for document in documents:
        more = 0 if document is None else document.entry_count
        if group and count + more > _TOGETHER_COUNT_MAX:
            yield group
            group, count = [], 0
        group.append(document)
        count += more
    if group:
        yield group


def _entries_of(said: Iterable[tuple[str, Tip, str | None]]) -> dict[str, DocumentEntry]:
    """Make entries from one document's operations. An operation carried twice shows once, at its first place."""
    entries: dict[str, DocumentEntry] = {}
    several: dict[str, dict[tuple[CommitId, str | None], DocumentValue]] = {}
    for key, tip, value in said:
        one = DocumentValue(tip.name, tip.place, value)
        known = entries.get(key)
        if known is None:
            entries[key] = DocumentEntry((one,))
            continue
        if key not in several:
            several[key] = {(first.name, first.value): first for first in known.tips}
        several[key].setdefault((tip.name, value), one)
    for key, some in several.items():
        entries[key] = DocumentEntry(tuple(some.values()))
    return entries


class _Limit(NamedTuple):
    """Bound on what one reader may load, in values and characters, and the error beyond it."""

    values: int
    characters: int
    error: Callable[[], Exception]


def _limit_of(has_turn: bool) -> _Limit:
    if has_turn:
        return _Limit(DOCUMENT_VALUE_COUNT_MAX, DOCUMENT_SIZE_MAX, _too_large)
    count, size = (
        min(DOCUMENT_TURN_COUNT, DOCUMENT_VALUE_COUNT_MAX),
        min(DOCUMENT_TURN_SIZE, DOCUMENT_SIZE_MAX),
    )
    return _Limit(count, size, LargeDocument)


def _too_large() -> ServiceError:
    return ServiceError(
        "too_large",
        f"what is asked for has over {DOCUMENT_VALUE_COUNT_MAX} values or {DOCUMENT_SIZE_MAX} bytes",
        "ask for fewer at once (`limit`), or remove parts of a JSON document; of a key with many conflicts, put one "
        "value in their place",
    )
