"""Devices of one person: who may give rights to one (M17), or a place (M18), and which members are shown as one person.

A device is a member, by a device grant of its person. No right, no verdict and no order rests on who is shown as one
person. A statement shows two members so while it counts, both are members, and neither has taken it back; by both
signatures, so nobody is claimed who never agreed. Chains show nothing: a device of one person has no devices of its own,
and who agreed to be a device of two is one of neither.
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from protocol.crypto.signing import BadSignature, verify_public_key, verify_signature
from protocol.formats.body import DeviceGrant, Grant, Join, Move, RecoveryGrant, RepoInit
from protocol.formats.devices import Device, DeviceEnd, DevicesRepo, HandOn
from protocol.formats.proofs import device_digest, verify_device, verify_device_end
from protocol.ids import RepoId, UserId
from protocol.limits.formats import DEVICE_COUNT_MAX, DEVICE_GRANT_COUNT_MAX, MOVE_COUNT_MAX
from verifier.operations import Operation, Operations
from verifier.refusal import CommitRefused, require_permission
from verifier.resolution import Resolution
from verifier.rights import is_own_device_grant


def check_granted(
    operations: Operations, body: Grant | DeviceGrant | RecoveryGrant, before: Resolution
) -> None:
    """Raise CommitRefused unless a grant is to a user's key, and adds to what that user holds (M6, M17).

    A grant also adds to what only device grants give: else a member who gives something to a newcomer's key, before an admin
    lets that one in, could throw it out again.
    """
    try:
        verify_public_key(body.user)
    except BadSignature as error:
        raise CommitRefused("bad_user", f"M6: {error}") from None
    rights = before.rights_held(body.user, body.permission)
    is_of_device = not isinstance(body, Grant)
    if any(is_of_device or not operations[right.credential].is_device_grant for right in rights):
        raise CommitRefused("already_holds", "M6: the user holds that permission")


def check_device_grant(
    operations: Operations, author: UserId, body: DeviceGrant | RecoveryGrant, before: Resolution
) -> None:
    """Raise CommitRefused unless a user may give a permission to a device of its own after `before` (M17).

    Costs O(what the user, and whose places it has, granted, invited and removed), and the rights of DEVICE_GRANT_COUNT_MAX
    devices.
    """
    require_permission(
        before.permission(author), body.permission, "M17: a device gets no more than its person holds"
    )
    rights = before.rights_held(author, body.permission)
    if all(operations[right.credential].is_device_grant for right in rights):
        raise CommitRefused(
            "not_permitted", "M17: a device gets what its person holds other than by a device grant"
        )
    check_granted(operations, body, before)
    made = {
        one.commit_id: one
        for user in operations.with_forerunners(author, before.is_within)
        for one in operations.deciding_by(user)
        if one.is_device_grant and before.is_within(one)
    }
    published = [one for one in made.values() if one.author == author and isinstance(one.body, DeviceGrant)]
    others = {one.body.user for one in made.values() if isinstance(one.body, DeviceGrant | RecoveryGrant)}
    holding = [
        user
        for user in others - {author, body.user}
        if any(right.credential in made for right in before.rights_held(user))
    ]
    is_last = isinstance(body, DeviceGrant) and len(published) >= DEVICE_GRANT_COUNT_MAX
    if is_last or len(holding) >= DEVICE_COUNT_MAX - 1:
        raise CommitRefused("too_many_devices", "M17: too many devices, or device grants, of its author")


def check_move(operations: Operations, author: UserId, body: Move, before: Resolution) -> None:
    """Raise CommitRefused unless a user may pass a credential on after `before`, to who holds as its device alone (M18)."""
    credential = operations.find(body.credential)
    if credential is None or body.credential not in {one.credential for one in before.rights_held(author)}:
        raise CommitRefused("bad_move", "M18: its author holds nothing by that credential")
    if not isinstance(credential.body, RepoInit | Grant | Join | Move):
        raise CommitRefused("bad_move", "M18: a device grant is not passed on")
    if sum(1 for _ in operations.moves_of(credential)) >= MOVE_COUNT_MAX:
        raise CommitRefused("bad_move", "M18: it was passed on too often")
    held = [operations[one.credential] for one in before.rights_held(body.user)]
    if (
        body.user == author
        or not held
        or not all(is_own_device_grant(operations, one, author, before.is_within) for one in held)
    ):
        raise CommitRefused("bad_move", "M18: its user does not hold as a device of its author alone")


def is_signed(repo_id: RepoId, operation: Operation) -> bool:
    """Return True if the signatures inside a device statement hold, beside the commit's own."""
    body = operation.body
    try:
        match body:
            case Device():
                verify_device(repo_id, body)
            case DeviceEnd():
                verify_device_end(repo_id, body)
            case HandOn():
                digest = device_digest(body.repo, operation.author, body.device, body.since)
                verify_signature(operation.author, digest, body.signature)
            case DevicesRepo():
                pass
    except BadSignature:
        return False
    return True


def find_persons(
    now: Resolution, words: Sequence[Operation], heirs: Mapping[UserId, UserId] = MappingProxyType({})
) -> dict[UserId, UserId]:
    """Find members who are devices of others, each with the member that its person is known by. Costs O(words).

    Args:
        now: What counts.
        words: Device statements whose inner signatures hold (`is_signed`).
        heirs: Users who passed their place on, each with who has it now. What they stated is true of that one.

    Returns:
        Of one person, the DEVICE_COUNT_MAX - 1 that have been devices for longest, and its keys in `heirs`.
    """
    since: dict[tuple[UserId, UserId], int] = {}
    until: dict[tuple[UserId, UserId], int] = {}
    for one in words:
        body = one.body
        if not isinstance(body, Device | DeviceEnd) or not now.counts(one):
            continue
        pair = heirs.get(body.person, body.person), body.device
        if pair[0] == pair[1] or now.permission(pair[0]) is None or now.permission(body.device) is None:
            continue
        if isinstance(body, Device):
            since[pair] = max(since.get(pair, 0), body.since)
        else:
            until[pair] = max(until.get(pair, 0), body.until)
    standing = [pair for pair in since if since[pair] > until.get(pair, -1)]
    persons_of: dict[UserId, set[UserId]] = {}
    for person, device in standing:
        persons_of.setdefault(device, set()).add(person)
    found: dict[UserId, UserId] = dict(heirs)
    counts: dict[UserId, int] = {}
    for person, device in sorted(standing, key=lambda pair: (since[pair], pair)):
        if person in persons_of or len(persons_of[device]) > 1:
            continue
        counts[person] = counts.get(person, 1) + 1
        if counts[person] <= DEVICE_COUNT_MAX:
            found[device] = person
    return found
