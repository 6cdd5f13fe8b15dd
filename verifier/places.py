"""Places of members that moves pass on, and keys that friends let in: which users to show as one person.

No verdict rests on this. A place may pass to a key whose holder never asked for it, so that what the old key wrote is shown
as another's only where that one has said to be its device.
"""

from collections.abc import Mapping, Sequence
from functools import cache

from protocol.formats.body import Move, RecoveryGrant
from protocol.formats.devices import Device, DeviceEnd
from protocol.ids import CommitId, UserId
from verifier.operations import Operation, Operations
from verifier.resolution import Resolution


def find_moves(operations: Operations, now: Resolution) -> dict[UserId, Operation]:
    """Map each user who passed its place on, and is no member now, to its move that counts. Costs O(removals).

    Of moves beside one another, which a copied key can make, this is the first in canonical order.
    """
    found: dict[UserId, Operation] = {}
    for one in operations.in_order(one for one in operations.removals if isinstance(one.body, Move)):
        if one.author not in found and now.counts(one) and now.permission(one.author) is None:
            found[one.author] = one
    return found


def find_heirs(moves: Mapping[UserId, Operation]) -> dict[UserId, UserId]:
    """Map each user who passed its place on to the user who has it now, as `find_moves` found them."""
    return {user: _last(moves, user) for user in moves if _last(moves, user) != user}


def find_keys(operations: Operations, now: Resolution, user: UserId) -> set[UserId]:
    """Return a user and its forerunners, whose moves need not count. Costs O(moves to these)."""
    return operations.with_forerunners(user, now.is_within)


def find_agreed(
    moves: Mapping[UserId, Operation], words: Sequence[Operation], now: Resolution
) -> dict[UserId, Operation]:
    """Return those of some moves whose user has stated to be a device of the author, or of one whose place that had.

    Costs O(moves and statements).

    Args:
        moves: Moves, as `find_moves` found them.
        words: Device statements whose inner signatures hold (`is_signed`).
        now: What counts.
    """
    since: dict[tuple[UserId, UserId], int] = {}
    until: dict[tuple[UserId, UserId], int] = {}
    for one in words:
        body = one.body
        if isinstance(body, Device) and now.counts(one):
            pair = body.person, body.device
            since[pair] = max(since.get(pair, 0), body.since)
        elif isinstance(body, DeviceEnd) and now.counts(one):
            pair = body.person, body.device
            until[pair] = max(until.get(pair, 0), body.until)
    heirs = find_heirs(moves)
    agreed = {
        (heirs.get(person, person), device)
        for (person, device), at in since.items()
        if at > until.get((person, device), -1) and person in moves
    }
    found: dict[UserId, Operation] = {}
    for old, move in moves.items():
        assert isinstance(move.body, Move), "as it is listed"
        if (heirs.get(old, old), move.body.user) in agreed:
            found[old] = move
    return found


def find_recovered(
    operations: Operations, now: Resolution, heirs: Mapping[UserId, UserId]
) -> dict[UserId, UserId]:
    """Map each member whom friends let in, and who holds no rights but a person's device grants, to that person.

    The person named these friends, so their signatures say whose key it is. Costs O(recovery grants, credentials of these).

    Args:
        operations: All that is here.
        now: What counts.
        heirs: Users who passed their place on, each with who has it now.
    """

    @cache  # friends may let one key in any number of times
    def find_giver(user: UserId) -> tuple[UserId | None, set[CommitId]]:
        held = now.credentials_of(user)
        givers = {heirs.get(one.author, one.author) for one in held}
        is_device = len(givers) == 1 and all(one.is_device_grant for one in held)
        return givers.pop() if is_device else None, {one.commit_id for one in held}

    found: dict[UserId, UserId] = {}
    for member, grants in operations.recovery_grants.items():
        person = heirs.get(member, member)
        for grant in grants:
            assert isinstance(grant.body, RecoveryGrant), "as it is listed"
            giver, held = find_giver(grant.body.user)
            if giver == person and grant.commit_id in held:
                found[grant.body.user] = person
    return found


def _last(moves: Mapping[UserId, Operation], user: UserId) -> UserId:
    seen = set[UserId]()
    while user in moves and user not in seen:
        seen.add(user)
        body = moves[user].body
        assert isinstance(body, Move), "as it is listed"
        user = body.user
    return user
