"""The way in, second half: verdicts, heads and membership, one transaction. Everything that is kept has passed here.

A commit's faults and its carrier's are kept apart. What is wrong with the *commit* follows from its id, so it is
rejected for good and the rejection remembered. What is wrong with the *publication* was dropped and counted before:
remembering it would let anyone poison an id.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial

from sqlalchemy import Connection

from node.awaited import restore_awaited
from node.consequences import choose_writing_epoch, show_names
from node.filling import fill_missing
from node.intake import Intake
from node.opening import Opened, OpenedBatch, open_batch
from node.replica import Change, Replica, Tables
from node.stated_branches import add_stated, follow_stated
from node.voiding import Review
from protocol.body import Adopt, BranchAdd, BranchRenew, RepoInit
from protocol.epochs import EpochAdd, EpochInit
from storage.blocks import DamagedBlock
from storage.checkpoints import keep_checkpoints
from storage.commits import NewCommit, accept_commits, load_facts, load_places
from storage.erasing import keep_bare
from storage.files import apply_files
from storage.heads import find_heads
from storage.repo_changes import rename_repo
from storage.repos import Branch, follow_topic
from storage.waiting import (
    Waiting,
    keep_rejections,
    keep_waiting,
    load_all_causes,
    load_rejected,
    take_unread,
    take_waiting,
)
from verifier.ancestry import Place
from verifier.facts import CommitFacts
from verifier.membership import Membership
from verifier.verify import Accepted, Misplaced, Pending, Rejected, VerifiedCommit, judge

InTransaction = Callable[[Connection], None]


class OwnCommitRejected(Exception):
    """A commit that this node was about to publish is against the rules; nothing of it was kept."""

    def __init__(self, verdict: Rejected) -> None:
        super().__init__(verdict.detail)
        self.verdict = verdict


def accept_batch(
    replica: Replica,
    branch: Branch | None,
    batch: OpenedBatch,
    now_ms: int,
    *,
    before: InTransaction | None = None,
    after: InTransaction | None = None,
    followups: Sequence[tuple[bytes, bytes]] = (),
    is_own: bool = False,
    turn: AbstractContextManager[object] | None = None,
    is_patient: bool = False,
    is_slice_over: Callable[[], bool] = lambda: False,
) -> Intake:
    """Judge and store a batch in one transaction; durable when it returns. Raises StorageError, and then nothing changed.

    `before` and `after` run in the same transaction. `followups` are (topic, publication) pairs of branches that the
    batch itself adds. `branch` is None when `before` adds it; then everything is in `followups`. Of `is_own` commits
    none may be rejected: that undoes the transaction and raises OwnCommitRejected. `turn` and `is_patient` are those of
    `Database.write`. Once `is_slice_over`, what was not judged is left to another transaction (`Intake.left`).
    """
    restored = [] if branch is None else restore_awaited(replica, branch, batch, now_ms)
    with _transaction(replica, now_ms, turn, is_patient=is_patient) as (work, connection):
        work.is_slice_over = is_slice_over
        if branch is not None:
            work.take_restored(branch, restored)
        if before is not None:
            before(connection)
            work.note_changed_tables()
            work.reload_tables()
        if branch is not None and branch.topic_num not in work.tables.on_topics:
            return work.intake  # it was forgotten while the batch was on its way
        if branch is not None:
            work.run_round(connection, [(branch, batch)], may_leave=True)
            if is_own and work.intake.rejected:
                raise OwnCommitRejected(work.intake.rejected[0])
            if is_own and work.fault is not None:
                raise work.fault
        for topic, encoded in followups:
            work.reload_tables()
            target = work.tables.by_topic[topic]
            work.run_round(connection, [(target, open_batch(target, [encoded]))])
        work.release(connection)
        if after is not None:
            after(connection)
    return work.intake


def retry_kept(replica: Replica, now_ms: int) -> Intake:
    """Take up what an older Ravel could not read, and what waits for causes that are here. Raises StorageError.

    What this one cannot read either is kept again. Causes may have come back after damage just before a crash.
    """
    with _transaction(replica, now_ms) as (work, connection):
        work.run_stored(connection, take_unread(connection))
        work.settled |= load_facts(connection, load_all_causes(connection)).keys()
        work.release(connection)
    return work.intake


@contextmanager
def _transaction(
    replica: Replica,
    now_ms: int,
    turn: AbstractContextManager[object] | None = None,
    *,
    is_patient: bool = False,
) -> "Iterator[tuple[_Acceptance, Connection]]":
    """Judge and store: all of it is committed, or neither store nor memory shows any of it."""
    with replica.change(turn, is_patient=is_patient) as change:
        change.has_changed_tables = False
        work = _Acceptance(replica, now_ms, change)
        yield work, change.connection
        work.review(change.connection)


class _Acceptance:
    """One transaction's worth of verdicts. Also the rules' view of what is accepted and rejected."""

    def __init__(self, replica: Replica, now_ms: int, change: Change) -> None:
        self._replica = replica
        self._change = change
        self._now_ms = now_ms
        self._facts: dict[bytes, CommitFacts] = {}
        self._places: dict[bytes, Place] = {}
        self._heads: set[bytes] = set()  # of what the batch acks, and of what it has added
        self._load_places: Callable[[Iterable[bytes]], Mapping[bytes, Place]] = lambda _ids: {}
        self.walks = replica.walks  # (`CommitLookup`)
        self._rejected: set[bytes] = set()
        self._changed_repos: dict[
            int, frozenset[bytes]
        ] = {}  # the removals that counted before, by repos' numbers
        self._new_content: dict[tuple[int, int], list[bytes]] = {}  # ids by numbers of repo and branch
        self._adopted: list[tuple[int, Adopt]] = []  # with the repo's number
        self._again: list[Opened] = []  # of the batch, what was settled before
        self.intake = Intake()
        self.is_slice_over: Callable[[], bool] = lambda: False
        self.settled: set[bytes] = set()
        self.fault: DamagedBlock | None = None
        """What keeps a repo's membership from being computed."""
        self._blocking: dict[int, bytes] = {}  # by number of such repos: a commit that is awaited

    @property
    def tables(self) -> Tables:
        """This transaction's own."""
        return self._change.tables

    def note_changed_tables(self, *, has_changed: bool = True) -> None:
        """Repos, epochs, branches or topics may be others now, where they have changed."""
        self._change.has_changed_tables |= has_changed

    def take_restored(self, branch: Branch, ids: Sequence[bytes]) -> None:
        """Look again at what waits for commits that are back, and at whether they are void."""
        self.settled.update(ids)
        self.intake.restored += len(ids)
        if ids and branch.facts.is_root_branch:
            self.intake.is_about_repos = True
        elif ids:
            self._new_content.setdefault((branch.repo_num, branch.num), []).extend(ids)

    def reload_tables(self) -> None:
        """See the branches and repos that this transaction has added."""
        self._change.reload()

    def accepted(self, commit_id: bytes) -> CommitFacts | None:
        """Facts of an accepted commit (`CommitLookup`)."""
        return self._facts.get(commit_id)

    def ancestors(self, ids: Iterable[bytes]) -> Mapping[bytes, Place]:
        """Places of accepted commits (`CommitLookup`), those of this batch included."""
        wanted = list(ids)
        absent = [raw for raw in wanted if raw not in self._facts and raw not in self._places]
        self._places.update(self._load_places(absent))
        return {
            raw: Place(known.rank, known.acks) if (known := self._facts.get(raw)) else self._places[raw]
            for raw in wanted
        }

    def is_acked(self, commit_id: bytes) -> bool:
        """Whether an accepted commit acks this one (`CommitLookup`)."""
        return commit_id not in self._heads

    def is_rejected(self, commit_id: bytes) -> bool:
        """Whether a commit was rejected (`CommitLookup`)."""
        return commit_id in self._rejected

    def run_round(
        self, connection: Connection, batches: list[tuple[Branch, OpenedBatch]], *, may_leave: bool = False
    ) -> None:
        """Judge some batches, each of one branch, and store what follows; all of it, or as much as fits the slice."""
        for branch, batch in batches:
            self._look_up(connection, branch, batch)
            new: list[NewCommit] = []
            waiting = list(batch.waiting)
            rejected = [item for item in batch.rejected if item.commit_id not in self._rejected]
            self._again = []
            for place, opened in enumerate(batch.opened):
                if may_leave and place and self.is_slice_over():
                    self.intake.left = batch.opened[place:]
                    break
                self._judge(branch, opened, new, waiting, rejected)
            self._rejected.update(item.commit_id for item in rejected)
            self._store(connection, branch, new, waiting, rejected)
            fill_missing(self._replica.database, connection, branch, self._again, self.intake)
            self.intake.dropped.update(batch.dropped)
            self.intake.rejected += rejected
            self.settled.update(item.commit_id for item in rejected)

    def run_stored(self, connection: Connection, stored: dict[int, list[bytes]]) -> None:
        """Judge publications that were kept, by the number of their topic."""
        if self._change.has_changed_tables:
            self.reload_tables()
        found = [(self.tables.on_topics[num], items) for num, items in stored.items()]
        self.run_round(connection, [(branch, open_batch(branch, items)) for branch, items in found])

    def release(self, connection: Connection) -> None:
        """Judge what waited for what was settled, and what waited for that."""
        while self.settled:
            settled, self.settled = self.settled, set()
            self.run_stored(connection, take_waiting(connection, settled))

    def review(self, connection: Connection) -> None:
        """Find what of the repos' content has become void by this transaction, or ceased to be."""
        if self._change.has_changed_tables:
            self.reload_tables()
        touched = {repo_num for repo_num, _ in self._new_content} | self._changed_repos.keys()
        for repo_num in touched:
            try:
                membership = self._replica.membership(self.tables.repos[repo_num].repo_id)
            except (
                DamagedBlock
            ):  # of commits that are back: void marks are as they were, until it can be computed
                continue
            review = Review(connection, self.tables, repo_num, membership, self._replica.database)
            for (content_repo_num, branch_num), ids in self._new_content.items():
                if content_repo_num == repo_num:
                    review.of_commits(branch_num, ids)
            if repo_num in self._changed_repos:
                is_other = choose_writing_epoch(connection, self.tables, repo_num, membership)
                self.note_changed_tables(has_changed=is_other)
                review.after_removals(self._changed_repos[repo_num])
                is_renamed = show_names(connection, self.tables, repo_num, membership)
                self.note_changed_tables(has_changed=is_renamed)
            for adopted_repo_num, body in self._adopted:
                if adopted_repo_num == repo_num:
                    review.of_adopted(body.branch, body.commits)
            self.intake.voided.update(review.changed)

    def _look_up(self, connection: Connection, branch: Branch, batch: OpenedBatch) -> None:
        named: set[bytes] = {item.commit_id for item in batch.rejected}
        merged: set[bytes] = set()
        for opened in batch.opened:
            commit = opened.signed.commit
            named.add(commit.commit_id)
            named.update(commit.acks, commit.links.deps, commit.links.ndeps)
            if len(commit.acks) > 1:
                merged.update(commit.acks)
            named.update(
                link for link in (commit.content.feed_previous, commit.links.lipmaa) if link is not None
            )
            for place in commit.content.tangles:
                named.update(place.previous)
        named -= self._facts.keys()
        self._facts.update(load_facts(connection, named))
        self._rejected |= load_rejected(connection, sorted(named - self._facts.keys()))
        self._heads = find_heads(connection, branch.num, merged)
        self._load_places = partial(load_places, connection)

    def _judge(
        self,
        branch: Branch,
        opened: Opened,
        new: list[NewCommit],
        waiting: list[Waiting],
        rejected: list[Rejected],
    ) -> None:
        commit = opened.signed.commit
        if commit.commit_id in self._facts or commit.commit_id in self._rejected:
            self.intake.already += 1
            self._again.append(opened)
            return
        membership = self._membership(branch)
        if membership is None:
            waiting.append(Waiting(commit.commit_id, opened.encoded, (self._blocking[branch.repo_num],)))
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
                        self._changed_repos[branch.repo_num] = membership.now().counting
                        self._change.changed_repos.add(branch.facts.repo_id)
                    membership.add(verified.operation, commit.acks)
                self.settled.add(commit.commit_id)
                new.append(NewCommit(verified, opened.publication))
            case Pending(_, missing):
                waiting.append(Waiting(commit.commit_id, opened.encoded, missing))
            case Misplaced(code):
                self.intake.dropped[code] += 1
            case Rejected() as verdict:
                self._rejected.add(commit.commit_id)
                rejected.append(verdict)

    def _membership(self, branch: Branch) -> Membership | None:
        """The membership to judge by; None while commits of the root branch are awaited. Raises StorageError."""
        if branch.repo_num in self._blocking:
            return None
        try:
            return self._replica.membership(branch.facts.repo_id)
        except DamagedBlock as error:
            awaited = self._replica.find_awaited_root(branch.facts.repo_id)
            if awaited is None:
                raise
            self._blocking[branch.repo_num], self.fault = awaited, error
            return None

    def _store(
        self,
        connection: Connection,
        branch: Branch,
        new: list[NewCommit],
        waiting: list[Waiting],
        rejected: list[Rejected],
    ) -> None:
        database, publications = self._replica.database, [commit.publication for commit in new]
        nums = accept_commits(database, connection, branch, new, self._now_ms)
        keep_bare(connection, branch.num, nums, publications, self._now_ms)
        if nums and not branch.facts.is_root_branch:
            ids = self._new_content.setdefault((branch.repo_num, branch.num), [])
            ids.extend(commit.verified.commit.commit_id for commit in new)
        if nums:
            self.intake.accepted.setdefault(branch.topic, []).extend(nums)
            apply_files(database, connection, branch.num, nums, new)
            keep_checkpoints(database, connection, branch.num, nums, new)
        if branch.facts.is_root_branch:
            self.intake.is_about_repos |= bool(new or waiting)
            for commit in new:
                self._apply_root_body(connection, branch, commit.verified)
        kept = keep_waiting(database, connection, branch, waiting)
        self.intake.waiting += kept.count
        if kept.unread:
            self.intake.unread.setdefault(branch.topic, []).extend(kept.unread)
        if branch.facts.has_members:  # else who made the link said what to hold against commits
            keep_rejections(database, connection, branch.num, rejected)

    def _apply_root_body(self, connection: Connection, branch: Branch, verified: VerifiedCommit) -> None:
        match body := verified.body:
            case RepoInit():
                rename_repo(connection, branch.repo_num, body.name)
                self.note_changed_tables()
            case BranchAdd():
                self.note_changed_tables()
                add_stated(self._replica.database, connection, self.tables, branch, body)
            case BranchRenew():
                self.note_changed_tables()
                follow_topic(
                    self._replica.database,
                    connection,
                    branch.facts.repo_id,
                    self.tables.epochs[branch.epoch_num],
                    body.branch,
                    body.topic,
                    generation=body.generation,
                )
            case EpochInit():
                self.note_changed_tables()  # which secrets are right, if any are here
            case EpochAdd():
                is_new = follow_stated(self._replica.database, connection, self.tables, branch, body)
                self.note_changed_tables(has_changed=is_new)
            case Adopt():
                self._adopted.append((branch.repo_num, body))
            case _:
                pass
