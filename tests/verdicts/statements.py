"""Membership checkpoints: the statement of a set, and which checkpoints are true; profiles/members-checkpoint.md."""

from .codec import encode
from .crypto import derive
from .epochs import epochs, opens
from .rules import ADMIN, counts, in_force, is_leave, members, permission, rights_of

CONSIDERED = 8


def statement(view):
    """The statement of a closed set of operations."""
    past = view.graph.past
    rights = []
    for user in sorted(members(view)):
        bits = {}
        for credential, level in rights_of(view, user):
            bits[credential] = bits.get(credential, 0) + 2 ** (level - 1)
        rights += [[user, credential, bits[credential]] for credential in sorted(bits)]
    high = sorted({credential for _, credential, bits in rights if bits >= 2 ** (ADMIN - 1)})
    order = [[one, [other for other in high if other in past[one]]] for one in high]
    removals = [op for op in view.all("remove1") if counts(view, op.id)]
    revoked = {op.body.invitation for op in view.all("revoke1") if counts(view, op.id)}
    invitations = [
        [
            op.id,
            *op.body.values,
            sorted(
                {
                    join.author
                    for join in view.all("join1")
                    if join.body.invitation == op.id and counts(view, join.id)
                }
            ),
            sorted(
                {removal.body.user for removal in removals if removal.id not in past[op.id]}
                | {move.author for move in view.all("move1") if move.id not in past[op.id]}
            ),
        ]
        for op in view.all("invite1")
        if counts(view, op.id) and op.id not in revoked
    ]
    return [
        rights,
        [entry for entry in order if entry[1]],
        sorted([op.id, *op.body.values] for op in removals if not is_leave(op)),
        sorted(invitations),
        sorted([op.id, *op.body.values] for op in in_force(view)),
        sorted([op.id, *op.body.states[:2], sorted(opens(view, op.id) - {op.id})] for op in epochs(view)),
        sorted([op.id, *op.body.values] for op in view.all("branch-add2")),
    ]


def digest_of(repo, stated):
    """The digest of a statement."""
    return derive("repo and statement to members digest v1", repo + encode(stated))


def digest(view):
    """The digest that a checkpoint after this set signs."""
    return digest_of(view.graph.repo, statement(view))


def checkpoints(view):
    """By id, whether each checkpoint is true that is considered."""
    found = {}
    for op in view.all("members-checkpoint1"):
        before = view.graph.before(op.id)
        if hasattr(op.body, "digest") and permission(before, op.author) >= ADMIN:
            found.setdefault(op.author, []).append(op)
    considered = [op for ops in found.values() for op in ops[-CONSIDERED:]]
    return {op.id.hex(): op.body.digest == digest(view.graph.before(op.id)) for op in considered}
