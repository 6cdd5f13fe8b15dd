"""`Preparation`: before a user writes, it starts the epoch that the rules ask for, merges heads and opens epochs."""

from collections.abc import Callable, Sequence
from typing import TypeVar

from sqlalchemy import Connection

from node.authoring.choosing_heads import (
    choose_closed,
    choose_for_init,
    choose_merged,
    followed_in,
    may_merge,
)
from node.authoring.drafting import Draft, WrittenCommit
from node.authoring.epoch_starts import make_init, make_open
from node.authoring.feed_writer import FeedWriter
from node.authoring.refusals import RefusedByRules
from node.ingest.ingest_result import IngestResult
from node.runtime.errors import ServiceError
from protocol.formats.body import BranchRoot, Permission
from protocol.formats.epochs import EpochOpen
from protocol.ids import CommitId, EpochId, RepoId
from protocol.limits.formats import ACK_COUNT_MAX
from storage.engine.id_keys import chunks
from storage.repos.epochs import Epoch, add_epoch
from storage.repos.repos import Branch, Repo

T = TypeVar("T")


class Preparation:
    """Root branch commits that must precede what one user writes. Each is a transaction, whose result goes to `stored`."""

    def __init__(self, writer: FeedWriter) -> None:
        self._writer = writer
        self._replica = writer.replica
        # By repo: root branch heads with which there was nothing to do. Others may come while something is done.
        self._ready: dict[RepoId, tuple[CommitId, ...]] = {}

    def prepare_branch(self, branch: Branch, stored: IngestResult) -> None:
        """Prepare a write in a branch. Raises ServiceError, `not_permitted` where this node may only read; StorageError."""
        if not branch.facts.has_members:
            raise ServiceError(
                "not_permitted",
                "this node follows the branch by a link, and may read it only",
                "ask a member for an invitation to the repo",
            )
        self.prepare(self._replica.repos[branch.repo_num], stored)

    def write(self, branch: Branch, write: Callable[[], T], stored: IngestResult) -> T:
        """Prepare a write in a branch and return what it gives; do both again, once, where it is outdated (`is_outdated`).

        Raises as `prepare_branch` and `write` do.
        """
        with self._writer.lock:
            began_at = self._replica.database.commit_count
            self.prepare_branch(branch, stored)
            try:
                return write()
            except RefusedByRules as error:
                if not self.is_outdated(error, began_at):
                    raise
                self.prepare_branch(branch, stored)
                return write()

    def is_outdated(self, error: Exception, began_at: int) -> bool:
        """Return True if a write whose preparation began after so many transactions may succeed if it is prepared again.

        Others wrote since, so that the root branch has more heads than a place can name, or an epoch is due.
        """
        return self._replica.database.commit_count != began_at and isinstance(error, RefusedByRules)

    def prepare(self, repo: Repo, stored: IngestResult) -> None:
        """Start an epoch if the rules ask for one (E9), and merge heads and open epochs in the current epoch (E4, E11).

        Raises ServiceError, StorageError; `stored` has what was stored before that.
        """
        if repo.repo_id in self._replica.own_feeds.uncertain:
            return  # the write itself fails, and says why
        with self._writer.lock:
            with self._replica.membership_lock:
                now = self._replica.membership(repo.repo_id).now()
                if self._ready.get(repo.repo_id) == now.heads:
                    return
                may_write = (now.permission(self._writer.keys.user) or 0) >= Permission.WRITE
            if may_write:
                if self._is_due(repo):
                    self._start_due(repo, stored)
                self._merge(repo, stored)
                self._open_closed(repo, stored)
            self._ready[repo.repo_id] = now.heads

    def start(self, repo: Repo, stored: IngestResult) -> None:
        """Start an epoch after everything that this node knows of. Raises ServiceError where the rules refuse it."""
        with self._writer.lock:
            if self._is_due(repo):
                self._start_due(repo, stored)
                return
            self._merge(repo, stored)
            self._start_at(repo, self._heads(repo), stored)

    def _start_due(self, repo: Repo, stored: IngestResult) -> None:
        """Start the epoch that the rules ask for, after merges that open nothing: no tip is clean, so what is opened leaks.

        Where heads are left that an init cannot name, another one follows it.
        """
        self._merge_closed(repo, stored)
        is_whole = False
        while not is_whole and self._is_due(repo):
            before = self._heads(repo)
            is_whole = len(before) <= ACK_COUNT_MAX
            self._start_at(repo, before, stored)
            if len(self._heads(repo)) >= len(before):
                return

    def _start_at(self, repo: Repo, heads: tuple[CommitId, ...], stored: IngestResult) -> None:
        """Start an epoch after these heads, or as many as an init can name, published in an epoch of their past."""
        epoch, acks = self._replica.writing_epoch(repo), heads
        with self._replica.membership_lock:
            membership = self._replica.membership(repo.repo_id)
            if len(heads) > ACK_COUNT_MAX:
                user = self._writer.keys.user
                acks = choose_for_init(membership, user, heads) or heads[:ACK_COUNT_MAX]
            if not membership.epochs.is_within(epoch.epoch_id, acks):
                held = self._replica.tables.held_epochs(repo.num)
                started = membership.operations.in_order(
                    one for one in membership.epochs.started_within(membership.at(acks))
                )
                epoch = [held[one.started_epoch] for one in started if one.started_epoch in held][-1]
        self._start_after(repo, epoch, acks, stored)

    def _start_after(
        self, repo: Repo, published_in: Epoch, heads: tuple[CommitId, ...], stored: IngestResult
    ) -> None:
        """Start an epoch after these heads, published in another."""
        with self._replica.membership_lock:
            membership = self._replica.membership(repo.repo_id)
            made = make_init(membership, self._replica.tables, repo, heads, published_in)

        def add(connection: Connection, written: WrittenCommit) -> None:
            add_epoch(self._replica.database, connection, made.named(EpochId(written.commit_id)))

        draft = Draft(made.body, heads, further_blocks=made.blocks)
        root = self._replica.root_branch(repo)
        stored.add(self._writer.write_in(root, published_in, draft, before=add)[1])

    def _is_due(self, repo: Repo) -> bool:
        with self._replica.membership_lock:
            membership = self._replica.membership(repo.repo_id)
            return membership.epochs.is_due(membership.now())

    def _heads(self, repo: Repo) -> tuple[CommitId, ...]:
        with self._replica.membership_lock:
            return self._replica.membership(repo.repo_id).now().heads

    def _write(self, repo: Repo, epoch: Epoch, draft: Draft, stored: IngestResult) -> CommitId:
        written, ingested = self._writer.write_in(self._replica.root_branch(repo), epoch, draft)
        stored.add(ingested)
        return written.commit_id

    def _merge(self, repo: Repo, stored: IngestResult) -> None:
        """Merge root branch heads in the current epoch while there are more than a commit can name.

        A head that takes away what the user needs is left for someone who can name it.
        """
        while len(heads := self._heads(repo)) > ACK_COUNT_MAX and not self._is_due(repo):
            epoch = self._replica.writing_epoch(repo)
            with self._replica.membership_lock:
                membership = self._replica.membership(repo.repo_id)
                acks = choose_merged(membership, self._writer.keys.user, epoch.epoch_id, heads)
            if len(acks) < 2:
                return
            self._write_merges(repo, epoch, acks, heads, stored, opens=True)

    def _merge_closed(self, repo: Repo, stored: IngestResult) -> None:
        """Merge heads in an epoch that opens the epochs of all of them."""
        while len(heads := self._heads(repo)) > ACK_COUNT_MAX:
            held = self._replica.tables.held_epochs(repo.num)
            with self._replica.membership_lock:
                membership = self._replica.membership(repo.repo_id)
                merge = choose_closed(membership, self._writer.keys.user, heads, held)
                if merge is None:
                    return
                epoch_id, acks = merge
                alike = [one for one in heads if followed_in(membership.operations[one]) == epoch_id]
            self._write_merges(repo, held[epoch_id], acks, alike, stored, opens=False)

    def _write_merges(
        self,
        repo: Repo,
        epoch: Epoch,
        acks: tuple[CommitId, ...],
        heads: Sequence[CommitId],
        stored: IngestResult,
        *,
        opens: bool,
    ) -> None:
        """Merge `acks`, then as many `heads` as needed. Each merge acks the last one, so it keeps what gives its author the
        right.

        Costs O(heads). Choosing anew for each merge would cost their square.
        """
        chosen, user = set(acks), self._writer.keys.user
        rest = [one for one in heads if one not in chosen]
        last: tuple[CommitId, ...] = ()
        for part in (acks, *chunks(rest, ACK_COUNT_MAX - 1)):
            merged = (*last, *part)
            with self._replica.membership_lock:
                membership = self._replica.membership(repo.repo_id)
                now = membership.now()
                is_over = len(now.heads) <= ACK_COUNT_MAX or (opens and membership.epochs.is_due(now))
                if last and (is_over or not may_merge(membership, user, epoch.epoch_id, merged)):
                    continue
                body = (
                    make_open(membership, self._replica.tables, repo, epoch, merged)
                    if opens
                    else BranchRoot()
                )
            last = (self._write(repo, epoch, Draft(body, merged), stored),)

    def _open_closed(self, repo: Repo, stored: IngestResult) -> None:
        """Open earlier epochs that the current one does not open."""
        with self._replica.membership_lock:
            membership, epoch = self._replica.membership(repo.repo_id), self._replica.writing_epoch(repo)
            heads = membership.now().heads
            if membership.epochs.find(epoch.epoch_id) is None or self._replica.repos[repo.num].is_behind:
                return  # a newcomer, or who was left behind: what it writes names less
            if len(heads) > ACK_COUNT_MAX:
                return
            body = make_open(membership, self._replica.tables, repo, epoch, heads)
        if isinstance(body, EpochOpen):
            self._write(repo, epoch, Draft(body, heads), stored)
