"""Lists the documents of a branch, with the titles that people gave them, and without those that were removed.

Both are documents themselves: the dict `.titles` and the set `.removed`, by kind and name. So two titles that were given at
the same time both stay, and what a removal had not seen is not lost: a document is written as before, and whoever writes to
one that is removed brings it back. Names that begin with a dot are left out of the list.
"""

from collections import Counter
from collections.abc import Callable
from typing import Final

from node.content.documents import REMOVED, TITLES, Documents, document_key
from node.content.lineage import lineage_nums
from node.runtime.errors import ServiceError
from node.runtime.look_alikes import skeletons
from node.sync.hub import Hub
from protocol.formats.document_kinds import DICT, DOCUMENT_KINDS, SET, ValuesKind
from protocol.formats.text import id_text
from ravel.types.document_list import DocumentList, DocumentRemoval, DocumentTitle, DocumentView
from storage.commits.document_reading import ListedDocument, is_listed, load_documents
from storage.repos.repos import Branch
from verifier.documents import DocumentEntry

_KINDS: Final = {kind.name: kind for kind in DOCUMENT_KINDS}


class ListedDocuments:
    """Lists, renames and removes documents. Branches are named as `find_branch` takes them."""

    def __init__(self, hub: Hub, documents: Documents, find_branch: Callable[[str], Branch]) -> None:
        self._hub = hub
        self._documents = documents
        self._find_branch = find_branch

    async def list_all(self, branch: str, kind: str, prefix: str, offset: int, limit: int) -> DocumentList:
        """List a window of a branch's documents, in the order in which this node learned of them.

        Costs O(offset + limit), each O(log n). Raises ServiceError `bad_request`.
        """
        if kind:
            _check_kind(kind)
        target = self._find_branch(branch)
        found = await self._hub.run_blocking(self._load, target, kind, prefix, offset, limit + 1)
        window = found[:limit]
        keys = [document_key(one.kind, one.name) for one in window]
        titles = await self._documents.read_marks(DICT, branch, keys, TITLES)
        removed = await self._documents.read_marks(SET, branch, keys, REMOVED)
        shown = [
            one for one, key in zip(window, keys, strict=True) if not (key in removed and removed[key].values)
        ]
        looks = [(one.kind, skeletons(one.name)[0]) for one in shown]
        count = Counter(looks)
        return {
            "branch": id_text(target.branch_id),
            "documents": [
                _view(one, titles, looks=count[look]) for one, look in zip(shown, looks, strict=True)
            ],
            "next": offset + limit if len(found) > limit else None,
        }

    async def rename(self, branch: str, kind: str, name: str, title: str) -> DocumentTitle:
        """Set a document's title, which leaves its name as it is; an empty title removes it.

        Raises ServiceError `not_found` where the list has none of that name.
        """
        await self._find(branch, kind, name)
        written = await self._documents.edit(DICT, branch, {document_key(kind, name): title or None}, TITLES)
        return {"branch": written.branch, "commits": written.commits, "title": title}

    async def remove(self, branch: str, kind: str, name: str) -> DocumentRemoval:
        """Hide a document from the list. Its next write shows it again, and nothing is lost.

        Raises ServiceError `not_found` where the list has none of that name.
        """
        key = await self._find(branch, kind, name)
        written = await self._documents.edit(SET, branch, {key: ""}, REMOVED)
        return {"branch": written.branch, "commits": written.commits}

    async def _find(self, branch: str, kind: str, name: str) -> str:
        """Return the key of a document that is listed. Raises ServiceError `bad_request`, `not_found`."""
        _check_kind(kind)
        key = document_key(kind, name)
        is_here = await self._hub.run_blocking(self._is_listed, self._find_branch(branch), kind, name)
        removed = await self._documents.read_marks(SET, branch, [key], REMOVED)
        if not is_here or (key in removed and removed[key].values):
            raise ServiceError(
                "not_found",
                f"no document is called {name!r}",
                "`ravel document list BRANCH` shows what there is",
            )
        return key

    def _is_listed(self, branch: Branch, kind: str, name: str) -> bool:
        with self._hub.replica.database.read() as connection:
            return is_listed(connection, lineage_nums(self._hub.replica, connection, branch), kind, name)

    def _load(self, branch: Branch, kind: str, prefix: str, offset: int, limit: int) -> list[ListedDocument]:
        with self._hub.replica.database.read() as connection:
            parts = lineage_nums(self._hub.replica, connection, branch)
            return load_documents(connection, branch.num, parts, kind, prefix, offset, limit)


def _check_kind(kind: str) -> None:
    if kind not in _KINDS:
        raise ServiceError("bad_request", f"a document is one of {', '.join(_KINDS)}, not {kind!r}")


def _view(one: ListedDocument, titles: dict[str, DocumentEntry], *, looks: int) -> DocumentView:
    entry = titles.get(document_key(one.kind, one.name))
    values = [] if entry is None else [value.value or "" for value in entry.values]
    is_counted = isinstance(_KINDS[one.kind], ValuesKind)
    return {
        "kind": one.kind,
        "name": one.name,
        "title": values[0] if values else "",
        "other_titles": values[1:],
        "entries": one.entry_count if is_counted else None,
        "confusable": looks > 1,
    }
