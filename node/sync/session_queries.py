"""Store queries that a sync session needs, for topics that this node opens and topics that it relays."""

from array import array
from collections.abc import Mapping, Sequence
from typing import Final

import structlog
from sqlalchemy import Connection

from node.ingest.publication_reading import branch_mark_in
from node.ingest.replica import Replica
from node.sync.kept_parts import find_unwanted
from protocol.codec import DecodeError
from protocol.ids import BlockId, BranchMark, Digest, ShortId, TopicKey
from protocol.limits.peers import BATCH_SIZE_TARGET, RANGE_SET_KEPT_COUNT_MAX
from protocol.session.events import (
    BatchLoaded,
    BlocksLoaded,
    Event,
    PlanLoaded,
    Reconciled,
    SummaryLoaded,
    WantedFound,
    WindowLoaded,
)
from protocol.session.outputs import (
    FindBodies,
    FindWanted,
    HandleFrame,
    LoadBatch,
    LoadBlocks,
    LoadPlan,
    LoadSummary,
    LoadWindow,
    OpenReconciliation,
)
from protocol.session.reconciliation.range_items import RangeLookup, SortedItems
from protocol.session.reconciliation.reconciler import FrameKind, HeldSet, Reconciler
from protocol.session.reconciliation.riblt import Unreconciled, prefix_length
from protocol.session.reconciliation.set_digest import SetDigest
from protocol.session.topic_progress import KEEPS_ALL, KeptPart
from storage.commits.blocks import DamagedBlock
from storage.commits.pending import find_unread_topics
from storage.relay.files import load_kept_block
from storage.relay.relay import RELAY, KeptTopic, load_kept_publications
from storage.repos.epochs import Epoch, Topic
from storage.repos.repos import Branch
from storage.topics.difference import (
    LINKED,
    REPLICA,
    TopicTables,
    find_nums,
    plan_sending,
    summarise,
)
from storage.topics.publishing import load_publications
from storage.topics.topic_sets import TopicSet, find_by_short_ids, find_whole, load_set
from storage.topics.windows import find_from, find_kept, find_newest

log = structlog.get_logger()

_EMPTY: Final = SetDigest().digest()
Load = LoadBatch | FindWanted | FindBodies | LoadBlocks | LoadWindow
Followed = Topic | KeptTopic
"""What a topic is on this node."""


def topic_place(followed: Followed) -> tuple[TopicTables, int]:
    """Return the tables that hold the topic, and its number there, which is never another's."""
    if isinstance(followed, KeptTopic):
        return RELAY, followed.num
    return LINKED if followed.is_view else REPLICA, followed.num


def topic_set(followed: Followed, *, of_publications: bool) -> TopicSet:
    """Return the set to compare a topic by. A topic kept for others is compared by publications."""
    tables, num = topic_place(followed)
    if isinstance(followed, KeptTopic):
        return TopicSet(tables, num, followed.topic, of_publications=True)
    return TopicSet(tables, num, followed.topic, of_publications, followed)


def read_store(
    replica: Replica,
    followed: Followed,
    load: Load,
    *,
    of_publications: bool,
    keeps: KeptPart = KEEPS_ALL,
    now_ms: int = 0,
) -> Event:
    """Read what the session asked for, which compares publications or commits.

    A batch has no erasable bodies that the peer does not keep at this time. Raises StorageError, DamagedKeptBlock.
    """
    tables, num = topic_place(followed)
    with replica.database.read() as connection:
        match load:
            case LoadBatch(topic, nums):
                return BatchLoaded(
                    topic, tuple(_load_batch(replica, connection, followed, nums, keeps, now_ms))
                )
            case FindWanted(topic, ids):
                return WantedFound(topic, find_nums(connection, num, ids, tables))
            case FindBodies(topic, ids):
                kept = topic_set(followed, of_publications=of_publications)
                return WantedFound(topic, find_whole(connection, kept, ids))
            case LoadBlocks(topic, ids):
                return BlocksLoaded(topic, (_find_block(replica, connection, ids[0]),))
            case LoadWindow():
                return _load_window(replica, connection, followed, load)


def read_summaries(
    replica: Replica, followed: Sequence[Followed], *, of_publications: bool
) -> list[SummaryLoaded]:
    """Summaries of some topics, by one look into the store. Raises StorageError."""
    found: list[SummaryLoaded] = []
    with replica.database.read() as connection:
        for one in followed:
            tables, num = topic_place(one)
            summary = summarise(connection, num, tables)
            digest = replica.sketches.digest(connection, topic_set(one, of_publications=of_publications))
            found.append(SummaryLoaded(one.topic, summary.heads, summary.count, digest, summary.upto))
    return found


def read_earlier(
    replica: Replica, topics: Sequence[Topic]
) -> tuple[tuple[tuple[TopicKey, Digest], ...], list[TopicKey]]:
    """Digest what is held on each of these topics, but for empty ones, and name those with unread commits.

    No digest counts unread commits, which the peer may have read. Costs O(topics and unread commits). Raises StorageError.
    """
    with replica.database.read() as connection:
        kept = [topic_set(one, of_publications=False) for one in topics]
        held = [(one.topic, replica.sketches.digest(connection, one)) for one in kept]
        unread = find_unread_topics(connection)
    here = tuple(one for one in held if one[1] != _EMPTY)
    return here, [one.topic for one in topics if topic_place(one)[0] is REPLICA and one.num in unread]


def read_plans(replica: Replica, asked: Sequence[tuple[Followed, LoadPlan]]) -> list[PlanLoaded]:
    """Plan what to send on some topics, by one look into the store. Raises StorageError."""
    found: list[PlanLoaded] = []
    with replica.database.read() as connection:
        for followed, load in asked:
            tables, num = topic_place(followed)
            plan = plan_sending(connection, num, load.held, tables)
            found.append(PlanLoaded(load.topic, plan.nums, plan.upto, plan.unread, plan.is_exact))
    return found


def is_fruitful(answer: Event) -> bool:
    """Return True if what was read for a peer is something to send to it."""
    match answer:
        case BatchLoaded(_, items) | BlocksLoaded(_, items) | WindowLoaded(_, _, items):
            return any(items)
        case WantedFound(_, nums):
            return bool(nums)
        case PlanLoaded():
            return bool(len(answer.nums))
        case _:
            return False


class RangeSet:
    """The set of a topic as ranges are looked up in, which one reconciliation keeps from frame to frame."""

    def __init__(self) -> None:
        self._digest = b""
        self._items: SortedItems | None = None

    def find(self, replica: Replica, connection: Connection, kept: TopicSet) -> SortedItems:
        """Return the set as it is now: built anew where the topic has changed, or where it is too large to be kept."""
        digest = replica.sketches.digest(connection, kept)
        if self._items is None or self._digest != digest:
            # All at one depth: ranks would keep late commits together, but a relay does not know them all.
            _, ids = load_set(connection, kept)
            found = SortedItems((0, raw) for raw in ids)
            if len(ids) > RANGE_SET_KEPT_COUNT_MAX:
                return found
            self._digest, self._items = digest, found
        return self._items


def reconcile(
    replica: Replica,
    kept: TopicSet,
    reconciler: Reconciler,
    ranges: RangeSet,
    work: OpenReconciliation | HandleFrame,
) -> Reconciled:
    """Take the next step of a reconciliation, for which `ranges` are kept. Raises StorageError."""
    with replica.database.read() as connection:
        return step_of(reconciler, StoredSet(replica, connection, kept, ranges), work)


def step_of(reconciler: Reconciler, held: HeldSet, work: OpenReconciliation | HandleFrame) -> Reconciled:
    """Take the next step of a reconciliation of what is held."""
    try:
        if isinstance(work, OpenReconciliation):
            step = reconciler.open(held, by_ranges=work.by_ranges)
        else:
            step = reconciler.handle(held, FrameKind(work.kind), work.frame)
    except (DecodeError, Unreconciled) as error:
        return Reconciled(work.topic, (), (), fault=f"bad_reconciliation:{error.reason}")
    return Reconciled(work.topic, step.frames, step.nums, step.is_over)


def read_nothing(load: Load | LoadSummary | LoadPlan) -> Event:
    """Answer what the session asked for of a topic of which nothing is held here any more."""
    match load:
        case LoadSummary(topic):
            return SummaryLoaded(topic, (), 0, _EMPTY, 0)
        case LoadPlan(topic):
            return PlanLoaded(topic, array("q"), 0)
        case LoadBatch(topic):
            return BatchLoaded(topic, ())
        case FindWanted(topic) | FindBodies(topic):
            return WantedFound(topic, [])
        case LoadBlocks(topic):
            return BlocksLoaded(topic, (b"",))
        case LoadWindow(topic, mark):
            return WindowLoaded(topic, mark, (), is_last=True)


class NothingHeld:
    """Set of a topic that is here no more (`reconciler.HeldSet`)."""

    def symbols(self) -> Sequence[int]:
        """Return the shortest prefix, of no ids."""
        return (0,) * prefix_length(0)

    def find(self, short_ids: Sequence[ShortId]) -> Mapping[ShortId, int]:
        """Find none of them."""
        return {}

    def lookup(self) -> RangeLookup:
        """Return no ids."""
        return SortedItems([])

    def everything(self) -> Sequence[int]:
        """Return no commits."""
        return ()


class StoredSet:
    """Set of a topic as the store has it (`reconciler.HeldSet`)."""

    def __init__(self, replica: Replica, connection: Connection, kept: TopicSet, ranges: RangeSet) -> None:
        self._replica = replica
        self._ranges = ranges
        self._connection = connection
        self._kept = kept

    def symbols(self) -> Sequence[int]:
        """Return the kept prefix (`riblt.Prefix.symbols`)."""
        return self._replica.sketches.symbols(self._connection, self._kept)

    def find(self, short_ids: Sequence[ShortId]) -> Mapping[ShortId, int]:
        """Numbers of the commits that have these short ids."""
        return find_by_short_ids(self._connection, self._kept, short_ids)

    def lookup(self) -> RangeLookup:
        """Return the ids, sorted for questions about ranges."""
        return self._ranges.find(self._replica, self._connection, self._kept)

    def everything(self) -> Sequence[int]:
        """Numbers of all commits."""
        return load_set(self._connection, self._kept)[0]


def _load_batch(
    replica: Replica,
    connection: Connection,
    followed: Followed,
    nums: Sequence[int],
    keeps: KeptPart = KEEPS_ALL,
    now_ms: int = 0,
) -> list[bytes]:
    if isinstance(followed, Topic):
        unwanted = find_unwanted(replica.tables, followed, keeps, now_ms)
        signatures = replica.signatures
        try:
            return load_publications(connection, followed, nums, BATCH_SIZE_TARGET, signatures, unwanted)
        except DamagedBlock:
            return _load_whole(connection, followed, nums)
    return load_kept_publications(connection, followed.num, nums, BATCH_SIZE_TARGET)


def _load_window(
    replica: Replica, connection: Connection, followed: Followed, load: LoadWindow
) -> WindowLoaded:
    """Load commits of a mark on a topic, cut where a frame is full. Costs as `find_newest`."""
    if isinstance(followed, KeptTopic):
        nums, is_last = find_kept(
            connection, followed.num, load.mark, load.rank, load.count, is_upwards=load.is_upwards
        )
        # A few at least: the batch is read in the order of their coming, which is not that of ranks.
    else:
        place = _find_marked(replica, followed, load.mark)
        if place is None or (load.is_upwards and not place[0].facts.is_root_branch):
            return WindowLoaded(load.topic, load.mark, (), is_last=True)
        find = find_from if load.is_upwards else find_newest
        branch, epoch = place
        nums, is_last = find(connection, branch.num, epoch.num, followed.num, load.rank, load.count)
    items = _load_batch(replica, connection, followed, nums) if nums else []
    return WindowLoaded(load.topic, load.mark, tuple(items), is_last and len(items) == len(nums))


def _find_marked(replica: Replica, topic: Topic, mark: BranchMark) -> tuple[Branch, Epoch] | None:
    """Find the branch, and the epoch of a topic, that have this mark. Costs O(branches), whose marks are remembered."""
    if topic.is_link:
        return None  # all that it carries stands on the epoch's topics, too
    for epoch in (*topic.epochs, *topic.writers_of):
        for branch in replica.branches_in(epoch.repo_num):
            if branch_mark_in(epoch.key, branch.branch_id) == mark:
                return branch, epoch
    return None


def _load_whole(connection: Connection, topic: Topic, nums: Sequence[int]) -> list[bytes]:
    """Load commits up to the first one without all of its blocks; skip one at the very beginning."""
    items: list[bytes] = []
    for num in nums:
        try:
            items += load_publications(connection, topic, [num], BATCH_SIZE_TARGET)
        except DamagedBlock as error:
            log.warning("a damaged commit is not sent", error=str(error))
            break
        if sum(map(len, items)) >= BATCH_SIZE_TARGET:
            break
    return items


def _find_block(replica: Replica, connection: Connection, block_id: BlockId) -> bytes:
    """Find a block, encoded; empty where it is not here whole: others may have it."""
    try:
        found = replica.packs.find(connection, block_id)
    except DamagedBlock as error:
        log.error("storage failed", error=str(error))
        return b""
    if found is not None:
        return found.encoded
    return load_kept_block(connection, block_id) or b""
