"""Writes bundles: the publications of a repo as a relay would hold them, made while they are sent.

First come the inits of epochs on their own topics, the newest first: who joined by the link of one epoch gets the keys of
earlier ones from its init. Then comes the root branch, and then one branch after the other, causes before effects, and
last what this Ravel is too old to read. Bodies are in it as far as they are here; blocks of files are not.

Memory holds one batch. Time grows with what is carried.
"""

from collections.abc import AsyncGenerator, Generator, Sequence
from dataclasses import dataclass, field
from typing import Final

import structlog
from sqlalchemy import Connection

from node.ingest.replica import Replica
from node.runtime.blocking import RunBlocking
from node.runtime.errors import ServiceError
from protocol.formats.bundle import BundleEncoder
from protocol.ids import CommitId
from protocol.limits.files import BUNDLE_STANDS_ON_MAX
from protocol.limits.peers import BATCH_COUNT_MAX, BATCH_SIZE_TARGET
from storage.commits.blocks import DamagedBlock
from storage.commits.pending import find_unread, load_unread
from storage.repos.epochs import Topic
from storage.repos.repos import Branch, Repo
from storage.topics.carrying import (
    CarriedRow,
    find_accepted_up_to,
    find_last,
    find_received_before,
    load_carried,
    load_second_places,
)
from storage.topics.publishing import load_publications

log = structlog.get_logger()

_HEADERS_SIZE: Final = 200
"""Bytes of a publication beside its blocks, about."""
_ALL: Final = BATCH_COUNT_MAX * BATCH_SIZE_TARGET
"""Bytes that no batch has: it was bounded before it is loaded."""


@dataclass(slots=True)
class _Carried:
    """Counts of what was written to a bundle so far."""

    count: int = 0
    left_out: int = 0
    stands_on: dict[CommitId, None] = field(default_factory=dict)


async def write_bundle(
    replica: Replica, repo: Repo, chosen: Sequence[Branch], since: int | None, run_blocking: RunBlocking
) -> AsyncGenerator[bytes]:
    """Yield a bundle of a repo's branches, and of its root branch; `since` in unix milliseconds of this node's clock.

    With `since` it carries what was accepted here from then on. Costs O(what is carried). Raises ServiceError `not_found`
    where the repo is forgotten meanwhile, StorageError.
    """
    steps = _write(replica, repo, chosen, since)
    try:
        while (some := await run_blocking(next, steps, None)) is not None:
            yield some
    finally:
        steps.close()


def _write(
    replica: Replica, repo: Repo, chosen: Sequence[Branch], since: int | None
) -> Generator[bytes, None, None]:
    encoder, carried = BundleEncoder(), _Carried()
    with replica.database.read() as connection:
        upto = find_last(connection)
        base = 0 if since is None else find_received_before(connection, since, upto)
    yield encoder.start(since)
    for num, topic in _second_places(replica, repo, base, upto):
        items, _ = _load(replica, topic, [num])
        if items:
            yield encoder.encode_batch(topic.topic, items)
    for branch in _root_first(replica, repo, chosen):
        after = base
        while rows := _read_rows(replica, branch, after, upto, base, carried):
            after = rows[-1].num
            while rows:
                batch, topic = _first_batch(rows), _topic_of(replica, rows[0].topic_num)
                rows = rows[len(batch) :]
                items, left_out = _load(replica, topic, [row.num for row in batch])
                carried.count += len(items)
                carried.left_out += left_out
                if items:
                    yield encoder.encode_batch(topic.topic, items)
    for topic, items in _unread(replica, repo):
        carried.count += len(items)
        yield encoder.encode_batch(topic.topic, items)
    yield encoder.encode_end(carried.count, carried.left_out, tuple(carried.stands_on))


def _root_first(replica: Replica, repo: Repo, chosen: Sequence[Branch]) -> list[Branch]:
    root = replica.tables.roots.get(repo.repo_id)
    others = [branch for branch in chosen if root is None or branch.num != root.num]
    return others if root is None else [root, *others]


def _second_places(replica: Replica, repo: Repo, base: int, upto: int) -> list[tuple[int, Topic]]:
    """Return the inits of epochs that stand on the topics that they start, the newest first. Costs O(epochs)."""
    tables = replica.tables
    topics = (tables.topics.get(num) for num in tables.topics_of_repo.get(repo.num, ()))
    with replica.database.read() as connection:
        found = [
            (num, topic)
            for topic in topics
            if topic is not None and topic.is_of_all
            for num in load_second_places(connection, topic.num)
            if base < num <= upto
        ]
    return sorted(found, key=lambda one: -one[0])


def _unread(replica: Replica, repo: Repo) -> Generator[tuple[Topic, list[bytes]], None, None]:
    """Yield publications that this Ravel is too old to read. Peers get them too, since a reader may be newer."""
    tables = replica.tables
    for num in tables.topics_of_repo.get(repo.num, ()):
        with replica.database.read() as connection:
            nums = find_unread(connection, num)
        while nums:
            with replica.database.read() as connection:
                items = load_unread(connection, nums[:BATCH_COUNT_MAX], BATCH_SIZE_TARGET)
            if not items:
                break
            nums = nums[len(items) :]
            yield tables.topics[num], items


def _read_rows(
    replica: Replica, branch: Branch, after: int, upto: int, base: int, carried: _Carried
) -> list[CarriedRow]:
    with replica.database.read() as connection:
        rows = load_carried(connection, branch.num, after, upto, BATCH_COUNT_MAX)
        if base:
            _note_base(connection, rows, base, carried)
    return rows


def _topic_of(replica: Replica, num: int) -> Topic:
    topic = replica.topics.get(num)
    if topic is None:
        raise ServiceError("not_found", "the repo was forgotten while it was being written", "join it again")
    return topic


def _first_batch(rows: Sequence[CarriedRow]) -> list[CarriedRow]:
    """Return the first rows that one batch may have: of one topic, and up to one that passes the target."""
    batch: list[CarriedRow] = []
    size = 0
    for row in rows:
        if batch and (row.topic_num != batch[0].topic_num or size >= BATCH_SIZE_TARGET):
            break
        batch.append(row)
        size += row.size + _HEADERS_SIZE
    return batch


def _note_base(connection: Connection, rows: Sequence[CarriedRow], base: int, carried: _Carried) -> None:
    """Record the commits outside the bundle that these commits ack."""
    if len(carried.stands_on) >= BUNDLE_STANDS_ON_MAX:
        return
    here = {row.commit_id for row in rows}
    outside = [ack for row in rows for ack in row.acks if ack not in here]
    before = find_accepted_up_to(connection, outside, base)
    for ack in dict.fromkeys(outside):
        if ack in before and len(carried.stands_on) < BUNDLE_STANDS_ON_MAX:
            carried.stands_on[ack] = None


def _load(replica: Replica, topic: Topic, nums: Sequence[int]) -> tuple[list[bytes], int]:
    """Load the publications of these commits, and count those that are damaged here."""
    with replica.database.read() as connection:
        try:
            items = load_publications(connection, topic, nums, _ALL, replica.signatures)
        except DamagedBlock:
            items = []
            for num in nums:
                try:
                    items += load_publications(connection, topic, [num], _ALL, replica.signatures)
                except DamagedBlock as error:
                    log.warning("a damaged commit is not carried", error=str(error))
    return items, len(nums) - len(items)
