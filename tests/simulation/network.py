"""A simulated network: nodes, links that break and come back, time that is a number.

Everything is an event in a heap, and every choice comes from one seeded generator: a run is a function of its seed.
Messages travel as real frames. A link that is cut loses all that is on its way, as a stream does that is cut at any byte.
"""

import heapq
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from protocol.codec import DecodeError
from protocol.crypto.hashing import block_id
from protocol.ids import AnnouncedTopic, CommitId, SessionId, TopicKey
from protocol.limits.peers import BATCHES_IN_FLIGHT_MAX, FETCHED_COUNT_MAX, WANTED_AT_ONCE_MAX
from protocol.session.events import (
    CheckDue,
    CommitsAccepted,
    EarlierLoaded,
    Event,
    MessageReceived,
    Reconciled,
    RoomWanted,
    TopicFollowed,
)
from protocol.session.messages import Announce, decode_message, encode_message
from protocol.session.outputs import (
    AccountAnswered,
    AddressSeen,
    CircuitClosed,
    CircuitCredited,
    CircuitOffered,
    CircuitReceived,
    CircuitsAgreed,
    Close,
    EarlierCompared,
    FilesAnswered,
    FilesListed,
    FindPeers,
    GiveAccount,
    HandleFrame,
    HandOver,
    IngestBatch,
    KeepFiles,
    LearnPeers,
    LoadEarlier,
    LoadFileList,
    LoadWindow,
    NodesLearned,
    OpenReconciliation,
    OpenTopics,
    Output,
    PresenceSeen,
    PunchDue,
    PunchHeard,
    RendezvousAsked,
    RendezvousPossible,
    Send,
    WindowCame,
)
from protocol.session.reconciliation.reconciler import FrameKind, Reconciler
from protocol.session.reconciliation.riblt import Unreconciled
from protocol.session.session import Session
from tests.simulation.store import Held, Load, Store, Topic, acks_of, make_commit

LATENCY = (0.01, 0.2)
STORE_DELAY = (0.001, 0.05)
_USED_COUNT = 2


@dataclass(slots=True)
class End:
    """One side of a link."""

    node: "Node"
    session: Session
    session_id: SessionId
    sent_until: float = 0.0  # frames of one direction stay in order
    reconcilers: dict[TopicKey, Reconciler] = field(default_factory=dict)
    taking_until: float = 0.0  # batches are taken in the order in which they came
    resting: set[TopicKey] = field(default_factory=set)  # topics of ended epochs
    asked: list[TopicKey] = field(default_factory=list)  # topics that are announced next
    waiting: list[TopicKey] = field(default_factory=list)  # topics that wait for their turn


@dataclass(slots=True)
class Link:
    """A connection between two nodes, while it lasts."""

    number: int
    ends: tuple[End, End]
    is_up: bool = True
    silent: set[int] = field(default_factory=set)  # directions in which nothing arrives: a one-way partition

    def other(self, end: End) -> End:
        """The side across."""
        return self.ends[1] if end is self.ends[0] else self.ends[0]


class Node:
    """A node: a store, and a session for each link that is up."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.store = Store()
        self.links: dict[str, Link] = {}  # by the other node's name
        self.coming: list[TopicKey] = []
        """Topics that it follows later, in this order: somebody starts an epoch, or gives the key of an earlier one."""

    def follow(self, topic: TopicKey) -> None:
        """Follow a topic, in sessions from now on."""
        self.store.topics.setdefault(topic, Topic())


class Network:
    """All nodes, links and events of one run."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.now = 0.0
        self.nodes: dict[str, Node] = {}
        self.ends_at = float("inf")
        """When connections cease to look whether all is equal, so that a run comes to its end."""
        self.epochs: list[TopicKey] = []
        """Topics of one repo's epochs, in order, if the run has such. All follow the first: it is the founding one's."""
        self.closed: list[str] = []
        """Reasons with which sessions ended."""
        self.handled: list[End] = []
        """Ends whose sessions handled something since the last check."""
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._count = 0
        self.event_count = 0

    # --- time ---

    def after(self, delay: float, happen: Callable[[], None]) -> None:
        """Let something happen."""
        self._count += 1
        heapq.heappush(self._events, (self.now + delay, self._count, happen))

    def run(self, check: Callable[[], None], until: float = float("inf")) -> None:
        """Let all events happen up to a time, and check after each."""
        while self._events and self._events[0][0] <= until:
            self.now, _, happen = heapq.heappop(self._events)
            self.event_count += 1
            happen()
            check()

    # --- what nodes do ---

    def connect(self, first: Node, second: Node) -> None:
        """A new connection, unless there is one."""
        if second.name in first.links:
            return
        self._count += 1
        session_id = SessionId(self.chance.randbytes(32))
        link = Link(
            self._count,
            (
                End(first, Session(session_id, is_dialer=True), session_id),
                End(second, Session(session_id, is_dialer=False), session_id),
            ),
        )
        for end in link.ends:
            self._check_later(link, end)
            end.node.links[link.other(end).node.name] = link
            end.waiting = [TopicKey(topic) for topic in end.node.store.topics]
            if self.epochs:
                used = self._used(end.node)
                end.resting = set(end.waiting) - used
                end.waiting = [topic for topic in end.waiting if topic in used]
            self._take_turns(link, end)

    def _used(self, node: Node) -> set[TopicKey]:
        """Topics of epochs that rest on no new connection: the founding one's, and the two latest that a node knows."""
        known = [topic for topic in self.epochs if topic in node.store.topics]
        return {self.epochs[0], *known[-_USED_COUNT:]}

    def learn(self, node: Node) -> None:
        """Follow the next topic while links are up: of an epoch in use, or of an ended one, which may rest at once."""
        topic = node.coming.pop(0)
        node.follow(topic)
        is_used = topic in self._used(node)
        for link in list(node.links.values()):
            end = next(one for one in link.ends if one.node is node)
            if is_used or end.session.has_heard_of(topic):
                end.waiting.append(topic)
            else:
                end.resting.add(topic)
            self._take_turns(link, end)

    def _take_turns(self, link: Link, end: End) -> None:
        """Announce what may be now: what is asked for first."""
        while link.is_up and (
            (end.asked and end.session.has_room) or (end.waiting and end.session.may_announce)
        ):
            topic = (end.asked or end.waiting).pop(0)
            first = self.epochs[0] if self.epochs else next(iter(end.node.store.topics))
            self._handle(link, end, TopicFollowed(topic, is_own=topic == first))

    def _wake(self, end: End, topic: TopicKey) -> None:
        if topic in end.resting:
            end.resting.discard(topic)
            end.asked.append(topic)

    def _hear(self, end: End, announced: Sequence[AnnouncedTopic]) -> None:
        for topic in [*end.resting, *end.waiting]:
            if end.session.peer_name_of(topic) in announced:
                self._wake(end, topic)
                if topic in end.waiting:
                    end.waiting.remove(topic)
                    end.asked.append(topic)

    def _look_up_earlier(self, link: Link, end: End, load: LoadEarlier) -> None:
        if load.is_asked or (end.resting and load.topic == self.epochs[0]):
            store = end.node.store
            held = [
                (topic, store.digest(topic)) for topic in sorted(end.resting) if store.topics[topic].commits
            ]
            answer = EarlierLoaded(load.topic, tuple(held))
            self.after(self.chance.uniform(*STORE_DELAY), lambda: self._give(link, end, answer))

    def _check_later(self, link: Link, end: End) -> None:
        """As often as a connection says that it is alive, while there is one."""

        def check() -> None:
            if link.is_up and self.now < self.ends_at:
                self._give(link, end, CheckDue())
                self._give(link, end, RoomWanted())
                self._check_later(link, end)

        self.after(self.chance.uniform(1, 10), check)

    def cut(self, link: Link) -> None:
        """End a connection; what is on its way is lost."""
        if link.is_up:
            link.is_up = False
            for end in link.ends:
                del end.node.links[link.other(end).node.name]

    def crash(self, node: Node) -> None:
        """All connections end, and what was not stored is gone."""
        for link in list(node.links.values()):
            self.cut(link)

    def write(self, node: Node, topic: TopicKey) -> None:
        """A new commit on some of the heads, if the node follows the topic by now."""
        held = node.store.topics.get(topic)
        if held is None:
            return
        heads = held.heads()
        acks = self.chance.sample(heads, self.chance.randint(1, min(len(heads), 5))) if heads else []
        nums = held.accept([make_commit(self.chance, acks)])
        self._announce(node, topic, nums, None)

    def say(self, link: Link, end: End, frame: bytes) -> None:
        """Put a frame on its way."""
        arrival = max(end.sent_until, self.now + self.chance.uniform(*LATENCY))
        end.sent_until = arrival
        self.after(arrival - self.now, lambda: self._arrive(link, end, frame))

    def _arrive(self, link: Link, sender: End, frame: bytes) -> None:
        if not link.is_up or link.ends.index(sender) in link.silent:
            return
        receiver = link.other(sender)
        try:
            message = decode_message(frame)
        except DecodeError:
            self._close(link, "bad_message")
            return
        if isinstance(message, Announce):
            self._hear(receiver, message.topics)
        self._give(link, receiver, MessageReceived(message))

    def _give(self, link: Link, end: End, event: Event) -> None:
        if link.is_up:
            self._handle(link, end, event)
            self._take_turns(link, end)

    def _handle(self, link: Link, end: End, event: Event) -> None:
        self.handled.append(end)
        for output in end.session.handle(event):
            self._perform(link, end, output)

    def _perform(self, link: Link, end: End, output: Output) -> None:
        match output:
            case Send():
                self.say(link, end, encode_message(output.message))
            case Close():
                self._close(link, output.reason)
            case IngestBatch():
                done = max(end.taking_until, self.now + self.chance.uniform(*STORE_DELAY))
                end.taking_until = done
                self.after(done - self.now, lambda: self._take(link, end, output))
            case OpenReconciliation() | HandleFrame():
                self.after(self.chance.uniform(*STORE_DELAY), lambda: self._reconcile(link, end, output))
            case LoadEarlier():
                self._look_up_earlier(link, end, output)
            case EarlierCompared():
                found = end.resting.intersection(output.differing)
                end.waiting += sorted(found)
                end.resting -= found
            case HandOver() | OpenTopics() | FindPeers() | LearnPeers() | AddressSeen() | PresenceSeen():
                raise AssertionError(
                    "nobody asks for blocks, deposits topics, introduces peers, sees any or opens texts here"
                )
            case (
                CircuitsAgreed()
                | CircuitOffered()
                | CircuitCredited()
                | CircuitReceived()
                | CircuitClosed()
                | RendezvousPossible()
                | RendezvousAsked()
                | NodesLearned()
                | PunchHeard()
                | PunchDue()
            ):
                raise AssertionError("no circuits are taken here")
            case (
                LoadFileList()
                | KeepFiles()
                | FilesListed()
                | FilesAnswered()
                | GiveAccount()
                | AccountAnswered()
            ):
                raise AssertionError("nobody is a relay here")
            case LoadWindow() | WindowCame():
                raise AssertionError("nobody speaks of windows here")
            case _:
                self.after(self.chance.uniform(*STORE_DELAY), lambda: self._look_up(link, end, output))

    def _reconcile(self, link: Link, end: End, work: OpenReconciliation | HandleFrame) -> None:
        held = Held(work.topic, end.node.store.topics[work.topic])
        reconciler = end.reconcilers.get(work.topic)
        if reconciler is None:
            is_answerer = isinstance(work, OpenReconciliation)
            reconciler = Reconciler(work.topic, end.session_id, is_answerer=is_answerer)
            end.reconcilers[work.topic] = reconciler
        try:
            if isinstance(work, OpenReconciliation):
                step = reconciler.open(held, by_ranges=work.by_ranges)
            else:
                step = reconciler.handle(held, FrameKind(work.kind), work.frame)
        except (DecodeError, Unreconciled):
            self._give(link, end, Reconciled(work.topic, (), (), fault="bad_reconciliation"))
            return
        if step.is_over:
            del end.reconcilers[work.topic]
        self._give(link, end, Reconciled(work.topic, step.frames, step.nums, step.is_over))

    def _look_up(self, link: Link, end: End, load: Load) -> None:
        """Read the store now, and tell the session a moment later, when it may have grown."""
        answer = end.node.store.look_up(load)
        self.after(self.chance.uniform(*STORE_DELAY), lambda: self._give(link, end, answer))

    def _take(self, link: Link, end: End, take: IngestBatch) -> None:
        if not link.is_up:
            return
        taken = end.node.store.take(take)
        self._announce(end.node, take.topic, taken.nums, link)
        self._give(link, end, taken.event)
        if taken.is_faulty:
            self._close(link, "bad_publication")

    def _announce(self, node: Node, topic: TopicKey, nums: list[int], source: Link | None) -> None:
        for link in list(node.links.values()):
            if link is not source and nums:
                end = next(one for one in link.ends if one.node is node)
                self._wake(end, topic)
                self._give(link, end, CommitsAccepted(topic, tuple(nums)))

    def _close(self, link: Link, reason: str) -> None:
        self.closed.append(reason)
        self.cut(link)


def check(network: Network) -> None:
    """Check what must hold at every moment, of the sessions that changed since the last check.

    Costs O(change): to look at all after each event took four fifths of a run.
    """
    for end in network.handled:
        topics = end.session.topics
        assert sum(one.in_flight + one.is_loading for one in topics) <= BATCHES_IN_FLIGHT_MAX
        assert sum(len(one.served.waiting) for one in topics) <= FETCHED_COUNT_MAX
        assert sum(len(want.ids) for one in topics for want in one.wants.waiting) <= WANTED_AT_ONCE_MAX
    network.handled.clear()


def check_stores(network: Network) -> None:
    """Every commit is what its id says and stands behind its causes."""
    for node in network.nodes.values():
        for topic in node.store.topics.values():
            for num, commit in enumerate(topic.commits, 1):
                assert topic.nums[CommitId(block_id(commit))] == num
                assert all(topic.nums[ack] < num for ack in acks_of(commit) or ())


def check_met(network: Network) -> None:
    """Of two that are connected each has joined all topics that both follow; where epochs have ended, those may rest."""
    for node in () if network.epochs else network.nodes.values():
        for link in node.links.values():
            end, other = sorted(link.ends, key=lambda one: one.node is not node)
            both = [TopicKey(one) for one in node.store.topics if one in other.node.store.topics]
            assert all(map(end.session.has_joined, both)), "two have not met on a topic that both follow"
