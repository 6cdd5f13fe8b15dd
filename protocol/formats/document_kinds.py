"""Kinds of documents: sets, dicts, JSON documents and texts. Each with its bodies, its bounds, and what the rest derives.

`DOCUMENT_KINDS` is the table. Which bodies are decoded, carried by merges, declared by headers, erased, reduced,
snapshotted and checked follows from it, here and in the verifier and the node.

An operation on an item or key *replaces* those of the commits that it names, as far as these are about the same item or key.
An update of a text names the commits whose words it deletes. A *snapshot* says again which operations stand of
all that it has in its past; of a text, what updates said. `verifier.documents` and `verifier.texts` have the rules.
"""

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar, Final, Self

from msgspec import Meta

from protocol.codec import Wire
from protocol.ids import CommitId
from protocol.limits.formats import KIB

SNAPSHOT_COMMIT_COUNT_MAX: Final = 8 * KIB
"""Commits whose operations one snapshot says again: with these, names and short items fill most of a body."""

DOCUMENT_KEY_SIZE_MAX: Final = 1024
"""Bytes of an item of a set or a key of a dict: databases end rows of an index near 2,700. Larger things are values or
files."""
REPLACED_COUNT_MAX: Final = 2 * KIB
"""Pairs of an operation and a commit that one edit replaces: each changes a few rows of every node that reads it."""

DocumentKey = Annotated[str, Meta(max_length=DOCUMENT_KEY_SIZE_MAX)]


class Replaced(Wire, frozen=True):
    """A commit, by the id that it had first, and the operations of an edit that replace its own about the same key."""

    name: CommitId
    operations: Annotated[
        tuple[Annotated[int, Meta(ge=0, lt=REPLACED_COUNT_MAX)], ...], Meta(max_length=REPLACED_COUNT_MAX)
    ]
    """Places in the edit's list of operations."""


Replaces = Annotated[tuple[Replaced, ...], Meta(max_length=REPLACED_COUNT_MAX)]


class DocumentBody(Wire, frozen=True):
    """Edit or snapshot of a document, as one commit states it."""

    @property
    def value_count(self) -> int:
        """Number of its operations, which is the cost of reducing it."""
        return 1


class ValuesEdit(DocumentBody, frozen=True):
    """Edit with one operation for each of its items or keys: present, with a value, or gone. It has a field `replaces`.

    Its *operations* are what it has of keys, in the order of its fields. It says nothing at all if it replaces more
    than REPLACED_COUNT_MAX, and nothing about keys of more than DOCUMENT_KEY_SIZE_MAX bytes.
    """

    @classmethod
    @abstractmethod
    def make(
        cls, there: Mapping[str, str], gone: tuple[str, ...], replaces: Mapping[str, Iterable[CommitId]]
    ) -> Self:
        """Return an edit that says just this, and what it replaces by item or key. Values of a set's items are ""."""

    @abstractmethod
    def operation_keys(self) -> tuple[str, ...]:
        """Return the item or key of each operation."""

    @abstractmethod
    def stated_values(self) -> dict[str, str | None]:
        """Return what the fields have of each item or key: its value, or None where it is gone."""

    @abstractmethod
    def stated_replaces(self) -> tuple[Replaced, ...]:
        """Return the replaced operations in the form of the field, of lists of numbers and ids."""

    def values(self) -> dict[str, str | None]:
        """Return what it says of each item or key: its value, or None where it is gone."""
        if self._replaces_too_much():
            return {}
        return {key: value for key, value in self.stated_values().items() if is_document_key(key)}

    def replaced(self) -> dict[str, dict[CommitId, None]]:
        """Return the commits whose operations are replaced, in order, by item or key that it says something of."""
        found: dict[str, dict[CommitId, None]] = {}
        replaces = self.stated_replaces()
        keys = self.operation_keys() if replaces else ()
        for one in () if self._replaces_too_much() else replaces:
            for place in one.operations:
                if place < len(keys) and is_document_key(keys[place]):
                    found.setdefault(keys[place], {})[one.name] = None
        return found

    def _replaces_too_much(self) -> bool:
        replaces = self.stated_replaces()
        return len(replaces) > 1 and sum([len(one.operations) for one in replaces]) > REPLACED_COUNT_MAX

    @property
    def value_count(self) -> int:
        """Number of its operations."""
        return len(self.operation_keys())


def is_document_key(key: str) -> bool:
    """Return True if a document can have this item or key."""
    return len(key) * 4 <= DOCUMENT_KEY_SIZE_MAX or len(key.encode()) <= DOCUMENT_KEY_SIZE_MAX


def by_commit(keys: Iterable[str], replaces: Mapping[str, Iterable[CommitId]]) -> tuple[Replaced, ...]:
    """Group the replaced operations of these keys by commit, as an edit's field `replaces` has them."""
    places: dict[CommitId, list[int]] = {}
    for place, key in enumerate(keys):
        for name in dict.fromkeys(replaces.get(key, ())):
            places.setdefault(name, []).append(place)
    return tuple(Replaced(name, tuple(found)) for name, found in places.items())


class ValuesSnapshot(DocumentBody, frozen=True):
    """All operations that stand and say that something is there, in a range of items or keys, as its author had them.

    Items and keys are compared as UTF-8 bytes. The operations stay those of the commits that said them.
    """

    @property
    @abstractmethod
    def first(self) -> str:
        """First key of the range."""

    @property
    @abstractmethod
    def end(self) -> str | None:
        """Key that ends the range, not included. None: behind all."""

    @classmethod
    @abstractmethod
    def make(
        cls, first: str, end: str | None, operations: Iterable[tuple[CommitId, Mapping[str, str]]]
    ) -> Self:
        """Return a snapshot of this range: names of commits, each with as many of its items or keys as one edit may have."""

    @abstractmethod
    def stated(self) -> Iterator[tuple[CommitId, str, str]]:
        """(name, item or key, value) of each operation in its fields."""

    def restated(self) -> Iterator[tuple[CommitId, str, str]]:
        """(name, item or key, value) of each operation that is said again: of one that is said twice, as said last."""
        said = {(name, key): value for name, key, value in self.stated() if is_document_key(key)}
        return ((name, key, value) for (name, key), value in said.items())

    @property
    def value_count(self) -> int:
        """Number of operations that it repeats, and of names: at most one name an operation."""
        return sum(2 for _ in self.stated())


@dataclass(frozen=True, slots=True)
class DocumentKind:
    """Kind of document: which bodies edit it, and which body restates its content.

    `nothing` is an edit without effect. It replaces a body that cannot be read.
    """

    name: str
    edit: type[DocumentBody]
    snapshot: type[DocumentBody]
    nothing: DocumentBody

    snapshots_cover: ClassVar[bool] = False
    """True if a snapshot restates all of its past, not only the commits that it names.

    Another snapshot can then replace it, and its body may be erased.
    """

    @property
    def bodies(self) -> tuple[type[DocumentBody], ...]:
        """The bodies that the document is reduced from."""
        return self.edit, self.snapshot

    @property
    def carried(self) -> tuple[type[DocumentBody], ...]:
        """Bodies that merges write again: a snapshot is about commits of its own branch."""
        return (self.edit,)

    @property
    def declared(self) -> tuple[type[DocumentBody], ...]:
        """Tags of the kinds that the commit's header declares, so that bodies may be erased."""
        return self.bodies if self.snapshots_cover else (self.edit,)


@dataclass(frozen=True, slots=True)
class ValuesKind(DocumentKind):
    """A kind of document that holds values by item or key. `edit_count_max`: values that one commit says at most."""

    edit: type[ValuesEdit]
    snapshot: type[ValuesSnapshot]
    edit_count_max: int

    snapshots_cover: ClassVar[bool] = True


def values_kind(
    name: str, edit: type[ValuesEdit], snapshot: type[ValuesSnapshot], edit_count_max: int
) -> ValuesKind:
    """Return a kind of document that holds values by item or key."""
    return ValuesKind(name, edit, snapshot, edit.make({}, (), {}), edit_count_max)


# --- sets ---

SET_EDIT_COUNT_MAX: Final = 1024
"""Items that one commit adds to a set, and items that it deletes; BODY_SIZE_MAX may be reached before."""


class SetEdit(ValuesEdit, frozen=True, tag="set1"):
    """Adds items to the branch's set and deletes others; an item that is in both lists is added."""

    added: Annotated[tuple[DocumentKey, ...], Meta(max_length=SET_EDIT_COUNT_MAX)]
    deleted: Annotated[tuple[DocumentKey, ...], Meta(max_length=SET_EDIT_COUNT_MAX)]
    replaces: Replaces

    @classmethod
    def make(
        cls, there: Mapping[str, str], gone: tuple[str, ...], replaces: Mapping[str, Iterable[CommitId]]
    ) -> Self:
        """Return an edit that says just this."""
        return cls(tuple(there), gone, by_commit((*there, *gone), replaces))

    def operation_keys(self) -> tuple[str, ...]:
        """Return what is added, then what is deleted."""
        return self.added + self.deleted

    def stated_values(self) -> dict[str, str | None]:
        """ "" for each item that is there."""
        values: dict[str, str | None] = dict.fromkeys(self.deleted)
        values.update(dict.fromkeys(self.added, ""))
        return values

    def stated_replaces(self) -> tuple[Replaced, ...]:
        """Return its field."""
        return self.replaces


class SnapshotItems(Wire, frozen=True):
    """Items that one commit added and that no other has replaced. The commit is named by its first id."""

    name: CommitId
    items: Annotated[tuple[DocumentKey, ...], Meta(min_length=1, max_length=SET_EDIT_COUNT_MAX)]


class SetSnapshot(ValuesSnapshot, frozen=True, tag="set-squeeze1"):
    """All operations that stand and add, about items from `first` to before `end`."""

    first: DocumentKey
    end: DocumentKey | None
    operations: Annotated[tuple[SnapshotItems, ...], Meta(max_length=SNAPSHOT_COMMIT_COUNT_MAX)]

    @classmethod
    def make(
        cls, first: str, end: str | None, operations: Iterable[tuple[CommitId, Mapping[str, str]]]
    ) -> Self:
        """Return a snapshot of this range."""
        return cls(first, end, tuple(SnapshotItems(name, tuple(items)) for name, items in operations))

    def stated(self) -> Iterator[tuple[CommitId, str, str]]:
        """(name, item, "") of each item."""
        return ((one.name, item, "") for one in self.operations for item in one.items)

    @property
    def value_count(self) -> int:
        """Number of operations that it repeats, and of names."""
        return sum(1 + len(one.items) for one in self.operations)


SET: Final = values_kind("set", SetEdit, SetSnapshot, SET_EDIT_COUNT_MAX)

# --- dicts ---

DICT_VALUE_SIZE_MAX: Final = 256 * KIB
"""Characters of a value of a dict, as of a post: a body holds one. Larger ones are files, whose ids are the values."""
DICT_EDIT_COUNT_MAX: Final = 256
"""Values that one commit puts into a dict, and keys that it erases; BODY_SIZE_MAX may be reached before."""

DictValue = Annotated[str, Meta(max_length=DICT_VALUE_SIZE_MAX)]


class DictEntry(Wire, frozen=True):
    """A key and its value."""

    key: DocumentKey
    value: DictValue


class EntriesEdit(ValuesEdit, frozen=True):
    """Puts values of keys and erases others; of a key that is named twice the last put holds."""

    put: Annotated[tuple[DictEntry, ...], Meta(max_length=DICT_EDIT_COUNT_MAX)]
    erased: Annotated[tuple[DocumentKey, ...], Meta(max_length=DICT_EDIT_COUNT_MAX)]
    replaces: Replaces

    @classmethod
    def make(
        cls, there: Mapping[str, str], gone: tuple[str, ...], replaces: Mapping[str, Iterable[CommitId]]
    ) -> Self:
        """Return an edit that says just this."""
        put = tuple(DictEntry(key, value) for key, value in there.items())
        return cls(put, gone, by_commit((*there, *gone), replaces))

    def operation_keys(self) -> tuple[str, ...]:
        """Return what is put, then what is erased."""
        return (*[one.key for one in self.put], *self.erased)

    def stated_values(self) -> dict[str, str | None]:
        """Return the value of each key that is there."""
        values: dict[str, str | None] = dict.fromkeys(self.erased)
        values.update({one.key: one.value for one in self.put})
        return values

    def stated_replaces(self) -> tuple[Replaced, ...]:
        """Return its field."""
        return self.replaces


class SnapshotEntries(Wire, frozen=True):
    """Values that one commit put and that no other has replaced. The commit is named by its first id."""

    name: CommitId
    entries: Annotated[tuple[DictEntry, ...], Meta(min_length=1, max_length=DICT_EDIT_COUNT_MAX)]


class EntriesSnapshot(ValuesSnapshot, frozen=True):
    """All values that stand, of keys from `first` to before `end`."""

    first: DocumentKey
    end: DocumentKey | None
    operations: Annotated[tuple[SnapshotEntries, ...], Meta(max_length=SNAPSHOT_COMMIT_COUNT_MAX)]

    @classmethod
    def make(
        cls, first: str, end: str | None, operations: Iterable[tuple[CommitId, Mapping[str, str]]]
    ) -> Self:
        """Return a snapshot of this range."""
        puts = (
            SnapshotEntries(name, tuple(DictEntry(key, value) for key, value in entries.items()))
            for name, entries in operations
        )
        return cls(first, end, tuple(puts))

    def stated(self) -> Iterator[tuple[CommitId, str, str]]:
        """(name, key, value) of each value."""
        return ((one.name, entry.key, entry.value) for one in self.operations for entry in one.entries)

    @property
    def value_count(self) -> int:
        """Number of operations that it repeats, and of names."""
        return sum(1 + len(one.entries) for one in self.operations)


class DictEdit(EntriesEdit, frozen=True, tag="dict1"):
    """Puts values into the branch's dict and erases others."""


class DictSnapshot(EntriesSnapshot, frozen=True, tag="dict-squeeze1"):
    """All values that stand in the branch's dict, of keys from `first` to before `end`."""


DICT: Final = values_kind("dict", DictEdit, DictSnapshot, DICT_EDIT_COUNT_MAX)

# --- texts ---

TEXT_UPDATE_SIZE_MAX: Final = 384 * KIB
"""Bytes of one Yjs update. With what it replaces, and with the origin of a carried commit, it is a body."""
TEXT_REPLACES_MAX: Final = 2 * KIB
"""Commits whose words one update deletes: 70 KiB of names. Who deletes more writes several commits."""
TEXT_CLIENT_COUNT_MAX: Final = 64
"""Client ids whose words one update says: as many editors of one node as are gathered into a commit."""
TEXT_SPAN_COUNT_MAX: Final = 4 * KIB
"""Ranges of clocks that one update deletes."""
TEXT_DEPTH_MAX: Final = 64
"""Types inside each other, such as elements of a document: libraries recurse when they delete them."""
TEXT_SESSION_BITS: Final = 13
"""Bits of a client id that its user chooses; the others are `hashing.text_clients`."""

YjsUpdate = Annotated[bytes, Meta(min_length=1, max_length=TEXT_UPDATE_SIZE_MAX)]


class TextUpdate(DocumentBody, frozen=True, tag="text1"):
    """A Yjs update (format v1) of the branch's text. It deletes words of the commits that it replaces, and its own."""

    update: YjsUpdate
    replaces: Annotated[tuple[CommitId, ...], Meta(max_length=TEXT_REPLACES_MAX)]


class SaidUpdate(Wire, frozen=True):
    """The fields of a `text1` that a commit said."""

    name: CommitId
    update: YjsUpdate
    replaces: Annotated[tuple[CommitId, ...], Meta(max_length=TEXT_REPLACES_MAX)]


class TextSnapshot(DocumentBody, frozen=True, tag="text-snapshot1"):
    """Copies of the bodies of updates. Each counts if the body of the commit that it names is the same, and absent here."""

    updates: Annotated[tuple[SaidUpdate, ...], Meta(min_length=1, max_length=TEXT_REPLACES_MAX)]

    @property
    def value_count(self) -> int:
        """Number of updates that it repeats."""
        return len(self.updates)


TEXT: Final = DocumentKind("text", TextUpdate, TextSnapshot, nothing=TextUpdate(b"", ()))

# --- JSON documents ---

JSON_DEPTH_MAX: Final = 32
"""Maps and lists inside each other, and those in an array that is taken whole: libraries recurse."""
JSON_FRACTION_SIZE_MAX: Final = 64
"""Characters of a fraction that orders a list: some 300 items typed in between two. Then the writer spaces the list anew."""

JSON_PIECE_COUNT_MAX: Final = 32
"""Registers over which the text of one long value is spread."""
JSON_VALUE_SIZE_MAX: Final = 1024 * KIB
"""Bytes of a value, as JSON, that a node writes: a document is read as a whole. Larger ones are files."""


class JsonEdit(EntriesEdit, frozen=True, tag="json1"):
    """Puts what registers of a JSON document hold, and erases others."""


class JsonSnapshot(EntriesSnapshot, frozen=True, tag="json-squeeze1"):
    """All that registers of a JSON document hold, of keys from `first` to before `end`."""


JSON: Final = values_kind("json", JsonEdit, JsonSnapshot, DICT_EDIT_COUNT_MAX)

# --- the table ---

DOCUMENT_KINDS: Final[tuple[DocumentKind, ...]] = (SET, DICT, JSON, TEXT)
"""All kinds of documents. A new kind needs a line here, so that the node knows it."""
