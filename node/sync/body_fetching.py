"""Requests absent bodies from connected peers, as whole publications: of own topics, and of what a relay keeps for others.

A peer may not have them (it erased them) or withhold them, which only it knows. So of each topic one peer is asked at a
time, for a bounded number of commits, the latest first: what nobody has snapshotted or erased yet is among these. What comes
late counts all the same: it takes the way of every publication, and `ingest.backfill` or `storage.relay.bare` puts bodies
in.

A peer that knows `want-bodies1` says how many it has, and sends nothing of the others. It is asked for all that is missing,
a part at a time, and again after an hour and more: the bodies may have come there. It is also where it does not answer. So
commits without bodies that somebody makes up only delay the others. An older peer is asked by `want1`, and sends what it has
not got as bare publications: where it gives nothing of what it was asked for in time, it is asked for no more of the topic
while it is connected.
"""

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final, NamedTuple

import structlog
import trio
from sqlalchemy import Connection

from node.runtime.backoff import Backoff, store_backoff
from node.sync.conversation import Conversation
from node.sync.hub import Hub
from protocol.ids import CommitId, ItemId, TopicKey
from protocol.limits.peers import (
    BODIES_LOOK_SECONDS,
    BODIES_PASS_MAX_SECONDS,
    BODIES_PASS_SECONDS,
    FETCH_TIMEOUT_SECONDS,
    IDLE_TIMEOUT_SECONDS,
    WANT_COUNT_MAX,
)
from storage.commits.absent_bodies import (
    await_opened,
    count_bodies_missing,
    find_topics_missing_bodies,
    load_commits_missing_bodies,
)
from storage.engine.database import StorageError
from storage.relay.bare import find_bare, find_lacking_topics, load_lacking
from storage.relay.quotas import RelayQuotas, Visitor, find_body_room
from storage.relay.relay import RELAY
from storage.repos.epochs import Topic
from storage.topics.difference import REPLICA
from storage.topics.topic_sets import TopicSet, load_ids

log = structlog.get_logger()

_ABOVE_ALL: Final = 1 << 62
"""A number that no commit has."""
OPENED_SECONDS: Final = 2.0
"""Seconds for which a request waits for the next of the bodies that it opens: a few round trips."""
OPENED_SECONDS_MAX: Final = 10.0
"""Seconds for which a request waits for bodies in all, however slowly they come: people take more for a failure."""
_LOOK_SHARE: Final = 4
"""Times as long as a look took nothing is looked at: a relay may lack bodies of many topics, and peers come and go."""


@dataclass(frozen=True, slots=True, eq=False)
class _Opened:
    """A topic that this node opens."""

    opened: Topic

    @property
    def key(self) -> TopicKey:
        return self.opened.topic

    def __hash__(self) -> int:
        return self.opened.num

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Opened) and self.opened.num == other.opened.num

    def count_bodies_missing(self, connection: Connection, nums: list[int]) -> int:
        """Count how many of these commits still lack their body."""
        return count_bodies_missing(connection, nums)

    def load_missing(
        self, connection: Connection, before: int, after: int, *, alone: bool
    ) -> list[tuple[int, CommitId]]:
        """Load (number, id) of commits without bodies between two numbers, the latest first. `alone`: see `load_lacking`."""
        del alone  # one form of each commit is kept
        return load_commits_missing_bodies(connection, self.opened.num, before, after, WANT_COUNT_MAX)

    def has_room(self, connection: Connection, visitor: Visitor, quotas: RelayQuotas) -> bool:
        """Return True if there is room for bodies that a peer brings."""
        del connection, visitor, quotas
        return True

    def as_set(self, *, of_publications: bool) -> TopicSet:
        """Return the set of these commits for a comparison with peers."""
        return TopicSet(REPLICA, self.opened.num, self.key, of_publications, self.opened)


@dataclass(frozen=True, slots=True)
class _OfRelay:
    """A topic that this node keeps for others."""

    num: int
    key: TopicKey

    def count_bodies_missing(self, connection: Connection, nums: list[int]) -> int:
        return len(find_bare(connection, self.num, nums))

    def load_missing(
        self, connection: Connection, before: int, after: int, *, alone: bool
    ) -> list[tuple[int, CommitId]]:
        return load_lacking(connection, self.num, before, after, WANT_COUNT_MAX, alone=alone)

    def has_room(self, connection: Connection, visitor: Visitor, quotas: RelayQuotas) -> bool:
        return find_body_room(connection, self.num, visitor, quotas) > 0

    def as_set(self, *, of_publications: bool) -> TopicSet:
        del of_publications  # of what is kept for others nothing else is compared
        return TopicSet(RELAY, self.num, self.key, of_publications=True)


_Topic = _Opened | _OfRelay
"""A topic of which bodies are missing. Equal to itself at another time."""


@dataclass(slots=True)
class _Peer:
    """Progress of asking one peer on a topic: for commits from `top` down to `before`, and for all up to `floor` earlier."""

    source: Conversation
    before: int = _ABOVE_ALL
    top: int = 0
    floor: int = 0
    has_none: bool = False
    backoff: Backoff = field(default_factory=partial(Backoff, BODIES_PASS_SECONDS, BODIES_PASS_MAX_SECONDS))
    again_at: float = math.inf  # it was asked for all up to `floor`, and is asked for these again then
    rests_until: float = -math.inf  # it did not answer, or takes no more questions now

    def is_done(self, newest: int, now: float) -> bool:
        """Return True if it is not to be asked now. `newest` is the newest commit whose body is missing."""
        if now >= self.again_at:
            self.floor, self.again_at = 0, math.inf
        is_level = self.before == _ABOVE_ALL and newest <= self.floor
        return self.has_none or now < self.rests_until or is_level

    def begin_anew(self) -> None:
        """Ask for all that is missing once more."""
        self.before, self.top, self.floor, self.again_at = _ABOVE_ALL, 0, 0, math.inf

    def next_at(self, now: float) -> float:
        """Return when it may be asked again that is not to be asked now."""
        if self.has_none:
            return math.inf
        return min(self.again_at, self.rests_until if now < self.rests_until else math.inf)

    def end_pass(self, now: float) -> None:
        """Note that the peer was asked for all missing bodies up to now."""
        self.before, self.floor = _ABOVE_ALL, max(self.floor, self.top)
        if self.source.answers_bodies and self.again_at == math.inf:
            self.again_at = now + self.backoff.fail()


@dataclass(slots=True)
class _Question:
    """Question to a peer: numbers of commits, how many it still owes, and when that last changed."""

    peer: _Peer
    nums: list[int]
    owed: int
    since: float


@dataclass(slots=True)
class _Asking:
    """Outstanding requests of one topic, and its peers in the order of asking."""

    question: _Question | None = None
    peers: list[_Peer] = field(default_factory=list)


class _Page(NamedTuple):
    """Commits that a peer is asked for together."""

    nums: list[int]
    ids: tuple[ItemId, ...]
    """As they are compared with it, without those whose own blocks are damaged here: maybe none."""
    commit_ids: tuple[CommitId, ...]


async def fetch_opened(hub: Hub, ids: Collection[CommitId]) -> bool:
    """Fetch bodies that somebody opens in branches that are not kept; return True if any may have come.

    Waits OPENED_SECONDS at most for the next body, and OPENED_SECONDS_MAX in all. It waits for bodies that nobody
    opened before: else it would wait each time for what no connected peer has. Such a body comes later, when a peer has
    it.
    """

    def note() -> dict[int, int]:
        with hub.replica.database.write() as connection:
            return await_opened(connection, ids)

    def count(nums: list[int]) -> int:
        with hub.replica.database.read() as connection:
            return count_bodies_missing(connection, nums)

    if not ids:
        return False
    try:
        opened = await hub.write(note)
    except StorageError as error:  # what is here is shown all the same
        log.error("storage failed", error=str(error))
        return False
    tables = hub.replica.tables
    here = [
        tables.topics[num] for num in set(opened.values()) if num in tables.topics
    ]  # not of deleted repos
    nums, topics = list(opened), [one.topic for one in here]
    if not topics:
        return False
    # Also while nobody is there: who connects later is asked only if it is known that bodies are missing.
    hub.opened.update(topics)
    hub.absences.ring()
    # On any topic of the repos: those of ended epochs rest until something of them is asked for.
    around = {one.topic for num in {topic.repo_num for topic in here} for one in tables.topics_in(num)}
    if not any(source.has_joined(topic) for source in hub.sources for topic in around):
        return False
    owed = len(nums)
    ends_at = trio.current_time() + OPENED_SECONDS_MAX
    with trio.move_on_after(OPENED_SECONDS) as wait:
        while True:
            absences = hub.absences.count
            left = await hub.run_blocking(count, nums)
            if not left:
                break
            if left < owed:
                owed, wait.deadline = left, min(trio.current_time() + OPENED_SECONDS, ends_at)
            await hub.absences.wait(absences)
    return True


class BodyFetcher:
    """Asks peers for absent bodies."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self._asking: dict[_Topic, _Asking] = {}

    async def run(self) -> None:
        """Ask on, for as long as the node runs."""
        backoff = store_backoff()
        while True:
            absences, began = self._hub.absences.count, trio.current_time()
            try:
                look_at = await self._look()
            except StorageError as error:
                log.error("storage failed", error=str(error))
                await trio.sleep(backoff.fail())
                continue
            backoff.reset()
            await trio.sleep(_LOOK_SHARE * (trio.current_time() - began))
            # Not at every change of the store: a look would cost each write a tenth of its time.
            with trio.CancelScope(deadline=look_at):
                await self._hub.absences.wait(absences)

    async def _look(self) -> float:
        """Ask what is to be asked now; gives when to look again, unless something happens before."""
        opened, self._hub.opened = self._hub.opened, set()
        lacking = await self._hub.run_blocking(self._find_lacking)
        self._hub.lacking_bodies = frozenset(topic.key for topic in lacking)
        for source in self._hub.sources:
            source.bodies_settled()
        self._asking = {topic: self._asking.get(topic, _Asking()) for topic in lacking}
        for topic, asking in self._asking.items():
            if topic.key in opened:  # older bodies may be awaited now than peers were asked for
                for peer in asking.peers:
                    peer.begin_anew()
        next_at = math.inf
        for topic, newest in lacking.items():
            next_at = min(next_at, await self._look_at(topic, newest, self._asking[topic]))
        return next_at

    async def _look_at(self, topic: _Topic, newest: int, asking: _Asking) -> float:
        """Check the result of the last question on a topic and ask the next one; return when to look again."""
        await (
            trio.lowlevel.checkpoint()
        )  # a relay's strangers make thousands of topics that no connected peer has joined
        connected = set(self._hub.sources)
        for source in self._hub.sources:
            source.wake(topic.key)
        asking.peers = [peer for peer in asking.peers if peer.source in connected]
        known = {peer.source for peer in asking.peers}
        joined = [source for source in self._hub.sources if source.has_joined(topic.key)]
        asking.peers += [_Peer(source) for source in joined if source not in known]
        if asking.question is not None:
            if not await self._is_over(topic, asking.question):
                return trio.current_time() + BODIES_LOOK_SECONDS
            self._settle(topic, asking, asking.question)
        for peer in list(asking.peers):
            if peer.is_done(newest, trio.current_time()) or not peer.source.has_joined(topic.key):
                continue
            asking.question = await self._ask(topic, peer)
            if asking.question is not None:
                return trio.current_time() + BODIES_LOOK_SECONDS
        now = trio.current_time()
        return min((peer.next_at(now) for peer in asking.peers), default=math.inf)

    async def _ask(self, topic: _Topic, peer: _Peer) -> _Question | None:
        """Ask a peer for the next ones, if there are any and it may be asked."""
        source, now = peer.source, trio.current_time()
        while source in self._hub.sources:
            # Taken here: its connection lets go of all when it leaves, which may be while the page is read.
            visitor = None if self._hub.relay is None else self._hub.relay.visitor(source.peer, source.subnet)
            page = await self._hub.run_blocking(self._load, topic, peer, visitor)
            if not page.nums:
                peer.end_pass(now)
                source.bodies_settled(topic.key)
                return None
            if source not in self._hub.sources:
                return None
            if page.ids and source.answers_bodies and not source.want_bodies(topic.key, page.ids):
                peer.rests_until = now + IDLE_TIMEOUT_SECONDS / 3  # a keep-alive
                return None
            if not source.answers_bodies:
                source.want(topic.key, page.commit_ids)
            peer.before, peer.top = page.nums[-1], max(peer.top, page.nums[0])
            if page.ids or not source.answers_bodies:
                return _Question(peer, page.nums, len(page.nums), now)
        return None

    async def _is_over(self, topic: _Topic, question: _Question) -> bool:
        """Return True if all answers to a question came. A peer that has left sends nothing more."""
        source, now = question.peer.source, trio.current_time()
        owed = await self._hub.run_blocking(self._count, topic, question.nums)
        if owed < question.owed:
            question.owed, question.since = owed, now
        is_late = now - question.since >= FETCH_TIMEOUT_SECONDS
        found = source.bodies_found(topic.key) if source.answers_bodies else None
        has_all = found is not None and len(question.nums) - owed >= found
        return not owed or has_all or is_late or source not in self._hub.sources

    @staticmethod
    def _settle(topic: _Topic, asking: _Asking, question: _Question) -> None:
        """Go on with the same peer where it gave something, else with others first."""
        peer, has_given = question.peer, question.owed < len(question.nums)
        asking.question = None
        if has_given:
            peer.backoff.reset()
        elif not peer.source.answers_bodies:
            peer.has_none = True
        elif peer.source.bodies_found(topic.key) is None:
            peer.rests_until = trio.current_time() + peer.backoff.fail()
        asking.peers.sort(key=lambda one: (one is peer) is not has_given)

    # --- in threads ---

    def _find_lacking(self) -> dict[_Topic, int]:
        """Map topics with absent bodies to the number of the newest commit that may have one."""
        hub = self._hub
        with hub.replica.database.read() as connection:
            missing = find_topics_missing_bodies(connection)
            topics = [one for one in hub.replica.topics.values() if one.num in missing]
            found: dict[_Topic, int] = {_Opened(one): missing[one.num] for one in topics}
            if hub.relay is not None:
                lacking = find_lacking_topics(connection)
                others = list(hub.relay.topics.values())  # this is a thread, and topics come meanwhile
                kept = [one for one in others if one.num in lacking]
                found.update((_OfRelay(one.num, one.topic), lacking[one.num]) for one in kept)
        return found

    def _count(self, topic: _Topic, nums: list[int]) -> int:
        with self._hub.replica.database.read() as connection:
            return topic.count_bodies_missing(connection, nums)

    def _load(self, topic: _Topic, peer: _Peer, visitor: Visitor | None) -> _Page:
        """Load the next commits to ask a peer for. `visitor`: the peer, where this node is a relay."""
        source, relay = peer.source, self._hub.relay
        with self._hub.replica.database.read() as connection:
            if (
                relay is not None
                and visitor is not None
                and not topic.has_room(connection, visitor, relay.quotas)
            ):
                return _Page([], (), ())
            found = topic.load_missing(connection, peer.before, peer.floor, alone=not source.answers_bodies)
            nums = [num for num, _ in found]
            ids: Sequence[ItemId] = ()
            if source.answers_bodies:
                ids = load_ids(connection, topic.as_set(of_publications=source.compares_publications), nums)
        return _Page(nums, tuple(ids), tuple(commit_id for _, commit_id in found))
