"""Takes up what accepted commits say of documents: decodes their bodies, and has the store keep what these come to.

No verdict rests on such a body, so nothing has decoded it before (`publication_reading`).
"""

from collections.abc import Mapping, Sequence
from typing import Final

from sqlalchemy import Connection

from protocol.codec import DecodeError, decode
from protocol.formats.body import (
    AnyBody,
    BranchFork,
    Carried,
    UnknownBody,
    UnopenedBody,
    content_of,
    kind_name,
)
from protocol.formats.declared_kind import document_name
from protocol.formats.document_kinds import (
    DOCUMENT_KINDS,
    JSON,
    DocumentBody,
    DocumentKind,
    ValuesEdit,
    ValuesKind,
)
from protocol.limits.formats import BODY_SIZE_MAX
from storage.commits.commits import NewCommit, load_rows
from storage.commits.document_rows import SaidOperation, SaidOperations, add_operations
from storage.commits.documents import Document, add_document, load_document, mark_stale
from storage.engine.database import Database
from storage.repos.repos import Branch
from verifier.json_contents import find_increment, find_position

_KIND_OF: Final[dict[str, DocumentKind]] = {
    kind_name(body): kind for kind in DOCUMENT_KINDS for body in kind.bodies
}
_EDIT_TAGS: Final = frozenset(kind_name(kind.edit) for kind in DOCUMENT_KINDS)
_EDITS: Final[Mapping[type, DocumentKind]] = {kind.edit: kind for kind in DOCUMENT_KINDS}


def keep_documents(
    database: Database,
    connection: Connection,
    branch: Branch,
    nums: Sequence[int],
    new: Sequence[NewCommit],
) -> None:
    """Keep what newly accepted commits of a branch say of its documents. Costs O(what they say), each part O(log n)."""
    if branch.facts.is_root_branch:
        return
    known: dict[tuple[str, str], Document] = {}
    said: list[tuple[Document, SaidOperations]] = []
    stale: set[int] = set()
    for num, one in zip(nums, new, strict=True):
        body = one.verified.body
        content = content_of(body) if isinstance(body, Carried) else body
        found = _find_kind(content, is_carried=content is not body)
        if found is None:
            continue
        kind, is_edit = found
        commit = one.verified.commit
        place = (kind.name, document_name(commit, is_root_branch=False))
        document = known.get(place)
        if document is None:
            document = load_document(connection, branch.num, *place)
            if document is None:
                origins = None if _is_fork(connection, branch) else ()
                document = add_document(database, connection, branch.num, *place, origins=origins)
            known[place] = document
        if document.is_stale or not isinstance(kind, ValuesKind):
            continue
        if not is_edit:
            stale.add(document.num)
            known[place] = document._replace(is_stale=True)
            continue
        name = body.commit if isinstance(body, Carried) else commit.commit_id
        operations = _operations(kind, _decode(content, kind))
        said.append((document, SaidOperations(num, name, isinstance(body, Carried), operations)))
    if stale:
        said = [one for one in said if one[0].num not in stale]
    if said:
        add_operations(connection, said, nums[-1])
    mark_stale(connection, stale)


def _find_kind(content: AnyBody, *, is_carried: bool) -> tuple[DocumentKind, bool] | None:
    """Return the kind of document that a commit is of, and True for an edit; None where it is of none."""
    if is_carried:
        kind = _EDITS.get(type(content))  # others are of no document
        return None if kind is None else (kind, True)
    if isinstance(content, UnknownBody):
        kind = _KIND_OF.get(content.tag)
        # Of a body that is not here it cannot be told what it says: the document is made anew once that is needed.
        return (
            None if kind is None else (kind, isinstance(content, UnopenedBody) and content.tag in _EDIT_TAGS)
        )
    if isinstance(content, DocumentBody):
        kind = _KIND_OF[kind_name(type(content))]
        return kind, isinstance(content, kind.edit)
    return None


def _decode(content: AnyBody, kind: ValuesKind) -> ValuesEdit | None:
    """Return the edit of a commit; None for one that cannot be read, and says nothing."""
    if not isinstance(content, UnopenedBody):
        return content if isinstance(content, ValuesEdit) else None
    try:
        return decode(kind.edit, content.encoded, size_max=BODY_SIZE_MAX)
    except DecodeError:
        return None


def _operations(kind: ValuesKind, edit: ValuesEdit | None) -> list[SaidOperation]:
    if edit is None:
        return []
    replaced = edit.replaced()
    if kind is JSON:
        return [
            SaidOperation(
                key.encode(),
                value is not None,
                tuple(replaced.get(key, ())),
                find_position(key, value),
                find_increment(key, value),
            )
            for key, value in edit.values().items()
        ]
    return [
        SaidOperation(key.encode(), value is not None, tuple(replaced.get(key, ())))
        for key, value in edit.values().items()
    ]


def _is_fork(connection: Connection, branch: Branch) -> bool:
    row = load_rows(connection, [branch.facts.root_id]).get(branch.facts.root_id)
    return row is not None and row.body_kind == kind_name(BranchFork)
