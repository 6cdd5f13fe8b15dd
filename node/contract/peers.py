"""Peers of the node, and the topics that it relays for others."""

from typing import Annotated, Final

from msgspec import Meta

from node.contract.access import NODE
from node.contract.endpoint import Endpoint
from node.contract.made import Makes
from node.contract.values import Request
from protocol.limits.formats import LINK_PEER_COUNT_MAX, NAME_SIZE_MAX
from protocol.limits.users import PEER_REPOS_MAX
from ravel.types.peers import (
    PeerBan,
    PeerList,
    PeerSettings,
    PeerView,
    RelayAllowance,
    RelayedTopic,
    RelayedTopicList,
    RelayStatus,
)
from ravel.types.values import Empty, Id


class PeerRequest(Request, frozen=True):
    """Adds a peer."""

    address: Annotated[
        str, Meta(max_length=NAME_SIZE_MAX, description="`host:port`, or `wss://host:port/path`.")
    ]
    peer: Annotated[str, Meta(max_length=64, description="The peer's id, in full.")]
    relay: Annotated[
        bool | None,
        Meta(description="True if the peer may keep all topics of this node. Null: as before, at first not."),
    ] = None


class PeerSettingsRequest(Request, frozen=True):
    """Settings of a peer, as they were answered."""

    address: Annotated[str, Meta(max_length=NAME_SIZE_MAX)]
    others: Annotated[
        list[Annotated[str, Meta(max_length=NAME_SIZE_MAX)]], Meta(max_length=LINK_PEER_COUNT_MAX)
    ]
    from_link: bool
    relay: bool
    repos: Annotated[list[Id], Meta(max_length=PEER_REPOS_MAX)]


LIST_PEERS: Final = Endpoint(
    name="list_peers",
    method="GET",
    path="/peers",
    stability="stable",
    scopes=NODE,
    summary="List peers, learned addresses and banned peers.",
    answer=PeerList,
)
ADD_PEER: Final = Endpoint(
    name="add_peer",
    method="POST",
    path="/peers",
    stability="stable",
    scopes=NODE,
    summary="Keep a connection to a peer, at this address too.",
    request=PeerRequest,
    answer=PeerView,
    makes=Makes(kind="peer", what="peer"),
    errors=("not_permitted",),
)
SHOW_PEER: Final = Endpoint(
    name="show_peer",
    method="GET",
    path="/peers/{peer}",
    scopes=NODE,
    summary="Show what a user or links asked for of a peer that this node keeps a connection to.",
    answer=PeerSettings,
)
RESTORE_PEER: Final = Endpoint(
    name="restore_peer",
    method="PUT",
    path="/peers/{peer}",
    scopes=NODE,
    summary="Keep a connection to a peer, of the full id, with just these settings: to take back its removal.",
    request=PeerSettingsRequest,
    answer=PeerView,
    makes=Makes(kind="peer", what="peer"),
    errors=("not_permitted",),
)
REMOVE_PEER: Final = Endpoint(
    name="remove_peer",
    method="DELETE",
    path="/peers/{peer}",
    stability="stable",
    scopes=NODE,
    summary="Disconnect from a peer and stop dialing it.",
    answer=Empty,
)
BAN_PEER: Final = Endpoint(
    name="ban_peer",
    method="PUT",
    path="/peers/{peer}/ban",
    stability="stable",
    scopes=NODE,
    summary="Disconnect from a peer, and neither dial nor serve it.",
    answer=PeerBan,
    errors=("bad_request",),
)
UNBAN_PEER: Final = Endpoint(
    name="unban_peer",
    method="DELETE",
    path="/peers/{peer}/ban",
    stability="stable",
    scopes=NODE,
    summary="Let a banned peer connect again.",
    answer=PeerBan,
)
SHOW_RELAY: Final = Endpoint(
    name="show_relay",
    method="GET",
    path="/relay",
    scopes=NODE,
    summary="Show the accounts that this relay keeps data for, its refusals, and when it will be full.",
    answer=RelayStatus,
    errors=("bad_config",),
)
LIST_RELAYED_TOPICS: Final = Endpoint(
    name="list_relayed_topics",
    method="GET",
    path="/relay/topics",
    scopes=NODE,
    summary="List the topics that this node keeps for others, and the room that they take.",
    answer=RelayedTopicList,
    errors=("bad_config",),
)
PIN_TOPIC: Final = Endpoint(
    name="pin_topic",
    method="PUT",
    path="/relay/topics/{topic}/pin",
    scopes=NODE,
    summary="Never delete a topic to make room. A full id may name a topic that is not here yet.",
    answer=RelayedTopic,
    errors=("bad_config", "too_large"),
)
UNPIN_TOPIC: Final = Endpoint(
    name="unpin_topic",
    method="DELETE",
    path="/relay/topics/{topic}/pin",
    scopes=NODE,
    summary="Let a topic be deleted to make room, like others.",
    answer=RelayedTopic,
    errors=("bad_config", "too_large"),
)
ALLOW_PEER: Final = Endpoint(
    name="allow_peer",
    method="PUT",
    path="/relay/peers/{peer}",
    scopes=NODE,
    summary="Make a peer a known peer of this relay, by its full id.",
    answer=RelayAllowance,
    makes=Makes(kind="allowed_peer", what="peer"),
    errors=("bad_config", "bad_request"),
)
DENY_PEER: Final = Endpoint(
    name="deny_peer",
    method="DELETE",
    path="/relay/peers/{peer}",
    scopes=NODE,
    summary="Make a peer unknown to this relay.",
    answer=RelayAllowance,
    errors=("bad_config",),
)
