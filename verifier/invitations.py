"""Rule M4: whom an invitation admits."""

from protocol.crypto.signing import BadSignature, verify_public_key
from protocol.formats.body import Invite, Join
from protocol.formats.commit import Commit
from protocol.formats.proofs import verify_invitation_proof
from protocol.ids import CommitId, RepoId
from verifier.operations import Operation, Operations
from verifier.refusal import CommitRefused
from verifier.resolution import Resolution


def find_invitation(operations: Operations, commit_id: CommitId, before: Resolution) -> Operation | None:
    """Return the invitation of that commit if it is in a set, or None."""
    found = operations.find(commit_id)
    if found is None or not isinstance(found.body, Invite):
        return None
    return found if operations.is_within(found, before.heads) else None


def check_join(
    repo_id: RepoId, operations: Operations, commit: Commit, body: Join, before: Resolution
) -> None:
    """Raise CommitRefused unless an invitation admits the author of a join after `before` (M4).

    Costs O(removals of the author), and O(joins by the invitation) where it has few uses.
    """
    user = commit.content.author
    found = find_invitation(operations, body.invitation, before)
    if found is None or not before.counts(found):
        raise CommitRefused("unknown_invitation", "M4: no such invitation in the commit's past")
    invitation = found.body
    assert isinstance(invitation, Invite), "looked for"
    if any(before.has_effect(one) for one in operations.revocations_of(body.invitation)):
        raise CommitRefused("invitation_revoked", "M4: the invitation was revoked")
    if any(not operations.precedes(one, found) for one in before.counting_removals_of(user)):
        raise CommitRefused("not_permitted", "M4: who was removed needs a later invitation")
    if commit.content.timestamp >= invitation.expires_at:
        raise CommitRefused("invitation_expired", "M4: not dated before the expiry")
    joins = operations.joins_by(body.invitation)
    if len(joins) >= invitation.uses:  # else it need not be looked at which of them are in the past
        joined = {
            one.author for one in joins if operations.is_within(one, before.heads) and before.counts(one)
        }
        if user not in joined and len(joined) >= invitation.uses:
            raise CommitRefused("invitation_used", "M4: no use left")
    try:
        verify_public_key(user)
        verify_invitation_proof(invitation.invitation_key, repo_id, user, body.proof)
    except BadSignature as error:
        raise CommitRefused("bad_proof", f"M4: {error}") from None
