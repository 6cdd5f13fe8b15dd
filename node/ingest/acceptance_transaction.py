"""One transaction of ingest: verdicts on opened commits, what they change in the tables, and what of it is stored.

`acceptance` has what begins and ends such a transaction.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Final

from sqlalchemy import Connection

from node.ingest.backfill import RestoredCommit, fill_missing
from node.ingest.document_effects import keep_documents
from node.ingest.ingest_result import IngestResult
from node.ingest.key_givers import KEY_GIVING
from node.ingest.membership_effects import (
    choose_writing_epoch,
    follow_links,
    is_lobby_full,
    pending_parts,
    record_epoch,
    show_names,
)
from node.ingest.publication_parsing import Opened, OpenedBatch, open_kept_back
from node.ingest.release import Budget, find_released
from node.ingest.replica import Change, Replica
from node.ingest.tables import PlacedFacts, Tables
from node.ingest.void_recheck import VoidRecheck
from node.runtime.errors import ServiceError
from protocol.crypto.keys import EpochKey
from protocol.formats.body import Adopt, BranchAdd, RepoInit, UnopenedBody
from protocol.formats.commit import NO_EPOCH, Commit
from protocol.formats.epochs import EpochInit
from protocol.ids import (
    BranchId,
    CommitId,
    EpochId,
    Mark,
    RepoId,
    UserId,
)
from protocol.limits.peers import WANT_COUNT_MAX
from storage.blobs.files import apply_files
from storage.commits.absent_bodies import await_missing_bodies
from storage.commits.blocks import DamagedBlock
from storage.commits.checkpoints import keep_checkpoints
from storage.commits.commits import NewCommit, accept_commits, load_facts
from storage.commits.pending import (
    Arrival,
    PendingPublication,
    find_pending,
    keep_pending,
    keep_rejections,
    load_rejected,
)
from storage.commits.pending_release import (
    ReleasedCommit,
    drop_causes,
    is_any_pending,
    load_arrivals,
    pop_released,
)
from storage.commits.rejected_givers import RejectedGiver, keep_rejected_givers
from storage.engine.errors import StorageError
from storage.engine.id_keys import id_key, id_keys
from storage.repos.epochs import Epoch, Topic
from storage.repos.repos import Branch, Repo, add_branch, posts_from, rename_repo
from verifier.facts import BranchFacts, CommitFacts, TopicFacts
from verifier.membership import Membership
from verifier.resolution import Settled
from verifier.tangle_kinds import GROUP
from verifier.verify import (
    Accepted,
    Misplaced,
    Pending,
    Rejected,
    SignedCommit,
    VerifiedCommit,
    judge,
    key_mark,
    pin_mark,
    without_body,
)

_STARTS: Final = (RepoInit, EpochInit)


class OwnCommitRejected(Exception):
    """A commit that this node was about to publish is against the rules; nothing of it was kept."""

    def __init__(self, verdict: Rejected, repo_id: RepoId) -> None:
        super().__init__(verdict.detail)
        self.verdict = verdict
        self.repo_id = repo_id


class Acceptance:
    """One transaction's worth of verdicts. Also the rules' view of what is accepted and rejected, and of keys."""

    def __init__(self, replica: Replica, now_ms: int, change: Change) -> None:
        self._replica = replica
        self._change = change
        self._now_ms = now_ms
        self._facts: dict[CommitId, CommitFacts] = {}
        self._rejected: set[CommitId] = set()
        self._repo_num = 0  # whose commit is being judged
        self._changed_repos: dict[int, Settled] = {}  # by number: how the removals were settled before
        self._new_content: dict[tuple[int, int], list[CommitId]] = {}  # ids by numbers of repo and branch
        self._checkpoints: set[CommitId] = set()  # accepted
        self._restored: set[CommitId] = set()  # accepted before, and damaged meanwhile
        self._adopted: list[tuple[int, Adopt]] = []  # with the repo's number
        self._again: list[Opened] = []  # of the batch, what was settled before
        self._of_root: set[CommitId] = set()  # commits that are missing of root branches
        self._is_releasing = False
        self._arrived: dict[CommitId, Arrival] = {}  # when what is being released came
        self._is_own_round = False
        self.own_from_peers: set[RepoId] = set()  # repos with commits by this node's user that a peer brought
        self.said_times: dict[UserId, int] = {}  # by other author: the latest that accepted commits state
        self.ingested = IngestResult()
        self.is_slice_over: Callable[[], bool] = lambda: False
        self.settled: dict[int, bool] = {}
        """Keys of commits for which others may wait, and whether they were rejected."""
        self.fault: DamagedBlock | None = None
        """What keeps a repo's membership from being computed."""
        self._blocking: dict[int, CommitId] = {}  # by number of such repos: a damaged commit

    @property
    def tables(self) -> Tables:
        """Return the tables of this transaction."""
        return self._change.tables

    def recheck_restored(self, restored: Sequence[RestoredCommit]) -> None:
        """Judge commits that wait for restored commits, and look again whether these are void."""
        self._settle([one.commit_id for one in restored])
        self._restored.update(one.commit_id for one in restored)
        self.ingested.restored += len(restored)
        self.ingested.branches.update(one.branch_num for one in restored)
        for one in restored:
            branch = self.tables.branches[one.branch_num]
            if branch.facts.is_root_branch:
                self.ingested.is_about_repos = True
            else:
                self._new_content.setdefault((branch.repo_num, branch.num), []).append(one.commit_id)

    def refresh_tables(self) -> None:
        """See the branches, epochs and repos that this transaction has added."""
        self._change.refresh()

    def accepted(self, commit_id: CommitId) -> CommitFacts | None:
        """Facts of an accepted commit (`CommitLookup`)."""
        return self._facts.get(commit_id)

    def is_rejected(self, commit_id: CommitId) -> bool:
        """Return True if a commit was rejected (`CommitLookup`)."""
        return commit_id in self._rejected

    def epoch_key(self, epoch: EpochId, mark: Mark) -> EpochKey | None:
        """Return the key of an epoch that gives this mark (`CommitLookup`)."""
        return self.tables.find_key(self._repo_num, epoch, mark)

    def run_round(
        self,
        connection: Connection,
        topic: Topic,
        batch: OpenedBatch,
        *,
        is_proven: bool = False,
        may_leave: bool = False,
    ) -> None:
        """Judge a batch of one topic and store the result: of the whole batch, or of as much as fits the slice.

        With `is_proven` the topic's signatures need not be checked.
        """
        self._look_up(connection, batch)
        round_ = _Round(topic, [item for item in batch.rejected if item.commit_id not in self._rejected])
        round_.waiting += batch.waiting
        self._again = []
        for place, opened in enumerate(batch.opened):
            if may_leave and place and self.is_slice_over():
                self.ingested.left = batch.opened[place:]
                break
            self._judge(round_, opened, is_proven or opened.is_from_topic)
        self._rejected.update(item.commit_id for item in round_.rejected)
        self._settle([one.opened.signed.commit.commit_id for one in round_.new])
        self._store(connection, round_)
        fill_missing(self._replica.database, connection, self._again, self.ingested)
        self.ingested.dropped.update(batch.dropped)
        self.ingested.rejected += round_.rejected
        self._settle([item.commit_id for item in round_.rejected], is_rejected=True)

    def run_own_round(self, connection: Connection, topic: Topic, batch: OpenedBatch) -> None:
        """Judge what this node wrote. Raises OwnCommitRejected, and StorageError where it cannot be judged now."""
        before = len(self.ingested.accepted.get(topic.topic, ()))
        self._is_own_round = True
        self.run_round(connection, topic, batch, is_proven=True)
        self._is_own_round = False
        if self.ingested.rejected:
            repo_id = self.tables.repos[topic.repo_num].repo_id
            raise OwnCommitRejected(self.ingested.rejected[0], repo_id)
        if self.ingested.dropped["lobby_full"]:
            raise ServiceError("too_large", "that link has taken as much as a link may", "make another one")
        if self.fault is not None:
            raise self.fault
        if any(opened.signed.commit.commit_id not in self._facts for opened in batch.opened):
            raise StorageError("what was written lacks a cause here")
        nums = self.ingested.accepted.get(topic.topic, [])[before:]
        if len(nums) == len(batch.opened):
            own = (opened.publication for opened in batch.opened)
            self.ingested.own_publications.setdefault(topic.topic, {}).update(zip(nums, own, strict=True))

    def _settle(self, ids: Sequence[CommitId], *, is_rejected: bool = False) -> None:
        self.settled.update(dict.fromkeys(id_keys(ids), is_rejected))

    def settle_awaited(self) -> None:
        """Wake what waits for keys and branches that are here: what a crash left."""
        for epoch in self.tables.epochs.values():
            self.settled[id_key(key_mark(epoch.epoch_id))] = False
        for branch in self.tables.branches.values():
            self.settled[id_key(pin_mark(branch.facts.root_id))] = False

    def release(self, connection: Connection, budget: Budget, *, with_ready: bool = False) -> None:
        """Judge pending commits whose causes were settled, and then those that waited for these, until budget and slice
        are used.

        With `with_ready`, begin with the commits that earlier transactions left over.
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
        self._is_releasing, self._arrived = True, load_arrivals(connection, released)
        taken = zip(released, pop_released(connection, released), strict=True)
        for topic_num, group in groupby(taken, key=lambda one: one[1][0]):
            part = list(group)
            self.refresh_tables()
            topic = self.tables.topics[topic_num]
            batch = open_kept_back(topic, [publication for _, (_, publication) in part])
            doomed = {one.key: one.num for one, _ in part if one.is_doomed}
            for commit in [opened.signed.commit for opened in batch.opened] if doomed else ():
                if (num := doomed.pop(id_key(commit.commit_id), None)) is not None:
                    drop_causes(connection, num, _find_awaited(commit))
            for num in doomed.values():
                drop_causes(connection, num, None)
            self.run_round(connection, topic, batch, is_proven=True)
        self._is_releasing, self._arrived = False, {}

    def review(self, connection: Connection) -> None:
        """Find what of the repos' content has become void by this transaction, or ceased to be."""
        self.refresh_tables()
        touched = {repo_num for repo_num, _ in self._new_content} | self._changed_repos.keys()
        for repo_num in sorted(touched):
            try:
                membership = self._replica.membership(self.tables.repos[repo_num].repo_id)
            except (
                DamagedBlock
            ):  # of commits that are back: void marks are as they were, until it can be computed
                continue
            database = self._replica.database
            review = VoidRecheck(connection, self.tables, repo_num, membership, database, self._facts)
            for (content_repo_num, branch_num), ids in self._new_content.items():
                if content_repo_num == repo_num:
                    review.of_commits(branch_num, ids, self._checkpoints, self._restored)
            if repo_num in self._changed_repos:
                choose_writing_epoch(connection, self.tables, repo_num, membership)
                follow_links(self._replica.database, connection, self.tables, repo_num, membership)
                review.after_removals(self._changed_repos[repo_num])
                show_names(connection, self.tables, repo_num, membership)
            for adopted_repo_num, body in self._adopted:
                if adopted_repo_num == repo_num:
                    review.of_adopted(body.branch, body.commits)
            self.ingested.voided += review.changed

    def _look_up(self, connection: Connection, batch: OpenedBatch) -> None:
        named: set[CommitId] = {item.commit_id for item in batch.rejected}
        for opened in batch.opened:
            commit = opened.signed.commit
            named.add(commit.commit_id)
            named.update(commit.acks)
            if (place := commit.place(GROUP)) is not None:
                named.update(place.previous)
        named -= self._facts.keys()
        self._facts.update(load_facts(connection, named))
        self._rejected |= load_rejected(connection, sorted(named - self._facts.keys()))

    def _known_facts(self, round_: "_Round", signed: SignedCommit) -> PlacedFacts | None:
        """Find the facts of a commit, looked up once for an epoch and a branch: most batches are of one of each."""
        commit, tables = signed.commit, self.tables
        if round_.tables is not tables:
            round_.tables, round_.known = tables, {}
        if type(signed.body) in _STARTS:  # its own id may name the epoch
            return tables.find_facts(round_.topic, commit)
        key = (commit.content.epoch, commit.branch_id)
        found = round_.known.get(key)
        if found is None:
            found = tables.find_facts(round_.topic, commit)
            if found is not None:
                round_.known[key] = found
        return found

    def _judge(self, round_: "_Round", opened: Opened, is_proven: bool) -> None:
        commit = opened.signed.commit
        if commit.commit_id in self._facts or commit.commit_id in self._rejected:
            self.ingested.already += 1
            self._again.append(opened)
            return
        found = self._known_facts(round_, opened.signed)
        if found is None:
            self.ingested.dropped["other_branch"] += 1
            return
        repo, facts, branch_num = found
        if not self._is_own_round and not self._keeps(repo, branch_num):
            opened = _bare(opened)
        self._repo_num = repo.num
        kept_under = branch_num or self.tables.roots[repo.repo_id].num
        membership = self._membership(repo)
        author = commit.content.author
        if membership is None:
            if is_proven:
                round_.wait(opened, kept_under, (self._blocking[repo.num],), None)
            else:
                self.ingested.unproven.append(opened)
            return
        if facts.is_root_branch and is_lobby_full(membership, author):
            self.ingested.dropped["lobby_full"] += 1
            return
        verdict = judge(opened.signed, round_.facts, facts, self, membership)
        gives_keys = facts.is_root_branch and isinstance(opened.signed.body, KEY_GIVING)
        match verdict:
            case Accepted(verified):
                self._facts[commit.commit_id] = CommitFacts(
                    facts.branch_id, author, commit.rank, commit.acks, verified.seen
                )
                if verified.operation is not None:
                    if repo.num not in self._changed_repos:
                        self._changed_repos[repo.num] = membership.now().settled
                        self._change.changed_repos.add(repo.repo_id)
                    membership.add(verified.operation, commit.acks)
                round_.new.append(_Judged(opened, verified, repo, facts, is_proven))
                if not self._is_own_round:
                    self._note_author(repo, author, commit.content.timestamp)
            case Pending() | Rejected() if not is_proven:  # of what is kept so, who sent it is asked for
                self.ingested.unproven.append(opened)
            case Pending(_, missing, awaited):
                place = commit.place(GROUP) if facts.has_members and not facts.is_root_branch else None
                self._of_root.update(() if place is None else place.previous)
                round_.wait(opened, kept_under, missing, awaited)
                if gives_keys and not self._is_releasing:
                    size = len(opened.publication.encoded)
                    self._replica.givers.note(repo.repo_id, opened.signed, size)
            case Misplaced(code):
                self.ingested.dropped[code] += 1
            case Rejected():
                self._rejected.add(commit.commit_id)
                round_.rejected.append(verdict)
                if gives_keys:  # they are taken whatever becomes of it
                    giver = _name_giver(membership, commit, opened.publication.encoded)
                    round_.givers.setdefault(kept_under, {})[commit.commit_id] = giver

    def _keeps(self, repo: Repo, branch_num: int) -> bool:
        """Return True if the erasable bodies of a branch are kept; 0: of one that is only being added."""
        return self.tables.branches[branch_num].is_kept if branch_num else repo.keeps_all

    def _note_author(self, repo: Repo, author: UserId, said_ms: int) -> None:
        """Note when the author of a commit from a peer was last seen."""
        if author != self._replica.own_feeds.user:
            self.said_times[author] = max(said_ms, self.said_times.get(author, 0))
        elif repo.has_members:
            self.own_from_peers.add(repo.repo_id)

    def _membership(self, repo: Repo) -> Membership | None:
        """Return the membership to judge by; None while commits of the root branch are damaged. Raises StorageError."""
        if repo.num in self._blocking:
            return None
        try:
            return self._replica.membership(repo.repo_id)
        except DamagedBlock as error:
            damaged = self._replica.find_damaged_root(repo.repo_id)
            if damaged is None:
                raise
            self._blocking[repo.num], self.fault = damaged, error
            return None

    def _store(self, connection: Connection, round_: "_Round") -> None:
        """Store root branches first: they add the branches and epochs of the others."""
        by_branch: dict[tuple[bool, int, BranchId], list[_Judged]] = {}
        for one in round_.new:
            place = (not one.facts.is_root_branch, one.repo.num, one.facts.branch_id)
            by_branch.setdefault(place, []).append(one)
        for (is_content, repo_num, branch_id), judged in sorted(by_branch.items(), key=lambda one: one[0]):
            if not is_content:
                root = self.tables.roots[judged[0].repo.repo_id]
                self._start_epochs(connection, judged)
                self._store_branch(connection, root, round_.topic, judged)
                for one in judged:
                    self._apply_root_body(connection, root, one.verified)
                self.refresh_tables()
            else:
                branch = self.tables.find_branch(repo_num, branch_id)
                assert branch is not None, "V2: it was added before"
                self._store_branch(connection, branch, round_.topic, judged)
        is_root = any(one.facts.is_root_branch for one in round_.new)
        self.ingested.is_about_repos |= is_root or bool(round_.waiting) or bool(round_.givers)
        self._keep_waiting(connection, round_)
        for root_num, givers in round_.givers.items():
            keep_rejected_givers(self._replica.database, connection, root_num, givers)
        kept_under = self.tables.roots.get(self.tables.repos[round_.topic.repo_num].repo_id)
        if kept_under is not None:  # else who made the link said what to hold against commits
            keep_rejections(self._replica.database, connection, kept_under.num, round_.rejected)

    def _store_branch(
        self, connection: Connection, branch: Branch, came_on: Topic, judged: Sequence["_Judged"]
    ) -> None:
        database = self._replica.database
        places: dict[tuple[EpochId, bool], tuple[Epoch, Topic] | None] = {}
        new = [self._new_commit(one, came_on, places) for one in judged]
        ids = [one.verified.commit.commit_id for one in new]
        nums = accept_commits(database, connection, branch, new, self._now_ms, self._arrived)
        self.ingested.has_bare |= await_missing_bodies(
            connection,
            branch.num,
            ((num, one.topic_num, one.publication) for num, one in zip(nums, new, strict=True)),
            self._now_ms,
            is_kept=branch.is_kept,
            posts_from=posts_from(self.tables.repos[branch.repo_num].kept_days, self._now_ms),
        )
        self.ingested.branches.add(branch.num)
        if not branch.facts.is_root_branch:
            self._new_content.setdefault((branch.repo_num, branch.num), []).extend(ids)
        links = self.tables.links_of(branch.num)
        for num, one in zip(nums, new, strict=True):
            self.ingested.accepted.setdefault(self.tables.topics[one.topic_num].topic, []).append(num)
            further = [self.tables.topics[other].topic for other in one.starts_on]
            further += [link.topic for link in links if one.epoch_num in [epoch.num for epoch in link.epochs]]
            for topic in further:
                self.ingested.also_on.setdefault(topic, []).append(num)
            if one.starts_on:
                self.ingested.inits[num] = one.verified.commit.commit_id
        apply_files(database, connection, branch.num, nums, new)
        self._checkpoints |= keep_checkpoints(database, connection, branch, nums, new)
        keep_documents(database, connection, branch, nums, new)
        if self._is_releasing:
            self.ingested.released.update(zip(nums, ids, strict=True))

    def _new_commit(
        self,
        one: "_Judged",
        came_on: Topic,
        places: dict[tuple[EpochId, bool], tuple[Epoch, Topic] | None],
    ) -> NewCommit:
        """Find the topic that a commit says, whichever it came on, and its epoch. `places` are those found already."""
        commit, publication = one.verified.commit, one.opened.publication
        if came_on.channel is not None:
            return NewCommit(one.verified, publication, came_on.num, 0, one.is_proven)
        said = commit.content.epoch, commit.content.by_writer
        place = places.get(said) or self.tables.find_place(one.repo.num, commit)
        if commit.content.epoch != NO_EPOCH:
            places[said] = place
        assert place is not None, "V11: its epoch was started in its past, by an init that was accepted"
        epoch, topic = place
        starts_on: tuple[int, ...] = ()
        if isinstance(one.verified.body, EpochInit):
            starts_on = self.tables.find_second_place(one.repo.num, commit.commit_id, topic.num)
        is_proven = one.is_proven and publication.topic == topic.topic
        return NewCommit(one.verified, publication, topic.num, epoch.num, is_proven, starts_on)

    def _start_epochs(self, connection: Connection, judged: Sequence["_Judged"]) -> None:
        """Record the epochs of accepted inits, so that commits that follow them can be placed."""
        for one in judged:
            body = one.verified.body
            if isinstance(body, RepoInit | EpochInit):
                epoch_id = EpochId(one.verified.commit.commit_id)
                record_epoch(self._replica.database, connection, self.tables, one.repo, epoch_id, body.states)
                self.refresh_tables()

    def _keep_waiting(self, connection: Connection, round_: "_Round") -> None:
        topic, waiting = round_.topic, round_.waiting
        parts = pending_parts(self._replica, self.tables.repos[topic.repo_num].repo_id)
        kept = keep_pending(
            self._replica.database,
            connection,
            topic.num,
            waiting,
            self._now_ms,
            self._arrived,
            parts=parts,
            unread_under=self.tables.unread_under(topic),
        )
        self.ingested.waiting += kept.count
        if not self._is_releasing:  # what waits on came before, from others
            self.ingested.waited |= kept.ids
        if kept.refused:
            self.ingested.dropped["pending_full"] += kept.refused
        if kept.ids:
            self._ask_for_causes(connection, topic, [item for item in waiting if item.commit_id in kept.ids])
        if kept.unread:
            self.ingested.unread.setdefault(topic.topic, []).extend(kept.unread)

    def _ask_for_causes(
        self, connection: Connection, topic: Topic, waiting: Sequence[PendingPublication]
    ) -> None:
        """Note the first causes that are neither here nor wait themselves, by the topics on which peers may have them."""
        blocking = self._blocking.get(topic.repo_num)  # asked for as what is damaged is
        causes = dict.fromkeys(cause for item in waiting for cause in item.causes if cause != blocking)
        here = find_pending(connection, causes)
        wanted = [cause for cause in causes if cause not in here][:WANT_COUNT_MAX]
        topics = self.tables.topics_beside(topic)
        for cause in wanted:
            for name in topics:
                self.ingested.wanted.setdefault(name, {})[cause] = None

    def _apply_root_body(self, connection: Connection, root: Branch, verified: VerifiedCommit) -> None:
        database = self._replica.database
        match body := verified.body:
            case RepoInit() if body.name != self.tables.repos[root.repo_num].name:
                rename_repo(connection, root.repo_num, body.name)
            case BranchAdd():
                first = CommitId(body.root.object_id)
                add_branch(database, connection, root.repo_num, body.branch, body.name, first)
                self.settled[id_key(pin_mark(first))] = False
            case Adopt():
                self._adopted.append((root.repo_num, body))
            case _:
                pass


def _bare(opened: Opened) -> Opened:
    """Return a commit without its body, if its verdict does not depend on the body."""
    if not isinstance(opened.signed.body, UnopenedBody):
        return opened
    return Opened(without_body(opened.signed), opened.publication.bare, opened.is_from_topic)


def _name_giver(membership: Membership, commit: Commit, encoded: bytes) -> RejectedGiver:
    """Return a rejected commit that gives keys with its author, if a credential of that counts."""
    author, now = commit.content.author, membership.now()
    has_credential = any(map(now.counts, membership.operations.grants_of(author)))
    return RejectedGiver(author if has_credential else None, commit.content.by_writer, encoded)


def _find_awaited(commit: Commit) -> list[bytes]:
    """Return the commits that a commit may have waited for."""
    place = commit.place(GROUP)
    epoch, first = EpochId(commit.commit_id), commit.commit_id
    return [*commit.acks, *(place.previous if place is not None else ()), key_mark(epoch), pin_mark(first)]


@dataclass(frozen=True, slots=True)
class _Judged:
    """Commit that was accepted in this round, with its author."""

    opened: Opened
    verified: VerifiedCommit
    repo: Repo
    facts: BranchFacts
    is_proven: bool


@dataclass(slots=True)
class _Round:
    """Result of a batch of one topic."""

    topic: Topic
    rejected: list[Rejected]
    new: list[_Judged] = field(default_factory=list)
    waiting: list[PendingPublication] = field(default_factory=list)
    givers: dict[int, dict[CommitId, RejectedGiver]] = field(default_factory=dict)
    """Rejected commits that give keys, by the number of their root branch."""
    tables: Tables | None = None
    known: dict[tuple[EpochId, BranchId], PlacedFacts] = field(default_factory=dict)
    """By epoch and branch, as these tables have them: what the rules need to know."""
    facts: TopicFacts = field(init=False)

    def __post_init__(self) -> None:
        self.facts = self.topic.facts

    def wait(
        self, opened: Opened, branch_num: int, causes: tuple[CommitId, ...], awaited: Mark | None
    ) -> None:
        """Keep a commit until its causes, or what is awaited, are here."""
        commit_id, encoded = opened.signed.commit.commit_id, opened.publication.encoded
        author = opened.signed.commit.content.author
        self.waiting.append(
            PendingPublication(
                commit_id, encoded, causes, author=author, branch_num=branch_num, awaited=awaited
            )
        )
