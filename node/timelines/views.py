"""Converts rows and values to JSON, so that all answers use the same fields."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from sqlalchemy import Connection

from node.ingest.replica import Replica
from node.sync.body_fetching import fetch_opened
from node.sync.hub import Hub
from node.timelines.commit_fields import author_fields, load_fields
from node.timelines.post_views import show_changes
from protocol.formats.body import Permission
from protocol.formats.text import id_text, parse_id
from protocol.ids import BlockId, CommitId
from ravel.types.branches import BranchView
from ravel.types.commits import ContentFields, TimelineItem
from ravel.types.repos import RepoStanding, RepoView
from storage.commits.commits import TimelineRow
from storage.commits.edits import Cursor
from storage.repos.repos import Branch, Repo

T = TypeVar("T", bound=Mapping[str, Any])


def repo_view(
    repo: Repo,
    branches: list[Branch],
    permission: Permission | None,
    *,
    was_member: bool,
    standing: RepoStanding,
    is_joining: bool,
    requests: int,
    offers: int,
    revision: int,
    is_damaged: bool,
    of_devices: bool,
) -> RepoView:
    """Show a repo. A user who is no member may read what there is, was one, or is "joining" until the membership arrives.

    Where it cannot be computed for damage, nobody can tell.
    """
    held = "former" if was_member else "read"
    if permission is not None:
        held = permission.name.lower()
    if is_damaged:
        held = "damaged"
    return {
        "repo": id_text(repo.repo_id),
        "name": repo.name,
        "permission": "joining" if is_joining else held,
        "whole": repo.has_members,
        "of_devices": of_devices,
        "branches": sum(not branch.facts.is_root_branch for branch in branches),
        "commits": sum(branch.commit_count - branch.void_count for branch in branches),
        "requests": requests,
        "offers": offers,
        "revision": revision,
        "standing": standing,
    }


def branch_view(
    branch: Branch,
    heads: Sequence[tuple[CommitId, int]],
    head_count: int,
    *,
    latest_ms: int | None,
    waiting: int,
    unread: int,
    rejected: int,
) -> BranchView:
    """Show a branch, with some of its heads (id and rank)."""
    return {
        "branch": id_text(branch.branch_id),
        "name": branch.name,
        "repo": id_text(branch.facts.repo_id),
        "archived": branch.is_archived,
        "main": branch.is_main,
        "kept": branch.is_kept,
        "commits": branch.commit_count - branch.void_count,
        "latest_at": None if latest_ms is None else latest_ms // 1000,
        "heads": [id_text(commit_id) for commit_id, _ in heads],
        "head_count": head_count,
        "pending": waiting,
        "unread": unread,
        "void": branch.void_count,
        "rejected": rejected,
    }


def timeline_items(
    connection: Connection, replica: Replica, rows: list[TimelineRow], position: int
) -> list[TimelineItem]:
    """Timeline rows with their bodies opened, from `position` on."""
    fields = load_fields(connection, replica, rows)
    items = [
        _timeline_item(replica, row, one, position + index)
        for index, (row, one) in enumerate(zip(rows, fields, strict=True))
    ]
    show_changes(connection, replica, list(zip(rows, items, strict=True)))
    return items


def _timeline_item(replica: Replica, row: TimelineRow, fields: ContentFields, position: int) -> TimelineItem:
    branch = replica.branches[row.branch_num]
    return {
        "position": position,
        "commit": id_text(row.commit_id),
        "rank": row.rank,
        **author_fields(replica, branch, row.author),
        "kind": row.body_kind,
        "acks": [id_text(ack) for ack in row.acks],
        "place": place_text(row.passed, row.rank, row.commit_id),
        **fields,
    }


def place_text(passed: int, rank: int, commit_id: CommitId) -> str:
    """Return a place in the canonical order. As texts, places stand in its order."""
    return f"{passed:016x}{rank:016x}{commit_id.hex()}"


def edit_cursor_text(store: str, branch: Branch, cursor: Cursor) -> str:
    """Return a cursor of a branch's edits as followers keep it.

    It says the branch, for a name can come to mean another; and the `store`, for a new or restored one has other numbers.
    """
    read = "" if cursor.snapshot_read is None else f".{cursor.snapshot_read}"
    return f"{store}-{branch.num}-{cursor.change}{read}"


async def show_opened(hub: Hub, read: Callable[[], T], parts: str = "items") -> T:
    """Return a view that `read` makes of a commit or of its `parts`: again once contents have come that are not kept here.

    Costs what `read` does, twice where something comes, and the wait of `fetch_opened`. Raises as `read` does.
    """
    view = await hub.run_blocking(read)
    items = view.get(parts, [view])
    absent = [CommitId(BlockId(parse_id(one["commit"]))) for one in items if one.get("not_kept")]
    return await hub.run_blocking(read) if await fetch_opened(hub, absent) else view
