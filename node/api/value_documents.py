"""Answers of endpoints about sets and dicts, made from what `Documents` reads and writes."""

from collections.abc import Sequence

from node.content.documents import Documents
from protocol.formats.document_kinds import DICT, SET
from protocol.formats.text import id_text
from ravel.types.document_values import DocumentSnapshot
from ravel.types.documents import (
    DictEditResult,
    DictEntryFields,
    DictEntryView,
    DictWindow,
    SetEditResult,
    SetItemView,
    SetWindow,
)
from verifier.documents import DocumentEntry, DocumentValue


async def show_set(documents: Documents, branch: str, offset: int, limit: int, name: str = "") -> SetWindow:
    """Return a window of a branch's set, ordered by UTF-8 bytes, each item with its tips."""
    window = await documents.read_window(SET, branch, offset, limit, name)
    items: list[SetItemView] = [
        {"item": item, "tips": [id_text(tip.name) for tip in entry.tips]} for item, entry in window.entries
    ]
    return {"items": items, **window.fields}


async def edit_set(
    documents: Documents, branch: str, add: Sequence[str], remove: Sequence[str], name: str = ""
) -> SetEditResult:
    """Add missing items and remove present ones. An item in both lists is added."""
    wanted: dict[str, str | None] = dict.fromkeys(remove)
    wanted.update(dict.fromkeys(add, ""))
    written = await documents.edit(SET, branch, wanted, name)
    return {
        "branch": written.branch,
        "commits": written.commits,
        "added": written.there,
        "removed": written.gone,
    }


async def snapshot_set(documents: Documents, branch: str, name: str = "") -> DocumentSnapshot:
    """Restate the content of a branch's set in few commits."""
    return await documents.snapshot(SET, branch, name)


async def show_dict(documents: Documents, branch: str, offset: int, limit: int, name: str = "") -> DictWindow:
    """Return a window of a branch's dict, ordered by the UTF-8 bytes of the keys."""
    window = await documents.read_window(DICT, branch, offset, limit, name)
    return {"entries": [_entry_view(key, entry) for key, entry in window.entries], **window.fields}


async def show_entry(documents: Documents, branch: str, key: str, name: str = "") -> DictEntryView:
    """Return one entry of a branch's dict. Raises ServiceError `not_found`."""
    branch_id, entry = await documents.read_entry(DICT, branch, key, name)
    return {"branch": branch_id, **_entry_view(key, entry)}


async def edit_dict(
    documents: Documents, branch: str, put: dict[str, str], erase: Sequence[str], name: str = ""
) -> DictEditResult:
    """Put values that differ, and erase keys that are there. A key in both is put."""
    wanted: dict[str, str | None] = dict.fromkeys(erase)
    wanted.update(put)
    written = await documents.edit(DICT, branch, wanted, name)
    return {
        "branch": written.branch,
        "commits": written.commits,
        "put": written.there,
        "erased": written.gone,
    }


async def snapshot_dict(documents: Documents, branch: str, name: str = "") -> DocumentSnapshot:
    """Restate the content of a branch's dict in few commits."""
    return await documents.snapshot(DICT, branch, name)


def _entry_view(key: str, entry: DocumentEntry) -> DictEntryFields:
    first, *others = entry.values
    return {
        "key": key,
        "value": _text_of(first),
        "commit": id_text(first.name),
        "conflicts": [
            {"value": _text_of(operation), "commit": id_text(operation.name)} for operation in others
        ],
    }


def _text_of(operation: DocumentValue) -> str:
    assert operation.value is not None, "an entry lists values alone"
    return operation.value
