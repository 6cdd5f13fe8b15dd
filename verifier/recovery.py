"""Recovery friends: whom a member may name (M19), and what they may do in its place (M20).

A recovery grant is a device grant of the member who named the friends. They sign outside their commits, so it needs a
publisher, who may be any member, and says nothing by publishing it.
"""

from collections.abc import Sequence
from itertools import pairwise

from protocol.crypto.signing import BadSignature, verify_public_key
from protocol.formats.body import RecoveryFriends, RecoveryGrant
from protocol.formats.proofs import verify_recovery
from protocol.ids import RepoId, UserId
from verifier.devices import check_device_grant
from verifier.operations import Operation, Operations
from verifier.refusal import CommitRefused
from verifier.resolution import Resolution


def check_friends(author: UserId, body: RecoveryFriends) -> None:
    """Raise CommitRefused unless a user may name these friends, and ask for so many of them (M19)."""
    count = len(body.friends)
    if not _are_in_order(body.friends) or author in body.friends:
        raise CommitRefused("bad_recovery", "M19: friends are not in order, named twice, or the author")
    if not (count < 2 * body.threshold <= 2 * count or count == body.threshold == 0):
        raise CommitRefused(
            "bad_recovery", "M19: the threshold is more than half of the friends, and at most all"
        )
    try:
        for friend in body.friends:
            verify_public_key(friend)
    except BadSignature as error:
        raise CommitRefused("bad_recovery", f"M19: {error}") from None


def authorise_recovery(
    repo_id: RepoId, operations: Operations, body: RecoveryGrant, before: Resolution
) -> UserId:
    """Return the member in whose place friends make a grant after `before` (M20).

    Costs as `check_device_grant`, O(namings and recovery grants of the member) and RECOVERY_FRIEND_COUNT_MAX signatures.

    Raises:
        CommitRefused: They were not named, or by a naming that is not the last, or that was used for this device; too few
            of them signed; or the member may make no such device grant (M17).
    """
    naming = operations.find(body.friends)
    if naming is None or not isinstance(naming.body, RecoveryFriends) or not before.is_within(naming):
        raise CommitRefused("bad_recovery", "M20: no friends were named by such a commit in its past")
    member = naming.author
    namings, grants = operations.namings[member], operations.recovery_grants.get(member, ())
    if any(operations.precedes(naming, one) and before.is_within(one) for one in namings):
        raise CommitRefused("bad_recovery", "M20: friends were named later")
    if any(_is_alike(one, body) and before.is_within(one) for one in grants):
        raise CommitRefused("bad_recovery", "M20: this naming let the device in already")
    check_device_grant(operations, member, body, before)
    signers = [one.friend for one in body.signatures]
    if not _are_in_order(signers) or not set(naming.body.friends).issuperset(signers):
        raise CommitRefused("bad_recovery", "M20: signers are not in order, named twice, or no friends")
    if not signers or len(signers) < naming.body.threshold:
        raise CommitRefused("bad_recovery", "M20: too few of the friends signed")
    try:
        verify_recovery(repo_id, body)
    except BadSignature as error:
        raise CommitRefused("bad_recovery", f"M20: {error}") from None
    return member


def _is_alike(one: Operation, body: RecoveryGrant) -> bool:
    """Return True if a recovery grant is by the same naming, for the same device."""
    return isinstance(one.body, RecoveryGrant) and (one.body.friends, one.body.user) == (
        body.friends,
        body.user,
    )


def _are_in_order(users: Sequence[UserId]) -> bool:
    return all(earlier < later for earlier, later in pairwise(users))
