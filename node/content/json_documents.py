"""Reads and edits JSON documents of branches. `verifier.json_documents` and `verifier.json_edits` have the rules."""

import secrets
from collections.abc import Sequence
from typing import Final

from node.content.document_drafts import FILE_ADVICE, NewValue
from node.content.documents import Documents, Look
from node.contract.json_documents import JsonChange
from node.runtime.errors import ServiceError
from protocol.formats.document_kinds import JSON
from protocol.formats.text import id_text
from ravel.types.document_values import DocumentSnapshot
from ravel.types.json_documents import JsonConflictView, JsonDocumentView, JsonEditResult, UnplacedItem
from verifier.json_contents import PLACE
from verifier.json_documents import JsonConflict, JsonValue, read_json
from verifier.json_edits import EditRefused, JsonEditor, Operation, TooManyOperations, ValueTooLarge
from verifier.json_registers import HeldRegisters

_CONFLICTS_SHOWN_MAX: Final = 64
"""Conflicts of a document in one answer; all are counted."""


class JsonDocuments:
    """JSON documents, as entries of documents of values. Branches are named as `Documents` takes them."""

    def __init__(self, documents: Documents) -> None:
        self._documents = documents

    async def show(self, branch: str, name: str) -> JsonDocumentView:
        """Return a document's value, conflicts and unplaced items. Costs O(n log n) of the operations written to it."""
        branch_id, found = await self._documents.read(JSON, branch, name, read_json)
        return _view(branch_id, found)

    async def edit(
        self, branch: str, name: str, edits: Sequence[JsonChange], *, preview: bool
    ) -> JsonEditResult:
        """Write edits in as few commits as hold them. Costs O(what they write, and what stands below its address), each
        part O(log n), however much else the document holds. Edits of one list beyond 64 cost O(its items) once.

        Raises ServiceError `bad_input` where one of them cannot be, `too_large` for a single value that is; then nothing is
        written.
        """
        items: list[str] = []

        def edit(look: Look) -> tuple[JsonEditor, list[Operation]]:
            items[:] = []
            held = look.held
            editor = JsonEditor(look if held is None else HeldRegisters(held), secrets.randbelow)
            return editor, _edit(editor, edits, items)

        def choose(look: Look) -> list[NewValue]:
            _, operations = edit(look)
            replaced = look.load_replaced([one.key for one in operations if not one.is_increment])
            return [NewValue(one.key, one.value, replaced.get(one.key, ())) for one in operations]

        if preview:
            branch_id, value = await self._documents.look(
                JSON, branch, name, lambda look: edit(look)[0].value()
            )
            return {"branch": branch_id, "commits": [], "value": value, "items": items}
        written = await self._documents.write(JSON, branch, name, choose)
        return {"branch": written.branch, "commits": written.commits, "value": None, "items": items}

    async def snapshot(self, branch: str, name: str) -> DocumentSnapshot:
        """Restate what a branch's JSON document holds in few commits."""
        return await self._documents.snapshot(JSON, branch, name)


def _edit(editor: JsonEditor, edits: Sequence[JsonChange], items: list[str]) -> list[Operation]:
    """Make edits, add ids of new items to `items`, and return what is to be written. Raises ServiceError."""
    for number, one in enumerate(edits):
        try:
            items.extend(_apply(editor, one))
        except EditRefused as error:
            raise _refused(number, error) from None
    try:
        return list(editor.operations())
    except EditRefused as error:
        raise _refused(None, error) from None


def _apply(editor: JsonEditor, one: JsonChange) -> list[str]:
    """Make one edit, and return the ids of new items. Raises EditRefused."""
    match one.edit:
        case "put":
            editor.put(one.path, one.value, one.item)
        case "add":
            editor.add(one.path, one.by, one.item)
        case "insert":
            made = editor.insert(
                one.path, one.value, one.item, before=one.before, after=one.after, index=one.index
            )
            return [made]
        case "move":
            editor.move(one.moved, one.path, one.item, before=one.before, after=one.after, index=one.index)
        case "remove":
            editor.remove(one.path, one.item)
    return []


def _refused(number: int | None, error: EditRefused) -> ServiceError:
    if isinstance(error, TooManyOperations):
        return ServiceError("too_large", str(error), "write or remove parts of it, one after the other")
    if isinstance(error, ValueTooLarge):
        return ServiceError("too_large", str(error), f'{FILE_ADVICE}: {{"$file": ID}}')
    where = "" if number is None else f"edit {number}: "
    return ServiceError(
        "bad_input", f"{where}{error}", "nothing was written; `ravel json get` shows the document"
    )


def _view(branch_id: str, found: JsonValue) -> JsonDocumentView:
    unplaced: list[UnplacedItem] = [{"item": item, "value": value} for item, value in found.unplaced]
    return {
        "branch": branch_id,
        "value": found.value,
        "conflicts": [_conflict_view(one) for one in found.conflicts[:_CONFLICTS_SHOWN_MAX]],
        "conflict_count": len(found.conflicts),
        "unplaced": unplaced,
    }


def _conflict_view(one: JsonConflict) -> JsonConflictView:
    owner, *path = one.address
    is_place = owner == PLACE
    return {
        "item": path[0] if is_place else owner,
        "path": [] if is_place else path,
        "place": is_place,
        "value": one.value,
        "commit": None if one.name is None else id_text(one.name),
    }
