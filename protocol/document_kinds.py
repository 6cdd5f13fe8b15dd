"""Bodies of the commits that edit documents: sets, dicts and texts, which `verifier.documents` reduces.

A word *replaces* others: those of the commits that it names, as far as these are about the same item or key, or are
updates of the text. A *snapshot* says again which words stand of all that it has in its past.
"""

from typing import Annotated

from msgspec import Meta

from protocol.codec import Id, Wire
from protocol.limits.formats import (
    DEP_COUNT_MAX,
    DICT_EDIT_COUNT_MAX,
    DICT_KEY_SIZE_MAX,
    DICT_VALUE_SIZE_MAX,
    SET_EDIT_COUNT_MAX,
    SET_ITEM_SIZE_MAX,
    SNAPSHOT_COMMIT_COUNT_MAX,
    TEXT_UPDATE_SIZE_MAX,
)

SetItem = Annotated[str, Meta(max_length=SET_ITEM_SIZE_MAX)]
DictKey = Annotated[str, Meta(max_length=DICT_KEY_SIZE_MAX)]
DictValue = Annotated[str, Meta(max_length=DICT_VALUE_SIZE_MAX)]
YjsUpdate = Annotated[bytes, Meta(min_length=1, max_length=TEXT_UPDATE_SIZE_MAX)]
Replaces = Annotated[tuple[Id, ...], Meta(max_length=DEP_COUNT_MAX)]


class SetEdit(Wire, frozen=True, tag="set1"):
    """Adds items to the branch's set and deletes others; an item that is in both lists is added."""

    added: Annotated[tuple[SetItem, ...], Meta(max_length=SET_EDIT_COUNT_MAX)]
    deleted: Annotated[tuple[SetItem, ...], Meta(max_length=SET_EDIT_COUNT_MAX)]
    replaces: Replaces


class DictEntry(Wire, frozen=True):
    """A key and its value."""

    key: DictKey
    value: DictValue


class DictEdit(Wire, frozen=True, tag="dict1"):
    """Puts values into the branch's dict and erases others; of a key that is named twice the last put holds."""

    put: Annotated[tuple[DictEntry, ...], Meta(max_length=DICT_EDIT_COUNT_MAX)]
    erased: Annotated[tuple[DictKey, ...], Meta(max_length=DICT_EDIT_COUNT_MAX)]
    replaces: Replaces


class SnapshotItems(Wire, frozen=True):
    """The items that one commit, by the id that it had first, added and that nobody replaced."""

    name: Id
    items: Annotated[tuple[SetItem, ...], Meta(min_length=1, max_length=SET_EDIT_COUNT_MAX)]


class SetSnapshot(Wire, frozen=True, tag="set-squeeze1"):
    """All words that stand and add, of the set as its author had it, about items from `first` to before `end`.

    Items are compared as UTF-8 bytes; None is behind all. The words stay those of the commits that said them.
    """

    first: SetItem
    end: SetItem | None
    words: Annotated[tuple[SnapshotItems, ...], Meta(max_length=SNAPSHOT_COMMIT_COUNT_MAX)]


class SnapshotEntries(Wire, frozen=True):
    """The values that one commit, by the id that it had first, put and that nobody replaced."""

    name: Id
    entries: Annotated[tuple[DictEntry, ...], Meta(min_length=1, max_length=DICT_EDIT_COUNT_MAX)]


class DictSnapshot(Wire, frozen=True, tag="dict-squeeze1"):
    """The same of a dict: all values that stand, of keys from `first` to before `end`."""

    first: DictKey
    end: DictKey | None
    words: Annotated[tuple[SnapshotEntries, ...], Meta(max_length=SNAPSHOT_COMMIT_COUNT_MAX)]


class TextUpdate(Wire, frozen=True, tag="text1"):
    """A Yjs update (format v1) of the branch's text."""

    update: YjsUpdate


class TextSnapshot(Wire, frozen=True, tag="text-snapshot1"):
    """What the updates and snapshots that it replaces come to, as one update; it says nothing of its own."""

    update: YjsUpdate
    replaces: Annotated[Replaces, Meta(min_length=1)]
