"""Topics that this side has announced on one session: by key, by blinded name, and by the name that the peer uses. Pure.

A topic has a place, with all its progress, from when it is announced. One that the peer has not announced can be *put by*:
it stays announced, and of it only the name is kept, by which it gets a place again once the peer announces it.
"""

from protocol.crypto.hashing import announced_topic, blind_topic
from protocol.ids import AnnouncedTopic, BlindTopic, SessionId, TopicKey
from protocol.session.events import TopicFollowed
from protocol.session.topic_progress import TopicProgress


class Announcements:
    """Announced topics of one side. Operations cost O(1), `put_by` O(topics with a place)."""

    def __init__(self, session_id: SessionId, *, is_dialer: bool) -> None:
        self._session_id = session_id
        self._is_dialer = is_dialer
        self.by_blind: dict[BlindTopic, TopicProgress] = {}
        """Topics that have a place, by their names in messages."""
        self.by_key: dict[TopicKey, TopicProgress] = {}
        """Topics that have a place, by their keys."""
        self._expected: dict[AnnouncedTopic, TopicProgress] = {}  # by how the peer would announce them
        self._put_by: dict[AnnouncedTopic, tuple[TopicFollowed, int]] = {}  # and when they were said
        self._said_count = 0

    def our_name_of(self, topic: TopicKey) -> AnnouncedTopic:
        """Return the name by which this side announces a topic."""
        return announced_topic(topic, self._session_id, by_dialer=self._is_dialer)

    def peer_name_of(self, topic: TopicKey) -> AnnouncedTopic:
        """Return the name by which the peer announces a topic, if it follows it."""
        return announced_topic(topic, self._session_id, by_dialer=not self._is_dialer)

    def place(self, event: TopicFollowed) -> TopicProgress:
        """Add a topic to the announced ones."""
        topic = event.topic
        blind = blind_topic(topic, self._session_id)
        progress = TopicProgress(topic, blind, event.is_own, event.is_entrusted, event.order, event.group)
        self.by_key[topic] = self.by_blind[blind] = self._expected[self.peer_name_of(topic)] = progress
        return progress

    def say(self, progress: TopicProgress) -> AnnouncedTopic:
        """Return the name to announce a topic by, and note that it was said now."""
        self._said_count += 1
        progress.said_at = self._said_count
        return self.our_name_of(progress.topic)

    def count_said_since(self, progress: TopicProgress) -> int:
        """Count the topics that were announced after this one."""
        return self._said_count - progress.said_at

    def find_expected(self, announced: AnnouncedTopic) -> TopicProgress | None:
        """Return the topic that the peer announces, if this side announced it; take up a topic that was set aside."""
        if announced in self._put_by:
            event, said_at = self._put_by.pop(announced)
            self.place(event).said_at = said_at
        return self._expected.get(announced)

    def put_by(self, *, are_entrusted: bool) -> None:
        """Set aside the topics that the peer has not announced; with `are_entrusted` not those that it was asked to
        keep."""
        for theirs, one in list(self._expected.items()):
            if not (one.is_joined or (are_entrusted and one.is_entrusted)):
                del self._expected[theirs], self.by_blind[one.blind], self.by_key[one.topic]
                event = TopicFollowed(one.topic, one.is_own, one.is_entrusted, one.order, one.group)
                self._put_by[theirs] = event, one.said_at
