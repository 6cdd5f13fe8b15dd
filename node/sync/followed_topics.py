"""Topics that this side announces on one connection: those of its repos, and those that it keeps for others.

A node may follow more than a connection takes at once. What waits is announced as what was announced before settles.

A view of one branch, which links open, is announced to relays, and to peers that have announced it: who follows the branch
by a link. All that it has comes to other members on the epoch's topics, and would come twice.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence

from node.sync.hub import Hub
from node.sync.session_queries import topic_place
from protocol.ids import AnnouncedTopic, TopicKey
from protocol.limits.peers import TOPIC_COUNT_MAX, TOPICS_SETTLING_MAX
from protocol.session.events import TopicFollowed, TopicsRefused
from protocol.session.outputs import Output
from protocol.session.session import Session
from storage.relay.relay import KeptTopic
from storage.repos.epochs import Topic
from storage.topics.difference import TopicTables


class FollowedTopics:
    """Says to one session what is followed here."""

    def __init__(self, hub: Hub, session: Session, may_keep: Callable[[Topic], bool]) -> None:
        """`may_keep` says of which topics the peer may be told, if it is a relay."""
        self._hub = hub
        self._session = session
        self._may_keep = may_keep
        self.places: dict[TopicKey, tuple[TopicTables, int]] = {}
        """What was announced, and what it was here then."""
        self._waiting: OrderedDict[TopicKey, None] = OrderedDict()  # topics that are announced later
        self._views: dict[
            AnnouncedTopic, TopicKey
        ] = {}  # not to be announced so far, as the peer announces them
        self._tick: int | None = None  # up to which changes of topics were looked at

    @property
    def room(self) -> int:
        """Return how many more topics may be announced."""
        return max(0, TOPIC_COUNT_MAX - len(self.places))

    @property
    def is_due(self) -> bool:
        """Return True if more can be announced now."""
        return bool(self._waiting) and self._may_announce()

    def look(self) -> bool:
        """Note which topics are new. False: what was agreed about one does not hold any more.

        Looks at topics that have changed since the last call, and at no others: each change of one repo comes here, on each
        connection.
        """
        self._tick, by_topic, moved = self._hub.replica.shown.topics_since(self._tick)
        for topic in moved:
            followed = self._hub.find_followed(topic)
            if topic in self.places and (followed is None or topic_place(followed) != self.places[topic]):
                return False
        fresh = [by_topic[topic] for topic in moved if topic in by_topic and topic not in self.places]
        fresh.sort(key=self._order)
        for one in fresh:  # again, whenever they change
            if one.is_view and not (self._session.peer_is_relay or self._session.has_heard_of(one.topic)):
                self._views[self._session.peer_name_of(one.topic)] = one.topic
            else:
                self._waiting[one.topic] = None
        return True

    def note_announced(self, topics: Iterable[AnnouncedTopic]) -> None:
        """Announce views that the peer has announced."""
        found = [self._views.pop(one) for one in topics if one in self._views]
        self._waiting.update(dict.fromkeys(found))

    def note_relay(self) -> None:
        """Announce all views: the peer is a relay."""
        self._waiting.update(dict.fromkeys(self._views.values()))
        self._views.clear()

    def announce(self) -> list[Output]:
        """Announce topics that wait for it: TOPIC_COUNT_MAX at once, and more while few topics are being compared.

        What is beyond the bound of one connection is not followed on it.
        """
        outputs: list[Output] = []
        while self.is_due:
            topic, _ = self._waiting.popitem(last=False)
            followed = self._hub.replica.by_topic.get(topic)
            if followed is None or topic in self.places:
                continue
            self.places[topic] = topic_place(followed)
            event = TopicFollowed(topic, followed.is_of_all, self._may_keep(followed))
            outputs += self._session.handle(event)
        return outputs

    def announce_kept(
        self, kept: Sequence[KeptTopic], refused: tuple[TopicKey, ...], reason: str, *, is_entrusted: bool
    ) -> list[Output]:
        """Announce topics that this relay keeps, as far as there is room, and say which it does not keep and why."""
        outputs = self._session.handle(TopicsRefused(refused, reason))
        for one in kept:
            if self.room and one.topic not in self.places:
                self.places[one.topic] = topic_place(one)
                event = TopicFollowed(one.topic, is_own=False, is_entrusted=is_entrusted)
                outputs += self._session.handle(event)
        return outputs

    def _order(self, topic: Topic) -> tuple[bool, bool, int, bool]:
        """Return the sort key of a topic that waits.

        First come epochs that are written in: a node may have thousands of earlier ones. The latest precede older ones, and
        an epoch's own topic its writers' topic, for the init there gives keys. Views of single branches come last.
        """
        is_written = topic.topic in self._hub.replica.tables.writing_topics(topic.repo_num)
        latest = max((one.num for one in (*topic.epochs, *topic.writers_of)), default=0)
        return topic.is_view, not is_written, -latest, not topic.is_of_all

    def _may_announce(self) -> bool:
        count = len(self.places)
        return count < TOPIC_COUNT_MAX or (
            count < self._session.topic_count_max and self._session.settling_count < TOPICS_SETTLING_MAX
        )
