"""Rule M7: which removals may be made by their own past, by which rights, and who else may make one that is refused."""

from collections.abc import Sequence
from typing import Final

from protocol.formats.body import Permission, Remove
from protocol.ids import UserId
from verifier.operations import NO_RIGHTS, Demands, Operations, Right
from verifier.quorums import find_council, find_council_right, find_covering, find_removal_demands
from verifier.refusal import CommitRefused, Seniors, require_permission
from verifier.resolution import Resolution
from verifier.rights import is_own_device_grant

_ADMINS_LOOKED_AT: Final = 64
"""Members looked at, of those who ever were admins, to name who may: a refused commit costs its author nothing."""
_SENIORS_NAMED: Final = 8


def authorise_removal(
    operations: Operations, author: UserId, body: Remove, before: Resolution
) -> tuple[Permission | None, tuple[Demands, ...], frozenset[Right]]:
    """Judge a removal by its own past (M7, M13, Q4).

    Args:
        operations: All operations here.
        author: Author of the removal.
        body: The removal.
        before: What counts in the removal's past.

    Returns:
        What its author must hold, what quorums demand for each right by which the removal is held, and these rights. A
        leave needs nothing, and no right holds it. The right of the council stands alone. A device removal needs neither
        an admin nor a quorum.

    Raises:
        CommitRefused: It takes nothing away, its author may not write, a right that it would take is not junior to a
            right by which it is held, or too few signers approved.
    """
    is_leave = body.user == author
    taken = [] if is_leave else before.find_taken(body.user, body.keeps)
    if not taken and not (is_leave and (before.permission(author) or 0) > (body.keeps or 0)):
        raise CommitRefused("nothing_to_remove", "M7: the user holds no more than that")
    if len({end.branch for end in body.feeds}) < len(body.feeds):
        raise CommitRefused("bad_feed_ends", "M7: a branch is named twice")
    if is_leave:
        return None, (), NO_RIGHTS
    council = find_council_right(operations, body, before)
    is_of_device = council is None and all(
        is_own_device_grant(operations, operations[right.credential], author, before.is_within)
        for right in taken
    )
    require_permission(
        before.permission(author),
        Permission.READ if is_of_device else Permission.WRITE,
        "M7: removing another needs the permission to write",
    )
    if council is not None:
        return Permission.ADMIN, (), frozenset((council,))
    if is_of_device:
        own = frozenset(before.rights_held(author))
        if not before.are_junior(taken, own):
            seniors = find_seniors(operations, before, body.user, taken)
            raise CommitRefused(
                "not_permitted", "M7: its author holds less than the device", Seniors(body.user, seniors)
            )
        return Permission.READ, (), own
    covering = find_covering(operations, before)
    acts = {
        *before.rights_held(author, Permission.ADMIN),
        *(Right(one.commit_id, Permission.OWNER) for one in covering),
    }
    if not before.are_junior(taken, acts):
        seniors = find_seniors(operations, before, body.user, taken)
        if not seniors and find_council(operations) is not None:
            raise CommitRefused("needs_quorum", "M7: too few of the council approved of this removal")
        raise CommitRefused(
            "not_permitted",
            "M7: what it would take is not junior to what its author holds",
            Seniors(body.user, seniors),
        )
    if not covering:
        return Permission.ADMIN, (), frozenset(acts)
    demands = [
        Demands(right, found)
        for right in sorted(acts)
        if (found := find_removal_demands(operations, body, before, covering, right)) is not None
    ]
    if not before.are_junior(taken, [one.right for one in demands]):
        raise CommitRefused("needs_quorum", "M13: too few signers approved of this removal")
    return Permission.ADMIN, tuple(demands), frozenset(one.right for one in demands)


def find_seniors(
    operations: Operations, before: Resolution, user: UserId, taken: Sequence[Right]
) -> tuple[UserId, ...]:
    """Return members who hold rights that are senior to all of some rights of a user, sorted.

    At most eight, of 64 who ever were admins, by their ids: all nodes name the same.
    """
    candidates = sorted(operations.admins())[:_ADMINS_LOOKED_AT]
    seniors = [
        one
        for one in candidates
        if one != user and before.are_junior(taken, before.rights_held(one, Permission.ADMIN))
    ]
    return tuple(sorted(seniors[:_SENIORS_NAMED]))
