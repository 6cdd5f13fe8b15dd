"""Epoch secrets of followed repos: adopts received ones, and gives them to members who lack them.

Secrets come in boxes that members seal for this user (in an epoch's init or added to it later), and for earlier epochs
in what the author of an epoch says of its history. Both can stand in commits that wait for causes which only these
secrets open, so what waits is read too. A box is checked against the mark that is stated beside it.

Everything here runs in worker threads, and again after each change, until there is nothing left to do.
"""

from collections import OrderedDict
from collections.abc import Iterable, Iterator

import structlog

from node.authoring.author import Author
from node.authoring.epoch_setup import open_earlier, topic_in
from node.ingest.ingest_result import IngestResult
from node.ingest.publication_parsing import read_pending
from node.ingest.replica import Replica
from node.ingest.tables import choose_epoch
from node.runtime.errors import ServiceError
from protocol.body import Body, Grant, Permission, UnknownBody
from protocol.commit import Commit
from protocol.epochs import BranchTopic, EpochAdd, EpochBox, EpochHistory, EpochInit
from protocol.hashing import epoch_read_secret
from protocol.ids import BranchId, CommitId, EpochId, RepoId, TopicKey, UserId
from protocol.keys import EpochSecret, ReadSecret, WriteSecret
from protocol.limits.formats import EPOCH_BOX_COUNT_MAX, EPOCH_TOPIC_COUNT_MAX
from protocol.limits.peers import (
    EPOCH_SECRETS_SAID_MAX,
    EPOCHS_UNKNOWN_MAX,
    EPOCHS_VOID_MAX,
    PENDING_COUNT_MAX,
)
from protocol.sealing import NotForUs
from protocol.text import id_text
from storage.commits.pending import load_pending
from storage.engine.id_keys import chunks
from storage.repos.repo_changes import set_writing_epoch
from storage.repos.repos import Branch, Epoch, Repo, add_epoch, follow_topic
from verifier.ended_links import is_renewal_due
from verifier.epochs import find_opened, find_readers, find_topics, lacks_writing, may_write_at
from verifier.membership import Membership, mark_of
from verifier.operations import Operation

log = structlog.get_logger()


class EpochKeeper:
    """Keeps the epochs of one user complete. Not for two threads at a time."""

    def __init__(self, replica: Replica, author: Author) -> None:
        self._replica = replica
        self._author = author
        self._looked_at: set[CommitId] = set()  # commits whose offers were taken up, or are of no use
        # Commits that wait, and whose offers count once their author is trusted: author and number of the epoch.
        self._put_off: OrderedDict[CommitId, tuple[UserId, int]] = OrderedDict()
        # By repo: root branch heads at which nobody lacked anything.
        self._complete: dict[RepoId, tuple[CommitId, ...]] = {}

    # --- taking ---

    def store_offered_secrets(self, repo: Repo) -> bool:
        """Store all secrets that are offered; whether any was new. Raises StorageError."""
        looked_at: set[CommitId] = set()
        with self._replica.membership_lock:
            membership = self._replica.membership(repo.repo_id)
            here = self._replica.tables.epochs_of(self._replica.repos[repo.num], membership)
            offered = [*self._in_operations(repo, membership, here, looked_at)]
            offered += self._in_pending(repo, membership, looked_at)
        new = [epoch for epoch in offered if self._is_new(epoch)]
        fresh = self._within_bounds(repo, membership, new)
        is_new = bool(fresh) and self.keep(repo, fresh)
        self._looked_at |= looked_at if fresh == new else set()
        return is_new

    def _in_operations(
        self, repo: Repo, membership: Membership, here: dict[EpochId, Epoch], looked_at: set[CommitId]
    ) -> Iterator[Epoch]:
        """What accepted commits offer."""
        operations = membership.operations
        grants, passed_over = operations.grants_of(self._author.user), _surplus_voids(membership)
        for one in [*operations.epochs, *operations.epoch_adds, *operations.histories, *grants]:
            if one.commit_id in self._looked_at or one.commit_id in passed_over:
                continue
            body, known = one.body, here.get(one.epoch)
            if isinstance(body, EpochInit):
                yield from self._open_boxes(repo, one.author, body, (one.started_epoch, one.author))
            elif isinstance(body, EpochAdd):
                yield from self._open_boxes(repo, one.author, body, (body.epoch, body.author))
            elif isinstance(body, EpochHistory):
                for item in body.earlier:
                    yield Epoch(0, repo.num, item.epoch, item.author, item.read_secret, None)
            elif isinstance(body, Grant) and body.write_secret is not None:
                if known is None:
                    continue  # it may be looked at again when that epoch's secrets are here
                opened = self._open(repo, one.author, body.write_secret)
                secret = None if opened is None else WriteSecret(opened)
                # Else sealed by somebody who wished us to write where nobody reads.
                if secret is not None and epoch_read_secret(secret) == known.read_secret:
                    yield Epoch(0, repo.num, known.epoch_id, known.author, known.read_secret, secret)
            looked_at.add(one.commit_id)

    def _in_pending(self, repo: Repo, membership: Membership, looked_at: set[CommitId]) -> Iterator[Epoch]:
        """What commits offer that wait for causes: an epoch's author opens those before it, and admins hand over."""
        for branch, commit, body in self._read_pending(repo, membership, looked_at):
            author = commit.content.author
            is_admin = self._is_admin(membership, author)
            if isinstance(body, EpochHistory) and (
                is_admin or author == self._replica.tables.epochs[branch.epoch_num].author
            ):
                looked_at.add(commit.commit_id)
                for item in body.earlier:
                    yield Epoch(0, repo.num, item.epoch, item.author, item.read_secret, None)
            elif isinstance(body, EpochInit | EpochAdd) and is_admin:
                looked_at.add(commit.commit_id)
                started = (EpochId(commit.commit_id), author)
                if isinstance(body, EpochAdd):
                    started = (body.epoch, body.author)
                yield from self._open_boxes(repo, author, body, started)
            elif isinstance(body, EpochHistory | EpochInit | EpochAdd):
                # Opened at each change, some thousands of them would take a second each time.
                self._put_off[commit.commit_id] = author, branch.epoch_num
                if len(self._put_off) > PENDING_COUNT_MAX:
                    self._put_off.popitem(last=False)
            else:
                looked_at.add(commit.commit_id)

    def _is_admin(self, membership: Membership, user: UserId) -> bool:
        return (membership.now().permission(user) or 0) >= Permission.ADMIN

    def _still_put_off(self, membership: Membership) -> set[CommitId]:
        """What is not opened again: its author is neither an admin nor the one who started its epoch."""
        epochs = self._replica.tables.epochs
        admins = {author: self._is_admin(membership, author) for author, _ in self._put_off.values()}
        return {
            commit_id
            for commit_id, (author, num) in self._put_off.items()
            if not admins[author] and (num not in epochs or epochs[num].author != author)
        }

    def _read_pending(
        self, repo: Repo, membership: Membership, looked_at: set[CommitId]
    ) -> Iterator[tuple[Branch, Commit, Body | UnknownBody]]:
        replica = self._replica
        with replica.database.read() as connection:
            known = self._looked_at | self._still_put_off(membership)
            waiting = load_pending(connection, replica.root_branch(repo).num, known)
        for commit_id, topic_num, publication in waiting:
            branch = replica.on_topics.get(topic_num)
            found = None if branch is None else read_pending(branch, publication)
            if branch is None or found is None:
                looked_at.add(commit_id)
            else:
                yield branch, *found

    def _open_boxes(
        self, repo: Repo, author: UserId, body: EpochInit | EpochAdd, epoch: tuple[EpochId, UserId]
    ) -> Iterator[Epoch]:
        """The epoch (of this id and author) whose secret is in a box for this user."""
        for box in body.boxes:
            if box.user != self._author.user:
                continue
            secret = self._open(repo, author, box.sealed)
            pairs: list[tuple[ReadSecret, WriteSecret | None]] = []
            if secret is not None:
                as_write_secret = WriteSecret(secret)
                pairs = [(epoch_read_secret(as_write_secret), as_write_secret), (ReadSecret(secret), None)]
            for read_secret, write_secret in pairs:
                if mark_of(repo.repo_id, read_secret) == body.mark:
                    yield Epoch(0, repo.num, *epoch, read_secret, write_secret)
                    return
            log.warning("a box for this user does not open the epoch", repo=id_text(repo.repo_id))

    def _open(self, repo: Repo, author: UserId, sealed: bytes) -> EpochSecret | None:
        try:
            return self._author.open_secret(repo, author, sealed)
        except NotForUs:
            return None

    def keep(self, repo: Repo, fresh: list[Epoch]) -> bool:
        """Store epochs, follow their topics, and write in the right one; whether any was new."""
        replica = self._replica
        database = replica.database
        with replica.change() as change:
            connection = change.connection
            added = [add_epoch(database, connection, repo, epoch) for epoch in fresh]
            membership = replica.membership(repo.repo_id)
            tables = change.reload()
            here = tables.epochs_of(tables.repos[repo.num], membership)
            for epoch_id in {epoch.epoch_id for epoch in fresh} & here.keys():
                for branch_id, topic in self._topics_of(repo, membership, here[epoch_id]):
                    follow_topic(database, connection, repo.repo_id, here[epoch_id], branch_id, topic)
            number, is_behind = choose_epoch(membership, tables.repos[repo.num], here)
            set_writing_epoch(connection, repo.num, number, is_behind=is_behind)
        return any(num is not None for num in added)

    def _within_bounds(self, repo: Repo, membership: Membership, new: list[Epoch]) -> list[Epoch]:
        """As many as may be taken up: what is said of epochs whose inits are not here is believed in parts."""
        operations = membership.operations
        unknown = sum(one.epoch_id not in operations for one in self._replica.tables.epochs_in(repo.num))
        taken: list[Epoch] = []
        for epoch in new:
            unknown += epoch.epoch_id not in operations
            if epoch.epoch_id in operations or unknown <= EPOCHS_UNKNOWN_MAX:
                taken.append(epoch)
        return taken

    def _is_new(self, offered: Epoch) -> bool:
        """Whether nothing here says the same, or this may be written with."""
        known = [
            one
            for one in self._replica.tables.epochs_in(offered.repo_num)
            if one.epoch_id == offered.epoch_id
        ]
        same = [one for one in known if one.read_secret == offered.read_secret]
        if same:
            return same[0].write_secret is None and offered.write_secret is not None
        return len(known) < EPOCH_SECRETS_SAID_MAX

    def _topics_of(
        self, repo: Repo, membership: Membership, epoch: Epoch
    ) -> Iterable[tuple[BranchId, TopicKey]]:
        """A writer derives topics; a reader takes those that are stated."""
        operations = membership.operations
        if epoch.write_secret is not None:
            for branch in operations.branches():
                yield branch, topic_in(repo, epoch.read_secret, epoch.write_secret, branch)
        elif (started := operations.find(epoch.epoch_id)) is not None:
            yield from find_topics(operations, started)

    # --- handing over ---

    def hand_over(self, repo: Repo) -> IngestResult:
        """As an admin, give the epoch that is written in to members who lack it, and topics to branches that lack one.

        A member who was added while others started the epoch holds another one, and is told there. Raises ServiceError,
        StorageError.
        """
        if repo.repo_id in self._replica.own_feeds.uncertain:
            return IngestResult()  # later
        with self._author.alone():  # who starts an epoch meanwhile furnishes it
            self._hand_over(repo)
        return self._author.pop_begun()

    def _hand_over(self, repo: Repo) -> None:
        replica = self._replica
        epoch = replica.writing_epoch(repo)
        with replica.membership_lock:
            membership = replica.membership(repo.repo_id)
            now, operations = membership.now(), membership.operations
            started = operations.find(epoch.epoch_id)
            if self._complete.get(repo.repo_id) == now.heads or started is None:
                return
            bodies: list[tuple[Epoch, EpochAdd]] = []
            if (
                now.permission(self._author.user) or 0
            ) >= Permission.ADMIN and epoch.write_secret is not None:
                bodies = [*self._for_members(repo, epoch, started, membership)]
                bodies += self._for_branches(repo, epoch, started, membership)
            closed = self._closed(repo, epoch, membership) if isinstance(started.body, EpochInit) else []
            heads = now.heads
        if closed:
            open_earlier(replica, repo, epoch.epoch_id, closed, self._author.write_begun)
        for published_in, body in bodies:
            self._author.write_begun(replica.root_branch_in(published_in), body)
        # Only now: where a write failed, it is tried again.
        self._complete[repo.repo_id] = heads

    def renew_if_due(self, repo: Repo) -> IngestResult:
        """Start an epoch where a link of this user is over and its maker wanted new secrets then.

        Nobody else does: two who start epochs at once leave members with one of two. Raises ServiceError, StorageError.
        """
        replica = self._replica
        if replica.repos[repo.num].is_behind or repo.repo_id in replica.own_feeds.uncertain:
            return IngestResult()  # later
        with self._author.alone():
            with replica.membership_lock:
                membership = replica.membership(repo.repo_id)
                now, user = membership.now(), self._author.user
                is_due = is_renewal_due(membership.operations, now, user)
                if not is_due or (now.permission(user) or 0) < Permission.ADMIN:
                    return IngestResult()
            log.info("new secrets, since a link is over", repo=id_text(repo.repo_id))
            return self._author.start_epoch(repo)

    def hand_to(self, repo: Repo, user: UserId) -> IngestResult:
        """Seal the epoch that is written in for a member again, and say so in every other in which the user wrote.

        For who was given a box that does not open. Raises ServiceError, StorageError.
        """
        replica = self._replica
        epoch = replica.writing_epoch(repo)
        with replica.membership_lock:
            membership = replica.membership(repo.repo_id)
            here = replica.tables.epochs_of(replica.repos[repo.num], membership)
            held, operations = membership.now().permission(user), membership.operations
            started = operations.find(epoch.epoch_id)
            wrote_in = {one.epoch for one in operations.authored_by(user)} - {epoch.epoch_id}
        if held is None:
            raise ServiceError("bad_request", "that is no member", "`ravel member grant` makes one")
        if started is None or not isinstance(started.body, EpochInit) or epoch.write_secret is None:
            raise ServiceError("bad_request", "there are no newer secrets to hand over")
        body = _addition(started, (), [self._author.seal_epoch(repo, epoch, user, held)])
        for epoch_id in sorted(wrote_in & here.keys()):
            self._author.write_begun(replica.root_branch_in(here[epoch_id]), body)
        return self._author.pop_begun()

    def _for_members(
        self, repo: Repo, epoch: Epoch, started: Operation, membership: Membership
    ) -> Iterator[tuple[Epoch, EpochAdd]]:
        """What to publish in which epoch: the latest that a member surely holds, else the latest that it may."""
        if not isinstance(started.body, EpochInit):
            return  # of the first epoch nobody who can be reached lacks anything
        now, operations = membership.now(), membership.operations
        members = now.members()
        here = self._replica.tables.epochs_of(self._replica.repos[repo.num], membership)
        known = find_readers(operations)
        lacking = members.keys() - known[started.started_epoch]
        lacking |= {
            user
            for user, held in members.items()
            if held >= Permission.WRITE
            and user not in lacking
            and lacks_writing(operations, now, started, user)
        }
        if not lacking:
            return
        told = {
            (one.epoch, box.user)
            for one in operations.epoch_adds
            if isinstance(one.body, EpochAdd) and one.body.epoch == started.commit_id
            for box in one.body.boxes
            if members.get(box.user, 0) < Permission.WRITE or may_write_at(now, one, box.user)
        }
        for readers in (known, find_readers(operations, is_sure=False)):
            for other in reversed(operations.epochs):
                if other.commit_id == started.commit_id or other.started_epoch not in here:
                    continue
                reached = lacking & readers[other.started_epoch]
                lacking -= reached
                users = sorted(user for user in reached if (other.commit_id, user) not in told)
                for part in chunks(users, EPOCH_BOX_COUNT_MAX):
                    boxes = tuple(self._author.seal_epoch(repo, epoch, user, members[user]) for user in part)
                    yield here[other.started_epoch], _addition(started, (), boxes)

    def _for_branches(
        self, repo: Repo, epoch: Epoch, started: Operation, membership: Membership
    ) -> Iterator[tuple[Epoch, EpochAdd]]:
        if not isinstance(started.body, EpochInit) or epoch.write_secret is None:
            return
        admins = [user for user, held in membership.now().members().items() if held >= Permission.ADMIN]
        if self._author.user not in (started.author, min(admins)):
            return  # one statement is enough
        stated = {branch for branch, _ in find_topics(membership.operations, started)}
        lacking = sorted(set(membership.operations.branches()) - stated)
        for part in chunks(lacking, EPOCH_TOPIC_COUNT_MAX):
            topics = tuple(
                BranchTopic(branch, topic_in(repo, epoch.read_secret, epoch.write_secret, branch))
                for branch in part
            )
            yield epoch, _addition(started, topics, ())

    def _closed(self, repo: Repo, epoch: Epoch, membership: Membership) -> list[EpochId]:
        """Epochs that are open here, and that readers of this one could not open, where it is on this user to say how.

        So are epochs that others started meanwhile, and what was written in one that turned out not to count. It is on
        who started this one, and on the first of the admins who hold the other (where none does, of the writers).
        """
        now, operations = membership.now(), membership.operations
        held = now.permission(self._author.user) or 0
        if held < Permission.WRITE:
            return []
        opened = find_opened(operations, epoch.epoch_id) | {epoch.epoch_id}
        here = self._replica.tables.epochs_of(self._replica.repos[repo.num], membership)
        started = operations[epoch.epoch_id]
        # Who was excluded before such an epoch may still read this one: the next, which has that in its past, opens it.
        cuts = [
            one
            for one in operations.removals
            if one.commit_id in now.counting and not operations.precedes(one, started)
        ]
        closed = [
            one.started_epoch
            for one in operations.epochs
            if one.started_epoch in here.keys() - opened
            and not any(operations.precedes(cut, one) for cut in cuts)
        ]
        if not closed or epoch.author == self._author.user:
            return closed
        readers, members = find_readers(operations), now.members()

        def is_on_duty(raw: EpochId) -> bool:
            is_admin = members.get(epoch.author, 0) >= Permission.ADMIN
            if is_admin and epoch.author in readers[raw] and operations.precedes(operations[raw], started):
                return False  # its author opens it, or has, and that is on its way
            holders = [user for user in readers[raw] if members.get(user, 0) >= Permission.WRITE]
            admins = [user for user in holders if members[user] >= Permission.ADMIN]
            return self._author.user == min(admins or holders, default=b"")

        return [raw for raw in closed if is_on_duty(raw)]


def _surplus_voids(membership: Membership) -> set[CommitId]:
    """Inits that do not count, beyond those of each author that are read all the same."""
    now, counts = membership.now(), dict[bytes, int]()
    surplus: set[CommitId] = set()
    for one in membership.operations.epochs:
        if not now.counts(one):
            counts[one.author] = counts.get(one.author, 0) + 1
            if counts[one.author] > EPOCHS_VOID_MAX:
                surplus.add(one.commit_id)
    return surplus


def _addition(started: Operation, topics: tuple[BranchTopic, ...], boxes: Iterable[EpochBox]) -> EpochAdd:
    assert isinstance(started.body, EpochInit), "the first epoch is added to by what it publishes"
    return EpochAdd(started.started_epoch, started.author, started.body.mark, topics, tuple(boxes))
