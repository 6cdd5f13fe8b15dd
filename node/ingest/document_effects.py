"""Takes up what accepted commits say of documents: opens their bodies, and has the store keep what these come to.

No verdict rests on such a body, so nothing has opened it before (`publication_reading`).
"""

from collections.abc import Sequence
from typing import Final

from sqlalchemy import Connection

from node.ingest.tables import Tables
from protocol.formats.body import (
    AnyBody,
    BranchFork,
    Carried,
    UnknownBody,
    UnopenedBody,
    content_of,
    kind_name,
)
from protocol.formats.declared_kind import document_name, read_body
from protocol.formats.document_kinds import (
    DOCUMENT_KINDS,
    JSON,
    DocumentBody,
    DocumentKind,
    ValuesEdit,
    ValuesKind,
)
from protocol.ids import CommitId
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
from verifier.json_documents import find_increment, find_position

_KIND_OF: Final[dict[str, DocumentKind]] = {
    kind_name(body): kind for kind in DOCUMENT_KINDS for body in kind.bodies
}
_EDITS: Final = {kind.edit: kind for kind in DOCUMENT_KINDS}


def keep_documents(
    database: Database,
    connection: Connection,
    tables: Tables,
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
        found = _find_kind(one.verified.body)
        if found is None:
            continue
        kind, is_edit = found
        name = document_name(one.verified.commit, is_root_branch=False)
        place = (kind.name, name)
        if place not in known:
            document = load_document(connection, branch.num, *place)
            if document is None:
                origins = None if _is_fork(connection, branch) else ()
                document = add_document(database, connection, branch.num, *place, origins=origins)
            known[place] = document
        document = known[place]
        if document.is_stale or not isinstance(kind, ValuesKind):
            continue
        if not is_edit:
            stale.add(document.num)
            known[place] = document._replace(is_stale=True)
            continue
        first_id, body = _read(one, tables)
        edit = body if isinstance(body, ValuesEdit) else None
        is_carried = isinstance(one.verified.body, Carried)
        said.append((document, _operations(num, first_id, kind, edit, is_carried=is_carried)))
    said = [one for one in said if one[0].num not in stale]
    if said:
        add_operations(connection, said, nums[-1])
    mark_stale(connection, stale)


def _find_kind(body: AnyBody) -> tuple[DocumentKind, bool] | None:
    """Return the kind of document that a commit is of, and True for an edit; None where it is of none."""
    if isinstance(body, Carried):
        kind = _EDITS.get(type(content_of(body)))  # type: ignore[arg-type]  # others are of no document
        return None if kind is None else (kind, True)
    if isinstance(body, UnknownBody):
        kind = _KIND_OF.get(body.tag)
        # Of a body that is not here it cannot be told what it says: the document is made anew once that is needed.
        return (
            None
            if kind is None
            else (kind, isinstance(body, UnopenedBody) and body.tag == kind_name(kind.edit))
        )
    if isinstance(body, DocumentBody):
        kind = _KIND_OF[kind_name(type(body))]
        return kind, isinstance(body, kind.edit)
    return None


def _read(one: NewCommit, tables: Tables) -> tuple[CommitId, DocumentBody | None]:
    """Return the id that the commit had first, and its edit; None for one that cannot be read, and says nothing."""
    body: AnyBody = one.verified.body
    commit = one.verified.commit
    if isinstance(body, UnopenedBody):
        epoch = tables.epochs.get(one.epoch_num)
        channel = tables.topics[one.topic_num].channel if epoch is None else None
        secret = epoch.convergence_secret if epoch is not None else None
        if secret is None:
            assert channel is not None, "it was opened by one of them"
            secret = channel.convergence_secret
        blocks = {block.block_id: block for block in one.publication.blocks[1:]}
        body, _ = read_body(commit, blocks.get, secret, is_root_branch=False)
    content = content_of(body)
    name = body.commit if isinstance(body, Carried) else commit.commit_id
    return name, content if isinstance(content, DocumentBody) else None


def _operations(
    num: int, name: CommitId, kind: ValuesKind, body: ValuesEdit | None, *, is_carried: bool
) -> SaidOperations:
    if body is None:
        return SaidOperations(num, name, is_carried, {}, frozenset(), {}, {})
    values = body.values()
    positions: dict[bytes, bytes] = {}
    added: dict[bytes, int] = {}
    for key, value in values.items() if kind is JSON else ():
        position, number = find_position(key, value), find_increment(key, value)
        if position is not None:
            positions[key.encode()] = position
        elif number is not None:
            added[key.encode()] = number
    return SaidOperations(
        num,
        name,
        is_carried,
        {key.encode(): value is not None for key, value in values.items()},
        frozenset((key.encode(), replaced_name) for key, replaced_name in body.replaced()),
        positions,
        added,
    )


def _is_fork(connection: Connection, branch: Branch) -> bool:
    row = load_rows(connection, [branch.facts.root_id]).get(branch.facts.root_id)
    return row is not None and row.body_kind == kind_name(BranchFork)
