"""Lines that a planned merge would change in lists, tables and texts: what one reads before one merges.

A list or a table changes by the operations that are carried, as `verifier.documents` reduces them. A text is reduced with
the carried updates as after the merge (`verifier.texts`): an update that would count for nothing changes no line here.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from typing import Final

import trio
from sqlalchemy import Connection

from node.authoring.author import Author
from node.content.document_operations import not_here
from node.content.documents import TITLES, UNREADABLE, Documents, document_key
from node.content.merging import MergePlan
from node.content.opening import read_opened
from node.content.text_process import ClearText, run_worker
from node.content.text_reading import ReadText, TextReader, carried_edit
from node.content.text_versions import Piece, merge_pieces
from node.contract.inbox import OFFERED_DOCUMENTS_SHOWN_MAX, OFFERED_LINES_SHOWN_MAX
from node.runtime.errors import ServiceError
from node.sync.hub import Hub
from protocol.formats.body import Carried, content_of
from protocol.formats.document_kinds import DICT, SET, TEXT, TextUpdate, ValuesEdit, ValuesKind
from protocol.formats.text import id_text
from protocol.ids import CommitId
from protocol.limits.formats import MIB
from protocol.limits.users import DOCUMENT_SIZE_MAX
from ravel.types.inbox import OfferedDocument, OfferedLine
from storage.repos.repos import Branch
from verifier.documents import ErasedValues
from verifier.texts import TextEdit, TextState, TooManyDeletions, reduce_text

LINE_LENGTH_MAX: Final = 200
"""Characters of a line that is shown: one reads what it is about."""
_KEYS_MAX: Final = 1000
"""Items or keys of one document that are looked up, each in O(log n). What is said of others is not shown."""
_TEXT_LENGTH_MAX: Final = MIB
"""Characters of all texts of a branch that are compared. The rest would be cut, and no line of it is shown."""
_COMPARED_MAX: Final = 200
"""Lines between the first and the last change that are compared with one another, at worst in O(n³): about a second."""
_KINDS: Final[Mapping[str, ValuesKind]] = {SET.name: SET, DICT.name: DICT}

Change = tuple[tuple[str, ...], tuple[str, ...]]
"""Values of an item or key that stand before a merge, and after it."""


class MergeChanges:
    """Service that finds the lines a merge would change."""

    def __init__(self, hub: Hub, author: Author, documents: Documents) -> None:
        self._hub = hub
        self._author = author
        self._documents = documents
        self._reader = TextReader(hub.replica)
        self._looking = trio.CapacityLimiter(1)  # a look at a text takes two processes, for a moment

    async def find(self, merge: MergePlan) -> list[OfferedDocument]:
        """Find what each document would gain and lose by a merge that was planned; nothing of one that cannot be read now.

        Costs O(carried edits); where texts are among them also O(updates of the text).
        """
        edits: dict[tuple[str, str], list[Carried]] = {}
        for name, carried in merge.carried_bodies:
            edits.setdefault((_kind_of(carried), name), []).append(carried)
        titles = await self._values(merge.target, DICT, TITLES, edits.get((DICT.name, TITLES), []))
        found: list[OfferedDocument] = []
        for (kind, name), those in edits.items():
            if len(found) >= OFFERED_DOCUMENTS_SHOWN_MAX:
                break
            looked: list[OfferedDocument] = []
            if kind == TEXT.name and not name:
                looked = await self._texts(merge.target, those)
            elif (kind, name) == (DICT.name, TITLES):
                # A new document's title stands above its lines; that another is renamed is seen here alone.
                looked = [_document(kind, name, "", list(_lines_of(titles, only_replaced=True)))]
            elif kind in _KINDS:
                changed = await self._values(merge.target, _KINDS[kind], name, those)
                _, title = titles.get(document_key(kind, name), ((), ()))
                # The title that is known here: an offer must not have one document taken for another.
                shown = await self._title(merge.target, kind, name) or "".join(title[:1])
                looked = [_document(kind, name, shown, list(_lines_of(changed)))]
            found += [one for one in looked if one["lines"]]  # others would crowd out what is to be seen
        return found[:OFFERED_DOCUMENTS_SHOWN_MAX]

    async def _title(self, target: Branch, kind: str, name: str) -> str:
        key = document_key(kind, name)
        entries = await self._documents.read_marks(DICT, id_text(target.branch_id), [key], TITLES)
        return next((one.value or "" for one in entries[key].values), "") if key in entries else ""

    async def _values(
        self, target: Branch, kind: ValuesKind, name: str, carried: Sequence[Carried]
    ) -> dict[str, Change]:
        """Map items or keys to their values before and after these edits, which come causes first."""
        said = [(one.commit, body) for one in carried if isinstance(body := content_of(one), ValuesEdit)]
        keys = list(dict.fromkeys(key for _, edit in said for key in edit.values()))[:_KEYS_MAX]
        entries = await self._documents.read_marks(kind, id_text(target.branch_id), keys, name)
        before = {
            key: {one.name: one.value for one in entries[key].tips} if key in entries else {} for key in keys
        }
        after = {key: dict(tips) for key, tips in before.items()}
        for commit, edit in said:
            for key, names in edit.replaced().items():
                for name_replaced in names:
                    after.get(key, {}).pop(name_replaced, None)
            for key, value in edit.values().items():
                if key in after:
                    after[key][commit] = value
        return {key: (_there(before[key]), _there(after[key])) for key in keys}

    async def _texts(self, target: Branch, carried: Sequence[Carried]) -> list[OfferedDocument]:
        """Compare the texts of a branch with what these updates make of them."""

        async def load() -> tuple[bytes, bytes]:
            return await self._hub.run_blocking(self._merge_texts, target, carried)

        try:
            updates = await read_opened(self._hub, target, load, TEXT.bodies, "")
            async with self._looking:
                sides = [
                    await self._hub.run_blocking(run_worker, [one], None, None, _TEXT_LENGTH_MAX)
                    for one in updates
                ]
        except ServiceError as error:
            if error.code not in (*UNREADABLE, "bad_input", "busy"):
                raise
            return []
        old, new = ({one.root: one for one in side.clear or ()} for side in sides)
        if any(sum(len(one.text) for one in side.values()) >= _TEXT_LENGTH_MAX // 2 for side in (old, new)):
            return []
        return await self._hub.run_blocking(
            lambda: [
                _document(TEXT.name, root, title, list(_differences(before, after)))
                for root in dict.fromkeys([*old, *new])
                for title, before, after in [_pair(old.get(root), new.get(root))]
            ]
        )

    def _merge_texts(self, target: Branch, carried: Sequence[Carried]) -> tuple[bytes, bytes]:
        """Return all of a branch's texts as one update, and as it would be after the merge. Raises ServiceError."""
        with self._hub.replica.database.read() as connection:
            read = self._reader.read(connection, target)
            new: dict[CommitId, tuple[TextEdit, bytes]] = {}
            for place, one in enumerate(carried):
                body = content_of(one)
                if isinstance(body, TextUpdate) and one.commit not in read.given_up:
                    edit = carried_edit(one, body, self._author.user, target.branch_id, place)
                    new[one.commit] = edit, body.update
            if read.size + sum(len(update) for _, update in new.values()) > DOCUMENT_SIZE_MAX:
                raise ServiceError("too_large", f"the text would have over {DOCUMENT_SIZE_MAX} bytes")
            try:
                before = reduce_text(read.edits)
                after = reduce_text([*read.edits, *(edit for edit, _ in new.values())])
            except ErasedValues as error:
                raise not_here(error) from None
            except TooManyDeletions:
                raise ServiceError("too_large", "the text's deletions name too many commits") from None
            updates = {commit: update for commit, (_, update) in new.items()}
            return (
                self._encode(connection, read, before, {}),
                self._encode(connection, read, after, updates),
            )

    def _encode(
        self, connection: Connection, read: ReadText, state: TextState, new: Mapping[CommitId, bytes]
    ) -> bytes:
        shapes = {one.edit.commit: one.shape for one in state.shown}
        stored = [commit for commit in shapes if commit not in new]
        updates = {**new, **dict(self._reader.load_updates(connection, read, stored))}
        return merge_pieces(Piece.left_of(updates[commit], shape) for commit, shape in shapes.items())


def _kind_of(carried: Carried) -> str:
    body = content_of(carried)
    if isinstance(body, TextUpdate):
        return TEXT.name
    return next((kind.name for kind in _KINDS.values() if isinstance(body, kind.edit)), "")


def _there(tips: Mapping[CommitId, str | None]) -> tuple[str, ...]:
    """Return the values that stand, the last first."""
    return tuple(value for value in reversed(list(tips.values())) if value is not None)


def _lines_of(changed: Mapping[str, Change], *, only_replaced: bool = False) -> Iterator[OfferedLine]:
    """Yield a line for each item or value that goes or comes, or only where one stood before."""
    for key, (before, after) in changed.items():
        if only_replaced and not before:
            continue
        for change, values, others in (("removed", before, after), ("added", after, before)):
            for value in dict.fromkeys(values):
                if value not in others:
                    yield {"change": change, "text": f"{key}: {value}" if value else key}


def _pair(old: ClearText | None, new: ClearText | None) -> tuple[str, str, str]:
    """Return a text's title as it is known, and what it says before and after."""
    titles = [one.title for one in (old, new) if one is not None and one.title]
    return "".join(titles[:1]), old.text if old else "", new.text if new else ""


def _differences(old: str, new: str) -> Iterator[OfferedLine]:
    """Yield the lines that differ, each change with the line before and behind it."""
    before, after = old.splitlines(), new.splitlines()
    if before == after:
        return
    start = 0
    while start < min(len(before), len(after)) and before[start] == after[start]:
        start += 1
    end = 0
    while end < min(len(before), len(after)) - start and before[-1 - end] == after[-1 - end]:
        end += 1
    yield from _around(before[:start], is_first=True)
    gone, come = before[start : len(before) - end], after[start : len(after) - end]
    if max(len(gone), len(come)) > _COMPARED_MAX:
        yield from _lines("removed", gone)
        yield from _lines("added", come)
    else:
        for tag, i, j, k, m in SequenceMatcher(None, gone, come, autojunk=False).get_opcodes():
            if tag == "equal":
                yield from _around(gone[i:j])
            else:
                yield from _lines("removed", gone[i:j])
                yield from _lines("added", come[k:m])
    yield from _around(before[len(before) - end :], is_last=True)


def _around(same: Sequence[str], *, is_first: bool = False, is_last: bool = False) -> Iterator[OfferedLine]:
    """Yield the lines of an unchanged part that stand next to a change, and one for those between."""
    first = [] if is_first else list(same[:1])
    last = [] if is_last else list(same[len(first) :][-1:])
    yield from _lines("same", first)
    if len(same) > len(first) + len(last):
        yield {"change": "skipped", "text": ""}
    yield from _lines("same", last)


def _lines(change: str, lines: Iterable[str]) -> Iterator[OfferedLine]:
    return ({"change": change, "text": one} for one in lines)


def _document(kind: str, name: str, title: str, lines: Sequence[OfferedLine]) -> OfferedDocument:
    counts = {change: sum(one["change"] == change for one in lines) for change in ("added", "removed")}
    shown: list[OfferedLine] = [
        {"change": one["change"], "text": one["text"][:LINE_LENGTH_MAX]}
        for one in lines[:OFFERED_LINES_SHOWN_MAX]
    ]
    return {
        "kind": kind,
        "name": name,
        "title": title,
        "added": counts["added"],
        "removed": counts["removed"],
        "lines": shown if counts["added"] or counts["removed"] else [],
    }
