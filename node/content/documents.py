"""Reads and writes sets and dicts of branches; each new operation names those that it replaces.

`verifier.documents` has the rules. The state is reduced anew for each answer from all bodies of that kind that the
branch has and continues; nothing but them is kept, so void marks and late arrivals need no care.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, TypedDict

from sqlalchemy import Connection

from node.authoring.author import Author
from node.authoring.drafting import Draft
from node.content.document_operations import DocumentOperationReader, deps_of, not_here
from node.content.snapshotting import snapshot
from node.contract.documents import (
    DictEditResult,
    DictEntryFields,
    DictEntryView,
    DictWindow,
    DocumentSnapshot,
    SetEditResult,
    SetItemView,
    SetWindow,
)
from node.runtime.errors import ServiceError
from node.sync.hub import Hub
from protocol.document_kinds import DICT, SET, ValuesKind
from protocol.limits.formats import BODY_SIZE_MAX, DEP_COUNT_MAX
from protocol.limits.users import DOCUMENT_SIZE_MAX, DOCUMENT_VALUE_COUNT_MAX
from protocol.text import id_text
from storage.repos.repos import Branch
from verifier.documents import (
    DocumentOperation,
    DocumentValue,
    Entry,
    ErasedValues,
    find_settled,
    in_byte_order,
    pass_over_missing,
    reduce_values,
)

_ROOM: Final = 1024
"""Bytes of a body that are not its words and names: tags, lengths, and the origin that a merge adds."""
_NOTHING_SAID: Final = Entry(())


@dataclass(frozen=True, slots=True)
class NewValue:
    """A word to be written: its value, or None where the item or key is to go, and the tips that it replaces."""

    key: str
    value: str | None
    replaces: tuple[DocumentValue, ...]

    @property
    def size(self) -> int:
        """Bytes in a body, rounded up."""
        return len(self.key.encode()) + len((self.value or "").encode()) + 16


class Documents:
    """Shows and edits sets and dicts of branches, which are named as `find_branch` takes them."""

    def __init__(self, hub: Hub, author: Author, find_branch: Callable[[str], Branch]) -> None:
        self._hub = hub
        self._author = author
        self._find_branch = find_branch
        self._reader = DocumentOperationReader(hub.replica)

    async def show_set(self, branch: str, offset: int, limit: int) -> SetWindow:
        """A window of the items in the branch's set, by their UTF-8 bytes, each with its tips."""
        target = self._find_branch(branch)
        entries = await self._hub.run_blocking(self._load, target, SET)
        items, window = _window(entries, offset, limit)
        shown: list[SetItemView] = [
            {"item": key, "tips": [id_text(tip.name) for tip in entries[key].tips]} for key in items
        ]
        return {"branch": id_text(target.branch_id), "items": shown, **window}

    async def edit_set(self, branch: str, add: Sequence[str], remove: Sequence[str]) -> SetEditResult:
        """Add items that are not there, and delete others that are. What is in both lists is added."""
        target = self._find_branch(branch)
        wanted: dict[str, str | None] = dict.fromkeys(remove)
        wanted.update(dict.fromkeys(add, ""))
        commits, said = await self._write(target, SET, wanted)
        return {
            "branch": id_text(target.branch_id),
            "commits": commits,
            "added": [key for key, value in said if value is not None],
            "removed": [key for key, value in said if value is None],
        }

    async def show_dict(self, branch: str, offset: int, limit: int) -> DictWindow:
        """A window of the entries of the branch's dict, by the UTF-8 bytes of their keys."""
        target = self._find_branch(branch)
        entries = await self._hub.run_blocking(self._load, target, DICT)
        keys, window = _window(entries, offset, limit)
        shown = [_entry_view(key, entries[key]) for key in keys]
        return {"branch": id_text(target.branch_id), "entries": shown, **window}

    async def get(self, branch: str, key: str) -> DictEntryView:
        """One entry of the branch's dict. Raises ServiceError `not_found`."""
        target = self._find_branch(branch)
        entries = await self._hub.run_blocking(self._load, target, DICT)
        entry = entries.get(key, _NOTHING_SAID)
        if not entry.values:
            raise ServiceError(
                "not_found", f"the dict has no key {key!r}", "`ravel dict list` shows what there is"
            )
        return {"branch": id_text(target.branch_id), **_entry_view(key, entry)}

    async def edit_dict(self, branch: str, put: dict[str, str], erase: Sequence[str]) -> DictEditResult:
        """Put values that are not the keys' only ones already, and erase keys that are there. A key in both is put."""
        target = self._find_branch(branch)
        wanted: dict[str, str | None] = dict.fromkeys(erase)
        wanted.update(put)
        commits, said = await self._write(target, DICT, wanted)
        return {
            "branch": id_text(target.branch_id),
            "commits": commits,
            "put": [key for key, value in said if value is not None],
            "erased": [key for key, value in said if value is None],
        }

    async def snapshot_set(self, branch: str) -> DocumentSnapshot:
        """`snapshot` of the branch's set."""
        return await self.snapshot(branch, SET)

    async def snapshot_dict(self, branch: str) -> DocumentSnapshot:
        """`snapshot` of the branch's dict."""
        return await self.snapshot(branch, DICT)

    async def snapshot(
        self, branch: str, kind: ValuesKind, *, without_missing: bool = False
    ) -> DocumentSnapshot:
        """Say again, in as few commits as hold it, all that stands in the branch's set or dict, where others said it.

        `without_missing`, bodies that are not here are taken to say nothing. Raises ServiceError `too_large` where one
        key's conflicts alone are too long, `incomplete`.
        """
        target = self._find_branch(branch)

        def plan(connection: Connection) -> list[Draft]:
            said = self._read(connection, target, kind)
            settled = {id(one) for one in find_settled(said)}
            if all(id(one) in settled or one.bit for one in said):
                return []
            entries = self._reduce_said(pass_over_missing(kind, said) if without_missing else said)
            return [Draft(body) for body in snapshot(entries, kind)]

        written, ingested = await self._hub.write(self._author.write_many, target, plan)
        self._hub.announce(ingested)
        return {
            "branch": id_text(target.branch_id),
            "commits": [id_text(one.commit_id) for one in written],
        }

    async def _write(
        self, branch: Branch, kind: ValuesKind, wanted: dict[str, str | None]
    ) -> tuple[list[str], list[tuple[str, str | None]]]:
        """Ids of the commits that say what is wanted and is not so, and the words that they say."""
        said: list[tuple[str, str | None]] = []

        def plan(connection: Connection) -> list[Draft]:
            entries = self._reduce(connection, branch, kind)
            words = [
                NewValue(key, value, entries.get(key, _NOTHING_SAID).tips)
                for key, value in wanted.items()
                if not _is_so(entries.get(key, _NOTHING_SAID), value)
            ]
            said.extend((word.key, word.value) for word in words)
            own = self._reader.depths(connection, branch)[branch.num]
            return [_draft(kind, group, own) for group in group_values(words, kind.edit_count_max)]

        written, ingested = await self._hub.write(self._author.write_many, branch, plan)
        self._hub.announce(ingested)
        return [id_text(one.commit_id) for one in written], said

    def _load(self, branch: Branch, kind: ValuesKind) -> dict[str, Entry]:
        with self._hub.replica.database.read() as connection:
            return self._reduce(connection, branch, kind)

    def _reduce(self, connection: Connection, branch: Branch, kind: ValuesKind) -> dict[str, Entry]:
        return self._reduce_said(self._read(connection, branch, kind))

    def _reduce_said(self, said: Sequence[DocumentOperation]) -> dict[str, Entry]:
        try:
            return reduce_values(said)
        except ErasedValues as error:
            raise not_here(error) from None

    def _read(self, connection: Connection, branch: Branch, kind: ValuesKind) -> list[DocumentOperation]:
        said: list[DocumentOperation] = []
        size = words = 0
        for one, encoded_size in self._reader.read(connection, branch, kind):
            said.append(one)
            size += encoded_size
            words += 1 if one.body is None else one.body.value_count
            if size > DOCUMENT_SIZE_MAX or words > DOCUMENT_VALUE_COUNT_MAX:
                raise ServiceError(
                    "too_large",
                    f"the branch's {kind.name} was written in over {DOCUMENT_VALUE_COUNT_MAX} words "
                    f"or {DOCUMENT_SIZE_MAX} bytes",
                    "compact the branch and let its old bodies go here (`ravel branch compact`, [storage] erase_after_days, "
                    "`ravel gc`), or begin another with what is in use",
                )
        return said


def group_values(words: Iterable[NewValue], count_max: int) -> Iterator[list[NewValue]]:
    """Words of one commit each: no key twice, and what they replace in one list of names.

    Of a key with more tips than one commit can name, the surplus is replaced by words before the last, which say that it
    is gone; they will be replaced with it.
    """
    group: dict[str, NewValue] = {}
    names: set[bytes] = set()
    size = 0
    for word in _split(words):
        more = names | {tip.name for tip in word.replaces}
        is_full = len(group) == count_max or size + word.size + 34 * len(more) > BODY_SIZE_MAX - _ROOM
        if group and (is_full or word.key in group or len(more) > DEP_COUNT_MAX):
            yield list(group.values())
            group, size = {}, 0
            more = {tip.name for tip in word.replaces}
        group[word.key] = word
        names, size = more, size + word.size
    if group:
        yield list(group.values())


def _split(words: Iterable[NewValue]) -> Iterator[NewValue]:
    for word in words:
        tips = word.replaces
        while len(tips) > DEP_COUNT_MAX:
            yield NewValue(word.key, None, tips[:DEP_COUNT_MAX])
            tips = tips[DEP_COUNT_MAX:]
        yield NewValue(word.key, word.value, tips)


def _draft(kind: ValuesKind, group: Sequence[NewValue], own: int) -> Draft:
    replaced = {tip.name: tip for word in group for tip in word.replaces}
    there = {word.key: word.value for word in group if word.value is not None}
    gone = tuple(word.key for word in group if word.value is None)
    return Draft(kind.edit.make(there, gone, tuple(replaced)), deps=deps_of(replaced.values(), own))


def _is_so(entry: Entry, value: str | None) -> bool:
    """Whether nothing is to be said: it is gone, or has this one value."""
    values = {word.value for word in entry.values}
    return values == (set() if value is None else {value})


def _entry_view(key: str, entry: Entry) -> DictEntryFields:
    first, *others = entry.values
    return {
        "key": key,
        "value": _text_of(first),
        "commit": id_text(first.name),
        "conflicts": [{"value": _text_of(word), "commit": id_text(word.name)} for word in others],
    }


def _text_of(word: DocumentValue) -> str:
    assert word.value is not None, "an entry lists what stands"
    return word.value


class _WindowFields(TypedDict):
    total: int
    next: int | None


def _window(entries: dict[str, Entry], offset: int, limit: int) -> tuple[list[str], _WindowFields]:
    keys = in_byte_order(entries)
    end = offset + limit
    return keys[offset:end], {"total": len(keys), "next": end if end < len(keys) else None}
