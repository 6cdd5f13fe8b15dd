"""Proofs that another node has bodies which this one is about to give up: they come from it again, whole.

What a peer says of all that it has may be old, or be no more than it means to have. So it is asked for each body, and has
shown it by what comes after its answer: that was read from its store after it was asked. While it is asked this node has a
rule by which it keeps less, and has told all peers so; a proof is of no use once that rule has changed.

A file is shown block by block, each by the answer to a question for it that was asked then.
"""

from collections import Counter, deque
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

import trio

from node.runtime.counted_event import CountedEvent
from node.sync.block_requests import NotFetched
from node.sync.conversation import Conversation
from protocol.ids import AnyId, BlockId, CommitId, ObjectId, TopicKey
from protocol.limits.peers import BODIES_LOOK_SECONDS, FETCH_TIMEOUT_SECONDS, FETCHED_COUNT_MAX


@dataclass(slots=True)
class Question:
    """Request to a peer to show commits, with the commits that it has shown."""

    source: Conversation
    topic: TopicKey
    asked: frozenset[CommitId]
    shown: set[CommitId] = field(default_factory=set)

    def note(self, came: Collection[CommitId]) -> int:
        """Note commits that came whole; return how many of these were asked for, and had not come."""
        new = self.asked.intersection(came) - self.shown
        self.shown |= new
        return len(new)


class BodyProofs:
    """The question that is asked now: of one peer at a time. Lives in trio's thread, but for the count of `rules`, and the
    file, which a thread takes away."""

    def __init__(self) -> None:
        self.rules = CountedEvent()
        """Count of changes of the rule of what is kept, rung before each is stored and after it."""
        self.changed: Counter[int] = Counter()
        """Count of such changes by repo number, without those of repos that are `leaving`."""
        self.leaving: set[int] = set()
        """Numbers of repos of which this node keeps no contents any more, for they are about to be deleted."""
        self._turn = trio.Lock()
        self.file: ObjectId | None = None
        """The file that is being shown, or was shown last. `lose_file` takes it away where more of it comes here."""
        self._question: Question | None = None

    def rule_changed(self, repo_num: int) -> None:
        """Count a change of what is kept of a repo. To be called before it is stored and after it."""
        self.changed[repo_num] += 1
        self.rules.ring()

    async def ask(self, source: Conversation, topic: TopicKey, ids: Sequence[CommitId]) -> set[CommitId]:
        """Ask a connected peer for these commits whole; return those that came.

        Waits FETCH_TIMEOUT_SECONDS at most for the next one. The answers have as many bytes as the commits.
        """
        async with self._turn:
            question = self._question = Question(source, topic, frozenset(ids))
            try:
                return await self._wait(question, ids)
            finally:
                self._question = None

    @staticmethod
    async def _wait(question: Question, ids: Sequence[CommitId]) -> set[CommitId]:
        source, topic = question.source, question.topic
        if not source.want_bodies(topic, tuple(map(AnyId, ids))):
            return set()
        came, deadline = 0, trio.current_time() + FETCH_TIMEOUT_SECONDS
        while trio.current_time() < deadline and not source.is_ending():
            found = source.bodies_found(topic)
            if len(question.shown) >= len(ids) or (found is not None and len(question.shown) >= found):
                break
            await trio.sleep(BODIES_LOOK_SECONDS)
            if len(question.shown) > came:
                came, deadline = len(question.shown), trio.current_time() + FETCH_TIMEOUT_SECONDS
        return question.shown

    async def ask_blocks(self, source: Conversation, topic: TopicKey, ids: Sequence[BlockId]) -> bool:
        """Ask a connected peer for these blocks of files; return True if it has sent all. Raises nothing of the network.

        Waits for each as `Conversation.fetch`. Costs the line as many bytes as the blocks have.
        """
        left, missing = deque(ids), list[BlockId]()

        async def ask() -> None:
            while left and not missing:
                wanted = left.popleft()
                # A reader may have asked for it before the rule was told.
                await source.questions.wait_for_earlier(wanted)
                try:
                    found = await source.fetch(topic, wanted)
                except NotFetched:
                    found = None
                if found is None:
                    missing.append(wanted)

        async with trio.open_nursery() as nursery:
            for _ in range(FETCHED_COUNT_MAX):
                nursery.start_soon(ask)
        return not missing

    def lose_file(self, object_id: ObjectId) -> None:
        """Note that more of a file is about to come here, which nobody has shown. With the store's write lock."""
        if self.file == object_id:
            self.file = None

    def find_answered(self, source: Conversation, topic: TopicKey) -> Question | None:
        """Return the question after whose answer a batch on a topic comes now; None: it is none's, or not answered yet."""
        one = self._question
        is_its = one is not None and one.source is source and one.topic == topic
        return one if is_its and source.bodies_found(topic) is not None else None
