"""Topics that this side announces on one connection: those of its repos, and those that it keeps for others.

A node may follow more than a connection takes at once. They take turns: what waits is announced as what was announced before
settles, topics of epochs that are written in before those of ended ones.

A view of one branch, which links open, is announced to relays, and to peers that have announced it: who follows the branch
by a link. All that it has comes to other members on the epoch's topics, and would come twice.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence

from node.sync.hub import Hub
from node.sync.session_queries import topic_place
from protocol.ids import AnnouncedTopic, TopicKey
from protocol.session.events import TopicFollowed, TopicsRefused
from protocol.session.outputs import Output
from protocol.session.session import Session
from storage.relay.relay import KeptTopic
from storage.repos.epochs import Topic
from storage.topics.difference import TopicTables


class FollowedTopics:
    """Says to one session what is followed here."""

    def __init__(
        self, hub: Hub, session: Session, may_keep: Callable[[Topic], bool], is_partner: Callable[[], bool]
    ) -> None:
        """`may_keep` says of which topics the peer may be told, if it is a relay; `is_partner` whether it keeps the same as
        this relay."""
        self._hub = hub
        self._session = session
        self._may_keep = may_keep
        self._is_partner = is_partner
        self.places: dict[TopicKey, tuple[TopicTables, int]] = {}
        """What was announced, and what it was here then."""
        self._asked: OrderedDict[TopicKey, None] = (
            OrderedDict()
        )  # that the peer has announced, to be announced next
        self._waiting: OrderedDict[TopicKey, None] = OrderedDict()  # that are announced in their turn
        self._unnamed: list[TopicKey] = []  # of those, the new ones
        self._views: dict[TopicKey, None] = {}  # that are announced if the peer does, or is a relay
        self._names: dict[
            AnnouncedTopic, TopicKey
        ] = {}  # of all that is not announced so far, by the peer's names
        self._tick: int | None = None  # up to which changes of topics were looked at

    @property
    def waiting_count(self) -> int:
        """Return how many topics wait for their turn."""
        return len(self._waiting) + len(self._asked)

    def is_waiting(self, topic: TopicKey) -> bool:
        """Return True if a topic waits for its turn."""
        return topic in self._waiting or topic in self._asked

    @property
    def is_due(self) -> bool:
        """Return True if more can be announced now."""
        if self._asked:
            return self._session.has_room
        return bool(self._waiting) and self._session.may_announce

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
                self._views[one.topic] = None
                self._names[self._session.peer_name_of(one.topic)] = one.topic
            else:
                self._waiting[one.topic] = None
                self._unnamed.append(one.topic)
        for one in reversed(fresh):  # thousands may wait before a new epoch
            if one.topic in self._waiting and self._is_written(one):
                self._waiting.move_to_end(one.topic, last=False)
        return True

    def note_announced(self, topics: Iterable[AnnouncedTopic]) -> None:
        """Announce next what the peer has announced."""
        for one in topics:
            topic = self._names.pop(one, None)
            if topic is not None and topic not in self.places:
                self._waiting.pop(topic, None)
                self._asked[topic] = None

    def note_relay(self) -> None:
        """Announce all views: the peer is a relay."""
        self._waiting.update(self._views)
        self._views.clear()

    def announce(self) -> list[Output]:
        """Announce topics that wait for it, as many as may be now. Each that settles makes room for another."""
        outputs = self._take_turns()
        new, self._unnamed = self._unnamed, []
        for topic in new:
            if topic in self._waiting:
                name = self._session.peer_name_of(topic)
                self._names[name] = topic
                if self._session.has_heard_of(topic):
                    self.note_announced([name])
        return [*outputs, *self._take_turns()]

    def _take_turns(self) -> list[Output]:
        outputs: list[Output] = []
        while self.is_due:
            topic, _ = (self._asked or self._waiting).popitem(last=False)
            followed = self._hub.find_followed(topic)
            if followed is not None and topic not in self.places:
                outputs += self._follow(followed)
        return outputs

    def answer_deposit(
        self, kept: Sequence[KeptTopic], refused: tuple[TopicKey, ...], reason: str
    ) -> list[Output]:
        """Announce topics that the peer has entrusted to this relay, and say which it does not keep and why."""
        outputs = self._session.handle(TopicsRefused(refused, reason))
        for one in kept:
            if one.topic not in self.places:
                outputs += self._follow(one)
        return outputs

    def entrust(self, kept: Iterable[KeptTopic]) -> None:
        """Have a partner keep topics that this relay keeps, each in its turn."""
        self._waiting.update((one.topic, None) for one in kept if one.topic not in self.places)

    def _follow(self, followed: Topic | KeptTopic) -> list[Output]:
        self.places[followed.topic] = topic_place(followed)
        if isinstance(followed, Topic):
            event = TopicFollowed(followed.topic, followed.is_of_all, self._may_keep(followed))
        else:
            event = TopicFollowed(followed.topic, is_own=False, is_entrusted=self._is_partner())
        return self._session.handle(event)

    def _order(self, topic: Topic) -> tuple[bool, bool, int, bool]:
        """Return the sort key of a topic that waits.

        First come epochs that are written in: a node may have thousands of earlier ones. The latest precede older ones, and
        an epoch's own topic its writers' topic, for the init there gives keys. Views of single branches come last.
        """
        latest = max((one.num for one in (*topic.epochs, *topic.writers_of)), default=0)
        return topic.is_view, not self._is_written(topic), -latest, not topic.is_of_all

    def _is_written(self, topic: Topic) -> bool:
        return topic.topic in self._hub.replica.tables.writing_topics(topic.repo_num)
