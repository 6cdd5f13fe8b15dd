"""Which nodes a relay names to each other on a session, so that they can ask for circuits: rules and bounds. Pure.

Members who were invited by the same person know its node, and not each other's. At a relay that passes circuits on, a node
says `meet1` on a joined topic. The relay names to it the nodes that have said the same on that topic, and it to them. It
tells nothing of others, and learns nothing: it knows its topics' followers.
"""

from protocol.ids import BlindTopic, PeerId, TopicKey
from protocol.limits.peers import MEETING_TOPICS_MAX, NODES_NAMED_MAX, NODES_OF_MEETING_MAX
from protocol.machines.table import PeerFault
from protocol.messages import Meet, Nodes
from protocol.session_outputs import NodeMeets, NodesLearned, Output, Send


class Meetings:
    """The part of a session machine that is about nodes that are named to each other."""

    def __init__(self) -> None:
        self._own: dict[
            TopicKey, int
        ] = {}  # by topic on which this side meets: nodes that it may still be told
        self._peers: dict[TopicKey, int] = {}  # the same of the peer

    def meet(self, blind: BlindTopic, topic: TopicKey) -> list[Output]:
        """This side meets others on a topic, once."""
        if topic in self._own or len(self._own) >= MEETING_TOPICS_MAX:
            return []
        self._own[topic] = NODES_OF_MEETING_MAX
        return [Send(Meet(blind))]

    def found(self, blind: BlindTopic, topic: TopicKey, nodes: tuple[PeerId, ...]) -> list[Output]:
        """Name these to the peer, as far as it may be told more."""
        fresh = nodes[: self._peers.get(topic, 0)]
        if fresh:
            self._peers[topic] -= len(fresh)
        return [
            Send(Nodes(blind, fresh[start : start + NODES_NAMED_MAX]))
            for start in range(0, len(fresh), NODES_NAMED_MAX)
        ]

    def peer_meets(self, topic: TopicKey, *, is_agreed: bool) -> list[Output]:
        """The peer meets others on a topic. Raises PeerFault."""
        if not is_agreed:
            raise PeerFault("no_circuits")
        if topic in self._peers:
            return []
        if len(self._peers) >= MEETING_TOPICS_MAX:
            raise PeerFault("too_many_meetings")
        self._peers[topic] = NODES_OF_MEETING_MAX
        return [NodeMeets(topic)]

    def told(self, topic: TopicKey, message: Nodes) -> list[Output]:
        """The peer names nodes. Raises PeerFault where it was not asked to, or names too many."""
        left = self._own.get(topic)
        if left is None:
            raise PeerFault("unasked_nodes")
        if len(message.nodes) > left:
            raise PeerFault("too_many_nodes")
        self._own[topic] = left - len(message.nodes)
        return [NodesLearned(topic, message.nodes)]
