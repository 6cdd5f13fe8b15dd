"""Keeps what the operations of sets and dicts come to, in the transaction that changes them, at the cost of the change.

An operation *stands* if its commit counts and no operation that counts names it about its key (`verifier.documents`). Both
are kept in its row, as a mark and a count over a set, so the order of steps decides nothing: `Changes.settle` is the only
place where they change. Places order what stands, and decide nothing else.

Three things make a document *stale* instead, which is then made anew from its commits before it is read: a snapshot that
comes, goes or covers what changes; a body that comes or goes; and any change of a commit that was there when the document
was last made anew. That costs O(its commits), once for all that happened until then.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Final, NamedTuple

from sqlalchemy import Connection, bindparam, delete, insert, select, update

from protocol.formats.body import Carried, kind_name
from protocol.formats.document_kinds import DOCUMENT_KINDS, ValuesKind
from protocol.ids import CommitId
from storage.commits.document_counters import COUNTER_DEPTH, Counter, keep_counters
from storage.commits.document_index_rows import forget_places
from storage.commits.document_positions import keep_positions
from storage.engine.bulk import PAIRS, change_rows, insert_rows, select_in, select_pairs, select_rows
from storage.engine.database import Database, reserve_numbers_to
from storage.engine.id_keys import LOOKUP_COUNT_MAX, PackedNums, chunks, pack_nums, unpack_nums
from storage.schema.document_schema import (
    document_operations,
    document_positions,
    document_replacements,
    document_tips,
    document_unmet,
    documents,
)
from storage.schema.schema import commits

_SNAPSHOTS: Final = {kind_name(kind.snapshot): kind.name for kind in DOCUMENT_KINDS}
_EDITS: Final = {kind_name(kind.edit): kind.name for kind in DOCUMENT_KINDS}
KIND_OF: Final = _SNAPSHOTS | _EDITS
_CARRIED: Final = kind_name(Carried)
BODY_KINDS: Final = (_CARRIED, *KIND_OF)
VALUES_KINDS: Final = {kind.name: kind for kind in DOCUMENT_KINDS if isinstance(kind, ValuesKind)}
NO_KEY: Final = b"\xff"
"""No item or key: it is not UTF-8. Rows of `document_unmet` under it name the carried commits of a document."""

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
_OPERATION: Final = (
    document_operations.c.doc_num,
    document_operations.c.key,
    document_operations.c.name,
    document_operations.c.source_num,
    document_operations.c.place_num,
    document_operations.c.depth,
    document_operations.c.is_there,
    document_operations.c.is_live,
    document_operations.c.replaced,
    document_operations.c.position,
    document_operations.c.added,
)
OPERATION_COLUMNS: Final = tuple(column.name for column in _OPERATION)
_OF_PAIRS: Final = (
    select(*_OPERATION)
    .select_from(PAIRS, document_operations)
    .where(
        document_operations.c.doc_num == bindparam("doc"),
        document_operations.c.key == PAIRS.c.one,
        document_operations.c.name == PAIRS.c.other,
    )
)
_OF_SOURCES: Final = select(*_OPERATION).where(
    document_operations.c.source_num.in_(bindparam("keys", expanding=True))
)
_REPLACED_BY: Final = select(
    document_replacements.c.doc_num, document_replacements.c.key, document_replacements.c.name
).where(document_replacements.c.commit_num.in_(bindparam("keys", expanding=True)))
_UNMET: Final = select(document_unmet.c.replaced).where(
    document_unmet.c.doc_num == bindparam("doc"),
    document_unmet.c.key == bindparam("key"),
    document_unmet.c.name == bindparam("name"),
)
_ANY_UNMET: Final = (
    select(document_unmet.c.replaced).where(document_unmet.c.doc_num == bindparam("doc")).limit(1)
)
_THERE: Final = select(PAIRS.c.one).where(
    select(document_tips.c.rank)
    .where(
        document_tips.c.doc_num == bindparam("doc"),
        document_tips.c.key == PAIRS.c.one,
        document_tips.c.is_there,
    )
    .exists()
)
_PLACES: Final = select(commits.c.num, commits.c.passed, commits.c.rank, commits.c.commit_id).where(
    commits.c.num.in_(bindparam("keys", expanding=True))
)
_CHANGE: Final = (
    update(document_operations)
    .where(
        document_operations.c.doc_num == bindparam("doc"),
        document_operations.c.key == bindparam("of_key"),
        document_operations.c.name == bindparam("of_name"),
        document_operations.c.source_num == bindparam("source"),
    )
    .values(is_live=bindparam("live"), replaced=bindparam("count"))
)
_DROP_TIP: Final = delete(document_tips).where(
    document_tips.c.doc_num == bindparam("doc"),
    document_tips.c.key == bindparam("of_key"),
    document_tips.c.depth == bindparam("of_depth"),
    document_tips.c.passed == bindparam("of_passed"),
    document_tips.c.rank == bindparam("of_rank"),
    document_tips.c.commit_id == bindparam("id"),
    document_tips.c.source_num == bindparam("source"),
)
_DROP_UNMET: Final = delete(document_unmet).where(
    document_unmet.c.doc_num == bindparam("doc"),
    document_unmet.c.key == bindparam("of_key"),
    document_unmet.c.name == bindparam("of_name"),
)
_CHANGED: Final = (
    update(documents)
    .where(documents.c.num == bindparam("doc"))
    .values(entry_count=documents.c.entry_count + bindparam("more"), changed_num=bindparam("at"))
)
TIP_COLUMNS: Final = tuple(
    column.name for column in document_tips.columns if column.name not in ("added_count", "added")
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


class SaidOperations(NamedTuple):
    """An accepted commit as a document reads it.

    It has whether each key is there, the pairs (key, name) that it replaces, and by key positions of items and increments.
    """

    num: int
    name: CommitId
    is_carried: bool
    values: Mapping[bytes, bool]
    replaces: frozenset[tuple[bytes, CommitId]]
    positions: Mapping[bytes, bytes]
    added: Mapping[bytes, int]


@dataclass(slots=True)
class _Row:
    doc_num: int
    key: bytes
    name: CommitId
    source_num: int
    place_num: int
    depth: int
    is_there: bool
    is_live: bool
    replaced: int
    position: bytes | None
    added: int | None
    stood: bool = False
    is_new: bool = False

    @property
    def stands(self) -> bool:
        return self.is_live and not self.replaced


_values_of: Final = attrgetter(*OPERATION_COLUMNS)
_Pair = tuple[int, bytes, CommitId]
"""Document, key and name."""


@dataclass(slots=True)
class Changes:
    """Changes of rows of documents that are not stale. Belongs to one transaction, and is stored at its end."""

    connection: Connection
    _rows: dict[_Pair, list[_Row]] = field(default_factory=dict)
    _changed: dict[int, _Row] = field(default_factory=dict)  # by identity
    _unmet: dict[_Pair, int] = field(default_factory=dict)
    _has_unmet: dict[int, bool] = field(default_factory=dict)
    _replacements: list[tuple[object, ...]] = field(default_factory=list)

    def settle(self, row: _Row, *, is_live: bool, replaced: int) -> None:
        """Change whether a row's commit counts, or how many operations replace it: all else follows in `store`."""
        row.is_live, row.replaced = is_live, replaced
        self._changed[id(row)] = row

    def load(self, pairs: Iterable[_Pair]) -> None:
        """Load the operations of names about keys: by one statement for all of a document. Costs O(pairs log n)."""
        wanted: dict[int, list[tuple[bytes, CommitId]]] = {}
        for pair in pairs:
            if pair not in self._rows:
                self._rows[pair] = []
                wanted.setdefault(pair[0], []).append(pair[1:])
        for doc_num, missing in wanted.items():
            for part in chunks(missing, LOOKUP_COUNT_MAX // 2):
                for found in map(_row, select_pairs(self.connection, _OF_PAIRS, part, doc=doc_num)):
                    self._rows[doc_num, found.key, found.name].append(found)

    def add_all(self, added: Sequence[tuple[Document, SaidOperations]]) -> None:
        """Add the operations of commits that count. Costs O(keys and what they replace), each O(log n).

        Of a new commit nothing is looked up, unless a copy, a snapshot or what replaces it may have come before.
        """
        new: set[tuple[int, CommitId]] = set()
        for document, one in added:
            if not (one.is_carried or document.has_snapshots or self._has_any_unmet(document.num)):
                new.add((document.num, one.name))
        self.load(
            (document.num, key, name)
            for document, one in added
            for key, name in (*((key, one.name) for key in one.values), *one.replaces)
            if (document.num, name) not in new
        )
        for document, one in added:
            self._add(document, one)

    def _add(self, document: Document, said: SaidOperations) -> None:
        if said.is_carried:
            self._unmet[document.num, NO_KEY, said.name] = 1
        for key, is_there in said.values.items():
            pair = (document.num, key, said.name)
            copies = self._rows.setdefault(pair, [])
            replaced = copies[0].replaced if copies else self._take_unmet(pair)
            more = (said.positions.get(key), said.added.get(key))
            row = _Row(*pair, said.num, said.num, document.depth, is_there, False, 0, *more, is_new=True)
            copies.append(row)
            self.settle(row, is_live=True, replaced=replaced)
        for key, name in sorted(said.replaces):
            self._replacements.append((said.num, document.num, key, name))
            self.replace((document.num, key, name), 1)

    def flip(self, nums: Sequence[int], doc_nums: set[int], *, is_void: bool) -> None:
        """Let commits count in these documents, or no longer. Costs O(their operations and what these replace)."""
        for part in chunks(nums):
            said = [
                one
                for one in map(_row, select_in(self.connection, _OF_SOURCES, part))
                if one.doc_num in doc_nums
            ]
            replaced = [
                pair for pair in select_in(self.connection, _REPLACED_BY, part) if pair[0] in doc_nums
            ]
            self.load([*((one.doc_num, one.key, one.name) for one in said), *replaced])
            for one in said:
                for row in self._rows[one.doc_num, one.key, one.name]:
                    if row.source_num == one.source_num:
                        self.settle(row, is_live=not is_void, replaced=row.replaced)
            for doc_num, key, name in replaced:
                self.replace((doc_num, key, name), -1 if is_void else 1)

    def replace(self, pair: _Pair, by: int) -> None:
        """Count this many more operations that replace those of a name about a key."""
        rows = self._rows.get(pair, ())
        for row in rows:
            self.settle(row, is_live=row.is_live, replaced=row.replaced + by)
        if not rows:
            self._unmet[pair] = self._find_unmet(pair) + by

    def store(self, changed_num: int) -> None:
        """Write the rows, and what stands. `changed_num` is a number of the sequence of commits that none had before."""
        came, went = list[_Row](), list[_Row]()
        new, kept = list[tuple[object, ...]](), list[tuple[object, ...]]()
        for row in self._changed.values():
            stands = row.stands
            if stands is not row.stood:
                (came if stands else went).append(row)
            if row.is_new:
                new.append(_values_of(row))
            else:
                kept.append((row.is_live, row.replaced, row.doc_num, row.key, row.name, row.source_num))
        there_came = {(row.doc_num, row.key) for row in came if row.is_there}
        there_went = {(row.doc_num, row.key) for row in went if row.is_there}
        were_there = there_went | self._find_there(there_came - there_went)
        placed = {(row.doc_num, row.key) for row in (*came, *went) if row.position is not None}
        more = dict.fromkeys({row.doc_num for row in (*came, *went)}, 0)
        counted = {(row.doc_num, row.key, row.name) for row in (*came, *went) if row.added is not None}
        came, went = ([row for row in some if row.added is None] for some in (came, went))
        places = load_places_of(self.connection, {row.place_num for row in (*came, *went)})
        change_rows(
            self.connection,
            _DROP_TIP,
            [(row.doc_num, row.key, row.depth, *places[row.place_num], row.source_num) for row in went],
        )
        tips = [
            (
                *(row.doc_num, row.key, row.depth, *places[row.place_num], row.source_num),
                *(row.name, row.is_there, row.position),
            )
            for row in came
        ]
        insert_rows(self.connection, document_tips, TIP_COLUMNS, sorted(tips))
        insert_rows(self.connection, document_operations, OPERATION_COLUMNS, new)
        change_rows(self.connection, _CHANGE, kept)
        keep_positions(self.connection, placed)
        keep_counters(self.connection, self._find_counters(counted))
        columns = ("commit_num", "doc_num", "key", "name")
        insert_rows(self.connection, document_replacements, columns, self._replacements)
        change_rows(self.connection, _DROP_UNMET, list(self._unmet))
        unmet = [(*pair, count) for pair, count in self._unmet.items() if count]
        insert_rows(self.connection, document_unmet, ("doc_num", "key", "name", "replaced"), unmet)
        are_there = there_came | self._find_there(there_went - there_came)
        for doc_num, _ in are_there:
            more[doc_num] += 1
        for doc_num, _ in were_there:
            more[doc_num] -= 1
        change_rows(self.connection, _CHANGED, [(count, changed_num, num) for num, count in more.items()])

    def _find_counters(self, pairs: Iterable[_Pair]) -> dict[tuple[int, bytes], Counter]:
        """Return by how much counters change. Copies of an increment that say the same are one."""
        found: dict[tuple[int, bytes], Counter] = {}
        for doc_num, key, name in pairs:
            copies = [row for row in self._rows[doc_num, key, name] if row.added is not None]
            before = {row.added or 0 for row in copies if row.stood}
            after = {row.added or 0 for row in copies if row.stands}
            count, added = found.get((doc_num, key), Counter(0, 0))
            count, added = count + len(after) - len(before), added + sum(after) - sum(before)
            found[doc_num, key] = Counter(count, added)
        return found

    def _find_unmet(self, pair: _Pair) -> int:
        doc_num, key, name = pair
        if pair in self._unmet:
            return self._unmet[pair]
        if not self._has_any_unmet(doc_num):
            return 0
        row = select_rows(self.connection, _UNMET, doc=doc_num, key=key, name=name).first()
        return 0 if row is None else row[0]

    def _has_any_unmet(self, doc_num: int) -> bool:
        """Return True if anything of `document_unmet` was here before: counts, or names of carried commits."""
        if doc_num not in self._has_unmet:
            self._has_unmet[doc_num] = bool(list(select_rows(self.connection, _ANY_UNMET, doc=doc_num)))
        return self._has_unmet[doc_num]

    def _take_unmet(self, pair: _Pair) -> int:
        count = self._find_unmet(pair)
        if count:
            self._unmet[pair] = 0
        return count

    def _find_there(self, keys: Iterable[tuple[int, bytes]]) -> set[tuple[int, bytes]]:
        """Return those of some keys that are there: by one statement for all of a document. Costs O(keys log n)."""
        wanted: dict[int, list[tuple[bytes, None]]] = {}
        for doc_num, key in keys:
            wanted.setdefault(doc_num, []).append((key, None))
        return {
            (doc_num, key)
            for doc_num, pairs in wanted.items()
            for part in chunks(pairs, LOOKUP_COUNT_MAX // 2)
            for (key,) in select_pairs(self.connection, _THERE, part, doc=doc_num)
        }


def _row(found: tuple[object, ...]) -> _Row:
    row = _Row(*found)  # type: ignore[arg-type]  # as _OPERATION has them
    row.is_there, row.is_live = bool(row.is_there), bool(row.is_live)  # SQLite has no truth values
    row.stood = row.stands
    return row


def load_places_of(connection: Connection, nums: Iterable[int]) -> dict[int, tuple[int, int, CommitId]]:
    """Load the places of commits in their branches: checkpoints passed, rank and id. Costs O(nums)."""
    found: dict[int, tuple[int, int, CommitId]] = {}
    for part in chunks(sorted(nums)):
        for num, *place in select_in(connection, _PLACES, part):
            passed, rank, commit_id = place
            found[num] = passed, rank, commit_id
    return found


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


def add_operations(
    connection: Connection, said: Iterable[tuple[Document, SaidOperations]], changed_num: int
) -> None:
    """Add what accepted commits of documents say. Costs O(what they say), each part of it O(log n)."""
    added: list[tuple[Document, SaidOperations]] = []
    stale: set[int] = set()
    for document, one in said:
        if document.is_stale or document.num in stale:
            continue
        if document.has_snapshots and (one.is_carried or _is_copied(connection, document, one.name)):
            stale.add(document.num)  # a snapshot may cover it by its name
            continue
        added.append((document, one))
    changes = Changes(connection)
    changes.add_all(added)
    changes.store(changed_num)
    mark_stale(connection, stale)


def _is_copied(connection: Connection, document: Document, name: CommitId) -> bool:
    return select_rows(connection, _UNMET, doc=document.num, key=NO_KEY, name=name).first() is not None


def flip_operations(
    database: Database, connection: Connection, nums: Sequence[int], *, is_void: bool
) -> None:
    """Let commits that became void, or count again, do so in documents. Costs O(their operations), each O(log n)."""
    by_document = _find_changed(connection, nums)
    if by_document:
        changes = Changes(connection)
        found = sorted({num for some in by_document.values() for num in some})
        changes.flip(found, set(by_document), is_void=is_void)
        changes.store(next_change(database, connection))


def move_operations(
    database: Database, connection: Connection, moved: Mapping[int, tuple[int, int, CommitId]], by: int
) -> None:
    """Move commits' operations behind this many more checkpoints. `moved`: their old places. Costs O(operations)."""
    by_document = _find_changed(connection, list(moved))
    found = sorted({num for some in by_document.values() for num in some})
    rows = [
        row
        for part in chunks(found)
        for row in map(_row, select_in(connection, _OF_SOURCES, part))
        if row.stands and row.doc_num in by_document
    ]
    if not rows:
        return
    placed = {(row.doc_num, row.key) for row in rows if row.position is not None}
    tipped = [row for row in rows if row.added is None]
    gone = [(row.doc_num, row.key, row.depth, *moved[row.place_num], row.source_num) for row in tipped]
    change_rows(connection, _DROP_TIP, gone)
    tips: list[tuple[object, ...]] = []
    for row in tipped:
        passed, rank, commit_id = moved[row.place_num]
        place = (row.depth, passed + by, rank, commit_id)
        tips.append((row.doc_num, row.key, *place, row.source_num, row.name, row.is_there, row.position))
    insert_rows(connection, document_tips, TIP_COLUMNS, tips)
    keep_positions(connection, placed)
    at = next_change(database, connection)
    change_rows(connection, _CHANGED, [(0, at, num) for num in sorted({row.doc_num for row in rows})])


def mark_stale_of(connection: Connection, nums: Sequence[int]) -> None:
    """Let the documents that these commits are of be made anew. Costs O(nums and these documents)."""
    _mark_stale_if(connection, nums, is_any=True)


def forget_operations(connection: Connection, nums: Sequence[int]) -> None:
    """Delete what rows say of bodies that were erased: items and keys lie there in the clear. Costs O(their operations).

    The documents are stale (`mark_stale_of`), and are made anew without them.
    """
    operations, tips = document_operations.c, document_tips.c
    for part in chunks(nums):
        of_bodies = operations.source_num.in_(part)
        for doc_num, key in connection.execute(
            select(operations.doc_num, operations.key).where(of_bodies)
        ).all():
            of_key = (tips.doc_num == doc_num) & (tips.key == key)
            said = tips.source_num.in_(part) | (tips.depth == COUNTER_DEPTH)
            connection.execute(delete(document_tips).where(of_key & said))
        of_documents = select(operations.doc_num).where(of_bodies).distinct()
        forget_places(connection, list(connection.execute(of_documents).scalars()))
        stale = document_positions.c.doc_num.in_(of_documents)
        connection.execute(delete(document_positions).where(stale))
        connection.execute(delete(document_operations).where(of_bodies))
        connection.execute(delete(document_replacements).where(document_replacements.c.commit_num.in_(part)))


def next_change(database: Database, connection: Connection) -> int:
    """Return a number of the sequence of commits that no later commit or change has."""
    num = database.next_nums(connection, commits, 1)[0]
    reserve_numbers_to(connection, commits, num)
    return num


def mark_stale(connection: Connection, doc_nums: Iterable[int]) -> None:
    """Let documents be made anew before they are read."""
    for part in chunks(sorted(doc_nums)):
        connection.execute(update(documents).where(documents.c.num.in_(part)).values(is_stale=True))


def _find_changed(connection: Connection, nums: Sequence[int]) -> dict[int, list[int]]:
    """Find documents of these commits whose rows can be changed, each with those of the commits that it has."""
    return _mark_stale_if(connection, nums, is_any=False)


def _mark_stale_if(connection: Connection, nums: Sequence[int], *, is_any: bool) -> dict[int, list[int]]:
    """Mark documents of these commits as stale where their rows cannot follow; return the others with their commits."""
    changed: dict[int, list[int]] = {}
    stale: set[int] = set()
    known: dict[tuple[int, str, str], list[Document]] = {}
    for part in chunks(nums):
        query = select(commits.c.num, commits.c.branch_num, commits.c.body_kind, commits.c.document)
        wanted = commits.c.num.in_(part) & commits.c.body_kind.in_(BODY_KINDS)
        for num, branch_num, body_kind, name in connection.execute(query.where(wanted)):
            place = (branch_num, body_kind, name)
            if place not in known:
                known[place] = _find_documents(connection, *place)
            for document in known[place]:
                if is_any or num <= document.made_upto or body_kind in _SNAPSHOTS:
                    stale.add(document.num)
                else:
                    changed.setdefault(document.num, []).append(num)
    mark_stale(connection, stale)
    return {doc_num: found for doc_num, found in changed.items() if doc_num not in stale}


def _find_documents(connection: Connection, branch_num: int, body_kind: str, name: str) -> list[Document]:
    """Find documents of a name that a branch's commits are of and that are not stale, also of branches that continue it."""
    kinds = [KIND_OF[body_kind]] if body_kind in KIND_OF else list(VALUES_KINDS)
    query = select(*_DOCUMENT).where(
        documents.c.kind.in_(kinds),
        documents.c.name == name,
        (documents.c.branch_num == branch_num) | (documents.c.depth > 0),
        ~documents.c.is_stale,
    )
    found = [_document(tuple(row)) for row in connection.execute(query)]
    return [one for one in found if branch_num in (one.branch_num, *unpack_nums(one.origins))]


def _document(row: tuple[object, ...]) -> Document:
    found = Document(*row)  # type: ignore[arg-type]  # as _DOCUMENT has them
    return found._replace(is_stale=bool(found.is_stale), has_snapshots=bool(found.has_snapshots))
