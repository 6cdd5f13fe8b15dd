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


def find_moves(operations: Operations, now: Resolution, own: UserId | None = None) -> dict[UserId, Operation]:
    """Map each user who passed its place on to its move that counts, also where it is a member again. Costs O(removals).

    Of one user's moves the first counts here. A copy of its key can make others beside that: if they are to other users who
    are members, or whose place members have, none of them is taken (`find_claims`), but by the user `own` that to itself.
    The user who moved cannot tell its own from the copy's either: both are signed by its key, at times of any choice.
    """
    counting = _find_counting(operations, now)
    claims = _find_contested(operations, counting)
    found: dict[UserId, Operation] = {}
    for user, moves in counting.items():
        known = [one for one in moves if _taker(one) == own] if user in claims else moves
        if known:
            found[user] = known[0]
    return found


def find_claims(operations: Operations, now: Resolution) -> dict[UserId, list[UserId]]:
    """Map each user whose place several others claim to these: its key was copied. Costs O(removals).

    One of them has it again, and is shown so, once the others are excluded.
    """
    counting = _find_counting(operations, now)
    claims = _find_contested(operations, counting)
    return {
        user: takers
        for user, takers in claims.items()
        if any(now.permission(one) is not None or one in counting for one in takers)
    }


def _find_counting(operations: Operations, now: Resolution) -> dict[UserId, list[Operation]]:
    """Map users to their moves that count, in canonical order: where members have the place by some, these alone."""
    counting: dict[UserId, list[Operation]] = {}
    for one in operations.in_order(one for one in operations.removals if isinstance(one.body, Move)):
        if now.counts(one):
            counting.setdefault(one.author, []).append(one)
    if not counting:
        return counting
    givers: dict[UserId, list[UserId]] = {}
    for user, moves in counting.items():
        for move in moves:
            givers.setdefault(_taker(move), []).append(user)
    ahead = [user for user in givers if now.permission(user) is not None]
    alive = set(ahead)
    while ahead:  # in any order: what is reached is the same
        new = {user for user in givers.get(ahead.pop(), ()) if user not in alive}
        alive |= new
        ahead += new
    return {user: [one for one in moves if _taker(one) in alive] or moves for user, moves in counting.items()}


def _find_contested(
    operations: Operations, moves: Mapping[UserId, Sequence[Operation]]
) -> dict[UserId, list[UserId]]:
    """Map users to those who claim their place by moves beside the first."""
    found: dict[UserId, list[UserId]] = {}
    for user, (first, *others) in moves.items():
        beside = {_taker(one) for one in others if not operations.precedes(first, one)} - {_taker(first)}
        if beside:
            found[user] = [_taker(first), *sorted(beside)]
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
    return {old: move for old, move in moves.items() if (heirs.get(old, old), _taker(move)) in agreed}


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
        user = _taker(moves[user])
    return user


def _taker(move: Operation) -> UserId:
    """Return the user to whom a move passes a place."""
    assert isinstance(move.body, Move), "as it is listed"
    return move.body.user
