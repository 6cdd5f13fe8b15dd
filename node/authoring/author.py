"""`Author`: everything that one user writes and signs."""

import secrets
from collections.abc import Callable, Iterable, Sequence

from node.authoring.drafting import AuthorKeys, Draft, WrittenCommit
from node.authoring.feed_writer import FeedWriter
from node.authoring.founding import Founding
from node.authoring.preparing import Preparation
from node.authoring.write_queue import (
    AfterWrite,
    Plan,
    WriteQueue,
    WriteRequest,
    as_draft,
    nothing_more,
)
from node.ingest.ingest_result import IngestResult
from node.ingest.replica import Replica
from protocol.crypto import sealed_keys, signing
from protocol.crypto.epoch_boxes import BoxOpener, own_secret
from protocol.crypto.keys import AgreementSecret, EpochKey, UserSeed
from protocol.formats.body import Body, Permission
from protocol.ids import Digest, Mark, RepoId, Signature, UserId
from storage.engine.database import Database
from storage.repos.repos import Branch, Repo


class Author:
    """Author of one user's commits: `founding` makes repos and branches, `queue` groups writes, `preparation` epochs due.

    All methods run in worker threads (`node.authoring.writing` is for async callers).
    """

    def __init__(self, replica: Replica, user_seed: UserSeed, clock_ms: Callable[[], int]) -> None:
        self._replica = replica
        self._keys = AuthorKeys(*signing.key_pair(user_seed))
        replica.set_own_user(self._keys.user)
        self.writer = FeedWriter(replica, self._keys, clock_ms)
        self.preparation = Preparation(self.writer)
        self.queue = WriteQueue(self.writer, self.preparation)
        self.founding = Founding(self.writer, self.preparation)
        self.lock = self.writer.lock
        """Held by a caller whose several commits rest on what it has read: nobody else writes as this user meanwhile."""

    @property
    def user(self) -> UserId:
        """The user's key."""
        return self._keys.user

    @property
    def database(self) -> Database:
        """The store."""
        return self._replica.database

    def write(
        self, branch: Branch, draft: Draft | Body, *, after: AfterWrite = nothing_more
    ) -> tuple[WrittenCommit, IngestResult]:
        """Write one commit on the branch's current topic; a body alone goes on its heads. `after` runs in its transaction.

        Raises ServiceError where the rules refuse it, or the secrets to write with are not here; StorageError.
        """
        written, ingested = self.write_many(branch, [as_draft(draft)], after)
        return written[0], ingested

    def write_many(
        self,
        branch: Branch,
        drafts: Sequence[Draft] | Plan,
        after: AfterWrite = nothing_more,
        *,
        stored: IngestResult | None = None,
    ) -> tuple[list[WrittenCommit], IngestResult]:
        """Write several commits, all or none. Gives also what was stored, an epoch that was due included.

        `stored` gets that even if the write is refused then. Raises as `write`, and what a plan raises.
        """
        stored = IngestResult() if stored is None else stored
        [outcome], ingested = self.queue.write_group([WriteRequest(branch, drafts, after)])
        stored.add(ingested)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome, stored

    def start_epoch(self, repo: Repo, stored: IngestResult | None = None) -> IngestResult:
        """Start an epoch after everything that this node knows of. Gives what was stored, as `write_many` does.

        Raises ServiceError where the rules refuse it; StorageError.
        """
        stored = IngestResult() if stored is None else stored
        self.preparation.start(repo, stored)
        return stored

    def may_write(self, branch: Branch) -> bool:
        """Return True if the user may write in a branch now, as far as is known here."""
        repo = self._replica.repos[branch.repo_num]
        return (
            branch.facts.has_members and (self._replica.permission(repo, self.user) or 0) >= Permission.WRITE
        )

    def seal_key(self, repo_id: RepoId, user: UserId, key: EpochKey) -> bytes:
        """Seal the key of an epoch of a repo for another user."""
        nonce = secrets.token_bytes(sealed_keys.NONCE_SIZE)
        return sealed_keys.seal_key(self._keys.secret, user, repo_id, key, nonce)

    def open_key(self, repo_id: RepoId, author: UserId, sealed: bytes) -> EpochKey:
        """Open a key that another user sealed for this one. Raises NotForUs."""
        return sealed_keys.open_key(self._keys.secret, author, repo_id, sealed)

    def open_boxes(self, mark: Mark, prekeys: Iterable[AgreementSecret] = ()) -> list[BoxOpener]:
        """Return the readers of this user's boxes of a mark: one for each prekey, and one for the user's own key."""
        secrets_held = [*prekeys, own_secret(self._keys.secret)]
        return [BoxOpener(self._keys.user, secret, mark) for secret in secrets_held]

    def sign(self, digest: Digest) -> Signature:
        """Sign a digest that `protocol.formats.proofs` makes of a statement outside commits."""
        return signing.sign(self._keys.secret, digest)
