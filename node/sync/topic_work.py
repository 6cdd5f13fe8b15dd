"""Work on topics that a connection's session machine asks for: reads the store, compares sets, stores batches.

Each piece is a task of the connection. The peer's account pays for it, and its result goes to the machine as an event. A
batch that was received is opened at once and stored in its turn (`node.ingest.batch_order`), so that signatures of the next
batch are checked while the last one is being stored. The queries are in `node.sync.session_queries`.
"""

from collections import Counter, deque
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Final

import trio

from node.ingest.batch_order import BatchOrder, Previous
from node.ingest.publication_parsing import find_carrier_fault
from node.runtime.scheduling import WorkBill
from node.runtime.token_bucket import TokenBucket
from node.sync.body_proofs import Question
from node.sync.conversation import Conversation
from node.sync.hub import Hub
from node.sync.relay_port import RelayPort
from node.sync.session_queries import (
    Followed,
    Load,
    NothingHeld,
    RangeSet,
    is_fruitful,
    read_earlier,
    read_nothing,
    read_plans,
    read_store,
    read_summaries,
    reconcile,
    step_of,
    topic_set,
)
from protocol.ids import SessionId, TopicKey
from protocol.limits.peers import (
    BATCH_SIZE_TARGET,
    BYTE_SECONDS,
    FRAME_SECONDS,
    IDLE_TIMEOUT_SECONDS,
    LEFT_OUT_TOPICS_MAX,
    SUMMARIES_AT_ONCE,
    WANTED_AT_ONCE_MAX,
    WANTED_PER_CHECK,
)
from protocol.session.events import BatchIngested, BatchLoaded, EarlierLoaded, Event, RoundWanted
from protocol.session.outputs import (
    FindBodies,
    FindWanted,
    HandleFrame,
    IngestBatch,
    LoadBatch,
    LoadBlocks,
    LoadPlan,
    LoadSummary,
    OpenReconciliation,
)
from protocol.session.reconciliation.reconciler import Reconciler
from protocol.session.topic_progress import KEEPS_ALL, KeptPart
from storage.engine.id_keys import chunks
from storage.relay.files import DamagedKeptBlock
from storage.repos.epochs import Topic
from storage.repos.repos import DAY_MS

_LEFT_OUT: Final = ("other_epoch", "wrong_key", "pending_full")
"""Reasons to drop a commit that fall away: as its epoch is taken up, which has the topic too, or as others wait no more."""


class LeftOut:
    """Topics, the latest, of which commits were dropped that may be of an epoch not known here."""

    def __init__(self) -> None:
        self._epoch_counts: dict[TopicKey, int] = {}  # of each as it was then

    def note(self, topic: Topic) -> None:
        """Note that some were dropped of a topic."""
        self._epoch_counts.pop(topic.topic, None)
        self._epoch_counts[topic.topic] = _count_epochs(topic)
        if len(self._epoch_counts) > LEFT_OUT_TOPICS_MAX:
            del self._epoch_counts[next(iter(self._epoch_counts))]

    def take_due(self, by_topic: Mapping[TopicKey, Topic]) -> list[TopicKey]:
        """Take out the topics that are of more epochs now, and those that are gone."""
        due = [
            topic
            for topic, count in self._epoch_counts.items()
            if topic not in by_topic or _count_epochs(by_topic[topic]) > count
        ]
        for topic in due:
            del self._epoch_counts[topic]
        return due


def _count_epochs(topic: Topic) -> int:
    """Count the epochs whose keys are known to be right: false claims take turns without end."""
    return sum(one.claimed_by is None for one in (*topic.epochs, *topic.writers_of))


class TopicWork:
    """Starts the work of one connection. The methods of outputs never wait."""

    def __init__(
        self, conversation: Conversation, session_id: SessionId, hub: Hub, relaying: RelayPort
    ) -> None:
        self._conversation = conversation
        self._session = conversation.session
        self._session_id = session_id
        self._hub = hub
        self._relaying = relaying
        self._turns = BatchOrder()
        self._reconcilers: dict[TopicKey, tuple[Reconciler, RangeSet]] = {}  # by topic
        self._plans: deque[LoadPlan] = deque()  # that no look into the store has answered yet
        self._is_planning = False
        self._news: Counter[TopicKey] = Counter()  # by topic: commits that others brought since this began
        self._has_answered = trio.Event()  # a question of the peer's was looked up
        self._left_out = LeftOut()
        self._usual_wants = TokenBucket(WANTED_AT_ONCE_MAX, WANTED_PER_CHECK / (IDLE_TIMEOUT_SECONDS / 3))

    def note_news(self, topic: TopicKey, count: int) -> None:
        """Others brought so many commits of a topic, which this peer may send as well."""
        self._news[topic] += count

    def topics_changed(self) -> None:
        """Compare topics again that are of another epoch now, of which commits may have been left out before."""
        for topic in self._left_out.take_due(self._hub.replica.by_topic):
            self._conversation.happen(RoundWanted(topic))

    async def has_answered(self) -> None:
        """Wait until the peer may ask for more: what it asks is looked up at this node's pace, and it is not cut off."""
        while self._session.wanting.is_full:
            self._has_answered = trio.Event()
            await self._has_answered.wait()

    def load(self, load: Load) -> None:
        """Read from the store what a session asks for, and answer it."""
        self._conversation.start(self._load, load)

    def load_summaries(self, topics: Sequence[TopicKey]) -> None:
        """Summarise topics, some at a time: a peer joins thousands at once."""
        for part in chunks(topics, SUMMARIES_AT_ONCE):
            self._conversation.start(self._load_summaries, part)

    def load_earlier(self, topic: TopicKey, others: Sequence[Topic]) -> None:
        """Digest what is held on other topics of a repo, for its founding epoch's own topic."""
        self._conversation.start(self._load_earlier, topic, others)

    def plan(self, load: LoadPlan) -> None:
        """Plan what to send on a topic, together with others that are asked for meanwhile: a peer's summaries of thousands
        come one after the other."""
        self._plans.append(load)
        if not self._is_planning:
            self._is_planning = True
            self._conversation.start(self._load_plans)

    def reconcile(self, work: OpenReconciliation | HandleFrame) -> None:
        """Take a step in comparing a topic."""
        self._conversation.start(self._reconcile, work)

    def ingest(self, output: IngestBatch) -> None:
        """Take a batch in, after those that it may build on."""
        followed = self._hub.find_followed(output.topic)
        group = followed.repo_num if isinstance(followed, Topic) else output.topic
        previous, done = self._turns.next(group, is_own=output.is_own)
        # Told by when it comes: what was on its way before says nothing of what the peer has now.
        question = self._hub.proofs.find_answered(self._conversation, output.topic)
        self._conversation.start(self._ingest_batch, output, previous, done, question)

    def _find(self, topic: TopicKey) -> Followed | None:
        """Find what a topic is here. Who keeps it no more tells the peer, and goes on as one that holds nothing of it."""
        followed = self._hub.find_followed(topic)
        if followed is None and self._hub.windows.vouchers.find_promised(topic) is None:
            self._relaying.refuse_forgotten(topic)
        return followed

    def _note_arriving(self, topic: TopicKey) -> None:
        progress = self._session.progress_of(topic)
        if progress is not None:
            rates = self._conversation.transfer_rates.arriving
            rates.note(topic, progress.came, progress.behind, trio.current_time())

    def _note_leaving(self, topic: TopicKey) -> None:
        """Note the rate. A batch is read whenever the peer has confirmed one, as long as there is more to send."""
        progress = self._session.progress_of(topic)
        if progress is not None:
            rates = self._conversation.transfer_rates.leaving
            rates.note(topic, progress.confirmed, progress.unconfirmed, trio.current_time())

    async def _load(self, load: Load) -> None:
        self._conversation.happen(await self._read(load))
        self._has_answered.set()

    async def _read(self, load: Load) -> Event:
        if isinstance(load, LoadBatch):
            self._note_leaving(load.topic)
        followed = self._find(load.topic)
        if followed is None:
            return read_nothing(load)
        keeps = self._find_keeps(load)
        if isinstance(load, LoadBatch) and isinstance(followed, Topic) and keeps.is_all:
            items = self._hub.recent.find(load.topic, load.nums, BATCH_SIZE_TARGET)
            if items is not None:
                return BatchLoaded(load.topic, tuple(items))
        bill = WorkBill(self._conversation.account)
        read = partial(
            read_store,
            of_publications=self._session.compares_publications,
            keeps=keeps,
            now_ms=self._hub.clock_ms(),
        )
        try:
            answer = await self._hub.look(bill, read, self._hub.replica, followed, load)
        except DamagedKeptBlock as damage:
            answer = await self._relaying.drop_damaged(load, damage)
        if is_fruitful(answer) and self._is_usual(load):
            bill.earn()
            # A relay says itself what it keeps, and when it does no more.
            if (
                isinstance(load, LoadBlocks)
                and isinstance(followed, Topic)
                and not self._conversation.peer_is_relay
            ):
                kept_from = self._find_kept_from(load.topic)
                self._hub.given.note(self._conversation, followed.repo_num, load.ids[0], kept_from)
        return answer

    def _is_usual(self, load: Load) -> bool:
        """Return False for a question after more than a peer asks: the same commits may be asked for again and again."""
        if not isinstance(load, FindWanted | FindBodies):
            return True
        return self._usual_wants.try_acquire(trio.current_time(), len(load.ids))

    def _find_keeps(self, load: Load) -> KeptPart:
        """Return what the peer keeps: all bodies where it has asked for one of this batch."""
        progress = self._session.progress_of(load.topic)
        if progress is None or not isinstance(load, LoadBatch):
            return KEEPS_ALL
        is_asked = any(num in progress.outbox.whole for num in load.nums)
        return KEEPS_ALL if is_asked else progress.keeps

    def _find_kept_from(self, topic: TopicKey) -> int:
        """Return the time (unix ms) from which on the peer keeps posts; 0: of any age. A day later, for clocks differ."""
        progress = self._session.progress_of(topic)
        days = 0 if progress is None else progress.keeps.days
        return max(1, self._hub.clock_ms() - (days - 1) * DAY_MS) if days else 0

    async def _load_summaries(self, topics: Sequence[TopicKey]) -> None:
        followed = [self._find(topic) for topic in topics]
        present = [one for one in followed if one is not None]
        for topic, one in zip(topics, followed, strict=True):
            if one is None:
                self._conversation.happen(read_nothing(LoadSummary(topic)))
        if not present:
            return
        read = partial(read_summaries, of_publications=self._session.compares_publications)
        answers = await self._hub.look(WorkBill(self._conversation.account), read, self._hub.replica, present)
        for answer in answers:
            self._conversation.happen(answer)
        if self._hub.replica.sketches.has_due():
            await self._hub.write(self._hub.replica.sketches.write)

    async def _load_earlier(self, topic: TopicKey, others: Sequence[Topic]) -> None:
        bill = WorkBill(self._conversation.account)
        held, unread = await self._hub.look(bill, read_earlier, self._hub.replica, others)
        self._conversation.happen(EarlierLoaded(topic, held))
        for one in unread:
            self._conversation.wake(one)  # level or not: the fingerprints do not tell who has these

    async def _load_plans(self) -> None:
        """Load plans of topics in one task at a time, and once more for topics that came meanwhile."""
        try:
            while self._plans:
                loads = [self._plans.popleft() for _ in range(min(SUMMARIES_AT_ONCE, len(self._plans)))]
                found = [(self._find(load.topic), load) for load in loads]
                here = [(followed, load) for followed, load in found if followed is not None]
                for followed, load in found:
                    if followed is None:
                        self._conversation.happen(read_nothing(load))
                if not here:
                    continue
                bill = WorkBill(self._conversation.account)
                answers = await self._hub.look(bill, read_plans, self._hub.replica, here)
                bill.earn(sum(map(is_fruitful, answers)) / len(answers))
                for answer in answers:
                    self._conversation.happen(answer)
                    self._note_arriving(answer.topic)
        finally:
            self._is_planning = False

    async def _reconcile(self, work: OpenReconciliation | HandleFrame) -> None:
        followed = self._find(work.topic)
        if work.topic not in self._reconcilers:
            is_answerer = isinstance(work, OpenReconciliation)
            made = Reconciler(work.topic, self._session_id, is_answerer=is_answerer)
            self._reconcilers[work.topic] = made, RangeSet()
        reconciler, ranges = self._reconcilers[work.topic]
        bill = WorkBill(self._conversation.account)
        if followed is None:
            step = step_of(reconciler, NothingHeld(), work)
        else:
            kept = topic_set(followed, of_publications=self._session.compares_publications)
            step = await self._hub.look(bill, reconcile, self._hub.replica, kept, reconciler, ranges, work)
        bill.charge(sum(len(frame) for _, frame in step.frames) * BYTE_SECONDS)
        if len(step.nums):
            bill.earn()
        if step.is_over:
            del self._reconcilers[work.topic]
        self._conversation.happen(step)

    async def _ingest_batch(
        self, output: IngestBatch, previous: Previous, done: trio.Event, question: Question | None
    ) -> None:
        with self._hub.byte_budget.holding(output.items):
            await self._accept_batch(output, previous, done, question)

    async def _accept_batch(
        self, output: IngestBatch, previous: Previous, done: trio.Event, question: Question | None
    ) -> None:
        """Open now, accept in turn: causes that stand in an earlier batch of the topic are there first."""
        followed = self._find(output.topic)
        if followed is None:
            done.set()
            self._conversation.happen(BatchIngested(output.topic, 0, (), known=len(output.items)))
            return
        conversation, bill = self._conversation, WorkBill(self._conversation.account)
        if isinstance(followed, Topic):
            ingested = await self._hub.intake.ingest(followed, output.items, previous, conversation, bill)
            useful = ingested.count_useful()
            if question is not None:
                useful += question.note(ingested.shown)
            known = self._pop_expected(output.topic, ingested.already)
            for topic, ids in ingested.wanted.items():
                if topic != output.topic:
                    conversation.want(topic, tuple(ids))
            dropped, accepted = ingested.dropped, ingested.count_on(output.topic)
            wanted = tuple(ingested.wanted.get(output.topic, ()))
            taken = BatchIngested(
                output.topic,
                accepted,
                wanted,
                dropped=dropped.total() - dropped["pending_full"],  # these are still to come
                known=known,
                bodiless=dropped["bare"],
                has_left_out=any(dropped[reason] for reason in _LEFT_OUT),
            )
            if dropped["other_epoch"] or dropped["wrong_key"]:
                self._left_out.note(followed)
        else:
            assert self._hub.relay is not None, "it keeps the topic"
            visitor = self._relaying.visitor()
            relayed = await self._hub.relay_batch(
                followed, output.items, previous, visitor, conversation, bill
            )
            dropped, useful = relayed.dropped, len(relayed.nums) + relayed.completed
            known = self._pop_expected(output.topic, len(output.items) - useful - dropped.total())
            taken = BatchIngested(output.topic, len(relayed.nums), (), relayed.refused, known=known)
        bill.total += FRAME_SECONDS + sum(map(len, output.items)) * BYTE_SECONDS  # charged when it was read
        bill.earn((useful + known) / max(1, len(output.items)))
        await self._hub.let_questions_pass()
        done.set()
        conversation.happen(taken)
        self.topics_changed()  # the epoch may have been taken up while the batch was on its way
        self._note_arriving(output.topic)
        if fault := find_carrier_fault(dropped):
            conversation.part(fault)

    def _pop_expected(self, topic: TopicKey, repeated: int) -> int:
        """Count off repeated commits that are no fault of the peer: others brought them after its summary."""
        expected = min(repeated, self._news[topic])
        self._news[topic] -= expected
        return expected
