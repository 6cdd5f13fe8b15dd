"""What a connection reads from the store for its session, of topics that this node can open and of those that it relays."""

from collections.abc import Sequence

import structlog
from sqlalchemy import Connection

from node.replica import Replica
from protocol.limits import BATCH_SIZE_TARGET, WANT_COUNT_MAX
from protocol.session_events import (
    BatchLoaded,
    BlocksLoaded,
    Event,
    FindWanted,
    LoadBatch,
    LoadBlocks,
    LoadPlan,
    LoadSummary,
    PlanLoaded,
    SummaryLoaded,
    WantedFound,
)
from storage.blocks import DamagedBlock
from storage.difference import REPLICA, find_nums, load_publications, plan_sending, summarise
from storage.relay import RELAY, KeptTopic, load_kept_publications
from storage.repos import Branch
from storage.waiting import missing_causes

log = structlog.get_logger()

Load = LoadSummary | LoadPlan | LoadBatch | FindWanted | LoadBlocks
Followed = Branch | KeptTopic
"""What a topic is on this node."""


def topic_num(followed: Followed) -> int:
    """The number of the topic, which is never another's."""
    return followed.topic_num if isinstance(followed, Branch) else followed.num


def read_store(replica: Replica, followed: Followed, load: Load) -> Event:
    """What the session asked for. Raises StorageError."""
    tables, num = (REPLICA if isinstance(followed, Branch) else RELAY), topic_num(followed)
    with replica.database.read() as connection:
        match load:
            case LoadSummary(topic):
                summary = summarise(connection, num, tables)
                return SummaryLoaded(topic, summary.heads, summary.count, summary.samples)
            case LoadPlan(topic, held):
                plan = plan_sending(connection, num, held, tables)
                return PlanLoaded(topic, plan.nums, plan.upto, plan.unread)
            case LoadBatch(topic, nums):
                return BatchLoaded(topic, tuple(_load_batch(connection, followed, nums)))
            case FindWanted(topic, ids):
                return WantedFound(topic, find_nums(connection, num, ids, tables))
            case LoadBlocks(topic, ids):
                return BlocksLoaded(topic, (_find_block(replica, connection, ids[0]),))


def find_missing_causes(replica: Replica, branch: Branch) -> list[bytes]:
    """Causes that are waited for on a topic. Raises StorageError."""
    with replica.database.read() as connection:
        return missing_causes(connection, branch.topic_num, WANT_COUNT_MAX)


def _load_batch(connection: Connection, followed: Followed, nums: Sequence[int]) -> list[bytes]:
    if isinstance(followed, Branch):
        return load_publications(connection, followed, nums, BATCH_SIZE_TARGET)
    return load_kept_publications(connection, nums, BATCH_SIZE_TARGET)


def _find_block(replica: Replica, connection: Connection, block_id: bytes) -> bytes:
    """A block, encoded; empty where it is not here whole: others may have it."""
    try:
        found = replica.packs.find(connection, block_id)
    except DamagedBlock as error:
        log.error("storage failed", error=str(error))
        return b""
    return found.encoded if found is not None else b""
