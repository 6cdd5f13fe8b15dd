"""Prekeys of this user in each repo (M16): states fresh ones, and forgets the private halves that no box needs any more.

The private half is stored in the transaction that stores the statement: there is no box without a key for it.
"""

import secrets
from collections.abc import Sequence
from typing import Final

from sqlalchemy import Connection

from node.authoring.author import Author
from node.authoring.drafting import Draft, WrittenCommit
from node.ingest.ingest_result import IngestResult
from node.ingest.replica import Replica
from protocol.crypto.epoch_boxes import prekey_of
from protocol.crypto.keys import AgreementSecret
from protocol.formats.epochs import Prekey
from protocol.ids import AgreementKey, CommitId, UserId
from protocol.limits.formats import PREKEYS_UNUSED_MAX
from storage.repos.prekeys import add_prekey, forget_prekeys, load_prekeys
from storage.repos.repos import Repo
from verifier.membership import Membership
from verifier.operations import Operation

_DAY_MS: Final = 24 * 60 * 60 * 1000
_SMALL_COUNT: Final = 100
"""Members of a repo in which all may state a prekey a week: 63 KB. Of 1,000 it is 630 KB, and an epoch has 64 KB."""


def renewal_ms(member_count: int) -> int:
    """Return after how many milliseconds a prekey that was used is replaced, and an epoch that knows older ones."""
    return (7 if member_count <= _SMALL_COUNT else 30) * _DAY_MS


class PrekeyKeeper:
    """Keeps the prekeys of one user. Blocking."""

    def __init__(self, replica: Replica, author: Author) -> None:
        self._replica = replica
        self._author = author

    def state(self, repo: Repo, stored: IngestResult) -> CommitId:
        """State a fresh prekey in a repo; return the commit. Raises ServiceError where the rules refuse it; StorageError."""
        secret = AgreementSecret(secrets.token_bytes(32))

        def keep(connection: Connection, _written: Sequence[WrittenCommit]) -> None:
            add_prekey(self._replica.database, connection, repo.num, secret)

        root = self._replica.root_branch(repo)
        [written], _ = self._author.write_many(root, [Draft(Prekey(prekey_of(secret)))], keep, stored=stored)
        return written.commit_id

    def keep_up(self, repo: Repo, stored: IngestResult) -> None:
        """Forget what the epoch in use makes needless, and state a fresh prekey where the last is used up or lost.

        Only who has stated one goes on. Costs O(prekeys of this user). Raises as `state`.
        """
        replica, user = self._replica, self._author.user
        repo = replica.repos[repo.num]
        if repo.is_behind or repo.repo_id in replica.own_feeds.uncertain:
            return
        with replica.membership_lock:
            membership = replica.membership(repo.repo_id)
            now, epoch = membership.now(), membership.epochs.find(replica.writing_epoch(repo).epoch_id)
            stated = now.prekeys_of(user)
            if epoch is None or not stated or now.permission(user) is None:
                return
            needless = _find_needless(membership, epoch, user)
            unused = [one for one in stated if not membership.operations.precedes(one, epoch)]
            is_old = stated[-1].timestamp + renewal_ms(len(now.members())) <= self._author.writer.clock_ms()
            prekey = now.prekey_of(user)
        with replica.database.read() as connection:
            kept = load_prekeys(connection, repo.num).keys()
        if gone := sorted(kept & needless):
            with replica.change() as change:
                forget_prekeys(change.connection, repo.num, gone)
        # Lost: this node was restored, so the next epoch would leave it behind.
        if len(unused) < PREKEYS_UNUSED_MAX and (prekey not in kept or (not unused and is_old)):
            self.state(repo, stored)


def _find_needless(membership: Membership, epoch: Operation, user: UserId) -> set[AgreementKey]:
    """Return the user's prekeys that an epoch's init knows and did not seal to.

    Inits that still seal to one of them are not written in (E8), and what is written in is opened there (E11).
    """
    before = membership.at(membership.operations.acks_of(epoch))
    used = before.prekey_of(user)
    known = {one.body.key for one in before.prekeys_of(user) if isinstance(one.body, Prekey)}
    return known - {used} if used is not None else set()
