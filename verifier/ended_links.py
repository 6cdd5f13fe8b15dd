"""Tells whether bearer links that are over still open what is written now, though their author wanted a renewal then.

Nothing rests on it: no right, no verdict, no order. See `protocol.links`.
"""

from protocol.body import Invite
from protocol.ids import UserId
from verifier.membership import Membership
from verifier.operations import Operation, Operations
from verifier.resolution import Resolution


def is_renewal_due(membership: Membership, now: Resolution, author: UserId) -> bool:
    """Return True if a link of this author ended, and the epoch that is written in does not know of it."""
    operations, preferred = membership.operations, membership.epochs.find_preferred(now)
    if preferred is None:
        return False  # another epoch is due anyhow
    return any(
        not operations.precedes(end, preferred)
        for one in operations.authored_by(author)
        if isinstance(one.body, Invite) and one.renews
        for end in _ends(operations, now, one, one.body.uses)
    )


def _ends(operations: Operations, now: Resolution, invitation: Operation, uses: int) -> list[Operation]:
    """Return what ended a link: revocations that count, and where no use is left, the joins."""
    ends = [one for one in operations.revocations_of(invitation.commit_id) if now.has_effect(one)]
    joins = [one for one in operations.joins_by(invitation.commit_id) if now.counts(one)]
    return ends + (joins if len({join.author for join in joins}) >= uses else [])
