"""Ingest, step 3: judges opened commits and stores the results in one transaction.

Everything that is kept has passed here.

A commit's faults and its carrier's are kept apart. What is wrong with the *commit* follows from its id, so it is
rejected for good and the rejection remembered. What is wrong with the *publication* was dropped and counted before:
remembering it would let anyone poison an id.

What comes is judged in one transaction, and with it some of what waited for it. The rest is released in further ones, each
as short, between which others write: `accept_batch` does so itself, or leaves them to who calls `release_more`.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby

import structlog
from sqlalchemy import Connection

from node.ingest.backfill import fill_missing, restore_damaged
from node.ingest.ingest_result import IngestResult
from node.ingest.lobby_room import is_full, pending_parts
from node.ingest.membership_effects import add_stated, choose_writing_epoch, follow_stated, show_names
from node.ingest.publication_parsing import Opened, OpenedBatch, open_batch, open_kept_back, prove_topics
from node.ingest.release import Budget, find_released
from node.ingest.replica import Change, Replica
from node.ingest.tables import Tables
from node.ingest.void_recheck import VoidRecheck
from node.runtime.errors import ServiceError
from protocol.body import Adopt, BranchAdd, BranchRenew, RepoInit
from protocol.epochs import EpochAdd
from protocol.ids import CommitId, RepoId, TopicKey
from protocol.limits.peers import RELEASED_COUNT_MAX, WANT_COUNT_MAX
from storage.blobs.files import apply_files
from storage.commits.absent_bodies import keep_bare
from storage.commits.blocks import DamagedBlock
from storage.commits.checkpoints import keep_checkpoints
from storage.commits.commits import NewCommit, accept_commits, load_facts
from storage.commits.heads import find_heads
from storage.commits.pending import (
    PendingPublication,
    find_pending,
    keep_pending,
    keep_rejections,
    load_rejected,
)
from storage.commits.pending_release import (
    ReleasedCommit,
    drop_causes,
    find_arrivals,
    find_settled,
    is_any_pending,
    pop_released,
    pop_unread,
)
from storage.engine.errors import StorageError
from storage.engine.id_keys import id_key, id_keys
from storage.repos.repo_changes import rename_repo
from storage.repos.repos import Branch, follow_topic
from verifier.ancestry import GraphNode
from verifier.facts import CommitFacts
from verifier.membership import Membership
from verifier.resolution import Settled
from verifier.tangle_kinds import GROUP
from verifier.verify import Accepted, Misplaced, Pending, Rejected, VerifiedCommit, find_causes, judge

log = structlog.get_logger()
InTransaction = Callable[[Connection], None]


@dataclass(frozen=True, slots=True)
class Share:
    """How much one transaction may do, and how it makes room for others. By default it does all, as impatient work does."""

    turn: AbstractContextManager[object] | None = None
    """As of `Database.write`, and so is `is_patient`."""
    is_over: Callable[[], bool] = lambda: False
    """Whether it has done enough: no more is judged in it."""
    released_max: int = RELEASED_COUNT_MAX
    """Commits that waited and are judged in it."""
    is_patient: bool = False

    def budget(self) -> Budget:
        """What it may release."""
        budget = Budget()
        budget.commits = min(budget.commits, self.released_max)
        return budget


class OwnCommitRejected(Exception):
    """A commit that this node was about to publish is against the rules; nothing of it was kept."""

    def __init__(self, verdict: Rejected, repo_id: RepoId) -> None:
        super().__init__(verdict.detail)
        self.verdict = verdict
        self.repo_id = repo_id


def accept_batch(
    replica: Replica,
    branch: Branch,
    batch: OpenedBatch,
    now_ms: int,
    *,
    share: Share | None = None,
    in_slices: bool = False,
) -> IngestResult:
    """Judge and store a batch in one transaction; durable when it returns. Raises StorageError, and then nothing changed.

    What has to wait or is rejected, and of which the topic's signature was not checked yet, is kept by a second one, if that
    signature holds. What waited is released in further ones; `in_slices` leaves these to the caller (`release_more`). Where
    one of these fails, that is logged, and not raised. Once the slice that `share` grants is over, what was not judged is
    left to another transaction (`IngestResult.left`).
    """
    restored = restore_damaged(replica, branch, batch, now_ms)
    share = share or Share()
    ingested = _judge_batch(replica, branch, batch, now_ms, restored, share)
    left = ingested.left
    try:
        if ingested.unproven:
            proven = prove_topics(ingested.unproven)
            ingested.unproven = []
            # It has been judged once: as much as fits one slice.
            again = replace(share, is_over=lambda: False)
            ingested = ingested.with_more(_judge_batch(replica, branch, proven, now_ms, [], again))
        while ingested.is_unfinished and not in_slices:
            ingested = ingested.with_more(release_more(replica, now_ms, share))
    except StorageError as error:
        # The caller tells what was accepted. The rest comes again, or is released later.
        log.error("what waits could not be kept or released", error=str(error))
    ingested.left = left
    return ingested


def _judge_batch(
    replica: Replica,
    branch: Branch,
    batch: OpenedBatch,
    now_ms: int,
    restored: Sequence[CommitId],
    share: Share,
) -> IngestResult:
    with _transaction(replica, now_ms, share) as (work, connection):
        work.recheck_restored(branch, restored)
        if branch.topic_num in work.tables.on_topics:  # else it was forgotten while the batch was on its way
            work.run_round(connection, branch, batch, may_leave=True)
            work.release(connection, share.budget())
    return work.ingested


def accept_own(
    replica: Replica,
    make_batches: Callable[[Connection], Iterable[tuple[Branch, OpenedBatch]]],
    now_ms: int,
    *,
    before: InTransaction | None = None,
    after: InTransaction | None = None,
    followups: Sequence[tuple[TopicKey, bytes]] = (),
) -> IngestResult:
    """Judge and store what this node wrote, all in one transaction or nothing of it; durable when it returns.

    `make_batches` runs in the transaction: when it is asked for a batch, those before are stored. `before` and `after` run
    in it too. `followups` are (topic, publication) pairs of branches that `before` or the batches add. What others have sent
    and waits for these commits is not for a user's write to wait for: some of it is released, the rest later.

    Raises OwnCommitRejected where the rules refuse a commit, ServiceError `not_found` and StorageError.
    """
    share = Share()
    with _transaction(replica, now_ms, share) as (work, connection):
        if before is not None:
            before(connection)
            work.refresh_tables()
        for branch, batch in make_batches(connection):
            if branch.topic_num not in work.tables.on_topics:
                raise ServiceError("not_found", "the branch was forgotten while it was being written to")
            work.run_own_round(connection, branch, batch)
        for topic, encoded in followups:
            work.refresh_tables()
            target = work.tables.by_topic[topic]
            work.run_own_round(connection, target, open_batch(target, [encoded]))
        work.release(connection, share.budget())
        if after is not None:
            after(connection)
    return work.ingested


def retry_kept(replica: Replica, now_ms: int) -> IngestResult:
    """Take up what an older Ravel could not read, and what waits for causes that are here. Raises StorageError.

    What this one cannot read either is kept again. Causes may have come back after damage just before a crash, or come just
    before it, and what waited was left for a further transaction.
    """
    with _transaction(replica, now_ms, Share()) as (work, connection):
        for topic_num, items in pop_unread(connection).items():
            branch = work.tables.on_topics[topic_num]
            # An older one kept it without looking at the topic's signature.
            work.run_round(connection, branch, open_batch(branch, items, checks_topics=True))
        work.settled.update(find_settled(connection))
        work.ingested.is_unfinished = is_any_pending(connection)
    ingested = work.ingested
    while ingested.is_unfinished:
        ingested = ingested.with_more(release_more(replica, now_ms))
    return ingested


def release_more(replica: Replica, now_ms: int, share: Share | None = None) -> IngestResult:
    """Judge some more of what waited for what was settled: a bounded amount in one transaction. Raises StorageError."""
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
) -> "Iterator[tuple[_Acceptance, Connection]]":
    """Judge and store: all of it is committed, or neither store nor memory shows any of it."""
    with replica.change(share.turn, is_patient=share.is_patient) as change:
        work = _Acceptance(replica, now_ms, change)
        work.is_slice_over = share.is_over
        if takes_over:
            work.settled, change.unreleased = change.unreleased, {}
        yield work, change.connection
        work.review(change.connection)
        change.unreleased |= work.settled


class _Acceptance:
    """One transaction's worth of verdicts. Also the rules' view of what is accepted and rejected."""

    def __init__(self, replica: Replica, now_ms: int, change: Change) -> None:
        self._replica = replica
        self._change = change
        self._now_ms = now_ms
        self._facts: dict[CommitId, CommitFacts] = {}
        self._heads: set[CommitId] = set()  # of what the batch acks, and of what it has added
        self._load_places: Callable[[Iterable[CommitId]], Mapping[CommitId, GraphNode]] = lambda _ids: {}
        self.walks = replica.walks  # (`CommitLookup`)
        self._rejected: set[CommitId] = set()
        self._changed_repos: dict[
            int, Settled
        ] = {}  # how the removals were settled before, by repos' numbers
        self._new_content: dict[tuple[int, int], list[CommitId]] = {}  # ids by numbers of repo and branch
        self._restored: set[CommitId] = set()  # accepted before, and damaged meanwhile
        self._adopted: list[tuple[int, Adopt]] = []  # with the repo's number
        self._again: list[Opened] = []  # of the batch, what was settled before
        self._of_root: set[CommitId] = set()  # commits that are missing of root branches
        self._is_releasing = False
        self._arrived: dict[CommitId, int] = {}  # when what is being released came
        self.ingested = IngestResult()
        self.is_slice_over: Callable[[], bool] = lambda: False
        self.settled: dict[int, bool] = {}
        """Keys of commits for which others may wait, and whether they were rejected."""
        self.fault: DamagedBlock | None = None
        """What keeps a repo's membership from being computed."""
        self._blocking: dict[int, CommitId] = {}  # by number of such repos: a damaged commit

    @property
    def tables(self) -> Tables:
        """This transaction's own."""
        return self._change.tables

    def recheck_restored(self, branch: Branch, ids: Sequence[CommitId]) -> None:
        """Look again at what waits for commits that are back, and at whether they are void."""
        self._settle(ids)
        self._restored.update(ids)
        self.ingested.restored += len(ids)
        if ids and branch.facts.is_root_branch:
            self.ingested.is_about_repos = True
        elif ids:
            self._new_content.setdefault((branch.repo_num, branch.num), []).extend(ids)

    def refresh_tables(self) -> None:
        """See the branches and repos that this transaction has added."""
        self._change.refresh()

    def accepted(self, commit_id: CommitId) -> CommitFacts | None:
        """Facts of an accepted commit (`CommitLookup`)."""
        return self._facts.get(commit_id)

    def ancestors(self, ids: Iterable[CommitId]) -> Mapping[CommitId, GraphNode]:
        """Places of accepted commits (`CommitLookup`), those of this batch included."""
        wanted = list(ids)
        places = self._load_places([raw for raw in wanted if raw not in self._facts])
        return {
            raw: GraphNode(known.rank, known.acks) if (known := self._facts.get(raw)) else places[raw]
            for raw in wanted
        }

    def is_acked(self, commit_id: CommitId) -> bool:
        """Whether an accepted commit acks this one (`CommitLookup`)."""
        return commit_id not in self._heads

    def is_rejected(self, commit_id: CommitId) -> bool:
        """Whether a commit was rejected (`CommitLookup`)."""
        return commit_id in self._rejected

    def run_round(
        self,
        connection: Connection,
        branch: Branch,
        batch: OpenedBatch,
        *,
        is_proven: bool = False,
        may_leave: bool = False,
    ) -> None:
        """Judge a batch of one branch, and store what follows; all of it, or as much as fits the slice.

        `is_proven` without topics' signatures.
        """
        self._look_up(connection, branch, batch)
        new: list[NewCommit] = []
        waiting = list(batch.waiting)
        rejected = [item for item in batch.rejected if item.commit_id not in self._rejected]
        self._again = []
        for place, opened in enumerate(batch.opened):
            if may_leave and place and self.is_slice_over():
                self.ingested.left = batch.opened[place:]
                break
            self._judge(branch, opened, new, waiting, rejected, is_proven or opened.is_from_topic)
        self._rejected.update(item.commit_id for item in rejected)
        self._settle([one.verified.commit.commit_id for one in new])
        self._store(connection, branch, new, waiting, rejected)
        fill_missing(self._replica.database, connection, branch, self._again, self.ingested)
        self.ingested.dropped.update(batch.dropped)
        self.ingested.rejected += rejected
        self._settle([item.commit_id for item in rejected], is_rejected=True)

    def run_own_round(self, connection: Connection, branch: Branch, batch: OpenedBatch) -> None:
        """The same for what this node wrote. Raises OwnCommitRejected, and StorageError where it cannot be judged now."""
        before = len(self.ingested.accepted.get(branch.topic, ()))
        self.run_round(connection, branch, batch, is_proven=True)
        if self.ingested.rejected:
            raise OwnCommitRejected(self.ingested.rejected[0], branch.facts.repo_id)
        if self.ingested.dropped["lobby_full"]:
            raise ServiceError("too_large", "that link has taken as much as a link may", "make another one")
        if self.fault is not None:
            raise self.fault
        ids = (opened.signed.commit.commit_id for opened in batch.opened)
        self.ingested.own_ranks.update((raw, self._facts[raw].rank) for raw in ids)
        nums = self.ingested.accepted.get(branch.topic, [])[before:]
        if len(nums) == len(batch.opened):
            own = (opened.publication for opened in batch.opened)
            self.ingested.own_publications.setdefault(branch.topic, {}).update(zip(nums, own, strict=True))

    def _settle(self, ids: Sequence[CommitId], *, is_rejected: bool = False) -> None:
        self.settled.update(dict.fromkeys(id_keys(ids), is_rejected))

    def release(self, connection: Connection, budget: Budget, *, with_ready: bool = False) -> None:
        """Judge what waited for what was settled, and what waited for that, as far as the budget and the slice go.

        `with_ready` also what earlier transactions had to leave.
        """
        change = self._change
        if not with_ready and self.is_slice_over():
            if not is_any_pending(connection):
                self.settled.clear()
        else:
            while released := find_released(connection, self.settled, budget, with_ready=with_ready):
                self._judge_released(connection, released)
                if self.is_slice_over():
                    break
        change.has_ready = budget.has_left_some or (change.has_ready and not with_ready)
        # A release that failed is taken up by the next.
        self.ingested.is_unfinished = bool(self.settled or change.unreleased or change.has_ready)

    def _judge_released(self, connection: Connection, released: Sequence[ReleasedCommit]) -> None:
        """Judge commits that are no longer to wait, causes before effects."""
        self.refresh_tables()
        self._is_releasing, self._arrived = True, find_arrivals(connection, released)
        taken = zip(released, pop_released(connection, released), strict=True)
        for topic_num, group in groupby(taken, key=lambda one: one[1][0]):
            part = list(group)
            branch = self.tables.on_topics[topic_num]
            batch = open_kept_back(branch, [publication for _, (_, publication) in part])
            doomed = {one.key: one.num for one, _ in part if one.is_doomed}
            for commit in [opened.signed.commit for opened in batch.opened] if doomed else ():
                if (num := doomed.pop(id_key(commit.commit_id), None)) is not None:
                    drop_causes(connection, num, find_causes(commit, branch.facts))
            for num in doomed.values():
                drop_causes(connection, num, None)
            self.run_round(connection, branch, batch, is_proven=True)
        self._is_releasing, self._arrived = False, {}

    def review(self, connection: Connection) -> None:
        """Find what of the repos' content has become void by this transaction, or ceased to be."""
        self.refresh_tables()
        if any(len(self.tables.epochs_in(num)) > 1 for num in self._changed_repos):
            self._change.reload()  # which epoch's secrets are right depends on counts, too
        touched = {repo_num for repo_num, _ in self._new_content} | self._changed_repos.keys()
        for repo_num in touched:
            try:
                membership = self._replica.membership(self.tables.repos[repo_num].repo_id)
            except (
                DamagedBlock
            ):  # of commits that are back: void marks are as they were, until it can be computed
                continue
            review = VoidRecheck(connection, self.tables, repo_num, membership, self._replica.database)
            for (content_repo_num, branch_num), ids in self._new_content.items():
                if content_repo_num == repo_num:
                    review.of_commits(branch_num, ids, self._restored)
            if repo_num in self._changed_repos:
                choose_writing_epoch(connection, self.tables, repo_num, membership)
                review.after_removals(self._changed_repos[repo_num])
                show_names(connection, self.tables, repo_num, membership)
            for adopted_repo_num, body in self._adopted:
                if adopted_repo_num == repo_num:
                    review.of_adopted(body.branch, body.commits)
            self.ingested.voided.update(review.changed)

    def _look_up(self, connection: Connection, branch: Branch, batch: OpenedBatch) -> None:
        named: set[CommitId] = {item.commit_id for item in batch.rejected}
        merged: set[CommitId] = set()
        for opened in batch.opened:
            commit = opened.signed.commit
            named.add(commit.commit_id)
            named.update(commit.named())
            if len(commit.acks) > 1:
                merged.update(commit.acks)
        named -= self._facts.keys()
        self._facts.update(load_facts(connection, named))
        self._rejected |= load_rejected(connection, sorted(named - self._facts.keys()))
        self._heads = find_heads(connection, branch.num, merged)
        self._load_places = partial(self._replica.ancestors.load, connection)

    def _judge(
        self,
        branch: Branch,
        opened: Opened,
        new: list[NewCommit],
        waiting: list[PendingPublication],
        rejected: list[Rejected],
        is_proven: bool,
    ) -> None:
        commit = opened.signed.commit
        if commit.commit_id in self._facts or commit.commit_id in self._rejected:
            self.ingested.already += 1
            self._again.append(opened)
            return
        membership = self._membership(branch)
        author = commit.content.author
        if membership is None:
            cause = (self._blocking[branch.repo_num],)
            if is_proven:
                waiting.append(
                    PendingPublication(commit.commit_id, opened.publication.encoded, cause, author=author)
                )
            else:
                self.ingested.unproven.append(opened)
            return
        if branch.facts.is_root_branch and is_full(membership, author):
            self.ingested.dropped["lobby_full"] += 1
            return
        match judge(opened.signed, branch.facts, self, membership):
            case Accepted(verified):
                content = commit.content
                self._facts[commit.commit_id] = CommitFacts(
                    branch.branch_id, content.author, content.feed_sequence, verified.rank, commit.acks
                )
                self._heads.difference_update(commit.acks)
                self._heads.add(commit.commit_id)
                if verified.operation is not None:
                    if branch.repo_num not in self._changed_repos:
                        self._changed_repos[branch.repo_num] = membership.now().settled
                        self._change.changed_repos.add(branch.facts.repo_id)
                    membership.add(verified.operation, commit.acks)
                new.append(NewCommit(verified, opened.publication, is_proven))
            case Pending() | Rejected() if not is_proven:  # of what is kept so, who sent it is asked for
                self.ingested.unproven.append(opened)
            case Pending(_, missing):
                is_content = branch.facts.has_members and not branch.facts.is_root_branch
                place = commit.place(GROUP) if is_content else None
                self._of_root.update(() if place is None else place.previous)
                waiting.append(
                    PendingPublication(commit.commit_id, opened.publication.encoded, missing, author=author)
                )
            case Misplaced(code):
                self.ingested.dropped[code] += 1
            case Rejected() as verdict:
                self._rejected.add(commit.commit_id)
                rejected.append(verdict)

    def _membership(self, branch: Branch) -> Membership | None:
        """The membership to judge by; None while commits of the root branch are damaged. Raises StorageError."""
        if branch.repo_num in self._blocking:
            return None
        try:
            return self._replica.membership(branch.facts.repo_id)
        except DamagedBlock as error:
            damaged = self._replica.find_damaged_root(branch.facts.repo_id)
            if damaged is None:
                raise
            self._blocking[branch.repo_num], self.fault = damaged, error
            return None

    def _store(
        self,
        connection: Connection,
        branch: Branch,
        new: list[NewCommit],
        waiting: list[PendingPublication],
        rejected: list[Rejected],
    ) -> None:
        database, publications = self._replica.database, [commit.publication for commit in new]
        nums = accept_commits(database, connection, branch, new, self._now_ms, self._arrived)
        self.ingested.has_bare |= keep_bare(connection, branch.num, nums, publications, self._now_ms)
        if nums and not branch.facts.is_root_branch:
            ids = self._new_content.setdefault((branch.repo_num, branch.num), [])
            ids.extend(commit.verified.commit.commit_id for commit in new)
        if nums:
            self.ingested.accepted.setdefault(branch.topic, []).extend(nums)
            apply_files(database, connection, branch.num, nums, new)
            keep_checkpoints(database, connection, branch.num, nums, new)
        if branch.facts.is_root_branch:
            self.ingested.is_about_repos |= bool(new or waiting)
            for commit in new:
                self._apply_root_body(connection, branch, commit.verified)
        if self._is_releasing:
            self.ingested.released.update(
                zip(nums, (one.verified.commit.commit_id for one in new), strict=True)
            )
        parts = pending_parts(self._replica, branch)
        kept = keep_pending(database, connection, branch, waiting, self._now_ms, self._arrived, parts=parts)
        self.ingested.waiting += kept.count
        if not self._is_releasing:  # what waits on came before, from others
            self.ingested.waited |= kept.ids
        if kept.refused:
            self.ingested.dropped["pending_full"] += kept.refused
        if kept.ids:
            self._ask_for_causes(connection, branch, [item for item in waiting if item.commit_id in kept.ids])
        if kept.unread:
            self.ingested.unread.setdefault(branch.topic, []).extend(kept.unread)
        if branch.facts.has_members:  # else who made the link said what to hold against commits
            keep_rejections(database, connection, branch.num, rejected)

    def _ask_for_causes(
        self, connection: Connection, branch: Branch, waiting: Sequence[PendingPublication]
    ) -> None:
        """Note the first causes that are neither here nor wait themselves, by the topics on which peers may have them."""
        blocking = self._blocking.get(branch.repo_num)  # asked for as what is damaged is
        causes = dict.fromkeys(cause for item in waiting for cause in item.causes if cause != blocking)
        here = find_pending(connection, causes)
        wanted = [cause for cause in causes if cause not in here][:WANT_COUNT_MAX]
        for cause in wanted:
            topics = self._topics_of_root(branch) if cause in self._of_root else [branch.topic]
            for topic in topics:
                self.ingested.wanted.setdefault(topic, {})[cause] = None

    def _topics_of_root(self, branch: Branch) -> list[TopicKey]:
        """Of the branch's repo: in its epoch, where its authors wrote last, and in the one that is written in now."""
        current = self.tables.roots[branch.facts.repo_id]
        return [
            one.topic
            for one in self.tables.topics_of[current.num]
            if one.epoch_num in (branch.epoch_num, current.epoch_num)
        ]

    def _apply_root_body(self, connection: Connection, branch: Branch, verified: VerifiedCommit) -> None:
        match body := verified.body:
            case RepoInit() if body.name != self.tables.repos[branch.repo_num].name:
                rename_repo(connection, branch.repo_num, body.name)
            case BranchAdd():
                add_stated(self._replica.database, connection, self.tables, branch, body)
            case BranchRenew():
                follow_topic(
                    self._replica.database,
                    connection,
                    branch.facts.repo_id,
                    self.tables.epochs[branch.epoch_num],
                    body.branch,
                    body.topic,
                    generation=body.generation,
                )
            case EpochAdd():
                follow_stated(self._replica.database, connection, self.tables, branch, body)
            case Adopt():
                self._adopted.append((branch.repo_num, body))
            case _:
                pass
