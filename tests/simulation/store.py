"""What a simulated node stores of its topics: a graph of commits, taken causes first, as a real store does.

A commit is its own publication: random bytes behind its acks, and its id their hash. So a store can tell what was
altered on the way, without keys or signatures.
"""

import random
from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from protocol.crypto.hashing import block_id, symbol_key
from protocol.ids import SHORT_ID_SIZE, CommitId, Digest, ShortId, TopicKey
from protocol.session.events import (
    BatchIngested,
    BatchLoaded,
    BlocksLoaded,
    Event,
    PlanLoaded,
    SummaryLoaded,
    WantedFound,
)
from protocol.session.outputs import (
    FindBodies,
    FindWanted,
    IngestBatch,
    LoadBatch,
    LoadBlocks,
    LoadPlan,
    LoadSummary,
)
from protocol.session.reconciliation.range_items import RangeLookup, SortedItems
from protocol.session.reconciliation.riblt import Prefix, prefix_length
from protocol.session.reconciliation.set_digest import SetDigest
from tests.support.ids import as_commit_id

Load = LoadSummary | LoadPlan | LoadBatch | FindWanted | FindBodies | LoadBlocks
_BATCH_COUNT = 5
"""Commits of one batch: few, so that small histories take several."""


def make_commit(chance: random.Random, acks: Sequence[CommitId]) -> bytes:
    """A commit that acks these."""
    return bytes([len(acks)]) + b"".join(acks) + chance.randbytes(8)


def acks_of(commit: bytes) -> list[CommitId] | None:
    """What a commit acks; None for what is no commit."""
    count = commit[0] if commit else 0
    if len(commit) != 1 + 32 * count + 8:
        return None
    return [as_commit_id(commit[1 + 32 * index : 33 + 32 * index]) for index in range(count)]


@dataclass(slots=True)
class BatchResult:
    """What a batch came to."""

    event: BatchIngested
    nums: list[int]
    is_faulty: bool


@dataclass(slots=True)
class Topic:
    """Commits of one topic by number, and those that wait for causes."""

    commits: list[bytes] = field(default_factory=list)
    nums: dict[CommitId, int] = field(default_factory=dict)
    waiting: dict[CommitId, bytes] = field(default_factory=dict)

    def heads(self) -> list[CommitId]:
        """Ids that nothing here acks."""
        acked = {ack for commit in self.commits for ack in acks_of(commit) or ()}
        return [commit_id for commit_id in self.nums if commit_id not in acked]

    def accept(self, commits: Iterable[bytes]) -> list[int]:
        """Take commits whose causes are here, and what waited for them; gives the numbers of new ones."""
        for commit in commits:
            commit_id = CommitId(block_id(commit))
            if commit_id not in self.nums:
                self.waiting[commit_id] = commit
        accepted: list[int] = []
        while True:
            ready = [
                commit_id
                for commit_id, commit in self.waiting.items()
                if all(ack in self.nums for ack in acks_of(commit) or ())
            ]
            if not ready:
                return accepted
            for commit_id in ready:
                self.commits.append(self.waiting.pop(commit_id))
                self.nums[commit_id] = len(self.commits)
                accepted.append(len(self.commits))

    def missing(self) -> list[CommitId]:
        """Causes that are waited for and were not named by anything that waits."""
        causes = {ack for commit in self.waiting.values() for ack in acks_of(commit) or ()}
        return sorted(causes - self.nums.keys() - self.waiting.keys())

    def implied(self, held: Iterable[bytes]) -> set[bytes]:
        """These commits, as far as they are here, and all their past."""
        found: set[bytes] = set()
        ahead = [raw for raw in held if raw in self.nums]
        while ahead:
            one = as_commit_id(ahead.pop())
            if one not in found:
                found.add(one)
                ahead += acks_of(self.commits[self.nums[one] - 1]) or ()
        return found


class Held:
    """A topic's commits at one moment (`reconciling.HeldSet`)."""

    def __init__(self, name: TopicKey, topic: Topic) -> None:
        self._name = name
        self._nums = dict(topic.nums)

    def symbols(self) -> Sequence[int]:
        """Of a prefix that is as long as it would be."""
        prefix = Prefix(symbol_key(self._name), prefix_length(len(self._nums)))
        prefix.add(self._nums)
        return prefix.symbols()

    def find(self, short_ids: Sequence[ShortId]) -> Mapping[ShortId, int]:
        """By the first bytes."""
        by_short_id = {ShortId(raw[:SHORT_ID_SIZE]): num for raw, num in self._nums.items()}
        return {raw: by_short_id[raw] for raw in short_ids if raw in by_short_id}

    def lookup(self) -> RangeLookup:
        """All at one depth."""
        return SortedItems((0, raw) for raw in self._nums)

    def everything(self) -> Sequence[int]:
        """All numbers."""
        return sorted(self._nums.values())


class Store:
    """All topics of a node. It outlives crashes."""

    def __init__(self) -> None:
        self.topics: dict[bytes, Topic] = {}

    def digest(self, topic: TopicKey) -> Digest:
        """The set digest of a topic."""
        digest = SetDigest()
        digest.add(self.topics[topic].nums)
        return digest.digest()

    def look_up(self, load: Load) -> Event:
        """The answer to what a session asks."""
        topic = self.topics[load.topic]
        match load:
            case LoadSummary():
                count = len(topic.commits)
                return SummaryLoaded(load.topic, tuple(topic.heads()), count, self.digest(load.topic), count)
            case LoadPlan():
                heads = {raw[:SHORT_ID_SIZE]: raw for raw in topic.nums}
                held = [heads[raw] for raw in load.held if raw in heads]
                known = topic.implied(held)
                is_exact = len(held) == len(load.held)
                nums = [num for commit_id, num in topic.nums.items() if is_exact and commit_id not in known]
                upto = len(topic.commits)
                return PlanLoaded(load.topic, array("q", sorted(nums)), upto, is_exact=is_exact)
            case LoadBatch():
                return BatchLoaded(
                    load.topic, tuple(topic.commits[num - 1] for num in load.nums[:_BATCH_COUNT])
                )
            case FindWanted():
                found = topic.implied(load.ids).intersection(load.ids)
                return WantedFound(load.topic, sorted(topic.nums[as_commit_id(raw)] for raw in found))
            case FindBodies():  # a commit has no body here
                return WantedFound(load.topic, [])
            case LoadBlocks():
                return BlocksLoaded(load.topic, (b"",))

    def take(self, take: IngestBatch) -> BatchResult:
        """Accept a batch, but for what is no commit."""
        topic = self.topics[take.topic]
        good = [item for item in take.items if acks_of(item) is not None]
        nums = topic.accept(good)
        event = BatchIngested(take.topic, len(nums), tuple(topic.missing()))
        return BatchResult(event, nums, is_faulty=len(good) < len(take.items))
