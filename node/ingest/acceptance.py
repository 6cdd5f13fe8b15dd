"""Ingest, step 3: begins and ends the transactions in which opened commits are judged and stored.

`node.ingest.acceptance_transaction` judges and stores within one. Everything that is kept has passed here.

A commit's faults and its carrier's are kept apart. What is wrong with the *commit* follows from its id, so it is
rejected for good and the rejection remembered. What is wrong with the *publication* was dropped and counted before:
remembering it would let anyone poison an id.

What comes is judged in one transaction, and with it some of what waited for it. The rest is released in further ones, each
as short, between which others write: who takes a batch in calls `release_more` until nothing is left.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace

import structlog
from sqlalchemy import Connection

from node.ingest.acceptance_transaction import Acceptance
from node.ingest.backfill import RestoredCommit, restore_damaged
from node.ingest.ingest_result import IngestResult
from node.ingest.publication_parsing import OpenedBatch, open_batch, prove_topics
from node.ingest.release import Budget
from node.ingest.replica import Replica
from node.runtime.errors import ServiceError
from protocol.ids import TopicKey
from protocol.limits.peers import RELEASED_COUNT_MAX
from storage.commits.pending_release import (
    find_settled,
    is_any_pending,
    pop_unread,
)
from storage.engine.errors import StorageError
from storage.repos.epochs import Topic

log = structlog.get_logger()
InTransaction = Callable[[Connection], None]


@dataclass(frozen=True, slots=True)
class Share:
    """Bounds of one transaction's work. By default it judges all it was given, before other writers."""

    turn: AbstractContextManager[object] | None = None
    """`turn` of `Database.write`."""
    is_over: Callable[[], bool] = lambda: False
    """Return True once the transaction has lasted long enough: it then judges no more."""
    released_max: int = RELEASED_COUNT_MAX
    """Pending commits that one transaction may judge."""
    is_patient: bool = False
    """`is_patient` of `Database.write`."""

    def budget(self) -> Budget:
        """Return the budget for releasing what waits."""
        budget = Budget()
        budget.commits = min(budget.commits, self.released_max)
        return budget


def accept_batch(
    replica: Replica,
    topic: Topic,
    batch: OpenedBatch,
    now_ms: int,
    *,
    share: Share | None = None,
) -> IngestResult:
    """Judge and store a batch in one transaction. It is durable on return. Raises StorageError, and then nothing changed.

    A second transaction keeps pending and rejected commits whose topic signature was not checked yet, if that signature
    holds; its failure is logged and not raised. Commits that were not judged within the slice of `share` are left to another
    call (`IngestResult.left`), and pending commits to be released to `release_more` (`IngestResult.is_unfinished`).
    """
    restored = restore_damaged(replica, topic, batch, now_ms)
    share = share or Share()
    ingested = _judge_batch(replica, topic, batch, now_ms, restored, share)
    try:
        if ingested.unproven:
            proven = prove_topics(ingested.unproven)
            ingested.unproven = []
            # It has been judged once: as much as fits one slice.
            again = replace(share, is_over=lambda: False)
            ingested.add(_judge_batch(replica, topic, proven, now_ms, [], again))
    except StorageError as error:
        # The caller tells what was accepted. The rest comes again.
        log.error("what waits could not be kept", error=str(error))
    return ingested


def _judge_batch(
    replica: Replica,
    topic: Topic,
    batch: OpenedBatch,
    now_ms: int,
    restored: Sequence[RestoredCommit],
    share: Share,
) -> IngestResult:
    with _transaction(replica, now_ms, share) as (work, connection):
        work.recheck_restored(restored)
        if topic.num in work.tables.topics:  # else it was forgotten while the batch was on its way
            work.run_round(connection, work.tables.topics[topic.num], batch, may_leave=True)
            work.release(connection, share.budget())
    return work.ingested


def accept_own(
    replica: Replica,
    make_batches: Callable[[Connection], Iterable[tuple[Topic, OpenedBatch]]],
    now_ms: int,
    *,
    before: InTransaction | None = None,
    after: InTransaction | None = None,
    followups: Sequence[tuple[TopicKey, bytes]] = (),
) -> IngestResult:
    """Judge and store what this node wrote, all in one transaction or nothing of it; durable when it returns.

    `make_batches` runs in the transaction: when it is asked for a batch, those before are stored. `before` and `after` run
    in it too. `followups` are (topic, publication) pairs on topics that `before` or the batches add. What others have sent
    and waits for these commits is not for a user's write to wait for: some of it is released, the rest later.

    Raises OwnCommitRejected where the rules refuse a commit, ServiceError `not_found`, `feed_uncertain` and StorageError.
    """
    share = Share()
    with _transaction(replica, now_ms, share) as (work, connection):
        if before is not None:
            before(connection)
            work.refresh_tables()
        for topic, batch in make_batches(connection):
            known = work.tables.topics.get(topic.num)
            if known is None:
                raise ServiceError("not_found", "the repo was forgotten while it was being written to")
            # Again: it was encoded before this transaction, and own commits may have come meanwhile.
            replica.own_feeds.check(work.tables.repos[known.repo_num].repo_id)
            work.run_own_round(connection, known, batch)
        for name, encoded in followups:
            work.refresh_tables()
            target = work.tables.by_topic[name]
            work.run_own_round(connection, target, open_batch(target, [encoded]))
        work.release(connection, share.budget())
        if after is not None:
            after(connection)
    return work.ingested


def retry_kept(replica: Replica, now_ms: int) -> IngestResult:
    """Judge commits again that an older Ravel could not read, and pending commits whose causes are here. Raises
    StorageError.

    Commits that this Ravel cannot read either stay kept. Causes may have been restored, or accepted, just before a
    crash, while the pending commits were left to another transaction.
    """
    with _transaction(replica, now_ms, Share()) as (work, connection):
        for topic_num, items in pop_unread(connection).items():
            topic = work.tables.topics[topic_num]
            # An older one kept it without looking at the topic's signature.
            work.run_round(connection, topic, open_batch(topic, items, checks_topics=True))
        work.settled.update(find_settled(connection))
        work.settle_awaited()
        work.ingested.is_unfinished = is_any_pending(connection)
    ingested = work.ingested
    while ingested.is_unfinished:
        ingested.add(release_more(replica, now_ms))
    return ingested


def release_more(replica: Replica, now_ms: int, share: Share | None = None) -> IngestResult:
    """Judge a bounded number of pending commits whose causes were settled. Raises StorageError."""
    share = share or Share()
    with _transaction(replica, now_ms, share, takes_over=True) as (work, connection):
        work.release(connection, share.budget(), with_ready=True)
    return work.ingested


@contextmanager
def _transaction(
    replica: Replica,
    now_ms: int,
    share: Share,
    *,
    takes_over: bool = False,
) -> "Iterator[tuple[Acceptance, Connection]]":
    """Judge and store: all of it is committed, or neither store nor memory shows any of it."""
    with replica.change(share.turn, is_patient=share.is_patient) as change:
        work = Acceptance(replica, now_ms, change)
        work.is_slice_over = share.is_over
        if takes_over:
            work.settled, change.unreleased = change.unreleased, {}
        yield work, change.connection
        work.review(change.connection)
        # Before the next writer begins: it might use their places once more.
        for repo_id in work.own_from_peers:
            replica.own_feeds.note_elsewhere(repo_id, now_ms)
            change.touched.add(change.tables.of_id[repo_id].num)
        change.unreleased |= work.settled
    for author, said_ms in work.said_times.items():
        replica.author_clocks.note(author, said_ms, now_ms)
