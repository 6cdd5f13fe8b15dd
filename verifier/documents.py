"""Reduces a branch's commits to a set or a dict (CRDTs). Pure; arrival order does not matter.

Functions of the set of commits alone.

Each reducer takes what accepted commits say that are not void, in any order, and gives the same for the same commits.

**Operations.** A `set1` or `dict1` says one operation about each item or key that it has: there (with a value), or gone. An
operation is named by its commit's id (of a carried commit that of its origin), and *stands* unless one about the same item
or key names it. So an author replaces what it had seen, and what it had not seen stays beside that:

    add a                     a is there
    add a <- delete a         a is gone: the delete names the add
    add a <- delete a         a is there: the second add was not seen, and stands
    add a

What an operation names that says nothing of its item, or never was, changes nothing. Where an operation is void,
what it had replaced stands again. No clock, hash or locale decides whether an operation stands; of several values of one key
the last in canonical order is shown first.

**Snapshots.** A snapshot says again which operations stand of all that it has in its past, about a range of items or keys;
they stay the operations of the commits that said them, so anyone who replaces one of these by its name still does. Where a
snapshot counts, what is in its past says nothing of its own about that range, and an operation from there stands if every
snapshot on top that has it in its past says it again. So it comes to the same whether the bodies in its past
are here or erased, and concurrent snapshots agree: what one of them had seen replaced is replaced. Of the snapshots that
cover a key, those are *on top* that no other one of them has in its past. Snapshots are bits here, so that "has one of these
in its past" is one `&`.

Texts are `texts`'s.
"""

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from protocol.formats.body import kind_name
from protocol.formats.document_kinds import (
    DOCUMENT_KINDS,
    DocumentBody,
    DocumentKind,
    ValuesEdit,
    ValuesSnapshot,
)
from protocol.ids import CommitId

OrderKey = tuple[int, int, int, CommitId]
"""Key of canonical order: the branch among those that continue one another (the first is 0), checkpoints passed, rank,
commit id."""
_SILENT: Final[dict[str, DocumentBody]] = {
    kind_name(body): kind.nothing for kind in DOCUMENT_KINDS for body in kind.declared
}


@dataclass(frozen=True, slots=True)
class DocumentCommit:
    """Commit as a document reads it (body None: erased); `name` is the id that it had first.

    Snapshots of the document have a `bit` each; `covered_by` are the bits of those that have the commit in their past.
    """

    name: CommitId
    place: OrderKey
    body: DocumentBody | None
    bit: int = 0
    covered_by: int = 0


class DocumentValue(NamedTuple):
    """Operation that stands: the value of an item or key, or None if it is gone. An item's value is ""."""

    name: CommitId
    place: OrderKey
    value: str | None


class DocumentEntry(NamedTuple):
    """Standing operations about one item or key, in canonical order: its *tips*, which the next one replaces."""

    tips: tuple[DocumentValue, ...]

    @property
    def values(self) -> tuple[DocumentValue, ...]:
        """Return the operations that say it is there, the last in canonical order first; none: it is gone."""
        return tuple([operation for operation in reversed(self.tips) if operation.value is not None])


class ErasedValues(Exception):
    """Error of a document that cannot be told, since bodies were erased that no snapshot stands for."""

    def __init__(self, count: int) -> None:
        super().__init__(f"{count} bodies that the document needs are not here")
        self.count = count


def reduce_values(said: Iterable[DocumentCommit]) -> dict[str, DocumentEntry]:
    """Reduce commits to the entries of all items or keys of one document that anything stands about.

    Costs O(operations and what they replace): a commit has at most REPLACED_COUNT_MAX of these.

    Args:
        said: Commits that are accepted and not void, in any order.

    Returns:
        By item or key. An item is in a set where its entry has values; a dict's value is the first of its entry's.

    Raises:
        ErasedValues: Bodies were erased that no snapshot stands for.
    """
    return _reduce_values(said)


def snapshot_values(
    entries: Mapping[str, DocumentEntry], first: str, end: str | None
) -> dict[CommitId, dict[str, str]]:
    """Return what a snapshot restates: by commit, the items or keys of its range and their values."""
    start, stop = first.encode(), None if end is None else end.encode()
    operations: dict[CommitId, dict[str, str]] = {}
    for key, entry in entries.items():
        if start <= key.encode() and (stop is None or key.encode() < stop):
            for operation in entry.values:
                assert operation.value is not None, "it says that it is there"
                operations.setdefault(operation.name, {})[key] = operation.value
    return operations


def find_settled(said: Iterable[DocumentCommit]) -> list[DocumentCommit]:
    """Find commits of a set or dict that may be erased: snapshots restate all that stands of them."""
    everything = list(said)
    coverage = cover(everything)
    return [one for one in everything if coverage.is_settled(one.covered_by)]


def find_false_snapshots(said: Sequence[DocumentCommit]) -> list[DocumentCommit]:
    """Find snapshots that differ from the result of their past, as far as its bodies are here.

    A commit that became void since may make an honest one look false. Costs a reduction for each snapshot.
    """
    false: list[DocumentCommit] = []
    for snapshot in said:
        if not isinstance(snapshot.body, ValuesSnapshot):
            continue
        past = [one for one in said if one.covered_by & snapshot.bit]
        bits = sum(one.bit for one in past)
        past = [replace(one, covered_by=one.covered_by & bits) for one in past]
        try:
            entries = _reduce_values(past)
        except ErasedValues:
            continue
        operations = snapshot_values(entries, snapshot.body.first, snapshot.body.end)
        wanted = {(name, key, value) for name, held in operations.items() for key, value in held.items()}
        if set(snapshot.body.restated()) != wanted:
            false.append(snapshot)
    return false


@dataclass(frozen=True, slots=True)
class PlacedSnapshot:
    """Snapshot: its bit, the bits of those in whose past it is, and its range of keys as UTF-8 bytes."""

    bit: int
    covered_by: int
    first: bytes
    end: bytes | None


class Coverage:
    """Keys that the snapshots of one document cover. Costs O(n^2) in their number, once."""

    def __init__(self, snapshots: Sequence[PlacedSnapshot]) -> None:
        """Divide all keys where a snapshot begins or ends."""
        ends = {one.end for one in snapshots if one.end is not None}
        self._starts = sorted({b"", *(one.first for one in snapshots), *ends})
        self._relevant: list[int] = []
        self._on_top: list[int] = []
        for start in self._starts:
            here = [one for one in snapshots if one.first <= start and (one.end is None or start < one.end)]
            relevant = _union(one.bit for one in here)
            self._relevant.append(relevant)
            self._on_top.append(_union(one.bit for one in here if not one.covered_by & relevant))

    def on_top(self, key: str) -> int:
        """Return the bits of the snapshots that decide about a key. Costs O(log n)."""
        return self._on_top[bisect_right(self._starts, key.encode()) - 1]

    def is_settled(self, covered_by: int) -> bool:
        """Return True if a commit in the past of these snapshots says nothing of its own about any key."""
        return all(relevant & covered_by for relevant in self._relevant)


def _union(bits: Iterable[int]) -> int:
    union = 0
    for bit in bits:
        union |= bit
    return union


def cover(said: Sequence[DocumentCommit]) -> Coverage:
    """Compute what the snapshots among these commits cover."""
    return Coverage(
        [
            PlacedSnapshot(
                one.bit,
                one.covered_by,
                one.body.first.encode(),
                None if one.body.end is None else one.body.end.encode(),
            )
            for one in said
            if one.bit and isinstance(one.body, ValuesSnapshot)
        ]
    )


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation about an item or key, and the commit whose body says it: its own, a carried copy, or a snapshot."""

    name: CommitId
    key: str
    value: str | None
    place: OrderKey
    source: CommitId


@dataclass(frozen=True, slots=True)
class Operations:
    """Operations of a document that count, in canonical order, and how many others replace each by name and key."""

    counting: list[Operation]
    replaced: Counter[tuple[CommitId, str]]

    def standing(self) -> Iterator[Operation]:
        """Yield those that stand."""
        return (one for one in self.counting if not self.replaced[one.name, one.key])


def find_operations(said: Iterable[DocumentCommit]) -> Operations:
    """Find the operations of a document that count. Costs and raises as `reduce_values`."""
    said = sorted(said, key=_place_of)
    coverage = cover(said)
    missing = sum(one.body is None and not coverage.is_settled(one.covered_by) for one in said)
    if missing:
        raise ErasedValues(missing)
    places: dict[CommitId, OrderKey] = {}
    covered_by: dict[CommitId, int] = {}  # by name: what was carried twice is one operation
    for one in said:
        if one.covered_by:
            covered_by[one.name] = covered_by.get(one.name, 0) | one.covered_by
    for one in said if covered_by else ():
        places.setdefault(one.name, one.place)

    counting: list[Operation] = []
    replaced: Counter[tuple[CommitId, str]] = Counter()
    for one in said:
        if not isinstance(one.body, ValuesEdit):
            continue
        own = one.body.values()
        covered = covered_by.get(one.name, 0) if covered_by else 0
        if covered:
            own = {key: value for key, value in own.items() if not covered & coverage.on_top(key)}
        source = one.place[-1]
        counting += [Operation(one.name, key, value, one.place, source) for key, value in own.items()]
        for key, names in one.body.replaced().items():
            if key in own:
                replaced.update([(name, key) for name in names])
    again = [
        Operation(name, key, value, places[name], source)
        for name, key, value, source in _said_again(said, coverage, covered_by)
    ]
    if again:  # else they stand in order already
        counting = sorted(counting + again, key=_place_of)
    return Operations(counting, replaced)


def _reduce_values(said: Iterable[DocumentCommit]) -> dict[str, DocumentEntry]:
    tips: dict[str, dict[tuple[CommitId, str | None], DocumentValue]] = {}
    for one in find_operations(said).standing():
        tip = DocumentValue(one.name, one.place, one.value)
        tips.setdefault(one.key, {}).setdefault((one.name, one.value), tip)
    return {key: DocumentEntry(tuple(found.values())) for key, found in tips.items()}


def _place_of(one: DocumentCommit | Operation) -> OrderKey:
    return one.place


def _said_again(
    said: Sequence[DocumentCommit], coverage: Coverage, covered_by: Mapping[CommitId, int]
) -> Iterator[tuple[CommitId, str, str, CommitId]]:
    """Yield operations that all snapshots on top with them in their past say again, each with one of these."""
    sayers: dict[tuple[CommitId, str, str], int] = {}
    sources: dict[tuple[CommitId, str, str], CommitId] = {}
    for one in said:
        if one.bit and isinstance(one.body, ValuesSnapshot):
            for name, key, value in one.body.restated():
                if one.bit & covered_by.get(name, 0) & coverage.on_top(key):
                    sayers[name, key, value] = sayers.get((name, key, value), 0) | one.bit
                    sources[name, key, value] = one.place[-1]
    for (name, key, value), bits in sayers.items():
        if bits == covered_by[name] & coverage.on_top(key):
            yield name, key, value, sources[name, key, value]


def empty_body(body_kind: str) -> DocumentBody | None:
    """Return an empty body for one that cannot be read, by the kind in its header; None: of no document.

    It keeps its name and place: snapshots may say of it what they say of one whose body is not here.
    """
    return _SILENT.get(body_kind)


def pass_over_missing(kind: DocumentKind, said: Iterable[DocumentCommit]) -> list[DocumentCommit]:
    """Replace bodies that are not here by ones that say nothing of the document."""
    return [one if one.body is not None else replace(one, body=kind.nothing) for one in said]


def in_byte_order(entries: Mapping[str, DocumentEntry]) -> list[str]:
    """Sort the items or keys that are there by their UTF-8 bytes: the same order on every machine."""
    return sorted((key for key, entry in entries.items() if entry.values), key=lambda key: key.encode())
