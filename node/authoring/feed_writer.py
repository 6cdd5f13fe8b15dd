"""`FeedWriter`: encodes commits of a user and stores them in one transaction, as all that a user writes is stored."""

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

from sqlalchemy import Connection

from node.authoring.choosing_heads import choose_followed
from node.authoring.drafting import AuthorKeys, Draft, WrittenCommit, aim
from node.authoring.feed_encoder import FeedEncoder
from node.authoring.opening import OwnOpener
from node.authoring.refusals import refuse
from node.ingest.acceptance import InTransaction, accept_own
from node.ingest.acceptance_transaction import OwnCommitRejected
from node.ingest.ingest_result import IngestResult
from node.ingest.publication_parsing import OpenedBatch
from node.ingest.replica import Replica
from node.runtime.errors import ServiceError
from protocol.formats.links import decode_kept_link, find_kept_ask
from protocol.ids import CommitId, TopicKey
from storage.repos.epochs import Epoch, Topic
from storage.repos.repos import Branch, Repo


class FeedWriter:
    """Writer of one user's feeds."""

    def __init__(self, replica: Replica, keys: AuthorKeys, clock_ms: Callable[[], int]) -> None:
        self.replica = replica
        self.keys = keys
        self.clock_ms = clock_ms
        self.opener = OwnOpener()
        self.lock = threading.RLock()
        """Held from reading the heads to the end of the transaction: else two threads would both use one place of a feed."""

    def write_in(
        self,
        branch: Branch,
        epoch: Epoch,
        draft: Draft,
        *,
        before: Callable[[Connection, WrittenCommit], None] | None = None,
        followups: Sequence[tuple[TopicKey, bytes]] = (),
    ) -> tuple[WrittenCommit, IngestResult]:
        """Write one commit in the given epoch. `before` runs in its transaction, ahead of it. `followups`: see `store`.

        Raises ServiceError, StorageError.
        """
        with self.lock:
            # Closed before the transaction: a snapshot older than one keeps SQLite from using its log anew.
            with self.replica.database.read() as connection:
                encoder = self.make_encoder(connection, branch, epoch, chooses=draft.acks is None)
                [written] = encoder.encode([draft], lambda: connection)
            topic = self.replica.by_topic[encoder.target.topic]
            batch = self.opener.open(topic, [written])
            ingested = self.store(
                lambda _: [(topic, batch)],
                before=None if before is None else lambda connection: before(connection, written),
                followups=followups,
            )
        return written, ingested

    def write_chain(self, branch: Branch, chain: Sequence[tuple[Epoch, Draft]]) -> IngestResult:
        """Write commits in one transaction, each in its epoch and acking the one before; the first draft has its own acks.

        Raises ServiceError, StorageError, and then nothing is written.
        """

        def make_batches(connection: Connection) -> Iterator[tuple[Topic, OpenedBatch]]:
            acks = chain[0][1].acks
            for epoch, draft in chain:
                encoder = self.make_encoder(connection, branch, epoch, chooses=False)
                [written] = encoder.encode([replace(draft, acks=acks)], lambda: connection)
                acks = (written.commit_id,)
                topic = self.replica.by_topic[encoder.target.topic]
                yield topic, self.opener.open(topic, [written])

        with self.lock:
            return self.store(make_batches)

    def choose_epoch(self, branch: Branch) -> Epoch:
        """Return the epoch to write in. Raises ServiceError `incomplete` while its key is not here."""
        repo = self.replica.repos[branch.repo_num]
        if (
            repo.is_behind
            and not branch.facts.is_root_branch
            and self.replica.permission(repo, self.keys.user) is not None
        ):
            raise ServiceError(
                "incomplete",
                "the repo has new secrets since an exclusion, and this node lacks them",
                "it gets them when it meets the node of a member who may write",
            )
        return self.replica.writing_epoch(repo)

    def make_encoder(
        self, connection: Connection, branch: Branch, epoch: Epoch, *, chooses: bool = True
    ) -> FeedEncoder:
        """Make the encoder of the user's next commits in a branch; it `chooses` root branch heads for them to ack.

        Raises ServiceError `feed_uncertain`, `incomplete`.
        """
        replica = self.replica
        replica.own_feeds.check(branch.facts.repo_id)
        repo = replica.repos[branch.repo_num]
        is_root = branch.facts.is_root_branch
        root_num = None if is_root else replica.root_branch(repo).num
        target = aim(branch.facts, branch.num, epoch)
        encoder = FeedEncoder(connection, self.keys, self.clock_ms, target, root_num)
        if is_root and chooses:
            with replica.membership_lock:
                membership = replica.membership(branch.facts.repo_id)
                if heads := membership.now().heads:
                    named = _find_invitation(
                        repo
                    )  # a reader, who may not open epochs, follows what this one opens
                    followed = choose_followed(membership, self.keys.user, epoch.epoch_id, heads, named)
                    encoder.follow(followed, lambda: connection)
        if not encoder.has_begun:
            raise ServiceError(
                "incomplete",
                "the branch's first commit has not come here yet, and what is written must follow it",
                "wait until a peer has sent it: `ravel status` shows how far each is",
            )
        return encoder

    def store(
        self,
        make_batches: Callable[[Connection], Iterable[tuple[Topic, OpenedBatch]]],
        *,
        before: InTransaction | None = None,
        after: InTransaction | None = None,
        followups: Sequence[tuple[TopicKey, bytes]] = (),
    ) -> IngestResult:
        """Judge and store encoded commits in one transaction (`accept_own`). Raises ServiceError, StorageError."""
        self.replica.own_feeds.check_user()
        try:
            return accept_own(
                self.replica,
                make_batches,
                self.clock_ms(),
                before=before,
                after=after,
                followups=followups,
            )
        except OwnCommitRejected as error:
            raise refuse(self.replica.people, error.repo_id, self.keys.user, error.verdict) from None


def _find_invitation(repo: Repo) -> CommitId | None:
    """Return the invitation that the user is about to join by."""
    if repo.invitation is None or find_kept_ask(repo.invitation) is not None:
        return None
    return decode_kept_link(repo.invitation)[0].invitation
