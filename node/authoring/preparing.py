"""`Preparation`: does what is due before a user writes in a repo: merges of root branch heads, epochs, openings."""

from collections.abc import Callable

from node.authoring.choosing_heads import choose_closed, choose_for_init, choose_merged
from node.authoring.drafting import Draft
from node.authoring.epoch_starts import make_open
from node.ingest.replica import Replica
from protocol.body import BranchRoot, Permission
from protocol.epochs import EpochOpen
from protocol.ids import CommitId, RepoId, UserId
from protocol.limits.formats import ACK_COUNT_MAX
from storage.repos.epochs import Epoch
from storage.repos.repos import Branch, Repo

Write = Callable[[Branch, Epoch, Draft], None]
"""Writes a commit in an epoch."""
Start = Callable[[Repo, Epoch, tuple[CommitId, ...]], None]
"""Starts an epoch after some root branch heads, published in another."""


class Preparation:
    """What is due before one user writes. Its caller lets nobody else write as the user meanwhile."""

    def __init__(self, replica: Replica, user: UserId, write: Write, start: Start) -> None:
        self._replica = replica
        self._user = user
        self._write, self._start = write, start
        # By repo: root branch heads with which no epoch is due, and none is closed to the one that is written in.
        self._ready: dict[RepoId, tuple[CommitId, ...]] = {}

    def begin(self, repo: Repo) -> None:
        """Start an epoch that is due (E9), and merge heads and open epochs in the one that is written in (E11).

        Raises ServiceError, StorageError.
        """
        with self._replica.membership_lock:
            now = self._replica.membership(repo.repo_id).now()
            if self._ready.get(repo.repo_id) == now.heads:
                return
            may_write = (now.permission(self._user) or 0) >= Permission.WRITE
        if may_write:
            if self._is_due(repo):
                self.start_due(repo)
            self._merge(repo)
            self._open_closed(repo)
        self._ready[repo.repo_id] = self._heads(repo)

    def start(self, repo: Repo) -> None:
        """Start an epoch after everything that this node knows of. Raises ServiceError where the rules refuse it."""
        if self._is_due(repo):
            self.start_due(repo)
            return
        self._merge(repo)
        self._start(repo, self._replica.writing_epoch(repo), self._heads(repo)[:ACK_COUNT_MAX])

    def start_due(self, repo: Repo) -> None:
        """Start an epoch while one is due, after merges that open nothing: no tip is clean, so what is opened leaks.

        Where heads are left that an init cannot name, another one follows it.
        """
        self._merge_closed(repo)
        is_whole = False
        while not is_whole and self._is_due(repo):
            before = self._heads(repo)
            is_whole = len(before) <= ACK_COUNT_MAX
            epoch, acks = self._replica.writing_epoch(repo), before
            with self._replica.membership_lock:
                membership = self._replica.membership(repo.repo_id)
                if not is_whole:
                    acks = choose_for_init(membership, self._user, before) or before[:ACK_COUNT_MAX]
                if not membership.epochs.is_within(epoch.epoch_id, acks):
                    held = self._replica.tables.held_epochs(repo.num)
                    started = membership.operations.in_order(
                        one for one in membership.epochs.started_within(membership.at(acks))
                    )
                    epoch = [held[one.started_epoch] for one in started if one.started_epoch in held][-1]
            self._start(repo, epoch, acks)
            if len(self._heads(repo)) >= len(before):
                return

    def _is_due(self, repo: Repo) -> bool:
        with self._replica.membership_lock:
            membership = self._replica.membership(repo.repo_id)
            return membership.epochs.is_due(membership.now())

    def _heads(self, repo: Repo) -> tuple[CommitId, ...]:
        with self._replica.membership_lock:
            return self._replica.membership(repo.repo_id).now().heads

    def _merge(self, repo: Repo) -> None:
        """Merge root branch heads, of which there are more than a commit can name, in the epoch that is written in.

        What takes away what the user needs is left for who can name it.
        """
        while len(heads := self._heads(repo)) > ACK_COUNT_MAX and not self._is_due(repo):
            epoch = self._replica.writing_epoch(repo)
            with self._replica.membership_lock:
                membership = self._replica.membership(repo.repo_id)
                acks = choose_merged(membership, self._user, epoch.epoch_id, heads)
                if len(acks) < 2:
                    return
                body = make_open(membership, self._replica.tables, repo, epoch, acks)
            self._write(self._replica.root_branch(repo), epoch, Draft(body, acks))

    def _merge_closed(self, repo: Repo) -> None:
        """Merge heads that one epoch opens already, in that epoch."""
        while len(heads := self._heads(repo)) > ACK_COUNT_MAX:
            held = self._replica.tables.held_epochs(repo.num)
            with self._replica.membership_lock:
                membership = self._replica.membership(repo.repo_id)
                merge = choose_closed(membership, self._user, heads, held)
            if merge is None:
                return
            self._write(self._replica.root_branch(repo), held[merge[0]], Draft(BranchRoot(), merge[1]))

    def _open_closed(self, repo: Repo) -> None:
        """Open what the epoch that is written in does not open."""
        with self._replica.membership_lock:
            membership, epoch = self._replica.membership(repo.repo_id), self._replica.writing_epoch(repo)
            heads = membership.now().heads
            if membership.epochs.find(epoch.epoch_id) is None or self._replica.repos[repo.num].is_behind:
                return  # a newcomer, or who was left behind: what it writes names less
            if len(heads) > ACK_COUNT_MAX:
                return
            body = make_open(membership, self._replica.tables, repo, epoch, heads)
        if isinstance(body, EpochOpen):
            self._write(self._replica.root_branch(repo), epoch, Draft(body, heads))
