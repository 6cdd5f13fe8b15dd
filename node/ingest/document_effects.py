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
from protocol.ids import CommitId
from protocol.limits.formats import BODY_SIZE_MAX
from storage.commits.commits import NewCommit, load_rows
from storage.commits.document_rows import (
    Document,
    SaidOperations,
    add_document,
    add_operations,
    load_document,
    mark_stale,
)
from storage.engine.database import Database
from storage.repos.repos import Branch
from verifier.json_contents import find_increment, find_position

_KIND_OF: Final[dict[str, DocumentKind]] = {
    kind_name(body): kind for kind in DOCUMENT_KINDS for body in kind.bodies
}
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
        commit, body = one.verified.commit, one.verified.body
        content = content_of(body)
        found = _find_kind(content, is_carried=content is not body)
        if found is None:
            continue
        kind, is_edit = found
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
        edit = _decode(content, kind)
        if isinstance(body, Carried):
            said.append((document, _operations(num, body.commit, kind, edit, is_carried=True)))
        else:
            said.append((document, _operations(num, commit.commit_id, kind, edit, is_carried=False)))
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
        is_edit = (
            isinstance(content, UnopenedBody) and kind is not None and content.tag == kind_name(kind.edit)
        )
        return None if kind is None else (kind, is_edit)
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


def _operations(
    num: int, name: CommitId, kind: ValuesKind, edit: ValuesEdit | None, *, is_carried: bool
) -> SaidOperations:
    if edit is None:
        return SaidOperations(num, name, is_carried, {}, frozenset(), {}, {})
    values = edit.values()
    keys = {key: key.encode() for key in values}
    positions: dict[bytes, bytes] = {}
    added: dict[bytes, int] = {}
    for key, value in values.items() if kind is JSON else ():
        position, number = find_position(key, value), find_increment(key, value)
        if position is not None:
            positions[keys[key]] = position
        elif number is not None:
            added[keys[key]] = number
    return SaidOperations(
        num,
        name,
        is_carried,
        {keys[key]: value is not None for key, value in values.items()},
        frozenset([(keys[key], replaced_name) for key, replaced_name in edit.replaced()]),
        positions,
        added,
    )


def _is_fork(connection: Connection, branch: Branch) -> bool:
    row = load_rows(connection, [branch.facts.root_id]).get(branch.facts.root_id)
    return row is not None and row.body_kind == kind_name(BranchFork)
