"""Topics that this side announces on one connection: those of its repos, and those that it keeps for others.

A node may follow more than a connection takes at once. They take turns: what waits is announced as what was announced before
settles, topics of epochs that are written in before those of ended ones.

A topic of an ended epoch rests: it is announced to relays, and to others if they announce it, if a commit comes on it, if
it has unread ones, if this node lacks the repo's init or the epoch in use, or if the two sides are found to hold something
else on it.

A view of one branch, which links open, is announced to relays, and to peers that have announced it: who follows the branch
by a link. All that it has comes to other members on the epoch's topics, and would come twice.
"""

from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Sequence
from collections.abc import Set as AbstractSet
from typing import Final

from node.ingest.vouchers import PROMISED_NUM
from node.sync.hub import Hub
from node.sync.kept_turns import KeptTurns
from node.sync.session_queries import topic_place
from protocol.ids import AnnouncedTopic, PeerId, TopicKey
from protocol.session.events import TopicFollowed, TopicsRefused
from protocol.session.outputs import Output
from protocol.session.session import Session
from storage.relay.relay import KeptTopic
from storage.repos.epochs import Topic
from storage.topics.difference import REPLICA, TopicTables

PROMISED: Final = (REPLICA, PROMISED_NUM)
"""Place of a topic that only a link names so far. It is joined, and summarised once the repo has stated it."""


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
        self._kept = KeptTurns()  # that a partner is to keep
        self._fresh: OrderedDict[TopicKey, None] = (
            OrderedDict()
        )  # that are new or have changed, and are to be sorted first
        self._written: list[TopicKey] = []  # of those, the ones that were sorted and are written on
        self._unnamed: deque[TopicKey] = deque()  # that wait, and have no name by which to find them yet
        # By repo: topics of ended epochs, which are announced if there is a reason to (`_rests`).
        self._resting: dict[int, dict[TopicKey, None]] = {}
        self._level: set[int] = set()  # repos whose resting topics hold the same at the peer
        self._said: set[int] = set()  # repos of which this side has said what its resting topics hold
        self._answered: set[int] = set()  # repos of which the peer has asked it
        self._released: set[int] = set()  # repos of which all topics are announced
        self._views: dict[TopicKey, None] = {}  # that are announced if the peer does, or is a relay
        self._names: dict[
            AnnouncedTopic, TopicKey
        ] = {}  # of all that is not announced so far, by the peer's names
        self._forgotten: set[TopicKey] = set()  # by this relay, as the peer was told
        self._tick: int | None = None  # up to which changes of topics were looked at

    @property
    def waiting_count(self) -> int:
        """Return how many topics wait for their turn."""
        return len(self._waiting) + len(self._asked) + len(self._kept) + len(self._fresh)

    def is_waiting(self, topic: TopicKey) -> bool:
        """Return True if a topic is still to be compared: it waits for its turn, or for the comparison of all that rest."""
        if topic in self._waiting or topic in self._asked or topic in self._fresh:
            return True
        repo_num = self._repo_of(topic)
        if repo_num in self._level or topic not in self._resting.get(repo_num, ()):
            return False
        # Who follows one branch by a link says nothing of topics that rest.
        used = self._hub.replica.tables.writing_topics(repo_num)
        return repo_num in self._said or any(map(self._is_joined, used))

    @property
    def is_due(self) -> bool:
        """Return True if `announce` has anything to do now."""
        return bool(self._fresh or self._unnamed) or self._is_turn_due

    @property
    def _is_turn_due(self) -> bool:
        if self._asked:
            return self._session.has_room
        return bool(self._waiting or self._kept) and self._session.may_announce

    def look(self) -> bool:
        """Note which topics are new. False: what was agreed about one does not hold any more.

        Looks at topics that have changed since the last call, and at no others: each change of one repo comes here, on each
        connection.
        """
        self._tick, by_topic, moved = self._hub.replica.shown.topics_since(self._tick)
        for topic in moved if self.places else ():
            followed = self._hub.find_followed(topic)
            if followed is not None and self.places.get(topic) == PROMISED:
                self.places[topic] = topic_place(followed)  # nothing was agreed about it so far
            if topic in self.places and (followed is None or topic_place(followed) != self.places[topic]):
                return False
        fresh = [by_topic[topic] for topic in moved if topic in by_topic and topic not in self.places]
        fresh.sort(key=self._order)
        self._fresh.update((one.topic, None) for one in fresh)  # again, whenever they change
        for one in self._hub.windows.vouchers.promised():
            if one.topic not in self.places and one.topic not in self._waiting:
                self._wait(one.topic)
        self._release_changed({by_topic[topic].repo_num for topic in moved if topic in by_topic})
        return True

    def _sort(self, one: Topic) -> None:
        """Queue a topic: to be announced, to rest, or to be joined once the peer announces it."""
        if one.topic in self.places:
            return
        if one.is_view and not (self._session.peer_is_relay or self._session.has_heard_of(one.topic)):
            self._views[one.topic] = None
            self._names[self._session.peer_name_of(one.topic)] = one.topic
        elif self._rests(one):
            self._resting.setdefault(one.repo_num, {})[one.topic] = None
            self._names[self._session.peer_name_of(one.topic)] = one.topic
        else:
            self._wait(one.topic)
            if self._is_written(one):
                self._written.append(one.topic)

    def _wait(self, topic: TopicKey) -> None:
        self._waiting[topic] = None
        self._unnamed.append(topic)

    def _put_written_first(self) -> None:
        """Move the sorted topics that are written on before the others, if not all have room."""
        written, self._written = self._written, []
        if not self._session.has_room_for(len(self._waiting)):  # thousands may wait before a new epoch
            for topic in reversed(written):
                if topic in self._waiting:
                    self._waiting.move_to_end(topic, last=False)

    def _release_changed(self, changed: AbstractSet[int]) -> None:
        """Announce what rests and is written on again."""
        for repo_num in changed & self._resting.keys():
            resting = self._resting[repo_num]
            for topic in self._hub.replica.tables.writing_topics(repo_num) & resting.keys():
                del resting[topic]
                self._asked[topic] = None

    def _rests(self, one: Topic) -> bool:
        """Return True if a topic is of an ended epoch, and nothing is known to be lacking on it on either side.

        The founding epoch's own topic never rests: by it two sides whose epochs have nothing else in common meet.
        """
        tables = self._hub.replica.tables
        repo = tables.repos[one.repo_num]
        if self._session.compares_publications or one.is_link or repo.num in self._released:
            return False
        if repo.repo_id not in tables.roots or repo.is_behind:
            return False
        is_used = one.topic in tables.writing_topics(repo.num) or self._is_founding(one)
        return not is_used and not self._session.has_heard_of(one.topic)

    def _is_founding(self, one: Topic) -> bool:
        init = self._hub.replica.repos[one.repo_num].init_id
        return any(epoch.epoch_id == init for epoch in one.epochs) and not one.is_link

    def _is_joined(self, topic: TopicKey) -> bool:
        progress = self._session.progress_of(topic)
        return progress is not None and progress.is_joined

    def _repo_of(self, topic: TopicKey) -> int:
        opened = self._hub.replica.by_topic.get(topic)
        return 0 if opened is None else opened.repo_num

    def wake(self, topic: TopicKey) -> bool:
        """Announce next a topic that rests, or is not sorted yet and may. Return True if it did."""
        resting = self._fresh if topic in self._fresh else self._resting.get(self._repo_of(topic), {})
        if topic not in resting:
            return False
        del resting[topic]
        self._asked[topic] = None
        return True

    def find_earlier(self, topic: TopicKey, *, is_asked: bool) -> list[Topic] | None:
        """Find the topics of a repo that rest, by its founding epoch's own; None: there is nothing to say.

        A peer is answered once for a repo: all that rests stays in memory for each comparison, and it may ask by any topic.
        """
        by_topic = self._hub.replica.by_topic
        opened = by_topic.get(topic)
        if opened is None or not (is_asked or self._is_founding(opened)):
            return None
        if is_asked:
            if opened.repo_num in self._answered:
                return None
            self._answered.add(opened.repo_num)
        self._said.add(opened.repo_num)
        resting = [by_topic[one] for one in self._resting.get(opened.repo_num, ()) if one in by_topic]
        return resting if resting or is_asked else None

    def note_compared(self, topic: TopicKey, differing: Iterable[TopicKey]) -> None:
        """Announce what may differ of a repo's topics that rest; the others hold the same."""
        repo_num = self._repo_of(topic)
        self._level.add(repo_num)
        resting = self._resting.get(repo_num, {})
        for one in differing:
            if one in resting:
                del resting[one]
                self._waiting[one] = None

    def _release(self, repo_num: int) -> None:
        self._released.add(repo_num)
        self._waiting.update(self._resting.pop(repo_num, {}))

    def note_announced(self, topics: Iterable[AnnouncedTopic]) -> None:
        """Announce next what the peer has announced."""
        for one in topics:
            topic = self._names.pop(one, None)
            if topic is not None and topic not in self.places:
                self._waiting.pop(topic, None)
                self._resting.get(self._repo_of(topic), {}).pop(topic, None)
                self._asked[topic] = None

    def note_relay(self) -> None:
        """Announce all that rests, and all views: the peer is a relay, which cannot tell what belongs together."""
        for repo_num in list(self._resting):
            self._release(repo_num)
        self._waiting.update(self._views)
        self._views.clear()

    def announce(self, most: int) -> list[Output]:
        """Announce topics that wait for it, as far as there is room: each that settles makes room for another.

        Take `most` steps, each of one topic, which is sorted, announced or named. `is_due` says if others are left.
        """
        outputs: list[Output] = []
        for _ in range(most):
            if self._fresh:
                one = self._hub.replica.by_topic.get(self._fresh.popitem(last=False)[0])
                if one is not None:
                    self._sort(one)
                if not self._fresh:
                    self._put_written_first()
            elif self._is_turn_due:
                outputs += self._take_turn()
            elif self._unnamed:
                self._name(self._unnamed.popleft())
            else:
                break
        return outputs

    def _take_turn(self) -> list[Output]:
        if queue := self._asked or self._waiting:
            topic, _ = queue.popitem(last=False)
        else:
            topic = self._kept.pop()
        followed = self._hub.find_followed(topic) or self._hub.windows.vouchers.find_promised(topic)
        return self._follow(followed) if followed is not None and topic not in self.places else []

    def _name(self, topic: TopicKey) -> None:
        """Note by which name the peer would announce a topic that waits, and announce it next if the peer has."""
        if topic in self._waiting:
            name = self._session.peer_name_of(topic)
            self._names[name] = topic
            if self._session.has_heard_of(topic):
                self.note_announced([name])

    def answer_deposit(
        self, kept: Sequence[KeptTopic], refused: tuple[TopicKey, ...], reason: str
    ) -> list[Output]:
        """Announce topics that the peer has entrusted to this relay, and say which it does not keep and why."""
        outputs = self._session.handle(TopicsRefused(refused, reason))
        for one in kept:
            if one.topic not in self.places:
                outputs += self._follow(one)
        return outputs

    def entrust(self, kept: Iterable[KeptTopic], *, are_new: bool) -> None:
        """Entrust a partner with topics that this relay keeps, each in its turn; `are_new`: they came just now."""
        assert self._hub.relay is not None, "it keeps them"
        fresh = (one for one in kept if one.topic not in self.places)
        self._kept.add(fresh, self._hub.relay, are_new=are_new)

    def forget_kept(self, forgotten: Iterable[TopicKey]) -> None:
        """Withdraw topics from a partner's queue: the relay has forgotten them."""
        if self._kept:
            self._kept.drop(forgotten)

    def refuse_forgotten(self, topic: TopicKey) -> list[Output]:
        """Say once that this relay does not keep a topic any more, where the peer has joined it."""
        if topic in self._forgotten or not self._is_joined(topic):
            return []
        self._forgotten.add(topic)
        return self._session.handle(TopicsRefused((topic,), "relay_full"))

    def are_refused(self, kept: Iterable[KeptTopic]) -> bool:
        """Return True if the peer was told that this relay refuses one of these topics, which holds for the
        connection."""
        # Nearly always none: each deposit of a stranger comes here, on each connection.
        return bool(self._forgotten) and any(one.topic in self._forgotten for one in kept)

    def _follow(self, followed: Topic | KeptTopic) -> list[Output]:
        self.places[followed.topic] = topic_place(followed)
        group: int | PeerId | None
        if isinstance(followed, Topic):
            is_own, is_entrusted, group = followed.is_of_all, self._may_keep(followed), followed.repo_num
        else:
            is_own, is_entrusted, group = False, self._is_partner(), followed.brought_by
        # By number: an epoch's init is taken in, or its topics are brought to a relay, after those that it follows.
        event = TopicFollowed(followed.topic, is_own, is_entrusted, followed.num, group)
        return self._session.handle(event)

    def _order(self, topic: Topic) -> tuple[bool, bool, int]:
        """Return the sort key of a waiting topic.

        An epoch's own topic goes before its writers' topic, whose keys its inits give. Older topics go before newer ones,
        which follow them. Topics of single followed branches come last.
        """
        return topic.is_view, not topic.is_of_all, topic.num

    def _is_written(self, topic: Topic) -> bool:
        return topic.topic in self._hub.replica.tables.writing_topics(topic.repo_num)
