"""Converts rows and values to JSON, so that all answers use the same fields."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TypedDict

import trio
from sqlalchemy import Connection

from node.contract.branches import BranchView
from node.contract.commits import TimelineItem
from node.contract.peers import LearnedAddress, PeerView, TopicName, TopicView
from node.contract.repos import RepoStanding, RepoView
from node.ingest.replica import Replica
from node.ingest.tables import Tables
from node.network.peer_state import PeerState
from node.sync.addresses import Learned
from node.sync.connection import Connection as PeerConnection
from node.sync.sync_progress import topic_progress
from node.timelines.commit_fields import author_fields, load_whole_blocks, stored_fields
from node.timelines.post_views import show_changes
from protocol.body import Permission
from protocol.ids import CommitId
from protocol.limits.peers import STALLED_SECONDS
from protocol.text import id_text
from protocol.topic_progress import TopicProgress
from protocol.web_address import is_web_address
from storage.commits.commits import TimelineRow
from storage.repos.epochs import Topic
from storage.repos.repos import Branch, Repo


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
    is_damaged: bool = False,
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
        "commits": branch.commit_count - branch.void_count,
        "heads": [id_text(commit_id) for commit_id, _ in heads],
        "head_count": head_count,
        "pending": waiting,
        "unread": unread,
        "void": branch.void_count,
        "rejected": rejected,
    }


def peer_view(
    state: PeerState, topics: list[TopicView], petname: str = "", through_name: str = ""
) -> PeerView:
    """Describe a peer. `topics` are those of `view_topics`.

    `petname` and `through_name` are what this user calls the peer, and the relay that it is met through.
    """
    return {
        "peer": id_text(state.peer),
        "name": petname,
        "address": state.address,
        "path": "relayed" if state.through is not None else "punched" if state.is_punched else "direct",
        "through": None if state.through is None else id_text(state.through),
        "through_name": through_name,
        "websocket": state.is_web or is_web_address(state.address),
        "direction": state.direction,
        "state": state.state,
        "since": int(state.since),
        "last_error": state.last_error,
        "relay": state.connection is not None and state.connection.peer_is_relay,
        "newer_features": state.connection.newer_features if state.connection is not None else [],
        "older_features": state.connection.older_features if state.connection is not None else [],
        "unknown_messages": state.connection.unknown_count if state.connection is not None else 0,
        "source": state.source,
        "reached_at": state.reached_at,
        "topics": topics,
    }


def view_topics(
    state: PeerState, tables: Tables, waiting: Mapping[int, int], now: int
) -> Iterator[TopicView]:
    """Yield the state of each topic with a connected peer, at `now` in unix seconds.

    One by one, since there may be thousands: the caller lets others have their turn. `waiting` counts commits that wait
    here, by the numbers of topics. A peer that leaves meanwhile is shown as it was.
    """
    connection = state.connection
    if connection is None:
        return
    rates, at = connection.transfer_rates, trio.current_time()
    for topic in connection.topics:
        row = tables.by_topic.get(topic.topic)
        if row is None:
            continue
        yield {
            **_name_topic(tables, row),
            "state": _state_of(topic, waiting.get(row.num, 0)),
            "behind": topic.behind,
            "progress": topic_progress(topic, rates, at),
            "bodiless": topic.bodiless > 0,
            "to_send": topic.to_send,
            "sent": topic.sent,
            "confirmed": topic.confirmed,
            "received": topic.received,
            **_stalled(connection, topic, now),
        }


def _state_of(topic: TopicProgress, waiting: int) -> str:
    """Return what stands between this node and a peer on a topic: not "in sync" while commits wait here for others."""
    return "waiting" if waiting and topic.state == "in sync" else topic.state


def _name_topic(tables: Tables, topic: Topic) -> TopicName:
    repo = tables.repos[topic.repo_num]
    epochs = topic.epochs or topic.writers_of
    epoch_id = topic.channel.epoch if topic.channel is not None else epochs[0].epoch_id
    return {
        "repo": id_text(repo.repo_id),
        "name": repo.name if topic.branch_num is None else tables.branches[topic.branch_num].name,
        "kind": "branch" if topic.is_link else "epoch" if topic.epochs else "writers",
        "epoch": id_text(epoch_id),
    }


def learned_view(learned: Learned, reached_at: int | None) -> LearnedAddress:
    """Show a learned address of a peer that is not connected; unix seconds when it was last reached anywhere."""
    return {
        "peer": id_text(learned.peer),
        "address": learned.address,
        "source": learned.source,
        "reached_at": reached_at,
        "failures": learned.failures,
    }


class _StalledFields(TypedDict):
    stalled_since: int | None
    stalled_because: str | None


def _stalled(connection: PeerConnection, topic: TopicProgress, now: int) -> _StalledFields:
    """Unix seconds since when a peer has not taken what was sent on a topic, or not answered for it, and why; or None."""
    is_late, is_silent = (now - at >= STALLED_SECONDS for at in (connection.progress_at, connection.heard_at))
    if topic.in_flight and is_late:
        since = connection.progress_at
        return {"stalled_since": since, "stalled_because": "nothing_heard" if is_silent else "takes_nothing"}
    if topic.state == "comparing" and is_silent:
        return {"stalled_since": connection.heard_at, "stalled_because": "nothing_heard"}
    return {"stalled_since": None, "stalled_because": None}


def timeline_items(
    connection: Connection, replica: Replica, rows: list[TimelineRow], position: int
) -> list[TimelineItem]:
    """Timeline rows with their bodies opened, from `position` on."""
    blocks = load_whole_blocks(connection, rows)
    items = [
        _timeline_item(replica, row, blocks.get(row.num), position + index) for index, row in enumerate(rows)
    ]
    show_changes(connection, replica, list(zip(rows, items, strict=True)))
    return items


def _timeline_item(
    replica: Replica, row: TimelineRow, encoded: list[bytes] | None, position: int
) -> TimelineItem:
    branch = replica.branches[row.branch_num]
    return {
        "position": position,
        "commit": id_text(row.commit_id),
        "rank": row.rank,
        **author_fields(replica, branch, row.author),
        "kind": row.body_kind,
        "acks": [id_text(ack) for ack in row.acks],
        "place": place_text(row.passed, row.rank, row.commit_id),
        **stored_fields(replica, row, encoded),
    }


def place_text(passed: int, rank: int, commit_id: CommitId) -> str:
    """Return a place in the canonical order. As texts, places stand in its order."""
    return f"{passed:016x}{rank:016x}{commit_id.hex()}"
