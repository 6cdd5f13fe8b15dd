"""Room of one session for topics: which ones take it, and what is remembered of what the peer alone announces. Pure.

A topic takes room from when it is joined, or entrusted to a relay, until it has settled. Both sides find by the same
messages that it has, so one that announces others in its place is never ahead of what the other counts.
"""

from collections.abc import Iterable
from itertools import islice

from protocol.ids import AnnouncedTopic, TopicKey
from protocol.limits.peers import TOPIC_COUNT_MAX, TOPICS_HEARD_MAX
from protocol.session.machines.table import PeerFault


class Room:
    """Topics of one connection that take room, and those that the peer has announced."""

    def __init__(self) -> None:
        self._taken: set[TopicKey] = set()  # joined, or entrusted to the peer, and not settled
        self._deposited: set[TopicKey] = set()  # by the peer, and not settled
        self._heard: dict[
            AnnouncedTopic, None
        ] = {}  # announced by the peer and not followed here: the latest

    @property
    def is_free(self) -> bool:
        """Return True if one topic more may take room."""
        return self.has_for(1)

    def has_for(self, count: int) -> bool:
        """Return True if there is room for this many topics more."""
        return len(self._taken) + count <= TOPIC_COUNT_MAX

    def take(self, topics: Iterable[TopicKey]) -> None:
        """Note topics that take room from now on."""
        self._taken.update(topics)

    def deposit(self, topics: Iterable[TopicKey]) -> None:
        """Note topics that the peer entrusts to this relay. Raises PeerFault beyond TOPIC_COUNT_MAX."""
        self._deposited.update(topics)
        if len(self._deposited) > TOPIC_COUNT_MAX:
            raise PeerFault("too_many_topics")

    def settle(self, topics: Iterable[TopicKey]) -> None:
        """Note topics that take no room any more: they were compared, or the relay takes no more of them."""
        for topic in topics:
            self._taken.discard(topic)
            self._deposited.discard(topic)

    def hear(self, announced: AnnouncedTopic) -> None:
        """Note what the peer announces and this side does not follow."""
        self._heard.pop(announced, None)
        self._heard[announced] = None

    def has_heard(self, announced: AnnouncedTopic) -> bool:
        """Return True if the peer has announced a topic that this side has not."""
        return announced in self._heard

    def pop_heard(self, announced: AnnouncedTopic) -> bool:
        """Take out a topic that this side follows from now on. Return True if the peer had announced it."""
        return self._heard.pop(announced, announced) is None

    def forget_heard(self) -> None:
        """Forget what was announced first, beyond TOPICS_HEARD_MAX."""
        surplus = len(self._heard) - TOPICS_HEARD_MAX
        for announced in list(islice(self._heard, max(0, surplus))):
            del self._heard[announced]
