"""Kinds of documents: sets, dicts and texts. Each with its bodies and bounds, and with what the rest derives from it.

`DOCUMENT_KINDS` is the table. Which bodies are decoded, carried by merges, declared by headers, erased, reduced,
snapshotted and checked follows from it, here and in the verifier and the node.

An operation *replaces* others: those of the commits that it names, as far as these are about the same item or key, or said
the words of a text that it deletes. A *snapshot* says again which operations stand of all that it has in its past; of a
text, what updates said. `verifier.documents` and `verifier.texts` have the rules.
"""

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar, Final, Self

from msgspec import Meta

from protocol.codec import Wire
from protocol.ids import CommitId
from protocol.limits.formats import DEP_COUNT_MAX, KIB

SNAPSHOT_COMMIT_COUNT_MAX: Final = 8 * KIB
"""Commits whose operations one snapshot says again: with these, names and short items fill most of a body."""

Replaces = Annotated[tuple[CommitId, ...], Meta(max_length=DEP_COUNT_MAX)]


class DocumentBody(Wire, frozen=True):
    """Edit or snapshot of a document, as one commit states it."""

    @property
    def replaces(self) -> tuple[CommitId, ...]:
        """Ids of the commits whose operations or updates it replaces, as these were first called."""
        return ()

    @property
    def value_count(self) -> int:
        """Number of its operations, which is the cost of reducing it."""
        return 1


class ValuesEdit(DocumentBody, frozen=True):
    """Says one operation about each item or key that it has: there, with a value, or gone. It has a field `replaces`."""

    @classmethod
    @abstractmethod
    def make(cls, there: Mapping[str, str], gone: tuple[str, ...], replaces: tuple[CommitId, ...]) -> Self:
        """Return an edit that says just this. Values of a set's items are ""."""

    @abstractmethod
    def values(self) -> dict[str, str | None]:
        """Return what it says of each item or key: its value, or None where it is gone."""

    @property
    def value_count(self) -> int:
        """Number of its operations."""
        return len(self.values())


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
    def restated(self) -> Iterator[tuple[CommitId, str, str]]:
        """(name, item or key, value) of each operation that is said again."""

    @property
    def value_count(self) -> int:
        """Number of operations that it repeats, and of names: at most one name an operation."""
        return sum(2 for _ in self.restated())


@dataclass(frozen=True, slots=True)
class DocumentKind:
    """A kind of document: what edits it, and what says again what it holds.

    `nothing` is an edit that says nothing. It stands for a body that cannot be read.
    """

    name: str
    edit: type[DocumentBody]
    snapshot: type[DocumentBody]
    nothing: DocumentBody

    snapshots_cover: ClassVar[bool] = False
    """True if a snapshot counts for all that it has in its past, and not for what it names.

    Then another snapshot may stand for it, so that its body may be erased.
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
    return ValuesKind(name, edit, snapshot, edit.make({}, (), ()), edit_count_max)


# --- sets ---

SET_ITEM_SIZE_MAX: Final = 1024
"""Characters of an item of a set: a name, an id, a tag. Larger things are posts or files."""
SET_EDIT_COUNT_MAX: Final = 1024
"""Items that one commit adds to a set, and items that it deletes; BODY_SIZE_MAX may be reached before."""

SetItem = Annotated[str, Meta(max_length=SET_ITEM_SIZE_MAX)]


class SetEdit(ValuesEdit, frozen=True, tag="set1"):
    """Adds items to the branch's set and deletes others; an item that is in both lists is added."""

    added: Annotated[tuple[SetItem, ...], Meta(max_length=SET_EDIT_COUNT_MAX)]
    deleted: Annotated[tuple[SetItem, ...], Meta(max_length=SET_EDIT_COUNT_MAX)]
    replaces: Replaces

    @classmethod
    def make(cls, there: Mapping[str, str], gone: tuple[str, ...], replaces: tuple[CommitId, ...]) -> Self:
        """Return an edit that says just this."""
        return cls(tuple(there), gone, replaces)

    def values(self) -> dict[str, str | None]:
        """ "" for each item that is there."""
        return dict[str, str | None](dict.fromkeys(self.deleted)) | dict.fromkeys(self.added, "")

    @property
    def value_count(self) -> int:
        """Number of its operations."""
        return len(self.added) + len(self.deleted)


class SnapshotItems(Wire, frozen=True):
    """The items that one commit, by the id that it had first, added and that nobody replaced."""

    name: CommitId
    items: Annotated[tuple[SetItem, ...], Meta(min_length=1, max_length=SET_EDIT_COUNT_MAX)]


class SetSnapshot(ValuesSnapshot, frozen=True, tag="set-squeeze1"):
    """All operations that stand and add, about items from `first` to before `end`."""

    first: SetItem
    end: SetItem | None
    operations: Annotated[tuple[SnapshotItems, ...], Meta(max_length=SNAPSHOT_COMMIT_COUNT_MAX)]

    @classmethod
    def make(
        cls, first: str, end: str | None, operations: Iterable[tuple[CommitId, Mapping[str, str]]]
    ) -> Self:
        """Return a snapshot of this range."""
        return cls(first, end, tuple(SnapshotItems(name, tuple(items)) for name, items in operations))

    def restated(self) -> Iterator[tuple[CommitId, str, str]]:
        """(name, item, "") of each item."""
        return ((one.name, item, "") for one in self.operations for item in one.items)

    @property
    def value_count(self) -> int:
        """Number of operations that it repeats, and of names."""
        return sum(1 + len(one.items) for one in self.operations)


SET: Final = values_kind("set", SetEdit, SetSnapshot, SET_EDIT_COUNT_MAX)

# --- dicts ---

DICT_KEY_SIZE_MAX: Final = 255
"""Characters of a key of a dict: as of a name."""
DICT_VALUE_SIZE_MAX: Final = 16 * KIB
"""Characters of a value of a dict, which is replaced whole each time."""
DICT_EDIT_COUNT_MAX: Final = 256
"""Values that one commit puts into a dict, and keys that it erases; BODY_SIZE_MAX may be reached before."""

DictKey = Annotated[str, Meta(max_length=DICT_KEY_SIZE_MAX)]
DictValue = Annotated[str, Meta(max_length=DICT_VALUE_SIZE_MAX)]


class DictEntry(Wire, frozen=True):
    """A key and its value."""

    key: DictKey
    value: DictValue


class DictEdit(ValuesEdit, frozen=True, tag="dict1"):
    """Puts values into the branch's dict and erases others; of a key that is named twice the last put holds."""

    put: Annotated[tuple[DictEntry, ...], Meta(max_length=DICT_EDIT_COUNT_MAX)]
    erased: Annotated[tuple[DictKey, ...], Meta(max_length=DICT_EDIT_COUNT_MAX)]
    replaces: Replaces

    @classmethod
    def make(cls, there: Mapping[str, str], gone: tuple[str, ...], replaces: tuple[CommitId, ...]) -> Self:
        """Return an edit that says just this."""
        return cls(tuple(DictEntry(key, value) for key, value in there.items()), gone, replaces)

    def values(self) -> dict[str, str | None]:
        """Return the value of each key that is there."""
        return dict[str, str | None](dict.fromkeys(self.erased)) | {one.key: one.value for one in self.put}

    @property
    def value_count(self) -> int:
        """Number of its operations."""
        return len(self.put) + len(self.erased)


class SnapshotEntries(Wire, frozen=True):
    """The values that one commit, by the id that it had first, put and that nobody replaced."""

    name: CommitId
    entries: Annotated[tuple[DictEntry, ...], Meta(min_length=1, max_length=DICT_EDIT_COUNT_MAX)]


class DictSnapshot(ValuesSnapshot, frozen=True, tag="dict-squeeze1"):
    """All values that stand, of keys from `first` to before `end`."""

    first: DictKey
    end: DictKey | None
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

    def restated(self) -> Iterator[tuple[CommitId, str, str]]:
        """(name, key, value) of each value."""
        return ((one.name, entry.key, entry.value) for one in self.operations for entry in one.entries)

    @property
    def value_count(self) -> int:
        """Number of operations that it repeats, and of names."""
        return sum(1 + len(one.entries) for one in self.operations)


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
    """Bodies of updates, said again. Each holds where the body of the commit that it names is that one, and not here."""

    updates: Annotated[tuple[SaidUpdate, ...], Meta(min_length=1, max_length=TEXT_REPLACES_MAX)]

    @property
    def value_count(self) -> int:
        """Number of updates that it repeats."""
        return len(self.updates)


TEXT: Final = DocumentKind("text", TextUpdate, TextSnapshot, nothing=TextUpdate(b"", ()))

# --- the table ---

DOCUMENT_KINDS: Final[tuple[DocumentKind, ...]] = (SET, DICT, TEXT)
"""All kinds of documents. A new kind needs a line here, so that the node knows it."""
