"""Shows the newest commits of a branch whose past is on its way: confirmed, and apart from the timeline (`KeptWindows`)."""

from collections.abc import Mapping
from typing import cast

from node.ingest.kept_windows import KeptCommit, KeptWindows
from node.ingest.people import SHORT_ID_LENGTH
from node.ingest.replica import Replica
from node.sync.hub import Hub
from node.timelines.commit_fields import author_fields, body_fields
from node.timelines.post_views import find_mentions
from protocol.codec import DecodeError
from protocol.formats.block import WrongKey
from protocol.formats.body import Body, ErasedBody, UnknownBody, body_kind
from protocol.formats.declared_kind import read_body
from protocol.formats.links import NewestPosts
from protocol.formats.object import MissingBlocks
from protocol.formats.profiles import find_fault
from protocol.formats.text import id_text
from protocol.ids import CommitId, RepoId, UserId
from ravel.types.commits import CommitItem, ContentFields
from ravel.types.timelines import ArrivingCommits
from storage.repos.repos import Branch
from verifier.posts import HIDDEN_KINDS, PostRelation, Relation, find_relation


def show_arriving(
    hub: Hub, branch: Branch, limit: int, since: int | None = None, days: KeptWindows | None = None
) -> ArrivingCommits | None:
    """Show at most `limit` of a branch's newest commits whose past is not here; None where there are none.

    With `since`, in unix milliseconds: the first of those from that moment on, of what was fetched for it (`days`), else of
    the newest ones.
    Costs O(what is kept of the branch). Raises StorageError.
    """
    replica = hub.replica
    found = None if days is None else days.find(branch.num)
    if found is None:
        found = hub.windows.find(branch.num)
    if found is None:
        return None
    persons = replica.persons(branch.facts.repo_id)
    relations = {
        one.commit_id: find_relation(one.opened.signed.commit, is_root_branch=False) for one in found.listed
    }
    changed = _find_changed(found.listed, relations, persons)
    said = [one for one in found.listed if not _is_change(relations[one.commit_id])]
    if since is not None:
        said = [one for one in said if one.opened.signed.commit.content.timestamp >= since]
    shown: ArrivingCommits = {
        "items": [
            _show(replica, branch, one, relations[one.commit_id], changed.get(one.commit_id))
            for one in (said[-limit:] if since is None else said[:limit])
        ],
        "earlier": found.earlier,
        "waiting": found.waiting,
    }
    if found.vouched is not None:
        shown["vouched"] = {
            "user": id_text(found.vouched.maker),
            "name": maker_name(replica, branch.facts.repo_id, found.vouched),
            "at": found.vouched.at // 1000,
        }
    return shown


def maker_name(replica: Replica, repo_id: RepoId, states: NewestPosts) -> str:
    """Return how the maker of a link is shown: as in the repo, else as the link says, else by the start of the id."""
    claimed = states.name if states.name is not None and not find_fault(states.name) else ""
    return replica.people.name(repo_id, states.maker) or claimed or id_text(states.maker)[:SHORT_ID_LENGTH]


def _is_change(relation: PostRelation | None) -> bool:
    return relation is not None and relation.relation != Relation.REPLY


def _find_changed(
    listed: tuple[KeptCommit, ...],
    relations: Mapping[CommitId, PostRelation | None],
    persons: Mapping[UserId, UserId],
) -> dict[CommitId, KeptCommit]:
    """Return the last edit or deletion by the same person of those that have one here. A deletion is for good."""
    by_id = {one.commit_id: one for one in listed}
    found: dict[CommitId, KeptCommit] = {}
    for one in listed:
        relation = relations[one.commit_id]
        if relation is None or not _is_change(relation):
            continue
        post, former = by_id.get(relation.about), found.get(relation.about)
        if post is None or persons.get(post.author, post.author) != persons.get(one.author, one.author):
            continue
        stated = None if former is None else relations[former.commit_id]
        if stated is None or stated.relation != Relation.DELETE:
            found[relation.about] = one
    return found


def _show(
    replica: Replica,
    branch: Branch,
    one: KeptCommit,
    relation: PostRelation | None,
    change: KeptCommit | None,
) -> CommitItem:
    commit = one.opened.signed.commit
    kind = body_kind(one.opened.signed.body)
    fields = _content(replica, branch, one)
    hider = replica.hidden(branch.facts.repo_id).get(branch.branch_id, {}).get(one.commit_id)
    if hider is not None and kind in HIDDEN_KINDS:
        fields["text"], fields["hidden_by"] = None, id_text(hider)
        fields["hidden_by_name"] = replica.people.name(branch.facts.repo_id, hider)
    elif change is not None:
        stated = find_relation(change.opened.signed.commit, is_root_branch=False)
        if stated is not None and stated.relation == Relation.DELETE:
            fields["text"], fields["deleted"] = None, True
        else:
            edit = _content(replica, branch, change)
            fields["text"], fields["edited_at"] = edit["text"], edit["time"]
    if relation is not None and relation.answers is not None:
        fields["reply_to"] = {
            "commit": id_text(relation.answers),
            "thread": id_text(relation.about),
            "state": "absent",
        }
    if fields["text"] and (named := find_mentions(replica, branch.facts.repo_id, fields["text"])):
        fields["mentions"] = named
    return {
        "commit": id_text(commit.commit_id),
        "rank": commit.rank,
        **author_fields(replica, branch, one.author),
        "kind": kind,
        "acks": [id_text(ack) for ack in commit.acks],
        **fields,
    }


def _content(replica: Replica, branch: Branch, one: KeptCommit) -> ContentFields:
    body = _open(replica, branch, one)
    shown = body_fields(replica, branch, body, one.opened.signed.commit.content.timestamp)
    return cast("ContentFields", shown)  # the rest is optional


def _open(replica: Replica, branch: Branch, one: KeptCommit) -> Body | UnknownBody:
    """Open a body from its publication: an ErasedBody where it came without, or its key is not here any more."""
    commit, publication = one.opened.signed.commit, one.opened.publication
    absent = ErasedBody(body_kind(one.opened.signed.body))
    epoch = replica.tables.find_epoch(branch.repo_num, commit.content.epoch)
    if epoch is None or publication.body_id is not None:
        return absent
    blocks = {block.block_id: block for block in publication.blocks[1:]}
    try:
        return read_body(commit, blocks.get, epoch.convergence_secret, is_root_branch=False)[0]
    except (MissingBlocks, WrongKey, DecodeError):
        return absent
