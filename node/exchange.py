"""What a connection reads from the store for its session, of topics that this node can open and of those that it relays."""

from collections.abc import Mapping, Sequence

import structlog
from sqlalchemy import Connection

from node.replica import Replica
from protocol.codec import DecodeError
from protocol.limits import BATCH_SIZE_TARGET, WANT_COUNT_MAX
from protocol.range_items import RangeLookup, SortedItems
from protocol.reconciling import FrameKind, Reconciler
from protocol.session_events import (
    BatchLoaded,
    BlocksLoaded,
    Event,
    FindWanted,
    LoadBatch,
    LoadBlocks,
    LoadPlan,
    LoadSummary,
    OpenReconciliation,
    PlanLoaded,
    Reconciled,
    SummaryLoaded,
    TakeFrame,
    WantedFound,
)
from protocol.unreconciled import Unreconciled
from storage.blocks import DamagedBlock
from storage.difference import (
    REPLICA,
    TopicTables,
    find_by_short_ids,
    find_nums,
    load_publications,
    load_topic,
    plan_sending,
    summarise,
)
from storage.relay import RELAY, KeptTopic, load_kept_publications
from storage.repos import Branch
from storage.waiting import missing_causes

log = structlog.get_logger()

Load = LoadSummary | LoadPlan | LoadBatch | FindWanted | LoadBlocks
Followed = Branch | KeptTopic
"""What a topic is on this node."""


def topic_place(followed: Followed) -> tuple[TopicTables, int]:
    """The tables that hold the topic, and its number there, which is never another's."""
    return (REPLICA, followed.topic_num) if isinstance(followed, Branch) else (RELAY, followed.num)


def read_store(replica: Replica, followed: Followed, load: Load) -> Event:
    """What the session asked for. Raises StorageError."""
    tables, num = topic_place(followed)
    with replica.database.read() as connection:
        match load:
            case LoadSummary(topic):
                summary = summarise(connection, num, tables)
                digest = replica.sketches.digest(connection, tables, num, topic)
                return SummaryLoaded(topic, summary.heads, summary.count, digest, summary.upto)
            case LoadPlan(topic, held):
                plan = plan_sending(connection, num, held, tables)
                return PlanLoaded(topic, plan.nums, plan.upto, plan.unread, plan.is_exact)
            case LoadBatch(topic, nums):
                return BatchLoaded(topic, tuple(_load_batch(connection, followed, nums)))
            case FindWanted(topic, ids):
                return WantedFound(topic, find_nums(connection, num, ids, tables))
            case LoadBlocks(topic, ids):
                return BlocksLoaded(topic, (_find_block(replica, connection, ids[0]),))


def reconcile(
    replica: Replica, followed: Followed, reconciler: Reconciler, work: OpenReconciliation | TakeFrame
) -> Reconciled:
    """The next step of a reconciliation. Raises StorageError."""
    with replica.database.read() as connection:
        held = _StoredSet(replica, connection, followed)
        try:
            if isinstance(work, OpenReconciliation):
                step = reconciler.open(held, by_ranges=work.by_ranges)
            else:
                step = reconciler.take(held, FrameKind(work.kind), work.frame)
        except (DecodeError, Unreconciled) as error:
            return Reconciled(work.topic, (), (), fault=f"bad_reconciliation:{error.reason}")
        return Reconciled(work.topic, step.frames, step.nums, step.is_over)


class _StoredSet:
    """A topic's commits in the store (`reconciling.HeldSet`)."""

    def __init__(self, replica: Replica, connection: Connection, followed: Followed) -> None:
        self._replica = replica
        self._connection = connection
        self._topic = followed.topic
        self._tables, self._num = topic_place(followed)

    def symbols(self) -> Sequence[int]:
        return self._replica.sketches.symbols(self._connection, self._tables, self._num, self._topic)

    def find(self, short_ids: Sequence[bytes]) -> Mapping[bytes, int]:
        return find_by_short_ids(self._connection, self._num, short_ids, self._tables)

    def lookup(self) -> RangeLookup:
        # All at one depth: ranks would keep late commits together, but a relay does not know them all.
        _, ids = load_topic(self._connection, self._num, self._tables)
        return SortedItems((0, raw) for raw in ids)

    def everything(self) -> Sequence[int]:
        return load_topic(self._connection, self._num, self._tables)[0]


def find_missing_causes(replica: Replica, branch: Branch) -> list[bytes]:
    """Causes that are waited for on a topic. Raises StorageError."""
    with replica.database.read() as connection:
        return missing_causes(connection, branch.topic_num, WANT_COUNT_MAX)


def _load_batch(connection: Connection, followed: Followed, nums: Sequence[int]) -> list[bytes]:
    if isinstance(followed, Branch):
        return load_publications(connection, followed, nums, BATCH_SIZE_TARGET)
    return load_kept_publications(connection, followed.num, nums, BATCH_SIZE_TARGET)


def _find_block(replica: Replica, connection: Connection, block_id: bytes) -> bytes:
    """A block, encoded; empty where it is not here whole: others may have it."""
    try:
        found = replica.packs.find(connection, block_id)
    except DamagedBlock as error:
        log.error("storage failed", error=str(error))
        return b""
    return found.encoded if found is not None else b""
