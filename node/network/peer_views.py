"""Views of peers and topics for the API: how each stands with this node."""

from collections.abc import Iterator, Mapping
from typing import Literal, NamedTuple, TypedDict

import trio

from node.ingest.tables import Tables
from node.network.peer_state import PeerState
from node.sync.addresses import Learned
from node.sync.connection import Connection as PeerConnection
from node.sync.sync_progress import topic_progress
from protocol.formats.text import id_text
from protocol.formats.web_address import is_web_address
from protocol.limits.peers import STALLED_SECONDS
from protocol.session.topic_progress import IN_SYNC, TopicProgress
from ravel.types.peers import CalledPeer, LearnedAddress, PeerView, TopicName, TopicView
from storage.repos.epochs import Topic
from storage.repos.repos import Branch, Repo


def peer_view(
    state: PeerState, topics: list[TopicView], called: CalledPeer, through_name: str = ""
) -> PeerView:
    """Describe a peer. `topics` are those of `view_topics`; `through_name` is what this user calls the relay between."""
    return {
        **called,
        "peer": id_text(state.peer),
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
        "waiting_topics": state.connection.waiting_count if state.connection is not None else 0,
        "unknown_messages": state.connection.unknown_count if state.connection is not None else 0,
        "source": state.source,
        "reached_at": state.reached_at,
        "topics": topics,
    }


class TopicNames:
    """Names of topics as views show them, which are kept while a topic, its repo and its branch stay as they are.

    Peers have thousands of topics in common, and pages look every second: to write ids as text took most of a look.
    """

    def __init__(self) -> None:
        self._kept: dict[int, tuple[Topic, Repo, Branch | None, TopicName]] = {}  # by the topic's number

    def begin_look(self, tables: Tables) -> None:
        """Forget all once as many are kept as there are topics, and more: some are of topics that have gone."""
        if len(self._kept) > len(tables.topics):
            self._kept.clear()

    def find(self, tables: Tables, topic: Topic) -> TopicName:
        """Return the name of a topic. Costs O(1)."""
        repo = tables.repos[topic.repo_num]
        branch = None if topic.branch_num is None else tables.branches[topic.branch_num]
        kept = self._kept.get(topic.num)
        if kept is not None and kept[0] is topic and kept[1] is repo and kept[2] is branch:
            return kept[3]
        epochs = topic.epochs or topic.writers_of
        epoch_id = topic.channel.epoch if topic.channel is not None else epochs[0].epoch_id
        name: TopicName = {
            "repo": id_text(repo.repo_id),
            "name": repo.name if branch is None else branch.name,
            "kind": "branch" if topic.is_link else "epoch" if topic.epochs else "writers",
            "epoch": id_text(epoch_id),
        }
        self._kept[topic.num] = (topic, repo, branch, name)
        return name


def view_topics(
    state: PeerState, tables: Tables, waiting: Mapping[int, int], now: int, names: TopicNames
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
            **names.find(tables, row),
            "state": _state_of(topic, waiting.get(row.num, 0)),
            "behind": topic.behind,
            "progress": topic_progress(topic, rates, at),
            "bodiless": topic.bodiless > 0,
            "to_send": topic.to_send,
            "sent": topic.sent,
            "confirmed": topic.confirmed,
            "received": topic.received,
            **_stalled_fields(find_stall(connection, topic, now)),
        }


def _state_of(topic: TopicProgress, waiting: int) -> str:
    """Return what stands between this node and a peer on a topic: not "in sync" while commits wait here for others."""
    return "waiting" if waiting and topic.state == IN_SYNC else topic.state


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


class Stall(NamedTuple):
    """Failure of a peer to take what was sent, or to answer."""

    since: int
    """Unix seconds."""
    because: Literal["nothing_heard", "takes_nothing"]


def find_stall(connection: PeerConnection, topic: TopicProgress, now: int) -> Stall | None:
    """Return since when a peer has left sent commits unread or questions unanswered on a topic; None if it has not."""
    is_late, is_silent = (now - at >= STALLED_SECONDS for at in (connection.progress_at, connection.heard_at))
    if topic.in_flight and is_late:
        return Stall(connection.progress_at, "nothing_heard" if is_silent else "takes_nothing")
    return Stall(connection.heard_at, "nothing_heard") if topic.state == "comparing" and is_silent else None


def _stalled_fields(stall: Stall | None) -> _StalledFields:
    since, because = (None, None) if stall is None else stall
    return {"stalled_since": since, "stalled_because": because}
