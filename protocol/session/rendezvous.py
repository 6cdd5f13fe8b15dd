"""Relay-assisted peer discovery on one session: rules and bounds. Pure.

Members who were invited by the same person know its node, and not each other's. At a relay that passes circuits on, a node
says `meet1` on a joined topic. The relay names to it the nodes that have said the same on that topic, and it to them. It
tells nothing of others, and learns nothing: it knows its topics' followers.
"""

from protocol.ids import TopicKey
from protocol.limits.peers import MEETING_TOPICS_MAX, NODES_NAMED_MAX, NODES_OF_MEETING_MAX
from protocol.session.events import NodesFound
from protocol.session.machines.table import PeerFault
from protocol.session.messages import Meet, Nodes
from protocol.session.outputs import NodesLearned, Output, RendezvousAsked, Send
from protocol.session.topic_progress import TopicProgress


class Rendezvous:
    """Topics of one session on which nodes are named to each other."""

    def __init__(self) -> None:
        self._own: dict[TopicKey, int] = {}  # by topic of this side: nodes that it may still be told
        self._peers: dict[TopicKey, int] = {}  # by topic of the peer: nodes that it may still be told

    def ask(self, progress: TopicProgress) -> list[Output]:
        """Ask the relay for other nodes of a topic, once."""
        if progress.topic in self._own or len(self._own) >= MEETING_TOPICS_MAX:
            return []
        self._own[progress.topic] = NODES_OF_MEETING_MAX
        return [Send(Meet(progress.blind))]

    def tell(self, progress: TopicProgress, event: NodesFound) -> list[Output]:
        """Name nodes to the peer, as many as it may still be told."""
        fresh = event.nodes[: self._peers.get(progress.topic, 0)]
        if fresh:
            self._peers[progress.topic] -= len(fresh)
        return [
            Send(Nodes(progress.blind, fresh[start : start + NODES_NAMED_MAX]))
            for start in range(0, len(fresh), NODES_NAMED_MAX)
        ]

    def handle_meet(self, topic: TopicKey, *, is_agreed: bool) -> list[Output]:
        """Take the peer's question for other nodes of a topic. `is_agreed`: this side passes circuits on."""
        if not is_agreed:
            raise PeerFault("no_circuits")
        if topic in self._peers:
            return []
        if len(self._peers) >= MEETING_TOPICS_MAX:
            raise PeerFault("too_many_meetings")
        self._peers[topic] = NODES_OF_MEETING_MAX
        return [RendezvousAsked(topic)]

    def handle_nodes(self, progress: TopicProgress, message: Nodes) -> list[Output]:
        """Take nodes that the peer names. Raises PeerFault for more than were asked for."""
        left = self._own.get(progress.topic)
        if left is None:
            raise PeerFault("unasked_nodes")
        if len(message.nodes) > left:
            raise PeerFault("too_many_nodes")
        self._own[progress.topic] = left - len(message.nodes)
        return [NodesLearned(progress.topic, message.nodes)]
