"""Relay-assisted peer discovery on one session: rules and bounds. Pure.

Members who were invited by the same person know its node, and not each other's. At a relay that passes circuits on, a node
says `meet1` on a joined topic. The relay names to it the nodes that have said the same on that topic, and it to them. It
tells nothing of others, and learns nothing: it knows its topics' followers.

A connection may last for years, and a node may follow thousands of repos. So rates bound what is said, and no total.
"""

from collections import deque
from typing import Final

from protocol.ids import TopicKey
from protocol.limits.network import (
    MEETINGS_AT_ONCE_MAX,
    MEETINGS_PER_CHECK,
    NODES_NAMED_MAX,
    NODES_OF_MEETING_MAX,
    NODES_OF_MEETING_PER_CHECK,
)
from protocol.session.allowance import Allowance
from protocol.session.events import NodesFound
from protocol.session.machines.table import PeerFault
from protocol.session.messages import Meet, Nodes
from protocol.session.outputs import NodesLearned, Output, RendezvousAsked, Send
from protocol.session.topic_progress import TopicProgress

_TAKEN_SHARE: Final = 2
"""Times as many that a side takes of what the other one says."""
_ASKED_AT_ONCE_SHARE: Final = 4
"""Times as many topics that a relay takes at once: those of a stream that has stalled for three keep-alives."""


class Rendezvous:
    """Topics of one session on which the relay names nodes to each other, bounded by the joined topics."""

    def __init__(self) -> None:
        self._own: dict[TopicKey, Allowance] = {}  # by topic of this side: nodes that it may be told
        self._peers: dict[TopicKey, Allowance] = {}  # by topic of the peer: nodes that it may be told
        self._waiting: deque[TopicProgress] = deque()  # of this side, on which it has not asked yet
        self._heard: dict[
            TopicKey, None
        ] = {}  # of the peer, whose questions wait: on a slow line many come together
        self._askable = Allowance(MEETINGS_AT_ONCE_MAX, MEETINGS_PER_CHECK)
        self._takeable = Allowance(
            _ASKED_AT_ONCE_SHARE * MEETINGS_AT_ONCE_MAX, _TAKEN_SHARE * MEETINGS_PER_CHECK
        )

    def ask(self, progress: TopicProgress) -> list[Output]:
        """Ask the relay once for other nodes of a topic. Beyond the rate, the question waits."""
        if progress.topic in self._own:
            return []
        self._own[progress.topic] = Allowance(
            _TAKEN_SHARE * NODES_OF_MEETING_MAX, _TAKEN_SHARE * NODES_OF_MEETING_PER_CHECK
        )
        self._waiting.append(progress)
        return self._ask_waiting()

    def check(self) -> list[Output]:
        """Allow some more, and ask on topics that wait: called at each keep-alive."""
        for allowance in (self._askable, self._takeable, *self._own.values(), *self._peers.values()):
            allowance.check()
        return [*self._ask_waiting(), *self._answer_waiting()]

    def _ask_waiting(self) -> list[Output]:
        count = min(self._askable.left, len(self._waiting))
        self._askable.take(count)
        return [Send(Meet(self._waiting.popleft().blind)) for _ in range(count)]

    def tell(self, progress: TopicProgress, event: NodesFound) -> list[Output]:
        """Name nodes to the peer, as many as it may be told now."""
        allowance = self._peers.get(progress.topic)
        if allowance is None:
            return []
        fresh = event.nodes[: allowance.left]
        allowance.take(len(fresh))
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
        self._heard[topic] = None
        return self._answer_waiting()

    def _answer_waiting(self) -> list[Output]:
        """Answer the peer's waiting questions in order, as many as the rate allows. Each is of a joined topic."""
        answered: list[Output] = []
        while self._heard and self._takeable.take():
            topic = next(iter(self._heard))
            del self._heard[topic]
            self._peers[topic] = Allowance(NODES_OF_MEETING_MAX, NODES_OF_MEETING_PER_CHECK)
            answered.append(RendezvousAsked(topic))
        return answered

    def handle_nodes(self, progress: TopicProgress, message: Nodes) -> list[Output]:
        """Take the nodes that the peer names; ignore a message that names more than it may. Raises PeerFault."""
        allowance = self._own.get(progress.topic)
        if allowance is None:
            raise PeerFault("unasked_nodes")
        return [NodesLearned(progress.topic, message.nodes)] if allowance.take(len(message.nodes)) else []
