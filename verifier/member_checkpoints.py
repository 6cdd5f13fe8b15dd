"""Membership checkpoints: the statement of a set of root branch commits, whose digest an admin signs.

docs/specification/profiles/members-checkpoint.md has the definitions. A checkpoint is true or false by its own past alone,
so what was found once holds for good. No rule looks at checkpoints.
"""

from collections.abc import Iterable
from typing import Any, Final

from protocol.codec import encode
from protocol.crypto.hashing import members_digest
from protocol.formats.body import (
    BranchAdd,
    Invite,
    MembersCheckpoint,
    Move,
    Permission,
    Quorum,
    Remove,
    RepoInit,
)
from protocol.formats.epochs import EpochInit
from protocol.ids import CommitId, Digest, RepoId, UserId
from verifier.epochs import Epochs
from verifier.operations import Operation, Operations
from verifier.quorums import find_in_force
from verifier.resolution import Resolution

CONSIDERED_MAX: Final = 8
"""Checkpoints of one author that are considered, the last in canonical order: any admin may write any number."""
PAIRS_MAX: Final = 2**20
"""Pairs in one statement, of links and removals, of admins' credentials and of epochs: a second, and 36 MB to encode."""


class StatementTooLarge(Exception):
    """Error of a statement of more than PAIRS_MAX pairs: nobody computes it."""


class CheckpointStatements:
    """Membership checkpoints of one repo by those who were admins in their own past."""

    def __init__(self) -> None:
        self._by_author: dict[UserId, list[Operation]] = {}
        self._found: dict[CommitId, bool | None] = {}

    def add(self, operation: Operation, operations: Operations) -> None:
        """Consider an operation that was added to `operations`, and the last CONSIDERED_MAX of its author. Costs O(1)."""
        considered = operations.in_order((*self._by_author.get(operation.author, ()), operation))
        for one in considered[:-CONSIDERED_MAX]:
            self._found.pop(one.commit_id, None)
        self._by_author[operation.author] = considered[-CONSIDERED_MAX:]

    def considered(self, operations: Operations) -> list[Operation]:
        """Return the checkpoints that are considered, the last in canonical order first."""
        every = (one for of_author in self._by_author.values() for one in of_author)
        return operations.in_order(every)[::-1]

    def is_known(self, commit_id: CommitId) -> bool:
        """Return True if somebody has looked whether a checkpoint is true."""
        return commit_id in self._found

    def find(self, commit_id: CommitId) -> bool | None:
        """Return True if a checkpoint is true, False if it is false, None if nobody can tell or has looked yet."""
        return self._found.get(commit_id)

    def compare(self, checkpoint: Operation, digest: Digest | None) -> bool | None:
        """Return True if a checkpoint is true, by the digest of the statement of its past, and remember that.

        None where there is no digest: the statement is too large.
        """
        body = checkpoint.body
        assert isinstance(body, MembersCheckpoint), "as it was added"
        is_true = None if digest is None else body.digest == digest
        self._found[checkpoint.commit_id] = is_true
        return is_true


def digest_members(repo_id: RepoId, operations: Operations, epochs: Epochs, before: Resolution) -> Digest:
    """Compute what a checkpoint after a set of operations signs.

    Costs O(users and their credentials, pairs), whatever was computed before: some 50 ms at 1,000 members. Nothing of it is
    kept. Raises StatementTooLarge.
    """
    gone = [
        one for one in operations.removals if isinstance(one.body, Remove | Move) and before.has_effect(one)
    ]
    rights = _list_rights(operations, before)
    high = Permission.ADMIN - 1  # the lowest bit of those that order credentials
    admins = sorted({raw for _, raw, bits in rights if bits >> high})
    invitations = _find_open(operations, before)
    if len(invitations) * len(gone) + len(admins) ** 2 + len(epochs.started_within(before)) ** 2 > PAIRS_MAX:
        raise StatementTooLarge(f"a statement of more than {PAIRS_MAX} pairs")
    statement = (
        rights,
        _list_order(operations, admins),
        sorted(_list_removals(gone)),
        sorted(_list_invitations(operations, before, invitations, gone)),
        sorted(
            (one.commit_id, one.body.signers, one.body.threshold, one.body.removals)
            for one in find_in_force(operations, before)
            if isinstance(one.body, Quorum)
        ),
        sorted(_list_epochs(epochs, before)),
        sorted(_list_branches(operations, before)),
    )
    return members_digest(repo_id, encode(statement))


def _list_rights(operations: Operations, before: Resolution) -> list[tuple[UserId, CommitId, int]]:
    found: list[tuple[UserId, CommitId, int]] = []
    for user in operations.users():
        bits: dict[CommitId, int] = {}
        for right in before.rights_held(user):
            bits[right.credential] = bits.get(right.credential, 0) | 1 << (right.permission - 1)
        found += [(user, credential, bits[credential]) for credential in sorted(bits)]
    return found


def _list_order(operations: Operations, credentials: list[CommitId]) -> list[tuple[CommitId, list[CommitId]]]:
    found: list[tuple[CommitId, list[CommitId]]] = []
    for one in credentials:
        later = operations[one]
        earlier = [other for other in credentials if operations.precedes(operations[other], later)]
        if earlier:
            found.append((one, earlier))
    return found


def _list_removals(gone: Iterable[Operation]) -> Iterable[tuple[Any, ...]]:
    for one in gone:
        if isinstance(one.body, Remove) and not one.is_leave:
            yield one.commit_id, one.body.user, one.body.keeps, one.body.feeds


def _find_open(operations: Operations, before: Resolution) -> list[tuple[Operation, Invite]]:
    return [
        (one, one.body)
        for one in operations.invitations
        if isinstance(one.body, Invite)
        and before.is_within(one)
        and before.counts(one)
        and not any(before.has_effect(revocation) for revocation in operations.revocations_of(one.commit_id))
    ]


def _list_invitations(
    operations: Operations,
    before: Resolution,
    invitations: Iterable[tuple[Operation, Invite]],
    gone: Iterable[Operation],
) -> Iterable[tuple[Any, ...]]:
    removed = [(one, one.body.user if isinstance(one.body, Remove) else one.author) for one in gone]
    for one, body in invitations:
        joins = [join for join in operations.joins_by(one.commit_id) if before.is_within(join)]
        yield (
            one.commit_id,
            body.invitation_key,
            body.permission,
            body.uses,
            body.expires_at,
            sorted({join.author for join in joins if before.counts(join)}),
            sorted({user for removal, user in removed if not operations.precedes(removal, one)}),
        )


def _list_epochs(epochs: Epochs, before: Resolution) -> Iterable[tuple[Any, ...]]:
    for one, opened in epochs.opened_within(before):
        assert isinstance(one.body, RepoInit | EpochInit), "these start epochs"
        yield one.commit_id, one.body.states.mark, one.body.states.writers_mark, opened


def _list_branches(operations: Operations, before: Resolution) -> Iterable[tuple[Any, ...]]:
    for branch in operations.branches():
        for one in operations.branch_adds(branch):
            if before.is_within(one) and isinstance(one.body, BranchAdd):
                yield one.commit_id, one.body.branch, one.body.name, one.body.root
