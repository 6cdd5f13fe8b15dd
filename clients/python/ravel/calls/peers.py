"""Calls: peers. Made from the table of endpoints by `make reference`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ravel.callers import SyncCaller
from ravel.operations import Operation

if TYPE_CHECKING:  # a command calls one or two, and imports their types
    from collections.abc import Sequence

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
    from ravel.types.values import Empty

LIST_PEERS: Final[Operation[PeerList]] = Operation("GET", "/peers", "peers.PeerList")
ADD_PEER: Final[Operation[PeerView]] = Operation("POST", "/peers", "peers.PeerView", defaults={"relay": None})
SHOW_PEER: Final[Operation[PeerSettings]] = Operation("GET", "/peers/{peer}", "peers.PeerSettings")
RESTORE_PEER: Final[Operation[PeerView]] = Operation("PUT", "/peers/{peer}", "peers.PeerView")
REMOVE_PEER: Final[Operation[Empty]] = Operation("DELETE", "/peers/{peer}", "values.Empty")
BAN_PEER: Final[Operation[PeerBan]] = Operation("PUT", "/peers/{peer}/ban", "peers.PeerBan")
UNBAN_PEER: Final[Operation[PeerBan]] = Operation("DELETE", "/peers/{peer}/ban", "peers.PeerBan")
SHOW_RELAY: Final[Operation[RelayStatus]] = Operation("GET", "/relay", "peers.RelayStatus")
LIST_RELAYED_TOPICS: Final[Operation[RelayedTopicList]] = Operation(
    "GET", "/relay/topics", "peers.RelayedTopicList"
)
PIN_TOPIC: Final[Operation[RelayedTopic]] = Operation(
    "PUT", "/relay/topics/{topic}/pin", "peers.RelayedTopic"
)
UNPIN_TOPIC: Final[Operation[RelayedTopic]] = Operation(
    "DELETE", "/relay/topics/{topic}/pin", "peers.RelayedTopic"
)
ALLOW_PEER: Final[Operation[RelayAllowance]] = Operation("PUT", "/relay/peers/{peer}", "peers.RelayAllowance")
DENY_PEER: Final[Operation[RelayAllowance]] = Operation(
    "DELETE", "/relay/peers/{peer}", "peers.RelayAllowance"
)


class PeersCalls(SyncCaller):
    """Methods that wait for the answer."""

    def list_peers(self) -> PeerList:
        """List peers, learned addresses and banned peers."""
        return self._call(LIST_PEERS, {})

    def add_peer(self, address: str, peer: str, *, relay: bool | None = None) -> PeerView:
        """Keep a connection to a peer, at this address too."""
        return self._call(ADD_PEER, {"address": address, "peer": peer, "relay": relay})

    def show_peer(self, peer: str) -> PeerSettings:
        """Show what a user or links asked for of a peer that this node keeps a connection to."""
        return self._call(SHOW_PEER, {"peer": peer})

    def restore_peer(
        self,
        peer: str,
        address: str,
        others: Sequence[str],
        from_link: bool,
        relay: bool,
        repos: Sequence[str],
    ) -> PeerView:
        """Keep a connection to a peer, of the full id, with just these settings: to take back its removal."""
        return self._call(
            RESTORE_PEER,
            {
                "peer": peer,
                "address": address,
                "others": others,
                "from_link": from_link,
                "relay": relay,
                "repos": repos,
            },
        )

    def remove_peer(self, peer: str) -> Empty:
        """Disconnect from a peer and stop dialing it."""
        return self._call(REMOVE_PEER, {"peer": peer})

    def ban_peer(self, peer: str) -> PeerBan:
        """Disconnect from a peer, and neither dial nor serve it."""
        return self._call(BAN_PEER, {"peer": peer})

    def unban_peer(self, peer: str) -> PeerBan:
        """Let a banned peer connect again."""
        return self._call(UNBAN_PEER, {"peer": peer})

    def show_relay(self) -> RelayStatus:
        """Show what this relay keeps, for whom, what it refuses, and when it will be full."""
        return self._call(SHOW_RELAY, {})

    def list_relayed_topics(self) -> RelayedTopicList:
        """List the topics that this node keeps for others, and the room that they take."""
        return self._call(LIST_RELAYED_TOPICS, {})

    def pin_topic(self, topic: str) -> RelayedTopic:
        """Never delete a topic to make room. A full id may name a topic that is not here yet."""
        return self._call(PIN_TOPIC, {"topic": topic})

    def unpin_topic(self, topic: str) -> RelayedTopic:
        """Let a topic be deleted to make room, like others."""
        return self._call(UNPIN_TOPIC, {"topic": topic})

    def allow_peer(self, peer: str) -> RelayAllowance:
        """Make a peer a known peer of this relay, by its full id."""
        return self._call(ALLOW_PEER, {"peer": peer})

    def deny_peer(self, peer: str) -> RelayAllowance:
        """Make a peer unknown to this relay."""
        return self._call(DENY_PEER, {"peer": peer})
