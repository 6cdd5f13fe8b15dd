"""Fields in which commits are shown: author, body and what it answers, from row and blocks."""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Final, cast

from sqlalchemy import Connection

from node.ingest.replica import Replica, load_blocks_of, open_stored
from protocol.formats.body import (
    Body,
    BranchFork,
    Carried,
    ErasedBody,
    Merge,
    UnknownBody,
    UnreadableBody,
    content_of,
    kind_name,
)
from protocol.formats.commit import Commit
from protocol.formats.content import Files, Imported, Post
from protocol.formats.declared_kind import document_name
from protocol.formats.text import id_text
from protocol.ids import CommitId, UserId
from ravel.types.commits import AuthorFields, BodyFields, ContentFields, Origin
from storage.commits.blocks import DamagedBlock
from storage.commits.commits import TimelineRow
from storage.repos.repos import Branch
from verifier.posts import Relation, find_attached, find_relation

CARRIED: Final = kind_name(Carried)


def author_fields(replica: Replica, branch: Branch, author: UserId) -> AuthorFields:
    """Return the author's fields: the member, and the one by which its person is known, which is another for a device."""
    repo_id = branch.facts.repo_id
    text, person = id_text(author), replica.persons(repo_id).get(author)
    return {
        "author": text,
        "person": text if person is None else id_text(person),
        "author_name": replica.people.name(repo_id, author),
    }


def load_whole_blocks(connection: Connection, rows: list[TimelineRow]) -> dict[int, list[bytes]]:
    """Load the blocks of these commits; leave out commits with damaged blocks."""
    try:
        return load_blocks_of(connection, rows)
    except DamagedBlock:
        found: dict[int, list[bytes]] = {}
        for row in rows:
            with suppress(DamagedBlock):
                found |= load_blocks_of(connection, [row])
        return found


def stored_fields(replica: Replica, row: TimelineRow, encoded: list[bytes] | None) -> ContentFields:
    """Return `opened_fields` of a commit as it is stored; `encoded` is None where its blocks were damaged."""
    if encoded is None:
        return {"time": row.timestamp // 1000, "text": None, "damaged": True}
    commit, body = open_stored(replica, row, encoded)
    return opened_fields(replica, row, commit, body)


def find_recent(replica: Replica, rows: Iterable[TimelineRow]) -> dict[int, tuple[Commit, Post | Imported]]:
    """Return, by number, the given commits that need not be read: this node has just written them."""
    found = ((row.num, replica.recent_commits.find(row.commit_id)) for row in rows if not row.is_erased)
    return {num: one for num, one in found if one is not None}


def load_fields(connection: Connection, replica: Replica, rows: Sequence[TimelineRow]) -> list[ContentFields]:
    """Load `opened_fields` of these commits, in their order."""
    recent = find_recent(replica, rows)
    blocks = load_whole_blocks(connection, [row for row in rows if row.num not in recent])
    return [
        opened_fields(replica, row, *recent[row.num])
        if row.num in recent
        else stored_fields(replica, row, blocks.get(row.num))
        for row in rows
    ]


def opened_fields(
    replica: Replica, row: TimelineRow, commit: Commit, body: Body | UnknownBody
) -> ContentFields:
    """`body_fields` of an accepted commit, what it answers and names; `node.timelines.post_views` fills in the rest."""
    branch = replica.branches[row.branch_num]
    fields = cast("ContentFields", body_fields(replica, branch, body, row.timestamp))  # the rest is optional
    if document := document_name(commit, is_root_branch=branch.facts.is_root_branch):
        fields["document"] = document
    if attached := find_attached(commit, is_root_branch=branch.facts.is_root_branch):
        fields["attachments"] = [{"commit": id_text(raw), "files": []} for raw in attached]
    if row.relation == Relation.REPLY:
        stated = find_relation(commit, is_root_branch=branch.facts.is_root_branch)
        if stated is not None and stated.answers is not None:
            fields["reply_to"] = {
                "commit": id_text(stated.answers),
                "thread": id_text(stated.about),
                "state": "absent",
            }
    return fields


def find_origins(
    connection: Connection, replica: Replica, rows: Iterable[TimelineRow]
) -> dict[CommitId, Origin]:
    """Return the origins of carried commits among the given ones: their bodies alone say whose they are."""
    carried = [row for row in rows if row.body_kind == CARRIED]
    blocks = load_whole_blocks(connection, carried)
    opened = {row.commit_id: stored_fields(replica, row, blocks.get(row.num)) for row in carried}
    return {commit_id: fields["origin"] for commit_id, fields in opened.items() if "origin" in fields}


def keeps_all(replica: Replica, branch: Branch) -> bool:
    """Return True if contents of a branch are kept, of any age: what is absent was erased then."""
    return branch.is_kept and not replica.repos[branch.repo_num].kept_days


def body_fields(replica: Replica, branch: Branch, body: Body | UnknownBody, timestamp_ms: int) -> BodyFields:
    """`time` in unix seconds: what the imported commit says where there is one, else what the author says."""
    match body:
        case ErasedBody():
            absent: BodyFields = {"time": timestamp_ms // 1000, "text": None, "erased": True}
            return absent if keeps_all(replica, branch) else {**absent, "not_kept": True}
        case UnreadableBody():
            return {"time": timestamp_ms // 1000, "text": None, "unreadable": True}
        case Post():
            return {"time": timestamp_ms // 1000, "text": body.text}
        case Imported():
            return {"time": body.time // 1000, "text": body.text, "imported_author": body.author}
        case BranchFork():
            return {
                "time": timestamp_ms // 1000,
                "text": None,
                "continues": {
                    "branch": id_text(body.origin),
                    "commits": [id_text(raw) for raw in body.commits],
                },
            }
        case Merge():
            return {
                "time": timestamp_ms // 1000,
                "text": None,
                "merged": {"branch": id_text(body.branch), "commits": [id_text(raw) for raw in body.commits]},
            }
        case Carried():
            origin: Origin = {
                "branch": id_text(body.branch),
                "commit": id_text(body.commit),
                "author": id_text(body.author),
                "author_name": replica.people.name(branch.facts.repo_id, body.author),
            }
            return {**body_fields(replica, branch, content_of(body), body.time), "origin": origin}
        case Files():
            return {"time": timestamp_ms // 1000, "text": None, "files": [entry.name for entry in body.added]}
        case _:
            return {"time": timestamp_ms // 1000, "text": None}
