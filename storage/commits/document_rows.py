"""Keeps what the operations of sets and dicts come to, in the transaction that changes them, at the cost of the change.

An operation *stands* if its commit counts and no operation that counts names it about its key (`verifier.documents`). Both
are kept in its row, as a mark and a count over a set, so the order of steps decides nothing: `Changes.settle` is the only
place where they change. Places order what stands, and decide nothing else.

Three things make a document *stale* instead, which is then made anew from its commits before it is read: a snapshot that
comes, goes or covers what changes; a body that comes or goes; and any change of a commit that was there when the document
was last made anew. That costs O(its commits), once for all that happened until then.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Final, NamedTuple

from sqlalchemy import Connection, bindparam, delete, select, update

from protocol.ids import CommitId
from storage.commits.document_counters import COUNTER_DEPTH, INCREMENT_COLUMNS, Counter, keep_counters
from storage.commits.document_index_rows import forget_places
from storage.commits.document_positions import keep_positions
from storage.commits.documents import Document, find_changed, mark_stale, mark_stale_of, next_change
from storage.engine.bulk import (
    WANTED,
    change_rows,
    insert_rows,
    select_in,
    select_rows,
    select_wanted,
)
from storage.engine.database import Database
from storage.engine.id_keys import LOOKUP_COUNT_MAX, PackedIds, chunks, id_key, pack_ids, unpack_ids
from storage.schema.document_schema import (
    document_increments,
    document_operations,
    document_positions,
    document_sources,
    document_tips,
    document_unmet,
    documents,
)
from storage.schema.schema import commits

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
OPERATION_COLUMNS: Final = (*(column.name for column in _OPERATION), "replaces")
_OWN: Final = (
    select(*_OPERATION, commits.c.passed, commits.c.rank)
    .select_from(WANTED, commits, document_operations)
    .where(
        commits.c.id_key == WANTED.c.one,
        commits.c.commit_id == WANTED.c.third,
        document_operations.c.doc_num == bindparam("doc"),
        document_operations.c.source_num == commits.c.num,
        document_operations.c.key == WANTED.c.other,
        document_operations.c.name == commits.c.commit_id,
    )
)
_STANDING: Final = (
    select(
        document_tips.c.key,
        document_tips.c.name,
        document_tips.c.source_num,
        document_tips.c.depth,
        document_tips.c.passed,
        document_tips.c.rank,
        document_tips.c.is_there,
        document_tips.c.position,
    )
    .where(
        document_tips.c.doc_num == bindparam("doc"),
        document_tips.c.key.in_(bindparam("keys", expanding=True)),
        document_tips.c.depth > COUNTER_DEPTH,
    )
    .limit(bindparam("limit"))
)
_STANDING_LOOKED_MAX: Final = 4
"""Operations that are looked at for each key that is said something of: most keys have one that stands."""
_COPIES: Final = (
    select(*_OPERATION)
    .select_from(WANTED, document_sources, document_operations)
    .where(
        document_sources.c.doc_num == bindparam("doc"),
        document_sources.c.name == WANTED.c.other,
        document_operations.c.doc_num == document_sources.c.doc_num,
        document_operations.c.source_num == document_sources.c.source_num,
        document_operations.c.key == WANTED.c.one,
        document_operations.c.name == document_sources.c.name,
    )
)
_OF_SOURCES: Final = (
    select(*_OPERATION, document_operations.c.replaces)
    .select_from(WANTED, document_operations)
    .where(
        document_operations.c.doc_num == WANTED.c.one,
        document_operations.c.source_num == WANTED.c.other,
    )
)
_UNMET: Final = select(document_unmet.c.replaced).where(
    document_unmet.c.doc_num == bindparam("doc"),
    document_unmet.c.key == bindparam("key"),
    document_unmet.c.name == bindparam("name"),
)
_SOURCE: Final = (
    select(document_sources.c.source_num)
    .where(document_sources.c.doc_num == bindparam("doc"), document_sources.c.name == bindparam("name"))
    .limit(1)
)
_HAS: Final = select(
    select(document_unmet.c.key).where(document_unmet.c.doc_num == bindparam("doc")).exists(),
    select(document_sources.c.name).where(document_sources.c.doc_num == bindparam("doc")).exists(),
)
_THERE: Final = select(WANTED.c.one).where(
    select(document_tips.c.rank)
    .where(
        document_tips.c.doc_num == bindparam("doc"),
        document_tips.c.key == WANTED.c.one,
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
_DROP_SAID: Final = delete(document_tips).where(
    document_tips.c.doc_num == bindparam("doc"),
    document_tips.c.key == bindparam("of_key"),
    (document_tips.c.source_num == bindparam("source")) | (document_tips.c.depth == bindparam("of_depth")),
)
_DROP_INCREMENT: Final = delete(document_increments).where(
    document_increments.c.doc_num == bindparam("doc"),
    document_increments.c.key == bindparam("of_key"),
    document_increments.c.source_num == bindparam("source"),
    document_increments.c.name == bindparam("of_name"),
)
_DROP_OPERATIONS: Final = delete(document_operations).where(
    document_operations.c.doc_num == bindparam("doc"), document_operations.c.source_num == bindparam("source")
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
SOURCE_COLUMNS: Final = ("doc_num", "name", "source_num")
TIP_COLUMNS: Final = tuple(
    column.name for column in document_tips.columns if column.name not in ("added_count", "added")
)


class SaidOperation(NamedTuple):
    """Operation about a key, with the names of those that it replaces, each once.

    `position` and `added` are of items and counters.
    """

    key: bytes
    is_there: bool
    replaces: tuple[CommitId, ...]
    position: bytes | None = None
    added: int | None = None


class SaidOperations(NamedTuple):
    """An accepted commit as a document reads it: one operation for each key."""

    num: int
    name: CommitId
    is_carried: bool
    operations: Sequence[SaidOperation]


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
    replaces: PackedIds | None = None
    """Only of new rows."""
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
    _sources: list[tuple[int, CommitId, int]] = field(default_factory=list)
    _places: dict[int, tuple[int, int, CommitId]] = field(default_factory=dict)
    """By number of a commit, as `load_places_of`: known with its operations."""
    _had: dict[int, tuple[bool, bool]] = field(default_factory=dict)  # `_find_had`

    def settle(self, row: _Row, *, is_live: bool, replaced: int) -> None:
        """Change whether a row's commit counts, or how many operations replace it: all else follows in `store`."""
        row.is_live, row.replaced = is_live, replaced
        self._changed[id(row)] = row

    def load(self, pairs: Iterable[_Pair]) -> None:
        """Load the operations of names about keys: by two statements for all of a document. Costs O(pairs log n).

        The first looks at what stands, which a new operation mostly replaces: that leads past no commit. Of a document with
        operations that other commits say of their names, another one asks for these instead.
        """
        wanted: dict[int, list[_Pair]] = {}
        for pair in pairs:
            if pair not in self._rows:
                self._rows[pair] = []
                wanted.setdefault(pair[0], []).append(pair)
        for doc_num, pairs_of in wanted.items():
            _, has_sources = self._find_had(doc_num)
            if not has_sources:
                self._load_standing(doc_num, {key for _, key, _ in pairs_of})
            missing = [(key, name) for _, key, name in pairs_of if not self._rows[doc_num, key, name]]
            for part in chunks(missing, LOOKUP_COUNT_MAX // 2):
                own = [(id_key(name), key, name) for key, name in part]
                for *values, passed, rank in select_wanted(self.connection, _OWN, own, doc=doc_num):
                    row = self._add_loaded(tuple(values))
                    self._places[row.source_num] = passed, rank, row.name
                copies = select_wanted(self.connection, _COPIES, part, doc=doc_num) if has_sources else ()
                for found in copies:
                    self._add_loaded(found)

    def _load_standing(self, doc_num: int, keys: Set[bytes]) -> None:
        """Load some operations that stand about keys, of those that are asked for. Each is said by its own commit."""
        for part in chunks(sorted(keys)):
            limit = _STANDING_LOOKED_MAX * len(part)
            for found in select_in(self.connection, _STANDING, part, doc=doc_num, limit=limit):
                key, name, num, depth, passed, rank, is_there, position = found
                rows = self._rows.get((doc_num, key, name))
                if rows is not None and not rows:
                    place = (doc_num, key, name, num, num, depth)
                    rows.append(_Row(*place, bool(is_there), True, 0, position, None, stood=True))
                    self._places[num] = passed, rank, name

    def _add_loaded(self, values: tuple[object, ...]) -> _Row:
        row = _row(values)
        self._rows[row.doc_num, row.key, row.name].append(row)
        return row

    def add_all(self, added: Sequence[tuple[Document, SaidOperations]]) -> None:
        """Add the operations of commits that count. Costs O(keys and what they replace), each O(log n).

        Of a new commit nothing is looked up, unless a copy, a snapshot or what replaces it may have come before.
        """
        new = {
            (document.num, one.name)
            for document, one in added
            if not (one.is_carried or document.has_snapshots or any(self._find_had(document.num)))
        }
        self.load(
            [
                (document.num, said.key, name)
                for document, one in added
                for said in one.operations
                for name in (one.name, *said.replaces)
                if (document.num, name) not in new
            ]
        )
        for document, one in added:
            self._add(document, one)

    def _add(self, document: Document, said: SaidOperations) -> None:
        doc_num, name, num = document.num, said.name, said.num
        if said.is_carried:
            self._sources.append((doc_num, name, num))
        may_be_unmet = bool(self._unmet) or self._find_had(doc_num)[0]
        for key, is_there, replaces, position, added in said.operations:
            replaced, copies = 0, self._rows.setdefault((doc_num, key, name), [])
            if copies:
                replaced = copies[0].replaced
            elif may_be_unmet:
                replaced = self._take_unmet((doc_num, key, name))
            packed = pack_ids(replaces) if replaces else None
            place = (doc_num, key, name, num, num, document.depth)
            row = _Row(*place, is_there, True, replaced, position, added, packed, False, is_new=True)
            copies.append(row)
            self._changed[id(row)] = row
        for key, _, replaces, *_ in said.operations:
            for other in replaces:
                self.replace((doc_num, key, other), 1)

    def flip(self, by_document: Mapping[int, Sequence[int]], *, is_void: bool) -> None:
        """Let commits of documents count, or no longer. Costs O(their operations and what these replace)."""
        for part in _sources_of(by_document):
            found = [
                (_row(tuple(values)), unpack_ids(replaces or PackedIds(b"")))
                for *values, replaces in select_wanted(self.connection, _OF_SOURCES, part)
            ]
            self.load(
                (one.doc_num, one.key, name) for one, replaces in found for name in (one.name, *replaces)
            )
            for one, _ in found:
                for row in self._rows[one.doc_num, one.key, one.name]:
                    if row.source_num == one.source_num:
                        self.settle(row, is_live=not is_void, replaced=row.replaced)
            for one, replaces in found:
                for name in replaces:
                    self.replace((one.doc_num, one.key, name), -1 if is_void else 1)

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
        added_came, added_went = list[_Row](), list[_Row]()  # of counters
        new, kept = list[tuple[object, ...]](), list[tuple[object, ...]]()
        there_came, there_went, placed = (set[tuple[int, bytes]]() for _ in range(3))
        for row in self._changed.values():
            stands = row.is_live and not row.replaced
            if stands is not row.stood:
                key = (row.doc_num, row.key)
                if row.is_there:
                    (there_came if stands else there_went).add(key)
                if row.position is not None:
                    placed.add(key)
                if row.added is None:
                    (came if stands else went).append(row)
                else:
                    (added_came if stands else added_went).append(row)
            if row.is_new:
                new.append(_values_of(row))
            else:
                kept.append((row.is_live, row.replaced, row.doc_num, row.key, row.name, row.source_num))
        were_there = there_went | self._find_there(there_came - there_went)
        more = {row.doc_num: 0 for some in (came, went, added_came, added_went) for row in some}
        self._store_increments(added_came, added_went)
        placed_nums = {row.place_num for row in (*came, *went)}
        places = self._places | load_places_of(self.connection, placed_nums - self._places.keys())
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
        insert_rows(self.connection, document_sources, SOURCE_COLUMNS, self._sources)
        keep_positions(self.connection, placed)
        counted = {(row.doc_num, row.key, row.name) for row in (*added_came, *added_went)}
        keep_counters(self.connection, self._find_counters(counted))
        change_rows(self.connection, _DROP_UNMET, list(self._unmet))
        unmet = [(*pair, count) for pair, count in self._unmet.items() if count]
        insert_rows(self.connection, document_unmet, ("doc_num", "key", "name", "replaced"), unmet)
        are_there = there_came | self._find_there(there_went - there_came)
        for doc_num, _ in are_there:
            more[doc_num] += 1
        for doc_num, _ in were_there:
            more[doc_num] -= 1
        change_rows(self.connection, _CHANGED, [(count, changed_num, num) for num, count in more.items()])

    def _store_increments(self, came: Iterable[_Row], went: Iterable[_Row]) -> None:
        gone = [(row.doc_num, row.key, row.source_num, row.name) for row in went]
        change_rows(self.connection, _DROP_INCREMENT, gone)
        rows = [
            (row.doc_num, row.key, row.source_num, row.name, row.place_num, row.depth, row.added)
            for row in came
        ]
        insert_rows(self.connection, document_increments, INCREMENT_COLUMNS, rows)

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
        has_unmet, _ = self._find_had(doc_num)
        if not has_unmet:
            return 0
        row = select_rows(self.connection, _UNMET, doc=doc_num, key=key, name=name).first()
        return 0 if row is None else row[0]

    def _find_had(self, doc_num: int) -> tuple[bool, bool]:
        """Return True for each of `document_unmet` and `document_sources` that had anything of a document before."""
        if doc_num not in self._had:
            [(has_unmet, has_sources)] = select_rows(self.connection, _HAS, doc=doc_num)
            self._had[doc_num] = bool(has_unmet), bool(has_sources)
        return self._had[doc_num]

    def _take_unmet(self, pair: _Pair) -> int:
        count = self._find_unmet(pair)
        if count:
            self._unmet[pair] = 0
        return count

    def _find_there(self, keys: Iterable[tuple[int, bytes]]) -> set[tuple[int, bytes]]:
        """Return the given keys that are there, by one statement for each document. Costs O(keys log n)."""
        wanted: dict[int, list[tuple[bytes, None]]] = {}
        for doc_num, key in keys:
            wanted.setdefault(doc_num, []).append((key, None))
        return {
            (doc_num, key)
            for doc_num, pairs in wanted.items()
            for part in chunks(pairs, LOOKUP_COUNT_MAX // 2)
            for (key,) in select_wanted(self.connection, _THERE, part, doc=doc_num)
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
    return select_rows(connection, _SOURCE, doc=document.num, name=name).first() is not None


def flip_operations(
    database: Database, connection: Connection, nums: Sequence[int], *, is_void: bool
) -> None:
    """Let commits that became void, or count again, do so in documents. Costs O(their operations), each O(log n)."""
    by_document = find_changed(connection, nums)
    if by_document:
        changes = Changes(connection)
        changes.flip(by_document, is_void=is_void)
        changes.store(next_change(database, connection))


def move_operations(
    database: Database, connection: Connection, moved: Mapping[int, tuple[int, int, CommitId]], by: int
) -> None:
    """Move commits' operations behind this many more checkpoints. `moved`: their old places. Costs O(operations)."""
    rows = [
        row
        for part in _sources_of(find_changed(connection, list(moved)))
        for *values, _ in select_wanted(connection, _OF_SOURCES, part)
        if (row := _row(tuple(values))).stands
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


def forget_operations(connection: Connection, nums: Sequence[int]) -> None:
    """Let the documents of erased bodies be made anew, and delete what rows say of these bodies.

    Keys lie there in the clear. Costs O(operations of these bodies, and positions in these documents).
    """
    by_document = mark_stale_of(connection, nums)
    for part in _sources_of(by_document):
        found = [_row(tuple(values)) for *values, _ in select_wanted(connection, _OF_SOURCES, part)]
        said = [(row.doc_num, row.key, row.source_num, COUNTER_DEPTH) for row in found]
        change_rows(connection, _DROP_SAID, said)
        increments = [(row.doc_num, row.key, row.source_num, row.name) for row in found]
        change_rows(connection, _DROP_INCREMENT, increments)
        change_rows(connection, _DROP_OPERATIONS, part)
    forget_places(connection, list(by_document))
    for doc_nums in chunks(list(by_document)):
        connection.execute(delete(document_positions).where(document_positions.c.doc_num.in_(doc_nums)))


def _sources_of(by_document: Mapping[int, Sequence[int]]) -> Iterator[Sequence[tuple[int, int]]]:
    """Yield pairs of a document's number and that of a commit with an operation on it, as `select_wanted` takes
    them."""
    pairs = [(doc_num, num) for doc_num, nums in by_document.items() for num in nums]
    return chunks(pairs, LOOKUP_COUNT_MAX // 2)
