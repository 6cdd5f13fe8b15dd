"""Computes which members are shown as one person, from the device statements that count.

Nothing rests on it: no right, no verdict, no order. A statement shows two members as one person while it counts, both are
members, and neither has taken it back; by both signatures, so nobody is claimed who never agreed. Chains show nothing:
a device of one person has no devices of its own, and who agreed to be a device of two is one of neither.
"""

from collections.abc import Sequence

from protocol.crypto.signing import BadSignature, verify_signature
from protocol.formats.devices import Device, DeviceEnd, DevicesRepo, HandOn
from protocol.formats.proofs import device_digest, verify_device, verify_device_end
from protocol.ids import RepoId, UserId
from protocol.limits.formats import DEVICE_COUNT_MAX
from verifier.operations import Operation
from verifier.resolution import Resolution


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
