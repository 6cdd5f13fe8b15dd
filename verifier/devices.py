"""Devices of one person: who may give rights to one (M17), and which members are shown as one person.

A device is a member, by a device grant of its person. No right, no verdict and no order rests on who is shown as one
person. A statement shows two members so while it counts, both are members, and neither has taken it back; by both
signatures, so nobody is claimed who never agreed. Chains show nothing: a device of one person has no devices of its own,
and who agreed to be a device of two is one of neither.
"""

from collections.abc import Sequence

from protocol.crypto.signing import BadSignature, verify_public_key, verify_signature
from protocol.formats.body import DeviceGrant, Grant
from protocol.formats.devices import Device, DeviceEnd, DevicesRepo, HandOn
from protocol.formats.proofs import device_digest, verify_device, verify_device_end
from protocol.ids import RepoId, UserId
from protocol.limits.formats import DEVICE_COUNT_MAX, DEVICE_GRANT_COUNT_MAX
from verifier.operations import Operation, Operations, Right
from verifier.refusal import CommitRefused, require_permission
from verifier.resolution import Resolution


def check_granted(operations: Operations, body: Grant | DeviceGrant, before: Resolution) -> None:
    """Raise CommitRefused unless a grant is to a user's key, and adds to what that user holds (M6, M17).

    A grant also adds to what only device grants give: else a member who gives something to a newcomer's key, before an admin
    lets that one in, could throw it out again.
    """
    try:
        verify_public_key(body.user)
    except BadSignature as error:
        raise CommitRefused("bad_user", f"M6: {error}") from None
    rights = before.rights_held(body.user, body.permission)
    if any(isinstance(body, DeviceGrant) or not is_by_device_grant(operations, right) for right in rights):
        raise CommitRefused("already_holds", "M6: the user holds that permission")


def is_by_device_grant(operations: Operations, right: Right) -> bool:
    """Return True if a device grant gives a right."""
    return isinstance(operations[right.credential].body, DeviceGrant)


def check_device_grant(operations: Operations, author: UserId, body: DeviceGrant, before: Resolution) -> None:
    """Raise CommitRefused unless a user may give a permission to a device of its own after `before` (M17).

    Costs O(what the user granted, invited and removed), and the rights of DEVICE_GRANT_COUNT_MAX devices.
    """
    require_permission(
        before.permission(author), body.permission, "M17: a device gets no more than its person holds"
    )
    rights = before.rights_held(author, body.permission)
    if all(is_by_device_grant(operations, right) for right in rights):
        raise CommitRefused(
            "not_permitted", "M17: a device gets what its person holds other than by a device grant"
        )
    check_granted(operations, body, before)
    made = {
        one.commit_id: one.body.user
        for one in operations.deciding_by(author)
        if isinstance(one.body, DeviceGrant) and before.is_within(one)
    }
    others = set(made.values()) - {body.user}
    holding = [user for user in others if any(right.credential in made for right in before.rights_held(user))]
    if len(made) >= DEVICE_GRANT_COUNT_MAX or len(holding) >= DEVICE_COUNT_MAX - 1:
        raise CommitRefused("too_many_devices", "M17: too many devices, or device grants, of its author")


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


def find_persons(now: Resolution, words: Sequence[Operation]) -> dict[UserId, UserId]:
    """Find members who are devices of others, each with the member that its person is known by. Costs O(words).

    Args:
        now: What counts.
        words: Device statements whose inner signatures hold (`is_signed`).

    Returns:
        Of one person, the DEVICE_COUNT_MAX - 1 that have been devices for longest.
    """
    since: dict[tuple[UserId, UserId], int] = {}
    until: dict[tuple[UserId, UserId], int] = {}
    for one in words:
        body = one.body
        if not isinstance(body, Device | DeviceEnd) or not now.counts(one):
            continue
        pair = body.person, body.device
        if now.permission(body.person) is None or now.permission(body.device) is None:
            continue
        if isinstance(body, Device):
            since[pair] = max(since.get(pair, 0), body.since)
        else:
            until[pair] = max(until.get(pair, 0), body.until)
    standing = [pair for pair in since if since[pair] > until.get(pair, -1)]
    persons_of: dict[UserId, set[UserId]] = {}
    for person, device in standing:
        persons_of.setdefault(device, set()).add(person)
    found: dict[UserId, UserId] = {}
    counts: dict[UserId, int] = {}
    for person, device in sorted(standing, key=lambda pair: (since[pair], pair)):
        if person in persons_of or len(persons_of[device]) > 1:
            continue
        counts[person] = counts.get(person, 1) + 1
        if counts[person] <= DEVICE_COUNT_MAX:
            found[device] = person
    return found
